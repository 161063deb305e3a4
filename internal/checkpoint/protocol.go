package checkpoint

import (
	"time"

	"github.com/weirstream/weir/internal/base"
)

// Time is a reading of a monotonic clock of the machine's own host, in nanoseconds. Times of two hosts are never compared.
type Time int64

// Never is later than every Time: the deadline of what has none.
const Never = Time(1<<63 - 1)

// Add is t after d. It does not wrap around.
func (t Time) Add(d time.Duration) Time {
	if d > 0 && t > Never-Time(d) {
		return Never
	}
	return t + Time(d)
}

// Sub is the duration from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Token names one I/O action of a Coordinator; the event that answers it carries the same token.
type Token uint64

// Request names a caller who waits for a Reply; 0 is nobody.
type Request uint64

// Kind says what is taken: a checkpoint of the job's own, or a savepoint of its user's.
type Kind uint8

const (
	// Checkpoint may refer to files of an earlier one (its Base).
	Checkpoint Kind = iota
	// FullCheckpoint refers to no earlier file; later checkpoints may refer to its own.
	FullCheckpoint
	// Savepoint belongs to the user: no retention deletes it, no failover restores from it, no sink commits by it.
	Savepoint
	// Suspend is stop-with-savepoint: sources stop, the savepoint commits, the job finishes. Nothing counts as ended.
	Suspend
	// Drain is stop-with-savepoint --drain: as Suspend, but everything ends as if the input had (MAX watermark, EndOfInput).
	Drain
)

// IsSavepoint is true of the three kinds that belong to the user.
func (k Kind) IsSavepoint() bool { return k >= Savepoint }

// IsSynchronous is true of the two kinds by which a job stops.
func (k Kind) IsSynchronous() bool { return k >= Suspend }

func (k Kind) String() string {
	return [...]string{"CHECKPOINT", "FULL_CHECKPOINT", "SAVEPOINT", "SUSPEND", "DRAIN"}[k]
}

// Format is how the state of a savepoint is written. Checkpoints are always Native.
type Format uint8

const (
	// Canonical is the format that every state backend reads and writes.
	Canonical Format = iota
	// Native is the backend's own format.
	Native
)

func (f Format) String() string { return [...]string{"CANONICAL", "NATIVE"}[f] }

// Alignment is how a barrier meets the records before and behind it.
type Alignment uint8

const (
	// AtLeastOnce barriers block nothing: records behind an early barrier are in the snapshot and come again.
	AtLeastOnce Alignment = iota
	// Aligned barriers keep their place; a channel waits behind its barrier until all have come.
	Aligned
	// Unaligned barriers overtake records and take these into the checkpoint.
	Unaligned
)

func (a Alignment) String() string { return [...]string{"AT_LEAST_ONCE", "ALIGNED", "UNALIGNED"}[a] }

// Barrier is what a task is triggered with, and what flows between the records.
type Barrier struct {
	ID        base.CheckpointID
	Kind      Kind
	Format    Format
	Alignment Alignment
	// Timeout of an Aligned barrier: so long after its first local announcement the barrier turns Unaligned; 0: it never does.
	Timeout time.Duration
	// Forced: aligned only because this edge cannot be anything else (broadcast). The receiver sends on what the barrier was:
	// Unaligned if it has no Timeout.
	Forced bool
	// Early, of an AtLeastOnce barrier: the end of the sender's data lies before it in the channel, and yet the sender's snapshot is none of
	// a task that has ended.
	Early bool
	// Wall is the wall clock of the coordinator's host when the location was created, in Unix nanoseconds.
	Wall int64
	// Base is the checkpoint whose files an incremental snapshot may refer to; 0: none. It is kept until this one ends.
	Base base.CheckpointID
	// Location is the directory that the checkpoint's files belong to.
	Location string
}

// Restored is b as it was before an edge forced it to be aligned: what a task sends on.
func (b Barrier) Restored() Barrier {
	if b.Forced && b.Timeout == 0 {
		b.Alignment = Unaligned
	}
	b.Forced = false
	return b
}

// Completed is a checkpoint or savepoint of which everything is known. From its WriteMetadata on nobody changes it, so that
// any goroutine may read it.
type Completed struct {
	ID       base.CheckpointID
	Kind     Kind
	Format   Format
	Location string
	Wall     int64
	Base     base.CheckpointID
	// Keep: the files belong to somebody else (a savepoint, a snapshot restored without being claimed). Retention forgets
	// it without a Discard.
	Keep bool
	// Apart: it, or a file of it, lies elsewhere than the job's own checkpoints (what was claimed may). None refers to its files: they are
	// not counted here.
	Apart bool

	Tasks     []any  // by base.Task: what the task acknowledged; nil where it was finished
	Finished  []bool // by base.Task: it had finished before the checkpoint began
	Ended     []bool // by base.Task: its snapshot was taken after its end of data
	Operators []any  // by vertex: the operator coordinator's state
	Hooks     []any  // by hook: the master hook's state
}

// AckMetrics is what an execution measured of its part of a checkpoint: where its time went, in this order.
//
//	Wall --StartDelay--> first barrier --Held--> snapshot --Sync--> --Async--> written
//	                           |-------Alignment-------> last barrier
//
// Where barriers keep their place the snapshot waits for the last one: Held is Alignment. Where they overtake, the snapshot is
// taken before, and Async is longer than States: it waits for the last barrier, and then writes what was overtaken.
type AckMetrics struct {
	StartDelay time.Duration // from the barrier's Wall, by the clock of the task's host; never negative
	Held       time.Duration
	Alignment  time.Duration
	Sync       time.Duration
	Async      time.Duration
	States     time.Duration // of Async, until the states of the operators were written
	// Processed and Persisted are bytes of records that were processed during the alignment, or went into the checkpoint.
	Processed, Persisted int64
	Unaligned            bool
	// Busy and Pressed are how long, since its snapshot before, the task has worked, and has had no room in an output.
	Busy, Pressed time.Duration
	// First and Last are the channels on which the first and the last barrier came, counted from 1; 0: the task was triggered.
	First, Last int
}

// TaskState is what the Coordinator knows of an execution.
type TaskState uint8

const (
	// TaskDeploying is everything before running: created, scheduled, initialising.
	TaskDeploying TaskState = iota
	// TaskRunning can be triggered.
	TaskRunning
	// TaskFinished has processed everything and committed it.
	TaskFinished
	// TaskGone has failed, is cancelling or cancelled: never "finished".
	TaskGone
)

func (s TaskState) String() string {
	return [...]string{"DEPLOYING", "RUNNING", "FINISHED", "GONE"}[s]
}

// JobEnd is how a job's life on this master ends.
type JobEnd uint8

const (
	JobFinished  JobEnd = iota // all data processed, or stopped with a savepoint
	JobCanceled                // by its user
	JobFailed                  // for good
	JobSuspended               // not for good: another master goes on with it
)

func (e JobEnd) String() string {
	return [...]string{"FINISHED", "CANCELED", "FAILED", "SUSPENDED"}[e]
}

// CoordinatorEvent is what a Coordinator takes: one of the 19 structs below.
type CoordinatorEvent interface{ coordinatorEvent() }

type (
	// JobRunning: the job's status became RUNNING.
	JobRunning struct{}

	// JobNotRunning: the job's status left RUNNING.
	JobNotRunning struct{}

	// TaskChanged: a task has a new attempt, or its attempt a new state.
	TaskChanged struct {
		Exec  base.Exec
		State TaskState
	}

	// TaskEnded: an execution is at the end of its data, drained, and waits for a checkpoint to finish.
	TaskEnded struct{ Exec base.Exec }

	// BacklogChanged: the source of a vertex entered its backlog or left it.
	BacklogChanged struct {
		Vertex  int
		Backlog bool
	}

	// Requested: a user wants a checkpoint, a savepoint or a stop. The job's machine has checked the target directory and
	// that there is no blocking edge.
	Requested struct {
		Request Request
		Kind    Kind
		Format  Format
		Target  string
		// StopScheduler: no periodic checkpoint from now on, unless this one fails (stop, cancel-with-savepoint).
		StopScheduler bool
	}

	// LocationCreated answers CreateLocation: the id is durably used and its directory exists.
	LocationCreated struct {
		Token    Token
		Location string
		Wall     int64 // Unix nanoseconds
		Err      error
	}

	// OperatorSnapped answers SnapshotOperator. Events that the operator coordinator sent before its snapshot have reached
	// the Coordinator before this answer, later ones come after it.
	OperatorSnapped struct {
		Token Token
		State any
		Err   error
	}

	// HookSnapped answers SnapshotHook.
	HookSnapped struct {
		Token Token
		State any
		Err   error
	}

	// OperatorSent: the operator coordinator of a vertex wants an event delivered to one of its tasks.
	OperatorSent struct {
		Vertex  int
		To      base.Task
		Payload any
	}

	// TriggerRefused: an execution could not be triggered (no such task: UnknownTask; not running: DeclinedNotReady; ...).
	TriggerRefused struct {
		Exec   base.Exec
		ID     base.CheckpointID
		Reason Reason
		Err    error
	}

	// TaskAcked: an execution's part of a checkpoint is complete and durable.
	// The Coordinator passes Metrics by.
	TaskAcked struct {
		Exec    base.Exec
		ID      base.CheckpointID
		State   any
		Ended   bool
		Metrics AckMetrics
	}

	// TaskDeclined: an execution will not contribute to a checkpoint.
	TaskDeclined struct {
		Exec   base.Exec
		ID     base.CheckpointID
		Reason Reason
		Err    error
	}

	// MetadataWritten answers WriteMetadata, with certainty: with an Err nothing is published, now or ever.
	MetadataWritten struct {
		Token Token
		Bytes int64
		Err   error
	}

	// Stored answers Store, with certainty. With an Err the checkpoint is withdrawn: its metadata is discarded, and only the
	// answer to that ends it.
	Stored struct {
		Token Token
		Err   error
	}

	// Discarded answers Discard. What was missing, or could not be deleted, is the orphan sweep's: there is no error.
	Discarded struct{ Token Token }

	// RestoreAsked: the last affected task is Gone, and the job's machine wants to know what to restore from.
	// Global: everything restarts, not only a region.
	RestoreAsked struct{ Global bool }

	// Closed: the job ended on this master. Nothing begins any more; what is sealed is waited for.
	Closed struct{ End JobEnd }

	// TimePassed: the Deadline came.
	TimePassed struct{}
)

func (JobRunning) coordinatorEvent()      {}
func (JobNotRunning) coordinatorEvent()   {}
func (TaskChanged) coordinatorEvent()     {}
func (TaskEnded) coordinatorEvent()       {}
func (BacklogChanged) coordinatorEvent()  {}
func (Requested) coordinatorEvent()       {}
func (LocationCreated) coordinatorEvent() {}
func (OperatorSnapped) coordinatorEvent() {}
func (HookSnapped) coordinatorEvent()     {}
func (OperatorSent) coordinatorEvent()    {}
func (TriggerRefused) coordinatorEvent()  {}
func (TaskAcked) coordinatorEvent()       {}
func (TaskDeclined) coordinatorEvent()    {}
func (MetadataWritten) coordinatorEvent() {}
func (Stored) coordinatorEvent()          {}
func (Discarded) coordinatorEvent()       {}
func (RestoreAsked) coordinatorEvent()    {}
func (Closed) coordinatorEvent()          {}
func (TimePassed) coordinatorEvent()      {}

// CoordinatorAction is what a Coordinator wants done: one of the 14 structs below.
type CoordinatorAction interface{ coordinatorAction() }

type (
	// CreateLocation: record durably that ID is used, then make its directory. Answer: LocationCreated.
	CreateLocation struct {
		Token  Token
		ID     base.CheckpointID
		Kind   Kind
		Target string
	}

	// SnapshotOperator: snapshot a vertex's operator coordinator. Answer: OperatorSnapped.
	SnapshotOperator struct {
		Token  Token
		ID     base.CheckpointID
		Vertex int
	}

	// SnapshotHook: snapshot a master hook. Answer: HookSnapped.
	SnapshotHook struct {
		Token Token
		ID    base.CheckpointID
		Hook  int
	}

	// TriggerTasks: put the barrier on the link of each of these executions: the sources, and every running task without a
	// running predecessor.
	TriggerTasks struct {
		Tasks   []base.Exec
		Barrier Barrier
	}

	// SendEvent: put an operator coordinator's event on the same ordered link.
	SendEvent struct {
		Exec    base.Exec
		Payload any
	}

	// WriteMetadata: publish the checkpoint's metadata. Answer: MetadataWritten. From here on only answers decide.
	WriteMetadata struct {
		Token     Token
		Completed *Completed
	}

	// Store: make this one what a restart finds as the latest: a checkpoint, or (by a pointer) the savepoint by which the
	// job stops. Answer: Stored.
	Store struct {
		Token     Token
		Completed *Completed
	}

	// NotifyComplete: tell the tasks, operator coordinators and hooks that a checkpoint is complete: they commit.
	// Subsumed is the newest checkpoint that was given up for it; 0: none.
	NotifyComplete struct {
		ID       base.CheckpointID
		Subsumed base.CheckpointID
		Tasks    []base.Exec
	}

	// NotifyAborted: tell the tasks, operator coordinators and hooks that a checkpoint will not complete.
	NotifyAborted struct {
		ID             base.CheckpointID
		LatestComplete base.CheckpointID // 0: none
		Reason         Reason
		Tasks          []base.Exec
	}

	// Discard: delete what a checkpoint left (Location with all in it; of a Completed its metadata first), or the State of one
	// late acknowledgement. Answer: Discarded.
	Discard struct {
		Token     Token
		ID        base.CheckpointID
		Location  string
		Completed *Completed
		State     any
	}

	// Reply: tell the user who asked. Reason is NoReason on success.
	Reply struct {
		Request  Request
		ID       base.CheckpointID
		Location string
		Reason   Reason
		Err      error
	}

	// Restore answers RestoreAsked: restore the affected tasks from this checkpoint; nil: start them empty.
	Restore struct{ From *Completed }

	// FailJob: fail the job, or where Exec is not NoExec this execution. Terminal: for good, no restart (also the answer to
	// RestoreAsked once the savepoint by which the job stops is complete).
	FailJob struct {
		Exec     base.Exec
		Reason   Reason
		Err      error
		Terminal bool
	}

	// Report is one line of the checkpoints' history: for the log, the statistics and the metrics.
	Report struct {
		What     Progress
		ID       base.CheckpointID // 0: it failed before it had an id
		Kind     Kind
		Format   Format
		Location string
		Wall     int64 // when the location was created; 0: it was not
		Periodic bool
		Tasks    int           // how many are to acknowledge
		Queued   time.Duration // how long the request waited
		// Of a completed one:
		Bytes    int64         // of the metadata
		Duration time.Duration // from the trigger to here
		Finalize time.Duration // of that, from the last acknowledgement
		// Of a failed one:
		Reason      Reason
		Err         error
		Exec        base.Exec // who declined; NoExec: nobody
		Consecutive int       // counted failures since the last success
	}
)

// Progress is what a Report tells.
type Progress uint8

const (
	Begun     Progress = iota // it has an id
	Succeeded                 // it is complete
	Failed                    // it was refused or aborted
)

func (p Progress) String() string { return [...]string{"BEGUN", "SUCCEEDED", "FAILED"}[p] }

// NoExec is no execution at all.
var NoExec = base.Exec{Task: -1, Attempt: -1}

func (CreateLocation) coordinatorAction()   {}
func (SnapshotOperator) coordinatorAction() {}
func (SnapshotHook) coordinatorAction()     {}
func (TriggerTasks) coordinatorAction()     {}
func (SendEvent) coordinatorAction()        {}
func (WriteMetadata) coordinatorAction()    {}
func (Store) coordinatorAction()            {}
func (NotifyComplete) coordinatorAction()   {}
func (NotifyAborted) coordinatorAction()    {}
func (Discard) coordinatorAction()          {}
func (Reply) coordinatorAction()            {}
func (Restore) coordinatorAction()          {}
func (FailJob) coordinatorAction()          {}
func (Report) coordinatorAction()           {}

// HandlerEvent is what a BarrierHandler takes: one of the 10 structs below.
type HandlerEvent interface{ handlerEvent() }

type (
	// BarrierArrived: a barrier is at the head of its channel; or, with Priority, has just arrived and overtakes the
	// records queued in every channel.
	BarrierArrived struct {
		Channel  int
		Barrier  Barrier
		Priority bool
	}

	// BarrierAnnounced: an aligned barrier with a Timeout has arrived and lies in the queue of its channel.
	BarrierAnnounced struct {
		Channel int
		Barrier Barrier
	}

	// CancelArrived: a cancel marker is at the head of its channel: its sender did not take part in the checkpoint.
	CancelArrived struct {
		Channel int
		ID      base.CheckpointID
	}

	// ChannelEnded: the end of the channel is at its head: its sender has finished.
	ChannelEnded struct{ Channel int }

	// Triggered: the coordinator's message.
	Triggered struct{ Barrier Barrier }

	// DataEnded: everything has been read. Drained: EndOfInput has been called and the MAX watermark sent.
	DataEnded struct{ Drained bool }

	// SnapshotWritten answers Snapshot, once everything including in-flight data is durable: with in-flight data of inputs
	// not before StopRecording; of an aligned barrier with a Timeout not before it has left all output queues or was
	// converted. An error may come at any time; a *DeclineError in it gives the reason.
	SnapshotWritten struct {
		ID    base.CheckpointID
		State any
		Err   error
	}

	// CompleteNotified: the coordinator's message.
	CompleteNotified struct{ ID base.CheckpointID }

	// AbortNotified: the coordinator's message. LatestComplete makes up for a lost CompleteNotified; 0: none.
	AbortNotified struct {
		ID             base.CheckpointID
		LatestComplete base.CheckpointID
	}

	// AlarmRang: the Deadline came.
	AlarmRang struct{}
)

func (BarrierArrived) handlerEvent()   {}
func (BarrierAnnounced) handlerEvent() {}
func (CancelArrived) handlerEvent()    {}
func (ChannelEnded) handlerEvent()     {}
func (Triggered) handlerEvent()        {}
func (DataEnded) handlerEvent()        {}
func (SnapshotWritten) handlerEvent()  {}
func (CompleteNotified) handlerEvent() {}
func (AbortNotified) handlerEvent()    {}
func (AlarmRang) handlerEvent()        {}

// HandlerAction is what a BarrierHandler wants done: one of the 16 structs below.
type HandlerAction interface{ handlerAction() }

type (
	// Block: take nothing from this channel until Unblock.
	Block struct{ Channel int }

	// Unblock ends Block and Seal.
	Unblock struct{ Channel int }

	// Seal: what has arrived on this channel up to now may still be taken; what arrives from now on waits until Unblock.
	Seal struct{ Channel int }

	// Prioritize: move the announced barrier to the front; it then comes as BarrierArrived with Priority.
	Prioritize struct {
		Channel int
		ID      base.CheckpointID
	}

	// EndSource: read no more and send the end of data downstream, before the Snapshot that follows; with Drain the MAX
	// watermark and EndOfInput come first.
	EndSource struct{ Drain bool }

	// Snapshot: in one step send the barrier to all outputs and take the synchronous part, then start writing. Answer:
	// SnapshotWritten. Record (nil: nothing) says of which channels what is queued belongs to the snapshot, and what still
	// arrives until the barrier comes or StopRecording. Ended: the snapshot is taken after the end of data, and says so.
	Snapshot struct {
		Barrier Barrier
		Record  []bool
		Ended   bool
	}

	// StopRecording: the in-flight data of the inputs is complete.
	StopRecording struct{ ID base.CheckpointID }

	// ConvertOutput: the aligned barrier that is still in output queues turns Unaligned: it overtakes the records there,
	// which go into the snapshot.
	ConvertOutput struct{ ID base.CheckpointID }

	// DropSnapshot: stop writing and recording, and delete what was written. SnapshotWritten is not expected any more.
	DropSnapshot struct{ ID base.CheckpointID }

	// ForwardCancel: send a cancel marker to all outputs.
	ForwardCancel struct{ ID base.CheckpointID }

	// Ack: tell the coordinator (TaskAcked).
	Ack struct {
		ID    base.CheckpointID
		State any
		Ended bool
	}

	// Decline: tell the coordinator (TaskDeclined).
	Decline struct {
		ID     base.CheckpointID
		Reason Reason
		Err    error
	}

	// Complete: tell the operators: what belongs to this and earlier checkpoints is committed.
	Complete struct{ ID base.CheckpointID }

	// Abort: tell the operators.
	Abort struct{ ID base.CheckpointID }

	// Finish: when the commits of the preceding Complete are done, close the operators, end the outputs, and finish.
	Finish struct{}

	// FailTask: fail the task.
	FailTask struct{ Err error }
)

func (Block) handlerAction()         {}
func (Unblock) handlerAction()       {}
func (Seal) handlerAction()          {}
func (Prioritize) handlerAction()    {}
func (EndSource) handlerAction()     {}
func (Snapshot) handlerAction()      {}
func (StopRecording) handlerAction() {}
func (ConvertOutput) handlerAction() {}
func (DropSnapshot) handlerAction()  {}
func (ForwardCancel) handlerAction() {}
func (Ack) handlerAction()           {}
func (Decline) handlerAction()       {}
func (Complete) handlerAction()      {}
func (Abort) handlerAction()         {}
func (Finish) handlerAction()        {}
func (FailTask) handlerAction()      {}
