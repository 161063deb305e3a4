package bench;

import java.util.LinkedHashMap;
import java.util.Map;

import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Runs one bounded job and prints one RESULT line.
 *
 * <p>The configuration is Flink's own but for what favours it here: objects are reused, and there are as many slots as subtasks.
 */
public final class Main {
    private final Map<String, String> arguments = new LinkedHashMap<>();

    public static void main(String[] argv) throws Exception {
        Main m = new Main();
        for (int i = 0; i + 1 < argv.length; i += 2) m.arguments.put(argv[i].replaceFirst("^--", ""), argv[i + 1]);
        m.run();
    }

    private String text(String name, String otherwise) { return arguments.getOrDefault(name, otherwise); }

    private long number(String name, long otherwise) { return Long.parseLong(text(name, Long.toString(otherwise))); }

    private void run() throws Exception {
        String workload = text("workload", "wordcount");
        int parallelism = (int) number("parallelism", 1);
        long records = number("records", 1_000_000) / parallelism * parallelism;
        if (workload.equals("events")) {
            events(records);
            return;
        }
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(configuration(parallelism));
        env.setParallelism(parallelism);
        env.setMaxParallelism(128);
        long interval = number("interval-ms", 0);
        if (interval > 0) env.enableCheckpointing(interval);

        if (workload.equals("wordcount")) WordCount.build(env, records, number("keys", 1_000_000));
        else if (workload.equals("pressure")) WordCount.pressed(env, records, number("keys", 1_000_000));
        else Queries.build(env, workload, records, Boolean.parseBoolean(text("shuffle", "false")));

        JobExecutionResult r = env.execute(workload);
        print(workload, records, r.getAccumulatorResult("out"), r.getAccumulatorResult("sum"), r.getNetRuntime() / 1000.0,
                r.getAccumulatorResult("checkpoints"));
    }

    private Configuration configuration(int parallelism) {
        Configuration c = new Configuration();
        c.setString("pipeline.object-reuse", "true");
        c.setString("restart-strategy.type", "none");
        c.setString("taskmanager.numberOfTaskSlots", Integer.toString(parallelism));
        c.setString("rest.bind-port", "0");
        for (Map.Entry<String, String> a : arguments.entrySet())
            if (a.getKey().startsWith("conf.")) c.setString(a.getKey().substring("conf.".length()), a.getValue());
        return c;
    }

    /** Where the loop puts its events, so that the JIT does not do without the objects. */
    static Events.Event last;

    /** The generator alone. */
    private static void events(long records) {
        long sum = 0, begun = System.nanoTime();
        for (long n = 0; n < records; n++) {
            last = Events.at(n);
            sum += Queries.value(last);
        }
        print("events", records, records, sum, (System.nanoTime() - begun) / 1e9, 0);
    }

    private static void print(String workload, long records, long out, long sum, double seconds, long checkpoints) {
        System.out.printf("RESULT query=%s records=%d out=%d sum=%d seconds=%.3f checkpoints=%d%n",
                workload, records, out, sum, seconds, checkpoints);
    }
}
