package weirtest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/weirtest"
)

// tb stands for the t of a test: examples have none.
type tb struct{ testing.TB }

func (tb) Helper()                      {}
func (tb) Cleanup(func())               {}
func (tb) Failed() bool                 { return false }
func (tb) Error(args ...any)            { fmt.Println(args...) }
func (tb) Errorf(f string, args ...any) { fmt.Printf(f+"\n", args...) }
func (tb) Fatal(args ...any)            { panic(fmt.Sprint(args...)) }
func (tb) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

// session counts the clicks of a user, and tells of them when there was none for half an hour.
type session struct {
	Clicks weir.Value[int]       `state:"clicks"`
	Last   weir.Value[time.Time] `state:"last"`
}

func (s *session) Process(ctx *weir.KeyedContext[string], click string, out weir.Out[string]) error {
	at, _ := ctx.Timestamp()
	s.Clicks.Set(s.Clicks.Get() + 1)
	s.Last.Set(at)
	ctx.EventTimer(at.Add(30 * time.Minute))
	return nil
}

func (s *session) OnTimer(ctx *weir.KeyedContext[string], t weir.Timer, out weir.Out[string]) error {
	if t.At.Equal(s.Last.Get().Add(30 * time.Minute)) {
		out.Emit(fmt.Sprintf("%s: %d clicks", ctx.Key(), s.Clicks.Get()))
		s.Clicks.Clear()
		s.Last.Clear()
	}
	return nil
}

// sessions is the piece of a job that the examples test.
func sessions(clicks weir.Stream[string]) weir.Stream[string] {
	user := func(click string) string { return strings.Fields(click)[0] }
	return clicks.KeyBy(user).Process(&session{}).UID("sessions")
}

// A function is driven by hand: records, time, state, a snapshot that is restored on more subtasks.
func ExampleHarness() {
	var t tb // in a test: its *testing.T
	nine := time.Date(2030, 1, 1, 9, 0, 0, 0, time.UTC)
	h := weirtest.NewHarness(t, sessions)
	h.PushAt(nine, "ann /index", "bob /index")
	h.PushAt(nine.Add(20*time.Minute), "ann /news")
	clicks, _ := h.Value[int]("ann", "clicks")
	fmt.Println("ann has clicked", clicks, "times;", h.EventTimers(), "timers are set")

	h.RestoreAt(h.Snapshot(), 3)
	h.Watermark(nine.Add(30 * time.Minute))
	fmt.Println(h.Take())
	h.Watermark(nine.Add(time.Hour))
	fmt.Println(h.Take())
	// Output:
	// ann has clicked 2 times; 3 timers are set
	// [bob: 1 clicks]
	// [ann: 2 clicks]
}

// A whole job, from a script to a sink that collects. In a test, t.Run and synctest.Test are one around it: then no pause takes time.
func ExampleSource() {
	var t tb // in a test: its *testing.T
	nine := time.Date(2030, 1, 1, 9, 0, 0, 0, time.UTC)
	clicks := weirtest.NewSource[string]().
		Split("server 1").At(nine, "ann /index").Watermark(nine.Add(time.Hour)).AwaitCheckpoint(1).
		Split("server 2").At(nine, "bob /index").Fail(fmt.Errorf("the server is down")).At(nine.Add(time.Minute), "bob /news")
	out := weirtest.NewSink[string]()

	env := weir.NewTestEnv().Parallelism(2)
	env.EnableCheckpointing(10*time.Millisecond, weir.ExactlyOnce)
	sessions(env.From(clicks).UID("clicks")).To(out.Sink()).UID("out")
	weirtest.Run(t, env)

	out.Expect(t, "ann: 1 clicks", "bob: 2 clicks")
	fmt.Println(len(out.Committed()), "sessions,", len(out.Pending()), "pending")
	// Output:
	// 2 sessions, 0 pending
}

// A sink that is driven by hand: what is written is visible when its checkpoint has completed.
func ExampleNewSinkHarness() {
	var t tb // in a test: its *testing.T
	out := weirtest.NewSink[string]()
	h := weirtest.NewSinkHarness(t, out.Sink())
	h.Push("a", "b")
	s := h.Snapshot()
	fmt.Println(out.Committed(), out.Pending())
	h.Complete(s)
	fmt.Println(out.Committed(), out.Pending())
	// Output:
	// [] [a b]
	// [a b] []
}

// A test that has a job crash, by ten seeds.
func ExampleCrash() {
	_ = TestSessions // func TestSessions(t *testing.T), below
}

func TestSessions(t *testing.T) {
	clicks := make([]string, 300)
	for i := range clicks {
		clicks[i] = fmt.Sprint("user", i%10, " /", i)
	}
	weirtest.Crash{Job: func(env *weir.Env, w *weirtest.World) {
		every := weir.Watermarks[string]{Timestamp: func(click string) time.Time { return time.UnixMilli(int64(len(click))) }}
		sessions(env.From(weir.FromSlice(clicks), every).UID("clicks")).To(w.Sink[string]("out")).UID("out")
	}}.Run(t)
}

// TestJob drives a job in simulated time: checkpoints, savepoints, a restart from one at another parallelism.
func TestJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		src, out := weirtest.NewSource[string]().At(noon, "ann 1", "bob 1").Endless(), weirtest.NewSink[string]()
		build := func(parallelism int) *weir.Env {
			e := env(parallelism)
			sessions(e.From(src).UID("src")).To(out.Sink()).UID("out")
			return e
		}
		first := weirtest.Start(t, build(1))
		first.Checkpoint()
		if path := first.Savepoint(dir); !strings.HasPrefix(path, dir) {
			t.Error(path)
		}
		path := first.Stop(dir)
		src.At(noon, "ann 2").Watermark(at(60))
		second := weirtest.Start(t, build(3).Set("execution.state-recovery.path", path))
		if _, err := out.Wait(t.Context(), 2); err != nil {
			t.Error(err)
		}
		src.End()
		if err := second.Wait(); err != nil {
			t.Error(err)
		}
		out.Expect(t, "ann: 2 clicks", "bob: 1 clicks")
	})
}
