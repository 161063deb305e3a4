package state

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirstream/weir/internal/base"
)

func newTimers(t testing.TB, r base.KeyGroupRange) (*Keyed[int64], *Timers[int64]) {
	var now int64
	k := newKeyed[int64](t, r, &now, nil)
	return k, k.Timers(true)
}

func seek(k *Keyed[int64], key int64) { k.Seek(k.Hash(key), key) }

// popAll pops until nothing is due.
func popAll(ts *Timers[int64], upTo base.EventTime) (all []timer[int64]) {
	for {
		_, key, at, ok := ts.Pop(upTo)
		if !ok {
			return all
		}
		all = append(all, timer[int64]{key, at})
	}
}

func TestTimersFireInOrderAndOnce(t *testing.T) {
	k, ts := newTimers(t, allGroups)
	for _, x := range []timer[int64]{{1, 30}, {2, 10}, {1, 10}, {1, 30}, {3, 20}, {1, math.MaxInt64}, {2, math.MinInt64}} {
		seek(k, x.key)
		ts.Register(x.at)
	}
	if at, ok := ts.Next(); !ok || at != math.MinInt64 {
		t.Fatalf("next is %d", at)
	}
	got := popAll(ts, 20)
	slices.SortStableFunc(got, func(a, b timer[int64]) int { return int(a.key - b.key) })
	want := []timer[int64]{{1, 10}, {2, math.MinInt64}, {2, 10}, {3, 20}}
	if !slices.Equal(got, want) {
		t.Fatalf("popped %v", got)
	}
	if got := popAll(ts, math.MaxInt64); !slices.Equal(got, []timer[int64]{{1, 30}, {1, math.MaxInt64}}) {
		t.Fatalf("popped %v", got)
	}
	if _, ok := ts.Next(); ok || ts.Len() != 0 {
		t.Fatal("something is left")
	}
}

func TestDeletedTimersDoNotFire(t *testing.T) {
	k, ts := newTimers(t, allGroups)
	seek(k, 1)
	ts.Register(10)
	ts.Register(20)
	ts.Delete(10)
	ts.Delete(15)
	if at, _ := ts.Next(); at != 20 {
		t.Errorf("next is %d", at)
	}
	ts.Register(10) // again
	if got := popAll(ts, 100); len(got) != 2 || got[0].at != 10 || got[1].at != 20 {
		t.Errorf("popped %v", got)
	}
}

// The queue does not grow with what is deleted, also when one timer is set and deleted again and again.
func TestQueueIsCompacted(t *testing.T) {
	k, ts := newTimers(t, allGroups)
	seek(k, 1)
	ts.Register(0) // keeps the dead from the top
	for i := range base.EventTime(10_000) {
		ts.Register(i%3 + 10)
		ts.Delete(i%3 + 10)
		if len(ts.queue) > 2*ts.Len()+queueSlack+1 {
			t.Fatalf("%d entries for %d timers", len(ts.queue), ts.Len())
		}
	}
	if got := popAll(ts, math.MaxInt64); len(got) != 1 {
		t.Errorf("popped %v", got)
	}
}

func TestTimersEqualAModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	k, ts := newTimers(t, base.RangeOf(1, 2))
	model := map[timer[int64]]bool{}
	for op := range 20_000 {
		key := rnd.Int64N(200)
		if h := k.Hash(key); h < k.least || h > k.most {
			continue
		}
		x := timer[int64]{key, base.EventTime(rnd.IntN(100))}
		seek(k, key)
		switch rnd.IntN(4) {
		case 0, 1:
			ts.Register(x.at)
			model[x] = true
		case 2:
			ts.Delete(x.at)
			delete(model, x)
		case 3:
			_, key, at, ok := ts.Pop(50)
			popped := timer[int64]{key, at}
			if ok != slices.ContainsFunc(keysOf(model), func(x timer[int64]) bool { return x.at <= 50 }) {
				t.Fatalf("op %d: Pop says %v", op, ok)
			}
			if ok && (!model[popped] || slices.ContainsFunc(keysOf(model), func(x timer[int64]) bool { return x.at < at })) {
				t.Fatalf("op %d: popped %v", op, popped)
			}
			delete(model, popped)
		}
		if ts.Len() != len(model) {
			t.Fatalf("op %d: %d timers, want %d", op, ts.Len(), len(model))
		}
	}
	must(t, checkIndex(&ts.set))
}

func keysOf[K comparable](m map[K]bool) (ks []K) {
	for k := range m {
		ks = append(ks, k)
	}
	return ks
}

// Timers are state: each fires once after a restore at another parallelism, in the subtask that owns its key, though no
// record of the key comes again.
func TestTimersRescale(t *testing.T) {
	k, ts := newTimers(t, allGroups)
	for key := range int64(1000) {
		seek(k, key)
		ts.Register(base.EventTime(key))
		k.Timers(false).Register(base.EventTime(-key))
	}
	file := fileOf(t, k.Snapshot(0, 0))
	fired := map[timer[int64]]int{}
	for i := range 3 {
		r, rts := newTimers(t, base.RangeOf(i, 3))
		restoreFrom(t, r, file)
		for _, x := range slices.Concat(popAll(rts, 2000), popAll(r.Timers(false), 2000)) {
			fired[x]++
			if h := r.Hash(x.key); h < r.least || h > r.most {
				t.Errorf("timer %v fired in subtask %d", x, i)
			}
		}
	}
	for key := range int64(1000) {
		for _, at := range []base.EventTime{base.EventTime(key), base.EventTime(-key)} {
			if key > 0 && fired[timer[int64]{key, at}] != 1 {
				t.Fatalf("timer %d of key %d fired %d times", at, key, fired[timer[int64]{key, at}])
			}
		}
	}
}

// Many timers of one key are as quick as as many keys with one: they are spread by their times.
func TestManyTimersOfOneKey(t *testing.T) {
	k, ts := newTimers(t, allGroups)
	seek(k, 7)
	const n = 200_000
	for at := range base.EventTime(n) {
		ts.Register(at * 1000)
	}
	s := ts.set
	if s.stats.gates == 0 {
		t.Error("no gate was made: the test tests nothing")
	}
	if s.pages > n/8 {
		t.Errorf("%d pages", s.pages)
	}
	must(t, checkIndex(&ts.set))
	if got := popAll(ts, math.MaxInt64); len(got) != n {
		t.Errorf("%d fired", len(got))
	}
	if ts.set.pages > 2*len(ts.set.root) {
		t.Errorf("%d pages are left of none", ts.set.pages)
	}
}
