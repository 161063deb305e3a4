package task

import (
	"log/slog"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// Spec is all that a task needs to know before it starts.
type Spec struct {
	Job     string
	Exec    base.Exec
	Vertex  *graph.Vertex
	Subtask int
	Restore *Restore // nil: a fresh start
	Options Options

	// Gate has a channel for each sender of each input link, in the order of Vertex.Inputs, then of the senders; nil for
	// sources. Outputs has a partition for each output link, in the order of Vertex.Outputs.
	Gate    *exchange.Gate
	Outputs []*exchange.Partition
	// Bell is the one that Gate and Outputs ring.
	Bell exchange.Bell

	// Writer writes the files of the checkpoint at a location.
	Writer func(location string) storage.Writer
	Up     Up
}

// Restore is the checkpoint that a task starts from.
type Restore struct {
	ID base.CheckpointID
	// Base is ID where later checkpoints may refer to files of this one; else 0.
	Base base.CheckpointID
	// Operators has the part of each node of the chain, in chain order; nil: the checkpoint does not know the operator.
	Operators []*snapshot.Restored
	// InFlight are the records in flight that the task reads, over all its edges.
	InFlight []snapshot.InFlightPart
	// Open reads a handle of the checkpoint.
	Open func(h snapshot.Handle) (storage.Reader, error)
	// OpenPages is Open of a file whose parts carry checksums of their own: it is not read before.
	OpenPages func(h snapshot.Handle) (storage.Reader, error)
	// AllowDropped lets state go that the job no longer declares.
	AllowDropped bool
}

// Options are the settings of a task.
type Options struct {
	Handler checkpoint.HandlerConfig
	// FlushEvery is the longest that a record waits in a batch that is not full while input keeps coming; 0: a batch waits for
	// the end of its slice only.
	FlushEvery time.Duration
	// BatchMost bounds the records in a batch; 0: by their size.
	BatchMost int
	// WatermarksEvery is the interval at which sources and Watermarks operators emit watermarks.
	WatermarksEvery time.Duration
	// Checkpointed is true where the job takes checkpoints: two-phase sinks then commit on them.
	Checkpointed bool
	// Incremental: a checkpoint may refer to files of older ones.
	Incremental bool
	// PauseSources: a restored source is not polled before it is triggered for a first time.
	PauseSources bool
	// Synced hears how long the synchronous part of a snapshot took, on the task's goroutine; nil: nobody wants to know.
	Synced func(x base.Exec, id base.CheckpointID, took time.Duration)
	// Log hears of what a person should know; nil: nobody does.
	Log *slog.Logger
	// Clock is processing time in nanoseconds since the Unix epoch; nil: the machine's.
	Clock func() int64
	// SliceMost bounds the records that are processed between two looks at the mailbox; 0: 128 do.
	SliceMost int
}

func (o *Options) sliceMost() int {
	if o.SliceMost > 0 {
		return min(o.SliceMost, sliceMost)
	}
	return sliceMost
}

// State is where a task is in its life.
type State int

const (
	// Initializing: it restores its state.
	Initializing State = iota
	// Running: it takes records and can be checkpointed.
	Running
	// Finished: all its data is processed and committed.
	Finished
	// Failed: an error or a panic ended it.
	Failed
	// Canceled: it was told to end.
	Canceled
)

var stateNames = [...]string{"INITIALIZING", "RUNNING", "FINISHED", "FAILED", "CANCELED"}

func (s State) String() string { return stateNames[s] }

// Terminal is true where no other state follows.
func (s State) Terminal() bool { return s >= Finished }

// Up is how a task reaches its master. Its methods are called on the task's goroutine, in order, and do not wait.
type Up interface {
	// Changed tells a new state; err says why a task failed.
	Changed(x base.Exec, s State, err error)
	// Report is TaskAcked, TaskDeclined or TaskEnded. A TaskAcked carries a *snapshot.TaskState.
	Report(e checkpoint.CoordinatorEvent)
	// Ask is a source reader's message to its operator coordinator.
	Ask(x base.Exec, payload any)
	// Note is something for who watches.
	Note(x base.Exec, n Note)
}
