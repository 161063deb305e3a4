package storage

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"path"
)

// FS is the file system that checkpoints lie on, in the words of POSIX: what an operation did survives a crash of the process;
// a crash of the machine survives only what was synced, a file's bytes by File.Sync and its name by SyncDir. Of the rest
// anything may be there or not, in any combination, and nobody may rely on an order.
//
// Paths are absolute, clean and slash-separated. Errors wrap those of package io/fs: ErrExist and ErrNotExist where the
// methods say so. An implementation is safe for concurrent use; package fstest is what it has to pass.
type FS interface {
	// Create makes a new file and opens it for writing; a file or directory of that name is fs.ErrExist.
	Create(path string) (File, error)
	// Open opens a file for reading; fs.ErrNotExist when it is not there.
	Open(path string) (Reader, error)
	// Link gives a file a second name in the same directory, unless that name is taken: then fs.ErrExist.
	Link(oldPath, newPath string) error
	// Rename gives a file another name in the same directory, atomically in place of what had it.
	Rename(oldPath, newPath string) error
	// Remove removes a file or an empty directory; fs.ErrNotExist when it is not there.
	Remove(path string) error
	// Mkdir makes one directory; a file or directory of that name is fs.ErrExist.
	Mkdir(path string) error
	// List is what a directory holds, ordered by name.
	List(dir string) ([]Entry, error)
	// Stat describes a file or directory, following symbolic links.
	Stat(path string) (Entry, error)
	// SyncDir makes the names in a directory durable: what was created, linked, renamed and removed in it.
	SyncDir(dir string) error
	// Lock takes the file's exclusive lock, creating the file, without waiting. The owner's death releases it.
	// A lock held by another is a *LockedError.
	Lock(path, owner string) (io.Closer, error)
	// Resolve makes a path absolute and clean and follows its symbolic links; names that do not exist stay as they are.
	Resolve(path string) (string, error)
}

// File is a file being written.
type File interface {
	io.Writer
	// Sync makes what was written durable; the file's name is made durable by SyncDir.
	Sync() error
	// Close releases the file. Its error tells of lost bytes, as Write's does.
	Close() error
}

// Reader is a file being read. Its ReadAt may return fewer bytes than asked for without an error: a network's file system does.
type Reader interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Entry describes a file or directory.
type Entry struct {
	Name string
	Dir  bool
	// Size is a file's length in bytes.
	Size int64
}

// LockedError says that another process, or another part of this one, owns a lock.
type LockedError struct {
	Path string
	// Owner is what the owner wrote of itself; empty when it could not be read.
	Owner string
}

func (e *LockedError) Error() string {
	owner := e.Owner
	if owner == "" {
		owner = "another process"
	}
	return fmt.Sprintf("storage: %s is locked by %s", e.Path, owner)
}

// MkdirAll makes dir and what is missing above it, durably.
//
// A process may have died between making a directory and syncing its parent, and only the lowest one that exists can be such
// a one (each is synced before the next is made): its parent is synced again.
func MkdirAll(fsys FS, dir string) error {
	var missing []string
	exists := dir
	for ; exists != "/"; exists = path.Dir(exists) {
		entry, err := fsys.Stat(exists)
		if err == nil && !entry.Dir {
			return fmt.Errorf("storage: %s is not a directory", exists)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, iofs.ErrNotExist) {
			return fmt.Errorf("storage: making directory %s: %w", dir, err)
		}
		missing = append(missing, exists)
	}
	// Where we may not sync, we cannot have made anything either.
	if err := fsys.SyncDir(path.Dir(exists)); err != nil && !errors.Is(err, iofs.ErrPermission) {
		return fmt.Errorf("storage: making directory %s: %w", dir, err)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		if err := mkdirSynced(fsys, missing[i]); err != nil && !errors.Is(err, iofs.ErrExist) {
			return fmt.Errorf("storage: making directory %s: %w", dir, err)
		}
	}
	return nil
}

func mkdirSynced(fsys FS, dir string) error {
	if err := fsys.Mkdir(dir); err != nil {
		return err
	}
	return fsys.SyncDir(path.Dir(dir))
}

// removeAll removes dir and all in it; what is not there is removed.
func removeAll(fsys FS, dir string) error {
	entries, err := fsys.List(dir)
	if err != nil {
		return ignoreMissing(err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		if e.Dir {
			err = removeAll(fsys, name)
		} else {
			err = ignoreMissing(fsys.Remove(name))
		}
		if err != nil {
			return err
		}
	}
	return ignoreMissing(fsys.Remove(dir))
}

func ignoreMissing(err error) error {
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	return err
}

// writeSynced makes a new file with the bytes b, durable but for its name. After an error there is none.
func writeSynced(fsys FS, name string, b []byte) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	if err := errors.Join(writeAll(f, b), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, ignoreMissing(fsys.Remove(name)))
	}
	return nil
}

func writeAll(w io.Writer, b []byte) error {
	n, err := w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}
