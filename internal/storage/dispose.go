package storage

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/snapshot"
)

// Dispose deletes the savepoint or checkpoint that a path names, in any spelling that Resolve takes: its _metadata first, then the files
// that this names, then the directory. What else lies there is left, with the directory, and told. One that a running job owns
// is refused: its own checkpoint, or one that it has claimed.
//
// A crash leaves either a whole snapshot, or none and files that Dispose deletes when it is called again.
func Dispose(fsys FS, spelt string) (left []string, err error) {
	location, err := snapshotDir(fsys, spelt)
	if err != nil {
		return nil, err
	}
	release, err := holdOwner(fsys, location, "")
	if taken := (*ClaimedError)(nil); errors.As(err, &taken) {
		return nil, fmt.Errorf("storage: %s is needed by the running job %s in %s: stop that one first", location, taken.Job, taken.Dir)
	}
	if err != nil {
		return nil, err
	}
	defer release()
	left, err = removeSnapshot(fsys, location, releaseShared)
	if err != nil {
		return nil, fmt.Errorf("storage: disposing of %s: %w", location, err)
	}
	return left, nil
}

// snapshotDir is the directory of a snapshot, or of what is left of one that was half deleted.
func snapshotDir(fsys FS, spelt string) (string, error) {
	location, err := locate(fsys, spelt)
	if err != nil {
		return "", err
	}
	for _, name := range []string{metadataName, goneName} {
		_, err = fsys.Stat(path.Join(location, name))
		if err == nil {
			return location, nil
		}
		if !errors.Is(err, iofs.ErrNotExist) {
			return "", fmt.Errorf("storage: checkpoint %s: %w", location, err)
		}
	}
	return "", notThere(fsys, location, err)
}

// removeSnapshot deletes the files that a snapshot's metadata names in its directory, and what else Weir puts there. Left are other
// files, if there are some; with them the directory stays. What is already gone counts as deleted.
//
// The metadata cannot just go first, because it alone says which files belong to it: it is given another name, durably, under which it
// is found by whoever goes on after a crash, and goes last. Before it goes release removes the files that the snapshot shares with
// others, if it was the last to need them.
func removeSnapshot(fsys FS, location string, release func(FS, string, *snapshot.Metadata) error) (left []string, err error) {
	m, err := retireMetadata(fsys, location)
	if err != nil {
		return nil, err
	}
	if m != nil {
		if err := release(fsys, location, m); err != nil {
			return nil, err
		}
		if err := removeFiles(fsys, location, m); err != nil {
			return nil, err
		}
	}
	entries, err := fsys.List(location)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	for _, e := range entries {
		left = append(left, e.Name)
	}
	if len(left) > 0 {
		return left, nil
	}
	return nil, ignoreMissing(fsys.Remove(location))
}

// retireMetadata takes the metadata out of sight, and is it; nil: there is none.
func retireMetadata(fsys FS, location string) (*snapshot.Metadata, error) {
	name, gone := path.Join(location, metadataName), path.Join(location, goneName)
	b, err := readFile(fsys, name)
	there := err == nil
	if errors.Is(err, iofs.ErrNotExist) {
		b, err = readFile(fsys, gone)
	}
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := snapshot.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read, and without it nobody knows which files belong to it; to be rid of it, remove the directory: %w",
			name, err)
	}
	if there {
		err = errors.Join(fsys.Rename(name, gone), fsys.SyncDir(location))
	}
	return m, err
}

// removeFiles removes what m names in its directory, what else Weir put there, and last, once all that is durably gone, m itself.
// Files elsewhere are shared.
func removeFiles(fsys FS, location string, m *snapshot.Metadata) error {
	dirs := map[string]bool{}
	err := m.Handles(func(_ snapshot.Owner, h *snapshot.Handle) error {
		if h.File == "" || path.IsAbs(h.File) {
			return nil
		}
		for dir := path.Dir(h.File); dir != "."; dir = path.Dir(dir) {
			dirs[dir] = true
		}
		return ignoreMissing(fsys.Remove(path.Join(location, h.File)))
	})
	if err == nil {
		err = removeOwn(fsys, location)
	}
	if err == nil {
		err = syncAll(fsys, location, dirs)
	}
	if err != nil {
		return err
	}
	for _, dir := range slices.Backward(slices.Sorted(maps.Keys(dirs))) { // the inner ones first
		_ = fsys.Remove(path.Join(location, dir)) // if it is empty
	}
	return ignoreMissing(fsys.Remove(path.Join(location, goneName)))
}

// removeOwn removes what says whose the snapshot is, and what an interrupted publication or claim has left.
func removeOwn(fsys FS, location string) error {
	entries, err := fsys.List(location)
	if err != nil {
		return err
	}
	for _, e := range entries {
		ours := strings.HasPrefix(e.Name, metadataName) || strings.HasPrefix(e.Name, claimName)
		if e.Dir || e.Name != claimName && !(ours && strings.HasSuffix(e.Name, tmpSuffix)) {
			continue
		}
		if err := ignoreMissing(fsys.Remove(path.Join(location, e.Name))); err != nil {
			return err
		}
	}
	return nil
}

// syncAll makes durable what was removed in a directory and in some below it.
func syncAll(fsys FS, location string, dirs map[string]bool) error {
	for dir := range dirs {
		if err := ignoreMissing(fsys.SyncDir(path.Join(location, dir))); err != nil {
			return err
		}
	}
	return fsys.SyncDir(location)
}
