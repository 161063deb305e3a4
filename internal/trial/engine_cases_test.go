package trial

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/jobmaster"
)

// B014: two failures within milliseconds, again and again. Each time the job comes back, once for both or once for each.
func TestFailuresBehindEachOther(t *testing.T) {
	onStand(t, func(s *stand) {
		for i := range 25 {
			s.faults.left = append(s.faults.left, fault{Where: "process", Nth: 40 * (i + 1)}, fault{Where: "process", Nth: 40*(i+1) + 5, Panic: i%2 == 0})
		}
		env := s.env(4, 10*time.Millisecond).Set("restart-strategy.exponential-delay.max-backoff", 10*time.Millisecond).
			Set("restart-strategy.exponential-delay.initial-backoff", 10*time.Millisecond)
		buildTotals(env, s.stage(1000, 1000))
		r := s.start(env)
		r.finish()
		s.expect(wantTotals(1000))
		if n := r.handle.Status().Restarts; len(s.faults.struck) < 45 || n < 20 || n > len(s.faults.struck) {
			s.Errorf("%d faults, %d restarts", len(s.faults.struck), n)
		}
	})
}

// B017, B035: the input ends at any moment of a checkpoint, whose time-out is ten minutes. Nobody waits for it.
func TestTheInputEndsDuringACheckpoint(t *testing.T) {
	for seed := range uint64(60) {
		onStand(t, func(s *stand) {
			rng := rand.New(rand.NewPCG(seed, 10))
			s.fs = slow(s.disk, 3*time.Millisecond, rng.Uint64())
			env := s.env(1+rng.IntN(4), time.Duration(10+rng.IntN(20))*time.Millisecond).Set("execution.checkpointing.max-concurrent-checkpoints", 1+rng.IntN(2))
			n := int64(20 + rng.IntN(200))
			buildTotals(env, s.stage(n, 2000))
			began := time.Now()
			s.start(env).finish()
			if took := time.Since(began); took > 5*time.Second {
				s.Errorf("seed %d: FINISHED after %v", seed, took)
			}
			s.expect(wantTotals(n))
		})
	}
}

// slowly is the sink of a stand, which takes time for each record.
func (s *stand) slowly(each time.Duration) stage {
	s.faults.work = func(where string) {
		if where == "sink.write" {
			pass(each)
		}
	}
	return s.stage(200, 0)
}

// B019: the job is stopped while everything waits for a sink that takes a second for each record.
func TestStopUnderBackPressure(t *testing.T) {
	onStand(t, func(s *stand) {
		env := s.env(2, seldom).Set("weir.exchange.batch-records", 1).Set("weir.exchange.queue-batches", 2)
		buildTotals(env, s.slowly(time.Second))
		r := s.start(env)
		pass(10 * time.Second)
		began := time.Now()
		a, err := r.handle.TriggerSavepoint(s.Context(), jobmaster.Savepoint{Kind: checkpoint.Suspend})
		if err != nil || a.Location == "" {
			s.Fatal(a, err)
		}
		r.finish()
		if took := time.Since(began); took > 5*time.Minute {
			s.Errorf("it took %v", took)
		}
		s.faults.work = nil
		env = s.resumed(2, seldom, a.Location)
		buildTotals(env, s.stage(200, 0))
		s.start(env).finish()
		s.expect(wantTotals(200))
	})
}

// B020: the savepoint by which the job stops is complete, and its commit fails. The job is FAILED and not restarted, the error names the
// savepoint, and who goes on from it commits.
func TestTheCommitOfAStopFails(t *testing.T) {
	for _, panics := range []bool{false, true} {
		onStand(t, func(s *stand) {
			env := s.env(2, seldom)
			buildTotals(env, s.stage(1000, 1000))
			r := s.start(env)
			pass(300 * time.Millisecond)
			r.checkpoint()
			pass(100 * time.Millisecond)
			s.faults.next("sink.commit", panics)
			a, err := r.handle.TriggerSavepoint(s.Context(), jobmaster.Savepoint{Kind: checkpoint.Suspend})
			if err == nil {
				s.Errorf("the savepoint is reported as a success: %+v", a)
			}
			r.fails("FAILED", "/savepoints/")
			if n := r.handle.Status().Restarts; n != 0 {
				s.Errorf("%d restarts", n)
			}
			entries, _ := s.disk.List("/savepoints")
			if len(entries) != 1 {
				s.Fatalf("savepoints: %v", entries)
			}
			env = s.resumed(2, seldom, "/savepoints/"+entries[0].Name)
			buildTotals(env, s.stage(1000, 0))
			s.start(env).finish()
			s.expect(wantTotals(1000))
		})
	}
}

// late counts the records of each key, and says how many there were at its timer.
type late struct {
	Count weir.Value[int64] `state:"count"`
	At    int64
	Work  func() `weir:"shared"`
}

func (l *late) Process1(ctx *weir.KeyedContext[int64], _ int64, _ weir.Out[string]) error {
	l.Count.Set(l.Count.Get() + 1)
	ctx.EventTimer(moment(l.At))
	return nil
}

func (l *late) Process2(*weir.KeyedContext[int64], int64, weir.Out[string]) error { return nil }

func (l *late) OnTimer(ctx *weir.KeyedContext[int64], at weir.Timer, out weir.Out[string]) error {
	if l.Work != nil {
		l.Work()
	}
	out.Emit(fmt.Sprint("timer ", ctx.Key(), " at ", at.At.UnixMilli(), ": ", l.Count.Get()))
	return nil
}

// B025, B026: one of two inputs never says anything and is idle. A drain ends the time of both: the timer fires once. A stop without
// drain does not end it: the timer is in the savepoint.
func TestADrainEndsTheTimeOfAnIdleInput(t *testing.T) {
	build := func(s *stand, env *weir.Env) *weir.Env {
		marks := weir.Watermarks[int64]{Timestamp: moment, Idle: 100 * time.Millisecond}
		busy := env.From(weir.Generate(weir.Endless, func(i int64) int64 { return i + 1 }).Rate(1), marks).UID("busy").Parallelism(1)
		silent := env.From(weir.Generate(weir.Endless, func(i int64) int64 { return 1 }).Rate(1e-9), marks).UID("silent").Parallelism(1)
		one := func(int64) int64 { return 1 }
		busy.Connect(silent).KeyBy(one, one).Process(&late{At: 1_000_000_000_000}).UID("late").To(topic{s.broker, s.faults}.sink()).UID("out")
		return env
	}
	for _, kind := range []checkpoint.Kind{checkpoint.Suspend, checkpoint.Drain} {
		onStand(t, func(s *stand) {
			r := s.start(build(s, s.env(2, seldom)))
			pass(4500 * time.Millisecond)
			if _, err := r.handle.TriggerSavepoint(s.Context(), jobmaster.Savepoint{Kind: kind}); err != nil {
				s.Fatal(err)
			}
			r.finish()
			if kind == checkpoint.Suspend {
				s.expect(bag{})
				r = s.start(build(s, s.resumed(1, seldom, "latest")))
				if _, err := r.handle.TriggerSavepoint(s.Context(), jobmaster.Savepoint{Kind: checkpoint.Drain}); err != nil {
					s.Fatal(err)
				}
				r.finish()
			}
			lines := s.broker.read()
			if len(lines) != 1 || !strings.HasPrefix(lines[0], "timer 1 at 1000000000000: ") {
				s.Errorf("%v: %q", kind, lines)
			}
		})
	}
}

// B028: one watermark makes thousands of timers due, each of which takes a millisecond. A cancellation does not wait for them. A
// checkpoint meanwhile completes behind them, and each has fired once.
func TestThousandsOfTimersAtOnce(t *testing.T) {
	const keys = 2000
	build := func(s *stand, env *weir.Env) *weir.Env {
		marks := weir.Watermarks[int64]{Timestamp: moment}
		numbers := env.From(weir.Generate(keys+1, func(i int64) int64 { return i * i / keys }), marks).UID("numbers").Parallelism(1)
		none := env.From(weir.Generate(0, func(i int64) int64 { return 0 }), marks).UID("none").Parallelism(1)
		l := &late{At: keys - 1, Work: func() { pass(time.Millisecond) }}
		self := func(v int64) int64 { return v }
		numbers.Connect(none).KeyBy(self, self).Process(l).UID("late").To(topic{s.broker, s.faults}.sink()).UID("out")
		return env
	}
	onStand(t, func(s *stand) {
		r := s.start(build(s, s.env(1, seldom)))
		pass(100 * time.Millisecond)
		began := time.Now()
		r.cancel()
		if <-r.done; time.Since(began) > 2*time.Second {
			s.Errorf("the cancellation took %v", time.Since(began))
		}
	})
	onStand(t, func(s *stand) {
		r := s.start(build(s, s.env(1, seldom)))
		pass(100 * time.Millisecond)
		r.checkpoint()
		r.finish()
		want, counts := bag{}, map[int64]int{}
		for i := range int64(keys + 1) {
			counts[i*i/keys]++
		}
		for key, n := range counts {
			want.add(fmt.Sprint("timer ", key, " at ", keys-1, ": ", n))
		}
		s.expect(want)
	})
}

// B040: the barrier of one input is there, that of the other comes half a minute later. What comes behind the first waits at its sender,
// not in memory, and then arrives in order.
func TestAnAlignmentHoldsNothingInMemory(t *testing.T) {
	onStand(t, func(s *stand) {
		const n = 300_000
		var emitted atomic.Int64
		env := s.env(1, seldom)
		many := env.From(weir.Generate(n, func(i int64) int64 { emitted.Add(1); return i + 1 }).Rate(1e6)).UID("many")
		held := env.From(weir.Generate(2, func(i int64) int64 { return -1 - i })).UID("held").
			Map(func(v int64) int64 { pass(15 * time.Second); return v })
		o := &order{}
		many.Union(held).Process(o).UID("order").To(topic{s.broker, s.faults}.sink()).UID("out")
		r := s.start(env)
		pass(50 * time.Millisecond) // the barrier of held waits behind its records
		done := make(chan error, 1)
		go func() { // ends with the checkpoint
			_, err := r.handle.TriggerCheckpoint(s.Context(), false)
			done <- err
		}()
		pass(10 * time.Second)
		before := emitted.Load()
		pass(18 * time.Second)
		if after := emitted.Load(); after != before || after > 150_000 {
			s.Errorf("while one barrier was there, %d records were emitted, then %d", before, after)
		}
		if err := <-done; err != nil {
			s.Error(err)
		}
		r.finish()
		s.expect(bag{fmt.Sprint("in order ", n): 1})
	})
}

// order looks whether the positive numbers come in order.
type order struct {
	last int64
}

func (o *order) Process(_ *weir.Context, v int64, out weir.Out[string]) error {
	switch {
	case v < 0:
	case v != o.last+1:
		out.Emit(fmt.Sprint(v, " behind ", o.last))
	default:
		o.last = v
	}
	return nil
}

func (o *order) EndOfInput(out weir.Out[string]) error {
	out.Emit(fmt.Sprint("in order ", o.last))
	return nil
}

const hotRecords = 20_000

// hotJob has one key with nearly all the records, which takes its time for them.
func (s *stand) hotJob() *weir.Env {
	env := s.env(4, 500*time.Millisecond)
	env.Checkpoints().Timeout = 2 * time.Second
	env.From(weir.Generate(hotRecords, func(i int64) int64 { return i + 1 })).UID("integers").
		KeyBy(func(v int64) int64 { return hot(v) }).
		Process(weir.Keyed(func(ctx *weir.KeyedContext[int64], v int64, out weir.Out[string]) error {
			if ctx.Key() == 3 {
				pass(time.Millisecond)
			}
			out.Emit(fmt.Sprint(ctx.Key(), " ", v))
			return nil
		})).UID("hot").Name("hot").
		To(topic{s.broker, s.faults}.sink()).UID("out")
	return env
}

func (s *stand) expectHot() {
	s.Helper()
	want := bag{}
	for v := int64(1); v <= hotRecords; v++ {
		want.add(fmt.Sprint(hot(v), " ", v))
	}
	s.expect(want)
}

// B134: of aligned checkpoints of a job with a hot key, those that expire are counted and name the subtask; the counts are exact.
func TestAHotKey(t *testing.T) {
	onStand(t, func(s *stand) {
		r := s.start(s.hotJob())
		pass(8 * time.Second)
		expired := 0
		for _, c := range r.handle.Status().Checkpoints.History {
			if c.Reason == checkpoint.Expired && strings.Contains(fmt.Sprint(c.Err), "is hot -> Sink (") {
				expired++
			}
		}
		if expired == 0 {
			s.Errorf("no checkpoint expired and said whom it waited for: %+v", r.handle.Status().Checkpoints)
		}
		r.finish()
		s.expectHot()
	})
}

// B134: unaligned checkpoints of the same job do not wait for the hot key's records; they have them.
func TestAHotKeyIsOvertaken(t *testing.T) {
	onStand(t, func(s *stand) {
		r := s.start(unaligned(s.hotJob(), 0))
		pass(8 * time.Second)
		h := r.handle.Status().Checkpoints.History
		if len(h) < 5 {
			s.Errorf("%d checkpoints", len(h))
		}
		for _, c := range h {
			if c.What == checkpoint.Failed || c.Duration > 2*time.Second {
				s.Errorf("%+v", c)
			}
		}
		r.crash()
		if overtaken(s.disk) == 0 {
			s.Error("nothing was in flight")
		}
		s.start(s.hotJob().Set("execution.state-recovery.path", latest)).finish()
		s.expectHot()
	})
}

func hot(v int64) int64 {
	if v%20 != 0 {
		return 3
	}
	return v % 9
}

// B067, B068, B091: parallelism goes up and down, with a checkpoint at each stop; no key is there twice, what a key group had goes
// where it goes, and the checkpoints do not grow by it.
func TestUpAndDown(t *testing.T) {
	for _, p := range programs {
		if p.name == "routes" {
			continue // its EndOfInput emits: a checkpoint in which only some subtasks have ended is refused at another parallelism
		}
		t.Run(p.name, func(t *testing.T) {
			onStand(t, func(s *stand) {
				var sizes []int64
				for life, parallelism := range []int{2, 3, 2, 4, 1, 5, 2} {
					env := s.env(parallelism, seldom)
					if life > 0 {
						env = s.resumed(parallelism, seldom, "latest")
					}
					env.Set("pipeline.auto-watermark-interval", 5*time.Millisecond)
					p.build(env, s.stage(3000, 1000))
					r := s.start(env)
					pass(200 * time.Millisecond)
					r.checkpoint()
					h := r.handle.Status().Checkpoints.History
					sizes = append(sizes, h[len(h)-1].Sizes.State)
					pass(50 * time.Millisecond)
					r.crash()
				}
				env := s.resumed(3, seldom, "latest")
				p.build(env, s.stage(3000, 0))
				s.start(env).finish()
				s.expect(p.reference(3000))
				if p.name == "totals" && slices.Max(sizes) > 3*sizes[0] {
					s.Errorf("the checkpoints grow: %v", sizes)
				}
			})
		})
	}
}

// B073: an operator without state is put before one with, and taken away again; state is found by the uid.
func TestAnOperatorComesAndGoes(t *testing.T) {
	onStand(t, func(s *stand) {
		for life := range 4 {
			env := s.env(2, seldom)
			if life > 0 {
				env = s.resumed(2, seldom, "latest")
			}
			st := s.stage(1000, 1000)
			integers := env.From(st.integers(1000, 1, 1)).UID("integers")
			if life%2 == 1 {
				integers = integers.Filter(func(v int64) bool { return true }).Map(func(v int64) int64 { return v })
			}
			if life == 3 {
				integers = integers.Rebalance().Map(func(v int64) int64 { return v })
			}
			integers.KeyBy(func(v int64) int64 { return v % totalsKeys }).
				Process(&totals{troubled: troubled{s.faults}, Records: 1000}).UID("totals").To(st.sink).UID("out")
			r := s.start(env)
			if life == 3 {
				r.finish()
				break
			}
			pass(200 * time.Millisecond)
			r.checkpoint()
			r.crash()
		}
		s.expect(wantTotals(1000))
	})
}
