package task

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// TestThreeSourcesAndASum: the barriers of three sources of different speeds come one after the other. What comes behind an
// early one waits; the sum that is stored is that of what came before all three.
func TestThreeSourcesAndASum(t *testing.T) {
	sum := int64(0)
	summing := one(3, func(a *op, _ *plan) {
		a.record = func(v int64) error { sum += v; return nil }
		a.frozen = func(id base.CheckpointID) (operator.Part, error) {
			a.add("the sum is %d", sum)
			return operator.Part{}, nil
		}
	})
	rigged(t, summing, func(r *rig) {
		r.expect("INITIALIZING", "a: open", "RUNNING")
		one, two, three := r.feeds[0], r.feeds[1], r.feeds[2]
		one.send(1)
		one.barrier(1)
		one.send(100)
		r.expect("a: 1")
		two.send(2)
		r.expect("a: 2")
		three.send(4)
		three.barrier(1)
		three.send(200)
		r.expect("a: 4")
		two.send(8)
		one.send(400)
		r.expect("a: 8")
		r.expectSent("1 2 4 8")
		two.barrier(1)
		two.send(800)
		r.settle()
		got := r.take()
		at := slices.Index(got, "ack 1") // the upload ends when it ends
		if want := []string{"a: snapshot 1", "the sum is 15", "a: 800", "a: 100", "a: 200", "a: 400"}; at < 2 || !slices.Equal(slices.Delete(got, at, at+1), want) {
			t.Errorf("it happened: %q, want %q, and an ack behind the sum", got, want)
		}
		r.expectSent("barrier1 800 100 200 400")
	})
}

func TestAtLeastOnceBlocksNothing(t *testing.T) {
	rigged(t, one(2, func(_ *op, p *plan) { p.options.Handler.AtLeastOnce = true }), func(r *rig) {
		r.feeds[0].barrier(1)
		r.feeds[0].send(1)
		r.expectSent("1")
		r.feeds[1].send(2)
		r.expectSent("2")
		r.feeds[1].barrier(1)
		r.expectSent("barrier1")
	})
}

func TestCancelMarkerEndsAnAlignment(t *testing.T) {
	rigged(t, one(2), func(r *rig) {
		r.feeds[0].barrier(1)
		r.feeds[0].send(1)
		r.expectSent("")
		r.take()
		r.feeds[1].control(exchange.Element{Kind: exchange.CancelMarker, ID: 1})
		r.expect("a: abort 1", "decline 1: CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER, <nil>", "a: 1")
		r.expectSent("cancel1 1")
	})
}

func TestAbortUnblocks(t *testing.T) {
	rigged(t, one(2), func(r *rig) {
		r.feeds[0].barrier(2)
		r.feeds[0].send(1)
		r.settle()
		r.take()
		r.task.Abort(2, 1)
		r.expect("a: complete 1", "a: abort 2", "a: 1")
		r.expectSent("cancel2 1")
		r.feeds[1].barrier(2)
		r.feeds[1].send(2)
		r.expectSent("2")
	})
}

func TestEndedChannelCountsAsItsBarrier(t *testing.T) {
	rigged(t, one(2), func(r *rig) {
		r.feeds[0].barrier(1)
		r.feeds[1].send(1)
		r.feeds[1].end()
		r.expectSent("1")
		r.feeds[1].gone()
		r.expectSent("barrier1")
	})
}

// TestAFailedUploadDeclines: an error of the storage is the checkpoint's alone.
func TestAFailedUploadDeclines(t *testing.T) {
	failing := one(1, func(a *op, _ *plan) {
		a.write = func(storage.Writer) error { return errors.New("no space left") }
	})
	rigged(t, failing, func(r *rig) {
		r.take()
		r.feeds[0].barrier(1)
		r.settle()
		got := strings.Join(r.take(), "\n")
		want := `decline 1: CHECKPOINT_ASYNC_EXCEPTION, operator "a", subtask 1 of 1: writing state for checkpoint 1: no space left`
		if !strings.Contains(got, want) || !strings.Contains(got, "a: release 1") {
			t.Errorf("it happened:\n%s\nwant %s, and a release", got, want)
		}
		r.feeds[0].send(1)
		r.expectSent("barrier1 1")
	})
}

func TestAPanicInAnUploadDeclines(t *testing.T) {
	failing := one(1, func(a *op, _ *plan) {
		a.write = func(storage.Writer) error { panic("in MarshalBinary") }
	})
	rigged(t, failing, func(r *rig) {
		r.feeds[0].barrier(1)
		r.settle()
		if got := strings.Join(r.take(), "\n"); !strings.Contains(got, "decline 1: ") || !strings.Contains(got, "in MarshalBinary") {
			t.Errorf("it happened:\n%s", got)
		}
	})
}

// TestAFailedSynchronousPartFails: it is an error of the operator's own code.
func TestAFailedSynchronousPartFails(t *testing.T) {
	failing := one(1, func(a *op, _ *plan) {
		a.frozen = func(base.CheckpointID) (operator.Part, error) { return operator.Part{}, errors.New("broken") }
	})
	rigged(t, failing, func(r *rig) {
		r.take()
		r.feeds[0].barrier(1)
		r.expect("a: snapshot 1", "a: close", `FAILED: operator "a", subtask 1 of 1: taking the snapshot for checkpoint 1: broken`)
	})
}

// TestAnAbortStopsAnUpload: a large one ends at its next write.
func TestAnAbortStopsAnUpload(t *testing.T) {
	var next func() error
	uploading := one(1, func(a *op, _ *plan) {
		step := make(chan struct{})
		next = func() error { step <- struct{}{}; return nil }
		a.write = func(w storage.Writer) error {
			o, err := w.Create("state")
			if err != nil {
				return err
			}
			<-step
			_, err = o.Write([]byte("more"))
			a.add("write: %v", err)
			return err
		}
	})
	rigged(t, uploading, func(r *rig) {
		r.feeds[0].barrier(1)
		r.settle()
		r.take()
		r.task.Abort(1, 0)
		r.expect("a: abort 1")
		next()
		r.expect("write: context canceled", "a: release 1")
	})
}

// TestTheSnapshotIsStored: names of files have the operator and the subtask in them, and the parts are in chain order.
func TestTheSnapshotIsStored(t *testing.T) {
	writing := two(1, func(a, b *op, _ *plan) {
		b.frozen = func(base.CheckpointID) (operator.Part, error) {
			return operator.Part{State: snapshot.Subtask{Watermark: 7, PendingWatermark: base.NoTime}, Write: func(w storage.Writer, _ snapshot.Format, s *snapshot.Subtask) error {
				o, err := w.Create("x")
				if err != nil {
					return err
				}
				if _, err := o.Write([]byte("state")); err != nil {
					return err
				}
				h, err := o.Commit()
				s.Keyed = append(s.Keyed, snapshot.KeyedHandle{Handle: h})
				return err
			}}, nil
		}
	})
	rigged(t, writing, func(r *rig) {
		r.feeds[0].watermark(7)
		r.feeds[0].barrier(3)
		r.settle()
		s := r.up.parts[3]
		if s == nil || len(s.Operators) != 2 || s.Operators[0].UID != "a" || s.Operators[1].UID != "b" {
			t.Fatalf("stored: %+v", s)
		}
		b := s.Operators[1]
		if b.Ended || b.Watermark != 7 || len(b.Keyed) != 1 || string(b.Keyed[0].Handle.Inline) != "state" {
			t.Errorf("stored of b: %+v", b)
		}
	})
}

// TestABarrierSealsABatch: the records of a half-filled one go before it.
func TestABarrierSealsABatch(t *testing.T) {
	rigged(t, one(1, func(_ *op, p *plan) { p.options.FlushEvery = 1e9 }), func(r *rig) {
		r.feeds[0].send(1)
		r.feeds[0].barrier(1)
		r.feeds[0].send(2)
		r.expectSent("1 barrier1 2")
	})
}

// TestAnAbortAfterTheAckIsTold to the operators, once.
func TestAnAbortAfterTheAckIsTold(t *testing.T) {
	rigged(t, one(1), func(r *rig) {
		r.feeds[0].barrier(1)
		r.settle()
		r.take()
		r.task.Abort(1, 0)
		r.task.Abort(1, 0)
		r.expect("a: abort 1")
		r.feeds[0].barrier(2)
		r.settle()
		r.take()
		r.task.Complete(2)
		r.task.Abort(2, 2)
		r.expect("a: complete 2")
	})
}

// TestNotificationsReachEveryOperator, in chain order; a doubled one once.
func TestNotificationsReachEveryOperator(t *testing.T) {
	rigged(t, two(1), func(r *rig) {
		r.take()
		r.task.Complete(1)
		r.task.Complete(1)
		r.task.Abort(2, 1)
		r.expect("a: complete 1", "b: complete 1")
		r.feeds[0].barrier(2)
		r.expect() // it was aborted before it came
		r.expectSent("cancel2")
	})
}
