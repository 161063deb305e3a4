package storage

import (
	"cmp"
	"errors"
	"fmt"
	iofs "io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// candidate is something in a job's directory that may be a completed checkpoint.
type candidate struct {
	id       base.CheckpointID
	location string
	pointer  string // the file that points to the location; "": the location is a directory of the job's own
	damage   error  // why the pointer says nothing
}

func (c candidate) String() string {
	if c.pointer != "" {
		return path.Base(c.pointer) + " -> " + c.location
	}
	return path.Base(c.location)
}

// find lists the candidates, ascending.
func (d *JobDir) find() ([]candidate, error) {
	found, err := candidates(d.fs, d.dir)
	if err != nil {
		return nil, fmt.Errorf("storage: looking for checkpoints of job %s: %w", d.job, err)
	}
	return found, nil
}

// candidates are those in a job's directory, ascending.
func candidates(fsys FS, dir string) ([]candidate, error) {
	entries, err := fsys.List(dir)
	if err != nil {
		return nil, err
	}
	var found []candidate
	for _, e := range entries {
		if id, ok := numbered(e.Name, chkPrefix); ok && e.Dir {
			found = append(found, candidate{id: id, location: path.Join(dir, e.Name)})
		}
		if id, ok := numbered(e.Name, pointerPrefix); ok && !e.Dir {
			found = append(found, follow(fsys, id, path.Join(dir, e.Name)))
		}
	}
	slices.SortFunc(found, func(a, b candidate) int { return cmp.Compare(a.id, b.id) })
	return found, nil
}

// numbered is the id in a name like chk-7, and only in one written so: chk-07 is not ours.
func numbered(name, prefix string) (base.CheckpointID, bool) {
	digits, found := strings.CutPrefix(name, prefix)
	id, err := strconv.ParseInt(digits, 10, 64)
	return base.CheckpointID(id), found && err == nil && id > 0 && digits == strconv.FormatInt(id, 10)
}

func follow(fsys FS, id base.CheckpointID, name string) candidate {
	c := candidate{id: id, pointer: name}
	b, err := readFile(fsys, name)
	if err != nil {
		c.damage = fmt.Errorf("storage: reading %s: %w", name, err)
		return c
	}
	p, err := decodePointer(b)
	if err == nil && p.id != id {
		err = fmt.Errorf("%w: it is of savepoint %d", ErrDamaged, p.id)
	}
	if err != nil {
		c.damage = fmt.Errorf("storage: %s is unusable: %w", name, err)
		return c
	}
	c.location = p.location
	return c
}

// errUnfinished says that a directory never became a checkpoint, or is one no more.
var errUnfinished = errors.New("without " + metadataName)

// read is the candidate's metadata. errUnfinished: it is none.
func (d *JobDir) read(c candidate) (*snapshot.Metadata, error) {
	if c.damage != nil {
		return nil, c.damage
	}
	m, err := readMetadata(d.fs, c.location)
	missing := errors.Is(err, iofs.ErrNotExist) && !errors.Is(err, ErrDamaged)
	switch {
	case missing && c.pointer == "":
		return nil, errUnfinished
	case missing:
		return nil, fmt.Errorf("storage: job %s stopped with savepoint %d, which is not at %s any more; bring it back, or name the "+
			"checkpoint to start from: what that savepoint committed would come again: %w", d.job, c.id, c.location, markMissing(err))
	case err != nil:
		return nil, err
	case m.ID != c.id || m.Job != d.job:
		return nil, fmt.Errorf("storage: %s is %w: what lies there is checkpoint %d of job %s, not %d of %s",
			c.location, ErrDamaged, m.ID, m.Job, c.id, d.job)
	}
	return m, nil
}

// Latest implements Checkpoints.
//
// An older checkpoint is never taken because a newer one cannot be read, or is not there any more: the newer one's output is already
// committed, and would come again. Nor is one taken that was left behind when the job was started from a path.
func (d *JobDir) Latest() (*snapshot.Metadata, string, error) {
	r := d.known() // before the directory is looked at: what completes meanwhile is not missed
	found, err := d.find()
	if err != nil {
		return nil, "", err
	}
	var passed []string
	for _, c := range slices.Backward(r.since(found)) {
		m, err := d.read(c)
		if errors.Is(err, errUnfinished) {
			passed = append(passed, fmt.Sprintf("%v %v", c, errUnfinished))
			continue
		}
		d.reportPassed(passed)
		if err == nil {
			err = d.missed(r, c.id, found)
		}
		if err != nil {
			return nil, "", fmt.Errorf("%w (no older checkpoint is taken in its place; to start from one, name it)", err)
		}
		return m, c.location, nil
	}
	if err := d.missed(r, 0, found); err != nil {
		return nil, "", err
	}
	if o := r.origin; o.mode == borrowed || o.mode == claimed {
		d.reportPassed(passed)
		m, err := d.readOrigin(o)
		return m, o.location, err
	}
	return nil, "", d.none(passed)
}

// since are the candidates that were not left behind.
func (r *record) since(found []candidate) []candidate {
	return slices.DeleteFunc(slices.Clone(found), func(c candidate) bool { return c.id <= r.left })
}

// missed says which checkpoint should be there that is newer than the newest that is: one of which the record knows that it
// completed, or may have, and that the engine has not deleted.
func (d *JobDir) missed(r record, newest base.CheckpointID, found []candidate) error {
	if r.newest > newest {
		return fmt.Errorf("storage: checkpoint %d of job %s completed, but it is not in %s any more: somebody has deleted it; bring it back, or name "+
			"the checkpoint to start from: what that one committed would come again: %w", r.newest, d.job, d.dir, ErrDamaged)
	}
	for _, id := range r.open {
		is := func(c candidate) bool { return c.id == id && c.pointer == "" }
		if id > newest && !slices.ContainsFunc(found, is) {
			return fmt.Errorf("storage: %s is not there any more: somebody has deleted it, and checkpoint %d may have completed; bring it back, or "+
				"name the checkpoint to start from: what that one committed would come again: %w", d.chk(id), id, ErrDamaged)
		}
	}
	return nil
}

// readOrigin is the metadata of what the job was started from.
func (d *JobDir) readOrigin(o origin) (*snapshot.Metadata, error) {
	m, err := readMetadata(d.fs, o.location)
	switch {
	case errors.Is(err, iofs.ErrNotExist) && !errors.Is(err, ErrDamaged):
		return nil, fmt.Errorf("storage: job %s was started from %s, which is not there any more, and no checkpoint of its own has completed since; "+
			"bring it back, or name the checkpoint to start from: %w", d.job, o.location, markMissing(err))
	case err != nil:
		return nil, err
	case m.ID != o.id:
		return nil, fmt.Errorf("storage: job %s was started from checkpoint %d at %s, where now lies checkpoint %d: %w", d.job, o.id, o.location, m.ID,
			ErrDamaged)
	}
	return m, nil
}

func (d *JobDir) reportPassed(passed []string) {
	for _, what := range passed {
		d.logger().Warn("Passed over what never became a checkpoint.", "dir", d.dir, "what", what)
	}
}

// none is ErrNone, with what is there instead.
func (d *JobDir) none(passed []string) error {
	what := strings.Join(passed, ", ")
	switch {
	case what == "" && d.fresh:
		what = "none was ever completed"
	case what == "":
		what = "there is nothing but the job's record"
	}
	return fmt.Errorf("storage: %w in %s: %s", ErrNone, d.dir, what)
}

// Completed implements Checkpoints. What is damaged is left out, and left where it is.
func (d *JobDir) Completed() ([]Completed, error) {
	found, err := d.find()
	if err != nil {
		return nil, err
	}
	var all []Completed
	add := func(what fmt.Stringer, location string, m *snapshot.Metadata, err error) {
		switch {
		case err == nil:
			all = append(all, Completed{Metadata: m, Location: location})
		case !errors.Is(err, errUnfinished):
			d.logger().Warn("A checkpoint cannot be read; it is left as it is.", "checkpoint", what.String(), "error", err)
		}
	}
	r := d.known()
	if o := r.origin; o.mode == claimed {
		m, err := d.readOrigin(o)
		add(o, o.location, m, err)
	}
	for _, c := range r.since(found) {
		m, err := d.read(c)
		add(c, c.location, m, err)
	}
	return all, nil
}

// Sweep implements Checkpoints. A directory goes when it has no metadata, lies below the newest one that has, and either is of an
// older run or could not be discarded by this one. (One of this run may still be written.) Then shared files that nobody names go.
func (d *JobDir) Sweep() (removed []string, err error) {
	if err := d.beginDeletion(); err != nil {
		return nil, err
	}
	defer d.deletions.Done()
	found, err := d.find()
	if err != nil {
		return nil, err
	}
	var newest base.CheckpointID
	var due []string
	for _, c := range slices.Backward(found) {
		completed, err := d.isCompleted(c)
		switch {
		case err != nil:
			return nil, err
		case completed:
			newest = max(newest, c.id)
		case c.id < newest && d.sweepable(c):
			due = append(due, c.location)
		}
	}
	slices.Reverse(due)
	if o := d.known().origin; o.mode == givenUp {
		due = append(due, o.location)
	}
	var errs []error
	for _, location := range due {
		if err := d.discard(location); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, location)
	}
	files, err := d.sweepShared(newest)
	return append(removed, files...), errors.Join(append(errs, err)...)
}

// isCompleted: there is metadata, or a pointer to a savepoint, which is written behind its metadata.
func (d *JobDir) isCompleted(c candidate) (bool, error) {
	if c.pointer != "" {
		return true, nil
	}
	return d.hasMetadata(c)
}

func (d *JobDir) hasMetadata(c candidate) (bool, error) {
	_, err := d.fs.Stat(path.Join(c.location, metadataName))
	if errors.Is(err, iofs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (d *JobDir) sweepable(c candidate) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return c.id <= d.inherited || d.undone[c.location]
}
