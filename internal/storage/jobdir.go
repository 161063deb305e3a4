package storage

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"os"
	"path"
	"slices"
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

	deletions sync.WaitGroup // under way

	// turn is taken by who writes the record: writes must not pass each other. A channel, because it is held across I/O.
	turn chan struct{}

	mu      sync.Mutex // protects what follows
	record  record
	shared  *registry                  // who names which files in shared/
	pending map[base.CheckpointID]bool // checkpoints of this run that may yet write
	undone  map[string]bool            // locations whose Discard failed: to be swept
	latest  base.CheckpointID          // the newest that was published in this run
	closed  bool
	log     *slog.Logger
}

// OpenJobDir locks <dir>/<job>, making it if need be, and begins a new run. A *LockedError names the live owner. A damaged
// record is refused: it must be repaired or removed by someone who knows which ids were used.
func OpenJobDir(fsys FS, dir string, job base.JobID) (*JobDir, error) {
	d, err := jobDir(fsys, dir, job)
	if err != nil {
		return nil, err
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

// jobDir is <dir>/<job>, of which nothing is known yet.
func jobDir(fsys FS, dir string, job base.JobID) (*JobDir, error) {
	if !snapshot.ValidJob(job) {
		return nil, fmt.Errorf("storage: %q is no job id: it must have 32 hexadecimal digits, 0-9 and a-f", string(job))
	}
	root, err := Resolve(fsys, dir)
	if err != nil {
		return nil, err
	}
	return &JobDir{
		fs: fsys, dir: path.Join(root, string(job)), job: job,
		turn: make(chan struct{}, 1), undone: map[string]bool{}, log: slog.New(slog.DiscardHandler),
		shared: newRegistry(), pending: map[base.CheckpointID]bool{},
	}, nil
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
	found, err := d.look()
	if err != nil {
		return err
	}
	if err := d.remember(found); err != nil {
		return err
	}
	d.inherited = d.record.largest
	return d.change(func(r *record) error { r.run++; return nil })
}

// look finds out what is there, and changes nothing.
func (d *JobDir) look() (found []candidate, err error) {
	if found, err = d.find(); err != nil {
		return nil, err
	}
	known, err := d.readRecord()
	if err != nil {
		return nil, err
	}
	d.record = known
	if err := d.takeOver(found); err != nil {
		return nil, err
	}
	if known.run == 0 && len(found) > 0 { // what of it completed, and was deleted since, nobody knows
		d.record.first = 1
	}
	d.fresh = d.record.first == 0
	return found, nil
}

// takeOver notes what an older run had no time to write down, or what was in a record that somebody removed. A checkpoint that
// the run before published may not be durable yet; once it is on record it has to be.
func (d *JobDir) takeOver(found []candidate) error {
	r := &d.record
	for _, c := range found {
		r.largest = max(r.largest, c.id)
		if c.id <= max(r.left, r.newest) {
			continue
		}
		completed, err := d.isCompleted(c)
		if err == nil && completed && c.pointer == "" {
			err = d.fs.SyncDir(c.location)
		}
		if err != nil {
			return fmt.Errorf("storage: looking at checkpoint %d of job %s: %w", c.id, d.job, err)
		}
		if completed {
			r.complete(c.id)
		}
	}
	return nil
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
	d.record.tidy()
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
	return d.change(func(r *record) error {
		r.end, r.endRun = state, r.run
		if state == StateFinished {
			r.finish()
		}
		return nil
	})
}

// CreateLocation implements Checkpoints. An id that was ever used is refused.
//
// A checkpoint's directory is made durable before the record says that it was: so one that the record knows of, and that is not
// there, was deleted by hand.
func (d *JobDir) CreateLocation(id base.CheckpointID, kind snapshot.Kind, target string) (string, error) {
	if kind.IsSavepoint() {
		if err := d.change(func(r *record) error { return r.use(id) }); err != nil {
			return "", err
		}
		return createSavepoint(d.fs, target, d.job)
	}
	if err := d.use(id); err != nil {
		return "", err
	}
	location := d.chk(id)
	d.setPending(id, true)
	if err := mkdirSynced(d.fs, location); err != nil {
		return "", fmt.Errorf("storage: making the directory of checkpoint %d: %w", id, err)
	}
	if err := d.change(func(r *record) error { r.begin(id); return nil }); err != nil {
		d.setUndone(location, true)
		return "", err
	}
	return location, nil
}

// use takes an id, in memory.
func (d *JobDir) use(id base.CheckpointID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.record.use(id)
}

func (d *JobDir) setUndone(location string, undone bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if undone {
		d.undone[location] = true
	} else {
		delete(d.undone, location)
	}
}

func (d *JobDir) chk(id base.CheckpointID) string {
	return path.Join(d.dir, fmt.Sprintf("%s%d", chkPrefix, id))
}

// chkID is the id of the checkpoint at location, if that is a place of the job's own.
func (d *JobDir) chkID(location string) (id base.CheckpointID, own bool) {
	id, own = numbered(path.Base(location), chkPrefix)
	return id, own && path.Dir(location) == d.dir
}

// Writer implements Checkpoints.
func (d *JobDir) Writer(location string, o WriterOptions) Writer { return NewWriter(d.fs, location, o) }

// Open implements Checkpoints.
func (d *JobDir) Open(location string, h snapshot.Handle) (Reader, error) {
	return OpenHandle(d.fs, location, h)
}

// OpenPages implements Checkpoints.
func (d *JobDir) OpenPages(location string, h snapshot.Handle) (Reader, error) {
	return OpenPages(d.fs, location, h)
}

// Publish implements Checkpoints.
func (d *JobDir) Publish(location string, m *snapshot.Metadata) (int64, error) {
	if m.Job != d.job {
		return 0, foreign(m, d.job)
	}
	if err := d.noteFirst(m); err != nil {
		return 0, err
	}
	if err := d.count(location, m); err != nil {
		return 0, err
	}
	bytes, err := publish(d.fs, location, m)
	switch {
	case err == nil:
		d.published(m)
	case !errors.Is(err, ErrUncertain):
		d.uncount(location)
	}
	return bytes, err
}

func (d *JobDir) published(m *snapshot.Metadata) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pending, m.ID)
	if !m.Kind.IsSavepoint() {
		d.latest = max(d.latest, m.ID)
		d.record.complete(m.ID) // written with the next id
	}
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
		if err := d.change(func(r *record) error { r.complete(id); return nil }); err != nil {
			d.logger().Warn("The job's record does not know yet of the savepoint that the job stops with.", "savepoint", id, "error", err)
		}
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

// Discard implements Checkpoints. The record knows first, then a pointer to a savepoint goes, then the savepoint; last the files that only
// it shared. When it fails, Sweep tries again.
func (d *JobDir) Discard(location string) error {
	if err := d.beginDeletion(); err != nil {
		return err
	}
	defer d.deletions.Done()
	return d.discard(location)
}

func (d *JobDir) discard(location string) error {
	err := d.forget(location)
	if err == nil {
		err = d.removePointers(location)
	}
	if err == nil {
		err = d.remove(location)
	}
	if err == nil {
		err = d.dropShared(location)
	}
	d.setUndone(location, err != nil)
	if id, own := d.chkID(location); err == nil && own {
		d.setPending(id, false)
	}
	return err
}

// errClosed is what deletes nothing any more: the directory may be another run's by now, whose counts are others.
var errClosed = errors.New("storage: the job's directory is closed")

// beginDeletion keeps Close waiting until the deletion is done. After Close it is refused.
func (d *JobDir) beginDeletion() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errClosed
	}
	d.deletions.Add(1)
	return nil
}

// forget has the record say that something will not be there any more, where its absence would otherwise be missed. The newest
// checkpoint is deleted only when all are: with it goes everything so far.
func (d *JobDir) forget(location string) error {
	id, own := d.chkID(location)
	switch r := d.known(); {
	case d.isOrigin(location):
		return d.change(func(r *record) error { r.giveUp(location); return nil })
	case own && id == r.newest:
		return d.change(func(r *record) error {
			if r.newest == id { // nothing has completed meanwhile
				r.leave()
			}
			return nil
		})
	case own && id > r.newest && slices.Contains(r.open, id):
		return d.change(func(r *record) error { r.drop(id); return nil })
	}
	return nil
}

// remove deletes a checkpoint's files: of the job's own, and of a savepoint that did not complete, the directory; of a snapshot that
// was claimed what belongs to it.
func (d *JobDir) remove(location string) error {
	if r := d.known(); r.origin.mode != givenUp || r.origin.location != location {
		return discard(d.fs, location)
	}
	left, err := removeSnapshot(d.fs, location, d.releaseClaimed)
	if err != nil {
		return fmt.Errorf("storage: discarding %s: %w", location, err)
	}
	if len(left) > 0 {
		d.logger().Warn("The snapshot that the job had claimed is deleted, but not its directory, in which others' files are.",
			"location", location, "left", left)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.record.origin.location == location {
		d.record.origin = origin{mode: noOrigin} // written with the next id
	}
	return nil
}

// releaseClaimed removes shared files of what was claimed. Those in the job's own directory go by its counts.
func (d *JobDir) releaseClaimed(fsys FS, location string, m *snapshot.Metadata) error {
	if path.Dir(location) == d.dir {
		return nil
	}
	return releaseForeign(fsys, location, m)
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
		err := d.withdraw(c.id)
		if err == nil {
			err = d.removePointer(c.pointer)
		}
		if err != nil {
			return fmt.Errorf("storage: removing the pointer to %s: %w", location, err)
		}
	}
	return nil
}

// withdraw has the record say that a savepoint does not count as a checkpoint any more; what completed before it is then not on record.
func (d *JobDir) withdraw(id base.CheckpointID) error {
	if d.known().newest != id {
		return nil
	}
	return d.change(func(r *record) error { r.newest = 0; return nil })
}

// Close implements Checkpoints. What cannot be deleted now is deleted by the next run.
func (d *JobDir) Close() error {
	d.mu.Lock()
	again := d.closed
	d.closed = true
	d.mu.Unlock()
	d.deletions.Wait()
	if again {
		return d.lock.Close()
	}
	return errors.Join(d.sweepLast(), d.lock.Close())
}
