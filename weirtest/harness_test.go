package weirtest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/weirtest"
)

// event is a record of these tests.
type event struct {
	User string
	N    int64
}

// visits counts by user, lists what came, and closes a session after an hour without events.
type visits struct {
	N      weir.Value[int64]       `state:"n"`
	All    weir.List[int64]        `state:"all"`
	Last   weir.Map[string, int64] `state:"last"`
	Short  weir.Value[int64]       `state:"short,ttl=1m"`
	Odd    weir.Side[int64]        `side:"odd"`
	opened bool
}

func (v *visits) Open(weir.OpenContext) error { v.opened = true; return nil }

func (v *visits) Process(ctx *weir.KeyedContext[string], e event, out weir.Out[string]) error {
	if !v.opened {
		return errors.New("not opened")
	}
	if e.N < 0 {
		return fmt.Errorf("%d is negative", e.N)
	}
	if e.N == 13 {
		panic("thirteen")
	}
	v.N.Set(v.N.Get() + e.N)
	v.All.Add(e.N)
	v.Last.Put(fmt.Sprint("of ", e.N%2), e.N)
	v.Short.Set(e.N)
	if e.N%2 == 1 {
		v.Odd.Emit(e.N)
	}
	out.Emit(fmt.Sprint(ctx.Key(), " ", v.N.Get()))
	if t, ok := ctx.Timestamp(); ok {
		ctx.EventTimer(t.Add(time.Hour))
	} else {
		ctx.ProcessingTimer(ctx.Now().Add(time.Minute))
	}
	return nil
}

func (v *visits) OnTimer(ctx *weir.KeyedContext[string], t weir.Timer, out weir.Out[string]) error {
	out.Emit(fmt.Sprint(ctx.Key(), " event ", t.Event, " at ", t.At.UTC().Format("15:04")))
	return nil
}

func (v *visits) EndOfInput(out weir.Out[string]) error {
	out.Emit("over")
	return nil
}

func byUser(s weir.Stream[event]) weir.Stream[string] {
	return s.KeyBy(func(e event) string { return e.User }).Process(&visits{}).UID("visits")
}

func want[T any](t *testing.T, what string, got T, want T) {
	t.Helper()
	if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// TestHarness drives a keyed function through all that a harness can.
func TestHarness(t *testing.T) {
	h := weirtest.NewHarness(t, byUser)
	h.Push(event{"ann", 1}, event{"bob", 2}, event{"ann", 4})
	h.Expect("ann 1", "bob 2", "ann 5")
	n, ok := h.Value[int64]("ann", "n")
	want(t, "ann's n", fmt.Sprint(n, ok), "5 true")
	_, ok = h.Value[int64]("eve", "n")
	want(t, "eve's n", ok, false)
	want(t, "ann's list", h.List[int64]("ann", "all"), []int64{1, 4})
	want(t, "ann's map", h.Map[string, int64]("ann", "last"), map[string]int64{"of 0": 4, "of 1": 1})
	h.Look("bob", func(v *visits) { n = v.N.Get() })
	want(t, "bob's n", n, int64(2))
	keys := h.Keys[string]()
	slices.Sort(keys)
	want(t, "the keys", keys, []string{"ann", "bob"})

	// Processing time.
	want(t, "processing timers", h.ProcessingTimers(), 2)
	h.Advance(59 * time.Second)
	h.Expect()
	h.Advance(time.Second)
	got := h.Take()
	slices.Sort(got)
	want(t, "what the timers say", got, []string{"ann event false at 00:01", "bob event false at 00:01"})
	_, ok = h.Value[int64]("ann", "short")
	want(t, "what lives for a minute, after it", ok, false)

	// Event time.
	h.PushAt(noon, event{"eve", 1})
	h.Expect("eve 1")
	h.Watermark(noon.Add(time.Hour - 1))
	h.Expect()
	h.Watermark(noon.Add(time.Hour))
	want(t, "records", h.TakeRecords(), []weirtest.Record[string]{{Value: "eve event true at 13:00", At: noon.Add(time.Hour)}})
	h.PushAt(noon, event{"eve", 1})
	h.Expect("eve 2")
	want(t, "event timers", h.EventTimers(), 1)
	h.End()
	h.Expect("eve event true at 13:00", "over")
	if err := h.Try(func() { h.Push(event{}) }); err == nil || !strings.Contains(err.Error(), "the input has ended") {
		t.Error(err)
	}
}

// TestHarnessSnapshots takes and restores snapshots, split and merged, in both formats.
func TestHarnessSnapshots(t *testing.T) {
	h := weirtest.NewHarness(t, byUser, weirtest.Parallelism(2))
	users := []string{"ann", "bob", "eve", "dan", "flo", "gus", "hal", "ida"}
	for i, u := range users {
		h.PushAt(noon, event{u, int64(2 * i)})
	}
	h.Watermark(noon)
	native, canonical := h.Checkpoint(), h.Savepoint()
	h.PushAt(noon, event{"ann", 100})
	h.Take()
	for _, s := range []*weirtest.Snapshot{native, canonical} {
		for _, parallelism := range []int{2, 5, 1, 3} {
			h.RestoreAt(s, parallelism)
			for i, u := range users {
				n, _ := h.Value[int64](u, "n")
				want(t, u, n, int64(2*i))
			}
			want(t, "event timers", h.EventTimers(), len(users))
			h.Push(event{"ida", 1})
			h.Expect("ida 15")
			h.Watermark(noon.Add(time.Hour))
			want(t, "timers that fired", len(h.Take()), len(users))
		}
	}
	other := weirtest.NewHarness(t, byUser, weirtest.From(canonical))
	other.Push(event{"bob", 1})
	other.Expect("bob 3")
}

// TestHarnessErrors: what a function must not do is told.
func TestHarnessErrors(t *testing.T) {
	h := weirtest.NewHarness(t, byUser)
	h.Push(event{"ann", 1})
	s := h.Snapshot()
	for _, c := range []struct {
		push event
		want string
	}{
		{event{"ann", -1}, `operator "KeyedProcess": -1 is negative (key ann)`},
		{event{"ann", 13}, `operator "KeyedProcess": panic: thirteen`},
	} {
		err := h.Try(func() { h.Push(event{"ann", 2}, c.push, event{"ann", 2}) })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v; want %q", err, c.want)
		}
		h.Restore(s)
		n, _ := h.Value[int64]("ann", "n")
		want(t, "ann's n", n, int64(1))
	}
	for _, c := range []struct {
		do   func(*weirtest.Harness[event, string])
		want string
	}{
		{func(h *weirtest.Harness[event, string]) { h.Value[string]("ann", "n") }, "is a *weir.Value[int64], and cannot be read as one value of string"},
		{func(h *weirtest.Harness[event, string]) { h.Value[int64](7, "n") }, "a key of int was asked for, but the operator's keys are of string"},
		{func(h *weirtest.Harness[event, string]) { h.Value[int64]("ann", "m") }, `no operator declares a state "m"; there are ["n" "all" "last" "short"]`},
		{func(h *weirtest.Harness[event, string]) { h.Push(event{"ann", -1}) }, "-1 is negative"},
		{func(h *weirtest.Harness[event, string]) { h.Close(); h.Push(event{}) }, "the harness is closed"},
		{func(h *weirtest.Harness[event, string]) { h.Expect("x") }, "what came out is"},
	} {
		said := weirtest.Failing(t, func(t testing.TB) { c.do(weirtest.NewHarness(t, byUser)) })
		if !strings.Contains(said, c.want) {
			t.Errorf("said %q; want %q", said, c.want)
		}
	}
}

// sums keeps what it must not: it changes a record that it was given, one that it has emitted, and the state of another key.
type sums struct {
	Last  weir.Value[[]int64] `state:"last"`
	Bad   string
	kept  []int64
	given []int64
}

func (s *sums) Process(ctx *weir.KeyedContext[int64], vs []int64, out weir.Out[[]int64]) error {
	switch s.Bad {
	case "emitted":
		if s.kept != nil {
			s.kept[0]++
		}
		s.kept = slices.Clone(vs)
		out.Emit(s.kept)
	case "given":
		vs[0] = 100
	case "stored":
		if s.kept != nil {
			s.kept[1]++
		}
		s.kept = slices.Clone(vs)
		s.Last.Set(s.kept)
	case "":
		old := s.Last.Get()
		own := slices.Clone(vs)
		if len(old) > 0 {
			old[1]++ // of its own key's state: allowed
			own = append(own, old...)
		}
		s.Last.Set(own)
		out.Emit(slices.Clone(own))
	}
	return nil
}

// TestChanged: records and states that are changed later are found.
func TestChanged(t *testing.T) {
	for bad, wanted := range map[string]string{
		"": "", "emitted": "a record was changed after it was emitted: it was [1 1], and is now [2 1]", "given": "an input: a record was changed",
		"stored": "the state of key 1 of operator \"KeyedProcess\" (uid \"sums\") was changed while records of other keys were processed",
	} {
		said := weirtest.Failing(t, func(t testing.TB) {
			h := weirtest.NewHarness(t, func(s weir.Stream[[]int64]) weir.Stream[[]int64] {
				return s.KeyBy(func(v []int64) int64 { return v[0] }).Process(&sums{Bad: bad}).UID("sums")
			})
			for i := range int64(200) {
				h.Push([]int64{1 + i%3, 1})
			}
		})
		if wanted == "" && said != "" || !strings.Contains(said, wanted) {
			t.Errorf("%s: said %q; want %q", bad, said, wanted)
		}
	}
}

// match joins payments with the rules that are broadcast, lists what it has seen by subtask, and misuses its state if told to.
type match struct {
	Limit weir.BroadcastMap[string, int64] `state:"limit"`
	Spent weir.Value[int64]                `state:"spent"`
	Seen  weir.OperatorList[string]        `state:"seen"`
	Bad   string
}

type rule struct {
	User  string
	Limit int64
}

func (m *match) Process(ctx *weir.KeyedContext[string], e event, out weir.Out[string]) error {
	m.Seen.Add(e.User)
	m.Spent.Set(m.Spent.Get() + e.N)
	if limit, ok := m.Limit.Get(ctx.Key()); ok && m.Spent.Get() > limit {
		out.Emit(fmt.Sprint(ctx.Key(), " spends ", m.Spent.Get()))
	}
	ctx.EventTimer(noon)
	return nil
}

func (m *match) ProcessBroadcast(_ *weir.Context, r rule, _ weir.Out[string]) error {
	m.Limit.Put(r.User, r.Limit)
	if m.Bad == "broadcast" {
		m.Spent.Set(1)
	}
	return nil
}

func (m *match) OnTimer(ctx *weir.KeyedContext[string], _ weir.Timer, out weir.Out[string]) error {
	out.Emit("noon of " + ctx.Key())
	return nil
}

func (m *match) CheckpointCompleted(int64) error {
	if m.Bad == "completed" {
		m.Spent.Set(1)
	}
	return nil
}

// TestHarness2: two inputs, one of them broadcast; the less of their watermarks is the operator's.
func TestHarness2(t *testing.T) {
	piece := func(bad string) func(weir.Stream[event], weir.Stream[rule]) weir.Stream[string] {
		return func(events weir.Stream[event], rules weir.Stream[rule]) weir.Stream[string] {
			return events.KeyBy(func(e event) string { return e.User }).ConnectBroadcast(rules.Broadcast()).Process(&match{Bad: bad}).UID("match")
		}
	}
	h := weirtest.NewHarness2(t, piece(""), weirtest.Parallelism(3))
	h.Push2(rule{"ann", 10})
	h.Push1(event{"ann", 10}, event{"bob", 100}, event{"ann", 1})
	h.Expect("ann spends 11")
	for subtask := range 3 {
		want(t, "the limits", h.Broadcast[string, int64](subtask, "limit"), map[string]int64{"ann": 10})
	}
	seen := h.Elements[string]("seen")
	slices.Sort(seen)
	want(t, "what was seen", seen, []string{"ann", "ann", "bob"})
	h.Watermark1(noon)
	h.Expect()
	h.Idle2()
	got := h.Take()
	slices.Sort(got)
	want(t, "what the timers say", got, []string{"noon of ann", "noon of bob"})
	h.RestoreAt(h.Checkpoint(), 2)
	h.End1()
	h.Push2(rule{"bob", 1})
	h.End2()
	want(t, "the limits", h.Broadcast[string, int64](1, "limit"), map[string]int64{"ann": 10, "bob": 1})

	for bad, do := range map[string]func(h *weirtest.Harness2[event, rule, string]){
		"broadcast": func(h *weirtest.Harness2[event, rule, string]) { h.Push2(rule{"ann", 1}) },
		"completed": func(h *weirtest.Harness2[event, rule, string]) { h.Checkpoint() },
	} {
		h := weirtest.NewHarness2(t, piece(bad))
		h.Push1(event{"ann", 1})
		if err := h.Try(func() { do(h) }); err == nil || !strings.Contains(err.Error(), "state") {
			t.Errorf("%s: state that was used where there is no key: %v", bad, err)
		}
	}
}

// TestPieces: what a harness cannot drive is refused, and says why.
func TestPieces(t *testing.T) {
	for _, c := range []struct {
		piece func(weir.Stream[event]) weir.Stream[event]
		want  string
	}{
		{func(s weir.Stream[event]) weir.Stream[event] { return s }, "does nothing with a stream"},
		{func(s weir.Stream[event]) weir.Stream[event] {
			keep := func(e event) event { return e }
			return s.Map(keep).Rebalance().Map(keep)
		}, "between \"Map\" and \"Map\" records change their subtask (REBALANCE)"},
		{func(s weir.Stream[event]) weir.Stream[event] {
			return s.KeyBy(func(e event) string { return e.User }).Process(weir.Keyed(func(*weir.KeyedContext[string], event, weir.Out[event]) error { return nil })).UID("a").
				KeyBy(func(e event) string { return e.User }).Reduce(func(a, _ event) event { return a }).UID("b")
		}, "records change their subtask (HASH)"},
	} {
		if said := weirtest.Failing(t, func(t testing.TB) { weirtest.NewHarness(t, c.piece) }); !strings.Contains(said, c.want) {
			t.Errorf("said %q; want %q", said, c.want)
		}
	}
	h := weirtest.NewHarness(t, func(s weir.Stream[event]) weir.Stream[int64] {
		return s.Map(func(e event) event { return e }).Filter(func(e event) bool { return e.N > 0 }).Map(func(e event) int64 { return e.N }).NewChain()
	}, weirtest.Parallelism(2))
	h.Push(event{"a", 1}, event{"b", 0}, event{"c", 3})
	h.Expect(1, 3)
	side := weirtest.NewHarness(t, func(s weir.Stream[event]) weir.Stream[int64] {
		return s.KeyBy(func(e event) string { return e.User }).Process(&visits{}).UID("visits").SideOutput[int64]("odd")
	})
	side.Push(event{"a", 1}, event{"a", 2}, event{"b", 3})
	side.Expect(1, 3)
}
