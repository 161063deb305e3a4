package task

import (
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/operator"
)

// TestSlowUserCodeGetsShortSlices: a mail is looked at after a few milliseconds, however slow a record is, and slices grow
// again when records are fast.
func TestSlowUserCodeGetsShortSlices(t *testing.T) {
	pace := time.Millisecond
	slowly := one(1, func(a *op, _ *plan) {
		a.quiet = true
		a.record = func(int64) error { pass(pace); return nil }
	})
	rigged(t, slowly, func(r *rig) {
		r.feeds[0].send(make([]int64, 3000)...)
		for i := range 10 {
			pass(time.Second / 4)
			asked := time.Now()
			var answered time.Time
			r.task.box.post(func() error { answered = time.Now(); return nil })
			pass(5 * time.Millisecond)
			r.settle()
			if d := answered.Sub(asked); answered.IsZero() || i > 0 && d > sliceLong+pace {
				t.Errorf("mail %d was answered %v after it was posted", i, d)
			}
		}
		r.settle()
		if got := r.task.Records(); got < 2400 || got > 2600 {
			t.Errorf("%d records were taken in 2.5 s", got)
		}
		pass(time.Second)
		r.settle()
		pace = 0
		r.feeds[0].send(make([]int64, 2000)...)
		r.settle()
		if got := r.task.loop.slice; got != sliceMost {
			t.Errorf("slices of %d records after 2,000 fast ones, want %d", got, sliceMost)
		}
	})
}

func TestOneRecordMayTakeLong(t *testing.T) {
	slowly := one(1, func(a *op, _ *plan) {
		a.quiet = true
		a.record = func(int64) error { pass(10 * time.Millisecond); return nil }
	})
	rigged(t, slowly, func(r *rig) {
		r.feeds[0].send(make([]int64, 1000)...)
		pass(5 * time.Second)
		r.settle()
		if r.task.loop.slice != 1 {
			t.Errorf("slices of %d records", r.task.loop.slice)
		}
	})
}

// TestFlush: what a task has emitted leaves at once when it has nothing else to do.
func TestFlushWhenIdle(t *testing.T) {
	rigged(t, one(1, func(_ *op, p *plan) { p.options.FlushEvery = time.Hour }), func(r *rig) {
		r.feeds[0].send(1, 2, 3)
		r.expectSent("1 2 3")
	})
}

// TestFlushWhileBusy: with input all the time, a batch that does not fill up leaves at the flush interval.
func TestFlushWhileBusy(t *testing.T) {
	for every, want := range map[time.Duration]string{0: "1", 100 * time.Millisecond: "1 2 3 4 5 6 7 8 9 10 11", time.Hour: "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"} {
		t.Run(every.String(), func(t *testing.T) {
			busy := one(0, func(a *op, p *plan) {
				p.options.FlushEvery = every
				var n int64
				p.chain[0] = reading{op: a, poll: func(int) (int, operator.Status, error) {
					pass(10 * time.Millisecond)
					n++
					a.out.Emit(n)
					return 1, operator.More, nil
				}}
			})
			rigged(t, busy, func(r *rig) {
				pass(time.Second)
				if got := r.sentOne(); got != want {
					t.Errorf("the first batch is %s, want %s", got, want)
				}
			})
		})
	}
}

// TestBackPressure: no input is taken while an output is full, and mails are answered all the same.
func TestBackPressure(t *testing.T) {
	rigged(t, flood(1), func(r *rig) {
		r.take()
		for v := range int64(9) {
			r.feeds[0].send(v)
		}
		r.expect("a: 0", "a: 1")
		r.task.Complete(1)
		r.expect("a: complete 1")
		sent := func(all ...string) { // one by one: the task goes on while there is room
			for _, want := range all {
				if got := r.sentOne(); got != want {
					t.Errorf("sent %s, want %s", got, want)
				}
			}
		}
		sent("0")
		r.expect("a: 2")
		sent("1", "2")
		r.expect("a: 3", "a: 4")
		sent("3", "4")
	})
}

// TestOverdraft: one slice may send more than there is room for, up to a limit; then it waits in Send.
func TestOverdraft(t *testing.T) {
	rigged(t, flood(6), func(r *rig) {
		r.take()
		r.feeds[0].send(7)
		r.expect("a: 7")
		r.task.Complete(1)
		r.expect() // the record has not passed the chain yet
		r.sentOne()
		r.expect()
		r.sentOne()
		r.expect("a: complete 1")
		r.expectSent("7 7 7 7")
	})
}

// ticking is an op with a clock that ticks once.
type ticking struct {
	*op
	at   int64
	tick func() error
}

func (k *ticking) Deadline() (int64, bool) { return k.at, k.at != 0 }
func (k *ticking) Tick(int64) error        { k.at = 0; return k.tick() }

// TestAMailDuringATick: a tick that waits in Send has been woken by a mail's ring. The mail must not be forgotten.
func TestAMailDuringATick(t *testing.T) {
	overflowing := func(j *journal) plan {
		p := flood(1)(j)
		k := &ticking{op: p.chain[0].(*op), at: time.Now().Add(time.Second).UnixNano()}
		k.tick = func() error {
			for v := range int64(5) {
				k.out.Emit(v)
			}
			return k.out.Flush()
		}
		p.chain[0] = k
		return p
	}
	rigged(t, overflowing, func(r *rig) {
		r.take()
		pass(2 * time.Second)
		r.task.Complete(1) // its ring wakes Send, which waits on
		r.expect()
		r.sentOne()
		r.expect("a: complete 1")
	})
}

// TestClocksStopWhileOutputsAreFull: an operator's clock rings only where there is room for what it emits.
func TestClocksStopWhileOutputsAreFull(t *testing.T) {
	clocked := func(j *journal) plan {
		p := flood(1)(j)
		k := &ticking{op: p.chain[0].(*op), at: time.Now().Add(time.Second).UnixNano()}
		k.tick = func() error { k.add("tick"); return nil }
		p.chain[0] = k
		return p
	}
	rigged(t, clocked, func(r *rig) {
		r.feeds[0].send(1)
		r.settle()
		r.feeds[0].send(2)
		r.settle()
		r.take()
		pass(5 * time.Second)
		r.expect()
		r.sentOne()
		r.expect("tick")
	})
}

// lagging is an op whose watermark takes a number of slices.
type lagging struct {
	*op
	left int
}

func (l *lagging) Watermark(t base.EventTime) error {
	l.left = 3
	l.mark = t
	return nil
}
func (l *lagging) Behind() bool { return l.left > 0 }
func (l *lagging) Continue() error {
	if l.left--; l.left > 0 {
		l.add("timers")
		// A mail that comes between two slices is answered between them.
		l.Runtime.Mail(func() error { l.add("mail"); return nil })
		return nil
	}
	return l.op.Watermark(l.mark)
}

// TestTimersFireInSlices: between two slices the mailbox is looked at, and no input is taken before the last.
func TestTimersFireInSlices(t *testing.T) {
	timers := func(j *journal) plan {
		p := one(1)(j)
		p.chain[0] = &lagging{op: p.chain[0].(*op)}
		return p
	}
	rigged(t, timers, func(r *rig) {
		r.take()
		r.feeds[0].watermark(5)
		r.feeds[0].send(1)
		r.feeds[0].barrier(1)
		r.expect("timers", "mail", "timers", "mail", "a: watermark 5", "a: 1", "a: snapshot 1", "a: release 1", "ack 1")
		r.expectSent("w5 1 barrier1")
	})
}

// TestALargeBatchIsTakenInSlices: between two slices of one batch mails are answered, and nothing else is taken from any
// channel.
func TestALargeBatchIsTakenInSlices(t *testing.T) {
	slicing := one(2, func(a *op, _ *plan) {
		a.quiet = true
		n := 0
		a.record = func(v int64) error {
			if v == -1 {
				a.add("the other channel")
			}
			if n++; n == 1 || n == 500 {
				a.Runtime.Mail(func() error { a.add("mail after %d", n); return nil })
			}
			return nil
		}
	})
	rigged(t, slicing, func(r *rig) {
		r.take()
		for range 6 { // batches grow: 16, 32, 64, 128, 256, 512
			r.feeds[0].send(make([]int64, 512)...)
		}
		r.feeds[1].send(-1)
		r.settle()
		got := strings.Join(r.journal.take(), ", ")
		if !strings.Contains(got, "mail after 16") || !strings.Contains(got, "the other channel") {
			t.Errorf("it happened: %s", got)
		}
	})
}
