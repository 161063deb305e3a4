package trial

import (
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/stats"
	"github.com/weirstream/weir/internal/storage"
)

// A checkpoint that is slow, or fails, says who was to blame: here something is slow or broken on purpose, in one place of a job
//
//	lines (2) --rebalance--> split (2) --by key--> count (3) --to one--> out (1)
//
// and the sentence must name that place.

// trouble is what is wrong, and where. The zero trouble is nothing.
type trouble struct {
	source func(i int64) // for each record
	split  func(v int64)
	count  func(key, v int64)
	out    func()
}

func (s *stand) explained(env *weir.Env, t trouble) *weir.Env {
	env.Set("execution.checkpointing.data-inline-threshold", "0 b")
	lines := env.From(weir.Generate(1<<40, func(i int64) int64 {
		if t.source != nil {
			t.source(i)
		}
		return i
	}).Rate(1000)).UID("lines").Name("lines")
	lines.Rebalance().Map(func(v int64) int64 {
		if t.split != nil {
			t.split(v)
		}
		return v
	}).Name("split").
		KeyBy(func(v int64) int64 { return v % 16 }).
		Process(&counted{trouble: t}).UID("count").Name("count").Parallelism(3).
		Rebalance().Map(func(v int64) int64 {
		if t.out != nil {
			t.out()
		}
		return v
	}).Name("out").Parallelism(1).To(weir.Discard[int64]()).Parallelism(1)
	return env
}

type counted struct {
	trouble trouble
	Count   weir.Value[int64] `state:"count"`
}

// Process implements weir.KeyedFunction.
func (c *counted) Process(ctx *weir.KeyedContext[int64], v int64, out weir.Out[int64]) error {
	if c.trouble.count != nil {
		c.trouble.count(ctx.Key(), v)
	}
	c.Count.Set(c.Count.Get() + 1)
	out.Emit(v)
	return nil
}

// last is the newest checkpoint.
func (r *running) last() stats.Checkpoint {
	h := r.handle.Status().Checkpoints.History
	return h[len(h)-1]
}

func (r *running) expectExplanation(what checkpoint.Progress, want string) {
	r.stand.Helper()
	c := r.last()
	if c.What != what || !regexp.MustCompile("^"+want+"$").MatchString(c.Explanation) {
		r.Errorf("checkpoint %d, %v (%v %v): %s\nwanted %v: %s", c.ID, c.What, c.Reason, c.Err, c.Explanation, what, want)
	}
	if n := strings.Count(r.log.last(1000), "explanation="+c.Explanation); n != 1 {
		r.Errorf("the log says it %d times", n)
	}
}

// A healthy job's checkpoints take no simulated time, and nobody is blamed.
func TestNobodyIsBlamed(t *testing.T) {
	onStand(t, func(s *stand) {
		r := s.start(s.explained(s.env(2, seldom), trouble{}))
		pass(time.Second)
		r.checkpoint()
		r.expectExplanation(checkpoint.Succeeded, `0 ms: no task had anything to do\.`)
	})
}

// A slow operator before the last one: its queues are full, and the barrier waits in front of it, and of it alone.
func TestASlowOperatorIsBlamed(t *testing.T) {
	onStand(t, func(s *stand) {
		r := s.start(s.explained(s.env(2, seldom), trouble{out: func() { pass(2 * time.Millisecond) }}))
		pass(20 * time.Second)
		r.checkpoint()
		r.expectExplanation(checkpoint.Succeeded, `.*"out -> Discard" waited for barriers on count -> out \(back-pressure\).*`)
		if c := r.last().Explanation; strings.Contains(c, "split -> count (back-pressure)") || strings.Contains(c, "lines -> split (back-pressure)") {
			s.Errorf("the wrong one is blamed: %s", c)
		}
	})
	onStand(t, func(s *stand) {
		env := s.explained(s.env(2, seldom), trouble{out: func() { pass(2 * time.Millisecond) }})
		env.Checkpoints().Timeout = 500 * time.Millisecond
		r := s.start(env)
		pass(20 * time.Second)
		if _, err := r.handle.TriggerCheckpoint(s.Context(), false); err == nil {
			s.Fatal("it did not expire")
		}
		r.expectExplanation(checkpoint.Failed, `After 500 ms \d of 8 tasks had acknowledged; .*behind records \(back-pressure\).*`)
	})
}

// A hot key: one subtask of three is slow.
func TestASlowSubtaskIsBlamed(t *testing.T) {
	onStand(t, func(s *stand) {
		hot := func(key, _ int64) {
			if key == 3 {
				pass(20 * time.Millisecond)
			}
		}
		r := s.start(s.explained(s.env(2, seldom), trouble{count: hot}))
		pass(20 * time.Second)
		r.checkpoint()
		r.expectExplanation(checkpoint.Succeeded, `.*subtask \d of "count" waited for barriers on split -> count \(back-pressure\).*`)
		if c := r.last().Explanation; strings.Contains(c, "lines -> split (back-pressure)") {
			s.Errorf("the wrong one is blamed: %s", c)
		}
	})
}

// Unaligned, queues do not matter; a call that takes long does, as a barrier that has overtaken everything waits for its return.
func TestASlowCallIsBlamed(t *testing.T) {
	onStand(t, func(s *stand) {
		var once atomic.Bool
		slow := func(v int64) {
			if v == 1000 && once.CompareAndSwap(false, true) {
				pass(3 * time.Second)
			}
		}
		r := s.start(s.explained(unaligned(s.env(2, seldom), 0), trouble{split: slow}))
		for !once.Load() {
			pass(100 * time.Millisecond)
		}
		r.checkpoint()
		r.expectExplanation(checkpoint.Succeeded, `(2\.9|3\.0) s: subtask \d of "split" waited for barriers on lines -> split \(its code had not returned\)\.`)
	})
}

// Unaligned, with a slow operator at the end: nobody waits long, and what was in flight is written.
func TestOvertakingTakesNoTime(t *testing.T) {
	onStand(t, func(s *stand) {
		r := s.start(s.explained(unaligned(s.env(2, seldom), 0), trouble{out: func() { pass(2 * time.Millisecond) }}))
		pass(20 * time.Second)
		r.checkpoint()
		c := r.last()
		if !c.Unaligned() || c.Persisted() == 0 || c.Duration > 2*time.Second {
			s.Errorf("%v, %d bytes in flight, unaligned %v: %s", c.Duration, c.Persisted(), c.Unaligned(), c.Explanation)
		}
	})
}

// With a time-out, that is what a checkpoint under back-pressure takes, in each task behind another.
func TestATimeoutIsNamed(t *testing.T) {
	onStand(t, func(s *stand) {
		r := s.start(s.explained(unaligned(s.env(2, seldom), 700*time.Millisecond), trouble{out: func() { pass(2 * time.Millisecond) }}))
		pass(20 * time.Second)
		r.checkpoint()
		r.expectExplanation(checkpoint.Succeeded, `.* waited for aligned barriers, until the time-out that lets them overtake.*`)
	})
}

// A source whose code does not return: everybody waits for it, and only it is named.
func TestABlockedSourceIsBlamed(t *testing.T) {
	for _, timeout := range []time.Duration{time.Minute, 2 * time.Second} {
		onStand(t, func(s *stand) {
			var blocked atomic.Bool
			block := func(i int64) {
				if i == 1000 && blocked.CompareAndSwap(false, true) {
					pass(10 * time.Second)
				}
			}
			env := s.explained(s.env(2, seldom), trouble{source: block})
			env.Checkpoints().Timeout = timeout
			r := s.start(env)
			for !blocked.Load() {
				pass(100 * time.Millisecond)
			}
			_, err := r.handle.TriggerCheckpoint(s.Context(), false)
			if timeout < 10*time.Second {
				r.expectExplanation(checkpoint.Failed, `After 2\.0 s 1 of 8 tasks had acknowledged; subtask \d of "lines" had not come to its trigger: `+
					`its code had not returned; 6 wait for barriers of these\.`)
			} else if r.expectExplanation(checkpoint.Succeeded, `(9\.\d|10\.0) s: subtask \d of "lines" was busy before it took its trigger \(its code had not returned\)\.`); err != nil {
				s.Error(err)
			}
		})
	}
}

// onCount is a rule about the files of subtask 2 of count: creating one takes some time, then fails or not.
func onCount(err error, takes time.Duration) *storage.Rule {
	return &storage.Rule{Op: storage.OpCreate, Path: "*2-1-keyed", Err: err, Hook: func(storage.Op, string) { pass(takes) }}
}

// A slow disk: writing takes long, of one subtask.
func TestASlowDiskIsBlamed(t *testing.T) {
	for _, timeout := range []time.Duration{time.Minute, 2 * time.Second} {
		onStand(t, func(s *stand) {
			s.fs = storage.Faulty(s.disk, onCount(nil, 3*time.Second))
			env := s.explained(s.env(2, seldom), trouble{})
			env.Checkpoints().Timeout = timeout
			r := s.start(env)
			pass(time.Second)
			_, _ = r.handle.TriggerCheckpoint(s.Context(), false)
			if timeout < 3*time.Second {
				r.expectExplanation(checkpoint.Failed, `After 2\.0 s 7 of 8 tasks had acknowledged; subtask 2 of "count" had been writing for 2\.0 s\.`)
			} else {
				r.expectExplanation(checkpoint.Succeeded, `3\.0 s: subtask 2 of "count" writing \d+ bytes\.`)
			}
		})
	}
}

// A full disk: the subtask that could not write, and why.
func TestAFullDiskIsBlamed(t *testing.T) {
	onStand(t, func(s *stand) {
		s.fs = storage.Faulty(s.disk, onCount(syscall.ENOSPC, 300*time.Millisecond))
		r := s.start(s.explained(s.env(2, seldom), trouble{}))
		pass(time.Second)
		if _, err := r.handle.TriggerCheckpoint(s.Context(), false); err == nil {
			s.Fatal("the disk is not full")
		}
		r.expectExplanation(checkpoint.Failed, `After 300 ms 7 of 8 tasks had acknowledged; subtask 2 of "count" failed after writing for 300 ms: .*no space left on device.*`)
	})
}

// A checkpoint under way says whom it waits for.
func TestACheckpointUnderWayIsExplained(t *testing.T) {
	onStand(t, func(s *stand) {
		s.fs = storage.Faulty(s.disk, onCount(nil, 3*time.Second))
		r := s.start(s.explained(s.env(2, seldom), trouble{}))
		pass(time.Second)
		done := make(chan struct{})
		go func() { // ends with the checkpoint
			defer close(done)
			_, _ = r.handle.TriggerCheckpoint(s.Context(), false)
		}()
		pass(time.Second)
		want := `After 1.0 s 7 of 8 tasks have acknowledged; subtask 2 of "count" has been writing for 1.0 s.`
		if got := r.last().Explanation; got != want {
			s.Errorf("got  %s\nwant %s", got, want)
		}
		<-done
	})
}
