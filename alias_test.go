package weir_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/storage"
)

// An operator's state follows its UID: wherever the operator stands in its chain, and, by an alias, when the UID becomes another.

// TestRenamedUIDs: all operators have other UIDs, and the records that were in flight between them are counted once, as what was counted.
func TestRenamedUIDs(t *testing.T) {
	const n = 1500
	want := slowCounts(n)
	older := func(env *Env, into *notes) *Env {
		one, two := env.From(FromSlice(numbers(n))).UID("one"), env.From(FromSlice(numbers(n))).UID("two")
		s := one.Union(two).Rebalance().Map(slowly).UID("slow").KeyBy(func(v int64) int64 { return v % slowKeys })
		s.Process(&keyCount{}).UID("count").To(totals{into}).UID("totals")
		return env
	}
	newer := func(env *Env, into *notes) *Env {
		one, two := env.From(FromSlice(numbers(n))).UID("first", "one"), env.From(FromSlice(numbers(n))).UID("second", "two")
		s := one.Union(two).Rebalance().Map(slowly).UID("lazy", "slow").KeyBy(func(v int64) int64 { return v % slowKeys })
		s.Process(&keyCount{}).UID("sum", "total", "count").To(totals{into}).UID("sums", "totals")
		return env
	}
	inLab(t, func(l *lab) {
		into := &notes{}
		r := l.start(older(unaligned(l.env(2)), into))
		r.pass(100 * time.Millisecond)
		overtaken := r.checkpointed()
		if m, _, err := storage.ReadMetadata(l.disk, overtaken); err != nil || inFlight(m) < 100 {
			t.Fatalf("%d records were in flight, %v", inFlight(m), err)
		}
		r.kill()
		into.take()
		for _, parallelism := range []int{2, 3} {
			r = l.start(newer(unaligned(l.resumed(parallelism, overtaken)), into))
			r.pass(100 * time.Millisecond)
			again := r.checkpointed() // by the new names
			r.kill()
			into.take()
			r = l.start(newer(unaligned(l.resumed(1, again)), into))
			r.finish()
			expect(t, into.takeSorted(), want...)
		}
	})
}

// slowCounts is what slowJob counts.
func slowCounts(n int) []string {
	want := make([]string, slowKeys)
	for k := range want {
		want[k] = fmt.Sprintf("%d: %d", k, 2*((n-k)/slowKeys+min(k, 1)))
	}
	slices.Sort(want)
	return want
}

// TestAnAliasOfWhatIsThere: where the snapshot has the new UID too, that one counts, and what is stored under the old one has no place.
func TestAnAliasOfWhatIsThere(t *testing.T) {
	inLab(t, func(l *lab) {
		source := newTape[int64](1)
		byKey := func(v int64) int64 { return v }
		env := l.env(1)
		s := env.From(source).UID("tape").KeyBy(byKey)
		s.Process(&rememberer{}).UID("old").To(Discard[int64]())
		s.Process(&rememberer{}).UID("new").To(Discard[int64]())
		r := l.start(env)
		source.write(0, 1)
		r.settle()
		at := leaves[0].do(r)
		again := func() *Env {
			env := l.resumed(1, at)
			env.From(source).UID("tape").KeyBy(byKey).Process(&rememberer{}).UID("new", "old").To(Discard[int64]())
			return env
		}
		l.fails(again(), `operator "old" (KeyedProcess) has state (value "last", timers) that the program has no place for`)
		source.end()
		l.start(again().Set("execution.state-recovery.ignore-unclaimed-state", true)).finish()
	})
}

// gathering keeps all records, and tells how many at the end.
type gathering struct {
	Seen OperatorList[int64] `state:"seen"`
	Name string
	into *notes `weir:"shared"`
}

func (f *gathering) Process(_ *Context, v int64, out Out[int64]) error {
	f.Seen.Add(v)
	out.Emit(v)
	return nil
}

func (f *gathering) EndOfInput(Out[int64]) error {
	for v := range f.Seen.All() {
		f.into.add("%s %d", f.Name, v)
	}
	return nil
}

// chains are ways in which the two operators of a job stand to each other.
var chains = map[string]func(s, a Stream[int64]) (between Stream[int64], parallelism int){
	"in one chain":           func(s, a Stream[int64]) (Stream[int64], int) { return a, 0 },
	"at another parallelism": func(s, a Stream[int64]) (Stream[int64], int) { return a, 3 },
	"rebalanced":             func(s, a Stream[int64]) (Stream[int64], int) { return a.Rebalance(), 0 },
	"in a chain of its own":  func(s, a Stream[int64]) (Stream[int64], int) { return a, -1 },
	"with another between":   func(s, a Stream[int64]) (Stream[int64], int) { return a.Map(func(v int64) int64 { return v }), 0 },
	"beside each other":      func(s, a Stream[int64]) (Stream[int64], int) { a.To(Discard[int64]()).UID("end"); return s, 0 },
}

// TestChainsDoNotMatter: a chain is broken or joined, and each of its operators has its state.
func TestChainsDoNotMatter(t *testing.T) {
	for before := range chains {
		for after := range chains {
			t.Run(before+", then "+after, func(t *testing.T) {
				inLab(t, func(l *lab) { breakChain(l, before, after) })
			})
		}
	}
}

func breakChain(l *lab, before, after string) {
	source, into := newTape[int64](2), &notes{}
	build := func(env *Env, how string) *Env {
		s := env.From(source).UID("tape")
		a := s.Process(&gathering{Name: "a", into: into}).UID("a")
		between, parallelism := chains[how](s, a)
		b := between.Process(&gathering{Name: "b", into: into}).UID("b")
		switch {
		case parallelism > 0:
			b = b.Parallelism(parallelism)
		case parallelism < 0:
			b = b.NewChain()
		}
		b.To(Discard[int64]()).UID("out")
		return env
	}
	r := l.start(build(unaligned(l.env(2)), before))
	source.write(0, 1, 2, 3)
	source.write(1, 4)
	r.settle()
	at := r.checkpointed()
	r.kill()
	r = l.start(build(unaligned(l.resumed(2, at)), after))
	source.write(1, 5)
	source.end()
	r.finish()
	var want []string
	for _, name := range []string{"a", "b"} {
		for v := range 5 {
			want = append(want, fmt.Sprint(name, " ", v+1))
		}
	}
	expect(l, into.takeSorted(), want...)
}

// TestAnEdgeBecomesAChain: what was in flight between two tasks comes first in the one that they have become.
func TestAnEdgeBecomesAChain(t *testing.T) {
	const n = 600
	inLab(t, func(l *lab) {
		source := newTape[int64](2)
		source.write(0, numbers(n)...)
		build := func(env *Env, into *notes, joined bool) *Env {
			slow := env.From(source).UID("one").Map(slowly).UID("slow")
			if !joined {
				slow = slow.NewChain()
			}
			counted(slow, &keyCount{}).To(totals{into})
			return env
		}
		into := &notes{}
		r := l.start(build(unaligned(l.env(2)), into, false))
		r.pass(50 * time.Millisecond)
		at := r.checkpointed()
		if m, _, err := storage.ReadMetadata(l.disk, at); err != nil || inFlight(m) < 50 {
			t.Fatalf("%d records were in flight, %v", inFlight(m), err)
		}
		r.kill()
		into.take()
		source.end()
		l.start(build(unaligned(l.resumed(2, at)), into, true)).finish()
		var want []string
		for k := range slowKeys {
			want = append(want, fmt.Sprintf("%d: %d", k, (n-k)/slowKeys+min(k, 1)))
		}
		slices.Sort(want)
		expect(t, into.takeSorted(), want...)
	})
}
