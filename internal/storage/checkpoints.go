package storage

import (
	"errors"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

var (
	// ErrNone says that a job has no completed checkpoint; the error that wraps it lists what is there instead.
	ErrNone = errors.New("no completed checkpoint")
	// ErrDamaged marks bytes that are not what was written: trying again does not help.
	ErrDamaged = snapshot.ErrDamaged
	// ErrUncertain marks a Publish or PointSavepoint of which nobody can say whether it happened. The caller must call it again,
	// with the same arguments, until the answer is certain: nil, or an error without this mark.
	ErrUncertain = errors.New("uncertain")
)

// StateFinished is the end state of a job that has processed everything, or was stopped with a savepoint.
const StateFinished = "FINISHED"

// Checkpoints is where one job keeps its checkpoints, as its job master sees it: a directory (JobDir), or the master's own
// memory (JobMemory). Its methods are safe for concurrent use.
type Checkpoints interface {
	Past

	// Run numbers the runs of the job, from 1; this one is the latest.
	Run() int64
	// LargestID is the largest checkpoint id ever used; 0: none.
	LargestID() base.CheckpointID
	// SetEndState records how this run ended. After StateFinished there is nothing to go on from but a savepoint that the job stopped
	// with.
	SetEndState(state string) error

	// StartFrom records, before anything runs, that this run begins from a snapshot that was named by its path, and not from the
	// job's latest: Latest is that snapshot until a checkpoint of the run completes, and what the job had before is left behind, to be
	// neither restored nor deleted any more. With claim the snapshot becomes the job's own; a *ClaimedError names who has it already.
	StartFrom(m *snapshot.Metadata, location string, claim bool) error
	// Within reports that location lies where the job's own checkpoints do: only to those may other checkpoints refer.
	Within(location string) bool

	// CreateLocation records durably that id is used, and makes the place for a checkpoint's files. Target is the directory
	// in which a savepoint is to lie; checkpoints have none.
	CreateLocation(id base.CheckpointID, kind snapshot.Kind, target string) (location string, err error)
	// Writer writes the files of the checkpoint at location.
	Writer(location string, o WriterOptions) Writer
	// Publish completes the checkpoint: all or nothing, durable, and never over another one.
	Publish(location string, m *snapshot.Metadata) (bytes int64, err error)
	// PointSavepoint makes a published synchronous savepoint count as a completed checkpoint of the job.
	PointSavepoint(id base.CheckpointID, location string) error
	// Discard deletes a checkpoint, completed or not; one that is not there is deleted. A file that it shares goes with the last
	// checkpoint that needs it.
	Discard(location string) error

	// Open opens what a handle of the checkpoint at location names, and verifies size and checksum.
	Open(location string, h snapshot.Handle) (Reader, error)
	// OpenPages is Open of a file whose parts carry checksums of their own: it is not read before, and only its size is verified.
	OpenPages(location string, h snapshot.Handle) (Reader, error)
	// Sweep deletes what crashes of older runs left behind, and what late uploads of this one did, below the newest completed
	// checkpoint, and says what.
	Sweep() (removed []string, err error)
	// Close gives the job up to the next owner, when nothing of it writes any more. Deletions that are under way end before; later ones
	// are refused.
	Close() error
}

// Completed is a completed checkpoint of a job.
type Completed struct {
	Metadata *snapshot.Metadata
	Location string
}

var (
	_ Checkpoints = (*JobDir)(nil)
	_ Checkpoints = (*JobMemory)(nil)
)
