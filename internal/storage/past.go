package storage

import (
	"errors"
	"fmt"
	iofs "io/fs"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// Past is what earlier runs of a job have left to go on from.
type Past interface {
	// Fresh reports that no earlier run has completed a checkpoint: so no checkpoint has ever committed anything.
	Fresh() bool
	// EndState is how the last run that ended did end, and which run that was; "", 0: none has ended.
	EndState() (state string, run int64)
	// Owns reports that what lies at location is the job's to delete: its own checkpoint, or what it has claimed.
	Owns(location string) bool
	// Latest is the newest completed checkpoint or synchronous savepoint. ErrNone: there is none. One that is damaged or
	// incomplete is an error, and no older one is taken in its place.
	Latest() (*snapshot.Metadata, string, error)
	// Completed are all that are completed and readable, ascending, but for what was left behind; with them what was claimed.
	Completed() ([]Completed, error)
}

// LookAtJobDir is what lies in <dir>/<job>, for who only wants to know: it locks nothing and changes nothing, so the job may be running
// meanwhile. Then an error can be the sight of a moment, and looking again may help.
func LookAtJobDir(fsys FS, dir string, job base.JobID) (Past, error) {
	d, err := jobDir(fsys, dir, job)
	if err != nil {
		return nil, err
	}
	if _, err := fsys.Stat(d.dir); errors.Is(err, iofs.ErrNotExist) {
		return nothingYet{fmt.Errorf("storage: %w in %s: there is no such directory", ErrNone, d.dir)}, nil
	}
	if _, err := d.look(); err != nil {
		return nil, err
	}
	return d, nil
}

// nothingYet is the past of a job that never ran.
type nothingYet struct{ none error }

// Fresh implements Past.
func (nothingYet) Fresh() bool { return true }

// EndState implements Past.
func (nothingYet) EndState() (state string, run int64) { return "", 0 }

// Owns implements Past.
func (nothingYet) Owns(string) bool { return false }

// Latest implements Past.
func (n nothingYet) Latest() (*snapshot.Metadata, string, error) { return nil, "", n.none }

// Completed implements Past.
func (nothingYet) Completed() ([]Completed, error) { return nil, nil }
