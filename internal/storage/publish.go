package storage

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	iofs "io/fs"
	"path"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// How a checkpoint is completed, and how it goes. Both orders matter, because a crash leaves any part of what was not synced.
//
//	files written, synced, closed, their directory synced        (Object.Commit, by the tasks)
//	_metadata.tmp written, synced, closed
//	_metadata.tmp linked to _metadata                            exclusive: fails when there is one
//	the directory synced                                         now, and not before, it is completed
//
//	_metadata removed, the directory synced                      now it is no checkpoint any more
//	its files removed, the directory removed
//
// Were the first sync of deletion left out, a crash could bring _metadata back without its files: a checkpoint that cannot be
// restored, where the right answer is that there is none.
//
// When the link or the sync behind it fails, the metadata may be there after a crash or not. That must not be answered
// with "failed", because the master would go on from the checkpoint before and delete the files, while this one becomes the
// latest. So the metadata is withdrawn, durably, and only then the answer is "failed"; when that fails too it is ErrUncertain,
// and asking again settles it: metadata that is there with exactly our bytes is ours.

// publish completes the checkpoint at location.
func publish(fsys FS, location string, m *snapshot.Metadata) (int64, error) {
	if err := m.Validate(); err != nil {
		return 0, fmt.Errorf("storage: publishing checkpoint %d: %w", m.ID, err)
	}
	b := m.Encode()
	name := path.Join(location, metadataName)
	switch there, err := readFile(fsys, name); {
	case err == nil && bytes.Equal(there, b):
		return int64(len(b)), confirm(fsys, location)
	case err == nil:
		return 0, fmt.Errorf("storage: publishing checkpoint %d: there is another %s: %w", m.ID, name, iofs.ErrExist)
	case !errors.Is(err, iofs.ErrNotExist):
		return 0, fmt.Errorf("storage: publishing checkpoint %d, reading %s: %w: %w", m.ID, name, ErrUncertain, err)
	}
	if err := publishNew(fsys, location, b); err != nil {
		return 0, fmt.Errorf("storage: publishing checkpoint %d: %w", m.ID, err)
	}
	return int64(len(b)), nil
}

// confirm makes durable what an earlier, uncertain attempt has published.
func confirm(fsys FS, location string) error {
	if err := fsys.SyncDir(location); err != nil {
		return fmt.Errorf("storage: publishing %s: %w: %w", location, ErrUncertain, err)
	}
	return nil
}

func publishNew(fsys FS, location string, b []byte) error {
	name := path.Join(location, metadataName)
	tmp := name + tmpSuffix
	if err := ignoreMissing(fsys.Remove(tmp)); err != nil {
		return err
	}
	if err := writeSynced(fsys, tmp, b); err != nil {
		return err
	}
	err := fsys.Link(tmp, name)
	if errors.Is(err, iofs.ErrExist) {
		return err
	}
	if err == nil {
		err = fsys.SyncDir(location)
	}
	if err != nil {
		return errors.Join(err, withdraw(fsys, location))
	}
	_ = fsys.Remove(tmp) // a second name of the same file harms nobody, and goes with the directory
	return nil
}

// withdraw makes sure that there is no metadata, now and after a crash.
func withdraw(fsys FS, location string) error {
	if err := unpublish(fsys, location); err != nil {
		return fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return nil
}

// unpublish removes the metadata durably; what is not there is removed.
func unpublish(fsys FS, location string) error {
	if err := ignoreMissing(fsys.Remove(path.Join(location, metadataName))); err != nil {
		return err
	}
	return ignoreMissing(fsys.SyncDir(location))
}

// discard deletes a checkpoint or savepoint; what is not there is deleted.
func discard(fsys FS, location string) error {
	err := unpublish(fsys, location)
	if err == nil {
		err = removeAll(fsys, location)
	}
	if err != nil {
		return fmt.Errorf("storage: discarding %s: %w", location, err)
	}
	return nil
}

// savepointTries is how many names are tried for a savepoint's directory (as Flink does).
const savepointTries = 10

// createSavepoint makes <target>/savepoint-<first 6 of job>-<12 random hex digits>, durably.
func createSavepoint(fsys FS, target string, job base.JobID) (string, error) {
	if target == "" {
		return "", errors.New("storage: a savepoint needs a directory: name one, or set execution.checkpointing.savepoint-dir")
	}
	dir, err := Resolve(fsys, target)
	if err != nil {
		return "", err
	}
	if err := MkdirAll(fsys, dir); err != nil {
		return "", err
	}
	for range savepointTries {
		var random [6]byte
		_, _ = rand.Read(random[:]) // it never fails
		location := path.Join(dir, fmt.Sprintf("savepoint-%.6s-%s", job, hex.EncodeToString(random[:])))
		if err = mkdirSynced(fsys, location); err == nil {
			return location, nil
		}
		if !errors.Is(err, iofs.ErrExist) {
			break
		}
	}
	return "", fmt.Errorf("storage: making a savepoint's directory in %s: %w", dir, err)
}
