package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirstream/weir"
)

// checkReadable tells why an input cannot be read.
func checkReadable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return inputError(path, err)
	}
	return f.Close()
}

// inputError says what to do about an input that cannot be opened. That it is not there, or not permitted, no restart will
// change.
func inputError(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return weir.NonRecoverable(&missingError{path})
	case errors.Is(err, fs.ErrPermission):
		return weir.NonRecoverable(fmt.Errorf("files: the input %s may not be read: permit it to the user that runs the job", path))
	}
	return fmt.Errorf("files: opening the input %s: %w", path, err)
}

// missingError says that an input does not exist.
type missingError struct{ path string }

func (e *missingError) Error() string {
	return fmt.Sprintf("files: the input %s does not exist: give Lines the path of a file or directory", e.path)
}

// Is makes it fs.ErrNotExist.
func (*missingError) Is(err error) bool { return err == fs.ErrNotExist }

// finder lists the input files: path and length, the empty ones left out.
type finder struct {
	patterns []string
	sizes    map[string]int64
}

// find lists the files at roots and below.
func find(ctx context.Context, roots, patterns []string) (map[string]int64, error) {
	f := &finder{patterns: patterns, sizes: map[string]int64{}}
	for _, root := range roots {
		info, err := os.Stat(root)
		if err != nil {
			return nil, inputError(root, err)
		}
		if !info.IsDir() {
			if err := f.add(root, info); err != nil {
				return nil, err
			}
			continue
		}
		if err := f.walk(ctx, root); err != nil {
			return nil, err
		}
	}
	return f.sizes, nil
}

// add takes a file that the user named.
func (f *finder) add(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return weir.NonRecoverable(fmt.Errorf("files: the input %s is neither a regular file nor a directory (%v): it has no offsets to go on from",
			path, info.Mode().Type()))
	}
	if info.Size() > 0 {
		f.sizes[path] = info.Size()
	}
	return nil
}

// walk takes the files below a directory. A file that goes while it is being looked at was never there.
func (f *finder) walk(ctx context.Context, root string) error {
	root += string(filepath.Separator) // so that a root that is a symbolic link is followed
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			if path != root && errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return fmt.Errorf("files: listing the input %s: %w", root, err)
		}
		if path != root && unfinished(entry.Name()) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if entry.IsDir() || !f.matches(entry.Name()) {
			return nil
		}
		info, err := os.Stat(path) // of what a link points to
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("files: listing the input %s: %w", root, err)
		}
		if info.Mode().IsRegular() && info.Size() > 0 {
			f.sizes[path] = info.Size()
		}
		return nil
	})
}

// unfinished is true for the names by which programs hide what they are still writing.
func unfinished(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

func (f *finder) matches(name string) bool {
	for _, p := range f.patterns {
		if ok, _ := filepath.Match(p, name); ok {
			return true
		}
	}
	return len(f.patterns) == 0
}
