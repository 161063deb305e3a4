package storage

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Disk is the machine's own file system.
func Disk() FS { return disk{} }

type disk struct{}

func (disk) Create(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (disk) Open(path string) (Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &iofs.PathError{Op: "open", Path: path, Err: errors.New("is a directory")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return diskReader{f, info.Size()}, nil
}

type diskReader struct {
	*os.File
	size int64
}

func (r diskReader) Size() int64 { return r.size }

func (disk) Link(oldPath, newPath string) error {
	err := os.Link(oldPath, newPath)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTSUP) {
		return fmt.Errorf("%w (the file system must know hard links: checkpoints are published with them)", err)
	}
	return err
}

func (disk) Rename(oldPath, newPath string) error { return os.Rename(oldPath, newPath) }
func (disk) Remove(path string) error             { return os.Remove(path) }
func (disk) Mkdir(path string) error              { return os.Mkdir(path, 0o777) }

func (disk) List(dir string) ([]Entry, error) {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(found))
	for _, f := range found {
		info, err := f.Info()
		if errors.Is(err, iofs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, entryOf(info))
	}
	return entries, nil
}

func (disk) Stat(path string) (Entry, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Entry{}, err
	}
	return entryOf(info), nil
}

func entryOf(info iofs.FileInfo) Entry {
	return Entry{Name: info.Name(), Dir: info.IsDir(), Size: info.Size()}
}

func (disk) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Lock uses flock, which the kernel releases when the process dies, however it dies. What the file says is only for people: it
// may be that of a dead owner for the moment in which a new one has locked it and not yet written.
func (disk) Lock(path, owner string) (io.Closer, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, err
		}
		if err := flock(f, owner); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		// Somebody may have removed the file before it was locked: then another could lock a new one of the same name.
		if sameFile(f, path) {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

func flock(f *os.File, owner string) error {
	err := unix.EINTR
	for errors.Is(err, unix.EINTR) {
		err, _ = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB).(unix.Errno)
	}
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		held, _ := io.ReadAll(io.NewSectionReader(f, 0, 200))
		return &LockedError{Path: f.Name(), Owner: strings.TrimSpace(string(held))}
	case err != 0:
		return &iofs.PathError{Op: "flock", Path: f.Name(), Err: err}
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, writeErr := f.WriteAt([]byte(owner+"\n"), 0)
	return writeErr
}

func sameFile(f *os.File, path string) bool {
	locked, err1 := f.Stat()
	named, err2 := os.Stat(path)
	return err1 == nil && err2 == nil && os.SameFile(locked, named)
}

func (disk) Resolve(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for exists, rest := abs, ""; ; exists, rest = filepath.Dir(exists), filepath.Join(filepath.Base(exists), rest) {
		resolved, err := filepath.EvalSymlinks(exists)
		if err == nil {
			return filepath.Join(resolved, rest), nil
		}
		if !errors.Is(err, iofs.ErrNotExist) || exists == filepath.Dir(exists) {
			return "", err
		}
	}
}
