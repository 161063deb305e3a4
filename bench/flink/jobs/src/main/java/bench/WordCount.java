package bench;

import java.util.concurrent.locks.LockSupport;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** The keyed count: how often each key has come, emitted for every record. */
final class WordCount {
    static void build(StreamExecutionEnvironment env, long records, long keys) {
        counts(env, records, keys).addSink(new Tally<>(t -> t.f1)).uid("sink").name("sink");
    }

    /** With a sink that takes a tenth of a millisecond for each record: everything before it waits. */
    static void pressed(StreamExecutionEnvironment env, long records, long keys) {
        counts(env, records, keys).addSink(new Tally<>(t -> {
            LockSupport.parkNanos(100_000);
            return t.f1;
        })).uid("sink").name("sink");
    }

    private static DataStream<Tuple2<Long, Long>> counts(StreamExecutionEnvironment env, long records, long keys) {
        DataGeneratorSource<Long> source =
                new DataGeneratorSource<>(i -> Long.remainderUnsigned(Events.mix(i), keys), records, Types.LONG);
        return env.fromSource(source, WatermarkStrategy.noWatermarks(), "generate").uid("generate")
                .keyBy(k -> k, Types.LONG)
                .process(new Count()).returns(Types.TUPLE(Types.LONG, Types.LONG)).uid("count").name("count");
    }

    private static final class Count extends KeyedProcessFunction<Long, Long, Tuple2<Long, Long>> {
        private transient ValueState<Long> count;
        private final Tuple2<Long, Long> result = new Tuple2<>();

        @Override public void open(OpenContext c) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
        }

        @Override public void processElement(Long key, Context c, Collector<Tuple2<Long, Long>> out) throws Exception {
            Long before = count.value();
            Long now = before == null ? 1L : before + 1;
            count.update(now);
            result.f0 = key;
            result.f1 = now;
            out.collect(result);
        }
    }
}
