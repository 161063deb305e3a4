package storage

import (
	"io"
)

// FS is the file system that checkpoints lie on. Paths are absolute and slash-separated.
//
// Errors are those of package io/fs: errors.Is(err, fs.ErrExist) and errors.Is(err, fs.ErrNotExist) hold where they should.
// An implementation is safe for concurrent use.
type FS interface {
	// Create makes a new file and opens it for writing; a file or directory of that name is fs.ErrExist.
	Create(path string) (File, error)
	// Open opens a file for reading.
	Open(path string) (Reader, error)
	// Link gives a file a second name in the same directory, unless that name is taken: then fs.ErrExist.
	Link(oldPath, newPath string) error
	// Rename gives a file another name in the same directory, atomically in place of what had it.
	Rename(oldPath, newPath string) error
	// Remove removes a file or an empty directory.
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
	// Resolve is the absolute path without symbolic links of something that exists.
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

// Reader is a file being read.
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
	return "storage: " + e.Path + " is locked by " + owner
}
