package weirtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/weirtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// env is an environment with checkpoints every 100 ms, and quick restarts.
func env(parallelism int) *weir.Env {
	e := weir.NewTestEnv().Parallelism(parallelism).
		Set("restart-strategy.exponential-delay.initial-backoff", 10*time.Millisecond).
		Set("pipeline.auto-watermark-interval", 10*time.Millisecond)
	e.EnableCheckpointing(100*time.Millisecond, weir.ExactlyOnce)
	return e
}

// TestScript plays every kind of step, through an error and a panic.
func TestScript(t *testing.T) {
	for _, parallelism := range []int{1, 2, 5} {
		synctest.Test(t, func(t *testing.T) {
			src := weirtest.NewSource[string]().
				Split("left").Emit("a", "b").AwaitCheckpoint(1).Fail(errors.New("planted")).Emit("c").Pause(20*time.Second).Emit("d").
				Split("right").Emit("e").AwaitCheckpoint(2).Panic("planted").Emit("f").FailTimes(3, errors.New("planted")).Emit("g").
				Split("left").Emit("h")
			out := weirtest.NewSink[string]()
			e := env(parallelism)
			e.From(src).UID("src").Rebalance().To(out.Sink()).UID("out")
			began := time.Now()
			weirtest.Run(t, e)
			out.Expect(t, "a", "b", "c", "d", "e", "f", "g", "h")
			if passed := time.Since(began); passed < 3*time.Second {
				t.Error("the pause was short: ", passed)
			}
			if left := out.Pending(); len(left) > 0 {
				t.Error("still pending: ", left)
			}
		})
	}
}

func at(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }

// arrival is a record, and the watermark that it met.
type arrival struct {
	Value     string
	Watermark time.Time
}

func arrivals(s weir.Stream[string]) weir.Stream[arrival] {
	return s.Process(weir.Function[string, arrival](meet{}))
}

type meet struct{}

func (meet) Process(ctx *weir.Context, v string, out weir.Out[arrival]) error {
	out.Emit(arrival{v, ctx.Watermark()})
	return nil
}

// TestScriptedTime: a watermark stands exactly where the script has it, the least of all splits that are not idle.
func TestScriptedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := weirtest.NewSource[string]().
			Split("left").At(at(1), "a").Watermark(at(1)).At(at(2), "b").Watermark(at(3)).Emit("c").Pause(time.Second).Emit("d").Pause(5*time.Second).Emit("e").
			Split("right").At(at(0), "x").Watermark(at(2)).Pause(2 * time.Second).Idle().Pause(5 * time.Second).Emit("y")
		out := weirtest.NewSink[arrival]()
		e := env(1)
		arrivals(e.From(src).UID("src")).To(out.Sink()).UID("out")
		weirtest.Run(t, e)
		out.ExpectInOrder(t, arrival{"a", time.Time{}}, arrival{"x", time.Time{}}, arrival{"b", time.Time{}}, arrival{"c", at(2)}, arrival{"d", at(2)}, arrival{"e", at(3)},
			arrival{"y", at(3)})
	})
}

// TestEndless: a script grows while it is played, until its end.
func TestEndless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := weirtest.NewSource[int]().Endless()
		src.Split("0").Split("1").Emit(1)
		out := weirtest.NewSink[int]()
		e := env(2)
		e.From(src).UID("src").To(out.Sink()).UID("out")
		job := weirtest.Start(t, e)
		if _, err := out.Wait(t.Context(), 1); err != nil {
			t.Error(err)
		}
		src.Emit(2).Split("0").Emit(3)
		if _, err := out.Wait(t.Context(), 3); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := out.Wait(ctx, 4); err == nil {
			t.Error("there were 4")
		}
		src.Emit(4).End()
		if err := job.Wait(); err != nil {
			t.Error(err)
		}
		if by := out.By(func(v int) bool { return v%2 == 0 }); len(by[true]) != 2 || len(by[false]) != 2 {
			t.Error(by)
		}
	})
}
