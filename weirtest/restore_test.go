package weirtest_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/cluster"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/weirtest"
)

// guests is what a program keeps of a key; guests2 is what a newer one does, guests3 what another one.
type guests struct {
	N weir.Value[int32] `state:"n"`
}

type guests2 struct {
	N weir.Value[int64] `state:"n"`
}

type guests3 struct {
	N weir.Value[string] `state:"n"`
}

func (f *guests) Process(_ *weir.KeyedContext[int64], _ int64, _ weir.Out[int64]) error {
	f.N.Set(f.N.Get() + 1)
	return nil
}

func (f *guests2) Process(*weir.KeyedContext[int64], int64, weir.Out[int64]) error { return nil }
func (f *guests3) Process(*weir.KeyedContext[int64], int64, weir.Out[int64]) error { return nil }

// visiting is a job of one of them.
func visiting(f weir.KeyedFunction[int64, int64, int64], uid ...string) *weir.Env {
	env := weir.NewTestEnv()
	env.From(weir.Generate(1<<40, func(i int64) int64 { return i }).Rate(10_000)).UID("numbers").
		KeyBy(func(i int64) int64 { return i % 10 }).
		Process(f).UID(uid[0], uid[1:]...).
		To(weir.Discard[int64]())
	return env
}

// stoppedAt runs a job for a moment, and gives the savepoint by which it was stopped.
func stoppedAt(t *testing.T, env *weir.Env) string {
	env.Checkpoints().Savepoints = t.TempDir()
	started := make(chan *cluster.Handle, 1)
	ended := make(chan error, 1)
	ctx := cluster.WithTuning(context.Background(), func(j *cluster.Job) { j.Started = func(h *cluster.Handle) { started <- h } })
	go func() { ended <- env.Execute(ctx, "visits") }()
	h := <-started
	for {
		a, err := h.TriggerSavepoint(t.Context(), jobmaster.Savepoint{Kind: checkpoint.Suspend})
		if err != nil { // not all tasks run yet
			runtime.Gosched()
			continue
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		return a.Location
	}
}

// told is a test that is told about, and does not fail.
type told struct {
	testing.TB
	text   string
	failed bool
}

func (*told) Helper()                      {}
func (*told) Name() string                 { return "told" }
func (t *told) Logf(f string, args ...any) { t.text += fmt.Sprintf(f, args...) }
func (t *told) Fatalf(f string, args ...any) {
	t.failed = true
	t.Logf(f, args...)
	runtime.Goexit()
}

func TestCheckRestore(t *testing.T) {
	at := stoppedAt(t, visiting(&guests{}, "visits"))
	allowing := visiting(&guests2{}, "others").Set("execution.state-recovery.ignore-unclaimed-state", true)
	for _, c := range []struct {
		what   string
		env    *weir.Env
		path   string
		fails  bool
		report string
	}{
		{"as it was", visiting(&guests{}, "visits"), at, false, "it fits."},
		{"migrates", visiting(&guests2{}, "visits"), at, false, "widened from int to long"},
		{"an alias", visiting(&guests2{}, "guests", "visits"), at, false, "was visits"},
		{"renamed", visiting(&guests2{}, "guests"), at, true, `UID("guests", "visits")`},
		{"another type", visiting(&guests3{}, "visits"), at, true, "stored as int, declared as string"},
		{"allowed", allowing, at, false, "what is dropped is gone"},
		{"no snapshot", visiting(&guests{}, "visits"), at + "x", true, "there is no such directory"},
		{"no job", weir.NewTestEnv(), at, true, "the job is empty"},
	} {
		got, done := &told{TB: t}, make(chan bool)
		go func() {
			defer close(done)
			weirtest.CheckRestore(got, c.env, c.path)
		}()
		if <-done; got.failed != c.fails || !strings.Contains(got.text, c.report) {
			t.Errorf("%s: failed: %v, said\n%s\nwant %q", c.what, got.failed, got.text, c.report)
		}
	}
}
