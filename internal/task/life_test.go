package task

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
)

// TestALife is that of a task whose input ends: it waits for a checkpoint that begins after its end, commits, and is FINISHED.
func TestALife(t *testing.T) {
	rigged(t, two(2), func(r *rig) {
		r.expect("INITIALIZING", "b: open", "a: open", "RUNNING")
		r.feeds[0].send(1)
		r.feeds[0].end()
		r.expect("a: 1", "b: 1")
		r.feeds[1].end()
		r.expect("a: watermark end", "b: watermark end", "a: end of data, drained true", "b: end of data, drained true", "ended")
		r.expectSent("1 wend end:true")
		r.feeds[0].barrier(4)
		r.feeds[1].barrier(4)
		r.settle()
		r.expectSent("barrier4")
		r.expect("a: snapshot 4", "b: snapshot 4", "a: release 4", "b: release 4", "ack 4, ended")
		if s := r.up.parts[4]; !s.Operators[0].Ended || !s.Operators[1].Ended {
			t.Errorf("stored: %+v", s)
		}
		r.task.Complete(3)
		r.expect("a: complete 3", "b: complete 3")
		r.task.Complete(4)
		r.expect("a: complete 4", "b: complete 4", "a: close", "b: close", "FINISHED")
		r.expectSent("gone")
	})
}

func TestWithoutCheckpointsTheEndFinishes(t *testing.T) {
	rigged(t, one(1, func(_ *op, p *plan) { p.options.Handler.FinishAtEnd = true }), func(r *rig) {
		r.take()
		r.feeds[0].end()
		r.expect("a: watermark end", "a: end of data, drained true", "ended", "a: close", "FINISHED")
		r.expectSent("wend end:true gone")
	})
}

// TestFinishedPredecessors: the coordinator triggers the task itself when all before it have finished.
func TestFinishedPredecessors(t *testing.T) {
	rigged(t, one(2), func(r *rig) {
		for _, f := range r.feeds {
			f.end()
			f.gone()
		}
		r.settle()
		r.take()
		r.task.Trigger(aligned(9))
		r.expect("a: snapshot 9", "a: release 9", "ack 9, ended")
	})
}

func TestASuspendedInputIsNotDrained(t *testing.T) {
	rigged(t, one(2), func(r *rig) {
		r.take()
		r.feeds[0].control(exchange.Element{Kind: exchange.EndOfData, Drain: true})
		r.feeds[1].control(exchange.Element{Kind: exchange.EndOfData})
		r.expect("a: end of data, drained false")
		r.feeds[0].send(1)
		r.expect("a: close", `FAILED: operator "a", subtask 1 of 1: 1 records came after the end of the data`)
	})
}

// TestRestoredAfterItsEnd: the operators have done all theirs; what is left is to commit.
func TestRestoredAfterItsEnd(t *testing.T) {
	ended := func(*op, *plan) {}
	for _, inputs := range []int{0, 1} {
		ended = func(a *op, p *plan) {
			if inputs == 0 {
				p.chain[0] = reading{op: a, poll: func(int) (int, operator.Status, error) { panic("it was polled") }}
			}
			part := &snapshot.Restored{Ended: true, Watermark: base.EndOfTime, PendingWatermark: base.NoTime}
			p.restore = &Restore{ID: 6, Operators: []*snapshot.Restored{part}}
		}
		rigged(t, one(inputs, ended), func(r *rig) {
			r.expect("INITIALIZING", "a: restore", "a: open", "RUNNING", "ended")
			r.expectSent("wend end:true")
			for _, f := range r.feeds {
				f.end()
				f.gone()
			}
			r.settle()
			r.task.Trigger(aligned(7))
			r.expect("a: snapshot 7", "a: release 7", "ack 7, ended")
			r.task.Complete(7)
			r.expect("a: complete 7", "a: close", "FINISHED")
			r.expectSent("barrier7 gone")
		})
	}
}

func TestRestoredWatermark(t *testing.T) {
	restored := func(_ *op, p *plan) {
		p.restore = &Restore{ID: 6, Operators: []*snapshot.Restored{{Watermark: 10, PendingWatermark: base.NoTime}}}
	}
	rigged(t, one(2, restored), func(r *rig) {
		r.take()
		r.feeds[0].watermark(20)
		r.feeds[1].watermark(5)
		r.expect()
		r.feeds[1].watermark(11)
		r.expect("a: watermark 11")
		r.feeds[1].idle(true)
		r.expect("a: watermark 20")
		r.feeds[0].idle(true)
		r.expect("a: idle true")
		r.feeds[1].idle(false)
		r.expect("a: idle false")
		r.expectSent("w20 idle:true idle:false")
	})
}

func TestErrorsNameTheOperator(t *testing.T) {
	planted := errors.New("planted")
	fail := func(int64) error { return planted }
	tests := map[string]struct {
		change func(a, b *op)
		want   string
	}{
		"open":    {func(_, b *op) { b.opened = func() error { return planted } }, `operator "b", subtask 1 of 1: planted`},
		"restore": {func(_, b *op) { b.restore = func(*operator.Restored) error { return planted } }, `operator "b", subtask 1 of 1: restoring uid "b" from checkpoint 6: planted`},
		"record":  {func(_, b *op) { b.record = fail }, `operator "b", subtask 1 of 1: planted`},
		"head":    {func(a, _ *op) { a.record = fail }, `operator "a", subtask 1 of 1: planted`},
		"close":   {func(_, b *op) { b.closed = func() error { return planted } }, `operator "b", subtask 1 of 1: planted`},
		"panic":   {func(_, b *op) { b.record = func(int64) error { panic("planted") } }, "operator \"b\", subtask 1 of 1: panic: planted\n"},
		"nil":     {func(a, _ *op) { a.record = func(int64) error { return *(*error)(nil) } }, `operator "a", subtask 1 of 1: panic: runtime error: invalid memory address`},
		"misuse":  {func(a, _ *op) { a.record = func(int64) error { panic(&state.UsageError{Problem: "read the manual"}) } }, `operator "a", subtask 1 of 1: state: read the manual`},
		"both":    {func(a, b *op) { a.record, b.closed = fail, func() error { return errors.New("and then") } }, `operator "a", subtask 1 of 1: planted`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			failing := two(1, func(a, b *op, p *plan) {
				test.change(a, b)
				p.options.Handler.FinishAtEnd = true
				part := &snapshot.Restored{Watermark: base.NoTime, PendingWatermark: base.NoTime}
				p.restore = &Restore{ID: 6, Operators: []*snapshot.Restored{part, part}}
			})
			rigged(t, failing, func(r *rig) {
				r.feeds[0].send(1)
				r.feeds[0].end()
				r.settle()
				got := r.take()
				if last := got[len(got)-1]; !strings.HasPrefix(last, "FAILED: "+test.want) {
					t.Errorf("got %s\nwant %s", last, test.want)
				}
				if all := strings.Join(got, " "); strings.Count(all, "a: close") != 1 || strings.Count(all, "b: close") != 1 {
					t.Errorf("not every operator was closed once: %s", all)
				}
			})
		})
	}
}

// TestCancelWhileUserCodeIsSlow: the task ends when the user's code has returned, and not one record later.
func TestCancelWhileUserCodeIsSlow(t *testing.T) {
	sleepy := one(1, func(a *op, _ *plan) {
		a.record = func(int64) error { pass(time.Hour); a.add("awake"); return nil }
	})
	rigged(t, sleepy, func(r *rig) {
		r.take()
		r.feeds[0].send(1)
		r.expect("a: 1")
		r.task.Cancel()
		r.expect()
		pass(2 * time.Hour)
		r.expect("awake", "a: close", "CANCELED")
		r.feeds[0].send(2) // released: nobody takes it
		r.task.Complete(1)
		r.expect()
	})
}

func TestCancelWakesSend(t *testing.T) {
	rigged(t, flood(10), func(r *rig) {
		r.take()
		r.feeds[0].send(1)
		r.expect("a: 1")
		r.task.Cancel()
		r.expect("a: close", "CANCELED")
		r.expectSent("1 1 1 1")
	})
}

// flood is a chain that makes n records of each, and may send 2 batches of one record, and 2 more as overdraft.
func flood(n int) func(*journal) plan {
	return one(1, func(a *op, p *plan) {
		p.options.BatchMost = 1
		p.limits = exchange.Limits{Batches: 2, Overdraft: 2}
		a.record = func(v int64) error {
			for range n - 1 {
				a.out.Emit(v)
			}
			return nil
		}
	})
}

func TestCancelBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		p := one(1)(j)
		p.journal = j
		r := newRig(t, p)
		r.task.Cancel()
		r.task.Run()
		r.expect("INITIALIZING", "a: open", "RUNNING", "a: close", "CANCELED")
	})
}

// TestSource polls, waits to be woken, gets events, is triggered and ends.
func TestSource(t *testing.T) {
	var left []int64
	status := operator.Waiting
	sourcing := one(0, func(a *op, p *plan) {
		s := reading{op: a}
		s.poll = func(int) (int, operator.Status, error) {
			n := len(left)
			for _, v := range left {
				a.out.Emit(v)
			}
			left = nil
			a.add("poll")
			return n, status, nil
		}
		s.event = func(payload any) { a.add("event %v", payload) }
		p.chain[0] = s
	})
	rigged(t, sourcing, func(r *rig) {
		r.expect("INITIALIZING", "a: open", "RUNNING", "poll")
		left = []int64{1, 2}
		r.task.Complete(0) // a mail alone is no reason to poll
		r.expect()
		r.task.wake()
		r.expect("poll")
		r.expectSent("1 2")
		r.task.Event("splits")
		r.expect("event splits", "poll")
		r.task.Trigger(aligned(1))
		r.expect("a: snapshot 1", "a: release 1", "ack 1")
		status = operator.Ended
		left = []int64{3}
		r.task.wake()
		r.expect("poll", "a: watermark end", "a: end of data, drained true", "ended")
		r.expectSent("barrier1 3 wend end:true")
		r.task.wake()
		r.task.Event("late")
		r.expect()
		r.task.Trigger(aligned(2))
		r.task.Complete(2)
		r.expect("a: snapshot 2", "a: complete 2", "a: close", "FINISHED")
		r.expectSent("barrier2 gone")
	})
}

// TestStop: a source that is stopped reads no more before its snapshot, and the task ends when the savepoint is complete.
func TestStop(t *testing.T) {
	for kind, want := range map[checkpoint.Kind][]string{
		checkpoint.Suspend: {"a: end of data, drained false", "a: snapshot 5", "a: release 5", "ack 5"},
		checkpoint.Drain:   {"a: watermark end", "a: end of data, drained true", "a: snapshot 5", "a: release 5", "ack 5, ended"},
	} {
		t.Run(kind.String(), func(t *testing.T) {
			polls := 0
			busy := one(0, func(a *op, p *plan) {
				p.chain[0] = reading{op: a, poll: func(int) (int, operator.Status, error) { polls++; return 0, operator.Waiting, nil }}
			})
			rigged(t, busy, func(r *rig) {
				r.take()
				b := aligned(5)
				b.Kind = kind
				r.task.Trigger(b)
				r.expect(want...)
				before := polls
				r.task.wake()
				r.settle()
				if polls != before {
					t.Error("it was polled after its stop")
				}
				r.task.Complete(5)
				r.expect("a: complete 5", "a: close", "FINISHED")
			})
		})
	}
}

func TestAStopThatFailedFailsTheTask(t *testing.T) {
	waiting := one(0, func(a *op, p *plan) {
		p.chain[0] = reading{op: a, poll: func(int) (int, operator.Status, error) { return 0, operator.Waiting, nil }}
	})
	rigged(t, waiting, func(r *rig) {
		b := aligned(5)
		b.Kind = checkpoint.Suspend
		r.task.Trigger(b)
		r.settle()
		r.take()
		r.task.Abort(5, 0)
		r.expect("a: close", `FAILED: operator "a", subtask 1 of 1: Stop-with-savepoint failed.`)
	})
}

func TestAnEventForATaskWithoutASource(t *testing.T) {
	rigged(t, one(1), func(r *rig) {
		r.take()
		r.task.Event(7)
		r.expect("a: close", `FAILED: operator "a", subtask 1 of 1: an operator coordinator's event int came to a task without a source`)
	})
}
