package weirtest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/weirtest"
)

// TestStartAt: processing time begins when the test says.
func TestStartAt(t *testing.T) {
	h := weirtest.NewHarness(t, byUser, weirtest.StartAt(noon))
	want(t, "the time", h.Now(), noon.UTC())
	h.Push(event{"ann", 2})
	h.Advance(time.Minute)
	h.Expect("ann 2", "ann event false at 12:01")
}

// tallies is visits with one of its states.
type tallies struct {
	N weir.Value[int64] `state:"n"`
}

func (c *tallies) Process(ctx *weir.KeyedContext[string], e event, out weir.Out[string]) error {
	c.N.Set(c.N.Get() + e.N)
	out.Emit(fmt.Sprint(ctx.Key(), " ", c.N.Get()))
	return nil
}

// TestAllowDropped: state that is declared no more is refused, unless the test lets it go.
func TestAllowDropped(t *testing.T) {
	h := weirtest.NewHarness(t, byUser)
	h.Push(event{"ann", 2})
	s := h.Snapshot()
	piece := func(s weir.Stream[event]) weir.Stream[string] {
		return s.KeyBy(func(e event) string { return e.User }).Process(&tallies{}).UID("visits")
	}
	said := weirtest.Failing(t, func(t testing.TB) { weirtest.NewHarness(t, piece, weirtest.From(s)) })
	if !strings.Contains(said, `state "all" (list): it is stored but not declared any more`) {
		t.Errorf("said %q", said)
	}
	again := weirtest.NewHarness(t, piece, weirtest.From(s), weirtest.AllowDropped())
	again.Push(event{"ann", 3})
	again.Expect("ann 5")
}

// TestWatermarksOfTwo: the watermark of both inputs, of the second, and with the first one idle.
func TestWatermarksOfTwo(t *testing.T) {
	piece := func(events weir.Stream[event], rules weir.Stream[rule]) weir.Stream[string] {
		return events.KeyBy(func(e event) string { return e.User }).ConnectBroadcast(rules.Broadcast()).Process(&match{}).UID("match")
	}
	for what, advance := range map[string]func(h *weirtest.Harness2[event, rule, string]){
		"both":       func(h *weirtest.Harness2[event, rule, string]) { h.Watermark(noon) },
		"one by one": func(h *weirtest.Harness2[event, rule, string]) { h.Watermark1(noon); h.Expect(); h.Watermark2(noon) },
		"one idle":   func(h *weirtest.Harness2[event, rule, string]) { h.Watermark2(noon); h.Expect(); h.Idle1() },
	} {
		h := weirtest.NewHarness2(t, piece)
		h.Push1(event{"ann", 1})
		h.Expect()
		advance(h)
		if got := h.Take(); !slices.Equal(got, []string{"noon of ann"}) {
			t.Errorf("%s: %q", what, got)
		}
	}
}

// TestCancel: a job without an end is cancelled, and has committed what its last checkpoint says.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, out := weirtest.NewSource[string]().At(noon, "ann", "bob").Endless(), weirtest.NewSink[string]()
		e := env(1)
		e.From(src).UID("src").To(out.Sink()).UID("out")
		j := weirtest.Start(t, e)
		synctest.Wait() // they are read
		j.Checkpoint()
		synctest.Wait() // and committed
		out.Expect(t, "ann", "bob")
		src.At(noon, "eve")
		synctest.Wait()
		j.Cancel()
		if err := j.Wait(); err == nil {
			t.Error("a job that was cancelled has FINISHED")
		}
		out.Expect(t, "ann", "bob")
	})
}
