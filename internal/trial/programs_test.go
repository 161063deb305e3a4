package trial

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirstream/weir"
)

// A line of output is of one of three kinds:
//
//	value 3 13      there is one of each; at least once: there may be more
//	=sum 3 49800    the same, but at least once anything may stand there
//	+taken 12       the numbers of all lines "+taken" make up the reference's; at least once: or more
//
// bag counts lines; those with a plus are added up under their name.
type bag map[string]int64

func (b bag) add(line string) {
	if name, n, sums := strings.Cut(line, " "); sums && strings.HasPrefix(line, "+") {
		var v int64
		fmt.Sscan(n, &v)
		b[name] += v
		return
	}
	b[line]++
}

// differences tells, of at most some lines, how often they are there and not as they should.
func differences(got, want bag, atLeastOnce bool) (wrong []string) {
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, line := range slices.Sorted(maps.Keys(all)) {
		switch n, should := got[line], want[line]; {
		case n == should, atLeastOnce && (n > should || strings.HasPrefix(line, "=")):
		default:
			wrong = append(wrong, fmt.Sprintf("%q is there %d times, should be %d", line, n, should))
		}
	}
	const most = 10
	if more := len(wrong) - most; more > 0 {
		wrong = append(wrong[:most], fmt.Sprint("and ", more, " more"))
	}
	return wrong
}

// stage is what a program is built on.
type stage struct {
	records int64
	rate    float64 // records a second; 0: all at once
	faults  *faults
	sink    weir.Sink[string]
}

// integers are first, first+step and so on.
func (s stage) integers(n, first, step int64) weir.Source[int64, weir.Lane] {
	return shake[int64, weir.Lane](weir.Generate(n, func(i int64) int64 { return first + i*step }).Rate(s.rate), s.faults)
}

// program is a job and what must come of it.
type program struct {
	name      string
	build     func(*weir.Env, stage)
	reference func(records int64) bag
}

var programs = []program{
	{"totals", buildTotals, wantTotals},
	{"rules", buildRules, wantRules},
	{"routes", buildRoutes, wantRoutes},
	{"windows", buildWindows, wantWindows},
}

func programOf(name string) program {
	return programs[slices.IndexFunc(programs, func(p program) bool { return p.name == name })]
}

// troubled is the optional methods, all of which may fail.
type troubled struct {
	Faults *faults `weir:"shared"`
}

func (t *troubled) Open(weir.OpenContext) error     { return t.Faults.meet("open") }
func (t *troubled) CheckpointCompleted(int64) error { return t.Faults.meet("completed") }

// ---- totals: the reference job J1, a count and a sum by key.

const totalsKeys = 10

func buildTotals(env *weir.Env, s stage) {
	env.From(s.integers(s.records, 1, 1)).UID("integers").
		KeyBy(func(v int64) int64 { return v % totalsKeys }).
		Process(&totals{troubled: troubled{s.faults}, Records: s.records}).UID("totals").
		To(s.sink).UID("out")
}

type totals struct {
	troubled
	Count   weir.Value[int64] `state:"count"`
	Sum     weir.Value[int64] `state:"sum"`
	Records int64
}

func (t *totals) Process(ctx *weir.KeyedContext[int64], v int64, out weir.Out[string]) error {
	t.Count.Set(t.Count.Get() + 1)
	t.Sum.Set(t.Sum.Get() + v)
	out.Emit(fmt.Sprint("value ", ctx.Key(), " ", v))
	out.Emit(fmt.Sprint("count ", ctx.Key(), " ", t.Count.Get()))
	if t.Count.Get() == keyed(t.Records, totalsKeys, ctx.Key()) {
		out.Emit(fmt.Sprint("=sum ", ctx.Key(), " ", t.Sum.Get()))
	}
	return t.Faults.meet("process")
}

// keyed is how many of the integers 1 to n are key modulo keys.
func keyed(n, keys, key int64) int64 {
	if key == 0 {
		return n / keys
	}
	return (n + keys - key) / keys
}

func wantTotals(n int64) bag {
	b, counts, sums := bag{}, map[int64]int64{}, map[int64]int64{}
	for v := int64(1); v <= n; v++ {
		key := v % totalsKeys
		counts[key]++
		sums[key] += v
		b.add(fmt.Sprint("value ", key, " ", v))
		b.add(fmt.Sprint("count ", key, " ", counts[key]))
	}
	for key, sum := range sums {
		b.add(fmt.Sprint("=sum ", key, " ", sum))
	}
	return b
}

// ---- rules: a keyed stream beside broadcast rules. A number that comes before its rule waits for it in the state of its key,
// until the end at the latest, so the output is the same whoever is first.

const (
	rulesCount = 60
	rulesKeys  = 17
)

type rule struct{ ID, Factor int64 }

func buildRules(env *weir.Env, s stage) {
	rules := weir.Generate(rulesCount, func(i int64) rule { return rule{i, i*i + 3} }).Rate(s.rate / 10)
	broadcast := env.From(shake[rule, weir.Lane](rules, s.faults)).UID("rules").Broadcast()
	env.From(s.integers(s.records, 1, 1)).UID("numbers").
		KeyBy(func(v int64) int64 { return v % rulesKeys }).
		ConnectBroadcast(broadcast).
		Process(&apply{troubled: troubled{s.faults}}).UID("apply").
		To(s.sink).UID("out")
}

type apply struct {
	troubled
	Rules weir.BroadcastMap[int64, int64] `state:"rules"`
	Wait  weir.List[int64]                `state:"wait"`
	twice bool
}

func (a *apply) Process(ctx *weir.KeyedContext[int64], v int64, out weir.Out[string]) error {
	a.Wait.Add(v)
	a.settle(out)
	ctx.EventTimer(weir.EndOfTime())
	return a.Faults.meet("process")
}

// settle emits what does not wait for a rule.
func (a *apply) settle(out weir.Out[string]) {
	var left []int64
	for v := range a.Wait.All() {
		if factor, ok := a.Rules.Get(v % rulesCount); ok {
			out.Emit(fmt.Sprint("applied ", v, " ", v*factor))
		} else {
			left = append(left, v)
		}
	}
	a.Wait.Update(left)
}

func (a *apply) ProcessBroadcast(_ *weir.Context, r rule, out weir.Out[string]) error {
	if _, again := a.Rules.Get(r.ID); again {
		out.Emit(fmt.Sprint("=rule twice ", r.ID))
	}
	a.Rules.Put(r.ID, r.Factor)
	return a.Faults.meet("process")
}

func (a *apply) OnTimer(_ *weir.KeyedContext[int64], _ weir.Timer, out weir.Out[string]) error {
	a.settle(out)
	if a.Wait.Len() > 0 || a.Rules.Len() != rulesCount {
		out.Emit(fmt.Sprint("=at the end ", a.Wait.Len(), " wait, and there are rules: ", a.Rules.Len()))
	}
	return a.Faults.meet("timer")
}

func wantRules(n int64) bag {
	b := bag{}
	for v := int64(1); v <= n; v++ {
		id := v % rulesCount
		b.add(fmt.Sprint("applied ", v, " ", v*(id*id+3)))
	}
	return b
}

// ---- routes: a union, an operator with side outputs, all ways to distribute records, and operator state.

func buildRoutes(env *weir.Env, s stage) {
	even := env.From(s.integers(s.records/2, 0, 2)).UID("even")
	odd := env.From(s.integers(s.records/2, 1, 2)).UID("odd")
	routed := even.Union(odd).Process(&route{troubled: troubled{s.faults}}).UID("route")
	thirds := routed.SideOutput[int64]("thirds").
		KeyBy(func(v int64) string { return fmt.Sprint("key ", v%7) }).
		Process(&number{troubled: troubled{s.faults}, Last: weir.Reducing[int64]{Reduce: add}}).UID("number")
	fifths := routed.SideOutput[string]("fifths").Rescale().Map(func(v string) string { return v }).NewChain()
	rest := routed.Rebalance().
		FlatMap(func(v string, out weir.Out[string]) error { out.Emit(v); return s.faults.meet("process") }).
		Partition(func(v string, n int) int { return len(v) % n }).
		Map(func(v string) string { return v })
	rest.Union(thirds, fifths, thirds.Global().Map(func(v string) string { return "again " + v })).To(s.sink).UID("out")
}

type route struct {
	troubled
	Thirds weir.Side[int64]          `side:"thirds"`
	Fifths weir.Side[string]         `side:"fifths"`
	Taken  weir.OperatorList[string] `state:"taken"`
}

func (r *route) Process(_ *weir.Context, v int64, out weir.Out[string]) error {
	r.Taken.Add(fmt.Sprint(v))
	if v%3 == 0 {
		r.Thirds.Emit(v)
	}
	if v%5 == 0 {
		r.Fifths.Emit(fmt.Sprint("fifth ", v))
	}
	out.Emit(fmt.Sprint("every ", v))
	return r.Faults.meet("process")
}

func (r *route) EndOfInput(out weir.Out[string]) error {
	out.Emit(fmt.Sprint("+taken ", r.Taken.Len()))
	return r.Faults.meet("end")
}

type number struct {
	troubled
	Last weir.Reducing[int64]     `state:"last"`
	Seen weir.Map[int64, Sighted] `state:"seen"`
}

// Sighted is a value that is not flat.
type Sighted struct{ Order []int64 }

func (n *number) Process(ctx *weir.KeyedContext[string], v int64, out weir.Out[string]) error {
	n.Last.Add(1)
	s, again := n.Seen.Get(v % 4)
	if again && len(s.Order) == 0 {
		out.Emit("=a sight without order")
	}
	s.Order = append(s.Order, v)
	n.Seen.Put(v%4, s)
	sum := 0
	for _, s := range n.Seen.All() {
		sum += len(s.Order)
	}
	out.Emit(fmt.Sprint("third ", ctx.Key(), " ", n.Last.Get()))
	if int64(sum) != n.Last.Get() {
		out.Emit(fmt.Sprint("=third ", ctx.Key(), " sees ", sum, " of ", n.Last.Get()))
	}
	return n.Faults.meet("process")
}

func add(a, b int64) int64 { return a + b }

func wantRoutes(n int64) bag {
	b, counts := bag{}, map[int64]int64{}
	for v := range n / 2 * 2 {
		b.add(fmt.Sprint("every ", v))
		if v%3 == 0 {
			counts[v%7]++
			third := fmt.Sprint("third key ", v%7, " ", counts[v%7])
			b.add(third)
			b.add("again " + third)
		}
		if v%5 == 0 {
			b.add(fmt.Sprint("fifth ", v))
		}
	}
	b.add(fmt.Sprint("+taken ", n/2*2))
	return b
}

// ---- windows: every number comes twice. The second is dropped by a state that lives an hour; the first waits for a timer of
// event time. Beside it a state that lives for a millisecond, and timers of processing time, of which only this much is certain:
// what is there is what was written last, and none fires that was not registered.

const (
	windowsKeys = 13
	windowSize  = 50
)

// moment is the event time of a number: it counts in milliseconds.
func moment(v int64) time.Time { return time.UnixMilli(v) }

func buildWindows(env *weir.Env, s stage) {
	twice := shake[int64, weir.Lane](weir.Generate(2*s.records, func(i int64) int64 { return 1 + i/2 }).Rate(2*s.rate), s.faults)
	env.From(twice, weir.Watermarks[int64]{Timestamp: moment}).UID("twice").
		KeyBy(func(v int64) int64 { return v % windowsKeys }).
		Process(&window{troubled: troubled{s.faults}}).UID("window").
		To(s.sink).UID("out")
}

type window struct {
	troubled
	Seen  weir.Map[int64, bool]  `state:"seen,ttl=1h"` // the numbers, and whether their window has closed
	Sums  weir.Map[int64, int64] `state:"sums"`        // by the window's number
	Short weir.Value[int64]      `state:"short,ttl=1ms"`
	Last  weir.Value[int64]      `state:"last"`
	Due   weir.Map[int64, bool]  `state:"due"` // processing timers that have not fired
}

func (w *window) Process(ctx *weir.KeyedContext[int64], v int64, out weir.Out[string]) error {
	if short, ok := w.Short.Lookup(); ok && short != w.Last.Get() {
		out.Emit(fmt.Sprint("=short is ", short, ", last ", w.Last.Get()))
	}
	w.Short.Set(v)
	w.Last.Set(v)
	due := ctx.Now().Add(3 * time.Millisecond)
	w.Due.Put(due.UnixNano(), true)
	ctx.ProcessingTimer(due)
	if _, again := w.Seen.Get(v); again {
		out.Emit(fmt.Sprint("=dropped ", v))
		return w.Faults.meet("process")
	}
	w.Seen.Put(v, false)
	number := v / windowSize
	sum, _ := w.Sums.Get(number)
	w.Sums.Put(number, sum+v)
	closes := moment((number+1)*windowSize - 1)
	if !ctx.Watermark().Before(closes) {
		out.Emit(fmt.Sprint("=late ", v))
	}
	ctx.EventTimer(closes)
	return w.Faults.meet("process")
}

func (w *window) OnTimer(ctx *weir.KeyedContext[int64], t weir.Timer, out weir.Out[string]) error {
	if !t.Event {
		if _, registered := w.Due.Get(t.At.UnixNano()); !registered {
			out.Emit(fmt.Sprint("=a timer that nobody registered: ", t.At))
		}
		w.Due.Delete(t.At.UnixNano())
		return w.Faults.meet("timer")
	}
	number := t.At.UnixMilli() / windowSize
	for v, closed := range w.Seen.All() {
		if v/windowSize == number && !closed {
			w.Seen.Put(v, true)
			out.Emit(fmt.Sprint("closed ", v))
		}
	}
	sum, _ := w.Sums.Get(number)
	w.Sums.Delete(number)
	out.Emit(fmt.Sprint("=window ", number, " of ", ctx.Key(), ": ", sum))
	return w.Faults.meet("timer")
}

func wantWindows(n int64) bag {
	b, sums := bag{}, map[[2]int64]int64{}
	for v := int64(1); v <= n; v++ {
		b.add(fmt.Sprint("=dropped ", v))
		b.add(fmt.Sprint("closed ", v))
		sums[[2]int64{v / windowSize, v % windowsKeys}] += v
	}
	for of, sum := range sums {
		b.add(fmt.Sprint("=window ", of[0], " of ", of[1], ": ", sum))
	}
	return b
}
