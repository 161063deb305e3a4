package checkpoint

import (
	"errors"
	"fmt"
)

// Reason is why a checkpoint was refused, declined or aborted: the 24 reasons of Flink, with its names and messages.
type Reason uint8

const (
	NoReason Reason = iota
	// PeriodicSchedulerShutdown: a periodic request came while none are wanted. A Coordinator takes its own out of the queue
	// before that happens.
	PeriodicSchedulerShutdown
	// TooManyRequests: the queue is full.
	TooManyRequests
	// MinimumPause: a periodic checkpoint came too soon after the last one.
	MinimumPause
	// NotAllTasksRunning: a task is not running and has not finished.
	NotAllTasksRunning
	// IOFailure: the location, or an operator coordinator by a *DeclineError, met an I/O error.
	IOFailure
	// BlockingOutput: the job has a blocking edge. The job's machine refuses these itself.
	BlockingOutput
	// AsyncFailure: a task could not write its snapshot.
	AsyncFailure
	// ChannelStateShared: another subtask failed, with which this one shares a file.
	ChannelStateShared
	// Expired: not complete within Config.Timeout.
	Expired
	// Subsumed: a newer checkpoint completed first.
	Subsumed
	// Declined: an operator failed in its synchronous part.
	Declined
	// DeclinedNotReady: a task was not running yet when it was triggered.
	DeclinedNotReady
	// DeclinedClosing: a task was closing; or some but not all tasks of a vertex with union state have ended.
	DeclinedClosing
	// DeclinedSubsumed: a task met a barrier of a newer checkpoint first.
	DeclinedSubsumed
	// DeclinedOnCancel: a task met a cancel marker.
	DeclinedOnCancel
	// DeclinedEndOfStream: an input ended, and tasks do not wait for a final checkpoint.
	DeclinedEndOfStream
	// Shutdown: the job has ended.
	Shutdown
	// Suspended: the job, or a task, is not running any more; or the job stops with a savepoint.
	Suspended
	// FailoverRegion: tasks are being restarted.
	FailoverRegion
	// TaskFailure: a task finished, failed or was replaced without having acknowledged.
	TaskFailure
	// TaskCheckpointFailure: a task's host could not trigger it.
	TaskCheckpointFailure
	// UnknownTask: a task's host does not know it.
	UnknownTask
	// FinalizeFailure: the metadata could not be written or stored.
	FinalizeFailure
	// TriggerFailure: everything else before the tasks are triggered.
	TriggerFailure
	reasons // how many there are, NoReason included
)

// about is a row of Flink's table.
type about struct {
	name      string
	preflight bool
	counted   bool
	message   string
}

var reasonTable = [reasons]about{
	NoReason:                  {"NONE", false, false, ""},
	PeriodicSchedulerShutdown: {"PERIODIC_SCHEDULER_SHUTDOWN", true, false, "Periodic checkpoint scheduler is shut down."},
	TooManyRequests:           {"TOO_MANY_CHECKPOINT_REQUESTS", true, false, "The maximum number of queued checkpoint requests exceeded"},
	MinimumPause:              {"MINIMUM_TIME_BETWEEN_CHECKPOINTS", true, false, "The minimum time between checkpoints is still pending. Checkpoint will be triggered after the minimum time."},
	NotAllTasksRunning:        {"NOT_ALL_REQUIRED_TASKS_RUNNING", true, false, "Not all required tasks are currently running."},
	IOFailure:                 {"IO_EXCEPTION", true, true, "An Exception occurred while triggering the checkpoint. IO-problem detected."},
	BlockingOutput:            {"BLOCKING_OUTPUT_EXIST", true, false, "Blocking output edge exists in running tasks."},
	AsyncFailure:              {"CHECKPOINT_ASYNC_EXCEPTION", false, true, "Asynchronous task checkpoint failed."},
	ChannelStateShared:        {"CHANNEL_STATE_SHARED_STREAM_EXCEPTION", false, false, "The checkpoint was aborted due to exception of other subtasks sharing the ChannelState file."},
	Expired:                   {"CHECKPOINT_EXPIRED", false, true, "Checkpoint expired before completing."},
	Subsumed:                  {"CHECKPOINT_SUBSUMED", false, false, "Checkpoint has been subsumed."},
	Declined:                  {"CHECKPOINT_DECLINED", false, true, "Checkpoint was declined."},
	DeclinedNotReady:          {"CHECKPOINT_DECLINED_TASK_NOT_READY", false, false, "Checkpoint was declined (tasks not ready)"},
	DeclinedClosing:           {"CHECKPOINT_DECLINED_TASK_CLOSING", false, false, "Checkpoint was declined (task is closing)"},
	DeclinedSubsumed:          {"CHECKPOINT_DECLINED_SUBSUMED", false, false, "Checkpoint was canceled because a barrier from newer checkpoint was received."},
	DeclinedOnCancel:          {"CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER", false, false, "Task received cancellation from one of its inputs"},
	DeclinedEndOfStream:       {"CHECKPOINT_DECLINED_INPUT_END_OF_STREAM", false, false, "Checkpoint was declined because one input stream is finished"},
	Shutdown:                  {"CHECKPOINT_COORDINATOR_SHUTDOWN", false, false, "CheckpointCoordinator shutdown."},
	Suspended:                 {"CHECKPOINT_COORDINATOR_SUSPEND", false, false, "Checkpoint Coordinator is suspending."},
	FailoverRegion:            {"JOB_FAILOVER_REGION", false, false, "FailoverRegion is restarting."},
	TaskFailure:               {"TASK_FAILURE", false, false, "Task has failed or finished."},
	TaskCheckpointFailure:     {"TASK_CHECKPOINT_FAILURE", false, false, "Task local checkpoint failure."},
	UnknownTask:               {"UNKNOWN_TASK_CHECKPOINT_NOTIFICATION_FAILURE", false, false, "Unknown task for the checkpoint to notify."},
	FinalizeFailure:           {"FINALIZE_CHECKPOINT_FAILURE", false, true, "Failure to finalize checkpoint."},
	TriggerFailure:            {"TRIGGER_CHECKPOINT_FAILURE", false, false, "Trigger checkpoint failure."},
}

func (r Reason) row() about {
	if r >= reasons {
		return about{name: fmt.Sprintf("REASON_%d", uint8(r))}
	}
	return reasonTable[r]
}

// String is the reason's name in Flink.
func (r Reason) String() string { return r.row().name }

// Message is what Flink tells a user; but that Flink calls TaskFailure a failure also where the task has finished.
func (r Reason) Message() string { return r.row().message }

// Preflight: the checkpoint was refused before it existed.
func (r Reason) Preflight() bool { return r.row().preflight }

// Counted: the failure counts towards Config.TolerableFailures.
func (r Reason) Counted() bool { return r.row().counted }

// orElse is r, or the other one where r is none: a failure is never told as a success.
func (r Reason) orElse(other Reason) Reason {
	if r == NoReason {
		return other
	}
	return r
}

// DeclineError is an error with the reason it stands for. A driver wraps one around an error to say more than the place
// where it comes up does: an I/O error while an operator coordinator is snapshotted is IOFailure, any other TriggerFailure.
type DeclineError struct {
	Reason Reason
	Err    error // nil: the reason says it all
}

func (e *DeclineError) Error() string {
	if e.Err == nil {
		return e.Reason.Message()
	}
	return fmt.Sprintf("%s %v", e.Reason.Message(), e.Err)
}

func (e *DeclineError) Unwrap() error { return e.Err }

// reasonOf is the reason that err carries, or else the one given.
func reasonOf(err error, otherwise Reason) Reason {
	var d *DeclineError
	if errors.As(err, &d) && d.Reason != NoReason && d.Reason < reasons {
		return d.Reason
	}
	return otherwise
}
