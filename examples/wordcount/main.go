package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/connector/files"
)

// Count is how often a word came.
type Count struct {
	Word string
	N    int64
}

// counter counts one word, its key, until the input ends.
type counter struct {
	N weir.Value[int64] `state:"n"`
}

// Process implements weir.KeyedFunction.
func (c *counter) Process(ctx *weir.KeyedContext[string], _ string, _ weir.Out[Count]) error {
	n := c.N.Get() + 1
	c.N.Set(n)
	if n == 1 {
		ctx.EventTimer(endOfTime)
	}
	return nil
}

// OnTimer emits the count.
func (c *counter) OnTimer(ctx *weir.KeyedContext[string], _ weir.Timer, out weir.Out[Count]) error {
	out.Emit(Count{ctx.Key(), c.N.Get()})
	return nil
}

// endOfTime is when nothing more can come: event time gets there when the input has ended.
var endOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// words emits the words of a line.
func words(line string, out weir.Out[string]) error {
	for word := range strings.FieldsFuncSeq(line, divides) {
		out.Emit(word)
	}
	return nil
}

// divides is true for what is no part of a word.
func divides(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_')
}

// count runs the job. out: "" or a directory for the counts.
func count(ctx context.Context, env *weir.Env, out string, paths []string) (counts []Count, err error) {
	counted := env.From(files.Lines(paths...)).UID("lines").
		FlatMap(words).
		KeyBy(func(word string) string { return word }).
		Process(&counter{}).UID("counter")
	counted.To(weir.Collect(&counts)).UID("summary")
	if out != "" {
		counted.To(files.Sink(out, appendCount)).UID("out")
		env.EnableCheckpointing(time.Second, weir.ExactlyOnce).Storage = filepath.Join(out, ".checkpoints")
	}
	err = env.Execute(ctx, "wordcount")
	return counts, err
}

func appendCount(dst []byte, c Count) []byte {
	return fmt.Appendf(dst, "%s\t%d\n", c.Word, c.N)
}

func main() {
	env := weir.NewEnv().Parallelism(runtime.GOMAXPROCS(0))
	out := flag.String("out", "", "a `directory` for the counts of all words, and for checkpoints")
	flag.Usage = usage
	flag.Parse()
	if flag.NArg() == 0 {
		usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	started := time.Now()
	counts, err := count(ctx, env, *out, flag.Args())
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(os.Stderr, "Stopped after %.1f s.\n", time.Since(started).Seconds())
		if *out != "" {
			fmt.Fprintln(os.Stderr, "To go on, run the same again with -s latest before the files.")
		}
		os.Exit(130) // as a shell has it
	case err != nil:
		fmt.Fprintln(os.Stderr, "wordcount:", err)
		os.Exit(1)
	}
	printSummary(os.Stdout, counts, time.Since(started))
}

func usage() {
	fmt.Fprintln(os.Stderr, "Counts words. Usage: wordcount [-out DIR] FILE-OR-DIRECTORY...")
	flag.PrintDefaults()
	fmt.Fprintln(os.Stderr, "Weir's own arguments, such as -p 4 or -s latest, stand anywhere before the files.")
}
