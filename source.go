package weir

import "context"

// Source reads records from outside (Flink's FLIP-27). It has two halves: an enumerator on the job master finds splits and
// gives them out; a reader on each subtask reads the splits that it was given. A split is a type of the source's own and
// carries its own position, so that a checkpoint of the readers' splits is all that a restore needs.
type Source[T any, S Split] interface {
	// Bounded says that the source ends by itself.
	Bounded() bool
	// Enumerator makes the half on the job master. state is what an enumerator's Snapshot returned; nil: a fresh start.
	Enumerator(ctx EnumeratorContext[S], state []byte) (Enumerator[S], error)
	// Reader makes the half on a subtask.
	Reader(ctx ReaderContext) (Reader[T, S], error)
}

// Split is a part of a source's input, with the position up to which it was read. It is stored in checkpoints: its type must
// be one that package codec can encode.
type Split interface {
	// SplitID names the split for its whole life.
	SplitID() string
}

// Enumerator finds splits and gives them out. One goroutine, the source's own on the job master, calls all its methods. When
// the source's tasks fail, they are restored together with a new enumerator: so one never sees splits come back.
type Enumerator[S Split] interface {
	// Start is called once, before any other.
	Start() error
	// Added says that the reader of a subtask has registered, also after a restart.
	Added(subtask int) error
	// SplitRequested says that a reader wants more to read.
	SplitRequested(subtask int) error
	// Snapshot is the state for a checkpoint: what was given out before it is not in it, what was not is.
	Snapshot(checkpoint int64) ([]byte, error)
	// Close releases everything.
	Close() error
}

// EnumeratorContext is what an enumerator acts through. Its methods are for the enumerator's goroutine only.
type EnumeratorContext[S Split] interface {
	// Assign gives splits to the reader of a subtask.
	Assign(subtask int, splits ...S)
	// NoMoreSplits tells the reader of a subtask that nothing more will be assigned to it.
	NoMoreSplits(subtask int)
	// Readers are the subtasks that have registered, ascending.
	Readers() []int
	// Parallelism is the number of subtasks of the source.
	Parallelism() int
	// Backlog says whether the source works off a backlog (Flink's setIsProcessingBacklog): meanwhile checkpoints come at
	// execution.checkpointing.interval-during-backlog. At first it does not.
	Backlog(backlog bool)
	// Run does slow work on a goroutine of its own; done then runs on the enumerator's goroutine. An error of done fails the job's
	// attempt.
	Run(work func(context.Context) (any, error), done func(any, error) error)
}

// Reader reads splits on a subtask. Only the subtask's goroutine calls it.
type Reader[T any, S Split] interface {
	// AddSplits takes over more splits: newly assigned ones, or those of a checkpoint, at their positions.
	AddSplits(splits []S) error
	// NoMoreSplits says that no split will be added: when those at hand are read, Poll returns Ended.
	NoMoreSplits()
	// Poll emits at most most records and never blocks: it returns Waiting when it has nothing, and calls ReaderContext.Wake
	// when there is something again.
	Poll(ctx context.Context, most int, out Out[T]) (Status, error)
	// Snapshot returns the splits not yet read to their ends, at the positions behind the last record emitted.
	Snapshot(checkpoint int64) ([]S, error)
	// Close releases everything.
	Close() error
}

// ReaderContext is what a reader knows of its surroundings.
type ReaderContext interface {
	// Subtask is the reader's number, of the source's parallelism.
	Subtask() (index, of int)
	// RequestSplit asks the enumerator for more to read. A restored reader that has no splits asks again.
	RequestSplit()
	// Wake says that Poll has something again. Any goroutine may call it, after it has made that something visible: the next
	// Poll may be under way already.
	Wake()
}

// Status is what a reader's Poll has found.
type Status int

const (
	// More means: poll again.
	More Status = iota
	// Waiting means: nothing now; Wake tells when there is.
	Waiting
	// Ended means: nothing ever again.
	Ended
)

// NotifyingReader is implemented by readers that want to hear of completed checkpoints, e.g. to commit offsets for monitoring.
// Nothing about exactly-once depends on it.
type NotifyingReader interface {
	CheckpointCompleted(checkpoint int64) error
}
