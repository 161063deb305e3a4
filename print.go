package weir

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Print is a sink that writes each record to the standard output, as fmt.Println does, on a line of its own. Where the sink
// has several subtasks the line begins with the number of the one that wrote it, from 1: "2> value".
//
// A record is written when it comes, so after a failure some are written again.
func Print[T any]() Sink[T] { return PrintTo[T](os.Stdout) }

// PrintTo is Print to w. Each line is one call of w.Write, and the calls do not overlap.
func PrintTo[T any](w io.Writer) Sink[T] { return &printSink[T]{w: w} }

// printSink is shared by the writers of a process.
type printSink[T any] struct {
	mu   sync.Mutex
	w    io.Writer // protected by mu
	line []byte    // protected by mu
}

// Name is for people.
func (k *printSink[T]) Name() string { return "Print" }

func (k *printSink[T]) Writer(ctx WriterContext) (Writer[T], error) {
	w := &printWriter[T]{sink: k}
	if subtask, of := ctx.Subtask(); of > 1 {
		w.prefix = fmt.Sprint(subtask+1, "> ")
	}
	return w, nil
}

type printWriter[T any] struct {
	sink   *printSink[T]
	prefix string
}

func (w *printWriter[T]) Write(v T, _ time.Time) error {
	k := w.sink
	k.mu.Lock()
	defer k.mu.Unlock()
	k.line = fmt.Appendln(append(k.line[:0], w.prefix...), v)
	if _, err := k.w.Write(k.line); err != nil {
		return fmt.Errorf("weir: printing a record: %w", err)
	}
	return nil
}

func (w *printWriter[T]) Flush(bool) error { return nil }
func (w *printWriter[T]) Close() error     { return nil }
