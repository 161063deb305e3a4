package storage

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"path"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// Files that several checkpoints name lie in the job's directory shared/, and not with the checkpoint that has written them, because
// that one may go before them.
//
//	written, synced, closed, shared/ synced        by the tasks: the name begins with the checkpoint's id
//	counted, then published                        the counts are never below what is on the disk
//	_metadata removed, its directory synced
//	counted down; removed who has come to 0        a crash in between leaves orphans, and a crash behind it may bring some back
//
// Orphans, those of uploads that came late or were cut off too, are known by their ids: nobody names them, and they are older than the
// newest checkpoint, or nothing of the run is left that could write. Sweep and Close remove them.

// sharedFiles are the names of the files in dir/shared that m names. A job's directory may have been moved, or be a copy, and files be
// named where it was: then too they are kept where it is, for it may be moved back.
func sharedFiles(dir string, m *snapshot.Metadata) (files []string) {
	_ = m.Handles(func(_ snapshot.Owner, h *snapshot.Handle) error { // which never fails
		shared, file := path.Split(h.File)
		if job := path.Dir(path.Clean(shared)); path.Base(shared) == sharedName && path.Base(job) == path.Base(dir) {
			files = append(files, file)
		}
		return nil
	})
	return files
}

// register puts the checkpoint at location into r, unless it is not completed.
func register(fsys FS, dir string, r *registry, c candidate) error {
	if c.pointer != "" {
		return nil // savepoints share nothing
	}
	b, err := readFile(fsys, path.Join(c.location, metadataName))
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("storage: looking at what checkpoint %d refers to: %w", c.id, err)
	}
	m, err := snapshot.Decode(b)
	if err != nil {
		r.addUnread(c.location, c.id)
		return nil
	}
	r.add(c.location, sharedFiles(dir, m))
	return nil
}

// remember makes the counts from what is there.
func (d *JobDir) remember(found []candidate) error {
	for _, c := range found {
		if err := register(d.fs, d.dir, d.shared, c); err != nil {
			return err
		}
	}
	return nil
}

// count counts what the checkpoint m refers to, before it is published at location. It refuses one that refers to what is not, or not
// for sure, there for as long as it is needed: files of another job, and files that are neither its own nor of a completed checkpoint.
func (d *JobDir) count(location string, m *snapshot.Metadata) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := m.Handles(func(o snapshot.Owner, h *snapshot.Handle) error {
		if !path.IsAbs(h.File) {
			return nil
		}
		file := path.Base(h.File)
		id, shared := sharedID(file)
		if path.Dir(h.File) != path.Join(d.dir, sharedName) || !shared {
			return fmt.Errorf("storage: checkpoint %d refers to %s (%v), which is no file of the job's", m.ID, h.File, o)
		}
		if id != m.ID && !d.shared.isCounted(file) {
			return fmt.Errorf("storage: checkpoint %d refers to %s (%v), which no completed checkpoint has", m.ID, h.File, o)
		}
		return nil
	})
	if err == nil {
		d.shared.add(location, sharedFiles(d.dir, m))
	}
	return err
}

// uncount takes back what was counted for a checkpoint that was not published. Its files go with Discard.
func (d *JobDir) uncount(location string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shared.drop(location)
}

// setPending notes that a checkpoint may write files, or that it has ended.
func (d *JobDir) setPending(id base.CheckpointID, pending bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if pending {
		d.pending[id] = true
	} else {
		delete(d.pending, id)
	}
}

// dropShared removes the shared files that only the checkpoint at location had, which is durably gone. Of one that never was
// completed those are the files with its id, whoever wrote them.
func (d *JobDir) dropShared(location string) error {
	d.mu.Lock()
	_, counted := d.shared.named[location]
	free := d.shared.drop(location)
	d.mu.Unlock()
	id, own := d.chkID(location)
	if !counted && own {
		var err error
		if free, err = d.freeShared(func(of base.CheckpointID) bool { return of == id }); err != nil {
			return err
		}
	}
	_, err := d.removeShared(free)
	return err
}

// freeShared are the files in shared/ that no completed checkpoint names, of some ids.
func (d *JobDir) freeShared(of func(base.CheckpointID) bool) (free []string, err error) {
	entries, err := d.fs.List(path.Join(d.dir, sharedName))
	if err != nil {
		return nil, fmt.Errorf("storage: looking for files that no checkpoint needs: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range entries {
		if id, ok := sharedID(e.Name); ok && !e.Dir && of(id) && d.shared.isFree(e.Name) {
			free = append(free, e.Name)
		}
	}
	return free, nil
}

// removeShared removes files in shared/, as many as can be.
func (d *JobDir) removeShared(files []string) (removed []string, err error) {
	for _, f := range files {
		name := path.Join(d.dir, sharedName, f)
		if e := ignoreMissing(d.fs.Remove(name)); e != nil {
			err = errors.Join(err, fmt.Errorf("storage: deleting a file that no checkpoint needs: %w", e))
			continue
		}
		removed = append(removed, name)
	}
	return removed, err
}

// sweepShared removes orphans below the newest completed checkpoint, be it deleted meanwhile. (One of a later id may be an upload of a
// checkpoint under way, or a crash may have hidden that it completed.)
func (d *JobDir) sweepShared(newest base.CheckpointID) (removed []string, err error) {
	free, err := d.freeShared(func(id base.CheckpointID) bool { return id <= max(newest, d.latest) && !d.pending[id] })
	if err != nil {
		return nil, err
	}
	return d.removeShared(free)
}

// sweepLast removes the orphans of this run, when nothing of it can write any more, and older ones if a newer checkpoint has completed.
func (d *JobDir) sweepLast() error {
	if d.known().largest == d.inherited {
		return nil
	}
	free, err := d.freeShared(func(id base.CheckpointID) bool { return id > d.inherited || id <= d.latest })
	if err == nil {
		_, err = d.removeShared(free)
	}
	return err
}

// releaseShared removes the shared files that only the checkpoint at location had, whose metadata is m and durably gone; durably, because
// nobody may look for them any more. The caller keeps the job from running in whose directory it lies. Files elsewhere are somebody's.
func releaseShared(fsys FS, location string, m *snapshot.Metadata) error {
	dir := path.Dir(location)
	files := sharedFiles(dir, m)
	if len(files) == 0 {
		return nil
	}
	found, err := candidates(fsys, dir)
	if err != nil {
		return err
	}
	r := newRegistry()
	for _, c := range found {
		if err := register(fsys, dir, r, c); err != nil {
			return err
		}
	}
	for _, f := range files {
		if !r.isFree(f) {
			continue
		}
		if err := ignoreMissing(fsys.Remove(path.Join(dir, sharedName, f))); err != nil {
			return err
		}
	}
	return ignoreMissing(fsys.SyncDir(path.Join(dir, sharedName)))
}

// releaseForeign is releaseShared for another job's directory. Where that job runs, or cannot be kept from it, its own sweep will remove
// them some time.
func releaseForeign(fsys FS, location string, m *snapshot.Metadata) error {
	release, err := holdJob(fsys, path.Dir(location))
	if locked := (*LockedError)(nil); errors.As(err, &locked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	return releaseShared(fsys, location, m)
}
