package weir_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	. "github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
)

// Alarm is a record that asks for a timer of its key.
type Alarm struct {
	Key, Time int64 // seconds: of the record
	Event     int64 // a timer of event time; 0: none
	In        int64 // a timer of processing time, in so many seconds; 0: none
	Again     int64 // the timer registers one so much later, when it fires
}

// alarms notes what its timers do.
type alarms struct {
	Again Value[int64] `state:"again"`
	N     *notes       `weir:"shared"`
}

func (f *alarms) Process(ctx *KeyedContext[int64], a Alarm, out Out[string]) error {
	if a.Again != 0 {
		f.Again.Set(a.Again)
	}
	if a.Event != 0 {
		ctx.EventTimer(time.Unix(a.Event, 0))
	}
	if a.In != 0 {
		ctx.ProcessingTimer(ctx.Now().Add(time.Duration(a.In) * time.Second))
	}
	return nil
}

func (f *alarms) OnTimer(ctx *KeyedContext[int64], at Timer, out Out[string]) error {
	if at.Event {
		f.N.add("key %d at %d", ctx.Key(), at.At.Unix())
		if again := f.Again.Get(); again != 0 && at.At.Unix() < 100 {
			ctx.EventTimer(at.At.Add(time.Duration(again) * time.Second))
		}
	} else {
		f.N.add("key %d by the clock", ctx.Key())
	}
	return nil
}

func alarmJob(l *lab, env *Env, source *tape[Alarm], n *notes) *running {
	env.From(source, Watermarks[Alarm]{Timestamp: func(a Alarm) time.Time { return time.Unix(a.Time, 0) }}).UID("tape").Parallelism(1).
		KeyBy(func(a Alarm) int64 { return a.Key }).
		Process(&alarms{N: n}).UID("alarms").To(Discard[string]())
	return l.start(env)
}

// TestTimersComeBack: those of event time fire once when the watermark gets there; those of processing time that are overdue
// at a restore fire at once, once; at another parallelism too.
func TestTimersComeBack(t *testing.T) {
	for _, to := range []int{1, 3} {
		inLab(t, func(l *lab) {
			source, n := newTape[Alarm](1), &notes{}
			r := alarmJob(l, l.env(2), source, n)
			for k := range int64(5) {
				source.write(0, Alarm{Key: k, Time: 10, Event: 100, In: 2})
			}
			source.write(0, Alarm{Key: 9, Time: 10, In: 3600})
			r.settle()
			at := r.savepoint(checkpoint.Savepoint)
			r.pass(time.Second)
			expect(t, n.take())
			r.kill()
			pass(time.Minute)
			r = alarmJob(l, l.resumed(to, at), source, n)
			expect(t, n.takeSorted(), "key 0 by the clock", "key 1 by the clock", "key 2 by the clock", "key 3 by the clock", "key 4 by the clock")
			source.write(0, Alarm{Key: 77, Time: 200})
			r.pass(time.Second)
			expect(t, n.takeSorted(), "key 0 at 100", "key 1 at 100", "key 2 at 100", "key 3 at 100", "key 4 at 100")
			r.pass(time.Minute)
			expect(t, n.take())
			r.pass(time.Hour)
			expect(t, n.take(), "key 9 by the clock")
			source.end()
			r.finish()
			expect(t, n.take())
		})
	}
}

// TestTimersAtTheEnd: all event timers fire, those that are registered later meanwhile too; those of the clock are dropped.
func TestTimersAtTheEnd(t *testing.T) {
	inLab(t, func(l *lab) {
		source, n := newTape[Alarm](1), &notes{}
		r := alarmJob(l, l.env(1), source, n)
		source.write(0, Alarm{Key: 1, Event: 40, Again: 30}, Alarm{Key: 2, Event: 50, In: 10})
		r.pass(time.Second)
		source.end()
		r.finish()
		expect(t, n.take(), "key 1 at 40", "key 2 at 50", "key 1 at 70", "key 1 at 100")
	})
}

// lastTimers registers timers at the end of time, and again when they fire.
type lastTimers struct {
	N *notes `weir:"shared"`
}

func (f *lastTimers) Process(ctx *KeyedContext[int64], v int64, _ Out[int64]) error {
	ctx.EventTimer(time.Unix(9_000_000_000, 0))
	ctx.EventTimer(time.Unix(0, math.MaxInt64))
	return nil
}

func (f *lastTimers) OnTimer(ctx *KeyedContext[int64], at Timer, _ Out[int64]) error {
	f.N.add("%d", at.At.Year())
	ctx.EventTimer(at.At)
	ctx.EventTimer(at.At.Add(-time.Second))
	return nil
}

// TestTimersAtTheEndOfTime fire once each: what they register for their own time or before is not kept.
func TestTimersAtTheEndOfTime(t *testing.T) {
	inLab(t, func(l *lab) {
		n := &notes{}
		env := l.env(1)
		env.From(FromSlice(numbers(1))).UID("numbers").KeyBy(func(v int64) int64 { return v }).Process(&lastTimers{N: n}).UID("last").To(Discard[int64]())
		l.start(env).finish()
		expect(t, n.take(), "2255", "2262")
	})
}

// times tells a record's time and the watermark.
type times struct {
	N *notes `weir:"shared"`
}

func (f *times) Process(ctx *Context, v int64, out Out[int64]) error {
	f.N.add("%d, watermark %s", v, markName(ctx.Watermark()))
	return nil
}

func markName(t time.Time) string {
	if t.IsZero() {
		return "none"
	}
	return fmt.Sprint(t.Add(time.Nanosecond).Unix()) // a watermark is one below the time that it speaks for
}

func seconds(v int64) time.Time { return time.Unix(v, 0) }

// two joins two tapes of event times at one operator.
func two(l *lab, env *Env, a, b *tape[int64], n *notes, idle time.Duration) *running {
	w := Watermarks[int64]{Timestamp: seconds, Idle: idle}
	env.From(a, w).UID("a").Union(env.From(b, w).UID("b")).Process(&times{N: n}).UID("times").To(Discard[int64]())
	return l.start(env)
}

// TestTheWatermarkIsTheLeast over the active inputs; idle ones are passed over; it never goes back; a restored operator goes
// on from it.
func TestTheWatermarkIsTheLeast(t *testing.T) {
	inLab(t, func(l *lab) {
		a, b, n := newTape[int64](1), newTape[int64](1), &notes{}
		r := two(l, l.env(1), a, b, n, 10*time.Second)
		a.write(0, 100)
		r.pass(time.Second)
		b.write(0, 50)
		r.pass(time.Second)
		a.write(0, 101)
		r.pass(time.Second)
		expect(t, n.take(), "100, watermark none", "50, watermark none", "101, watermark 50")
		for range 20 { // b says nothing for 20 seconds
			a.write(0, 102)
			r.pass(time.Second)
		}
		n.take()
		a.write(0, 103)
		r.pass(time.Second)
		b.write(0, 60)
		r.pass(time.Second)
		a.write(0, 110)
		r.pass(time.Second)
		a.write(0, 111)
		r.pass(time.Second)
		expect(t, n.take(), "103, watermark 102", "60, watermark 103", "110, watermark 103", "111, watermark 103")
		at := r.savepoint(checkpoint.Suspend)
		r = two(l, l.resumed(1, at), a, b, n, 10*time.Second)
		b.write(0, 61)
		r.settle()
		expect(t, n.take(), "61, watermark 103")
	})
}

// TestAFinishedSourceDoesNotEndTheTimeOfAnIdleOne: time ends only when all have ended.
func TestAFinishedSourceDoesNotEndTheTimeOfAnIdleOne(t *testing.T) {
	inLab(t, func(l *lab) {
		a, b, n := newTape[int64](1), newTape[int64](1), &notes{}
		r := two(l, l.env(1), a, b, n, 10*time.Second)
		a.write(0, 100)
		b.write(0, 50)
		r.pass(time.Minute) // both are idle
		a.end()
		r.pass(time.Minute)
		n.take()
		b.write(0, 70)
		r.pass(time.Second)
		b.write(0, 200)
		r.pass(time.Second)
		b.write(0, 201)
		r.pass(time.Second)
		expect(t, n.take(), "70, watermark 100", "200, watermark 100", "201, watermark 200")
		b.end()
		r.finish()
	})
}

// TestASourceWakesWithAFullSlice: a busy source that was idle holds watermarks back again, also where a poll fills the
// output to the last record.
func TestASourceWakesWithAFullSlice(t *testing.T) {
	inLab(t, func(l *lab) {
		a, b, n := newTape[int64](1), newTape[int64](1), &notes{}
		r := two(l, l.env(1), a, b, n, 10*time.Second)
		b.write(0, 1000)
		r.pass(time.Minute) // both are idle
		n.take()
		a.write(0, make([]int64, 128)...)
		r.pass(time.Second)
		n.take()
		a.write(0, 2000)
		r.pass(time.Second)
		a.write(0, 2001)
		r.settle()
		expect(t, n.take(), "2000, watermark 1000", "2001, watermark 2000")
	})
}

// TestBackPressureMakesNothingIdle: a source whose records wait behind a sink that stands still has records.
func TestBackPressureMakesNothingIdle(t *testing.T) {
	for _, operator := range []bool{false, true} {
		inLab(t, func(l *lab) {
			a, b, n := newTape[int64](1), newTape[int64](1), &notes{}
			env := l.env(1).Set("weir.exchange.queue-batches", 1).Set("weir.exchange.batch-records", 1)
			w := Watermarks[int64]{Timestamp: seconds, Idle: 200 * time.Millisecond}
			stream := func(s *tape[int64], uid string) Stream[int64] {
				if operator {
					return env.From(s).UID(uid).Rebalance().Watermarks(w)
				}
				return env.From(s, w).UID(uid)
			}
			late := 0
			stream(a, "a").Union(stream(b, "b")).Process(&lateness{Late: &late, N: n}).UID("lateness").To(Discard[int64]())
			r := l.start(env)
			a.write(0, 0) // stands still for two seconds
			r.pass(50 * time.Millisecond)
			a.write(0, numbers(100)...)
			b.write(0, 1_000_000)
			r.pass(time.Minute)
			if late != 0 {
				t.Errorf("%d records were late", late)
			}
			expect(t, n.take(), "102 records")
		})
	}
}

// lateness counts late records, and takes two seconds for the record 0.
type lateness struct {
	Late *int   `weir:"shared"`
	N    *notes `weir:"shared"`
	seen int
}

func (f *lateness) Process(ctx *Context, v int64, _ Out[int64]) error {
	if v == 0 {
		pass(2 * time.Second)
	}
	if at, _ := ctx.Timestamp(); at.Before(ctx.Watermark()) {
		*f.Late++
	}
	if f.seen++; f.seen == 102 {
		f.N.add("%d records", f.seen)
	}
	return nil
}

// TestLateRecordsAreProcessed: lateness is the business of windows.
func TestLateRecordsAreProcessed(t *testing.T) {
	inLab(t, func(l *lab) {
		source, n := newTape[int64](1), &notes{}
		env := l.env(1)
		env.From(source, Watermarks[int64]{Timestamp: seconds, OutOfOrderness: 5 * time.Second}).UID("tape").Process(&times{N: n}).UID("times").To(Discard[int64]())
		r := l.start(env)
		source.write(0, 100)
		r.pass(time.Second)
		source.write(0, 20)
		r.pass(time.Second)
		expect(t, n.take(), "100, watermark none", "20, watermark 95")
	})
}
