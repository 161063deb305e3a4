package job

import (
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
)

// Token names one ResetOperators; its answer carries the same token.
type Token uint64

// TaskState is what a task says of itself.
type TaskState uint8

const (
	// TaskInitializing restores its state.
	TaskInitializing TaskState = iota
	// TaskRunning takes records.
	TaskRunning
	// TaskFinished has processed everything and committed it.
	TaskFinished
	// TaskFailed was ended by an error or a panic.
	TaskFailed
	// TaskCanceled was told to end.
	TaskCanceled
)

func (s TaskState) String() string {
	return [...]string{"INITIALIZING", "RUNNING", "FINISHED", "FAILED", "CANCELED"}[s]
}

// Event is what a Machine takes: one of the structs below.
type Event interface{ jobEvent() }

type (
	// Started: the job's master is ready; the job begins.
	Started struct{}

	// TaskReported: an execution has a new state. Permanent: no restart can repair what made it fail.
	TaskReported struct {
		Exec      base.Exec
		State     TaskState
		Err       error
		Permanent bool
	}

	// LinkBroken: messages from or to an execution were lost. It may still run, but cannot go on.
	LinkBroken struct {
		Exec base.Exec
		Err  error
	}

	// OperatorFailed: the operator coordinator of a vertex failed.
	OperatorFailed struct {
		Vertex    int
		Err       error
		Permanent bool
	}

	// OperatorsReset answers ResetOperators: operator coordinators and hooks stand at the restore point, or one could not.
	OperatorsReset struct {
		Token     Token
		Err       error
		Permanent bool
	}

	// SavepointAsked: the user wants a savepoint (Kind Savepoint), one by which the job stops (Suspend, Drain), or with Cancel
	// one after which the job is cancelled. Target "" is the configured directory.
	SavepointAsked struct {
		Request checkpoint.Request
		Kind    checkpoint.Kind
		Format  checkpoint.Format
		Target  string
		Cancel  bool
	}

	// CheckpointAsked: the user wants a checkpoint now.
	CheckpointAsked struct {
		Request checkpoint.Request
		Full    bool
	}

	// CancelAsked: the user wants the job to end.
	CancelAsked struct{}

	// SuspendAsked: this master gives the job up; another one goes on with it.
	SuspendAsked struct{}

	// Relayed is an event for the coordinator: what tasks and operator coordinators tell it, and answers.
	Relayed struct{ Event checkpoint.CoordinatorEvent }

	// EndRecorded answers RecordEnd. With an Err it may be on record or not.
	EndRecorded struct{ Err error }

	// TimePassed: the Deadline came.
	TimePassed struct{}
)

func (Started) jobEvent()         {}
func (TaskReported) jobEvent()    {}
func (LinkBroken) jobEvent()      {}
func (OperatorFailed) jobEvent()  {}
func (OperatorsReset) jobEvent()  {}
func (SavepointAsked) jobEvent()  {}
func (CheckpointAsked) jobEvent() {}
func (CancelAsked) jobEvent()     {}
func (SuspendAsked) jobEvent()    {}
func (Relayed) jobEvent()         {}
func (EndRecorded) jobEvent()     {}
func (TimePassed) jobEvent()      {}

// Action is what a Machine wants done: one of the structs below.
type Action interface{ jobAction() }

type (
	// CancelTasks: tell these executions to end. Each still reports its last state.
	CancelTasks struct{ Tasks []base.Exec }

	// ResetOperators: replace the operator coordinators of these vertices by new ones made from the checkpoint (nil: fresh
	// ones), and restore the hooks from it. Answer: OperatorsReset.
	ResetOperators struct {
		Token    Token
		Vertices []int
		From     *checkpoint.Completed
	}

	// DeployTasks: start these executions, restored from the checkpoint; nil: empty. Each reports its states.
	DeployTasks struct {
		Tasks []base.Exec
		From  *checkpoint.Completed
	}

	// Relay: do what the coordinator wants. It is never a Restore, FailJob or Reply: those the Machine takes itself.
	Relay struct{ Action checkpoint.CoordinatorAction }

	// Reply: tell the user who asked. Err is nil on success.
	Reply struct {
		Request  checkpoint.Request
		ID       base.CheckpointID
		Location string
		Err      error
	}

	// ReportStatus: the job's status changed; Err says why, where it did not go well. Savepoint is where the one lies after which
	// the job is cancelled.
	ReportStatus struct {
		Status    Status
		Err       error
		Savepoint string
	}

	// ReportRestart: a restart begins. There is one for each.
	ReportRestart struct {
		Failure  Failure
		Number   int           // of the restart, from 1
		Delay    time.Duration // until the tasks are deployed, at least
		Strategy Kind
	}

	// RecordEnd: record durably how the job ends. Answer: EndRecorded. Only then are checkpoints deleted that its end makes
	// useless: a crash in between must leave one or the other.
	RecordEnd struct{ Status Status }

	// End: the job has ended on this master; nothing follows.
	End struct {
		Status Status
		// Err is the first cause where the job FAILED.
		Err error
		// Savepoint is the location of the savepoint by which the job was stopped; "": it was not.
		Savepoint string
	}
)

func (RecordEnd) jobAction()      {}
func (CancelTasks) jobAction()    {}
func (ResetOperators) jobAction() {}
func (DeployTasks) jobAction()    {}
func (Relay) jobAction()          {}
func (Reply) jobAction()          {}
func (ReportStatus) jobAction()   {}
func (ReportRestart) jobAction()  {}
func (End) jobAction()            {}

// Status is where a job is in its life, in Flink's words.
type Status uint8

const (
	Created Status = iota
	Running
	Restarting
	Failing
	Failed
	Cancelling
	Canceled
	Finished
	Suspended
)

func (s Status) String() string {
	return [...]string{"CREATED", "RUNNING", "RESTARTING", "FAILING", "FAILED", "CANCELLING", "CANCELED", "FINISHED", "SUSPENDED"}[s]
}

// Terminal is true where no other status follows on this master.
func (s Status) Terminal() bool {
	return s == Failed || s == Canceled || s == Finished || s == Suspended
}
