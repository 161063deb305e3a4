package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weirstream/weir"
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
	}
	numbers := env.From[int64](opening{weir.Generate(1<<40, func(i int64) int64 { return i }).Rate(1000)}).UID("numbers")
	if version == "gone" {
		numbers.To(weir.Discard[int64]()).UID("out")
	} else {
		numbers.KeyBy(func(i int64) int64 { return i % 4 }).Process(tally).UID(uid[0], uid[1:]...).To(weir.Discard[int64]()).UID("out")
	}
	fmt.Println("the shop's own output")
	if err := env.Execute(context.Background(), "counting"); err != nil {
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
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
