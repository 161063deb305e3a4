package operator

import (
	"context"
	"log/slog"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// Operator is one operator of a chain, on one subtask. Only the subtask's goroutine calls it.
//
// Its life: Setup; Input and Output while the chain is wired; Restore, where there is something; Open, the last of the
// chain first; then records, control, snapshots and notifications in any order; Close, always.
type Operator interface {
	// Control reaches the head of a chain here; operators behind get it through their inputs.
	Control
	// Setup hears where the operator runs, and makes its state ready for Restore.
	Setup(rt *Runtime) error
	// Input is the In[T] numbered i.
	Input(i int) any
	// Output is the *Emitter[T] of the main output (tag "") or of a side output; nil: there is none of that name.
	Output(tag string) any
	// Restore takes over the part of a checkpoint that falls to this subtask.
	Restore(r *Restored) error
	// Open is the last call before records.
	Open() error
	// Snapshot is the synchronous part of a checkpoint: what it returns is unaffected by anything later.
	Snapshot(c Cut) (Part, error)
	// Complete says that checkpoint id is stored; effects that waited for it happen now.
	Complete(id base.CheckpointID) error
	// Abort says that checkpoint id will never complete.
	Abort(id base.CheckpointID) error
	// Close releases everything, also after a failure of any call before.
	Close() error
}

// Source is the head of a chain that reads from outside.
type Source interface {
	Operator
	// Poll emits at most most records, and says how many. It never blocks.
	Poll(most int) (int, Status, error)
	// Event takes what the source's operator coordinator has sent.
	Event(payload any) error
}

// Status says what a source has.
type Status int

const (
	// More: poll again.
	More Status = iota
	// Waiting: nothing now; the reader wakes the task.
	Waiting
	// Ended: nothing ever again.
	Ended
)

// Clocked is an operator with something to do at a time.
type Clocked interface {
	// Deadline is when Tick is next due, in Runtime.Now's nanoseconds; false: never.
	Deadline() (int64, bool)
	// Tick does a slice of what is due.
	Tick(now int64) error
}

// Lagging is an operator that takes a watermark in slices: while Behind, Continue is called and no input is taken.
type Lagging interface {
	Behind() bool
	Continue() error
}

// Cut is the checkpoint or savepoint that an operator is to take its part of.
type Cut struct {
	ID base.CheckpointID
	// Base is a completed checkpoint whose files the part may refer to, and which is kept until this one has ended; 0: the part is to
	// be whole.
	Base base.CheckpointID
	// Lasting says that the files of this one may be referred to by later ones, if it completes.
	Lasting bool
}

// Part is one operator's part of a checkpoint, after its synchronous part.
type Part struct {
	// Write stores the state in a format, on any goroutine; nil where all is in State already.
	Write func(w storage.Writer, f snapshot.Format, state *snapshot.Subtask) error
	// Release says, on the subtask's goroutine, that Write has returned or will never be called. A task that ends in between
	// does not: its state goes with it.
	Release func()
	// State is what is known at once.
	State snapshot.Subtask
}

// Restored is the part of a checkpoint that falls to one operator of one subtask.
type Restored struct {
	snapshot.Restored
	ID base.CheckpointID
	// Base is ID where later checkpoints may refer to files of this one; else 0.
	Base base.CheckpointID
	// Open reads a handle of the checkpoint.
	Open func(h snapshot.Handle) (storage.Reader, error)
	// OpenPages is Open of a file whose parts carry checksums of their own: it is not read before.
	OpenPages func(h snapshot.Handle) (storage.Reader, error)
	// AllowDropped lets state go that is no longer declared.
	AllowDropped bool
}

// Runtime is what an operator knows of where it runs.
type Runtime struct {
	Context     context.Context // done when the task is cancelled
	Job         string
	UID, Name   string
	Subtask     int
	Parallelism int
	Exec        base.Exec
	Restored    bool
	// Checkpointed says that the job takes checkpoints: effects that wait for one will not wait in vain.
	Checkpointed bool
	// WatermarksEvery is the interval at which watermarks are made.
	WatermarksEvery time.Duration

	// Now is the clock of processing time, in nanoseconds since the Unix epoch.
	Now func() int64
	// Mail runs do on the subtask's goroutine, between slices. Any goroutine may call it.
	Mail func(do func() error)
	// Wake says that a source's Poll has something again. Any goroutine may call it.
	Wake func()
	// Ask sends a source reader's message to its operator coordinator.
	Ask func(payload any)
	// Log hears of what a person should know.
	Log *slog.Logger
	// Doing is where the task notes whose user code runs, for the message of a panic.
	Doing *string
}

// Range is the range of key groups that the subtask owns.
func (rt *Runtime) Range() base.KeyGroupRange { return base.RangeOf(rt.Subtask, rt.Parallelism) }

// Base is embedded by operators: calls that most of them have no answer to.
type Base struct{ Runtime *Runtime }

// Setup keeps the runtime.
func (b *Base) Setup(rt *Runtime) error { b.Runtime = rt; return nil }

// Output has no outputs.
func (*Base) Output(string) any { return nil }

// Restore has nothing to restore.
func (*Base) Restore(*Restored) error { return nil }

// Open has nothing to open.
func (*Base) Open() error { return nil }

// Snapshot has no state.
func (*Base) Snapshot(Cut) (Part, error) { return Part{}, nil }

// Complete has nothing to commit.
func (*Base) Complete(base.CheckpointID) error { return nil }

// Abort has nothing to forget.
func (*Base) Abort(base.CheckpointID) error { return nil }

// Close has nothing to close.
func (*Base) Close() error { return nil }

// Enter notes that the operator's user code runs from now; the caller hands the result to Leave.
func (b *Base) Enter() string {
	before := *b.Runtime.Doing
	*b.Runtime.Doing = b.Runtime.Name
	return before
}

// Leave notes that the caller's user code runs again.
func (b *Base) Leave(before string) { *b.Runtime.Doing = before }
