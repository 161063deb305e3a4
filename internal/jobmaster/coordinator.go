package jobmaster

import (
	"context"

	"github.com/weirstream/weir/internal/base"
)

// CoordinatorProvider makes the operator coordinators of a source: it is what the graph.Node.Coordinator of a source holds.
// Calls may come from several goroutines, one after the other.
type CoordinatorProvider interface {
	// New makes a coordinator from the state that one of its predecessors returned by Snapshot, or a fresh one: state is nil.
	New(ctx CoordinatorContext, state []byte) (Coordinator, error)
}

// Coordinator is the half of a source that runs on the job's master: the enumerator of its splits. All its methods are
// called on one goroutine, which is its own. An error or a panic fails the whole job's run, which restarts with a new
// coordinator; an error of Snapshot fails the checkpoint only.
//
// Its life: New, Start, then the others in any order, Close, always. When the tasks of its source fail, they are restored
// together with a new coordinator, so a coordinator never sees splits come back.
type Coordinator interface {
	// Start is the first call.
	Start() error
	// Added says that the reader of a subtask is there; a coordinator sends only to readers that are.
	Added(subtask int) error
	// Handle takes what a reader has asked. Its Added came before.
	Handle(subtask int, payload any) error
	// Snapshot is the state from which New goes on: with all that was sent before, without what is sent after.
	Snapshot(id base.CheckpointID) ([]byte, error)
	// Close releases everything, also after a failure of any call before.
	Close() error
}

// CoordinatorContext is what a Coordinator knows of where it runs.
type CoordinatorContext interface {
	// Context is done when the coordinator is to end.
	Context() context.Context
	// Operator is the name of the source.
	Operator() string
	// Parallelism is the number of the source's subtasks.
	Parallelism() int
	// Readers are the subtasks that were Added, ascending.
	Readers() []int
	// Send gives payload to the reader of a subtask, in order. It is called on the coordinator's goroutine.
	Send(subtask int, payload any)
	// Backlog says whether the source works off a backlog: checkpoints then come at another interval.
	Backlog(backlog bool)
	// Run calls work on a goroutine of its own, and then done with what it returned on the coordinator's.
	Run(work func(context.Context) (any, error), done func(any, error) error)
}

// Hook takes part in checkpoints on the job's master, for systems outside of the job.
type Hook interface {
	// ID identifies the hook's state over all versions of a job.
	ID() string
	// Trigger is called after the operator coordinators' snapshots and before the tasks are triggered. What it returns is
	// stored in the checkpoint.
	Trigger(ctx context.Context, id base.CheckpointID, wall int64) ([]byte, error)
	// Restore is called before the tasks are deployed; id 0 and a nil state mean a start without a checkpoint, or one in
	// which the hook has no state.
	Restore(ctx context.Context, id base.CheckpointID, state []byte) error
}
