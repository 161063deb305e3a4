package storage

import (
	"errors"
	"io"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

var (
	// ErrNone says that a job has no completed checkpoint; the error that wraps it lists what is there instead.
	ErrNone = errors.New("no completed checkpoint")
	// ErrDamaged marks bytes that are not what was written: trying again does not help.
	ErrDamaged = errors.New("damaged")
	// ErrUncertain marks a Publish of which nobody can say whether it happened. The caller must ask again, with the same
	// arguments, until the answer is certain, or Discard the location.
	ErrUncertain = errors.New("uncertain")
)

// Checkpoints is where one job keeps its checkpoints, as its job master sees it: a directory (JobDir), or the master's own
// memory (JobMemory). Its methods are safe for concurrent use.
type Checkpoints interface {
	// Run numbers the runs of the job, from 1; this one is the latest.
	Run() int64
	// Fresh reports that no run came before this one.
	Fresh() bool
	// LargestID is the largest checkpoint id ever used; 0: none.
	LargestID() base.CheckpointID
	// EndState is how the last run that ended did end, and which run that was; "", 0: none has ended.
	EndState() (state string, run int64)
	// SetEndState records how this run ended.
	SetEndState(state string) error

	// CreateLocation records durably that id is used, and makes the place for a checkpoint's files. Target is the directory
	// in which a savepoint is to lie; checkpoints have none.
	CreateLocation(id base.CheckpointID, kind snapshot.Kind, target string) (location string, err error)
	// Writer writes the files of the checkpoint at location.
	Writer(location string, o WriterOptions) Writer
	// Publish completes the checkpoint: all or nothing, durable, and never over another one.
	Publish(location string, m *snapshot.Metadata) (bytes int64, err error)
	// PointSavepoint makes a published synchronous savepoint count as a completed checkpoint of the job.
	PointSavepoint(id base.CheckpointID, location string) error
	// Discard deletes a checkpoint, completed or not; one that is not there is deleted.
	Discard(location string) error

	// Latest is the newest completed checkpoint or synchronous savepoint. ErrNone: there is none. One that is damaged or
	// incomplete is an error, and no older one is taken in its place.
	Latest() (*snapshot.Metadata, string, error)
	// Completed are all that are completed and readable, ascending.
	Completed() ([]Completed, error)
	// Open opens what a handle of the checkpoint at location names, and verifies size and checksum.
	Open(location string, h snapshot.Handle) (Reader, error)
	// Sweep deletes what crashes of older runs left behind, below the newest completed checkpoint, and says what.
	Sweep() (removed []string, err error)
	// Close gives the job up to the next owner.
	Close() error
}

// Completed is a completed checkpoint of a job.
type Completed struct {
	Metadata *snapshot.Metadata
	Location string
}

// Writer makes the files of one checkpoint.
type Writer interface {
	// Create begins an object. The name is a hint for whoever looks at the directory, unique within the checkpoint.
	Create(name string) (Object, error)
}

// Object is bytes being written into a checkpoint. It ends with exactly one of Commit and Abort.
type Object interface {
	io.Writer
	// Commit makes the bytes durable and says where they are. After an error nothing is left of them.
	Commit() (snapshot.Handle, error)
	// Abort removes what was written.
	Abort() error
}

// WriterOptions tune a Writer; the zero value is the default.
type WriterOptions struct {
	// InlineMax is the size in bytes up to which an object travels within the metadata; 0 is DefaultInlineMax, a negative one
	// puts every object into a file (canonical savepoints).
	InlineMax int
}

// DefaultInlineMax is the default of WriterOptions.InlineMax (Flink's data-inline-threshold).
const DefaultInlineMax = 20 << 10
