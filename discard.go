package weir

import "time"

// Discard is a sink that drops every record: for jobs that are run for their side effects, and for measuring.
func Discard[T any]() Sink[T] { return discard[T]{} }

// discard is its own writer.
type discard[T any] struct{}

// Name is for people.
func (discard[T]) Name() string { return "Discard" }

func (d discard[T]) Writer(WriterContext) (Writer[T], error) { return d, nil }
func (discard[T]) Write(T, time.Time) error                  { return nil }
func (discard[T]) Flush(bool) error                          { return nil }
func (discard[T]) Close() error                              { return nil }
