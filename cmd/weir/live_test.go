package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/rest"
)

// countingJob is a real job: it prints how many integers each of four keys has had, and runs until it is ended.
func countingJob() {
	env := weir.NewEnv()
	env.EnableCheckpointing(0, weir.ExactlyOnce).Storage = "data"
	env.From(weir.Generate(1<<40, func(i int64) int64 { return i }).Rate(1000)).UID("integers").
		KeyBy(func(i int64) int64 { return i % 4 }).
		Process(&counting{}).UID("count").
		To(weir.Discard[int64]())
	if err := env.Execute(context.Background(), "counting"); err != nil {
		fmt.Fprintln(os.Stderr, "counting:", err)
		os.Exit(1)
	}
}

type counting struct {
	Count weir.Value[int64] `state:"count"`
}

// Process implements weir.KeyedFunction.
func (c *counting) Process(ctx *weir.KeyedContext[int64], i int64, out weir.Out[int64]) error {
	c.Count.Set(c.Count.Get() + 1)
	fmt.Printf("%d was the %dth of key %d\n", i, c.Count.Get(), ctx.Key())
	return nil
}

// writePort gives a script a port of its own: its config.yaml is that of the job and of the command line.
func writePort(e *testscript.Env) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	e.Setenv("ADDRESS", l.Addr().String())
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(e.WorkDir, "config.yaml"), []byte("rest.port: "+port+"\n"), 0o666)
}

// running waits until the job runs.
func running(ts *testscript.TestScript, _ bool, _ []string) {
	c, err := rest.NewClient(ts.Getenv("ADDRESS"))
	ts.Check(err)
	for {
		if jobs, err := c.Jobs(context.Background()); err == nil && jobs[0].State == "RUNNING" {
			return
		}
	}
}

var printedPath = regexp.MustCompile(`(?:Path: |stored in )(\S+?)\.?\n`)

// path sets a variable to the path that the last command has printed: path NAME
func path(ts *testscript.TestScript, neg bool, args []string) {
	found := printedPath.FindStringSubmatch(ts.ReadFile("stdout"))
	if neg || len(args) != 1 || found == nil {
		ts.Fatalf("usage: path NAME, where a path was printed")
	}
	ts.Setenv(args[0], found[1])
}
