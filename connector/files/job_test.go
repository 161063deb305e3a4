package files_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/connector/files"
)

// input writes some files of n lines together, and gives the lines.
func input(t testing.TB, dir string, n int) (want []string) {
	t.Helper()
	for i := range 5 {
		var text strings.Builder
		for j := i; j < n; j += 5 {
			want = append(want, fmt.Sprint("line ", j))
			fmt.Fprintln(&text, "line", j)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".txt")), []byte(text.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	return want
}

// output is what a reader of a sink's directory sees.
func output(t testing.TB, dir string) (got []string) {
	t.Helper()
	names, err := filepath.Glob(dir + "/part-*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")...)
	}
	slices.Sort(got)
	return got
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %d lines, want %d", len(got), len(want))
	}
}

// A bounded job shows everything at its end, with and without checkpoints.
func TestCopy(t *testing.T) {
	for _, every := range []time.Duration{0, 10 * time.Millisecond, time.Hour} {
		for _, p := range []int{1, 3} {
			in, out := t.TempDir(), t.TempDir()
			want := input(t, in, 2000)
			env := weir.NewTestEnv().Parallelism(p)
			if every > 0 {
				env.EnableCheckpointing(every, weir.ExactlyOnce)
			}
			env.From(files.Lines(in).SplitSize(1000)).UID("in").To(files.Sink(out, files.AppendLine)).UID("out")
			if err := env.Execute(t.Context(), "copy"); err != nil {
				t.Fatal(err)
			}
			same(t, output(t, out), want)
			if hidden, _ := filepath.Glob(out + "/.*"); len(hidden) > 0 {
				t.Errorf("left %v", hidden)
			}
		}
	}
}

// A job that fails now and then, and restarts from its checkpoints.
func TestCopyWithFailures(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	want := input(t, in, 3000)
	var seen atomic.Int64
	env := weir.NewTestEnv().Parallelism(2)
	env.EnableCheckpointing(10*time.Millisecond, weir.ExactlyOnce)
	env.Set("restart-strategy.type", "fixed-delay").
		Set("restart-strategy.fixed-delay.attempts", 100).
		Set("restart-strategy.fixed-delay.delay", "1ms")
	env.From(files.Lines(in).SplitSize(500).Rate(8000)).UID("in").
		TryMap(func(line string) (string, error) {
			if n := seen.Add(1); n%1000 == 0 && n <= 5000 {
				return "", errors.New("now and then")
			}
			return line, nil
		}).
		Rebalance().
		To(files.Sink(out, files.AppendLine, files.RollRecords(50))).UID("out")
	if err := env.Execute(t.Context(), "failing"); err != nil {
		t.Fatal(err)
	}
	same(t, output(t, out), want)
	if hidden, _ := filepath.Glob(out + "/.*"); len(hidden) > 0 {
		t.Errorf("left %v", hidden)
	}
}

// A job that is canceled and goes on from its latest checkpoint at other parallelisms, into the same directory.
func TestResume(t *testing.T) {
	in, out, checkpoints := t.TempDir(), t.TempDir(), t.TempDir()
	want := input(t, in, 4000)
	for run, p := range []int{2, 3, 1} {
		var lines atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		env := weir.NewTestEnv().Parallelism(p)
		env.EnableCheckpointing(10*time.Millisecond, weir.ExactlyOnce).Storage = checkpoints
		source := files.Lines(in).SplitSize(700)
		if run > 0 {
			env.Set("execution.state-recovery.path", "latest-or-start")
		}
		if run < 2 {
			source = source.Rate(8000)
		}
		env.From(source).UID("in").
			Map(func(line string) string {
				if lines.Add(1) == 1000 && run < 2 {
					cancel()
				}
				return line
			}).
			To(files.Sink(out, files.AppendLine)).UID("out")
		if err := env.Execute(ctx, "resumed"); (err == nil) != (run == 2) {
			t.Fatalf("run %d: %v", run, err)
		}
		if err := ctx.Err(); (err == nil) != (run == 2) {
			t.Fatalf("run %d: %v", run, err)
		}
		cancel()
	}
	same(t, output(t, out), want)
}

// An unbounded source finds files that come while it runs.
func TestWatch(t *testing.T) {
	in := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var lines atomic.Int64
	add := func(n int64) {
		if err := os.WriteFile(filepath.Join(in, fmt.Sprint(n)), []byte("x\ny\n"), 0o666); err != nil {
			t.Error(err)
		}
	}
	add(0)
	env := weir.NewTestEnv().Parallelism(2)
	env.From(files.Lines(in).Every(time.Millisecond)).UID("in").
		Filter(func(string) bool {
			if n := lines.Add(1); n == 10 {
				cancel()
			} else if n%2 == 0 {
				add(n)
			}
			return true
		}).
		To(weir.Discard[string]())
	if err := env.Execute(ctx, "watch"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v after %d lines", err, lines.Load())
	}
}

func TestMissingInput(t *testing.T) {
	env := weir.NewTestEnv()
	env.From(files.Lines("/no/such/dir")).UID("in").To(weir.Discard[string]())
	err := env.Execute(t.Context(), "missing")
	if err == nil || !strings.Contains(err.Error(), "the input /no/such/dir does not exist") {
		t.Error(err)
	}
}

// The lines of a directory, counted by their first word.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.WriteFile(dir+"/a.log", []byte("INFO started\nERROR no disk\n"), 0o666)
	os.WriteFile(dir+"/b.log", []byte("ERROR no memory\n"), 0o666)

	env := weir.NewTestEnv()
	env.From(files.Lines(dir).Match("*.log")).UID("lines").
		Filter(func(line string) bool { return strings.HasPrefix(line, "ERROR") }).
		To(files.Sink(dir+"/errors", files.AppendLine, files.Suffix(".txt"))).UID("errors")
	if err := env.Execute(context.Background(), "errors"); err != nil {
		panic(err)
	}
	names, _ := filepath.Glob(dir + "/errors/part-*.txt")
	for _, name := range names {
		content, _ := os.ReadFile(name)
		fmt.Print(string(content))
	}
	// Output:
	// ERROR no disk
	// ERROR no memory
}
