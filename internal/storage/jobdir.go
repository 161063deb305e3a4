package storage

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"os"
	"path"
	"sync"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// JobDir is a job's directory; it implements Checkpoints.
//
//	<dir>/<job>/
//	    _lock              flock of the live owner; what it says is for people
//	    _job               the record: largest id ever used, run, last end state
//	    _savepoint-12      a pointer: the job stopped with this savepoint
//	    shared/            files of several checkpoints
//	    taskowned/         files that the job never deletes
//	    chk-11/
//	        _metadata      there exactly when the checkpoint is completed
//	        ...            its files
//
// One process owns it at a time. The lock is the kernel's, so it is free the moment the owner is dead; a pid file would have to
// be believed or not after each crash. The owner raises the run number before it does anything else, so that what it names
// by run (attempts of tasks, transactions of sinks) is never taken for a dead owner's.
//
// An id is durable in the record before anything carries it, so it is never used twice, not by a checkpoint that nobody
// remembers either: a sink's transactions are named by ids.
type JobDir struct {
	fs   FS
	dir  string // <dir>/<job>
	job  base.JobID
	lock io.Closer

	fresh bool
	// inherited is the largest id of older runs: what they left unfinished can be swept.
	inherited base.CheckpointID

	// turn is taken by who writes the record: writes must not pass each other. A channel, because it is held across I/O.
	turn chan struct{}

	mu     sync.Mutex // protects what follows
	record record
	undone map[string]bool // locations whose Discard failed: to be swept
	log    *slog.Logger
}

// OpenJobDir locks <dir>/<job>, making it if need be, and begins a new run. A *LockedError names the live owner. A damaged
// record is refused: it must be repaired or removed by someone who knows which ids were used.
func OpenJobDir(fsys FS, dir string, job base.JobID) (*JobDir, error) {
	if !snapshot.ValidJob(job) {
		return nil, fmt.Errorf("storage: %q is no job id: it must have 32 hexadecimal digits, 0-9 and a-f", string(job))
	}
	root, err := Resolve(fsys, dir)
	if err != nil {
		return nil, err
	}
	d := &JobDir{
		fs: fsys, dir: path.Join(root, string(job)), job: job,
		turn: make(chan struct{}, 1), undone: map[string]bool{}, log: slog.New(slog.DiscardHandler),
	}
	if err := MkdirAll(fsys, d.dir); err != nil {
		return nil, fmt.Errorf("storage: opening the directory of job %s: %w", job, err)
	}
	if d.lock, err = fsys.Lock(path.Join(d.dir, lockName), fmt.Sprintf("process %d", os.Getpid())); err != nil {
		return nil, notLocked(job, err)
	}
	if err := d.begin(); err != nil {
		return nil, errors.Join(err, d.lock.Close())
	}
	return d, nil
}

// notLocked tells another process's lock from one that cannot be had at all.
func notLocked(job base.JobID, err error) error {
	if _, held := errors.AsType[*LockedError](err); held {
		return fmt.Errorf("storage: the directory of job %s is in use, and only one process may run a job: stop that one first: %w", job, err)
	}
	return fmt.Errorf("storage: locking the directory of job %s: %w", job, err)
}

// begin starts a run: what it finds decides the run's number and the first free id.
func (d *JobDir) begin() error {
	for _, name := range []string{sharedName, taskOwnedName} {
		if err := MkdirAll(d.fs, path.Join(d.dir, name)); err != nil {
			return err
		}
	}
	found, err := d.find()
	if err != nil {
		return err
	}
	known, err := d.readRecord()
	if err != nil {
		return err
	}
	d.record = known
	for _, c := range found { // if someone removed the record
		d.record.largest = max(d.record.largest, c.id)
	}
	if known.run == 0 && len(found) > 0 { // what of it completed, and was deleted since, nobody knows
		d.record.first = 1
	}
	d.fresh = d.record.first == 0
	d.inherited = d.record.largest
	return d.change(func(r *record) error { r.run++; return nil })
}

// readRecord is the record; one of run 0 when there is none.
func (d *JobDir) readRecord() (record, error) {
	name := path.Join(d.dir, recordName)
	b, err := readFile(d.fs, name)
	if errors.Is(err, iofs.ErrNotExist) {
		return record{}, nil
	}
	if err != nil {
		return record{}, fmt.Errorf("storage: reading the job's record: %w", err)
	}
	r, err := decodeRecord(b)
	if err != nil {
		return record{}, fmt.Errorf("storage: the job's record %s is unusable: %w; if it cannot be brought back, remove it: "+
			"ids then go on after the largest checkpoint that is there", name, err)
	}
	return r, nil
}

// change applies what to the record and writes it. What the caller asked for holds in memory even when the write fails, since
// it may be on the disk: an id is then used up.
func (d *JobDir) change(what func(*record) error) error {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	d.mu.Lock()
	err := what(&d.record)
	r := d.record
	d.mu.Unlock()
	if err != nil {
		return err
	}
	if err := replaceFile(d.fs, d.dir, recordName, r.encode()); err != nil {
		return fmt.Errorf("storage: writing the job's record: %w", err)
	}
	return nil
}

func (d *JobDir) known() record {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.record
}

// SetLog names the logger for what is passed over or cannot be removed; without one that is not told.
func (d *JobDir) SetLog(log *slog.Logger) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = log
}

func (d *JobDir) logger() *slog.Logger {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log
}

// Run implements Checkpoints.
func (d *JobDir) Run() int64 { return d.known().run }

// Fresh implements Checkpoints.
func (d *JobDir) Fresh() bool { return d.fresh }

// LargestID implements Checkpoints.
func (d *JobDir) LargestID() base.CheckpointID { return d.known().largest }

// EndState implements Checkpoints.
func (d *JobDir) EndState() (state string, run int64) {
	r := d.known()
	return r.end, r.endRun
}

// SetEndState implements Checkpoints.
func (d *JobDir) SetEndState(state string) error {
	return d.change(func(r *record) error { r.end, r.endRun = state, r.run; return nil })
}

// CreateLocation implements Checkpoints. An id that was ever used is refused.
func (d *JobDir) CreateLocation(id base.CheckpointID, kind snapshot.Kind, target string) (string, error) {
	err := d.change(func(r *record) error {
		if id <= r.largest {
			return usedBefore(id, r.largest)
		}
		r.largest = id
		return nil
	})
	if err != nil {
		return "", err
	}
	if kind.IsSavepoint() {
		return createSavepoint(d.fs, target, d.job)
	}
	location := d.chk(id)
	if err := mkdirSynced(d.fs, location); err != nil {
		return "", fmt.Errorf("storage: making the directory of checkpoint %d: %w", id, err)
	}
	return location, nil
}

func (d *JobDir) chk(id base.CheckpointID) string {
	return path.Join(d.dir, fmt.Sprintf("%s%d", chkPrefix, id))
}

// Writer implements Checkpoints.
func (d *JobDir) Writer(location string, o WriterOptions) Writer { return NewWriter(d.fs, location, o) }

// Open implements Checkpoints.
func (d *JobDir) Open(location string, h snapshot.Handle) (Reader, error) {
	return OpenHandle(d.fs, location, h)
}

// Publish implements Checkpoints.
func (d *JobDir) Publish(location string, m *snapshot.Metadata) (int64, error) {
	if m.Job != d.job {
		return 0, foreign(m, d.job)
	}
	if err := d.noteFirst(m); err != nil {
		return 0, err
	}
	return publish(d.fs, location, m)
}

// noteFirst records, before the job's first checkpoint completes and its sinks commit, that the job is fresh no more.
func (d *JobDir) noteFirst(m *snapshot.Metadata) error {
	if d.known().first != 0 || m.Kind == snapshot.Savepoint {
		return nil
	}
	return d.change(func(r *record) error { r.first = m.ID; return nil })
}

// PointSavepoint implements Checkpoints. Pointing twice is fine. As with Publish, an error means that there is no pointer, now and
// after a crash, or it is ErrUncertain.
func (d *JobDir) PointSavepoint(id base.CheckpointID, location string) error {
	name := fmt.Sprintf("%s%d", pointerPrefix, id)
	err := replaceFile(d.fs, d.dir, name, pointer{id, location}.encode())
	if err == nil {
		return nil
	}
	if undo := d.removePointer(path.Join(d.dir, name)); undo != nil {
		err = errors.Join(err, fmt.Errorf("%w: %w", ErrUncertain, undo))
	}
	return fmt.Errorf("storage: remembering savepoint %d: %w", id, err)
}

func (d *JobDir) removePointer(name string) error {
	return errors.Join(ignoreMissing(d.fs.Remove(name)), d.fs.SyncDir(d.dir))
}

// Discard implements Checkpoints. A pointer to a savepoint goes before the savepoint. When it fails, Sweep tries again.
func (d *JobDir) Discard(location string) error {
	err := d.removePointers(location)
	if err == nil {
		err = discard(d.fs, location)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		delete(d.undone, location)
	} else {
		d.undone[location] = true
	}
	return err
}

// removePointers removes the pointers to location durably.
func (d *JobDir) removePointers(location string) error {
	if path.Dir(location) == d.dir {
		return nil // of the job's own checkpoints there are none
	}
	found, err := d.find()
	if err != nil {
		return err
	}
	for _, c := range found {
		if c.location != location || c.pointer == "" {
			continue
		}
		if err := d.removePointer(c.pointer); err != nil {
			return fmt.Errorf("storage: removing the pointer to %s: %w", location, err)
		}
	}
	return nil
}

// Close implements Checkpoints.
func (d *JobDir) Close() error { return d.lock.Close() }
