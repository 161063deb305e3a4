package weir

import (
	"context"
	"time"
)

// Sink writes records to the outside (Flink's Sink V2). Each subtask has a writer of its own. A sink whose output is to
// appear exactly once is a TwoPhase, made a Sink by Committing.
type Sink[T any] interface {
	Writer(WriterContext) (Writer[T], error)
}

// WriterContext is what a writer knows of its surroundings.
type WriterContext interface {
	// Subtask is the writer's number, of the sink's parallelism.
	Subtask() (index, of int)
	// Job is the job's name.
	Job() string
}

// Writer writes records on a subtask. Only the subtask's goroutine calls it.
type Writer[T any] interface {
	// Write takes a record; at is its timestamp, the zero Time if it has none.
	Write(v T, at time.Time) error
	// Flush makes everything written so far durable: before each checkpoint, and at the end of the input.
	Flush(endOfInput bool) error
	// Close releases everything; what was not flushed may be lost.
	Close() error
}

// TwoPhase is a sink whose output becomes visible when a checkpoint completes. C is a committable: all that is needed to
// make a part of the output visible, by any process, any number of times. It is stored in checkpoints: its type must be one
// that package codec can encode.
//
//	Write ... Prepare(7) -> committables, stored in checkpoint 7 -> checkpoint 7 completes -> Commit
//	                                                             -> crash, restore from 7   -> Commit
type TwoPhase[T, C any] interface {
	Writer(WriterContext) (Writer[T], error)
	// Restore gives a new writer the states of all old writers that fall to it, before the first record. What the old
	// writers had written after the checkpoint must not become visible.
	Restore(w Writer[T], states [][]byte) error
	// Prepare seals what was written since the last call: the committables are committed once the checkpoint is stored. state
	// is the writer's own, for Restore. The checkpoint of a job without checkpointing, at the end of its input, is 0.
	Prepare(w Writer[T], checkpoint int64) (committables []C, state []byte, err error)
	// Commit makes output visible. It must be idempotent: after a restore it is called again with what may be committed
	// already. What is marked neither Retry nor Fail is done.
	Commit(ctx context.Context, cs []*Commit[C]) error
	// Abort says that committables will never be committed.
	Abort(ctx context.Context, cs []C) error
}

// Commit is a committable on its way.
type Commit[C any] struct {
	Value C
	// Attempt counts the tries, from 1.
	Attempt int

	retry bool
	err   error
}

// Retry asks for another try, a little later.
func (c *Commit[C]) Retry() { c.retry = true }

// Fail gives up: the committable is lost, and the job fails with err.
func (c *Commit[C]) Fail(err error) { c.err = err }

// Outcome is what Commit has asked for: another try, a failure with err, or neither.
func (c *Commit[C]) Outcome() (retry bool, err error) { return c.retry, c.err }

// Committing makes a Sink of a two-phase one. Connectors' own constructors have done it already.
func Committing[T, C any](k TwoPhase[T, C]) Sink[T] { return committing[T, C]{k} }

// committing marks a sink whose writers went through Committing.
type committing[T, C any] struct{ TwoPhase[T, C] }
