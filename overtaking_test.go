package weir_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/weirstream/weir"
)

// What a job must keep when barriers overtake records, beside counting them once (unaligned_test.go): broadcast state, timers in the midst
// of firing, time, large records, and the job's own failures.

func unaligned(env *Env) *Env { env.Checkpoints().Unaligned = true; return env }

// lastCheckpoint is where the newest one is.
func (r *running) lastCheckpoint() string {
	h := r.handle.Status().Checkpoints.History
	return h[len(h)-1].Location
}

// TestAlignedWaitsForTheQueues, which is what an unaligned checkpoint is for; and one with a timeout waits so long.
func TestAlignedWaitsForTheQueues(t *testing.T) {
	took := func(change func(env *Env)) (took time.Duration) {
		inLab(t, func(l *lab) {
			env := l.env(2)
			change(env)
			r := l.start(slowJob(env, 20000, pathways["by key"], &notes{}))
			r.pass(2 * time.Second)
			began := time.Now()
			r.checkpoint()
			took = time.Since(began)
			r.kill()
		})
		return took
	}
	if d := took(func(*Env) {}); d < time.Second {
		t.Errorf("aligned, it took %v", d)
	}
	if d := took(func(env *Env) { unaligned(env) }); d > 150*time.Millisecond {
		t.Errorf("unaligned, it took %v", d)
	}
	alternating := func(env *Env) { unaligned(env).Set("execution.checkpointing.aligned-checkpoint-timeout", "300 ms") }
	if d := took(alternating); d < 300*time.Millisecond || d > 900*time.Millisecond { // the timeout adds up from task to task
		t.Errorf("with a timeout of 300 ms, it took %v", d)
	}
}

// TestUnalignedAndFailures: the job fails under back-pressure, or with nothing queued, between checkpoints that overtake, and counts
// everything once.
func TestUnalignedAndFailures(t *testing.T) {
	const n = 1500
	for name, empty := range map[string]bool{"full queues": false, "empty queues": true} {
		for _, timeout := range []string{"0 ms", "30 ms"} {
			t.Run(name+", timeout "+timeout, func(t *testing.T) {
				inLab(t, func(l *lab) {
					into, seen := &notes{}, atomic.Int64{}
					env := unaligned(l.env(3)).Set("execution.checkpointing.interval", "100 ms").
						Set("execution.checkpointing.aligned-checkpoint-timeout", timeout)
					read := func(uid string) Stream[int64] {
						if empty {
							return env.From(FromSlice(numbers(n)).Rate(1000)).UID(uid)
						}
						return env.From(FromSlice(numbers(n))).UID(uid)
					}
					broken := read("one").Union(read("two")).KeyBy(func(v int64) int64 { return v % slowKeys }).Process(&keyCount{Each: time.Millisecond}).UID("slow").
						Map(func(v slowTotal) slowTotal { return v })
					work := read("three").Map(func(v int64) int64 {
						if k := seen.Add(1); k == n/3 || k == n/2 || k == n {
							panic("planted")
						}
						pass(2 * time.Millisecond)
						return v
					}).UID("brittle").NewChain().KeyBy(func(v int64) int64 { return v % slowKeys }).Process(&keyCount{}).UID("fast")
					var got []slowTotal
					broken.Union(work).To(Collect(&got)).UID("got")
					r := l.start(env)
					r.finish()
					if got := r.handle.Status().Restarts; got != 3 {
						t.Errorf("it failed %d times", got)
					}
					for _, v := range got {
						into.add("%d: %d", v.Key, v.Count)
					}
					var want []string
					for k := range int64(slowKeys) {
						count := int64((n-int(k))/slowKeys) + min(k, 1)
						want = append(want, fmt.Sprintf("%d: %d", k, 2*count), fmt.Sprintf("%d: %d", k, count))
					}
					slices.Sort(want)
					expect(t, into.takeSorted(), want...)
				})
			})
		}
	}
}

// ruled counts how many rules were there, of each, and of each record that it was processed.
type ruled struct {
	Rules BroadcastMap[int64, int64] `state:"rules"`
	Count Value[int64]               `state:"count"`
	N     *notes                     `weir:"shared"`
}

func (f *ruled) Process(ctx *KeyedContext[int64], _ int64, _ Out[int64]) error {
	pass(time.Millisecond)
	f.Count.Set(f.Count.Get() + 1)
	ctx.EventTimer(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC))
	return nil
}

func (f *ruled) ProcessBroadcast(_ *Context, v int64, _ Out[int64]) error {
	pass(time.Millisecond)
	seen, _ := f.Rules.Get(v)
	f.Rules.Put(v, seen+1)
	return nil
}

func (f *ruled) OnTimer(ctx *KeyedContext[int64], _ Timer, _ Out[int64]) error {
	wrong := 0
	for _, seen := range f.Rules.All() {
		if seen != 1 {
			wrong++
		}
	}
	f.N.add("%d: %d, %d rules, %d wrong", ctx.Key(), f.Count.Get(), f.Rules.Len(), wrong)
	return nil
}

// TestUnalignedBesideABroadcast: rules and records queue up before a slow operator; each rule acts once on every subtask, each record once.
func TestUnalignedBesideABroadcast(t *testing.T) {
	const n, rules = 900, 100
	var want []string
	for k := range int64(slowKeys) {
		want = append(want, fmt.Sprintf("%d: %d, %d rules, 0 wrong", k, int64((n-int(k))/slowKeys)+min(k, 1), rules))
	}
	slices.Sort(want)
	for _, at := range []time.Duration{0, 20 * time.Millisecond, 120 * time.Millisecond} {
		for _, before := range []int{1, 3} {
			t.Run(fmt.Sprintf("after %v at %d", at, before), func(t *testing.T) {
				inLab(t, func(l *lab) {
					into := &notes{}
					job := func(env *Env) *Env {
						rulesOf := env.From(FromSlice(numbers(rules)).Rate(1000)).UID("names").Broadcast()
						unaligned(env).From(FromSlice(numbers(n))).UID("tape").KeyBy(func(v int64) int64 { return v % slowKeys }).
							ConnectBroadcast(rulesOf).Process(&ruled{N: into}).UID("rules").To(Discard[int64]()).UID("none")
						return env
					}
					r := l.start(job(l.env(before)))
					r.pass(at)
					r.checkpoint()
					path := r.lastCheckpoint()
					r.kill()
					into.take()
					for _, after := range []int{before, 5, 2} {
						l.start(job(l.resumed(after, path))).finish()
						expect(t, into.takeSorted(), want...)
					}
				})
			})
		}
	}
}

// ringing notes every timer, each a millisecond.
type ringing struct {
	N *notes `weir:"shared"`
}

func (f *ringing) Process(ctx *KeyedContext[int64], v int64, _ Out[int64]) error {
	if v > 0 {
		ctx.EventTimer(time.Unix(v, 0))
	}
	f.N.add("record %d at %s", v, markName(ctx.Watermark()))
	return nil
}

func (f *ringing) OnTimer(ctx *KeyedContext[int64], at Timer, out Out[int64]) error {
	pass(time.Millisecond)
	f.N.add("timer %d", at.At.Unix())
	out.Emit(at.At.Unix())
	return nil
}

// TestUnalignedAmidTimers: a snapshot is taken while the timers of a watermark fire. What had fired does not fire again, the rest does, and
// the records that waited come only then; at another parallelism too.
func TestUnalignedAmidTimers(t *testing.T) {
	const timers = 1000
	inLab(t, func(l *lab) {
		source, other, n, out := newTape[int64](1), newTape[int64](1), &notes{}, &notes{}
		job := func(env *Env) *running {
			stamp := Watermarks[int64]{Timestamp: func(v int64) time.Time { return time.Unix(max(v, -v), 0) }}
			unaligned(env).From(source, stamp).UID("tape").Parallelism(1).
				KeyBy(func(v int64) int64 { return v }).Process(&ringing{n}).UID("ringing").To(note[int64](out)).UID("out")
			env.From(other).UID("other").Parallelism(1).To(Discard[int64]()).UID("none")
			return l.start(env)
		}
		r := job(l.env(1))
		source.write(0, numbers(timers)...)
		source.write(0, -2*timers)
		r.settle()
		r.pass(250 * time.Millisecond) // the watermark comes; the timers take a second
		source.write(0, -3*timers)
		r.settle()
		began := time.Now()
		r.checkpoint()
		if d := time.Since(began); d > 300*time.Millisecond {
			t.Errorf("it waited %v for the timers", d)
		}
		path := r.lastCheckpoint()
		fired := 0
		for _, line := range n.take() {
			if strings.HasPrefix(line, "timer") {
				fired++
			}
		}
		if fired == 0 || fired >= timers {
			t.Fatalf("%d timers had fired", fired)
		}
		r.kill()
		n.take()
		sunk := len(out.take())
		for _, p := range []int{1, 3} {
			r = job(l.resumed(p, path))
			r.pass(5 * time.Second)
			lines := n.take()
			got := map[string]int{}
			for _, line := range lines {
				got[line]++
			}
			again := 0
			for v := range timers {
				again += got[fmt.Sprint("timer ", v+1)]
			}
			if again+fired < timers || again+fired > timers+sliceOfTimers || len(got) != len(lines) {
				t.Errorf("at %d: %d timers fired before and %d again, of %d", p, fired, again, timers)
			}
			if p == 1 && lines[len(lines)-1] != fmt.Sprintf("record %d at %s", -3*timers, markName(seconds(2*timers).Add(-1))) {
				t.Errorf("at %d the last was %s", p, lines[len(lines)-1])
			}
			r.kill()
			if got := len(out.take()); got+sunk < timers {
				t.Errorf("at %d: %d came out before and %d again, of %d", p, sunk, got, timers)
			}
		}
	})
}

// sliceOfTimers is how many timers may have fired between the snapshot and the test's look at them.
const sliceOfTimers = 256

// TestTimeIsSentAgain: the watermark that a barrier has overtaken reaches the receiver after a restore though nothing else is sent.
func TestTimeIsSentAgain(t *testing.T) {
	inLab(t, func(l *lab) {
		source, n := newTape[int64](1), &notes{}
		source.endless = true
		job := func(env *Env) *running {
			stamp := Watermarks[int64]{Timestamp: seconds}
			unaligned(env).From(source, stamp).UID("tape").Parallelism(1).
				Map(slowly).UID("slow").NewChain().Parallelism(1).
				KeyBy(func(v int64) int64 { return v }).Process(&ringing{n}).UID("ringing").To(Discard[int64]()).UID("none")
			return l.start(env)
		}
		r := job(l.env(1))
		source.write(0, numbers(900)...)
		r.pass(250 * time.Millisecond)
		r.checkpoint()
		path := r.lastCheckpoint()
		r.kill()
		n.take()
		for _, p := range []int{1, 4} {
			r = job(l.resumed(p, path))
			r.pass(30 * time.Second)
			if got := n.takeSorted(); !slices.Contains(got, "timer 898") {
				t.Errorf("at %d the last are %v", p, got[max(0, len(got)-3):])
			}
			r.kill()
			n.take()
		}
	})
}

// TestUnalignedAndLargeRecords: one larger than the others by far is in flight like them, and each in its order.
func TestUnalignedAndLargeRecords(t *testing.T) {
	sizes := []int{1, 32<<10 - 1, 32 << 10, 32<<10 + 1, 5 << 20, 0, 3}
	inLab(t, func(l *lab) {
		source, n := newTape[[]byte](1), &notes{}
		job := func(env *Env) *running {
			unaligned(env).From(source).UID("tape").Parallelism(1).Map(func(v []byte) string {
				pass(20 * time.Millisecond)
				for _, b := range v {
					if b != byte(len(v)) {
						return "spoilt"
					}
				}
				return fmt.Sprint(len(v))
			}).UID("slow").NewChain().Parallelism(1).To(note[string](n)).UID("out").Parallelism(1)
			return l.start(env)
		}
		r := job(l.env(1))
		var want []string
		for range 5 {
			for _, size := range sizes {
				source.write(0, slices.Repeat([]byte{byte(size)}, size))
				want = append(want, fmt.Sprint(size))
			}
		}
		r.pass(50 * time.Millisecond)
		r.checkpoint()
		path, before := r.lastCheckpoint(), n.take()
		source.end()
		r.kill()
		n.take()
		r = job(l.resumed(1, path))
		r.finish()
		got := n.take()
		if len(got) > len(want) || len(got) < len(want)-len(before) || !slices.Equal(got, want[len(want)-len(got):]) {
			t.Errorf("%v before, %v again, of %v", before, got, want)
		}
	})
}

// TestRecordsInFlightWithoutAnEdge are refused with their number, and dropped only on demand; a key that has changed is noticed.
func TestRecordsInFlightWithoutAnEdge(t *testing.T) {
	const n = 2000
	inLab(t, func(l *lab) {
		job := func(env *Env, key func(int64) int64, more ...string) *Env {
			s := unaligned(env).From(FromSlice(numbers(n))).UID("one")
			for _, uid := range more {
				s = s.Map(slowly).UID(uid).NewChain()
			}
			s.KeyBy(key).Process(&keyCount{Each: time.Millisecond}).UID("count").To(Discard[slowTotal]()).UID("none")
			return env
		}
		mod := func(v int64) int64 { return v % slowKeys }
		r := l.start(job(l.env(3), mod))
		r.pass(50 * time.Millisecond)
		r.checkpoint()
		path := r.lastCheckpoint()
		r.kill()
		l.fails(job(l.resumed(3, path), mod, "between"), "records in flight on the edge", "one", "count")
		l.start(job(l.resumed(3, path).Set("execution.state-recovery.ignore-unclaimed-state", true), mod, "between")).kill()
		l.fails(job(l.resumed(3, path), func(v int64) int64 { return v % 3 }).Set("restart-strategy.type", "none"), "the key of the edge has changed")
	})
}
