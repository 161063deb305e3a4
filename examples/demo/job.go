package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/connector/files"
)

// jobRole is the first argument of the process that is to be the job.
const jobRole = "job"

// jobOptions are what the job is told on its command line, besides Weir's own arguments.
type jobOptions struct {
	source   string        // the directory of the input
	dir      string        // the directory of output and checkpoints
	rate     float64       // lines a second at most; 0: no limit
	interval time.Duration // of checkpoints
}

func (o jobOptions) arguments() []string {
	return []string{jobRole, "-source", o.source, "-dir", o.dir, "-rate", fmt.Sprint(o.rate), "-interval", o.interval.String()}
}

func outputDir(dir string) string      { return filepath.Join(dir, "out") }
func checkpointsDir(dir string) string { return filepath.Join(dir, "checkpoints") }

// Count says that a word has come for the N-th time.
type Count struct {
	Word string
	N    int64
}

// job is the whole job.
func job(ctx context.Context, env *weir.Env, o jobOptions, read *atomic.Int64) error {
	env.Parallelism(4).EnableCheckpointing(o.interval, weir.ExactlyOnce).Storage = checkpointsDir(o.dir)
	env.Set("restart-strategy.type", "none") // restarts are what the demo does by itself
	env.From(files.Lines(o.source).Match("*.go").Rate(o.rate)).UID("lines").
		FlatMap(func(line string, out weir.Out[string]) error {
			words := 0
			for word := range wordsOf(line) {
				out.Emit(word)
				words++
			}
			read.Add(int64(words))
			return nil
		}).
		KeyBy(func(word string) string { return word }).
		Scan("n", func(n int64, word string) (int64, Count) { return n + 1, Count{word, n + 1} }).UID("count").
		To(files.Sink(outputDir(o.dir), appendCount)).UID("out")
	return env.Execute(ctx, "demo")
}

// wordsOf are the words of a line: as long as can be, of letters, digits and underscores.
func wordsOf(line string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start := 0
		for i := range len(line) {
			if inWord[line[i]] {
				continue
			}
			if start < i && !yield(line[start:i]) {
				return
			}
			start = i + 1
		}
		if start < len(line) {
			yield(line[start:])
		}
	}
}

// inWord is true for the bytes that words are made of.
var inWord = func() (in [256]bool) {
	for b := range in {
		in[b] = b == '_' || '0' <= b && b <= '9' || 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z'
	}
	return in
}()

// appendCount is a line of the output.
func appendCount(dst []byte, c Count) []byte {
	dst = append(append(dst, c.Word...), ' ')
	return append(strconv.AppendInt(dst, c.N, 10), '\n')
}

// jobMain is the job's process.
func jobMain() {
	env := weir.NewEnv()
	var o jobOptions
	f := flag.NewFlagSet(jobRole, flag.ExitOnError)
	f.StringVar(&o.source, "source", "", "")
	f.StringVar(&o.dir, "dir", "", "")
	f.Float64Var(&o.rate, "rate", 0, "")
	f.DurationVar(&o.interval, "interval", 0, "")
	f.Parse(os.Args[2:])

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var read atomic.Int64
	startTelling(ctx, os.Stdout, &read)
	if err := job(ctx, env, o, &read); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// startTelling writes, ten times a second, how many words this process has read; its owner is jobMain, and it ends with ctx,
// or with the process. Where nobody listens any more, the write ends the process.
func startTelling(ctx context.Context, w io.Writer, read *atomic.Int64) {
	go func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				fmt.Fprintln(w, read.Load())
			}
		}
	}()
}
