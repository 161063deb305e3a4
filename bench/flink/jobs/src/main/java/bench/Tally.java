package bench;

import java.io.Serializable;

import org.apache.flink.api.common.accumulators.LongCounter;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.streaming.api.functions.sink.legacy.RichSinkFunction;

/** A sink that adds up a number of each record, and keeps nothing else. */
final class Tally<T> extends RichSinkFunction<T> implements CheckpointListener {
    interface Number<T> extends Serializable { long of(T t); }

    private final Number<T> number;
    private transient long out, sum, checkpoints;

    Tally(Number<T> number) { this.number = number; }

    @Override public void open(OpenContext c) { out = sum = checkpoints = 0; }

    @Override public void invoke(T t, Context c) {
        out++;
        sum += number.of(t);
    }

    @Override public void notifyCheckpointComplete(long id) { checkpoints++; }

    @Override public void close() {
        add("out", out);
        add("sum", sum);
        add("checkpoints", getRuntimeContext().getTaskInfo().getIndexOfThisSubtask() == 0 ? checkpoints : 0);
    }

    private void add(String name, long value) {
        LongCounter c = new LongCounter();
        c.add(value);
        getRuntimeContext().addAccumulator(name, c);
    }
}
