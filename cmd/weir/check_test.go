package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/cluster"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// shopJob is a real job in several versions, which its first argument names. Its source makes a file "opened" where it is opened.
func shopJob() {
	env := weir.NewEnv()
	env.EnableCheckpointing(0, weir.ExactlyOnce).Storage = "data"
	version := "none"
	if len(os.Args) > 1 {
		version = os.Args[1]
	}
	var tally weir.KeyedFunction[int64, int64, int64] = &tally[int32]{}
	uid := []string{"tally"}
	switch version {
	case "first":
	case "wider":
		tally = &tallyMore[int64]{}
	case "text":
		tally = &tallyText{}
	case "renamed":
		uid = []string{"tallies"}
	case "alias":
		uid = []string{"tallies", "tally"}
	case "homeless":
		uid = []string{""}
	case "prints":
		fmt.Println("nothing to do today")
		return
	case "fails":
		fmt.Fprintln(os.Stderr, "shop: no such version")
		os.Exit(3)
	case "deaf":
		env = weir.NewTestEnv()
	case "twenty":
		twenty(env)
		execute(env)
		return
	}
	numbers := env.From[int64](opening{weir.Generate(1<<40, func(i int64) int64 { return i }).Rate(1000)}).UID("numbers")
	if version == "gone" {
		numbers.To(weir.Discard[int64]()).UID("out")
	} else {
		numbers.KeyBy(func(i int64) int64 { return i % 4 }).Process(tally).UID(uid[0], uid[1:]...).To(weir.Discard[int64]()).UID("out")
	}
	fmt.Println("the shop's own output")
	execute(env)
}

func execute(env *weir.Env) {
	if err := env.Execute(context.Background(), "counting"); err != nil {
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	}
}

// twenty is a job of 20 operators, of which nine keep state by key.
func twenty(env *weir.Env) {
	numbers := env.From(weir.Generate(1<<40, func(i int64) int64 { return i }).Rate(10_000)).UID("numbers")
	for i := range 9 {
		numbers = numbers.Map(func(i int64) int64 { return i }).UID(fmt.Sprint("map ", i))
		numbers = numbers.KeyBy(func(i int64) int64 { return i % 100 }).Process(&tallyMore[int64]{}).UID(fmt.Sprint("tally ", i))
	}
	numbers.To(weir.Discard[int64]()).UID("out")
}

// BenchmarkCheck is the whole command: weir check of a job with 20 operators, against a savepoint of it.
func BenchmarkCheck(b *testing.B) {
	shop, err := exec.LookPath("shop")
	if err != nil {
		b.Fatal(err)
	}
	b.Chdir(b.TempDir())
	env := weir.NewTestEnv()
	twenty(env)
	at := stopped(b, env)
	var cpu time.Duration
	for b.Loop() {
		c := exec.Command("weir", "check", "-s", at, shop, "twenty")
		if out, err := c.CombinedOutput(); err != nil || strings.Count(string(out), "\nsame") != 19 {
			b.Fatalf("%v\n%s", err, out)
		}
		cpu += c.ProcessState.UserTime() + c.ProcessState.SystemTime() // with the job's
	}
	b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "cpu-ms/op")
}

// stopped runs a job until it can be stopped, and gives the savepoint.
func stopped(b *testing.B, env *weir.Env) string {
	env.Checkpoints().Savepoints = "."
	handle, ended := make(chan *cluster.Handle, 1), make(chan error, 1)
	ctx := cluster.WithTuning(b.Context(), func(j *cluster.Job) {
		j.Started = func(h *cluster.Handle) { handle <- h }
		j.Log = slog.New(slog.DiscardHandler)
	})
	go func() { ended <- env.Execute(ctx, "counting") }()
	for h := <-handle; ; runtime.Gosched() {
		a, err := h.TriggerSavepoint(b.Context(), jobmaster.Savepoint{Kind: checkpoint.Suspend})
		if err != nil { // not all tasks run yet
			continue
		}
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
		return a.Location
	}
}

type tally[N int32 | int64] struct {
	N weir.Value[N] `state:"n"`
}

type tallyMore[N int32 | int64] struct {
	N    weir.Value[N]      `state:"n"`
	Last weir.Value[string] `state:"last"`
}

type tallyText struct {
	N weir.Value[string] `state:"n"`
}

func (f *tally[N]) Process(_ *weir.KeyedContext[int64], _ int64, _ weir.Out[int64]) error {
	f.N.Set(f.N.Get() + 1)
	return nil
}

func (f *tallyMore[N]) Process(*weir.KeyedContext[int64], int64, weir.Out[int64]) error { return nil }
func (f *tallyText) Process(*weir.KeyedContext[int64], int64, weir.Out[int64]) error    { return nil }

// opening is a generator that tells when it is opened.
type opening struct{ weir.Generated[int64] }

func opened() error { return os.WriteFile("opened", nil, 0o666) }

// Enumerator implements weir.Source.
func (o opening) Enumerator(ctx weir.EnumeratorContext[weir.Lane], state []byte) (weir.Enumerator[weir.Lane], error) {
	if err := opened(); err != nil {
		return nil, err
	}
	return o.Generated.Enumerator(ctx, state)
}

// Reader implements weir.Source.
func (o opening) Reader(ctx weir.ReaderContext) (weir.Reader[int64, weir.Lane], error) {
	if err := opened(); err != nil {
		return nil, err
	}
	return o.Generated.Reader(ctx)
}

// overtake makes a checkpoint of a savepoint, with records in flight on its first edge by key: overtake SAVEPOINT DIR
func overtake(ts *testscript.TestScript, _ bool, args []string) {
	from, to := args[0], ts.MkAbs(args[1])
	m, from, err := storage.ReadMetadata(storage.Disk(), from)
	ts.Check(err)
	ts.Check(os.CopyFS(to, os.DirFS(from)))
	ts.Check(os.Remove(filepath.Join(to, "_metadata")))
	edge := snapshot.Edge{From: "numbers", To: "tally"}
	m.Kind = snapshot.Checkpoint
	for i := range m.Operators {
		if o := &m.Operators[i]; o.UID == edge.To {
			o.InFlight = []snapshot.EdgeSchema{{Edge: edge, Record: `"long"`}}
			o.Subtasks[0].InFlight = []snapshot.InFlightHandle{{Edge: edge, Records: 5, Handle: snapshot.InlineHandle([]byte("five"))}}
		}
	}
	_, err = storage.OpenJobMemory(storage.Disk(), m.Job, 0).Publish(to, m)
	ts.Check(err)
}
