package weir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// sorted is a sorted copy.
func sorted[T any](xs []T, compare func(a, b T) int) []T {
	xs = slices.Clone(xs)
	slices.SortFunc(xs, compare)
	return xs
}

func execute(t *testing.T, env *Env) {
	t.Helper()
	if err := env.Execute(t.Context(), t.Name()); err != nil {
		t.Fatal(err)
	}
}

func numbers(n int) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = int64(i + 1)
	}
	return all
}

func TestStatelessOperators(t *testing.T) {
	for _, p := range []int{1, 3} {
		t.Run(fmt.Sprint("parallelism ", p), func(t *testing.T) {
			env := NewTestEnv().Parallelism(p)
			var got []string
			env.From(FromSlice(numbers(1000))).UID("numbers").
				Filter(func(v int64) bool { return v%10 == 0 }).
				Map(func(v int64) int64 { return v / 10 }).
				FlatMap(func(v int64, out Out[string]) error {
					for range v % 3 {
						out.Emit(fmt.Sprint(v))
					}
					return nil
				}).
				Rebalance().
				TryMap(func(s string) (string, error) { return s + "!", nil }).
				To(Collect(&got)).UID("got")
			execute(t, env)
			var want []string
			for v := range 101 {
				for range v % 3 {
					want = append(want, fmt.Sprint(v)+"!")
				}
			}
			if g, w := sorted(got, strings.Compare), sorted(want, strings.Compare); !slices.Equal(g, w) {
				t.Errorf("got %d records %v, want %d", len(g), g[:min(10, len(g))], len(w))
			}
		})
	}
}

type keyTotal struct{ Key, Count, Sum int64 }

// totals counts and sums the records of a key, and fails once when told to.
type totals struct {
	Count  Value[int64]  `state:"count"`
	Sum    Value[int64]  `state:"sum"`
	Faults *atomic.Int64 `weir:"shared"`
	Fault  func(int64) error
}

func (f *totals) Process(ctx *KeyedContext[int64], v int64, out Out[keyTotal]) error {
	if f.Fault != nil && v == 600 && f.Faults.Add(1) == 1 {
		if err := f.Fault(v); err != nil {
			return err
		}
	}
	f.Count.Set(f.Count.Get() + 1)
	f.Sum.Set(f.Sum.Get() + v)
	out.Emit(keyTotal{ctx.Key(), f.Count.Get(), f.Sum.Get()})
	return nil
}

// TestFailuresLeaveNoTrace runs the reference job with an error or a panic in mid-run: the committed output is that of a run
// without.
func TestFailuresLeaveNoTrace(t *testing.T) {
	faults := map[string]func(int64) error{
		"none":  nil,
		"error": func(v int64) error { return errors.New("planted") },
		"panic": func(v int64) error { panic("planted") },
	}
	for name, fault := range faults {
		for _, p := range []int{1, 2, 5} {
			for _, dir := range []string{"", t.TempDir()} {
				t.Run(fmt.Sprintf("%s, parallelism %d, directory %v", name, p, dir != ""), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { leavesNoTrace(t, p, dir, fault) })
				})
			}
		}
	}
}

func leavesNoTrace(t *testing.T, parallelism int, dir string, fault func(int64) error) {
	env := NewTestEnv().Parallelism(parallelism)
	env.EnableCheckpointing(20*time.Millisecond, ExactlyOnce).Storage = dir
	var got []keyTotal
	var faults atomic.Int64
	env.From(FromSlice(numbers(1000)).Rate(4000)).UID("numbers").
		KeyBy(func(v int64) int64 { return v % 10 }).
		Process(&totals{Faults: &faults, Fault: fault}).UID("totals").
		To(Collect(&got)).UID("got")
	execute(t, env)
	if fault != nil && faults.Load() < 2 {
		t.Errorf("the fault was met %d times: no restart read it again", faults.Load())
	}
	checkTotals(t, got)
}

func checkTotals(t *testing.T, got []keyTotal) {
	t.Helper()
	counts := map[int64][]int64{}
	last := map[int64]keyTotal{}
	for _, k := range got {
		counts[k.Key] = append(counts[k.Key], k.Count)
		if k.Count > last[k.Key].Count {
			last[k.Key] = k
		}
	}
	for key := range int64(10) {
		cs := sorted(counts[key], cmp.Compare[int64])
		if want := numbers(100); !slices.Equal(cs, want) {
			t.Errorf("key %d: counts %v, want 1 to 100", key, cs)
		}
		want := 100*key + 49500
		if key == 0 {
			want = 50500
		}
		if last[key].Sum != want {
			t.Errorf("key %d: sum %d, want %d", key, last[key].Sum, want)
		}
	}
}

func TestResumeFromLatest(t *testing.T) {
	dir := t.TempDir()
	run := func(ctx context.Context, p int, from string, rate float64) (got []keyTotal, err error) {
		env := NewTestEnv().Parallelism(p)
		env.EnableCheckpointing(10*time.Millisecond, ExactlyOnce).Storage = dir
		if from != "" {
			env.Set("execution.state-recovery.path", from)
		}
		env.From(FromSlice(numbers(1000)).Rate(rate)).UID("numbers").
			KeyBy(func(v int64) int64 { return v % 10 }).
			Process(&totals{}).UID("totals").
			To(Collect(&got)).UID("got")
		err = env.Execute(ctx, "resume")
		return got, err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	first, err := run(ctx, 3, "", 2000)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the cancelled run returned %v", err)
	}
	second, err := run(t.Context(), 5, "latest", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d records committed by the first run, %d by the second", len(first), len(second))
	if len(first) == 0 || len(second) == 0 {
		t.Error("a run committed nothing")
	}
	// The second run commits once more what the last checkpoint of the first had prepared: Collect has no memory of it.
	all := map[keyTotal]bool{}
	for _, k := range second {
		if all[k] {
			t.Errorf("%v was committed twice by the second run", k)
		}
		all[k] = true
	}
	for _, k := range first {
		all[k] = true
	}
	checkTotals(t, slices.Collect(maps.Keys(all)))
}

func TestSideOutputsAndUnion(t *testing.T) {
	env := NewTestEnv().Parallelism(2)
	var odd, even, both []int64
	split := env.From(FromSlice(numbers(100))).UID("numbers").Process(&parity{})
	split.To(Collect(&even)).UID("even")
	odds := split.SideOutput[int64]("odd")
	odds.To(Collect(&odd)).UID("odd")
	split.Union(odds).To(Collect(&both)).UID("both")
	execute(t, env)
	if len(odd) != 50 || len(even) != 50 || !slices.Equal(sorted(both, cmp.Compare[int64]), numbers(100)) {
		t.Errorf("%d odd, %d even, both %v", len(odd), len(even), both)
	}
}

type parity struct {
	Odd Side[int64] `side:"odd"`
}

func (p *parity) Process(_ *Context, v int64, out Out[int64]) error {
	if v%2 == 1 {
		p.Odd.Emit(v)
	} else {
		out.Emit(v)
	}
	return nil
}

type rates struct {
	Rates BroadcastMap[string, int64] `state:"rates"`
	Sum   Value[int64]                `state:"sum"`
	Wait  List[int64]                 `state:"wait"`
}

func (r *rates) Process(ctx *KeyedContext[string], v int64, out Out[string]) error {
	r.Sum.Set(r.Sum.Get() + v)
	r.Wait.Add(v)
	ctx.EventTimer(time.Unix(1000, 0))
	return nil
}

func (r *rates) ProcessBroadcast(_ *Context, v string, out Out[string]) error {
	r.Rates.Put(v, int64(len(v)))
	return nil
}

func (r *rates) OnTimer(ctx *KeyedContext[string], at Timer, out Out[string]) error {
	var waited []string
	for v := range r.Wait.All() {
		waited = append(waited, fmt.Sprint(v))
	}
	out.Emit(fmt.Sprintf("%s: %d of %s, %d rates", ctx.Key(), r.Sum.Get(), strings.Join(waited, "+"), r.Rates.Len()))
	r.Sum.Clear()
	r.Wait.Clear()
	return nil
}

func TestBroadcastStateAndTimersAtTheEnd(t *testing.T) {
	env := NewTestEnv().Parallelism(3)
	var got []string
	names := env.From(FromSlice([]string{"a", "bb", "ccc"})).UID("names").Parallelism(1).Broadcast()
	env.From(FromSlice(numbers(6))).UID("numbers").
		KeyBy(func(v int64) string { return fmt.Sprint("key", v%2) }).
		ConnectBroadcast(names).
		Process(&rates{}).UID("rates").
		To(Collect(&got)).UID("got").Parallelism(1)
	execute(t, env)
	slices.Sort(got)
	for i, prefix := range []string{"key0: 12 of ", "key1: 9 of "} {
		if len(got) != 2 || !strings.HasPrefix(got[i], prefix) || !strings.HasSuffix(got[i], ", 3 rates") {
			t.Fatalf("got %q", got)
		}
	}
}

func TestTwoInputs(t *testing.T) {
	env := NewTestEnv().Parallelism(2)
	var got []string
	left := env.From(FromSlice(numbers(4))).UID("left").KeyBy(func(v int64) int64 { return v })
	right := env.From(FromSlice([]string{"1", "22", "333"})).UID("right").KeyBy(func(s string) int64 { return int64(len(s)) })
	left.Connect(right).Process(&pair{}).UID("pair").To(Collect(&got)).UID("got")
	execute(t, env)
	slices.Sort(got)
	if want := []string{"1+1", "2+22", "3+333"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

type pair struct {
	Left  Value[int64]       `state:"left"`
	Right Map[string, int64] `state:"right"`
}

func (p *pair) Process1(_ *KeyedContext[int64], v int64, out Out[string]) error {
	p.Left.Set(v)
	for s := range p.Right.All() {
		out.Emit(fmt.Sprint(v, "+", s))
	}
	return nil
}

func (p *pair) Process2(_ *KeyedContext[int64], s string, out Out[string]) error {
	p.Right.Put(s, 1)
	if v, ok := p.Left.Lookup(); ok {
		out.Emit(fmt.Sprint(v, "+", s))
	}
	return nil
}

func TestReduceAndScan(t *testing.T) {
	env := NewTestEnv().Parallelism(2)
	var sums []int64
	var counts []int
	by := env.From(FromSlice(numbers(100))).UID("numbers").KeyBy(func(v int64) bool { return v%2 == 0 })
	by.Reduce(func(a, b int64) int64 { return a + b }).UID("sum").To(Collect(&sums)).UID("sums")
	by.Scan("n", func(n int, _ int64) (int, int) { return n + 1, n + 1 }).UID("n").To(Collect(&counts)).UID("counts")
	execute(t, env)
	if slices.Max(sums) != 2550 || len(sums) != 100 || slices.Max(counts) != 50 {
		t.Errorf("largest sum %d of %d, largest count %d", slices.Max(sums), len(sums), slices.Max(counts))
	}
}

func TestEventTime(t *testing.T) {
	env := NewTestEnv().Parallelism(2)
	var got []string
	at := func(v int64) time.Time { return time.Unix(v, 0) }
	env.From(FromSlice(numbers(50)), Watermarks[int64]{Timestamp: at}).UID("numbers").
		KeyBy(func(v int64) int64 { return v % 5 }).
		Process(&tens{}).UID("tens").
		To(Collect(&got)).UID("got")
	execute(t, env)
	slices.Sort(got)
	want := []string{}
	for k := range 5 {
		for e := range 6 {
			if n := inWindow(int64(k), int64(e)); n > 0 {
				want = append(want, fmt.Sprintf("%d@%d: %d", k, (e+1)*10, n))
			}
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func inWindow(k, e int64) (n int) {
	for v := int64(1); v <= 50; v++ {
		if v%5 == k && v/10 == e {
			n++
		}
	}
	return n
}

// tens counts the records of a key in windows of ten seconds.
type tens struct {
	N Map[int64, int64] `state:"n"`
}

func (f *tens) Process(ctx *KeyedContext[int64], v int64, _ Out[string]) error {
	at, _ := ctx.Timestamp()
	end := (at.Unix()/10 + 1) * 10
	n, _ := f.N.Get(end)
	f.N.Put(end, n+1)
	ctx.EventTimer(time.Unix(end, 0))
	return nil
}

func (f *tens) OnTimer(ctx *KeyedContext[int64], at Timer, out Out[string]) error {
	end := at.At.Unix()
	n, _ := f.N.Get(end)
	f.N.Delete(end)
	out.Emit(fmt.Sprintf("%d@%d: %d", ctx.Key(), end, n))
	return nil
}

func TestRefusals(t *testing.T) {
	t.Run("no uid", func(t *testing.T) {
		env := NewTestEnv()
		env.From(FromSlice(numbers(1))).UID("numbers").KeyBy(func(v int64) int64 { return v }).Process(&totals{}).To(Discard[keyTotal]())
		err := env.Execute(t.Context(), "x")
		if err == nil || !strings.Contains(err.Error(), `add .UID("keyedprocess")`) {
			t.Error(err)
		}
	})
	t.Run("wrong signature", func(t *testing.T) {
		env := NewTestEnv()
		env.From(FromSlice(numbers(1))).UID("numbers").KeyBy(func(v int64) int64 { return v }).Process(&badTimer{}).UID("t").To(Discard[int64]())
		err := env.Execute(t.Context(), "x")
		if err == nil || !strings.Contains(err.Error(), "OnTimer") || !strings.Contains(err.Error(), reflect.TypeFor[Timer]().String()) {
			t.Error(err)
		}
	})
}

type badTimer struct{}

func (*badTimer) Process(*KeyedContext[int64], int64, Out[int64]) error { return nil }
func (*badTimer) OnTimer(int) error                                     { return nil }
