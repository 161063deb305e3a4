package weir

import (
	"context"
	"time"

	"github.com/weirstream/weir/internal/base"
)

// Function processes records without keys. Process is called for each record; what it emits goes to the operator's output.
//
// A function may have more methods, found by name: Open(OpenContext) error, Close() error, CheckpointCompleted(id int64) error,
// CheckpointAborted(id int64) error, EndOfInput(Out[U]) error, and with keys OnTimer(*KeyedContext[K], Timer, Out[U]) error. One
// with another signature is refused when the graph is built.
//
// Pass a pointer to a struct to declare state and side outputs in its fields. Each subtask works on a shallow copy of its
// own of that struct, made anew after every restart.
type Function[T, U any] interface {
	Process(ctx *Context, v T, out Out[U]) error
}

// KeyedFunction processes records by key: the state that it declares is that of the record's key.
type KeyedFunction[K comparable, T, U any] interface {
	Process(ctx *KeyedContext[K], v T, out Out[U]) error
}

// CoFunction processes two streams without keys.
type CoFunction[A, B, U any] interface {
	Process1(ctx *Context, v A, out Out[U]) error
	Process2(ctx *Context, v B, out Out[U]) error
}

// KeyedCoFunction processes two streams by keys of one type: both see one state.
type KeyedCoFunction[K comparable, A, B, U any] interface {
	Process1(ctx *KeyedContext[K], v A, out Out[U]) error
	Process2(ctx *KeyedContext[K], v B, out Out[U]) error
}

// BroadcastFunction processes a keyed stream beside a broadcast one. Every subtask gets every broadcast record, so what
// ProcessBroadcast does to its BroadcastMap must depend on the records alone. It has no key.
type BroadcastFunction[K comparable, A, B, U any] interface {
	Process(ctx *KeyedContext[K], v A, out Out[U]) error
	ProcessBroadcast(ctx *Context, v B, out Out[U]) error
}

// Keyed makes a KeyedFunction of a closure. All subtasks share the closure.
func Keyed[K comparable, T, U any](f func(*KeyedContext[K], T, Out[U]) error) KeyedFunction[K, T, U] {
	return keyedClosure[K, T, U](f)
}

type keyedClosure[K comparable, T, U any] func(*KeyedContext[K], T, Out[U]) error

// Process implements KeyedFunction.
func (f keyedClosure[K, T, U]) Process(ctx *KeyedContext[K], v T, out Out[U]) error {
	return f(ctx, v, out)
}

// OpenContext is what Open is told.
type OpenContext struct {
	context.Context // done when the task is cancelled
	// Subtask is the number of the subtask, of Parallelism.
	Subtask, Parallelism int
	// Attempt counts the job's starts in this process, from 0.
	Attempt int
	// Restored says that the state comes from a checkpoint or savepoint.
	Restored bool
}

// Timer is a timer that fires.
type Timer struct {
	// At is the time that it was registered for.
	At time.Time
	// Event says that it is a timer of event time, else of processing time.
	Event bool
}

// EndOfTime is after every event: a timer for it fires when the input has ended.
func EndOfTime() time.Time { return base.EndOfTime.Time() }

// The optional methods of functions.
type (
	opener                     interface{ Open(OpenContext) error }
	closer                     interface{ Close() error }
	completer                  interface{ CheckpointCompleted(id int64) error }
	aborter                    interface{ CheckpointAborted(id int64) error }
	ender[U any]               interface{ EndOfInput(Out[U]) error }
	timed[K comparable, U any] interface {
		OnTimer(*KeyedContext[K], Timer, Out[U]) error
	}
)
