package snapshot

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/weirstream/weir/internal/base"
)

// Version is the version of the metadata format that Encode writes. Decode reads the ones before too: version 1 had neither rows
// nor records in flight, version 2 no files that keyed state refers to.
const Version = 3

// Kind is what a checkpoint was taken for.
type Kind string

const (
	// Checkpoint is taken by the engine and deleted by it.
	Checkpoint Kind = "checkpoint"
	// FullCheckpoint is a checkpoint that refers to no file of an older one.
	FullCheckpoint Kind = "full-checkpoint"
	// Savepoint is taken for a user, who owns its files; it commits nothing and is no point of recovery.
	Savepoint Kind = "savepoint"
	// Suspend is the synchronous savepoint of a job that stops, to go on later.
	Suspend Kind = "suspend"
	// Drain is the synchronous savepoint of a job that was brought to its end: restored, it is FINISHED at once.
	Drain Kind = "drain"
)

// IsSavepoint reports whether the files belong to a user.
func (k Kind) IsSavepoint() bool { return k == Savepoint || k.IsSynchronous() }

// IsSynchronous reports whether the job stops with this savepoint, which therefore commits and is a point of recovery.
func (k Kind) IsSynchronous() bool { return k == Suspend || k == Drain }

// Format is how the bytes of the states are laid out.
type Format string

const (
	// Native is the state backend's own format.
	Native Format = "native"
	// Canonical is the format that every backend reads and writes.
	Canonical Format = "canonical"
)

// Metadata is a completed checkpoint or savepoint.
type Metadata struct {
	ID      base.CheckpointID
	Job     base.JobID
	JobName string
	Kind    Kind
	Format  Format
	// Run is the run of the job that took it.
	Run int64
	// Wall is when it was triggered, in nanoseconds since the Unix epoch: for people, never compared.
	Wall      int64
	Operators []Operator
	Hooks     []Hook
}

// Hook is the state of one master hook.
type Hook struct {
	ID    string
	State Handle
}

// Operator is one operator's share of a checkpoint. Operators without state are in it too, so that a restore knows their
// watermark and whether they had ended.
type Operator struct {
	// UID identifies the operator over all versions of a job; Name is for people.
	UID, Name string
	// Parallelism is the number of subtasks when the checkpoint was taken.
	Parallelism int
	// EndOfInput says that the operator does something of its own when its input ends. Where only some of its subtasks had
	// ended, it cannot be restored at another parallelism.
	EndOfInput bool
	// Finished says that all subtasks had finished before the checkpoint began: there is no state, and no Subtasks.
	Finished bool
	// Schemas are the declared states.
	Schemas []StateSchema
	// InFlight are the types of the records in flight to the operator.
	InFlight []EdgeSchema
	// Coordinator is the operator coordinator's (the enumerator's) state; nil: it has none.
	Coordinator *Handle
	// Subtasks are all of them, in the order of their indexes: one that had nothing to save says so.
	Subtasks []Subtask
}

func (s *Subtask) hasState() bool { return s.hasOwnState() || len(s.InFlight) > 0 }

func (s *Subtask) hasOwnState() bool { return len(s.Keyed)+len(s.Lists)+len(s.Rows) > 0 }

// HasOwnState is true where the operator has state. Records in flight are not its own: they belong to an edge.
func (o *Operator) HasOwnState() bool {
	return o.Coordinator != nil || slices.ContainsFunc(o.Subtasks, func(s Subtask) bool { return s.hasOwnState() })
}

func (o *Operator) String() string {
	if o.Name == "" || o.Name == o.UID {
		return "operator " + quote(o.UID)
	}
	return fmt.Sprintf("operator %q (%s)", o.UID, o.Name)
}

// part names one subtask of o.
func (o *Operator) part(subtask int) string { return fmt.Sprintf("%v, subtask %d", o, subtask) }

func quote(s string) string { return strconv.Quote(s) }

// StateSchema is one declared state of an operator, as the job that wrote it declared it.
type StateSchema struct {
	Name string
	// Kind is what sort of state it is: value, list, map, reducing, aggregating, oplist, union, broadcast, timers, splits, sink.
	Kind string
	// Key, Value and MapKey are Avro schemas; empty where the kind has none.
	Key, Value, MapKey string
	// Was is what older checkpoints call it, after a renaming: of what a job declares, and not part of a checkpoint.
	Was string
}

// Subtask is one old subtask's share of an operator.
//
// Its zero value is not neutral: "no watermark yet" and "none pending" are base.NoTime.
type Subtask struct {
	Index int
	// Ended says that the snapshot was taken after the end of the data: restored, the subtask neither reads nor fires nor
	// ends again.
	Ended bool
	// Finished says that the task had finished before the checkpoint began; it left no state. It implies Ended.
	Finished bool
	// Watermark is the operator's combined watermark. PendingWatermark, when it is later, is one whose timers were still
	// firing: a restore goes on firing.
	Watermark, PendingWatermark base.EventTime
	Keyed                       []KeyedHandle
	Lists                       []ListHandle
	// Rows are the states of a canonical savepoint, in place of Keyed and Lists.
	Rows []RowsHandle
	// InFlight are records that the barrier overtook on their way to the subtask, one entry for each edge.
	InFlight []InFlightHandle
}

// KeyedHandle is keyed state of a range of key groups: the handle's bytes, and with an incremental checkpoint parts of files that
// older checkpoints wrote.
type KeyedHandle struct {
	Range base.KeyGroupRange
	Handle
	// Refers are those files, named absolutely. The bytes of Handle call them by numbers, which they list in this order: which parts of
	// them are referred to only they say.
	Refers []Handle
}

// Mode is how an operator's list is dealt to new subtasks.
type Mode uint8

const (
	// Split deals the elements out.
	Split Mode = iota
	// Union gives all elements to everyone.
	Union
	// Broadcast is the same on every subtask: each takes one old copy.
	Broadcast
)

func (m Mode) String() string {
	switch m {
	case Split:
		return "split"
	case Union:
		return "union"
	case Broadcast:
		return "broadcast"
	}
	return "unknown mode"
}

// ListHandle is elements of one operator list of one old subtask. Several lists may lie in one file.
type ListHandle struct {
	Name string
	Mode Mode
	// Offsets are where the elements begin, ascending; an element says itself where it ends, and may be empty.
	Offsets []int64
	Handle
}

// RowsHandle is one declared state of one subtask as rows of an Avro object container file: the canonical format.
type RowsHandle struct {
	// Name is the state's; of timers it is that of their schema.
	Name string
	// Keyed: the rows are ordered by the hashes of their keys, which are within Range. Else they are elements of a list that is
	// dealt by Mode.
	Keyed bool
	Range base.KeyGroupRange
	Mode  Mode
	// Count is the number of rows.
	Count int64
	// Index lies beside the file: where its blocks begin, and with which hash or row.
	Index Handle
	Handle
}

// Edge names an edge between two operators in all versions of a job: from an operator's output Tag ("": the main one) to the
// numbered input of another. Where there are several such edges, Twin numbers them from 0 on, in the order of the program.
type Edge struct {
	From  string // UID
	To    string // UID
	Input int
	Tag   string
	Twin  int
}

func (e Edge) String() string {
	s := e.From
	if e.Tag != "" {
		s += " (" + e.Tag + ")"
	}
	s += " -> " + e.To
	if e.Input != 0 {
		s += fmt.Sprintf(" (input %d)", e.Input)
	}
	if e.Twin != 0 {
		s += fmt.Sprintf(" (twin %d)", e.Twin)
	}
	return s
}

// EdgeSchema is the type of the records of an edge into an operator.
type EdgeSchema struct {
	Edge
	// Record is an Avro schema.
	Record string
}

// InFlightHandle is records on their way to one subtask over one edge, by sender, in the order in which they were sent.
type InFlightHandle struct {
	Edge
	// Output: they were still with one sender, whose subtask holds the handle. Else they had arrived, and the receiver's holds it.
	Output  bool
	Records int64
	Handle
}

// TaskState is what one task acknowledges: a part for each operator of its chain.
type TaskState struct {
	Operators []OperatorPart
}

// OperatorPart is one operator's part of a TaskState.
type OperatorPart struct {
	UID string
	// EndOfInput is as in Operator.
	EndOfInput bool
	Schemas    []StateSchema
	// InFlight are the types of the records of Subtask.InFlight.
	InFlight []EdgeSchema
	Subtask
}
