package storage

import (
	"errors"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// JobDir is a job's directory; it implements Checkpoints.
type JobDir struct{ Checkpoints }

// OpenJobDir locks and opens <dir>/<job>.
func OpenJobDir(fs FS, dir string, job base.JobID) (*JobDir, error) {
	return nil, errors.ErrUnsupported
}

// JobMemory keeps checkpoints in the memory of the job master; it implements Checkpoints.
type JobMemory struct{ Checkpoints }

// OpenJobMemory is empty; a state may be limit bytes long (0: 5 MiB).
func OpenJobMemory(fs FS, job base.JobID, limit int64) *JobMemory { return nil }

// NewWriter writes files of the checkpoint at location; what a worker uses, which knows only the barrier's location.
func NewWriter(fs FS, location string, o WriterOptions) Writer { return nil }

// ReadMetadata reads the checkpoint at path, however the path is spelt.
func ReadMetadata(fs FS, path string) (m *snapshot.Metadata, location string, err error) {
	return nil, "", errors.ErrUnsupported
}

// OpenHandle opens what h names, and verifies size and checksum.
func OpenHandle(fs FS, location string, h snapshot.Handle) (Reader, error) {
	return nil, errors.ErrUnsupported
}

// Disk is the machine's own file system.
func Disk() FS { return nil }
