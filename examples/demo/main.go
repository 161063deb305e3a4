package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// patience is how long the demonstration may take.
const patience = 10 * time.Minute

func main() {
	if len(os.Args) > 1 && os.Args[1] == jobRole {
		jobMain()
		return
	}
	source := flag.String("source", "", "the `directory` whose .go files are the input; by default the source of Go's standard library")
	dir := flag.String("dir", "", "the `directory` for output and checkpoints, which stays; by default a temporary one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done after %v", patience))
	defer cancel()

	d := newDisplay(os.Stdout)
	result, err := demonstrate(ctx, *source, *dir, d)
	switch {
	case ctx.Err() != nil:
		d.note("Stopped: %v.", context.Cause(ctx)) // err only tells what that did to the job
		os.Exit(1)
	case err != nil:
		d.note("%v", err)
		os.Exit(1)
	}
	d.note("%s", result)
}

// demonstrate is the whole demonstration. Its directory is removed at the end unless it was named, or is evidence.
func demonstrate(ctx context.Context, source, dir string, d *display) (result string, err error) {
	if source, err = sourceDir(ctx, source); err != nil {
		return "", err
	}
	temporary := dir == ""
	if temporary {
		if dir, err = os.MkdirTemp("", "weir-demo-"); err != nil {
			return "", err
		}
	} else if err := makeEmpty(dir); err != nil {
		return "", err
	}
	result, err = compare(ctx, jobOptions{source: source, dir: dir, interval: 500 * time.Millisecond}, d)
	switch {
	case err != nil && ctx.Err() == nil:
		err = fmt.Errorf("%w\nOutput, checkpoints and the job's log are in %s", err, dir)
	case temporary:
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return result, err
}

// compare counts the words in a plain loop and by the job that is killed, and compares.
func compare(ctx context.Context, o jobOptions, d *display) (result string, err error) {
	began := time.Now()
	r, err := count(o.source)
	if err != nil {
		return "", fmt.Errorf("counting the words of %s: %w", o.source, err)
	}
	d.note("Reference: %s words, %s distinct, in %s lines of %d files below %s (%.1f s)", grouped(r.total), grouped(int64(len(r.words))),
		grouped(r.lines), r.files, o.source, time.Since(began).Seconds())
	t := newTrial(o, r, d)
	if err := t.hold(ctx); err != nil {
		return "", err
	}
	d.note("Took %.1f s in all.", time.Since(began).Seconds())
	return fmt.Sprintf("exactly once: %d words, %d distinct, %d kills, %d checkpoints, output equals the reference",
		r.total, len(r.words), kills, t.checkpoints.count), nil
}

// sourceDir is the directory of the input: the given one, or that of the standard library.
func sourceDir(ctx context.Context, given string) (string, error) {
	if given == "" {
		root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
		if err != nil {
			return "", fmt.Errorf("asking go where its source is: %w; name a directory with -source", err)
		}
		given = filepath.Join(strings.TrimSpace(string(root)), "src")
	}
	absolute, err := filepath.Abs(given)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(absolute)
}

// makeEmpty makes a directory, or finds that there is an empty one.
func makeEmpty(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty: name a directory that is, or is not there yet", dir)
	}
	return err
}
