package trial

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// holdings is what lies in the directory of checkpoints.
type holdings struct {
	completed  []*snapshot.Metadata // of each job in the order of their names
	named      map[string]int64     // files that they name absolutely, and their sizes
	shared     map[string]bool      // files in shared/
	unfinished []string             // directories of checkpoints that never completed
}

// holdingsOf looks at the checkpoints of all jobs. A file that a checkpoint names and that is not there, or is cut, is an error.
func holdingsOf(fs storage.FS, dir string) (h holdings, err error) {
	h = holdings{named: map[string]int64{}, shared: map[string]bool{}}
	jobs, err := fs.List(dir)
	if err != nil {
		if errors.Is(err, iofs.ErrNotExist) {
			err = nil
		}
		return h, err
	}
	for _, job := range jobs {
		if err := h.add(fs, path.Join(dir, job.Name)); err != nil {
			return h, err
		}
	}
	return h, nil
}

func (h *holdings) add(fs storage.FS, job string) error {
	entries, err := fs.List(job)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name, "chk-") {
			continue
		}
		m, location, err := storage.ReadMetadata(fs, path.Join(job, e.Name))
		switch {
		case errors.Is(err, iofs.ErrNotExist) && !errors.Is(err, storage.ErrDamaged):
			h.unfinished = append(h.unfinished, path.Join(job, e.Name))
		case err != nil:
			return err
		default:
			h.complete(m, location)
		}
	}
	if err != nil {
		return err
	}
	files, err := fs.List(path.Join(job, "shared"))
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	for _, f := range files {
		h.shared[path.Join(job, "shared", f.Name)] = true
	}
	return err
}

func (h *holdings) complete(m *snapshot.Metadata, location string) {
	h.completed = append(h.completed, m)
	_ = m.Handles(func(_ snapshot.Owner, x *snapshot.Handle) error { // which never fails
		if path.IsAbs(x.File) {
			h.named[x.File] = x.Size
		}
		return nil
	})
}

// exact demands that shared/ has the files that checkpoints name, and no other; those of checkpoints later than now may be under way.
func (h *holdings) exact(now base.CheckpointID) error {
	for _, f := range slices.Sorted(maps.Keys(h.shared)) {
		var id base.CheckpointID
		fmt.Sscanf(path.Base(f), "%d-", &id)
		if _, named := h.named[f]; !named && id <= now {
			return fmt.Errorf("no checkpoint names %s", f)
		}
	}
	return nil
}

// bytes is the size of all shared files.
func (h *holdings) bytes() (n int64) {
	for _, size := range h.named {
		n += size
	}
	return n
}

// everything is later than any checkpoint.
const everything = base.CheckpointID(1<<63 - 1)
