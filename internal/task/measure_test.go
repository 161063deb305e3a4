package task

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// In a bubble only what waits takes time; so every duration here is exact.

const ms = time.Millisecond

// at is a barrier that was triggered some time ago.
func at(b checkpoint.Barrier, ago time.Duration) checkpoint.Barrier {
	b.Wall = time.Now().Add(-ago).UnixNano()
	return b
}

// expectMetrics compares what was acknowledged, but for bytes and the time between snapshots.
func (r *rig) expectMetrics(id base.CheckpointID, want checkpoint.AckMetrics) {
	r.Helper()
	r.settle()
	got, ok := r.up.metrics[id]
	if !ok {
		r.Fatalf("checkpoint %d was not acknowledged: %v", id, r.take())
	}
	got.Processed, got.Persisted, got.Busy, got.Pressed = 0, 0, 0, 0
	if got != want {
		r.Errorf("checkpoint %d was measured as\n\t%+v\nwanted\n\t%+v", id, got, want)
	}
}

func (r *rig) expectNotes(want ...string) {
	r.Helper()
	r.settle()
	r.up.mu.Lock()
	defer r.up.mu.Unlock()
	var got []string
	for _, n := range r.up.notes {
		switch n := n.(type) {
		case Aligning:
			got = append(got, fmt.Sprint("aligning ", n.ID))
		case Writing:
			got = append(got, fmt.Sprint("writing ", n.ID, " after ", n.Metrics.StartDelay+n.Metrics.Held))
		case Restored:
			got = append(got, "restored")
		}
	}
	if !slices.Equal(got, want) {
		r.Errorf("the task told %q, want %q", got, want)
	}
}

// slowParts are a synchronous part of 5 ms and an asynchronous one of 40 ms.
func slowParts(a *op, _ *plan) {
	a.frozen = func(base.CheckpointID) (operator.Part, error) {
		pass(5 * ms)
		return operator.Part{Write: func(storage.Writer, snapshot.Format, *snapshot.Subtask) error { pass(40 * ms); return nil }}, nil
	}
}

func TestAnAlignmentIsMeasured(t *testing.T) {
	rigged(t, one(3, slowParts), func(r *rig) {
		r.feeds[1].sendBarrier(at(aligned(1), 20*ms))
		pass(100 * ms)
		r.feeds[0].send(1, 2, 3)
		r.feeds[0].sendBarrier(at(aligned(1), 120*ms))
		pass(50 * ms)
		r.expectNotes("aligning 1")
		r.feeds[2].sendBarrier(at(aligned(1), 170*ms))
		pass(time.Second)
		r.expectMetrics(1, checkpoint.AckMetrics{StartDelay: 20 * ms, Held: 150 * ms, Alignment: 150 * ms, Sync: 5 * ms, Async: 40 * ms, States: 40 * ms, First: 2, Last: 3})
		if m := r.up.metrics[1]; m.Processed != 3*16 || m.Persisted != 0 {
			r.Errorf("%d bytes were processed, want three records of a value and a time; %d persisted", m.Processed, m.Persisted)
		}
		r.expectNotes("aligning 1", "writing 1 after 170ms")
	})
}

// TestASourceIsMeasured from the coordinator's clock to its trigger, for which its code has to return.
func TestASourceIsMeasured(t *testing.T) {
	var source reading
	polling := func(j *journal) plan {
		a := &op{journal: j, name: "a"}
		slowParts(a, nil)
		source = reading{op: a, poll: func(int) (int, operator.Status, error) { pass(300 * ms); return 0, operator.Waiting, nil }}
		return plan{chain: []operator.Operator{source}, journal: j}
	}
	rigged(t, polling, func(r *rig) {
		pass(time.Second)
		r.task.wake()
		pass(100 * ms)
		r.task.Trigger(at(aligned(1), 10*ms))
		pass(time.Second)
		r.expectMetrics(1, checkpoint.AckMetrics{StartDelay: 210 * ms, Sync: 5 * ms, Async: 40 * ms, States: 40 * ms})
		r.expectNotes("writing 1 after 210ms")
		r.task.Trigger(at(aligned(2), -time.Hour)) // clocks may disagree
		pass(time.Second)
		r.expectMetrics(2, checkpoint.AckMetrics{Sync: 5 * ms, Async: 40 * ms, States: 40 * ms})
	})
}

// TestOneChannelDoesNotAlign; what lies in front of the barrier delays the start.
func TestOneChannelDoesNotAlign(t *testing.T) {
	slowly := func(a *op, _ *plan) { a.record = slow(func() context.Context { return a.Runtime.Context }, 10*ms) }
	rigged(t, one(1, slowly, slowParts), func(r *rig) {
		r.feeds[0].send(1, 2, 3, 4)
		r.feeds[0].sendBarrier(at(aligned(1), ms))
		pass(time.Second)
		r.expectMetrics(1, checkpoint.AckMetrics{StartDelay: 41 * ms, Sync: 5 * ms, Async: 40 * ms, States: 40 * ms, First: 1, Last: 1})
	})
}

// TestAnUnalignedCheckpointIsMeasured: the snapshot is not held, and the asynchronous part lasts until the last barrier.
func TestAnUnalignedCheckpointIsMeasured(t *testing.T) {
	rigged(t, one(2, full), func(r *rig) {
		r.feeds[0].send(1)
		r.settle() // the output is full
		r.feeds[0].send(2, 3)
		r.feeds[1].send(4)
		r.feeds[0].sendBarrier(at(unaligned(1), 7*ms))
		pass(90 * ms)
		r.feeds[1].send(5)
		r.feeds[1].sendBarrier(at(unaligned(1), 97*ms))
		r.expectInFlight(1, "in0: 2 3, in1: 4 5")
		r.expectMetrics(1, checkpoint.AckMetrics{StartDelay: 7 * ms, Alignment: 90 * ms, Async: 90 * ms, Unaligned: true, First: 1, Last: 2})
		bytes := int64(0)
		for _, h := range r.up.parts[1].Operators[0].Subtask.InFlight {
			bytes += h.Size
		}
		if m := r.up.metrics[1]; bytes == 0 || m.Persisted != bytes || m.Processed != 0 {
			r.Errorf("%d bytes persisted, want %d; %d processed", m.Persisted, bytes, m.Processed)
		}
		r.expectNotes("writing 1 after 7ms")
	})
}

// TestStatesAndRecordsInFlight are written one after the other: the time of the states is known apart.
func TestStatesAndRecordsInFlight(t *testing.T) {
	rigged(t, one(2, slowParts), func(r *rig) {
		r.feeds[0].sendBarrier(at(unaligned(1), 0))
		pass(100 * ms)
		r.feeds[1].sendBarrier(at(unaligned(1), 100*ms))
		r.expectMetrics(1, checkpoint.AckMetrics{Alignment: 100 * ms, Sync: 5 * ms, Async: 95 * ms, States: 40 * ms, Unaligned: true, First: 1, Last: 2})
	})
}

// TestATimeoutIsMeasured: held until the barriers may overtake.
func TestATimeoutIsMeasured(t *testing.T) {
	rigged(t, one(2), func(r *rig) {
		r.feeds[0].sendBarrier(at(timed(1), 0))
		pass(1500 * ms)
		r.expectNotes("aligning 1", "writing 1 after 1s")
		r.feeds[1].sendBarrier(at(timed(1), 1500*ms))
		r.expectMetrics(1, checkpoint.AckMetrics{Held: time.Second, Alignment: 1500 * ms, Async: 500 * ms, Unaligned: true, First: 1, Last: 2})
	})
}

// TestATimeoutBehindRecords: the barrier stands in the queue until it may overtake, and is seen from the beginning.
func TestATimeoutBehindRecords(t *testing.T) {
	rigged(t, one(2, full), func(r *rig) {
		r.feeds[0].send(1)
		r.settle() // the output is full
		r.feeds[1].send(2)
		r.feeds[1].sendBarrier(at(timed(1), 5*ms))
		pass(300 * ms)
		r.expectNotes()
		r.feeds[0].sendBarrier(at(timed(1), 305*ms))
		pass(2 * time.Second)
		r.expectMetrics(1, checkpoint.AckMetrics{StartDelay: 5 * ms, Held: time.Second, Alignment: time.Second, Unaligned: true, First: 2, Last: 2})
		r.expectNotes("writing 1 after 1.005s")
		if m := r.up.metrics[1]; m.Pressed < 300*ms || m.Busy != 0 {
			r.Errorf("without room for %v, busy for %v", m.Pressed, m.Busy)
		}
	})
}

// TestAtLeastOnceIsMeasured: several may be under way.
func TestAtLeastOnceIsMeasured(t *testing.T) {
	tracking := func(_ *op, p *plan) { p.options.Handler.AtLeastOnce = true }
	barrier := func(id base.CheckpointID, ago time.Duration) checkpoint.Barrier {
		b := at(aligned(id), ago)
		b.Alignment = checkpoint.AtLeastOnce
		return b
	}
	rigged(t, one(2, tracking, slowParts), func(r *rig) {
		r.feeds[0].sendBarrier(barrier(1, 3*ms))
		pass(10 * ms)
		r.feeds[0].sendBarrier(barrier(2, 0))
		pass(20 * ms)
		r.feeds[1].sendBarrier(barrier(1, 33*ms))
		pass(100 * ms)
		r.feeds[1].sendBarrier(barrier(2, 120*ms))
		pass(time.Second)
		r.expectMetrics(1, checkpoint.AckMetrics{StartDelay: 3 * ms, Held: 30 * ms, Alignment: 30 * ms, Sync: 5 * ms, Async: 40 * ms, States: 40 * ms, First: 1, Last: 2})
		r.expectMetrics(2, checkpoint.AckMetrics{Held: 120 * ms, Alignment: 120 * ms, Sync: 5 * ms, Async: 40 * ms, States: 40 * ms, First: 1, Last: 2})
		r.expectNotes("aligning 1", "aligning 2", "writing 1 after 33ms", "writing 2 after 120ms")
	})
}

// TestAnEndIsMeasuredAsABarrier, where it is waited for.
func TestAnEndIsMeasuredAsABarrier(t *testing.T) {
	rigged(t, one(3), func(r *rig) {
		r.feeds[0].end()
		r.feeds[0].gone()
		pass(10 * ms)
		r.feeds[1].sendBarrier(at(aligned(1), 0))
		pass(60 * ms)
		r.feeds[2].end()
		r.feeds[2].gone()
		r.expectMetrics(1, checkpoint.AckMetrics{Held: 60 * ms, Alignment: 60 * ms, First: 2, Last: 3})
	})
}

// TestAnAbortedAlignmentLeavesNothing to the next one.
func TestAnAbortedAlignmentLeavesNothing(t *testing.T) {
	rigged(t, one(2), func(r *rig) {
		r.feeds[0].sendBarrier(at(aligned(1), 0))
		pass(500 * ms)
		r.task.Abort(1, 0)
		pass(100 * ms)
		r.feeds[0].sendBarrier(at(aligned(2), 0))
		r.feeds[1].sendBarrier(at(aligned(1), 600*ms))
		pass(30 * ms)
		r.feeds[1].sendBarrier(at(aligned(2), 30*ms))
		r.expectMetrics(2, checkpoint.AckMetrics{Held: 30 * ms, Alignment: 30 * ms, First: 1, Last: 2})
		if _, ok := r.up.metrics[1]; ok {
			r.Error("an aborted checkpoint was acknowledged")
		}
		r.expectNotes("aligning 1", "aligning 2", "writing 2 after 30ms")
	})
}

// TestCounters: batches in and out, and a task's time, which is busy, idle or back-pressured.
func TestCounters(t *testing.T) {
	slowly := func(a *op, p *plan) {
		a.quiet = true
		a.record = slow(func() context.Context { return a.Runtime.Context }, 10*ms)
		p.limits = exchange.Limits{Batches: 1}
	}
	rigged(t, one(1, slowly), func(r *rig) {
		pass(100 * ms)
		r.feeds[0].send(1, 2, 3)
		pass(100 * ms) // 30 busy, then there is no room
		r.feeds[0].send(4)
		pass(100 * ms)
		r.out.Next()
		pass(100 * ms) // 10 busy
		r.out.Next()
		pass(100 * ms)
		r.feeds[0].idle(true) // wakes it: what it does is counted when it has done it
		r.settle()
		got := r.task.Counters()
		want := Counters{ReadRecords: 4, ReadBytes: 64, WriteRecords: 4, WriteBytes: 64, Busy: 40 * ms, Idle: got.Idle, Backpressured: got.Backpressured}
		if got != want || got.Busy+got.Idle+got.Backpressured != 500*ms || got.Backpressured < 150*ms || got.Backpressured > 270*ms {
			r.Errorf("counted %+v", got)
		}
	})
}

// TestARestoreIsMeasured: reading apart from restoring, and opening.
func TestARestoreIsMeasured(t *testing.T) {
	restoring := func(a *op, p *plan) {
		a.restore = func(r *operator.Restored) error {
			f, err := r.Open(snapshot.InlineHandle([]byte("state")))
			if err != nil {
				return err
			}
			pass(30 * ms)
			if _, err = f.ReadAt(make([]byte, 5), 0); err != nil {
				return err
			}
			if f, err = r.OpenPages(snapshot.InlineHandle([]byte("pages"))); err == nil {
				_, err = f.ReadAt(make([]byte, 2), 0)
			}
			return err
		}
		a.opened = func() error { pass(4 * ms); return nil }
		open := func(took time.Duration) func(h snapshot.Handle) (storage.Reader, error) {
			return func(snapshot.Handle) (storage.Reader, error) { pass(took); return slowReader{}, nil }
		}
		p.restore = &Restore{ID: 1, Operators: []*snapshot.Restored{{}}, Open: open(7 * ms), OpenPages: open(ms)}
	}
	rigged(t, one(1, restoring), func(r *rig) {
		pass(time.Second)
		r.expectNotes("restored")
		want := Restored{Read: 48 * ms, Restore: 30 * ms, Open: 4 * ms, Bytes: 7}
		if got := r.up.notes[0]; !reflect.DeepEqual(got, want) {
			r.Errorf("the restore was measured as %+v, want %+v", got, want)
		}
		if c := r.task.Counters(); c.Busy != 0 {
			r.Errorf("the restore counts as work: %+v", c)
		}
	})
}

type slowReader struct{ storage.Reader }

func (slowReader) ReadAt(p []byte, _ int64) (int, error) { pass(20 * ms); return len(p), nil }
