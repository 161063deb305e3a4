package weir_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
)

// remembering has a keyed state of every kind, changes values in place, and tells all that it remembers.
type remembering struct {
	V Value[[]int64]                     `state:"v"`
	L List[string]                       `state:"l"`
	M Map[string, []int64]               `state:"m"`
	R Reducing[int64]                    `state:"r"`
	A Aggregating[int64, []int64, int64] `state:"a"`
}

func newRemembering() *remembering {
	f := &remembering{}
	f.R.Reduce = func(a, b int64) int64 { return max(a, b) }
	f.A.Fold = func(acc []int64, v int64) []int64 { return append(acc, v) }
	f.A.Result = func(acc []int64) (sum int64) {
		for _, v := range acc {
			sum += v
		}
		return sum
	}
	return f
}

func (f *remembering) Process(ctx *KeyedContext[int64], v int64, out Out[string]) error {
	all := f.V.Get()
	if len(all) == 0 {
		all = append(all, 0)
	}
	all[0] += v // in place
	f.V.Set(append(all, v))
	f.L.Add(fmt.Sprint("l", v))
	parity := []string{"even", "odd"}[v%2]
	old, _ := f.M.Get(parity)
	f.M.Put(parity, append(old, v))
	f.R.Add(v)
	f.A.Add(v)
	var list, entries []string
	for s := range f.L.All() {
		list = append(list, s)
	}
	for k, vs := range f.M.All() {
		entries = append(entries, fmt.Sprint(k, vs))
	}
	out.Emit(fmt.Sprint(ctx.Key(), ": ", f.V.Get(), list, entries, f.R.Get(), " ", f.A.Get()))
	return nil
}

// remembered is what remembering tells of key k after vs.
func remembered(k int64, vs []int64) string {
	sum, most := int64(0), int64(0)
	var list, entries []string
	byParity := map[string][]int64{}
	for _, v := range vs {
		sum, most = sum+v, max(most, v)
		list = append(list, fmt.Sprint("l", v))
		parity := []string{"even", "odd"}[v%2]
		byParity[parity] = append(byParity[parity], v)
	}
	for _, parity := range []string{"even", "odd"} {
		if len(byParity[parity]) > 0 {
			entries = append(entries, fmt.Sprint(parity, byParity[parity]))
		}
	}
	return fmt.Sprint(k, ": ", append([]int64{sum}, vs...), list, entries, most, " ", sum)
}

// TestStateOfEveryKindComesBack as it was at the checkpoint, at any parallelism, though values were changed in place after it.
func TestStateOfEveryKindComesBack(t *testing.T) {
	for _, to := range []int{1, 2, 3, 5} {
		inLab(t, func(l *lab) {
			source, n := newTape[int64](1), &notes{}
			run := func(env *Env) *running {
				env.From(source).UID("tape").Parallelism(1).KeyBy(func(v int64) int64 { return v % 10 }).
					Process(newRemembering()).UID("remembering").To(note[string](n)).Parallelism(1)
				return l.start(env)
			}
			r := run(l.env(2))
			source.write(0, numbers(50)...)
			r.settle()
			r.checkpoint()
			source.write(0, numbers(30)...)
			r.settle()
			at := r.savepoint(checkpoint.Savepoint)
			source.write(0, 9999, 8888)
			r.settle()
			r.kill()
			n.take()
			source.mu.Lock()
			source.lanes[0] = append(source.lanes[0][:80:80], 100, 101, 102, 103, 104, 105, 106, 107, 108, 109)
			source.mu.Unlock()
			r = run(l.resumed(to, at))
			source.end()
			r.finish()
			got := n.takeSorted()
			var want []string
			for k := range int64(10) {
				var vs []int64
				for _, v := range append(append(numbers(50), numbers(30)...), 100+k) {
					if v%10 == k {
						vs = append(vs, v)
					}
				}
				want = append(want, remembered(k, vs))
			}
			slices.Sort(want)
			expect(t, got, want...)
		})
	}
}

// aging forgets.
type aging struct {
	V Value[int64]      `state:"v,ttl=10s"`
	L List[int64]       `state:"l,ttl=10s"`
	M Map[int64, int64] `state:"m,ttl=10s"`
}

// Process stores a number; 0 asks for what is stored.
func (f *aging) Process(_ *KeyedContext[int64], v int64, out Out[string]) error {
	if v != 0 {
		f.V.Set(v)
		f.L.Add(v)
		f.M.Put(v, v)
		return nil
	}
	var list, keys []int64
	for x := range f.L.All() {
		list = append(list, x)
	}
	for x := range f.M.All() {
		keys = append(keys, x)
	}
	x, ok := f.V.Lookup()
	out.Emit(fmt.Sprint(x, ok, list, keys))
	return nil
}

// TestTimeToLive: from the last write; downtime counts; a clock that was set back makes nothing expire, nor live for ever.
func TestTimeToLive(t *testing.T) {
	inLab(t, func(l *lab) {
		source, n := newTape[int64](1), &notes{}
		now := int64(100)
		l.clock = func() int64 { return now * 1e9 }
		run := func(env *Env) *running {
			env.From(source).UID("tape").KeyBy(func(int64) int64 { return 7 }).Process(&aging{}).UID("aging").To(note[string](n))
			return l.start(env)
		}
		r := run(l.env(1))
		at := func(second int64, v int64, want ...string) {
			t.Helper()
			now = second
			source.write(0, v)
			r.settle()
			expect(t, n.take(), want...)
		}
		at(100, 1)
		at(105, 2)
		at(109, 0, "2 true [1 2] [1 2]")
		at(111, 0, "2 true [2] [2]")
		saved := r.savepoint(checkpoint.Suspend)
		now = 130
		r = run(l.resumed(1, saved))
		at(130, 0, "0 false [] []")
		at(130, 3)
		at(50, 0, "3 true [3] [2 3]") // by this clock 2 is young, and not cleaned up yet
		at(139, 0, "3 true [3] [3]")
		at(141, 0, "0 false [] []")
		saved = r.savepoint(checkpoint.Suspend)
		r = run(l.resumed(1, saved))
		at(142, 0, "0 false [] []")
	})
}

// lists has operator state of the kinds that are divided and united.
type lists struct {
	Split OperatorList[int64] `state:"split"`
	Union UnionList[int64]    `state:"union"`
	N     *notes              `weir:"shared"`
	Mine  bool                // keeps only its own in Open
}

func (f *lists) Open(ctx OpenContext) error {
	f.N.add("split %d, union %d", f.Split.Len(), f.Union.Len())
	if f.Mine {
		var own []int64
		for v := range f.Union.All() {
			if v%int64(ctx.Parallelism) == int64(ctx.Subtask) {
				own = append(own, v)
			}
		}
		f.Union.Update(own)
	}
	return nil
}

func (f *lists) Process(_ *Context, v int64, out Out[int64]) error {
	f.Split.Add(v)
	f.Union.Add(v)
	return nil
}

func (f *lists) EndOfInput(out Out[int64]) error {
	for v := range f.Split.All() {
		out.Emit(v)
	}
	return nil
}

// TestListsAreDealtOutAnew at another parallelism: 3, then 5, then 2. Each element is there once.
func TestListsAreDealtOutAnew(t *testing.T) {
	inLab(t, func(l *lab) {
		source, n, out := newTape[int64](1), &notes{}, &notes{}
		run := func(p int, from string) *running {
			env := l.env(p)
			if from != "" {
				env = l.resumed(p, from)
			}
			env.From(source).UID("tape").Parallelism(1).Rebalance().Process(&lists{N: n, Mine: true}).UID("lists").To(note[int64](out)).Parallelism(1)
			return l.start(env)
		}
		r := run(3, "")
		expect(t, n.take(), "split 0, union 0", "split 0, union 0", "split 0, union 0")
		source.write(0, numbers(12)...)
		r.settle()
		r = run(5, r.savepoint(checkpoint.Suspend))
		expect(t, n.takeSorted(), "split 2, union 12", "split 2, union 12", "split 2, union 12", "split 3, union 12", "split 3, union 12")
		r = run(2, r.savepoint(checkpoint.Suspend))
		expect(t, n.takeSorted(), "split 6, union 12", "split 6, union 12")
		source.end()
		r.finish()
		var got []int64
		for _, line := range out.take() {
			var v int64
			fmt.Sscan(line, &v)
			got = append(got, v)
		}
		if slices.Sort(got); !slices.Equal(got, numbers(12)) {
			t.Errorf("got %v", got)
		}
	})
}

// TestUnionListsGrow with every restore, unless each subtask keeps only its own.
func TestUnionListsGrow(t *testing.T) {
	for _, mine := range []bool{false, true} {
		inLab(t, func(l *lab) {
			source, n := newTape[int64](1), &notes{}
			run := func(env *Env) *running {
				env.From(source).UID("tape").Parallelism(1).Rebalance().Process(&lists{N: n, Mine: mine}).UID("lists").To(Discard[int64]())
				return l.start(env)
			}
			r := run(l.env(2))
			source.write(0, 1, 2)
			r.settle()
			var sizes []string
			for range 3 {
				n.take()
				r = run(l.resumed(2, r.savepoint(checkpoint.Suspend)))
				sizes = append(sizes, n.take()[0])
			}
			want := []string{"split 1, union 2", "split 1, union 4", "split 1, union 8"}
			if mine {
				want = []string{"split 1, union 2", "split 1, union 2", "split 1, union 2"}
			}
			expect(t, sizes, want...)
		})
	}
}

// rules is a broadcast function.
type rules struct {
	Rules BroadcastMap[string, int64] `state:"rules"`
}

func (f *rules) Process(ctx *KeyedContext[int64], v int64, out Out[string]) error {
	sum := int64(0)
	for _, x := range f.Rules.All() {
		sum += x
	}
	out.Emit(fmt.Sprint(v, " by ", f.Rules.Len(), " rules: ", sum))
	return nil
}

func (f *rules) ProcessBroadcast(_ *Context, v string, _ Out[string]) error {
	f.Rules.Put(v, int64(len(v)))
	return nil
}

// TestBroadcastStateIsEverywhere, also where the parallelism has changed.
func TestBroadcastStateIsEverywhere(t *testing.T) {
	inLab(t, func(l *lab) {
		source, names, n := newTape[int64](1), newTape[string](1), &notes{}
		run := func(env *Env) *running {
			rulesOf := env.From(names).UID("names").Parallelism(1).Broadcast()
			env.From(source).UID("tape").Parallelism(1).KeyBy(func(v int64) int64 { return v }).
				ConnectBroadcast(rulesOf).Process(&rules{}).UID("rules").To(note[string](n)).Parallelism(1)
			return l.start(env)
		}
		r := run(l.env(2))
		names.write(0, "a", "bb")
		r.settle()
		for _, p := range []int{5, 1, 3} {
			r = run(l.resumed(p, r.savepoint(checkpoint.Suspend)))
			source.write(0, numbers(20)...)
			r.settle()
			for _, line := range n.take() {
				if !strings.HasSuffix(line, "by 2 rules: 3") {
					t.Errorf("at parallelism %d: %s", p, line)
				}
			}
		}
	})
}

// copied shows what the copies of a function share.
type copied struct {
	Own    int64
	Shared *atomic.Int64 `weir:"shared"`
	Fail   *atomic.Bool  `weir:"shared"`
}

func (f *copied) Process(_ *Context, v int64, out Out[string]) error {
	f.Own++
	out.Emit(fmt.Sprint(v, ": own ", f.Own, ", shared ", f.Shared.Add(1)))
	if f.Fail.Load() {
		f.Fail.Store(false)
		panic("planted")
	}
	return nil
}

// TestEachSubtaskWorksOnItsOwnCopy, made anew after a restart from what the program had made.
func TestEachSubtaskWorksOnItsOwnCopy(t *testing.T) {
	inLab(t, func(l *lab) {
		source, n := newTape[int64](2), &notes{}
		var shared atomic.Int64
		var fail atomic.Bool
		f := &copied{Own: 10, Shared: &shared, Fail: &fail}
		env := l.env(2)
		env.From(source).UID("tape").Process(f).To(note[string](n))
		r := l.start(env)
		for v := range int64(4) {
			source.write(int(v%2), v)
			r.settle()
		}
		expect(t, n.take(), "0: own 11, shared 1", "1: own 11, shared 2", "2: own 12, shared 3", "3: own 12, shared 4")
		r.checkpoint()
		fail.Store(true)
		source.write(0, 4)
		pass(time.Minute)
		r.settle()
		if got := n.take(); got[len(got)-1] != "4: own 11, shared 6" || f.Own != 10 {
			t.Errorf("got %q; the original has %d", got, f.Own)
		}
	})
}

// outside uses state where there is no key.
type outside struct {
	N     Value[int64] `state:"n"`
	Where string
}

func (f *outside) Process(_ *KeyedContext[int64], v int64, _ Out[int64]) error {
	f.N.Set(v)
	if f.Where == "goroutine" {
		failed := make(chan any)
		go func() {
			defer func() { failed <- recover() }()
			f.N.Set(1)
		}()
		if r := <-failed; r != nil {
			panic(r)
		}
	}
	return nil
}

func (f *outside) EndOfInput(Out[int64]) error {
	if f.Where == "end" {
		f.N.Set(1)
	}
	return nil
}

func (f *outside) Open(OpenContext) error {
	if f.Where == "open" {
		f.N.Set(1)
	}
	return nil
}

// TestKeyedStateWithoutAKey fails the task, with a message that says so and no stack.
func TestKeyedStateWithoutAKey(t *testing.T) {
	for _, where := range []string{"open", "end"} {
		inLab(t, func(l *lab) {
			env := l.env(1).Set("restart-strategy.type", "none")
			env.From(FromSlice(numbers(1))).UID("numbers").KeyBy(func(v int64) int64 { return v }).Process(&outside{Where: where}).UID("outside").Name("the outsider").To(Discard[int64]())
			got := l.fails(env, `operator "the outsider", subtask 1 of 1`, `"n"`, "outside a keyed call", "(state_semantics_test.go:")
			if strings.Contains(got, "internal/") || strings.Contains(got, "panic") {
				t.Errorf("the message has a stack:\n%s", got)
			}
		})
	}
}
