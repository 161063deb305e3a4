package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/connector/files"
)

// options are what the command line says, but for Weir's own arguments.
type options struct {
	records, keys   int64
	rate            float64
	dir             string
	expect          bool
	failAt, panicAt int64
}

func main() {
	env := weir.NewEnv()
	var o options
	flag.Int64Var(&o.records, "records", 1000, "the largest integer")
	flag.Int64Var(&o.keys, "keys", 10, "how many keys there are")
	flag.Float64Var(&o.rate, "rate", 0, "integers a second; 0: as many as it can")
	flag.StringVar(&o.dir, "dir", "", "the directory of everything: out has the output, checkpoints the checkpoints")
	flag.BoolVar(&o.expect, "expect", false, "compare the output of the finished job with what it must be")
	flag.Int64Var(&o.failAt, "fail-at", 0, "fail with an error, once, at this integer")
	flag.Int64Var(&o.panicAt, "panic-at", 0, "panic, once, at this integer")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, env, o); err != nil {
		fmt.Fprintln(os.Stderr, "j1:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, env *weir.Env, o options) error {
	if o.dir == "" || o.keys < 1 || o.records < 0 || len(flag.Args()) > 0 {
		return errors.New("want -dir DIR, at least one key, and nothing but flags; -help lists them")
	}
	if err := execute(ctx, env, o); err != nil || !o.expect {
		return err
	}
	return compare(o)
}

// execute runs the job to its end.
func execute(ctx context.Context, env *weir.Env, o options) error {
	if err := os.MkdirAll(o.dir, 0o777); err != nil {
		return err
	}
	env.EnableCheckpointing(time.Second, weir.ExactlyOnce).Storage = filepath.Join(o.dir, "checkpoints")
	integers := weir.Generate(o.records, func(i int64) int64 { return i + 1 }).Rate(o.rate)
	counts := &count{
		FailAt:  fault{At: o.failAt, Marker: filepath.Join(o.dir, "failed")},
		PanicAt: fault{At: o.panicAt, Marker: filepath.Join(o.dir, "panicked")},
	}
	env.From(integers).UID("integers").Name("integers").Parallelism(2).
		KeyBy(func(v int64) int64 { return v % o.keys }).
		Process(counts).UID("count").Name("count").
		To(files.Sink(filepath.Join(o.dir, "out"), appendLine)).UID("out").Name("out")
	return env.Execute(ctx, "j1")
}

// compare compares the committed output with what it must be.
func compare(o options) error {
	l := newLedger(o.records, o.keys)
	if err := l.readDir(filepath.Join(o.dir, "out")); err != nil {
		return err
	}
	if err := l.balance(); err != nil {
		return fmt.Errorf("the output is not what it must be:\n%w", err)
	}
	fmt.Printf("exactly once: %d integers, %d keys\n", o.records, o.keys)
	return nil
}
