package main

import (
	"sync/atomic"
	"time"

	"github.com/weirstream/weir"
)

// total is what a query emitted.
type total struct{ records, sum atomic.Int64 }

// tally is a sink that adds up a number of each record, and keeps nothing else.
type tally[T any] struct {
	into   *total
	number func(T) int64
}

// Writer implements weir.Sink.
func (t tally[T]) Writer(weir.WriterContext) (weir.Writer[T], error) {
	return &tallyWriter[T]{tally: t}, nil
}

// tallyWriter adds up for itself, so that the subtasks do not fight over a cache line.
type tallyWriter[T any] struct {
	tally[T]
	records, sum int64 // since the last Flush
}

// Write implements weir.Writer.
func (w *tallyWriter[T]) Write(v T, _ time.Time) error {
	w.records++
	w.sum += w.number(v)
	return nil
}

// Flush implements weir.Writer.
func (w *tallyWriter[T]) Flush(bool) error {
	w.into.records.Add(w.records)
	w.into.sum.Add(w.sum)
	w.records, w.sum = 0, 0
	return nil
}

// Close implements weir.Writer.
func (w *tallyWriter[T]) Close() error { return nil }
