package weir_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// slowTotal is how often a key was counted.
type slowTotal struct{ Key, Count int64 }

// keyCount counts the records of each key, slowly, and tells the counts when time ends.
type keyCount struct {
	N    Value[int64]  `state:"n"`
	Each time.Duration // what a record takes
}

func (f *keyCount) Process(ctx *KeyedContext[int64], _ int64, _ Out[slowTotal]) error {
	pass(f.Each)
	f.N.Set(f.N.Get() + 1)
	ctx.EventTimer(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC))
	return nil
}

func (f *keyCount) OnTimer(ctx *KeyedContext[int64], _ Timer, out Out[slowTotal]) error {
	out.Emit(slowTotal{Key: ctx.Key(), Count: f.N.Get()})
	return nil
}

// totals is a sink of the counts that a job ends with; a second one of a key is kept beside the first.
type totals struct{ into *notes }

func (s totals) Writer(WriterContext) (Writer[slowTotal], error) { return s, nil }
func (s totals) Write(v slowTotal, _ time.Time) error {
	s.into.add("%d: %d", v.Key, v.Count)
	return nil
}
func (s totals) Flush(bool) error { return nil }
func (s totals) Close() error     { return nil }

func slowly(v int64) int64 { pass(time.Millisecond); return v }

const slowKeys = 11

// pathways are jobs that count slowly behind an edge of each kind.
var pathways = map[string]func(s Stream[int64]) Stream[slowTotal]{
	"by key": func(s Stream[int64]) Stream[slowTotal] { return counted(s, &keyCount{Each: time.Millisecond}) },
	"in turn": func(s Stream[int64]) Stream[slowTotal] {
		return counted(s.Rebalance().Map(slowly).UID("slow"), &keyCount{})
	},
	"to neighbours": func(s Stream[int64]) Stream[slowTotal] {
		return counted(s.Rescale().Map(slowly).UID("slow"), &keyCount{})
	},
	"forward": func(s Stream[int64]) Stream[slowTotal] {
		return counted(s.Map(slowly).UID("slow").NewChain(), &keyCount{})
	},
	"to the first": func(s Stream[int64]) Stream[slowTotal] {
		return counted(s.Global().Map(slowly).UID("slow"), &keyCount{})
	},
	"by choice": func(s Stream[int64]) Stream[slowTotal] {
		return counted(s.Partition(func(v int64, n int) int { return int(v*7) % n }).Map(slowly).UID("slow"), &keyCount{})
	},
}

func counted(s Stream[int64], f KeyedFunction[int64, int64, slowTotal]) Stream[slowTotal] {
	return s.KeyBy(func(v int64) int64 { return v % slowKeys }).Process(f).UID("count")
}

// slowJob counts the numbers to n twice, behind a pathway.
func slowJob(env *Env, n int, pathway func(Stream[int64]) Stream[slowTotal], into *notes) *Env {
	one := env.From(FromSlice(numbers(n))).UID("one")
	two := env.From(FromSlice(numbers(n))).UID("two")
	pathway(one.Union(two)).To(totals{into})
	return env
}

// TestUnalignedUnderBackPressure: a checkpoint takes about no time while everything waits for a slow task, and what it overtook
// is counted exactly once, whatever the edge and the parallelism that it is restored at.
func TestUnalignedUnderBackPressure(t *testing.T) {
	const n = 3000
	want := make([]string, slowKeys)
	for k := range want {
		want[k] = fmt.Sprintf("%d: %d", k, 2*((n-k)/slowKeys+min(k, 1)))
	}
	slices.Sort(want)
	for name, pathway := range pathways {
		for _, before := range []int{1, 3} {
			t.Run(fmt.Sprint(name, " at ", before), func(t *testing.T) {
				inLab(t, func(l *lab) {
					unaligned := func(env *Env) *Env { env.Checkpoints().Unaligned = true; return env }
					into := &notes{}
					r := l.start(slowJob(unaligned(l.env(before)), n, pathway, into))
					r.pass(100 * time.Millisecond)
					began := time.Now()
					r.checkpoint()
					if took := time.Since(began); took > 150*time.Millisecond {
						t.Errorf("the checkpoint took %v", took)
					}
					path := r.handle.Status().Checkpoints.History[0].Location
					if m, _, err := storage.ReadMetadata(l.disk, path); err != nil || inFlight(m) < 100 {
						t.Fatalf("%d records were in flight, %v", inFlight(m), err)
					}
					r.kill()
					into.take()
					for _, after := range []int{before, 2, 5} {
						r := l.start(slowJob(unaligned(l.resumed(after, path)), n, pathway, into))
						if after == 5 { // another one, while restored records are in flight still
							r.pass(20 * time.Millisecond)
							r.checkpoint()
							path := r.handle.Status().Checkpoints.History[0].Location
							r.kill()
							into.take()
							r = l.start(slowJob(unaligned(l.resumed(3, path)), n, pathway, into))
						}
						r.finish()
						expect(t, into.takeSorted(), want...)
					}
				})
			})
		}
	}
}

// TestUnalignedBehindFinishedSources: nothing sends a barrier into full queues any more, and they need not be emptied for it.
func TestUnalignedBehindFinishedSources(t *testing.T) {
	const n = 600
	inLab(t, func(l *lab) {
		unaligned := func(env *Env) *Env { env.Checkpoints().Unaligned = true; return env }
		into := &notes{}
		r := l.start(slowJob(unaligned(l.env(2)), n, pathways["by key"], into))
		r.pass(50 * time.Millisecond)
		path := ""
		for range 3 { // the sources finish with the first
			began := time.Now()
			r.checkpoint()
			if took := time.Since(began); took > 150*time.Millisecond {
				t.Errorf("the checkpoint took %v", took)
			}
			path = r.handle.Status().Checkpoints.History[len(r.handle.Status().Checkpoints.History)-1].Location
			r.pass(10 * time.Millisecond)
		}
		r.kill()
		into.take()
		r = l.start(slowJob(unaligned(l.resumed(2, path)), n, pathways["by key"], into))
		r.finish()
		want := make([]string, slowKeys)
		for k := range want {
			want[k] = fmt.Sprintf("%d: %d", k, 2*((n-k)/slowKeys+min(k, 1)))
		}
		slices.Sort(want)
		expect(t, into.takeSorted(), want...)
	})
}

func inFlight(m *snapshot.Metadata) (records int64) {
	for _, o := range m.Operators {
		for _, s := range o.Subtasks {
			for _, h := range s.InFlight {
				records += h.Records
			}
		}
	}
	return records
}
