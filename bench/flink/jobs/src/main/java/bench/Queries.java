package bench;

import java.time.Duration;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.CoGroupFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/** The queries of Nexmark, each with a sink that sums up. q0 to q3 are as in examples/nexmark. */
final class Queries {
    private static final TypeInformation<Tuple2<Long, Long>> TWO = Types.TUPLE(Types.LONG, Types.LONG);
    private static final TypeInformation<Tuple3<Long, Long, Long>> THREE = Types.TUPLE(Types.LONG, Types.LONG, Types.LONG);
    private static final TypeInformation<Tuple2<Long, String>> NAMED = Types.TUPLE(Types.LONG, Types.STRING);
    private static final TypeInformation<Tuple4<Long, String, String, String>> SEEN =
            Types.TUPLE(Types.LONG, Types.STRING, Types.STRING, Types.STRING);

    private Queries() {}

    static void build(StreamExecutionEnvironment env, String query, long records, boolean shuffle) {
        boolean windowed = query.equals("q5") || query.equals("q7") || query.equals("q8");
        DataStream<Events.Event> events = events(env, records, windowed);
        if (shuffle) events = events.rebalance();
        switch (query) {
            case "q0" -> q0(events);
            case "q1" -> q1(events);
            case "q2" -> q2(events);
            case "q3" -> q3(events);
            case "q5" -> q5(events);
            case "q7" -> q7(events);
            case "q8" -> q8(events);
            default -> throw new IllegalArgumentException("there is no query " + query);
        }
    }

    /**
     * The source. Each of its p subtasks has records/p successive numbers; where time matters, they are read as every p-th
     * event, so that event time advances everywhere alike.
     */
    private static DataStream<Events.Event> events(StreamExecutionEnvironment env, long records, boolean timed) {
        int p = env.getParallelism();
        long each = records / p;
        GeneratorFunction<Long, Events.Event> generate = timed && p > 1 ? i -> Events.at(i % each * p + i / each) : i -> Events.at(i);
        WatermarkStrategy<Events.Event> watermarks = timed
                ? WatermarkStrategy.<Events.Event>forMonotonousTimestamps().withTimestampAssigner((e, t) -> e.millis())
                : WatermarkStrategy.noWatermarks();
        DataGeneratorSource<Events.Event> source = new DataGeneratorSource<>(generate, records, TypeInformation.of(Events.Event.class));
        return env.fromSource(source, watermarks, "events").uid("events");
    }

    /** What q0 sums. */
    static long value(Events.Event e) { return e.type == Events.BID ? e.bid.price : 1; }

    /** Every event, as it is. */
    private static void q0(DataStream<Events.Event> events) { sink(events, Queries::value); }

    /** Every bid, its price in euros. */
    private static void q1(DataStream<Events.Event> events) {
        sink(events.filter(e -> e.type == Events.BID).uid("bids").map(e -> {
            e.bid.price = (long) (e.bid.price * 0.908);
            return e.bid;
        }).returns(Events.Bid.class).uid("euros"), b -> b.price);
    }

    /** The bids on one auction of 123. */
    private static void q2(DataStream<Events.Event> events) {
        sink(events.filter(e -> e.type == Events.BID && e.bid.auction % 123 == 0).uid("bids")
                .map(e -> Tuple2.of(e.bid.auction, e.bid.price)).returns(TWO).uid("offers"), t -> t.f0 + t.f1);
    }

    /** Who, in three states, sells in category 10: a join whose state is kept for ever. */
    private static void q3(DataStream<Events.Event> events) {
        DataStream<Tuple4<Long, String, String, String>> persons = events.filter(e -> e.type == Events.PERSON && local(e.person.state))
                .map(e -> Tuple4.of(e.person.id, e.person.name, e.person.city, e.person.state)).returns(SEEN).uid("persons");
        DataStream<Tuple2<Long, Long>> auctions = events.filter(e -> e.type == Events.AUCTION && e.auction.category == 10)
                .map(e -> Tuple2.of(e.auction.seller, e.auction.id)).returns(TWO).uid("auctions");
        sink(persons.keyBy(t -> t.f0, Types.LONG).connect(auctions.keyBy(t -> t.f0, Types.LONG)).process(new Join()).uid("join"), t -> t.f3);
    }

    private static boolean local(String state) { return state.equals("OR") || state.equals("ID") || state.equals("CA"); }

    /** The auction with the most bids in 10 s, every 2 s; of equal ones the lowest. */
    private static void q5(DataStream<Events.Event> events) {
        sink(events.filter(e -> e.type == Events.BID).uid("bids").map(e -> e.bid.auction).returns(Types.LONG).uid("auctions")
                .keyBy(k -> k, Types.LONG).window(SlidingEventTimeWindows.of(Duration.ofSeconds(10), Duration.ofSeconds(2)))
                .aggregate(new Count(), new WithWindow(), Types.LONG, Types.LONG, THREE).uid("counts")
                .keyBy(t -> t.f0, Types.LONG).window(TumblingEventTimeWindows.of(Duration.ofSeconds(2)))
                .reduce((x, y) -> y.f2 > x.f2 || (y.f2.equals(x.f2) && y.f1 < x.f1) ? y : x).returns(THREE).uid("most"),
                t -> t.f1 * 31 + t.f2);
    }

    /** The highest bid of each 10 s. */
    private static void q7(DataStream<Events.Event> events) {
        sink(events.filter(e -> e.type == Events.BID).uid("bids")
                .map(e -> Tuple3.of(e.bid.auction, e.bid.price, e.bid.bidder)).returns(THREE).uid("offers")
                .keyBy(t -> t.f0, Types.LONG).window(TumblingEventTimeWindows.of(Duration.ofSeconds(10)))
                .reduce(Queries::higher).returns(THREE).uid("of-auction")
                .windowAll(TumblingEventTimeWindows.of(Duration.ofSeconds(10)))
                .reduce(Queries::higher).returns(THREE).uid("of-all"), t -> t.f0 + t.f1 + t.f2);
    }

    /** Who is new and sells in the same 10 s. */
    private static void q8(DataStream<Events.Event> events) {
        DataStream<Tuple2<Long, String>> persons = events.filter(e -> e.type == Events.PERSON)
                .map(e -> Tuple2.of(e.person.id, e.person.name)).returns(NAMED).uid("persons");
        DataStream<Long> sellers = events.filter(e -> e.type == Events.AUCTION).map(e -> e.auction.seller).returns(Types.LONG).uid("sellers");
        sink(persons.coGroup(sellers).where(t -> t.f0, Types.LONG).equalTo(k -> k, Types.LONG)
                .window(TumblingEventTimeWindows.of(Duration.ofSeconds(10))).apply(new Sellers(), NAMED), t -> t.f0);
    }

    private static <T> void sink(DataStream<T> results, Tally.Number<T> number) {
        results.addSink(new Tally<>(number)).uid("sink").name("sink");
    }

    /** The higher of two bids; of equal ones that on the lower auction, then by the lower bidder. */
    private static Tuple3<Long, Long, Long> higher(Tuple3<Long, Long, Long> x, Tuple3<Long, Long, Long> y) {
        int c = Long.compare(y.f1, x.f1);
        if (c == 0) c = Long.compare(x.f0, y.f0);
        if (c == 0) c = Long.compare(x.f2, y.f2);
        return c > 0 ? y : x;
    }

    /** The function of q3. Its key is a person. */
    private static final class Join
            extends KeyedCoProcessFunction<Long, Tuple4<Long, String, String, String>, Tuple2<Long, Long>, Tuple4<String, String, String, Long>> {
        private transient ValueState<Tuple4<Long, String, String, String>> person;
        private transient ListState<Long> auctions;

        @Override public void open(OpenContext c) {
            person = getRuntimeContext().getState(new ValueStateDescriptor<>("person", SEEN));
            auctions = getRuntimeContext().getListState(new ListStateDescriptor<>("auctions", Types.LONG));
        }

        @Override public void processElement1(Tuple4<Long, String, String, String> p, Context c, Collector<Tuple4<String, String, String, Long>> out)
                throws Exception {
            person.update(p);
            Iterable<Long> waiting = auctions.get();
            if (waiting != null) for (Long auction : waiting) out.collect(Tuple4.of(p.f1, p.f2, p.f3, auction));
        }

        @Override public void processElement2(Tuple2<Long, Long> sale, Context c, Collector<Tuple4<String, String, String, Long>> out)
                throws Exception {
            auctions.add(sale.f1);
            Tuple4<Long, String, String, String> p = person.value();
            if (p != null) out.collect(Tuple4.of(p.f1, p.f2, p.f3, sale.f1));
        }
    }

    private static final class Count implements AggregateFunction<Long, Long, Long> {
        @Override public Long createAccumulator() { return 0L; }
        @Override public Long add(Long auction, Long n) { return n + 1; }
        @Override public Long getResult(Long n) { return n; }
        @Override public Long merge(Long n, Long m) { return n + m; }
    }

    private static final class WithWindow extends ProcessWindowFunction<Long, Tuple3<Long, Long, Long>, Long, TimeWindow> {
        @Override public void process(Long auction, Context c, Iterable<Long> count, Collector<Tuple3<Long, Long, Long>> out) {
            out.collect(Tuple3.of(c.window().getEnd(), auction, count.iterator().next()));
        }
    }

    private static final class Sellers implements CoGroupFunction<Tuple2<Long, String>, Long, Tuple2<Long, String>> {
        @Override public void coGroup(Iterable<Tuple2<Long, String>> persons, Iterable<Long> sales, Collector<Tuple2<Long, String>> out) {
            if (!sales.iterator().hasNext()) return;
            for (Tuple2<Long, String> p : persons) out.collect(p);
        }
    }
}
