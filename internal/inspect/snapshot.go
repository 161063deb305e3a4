package inspect

import (
	"errors"
	"io"
	"path"

	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// Snapshot is a checkpoint or a savepoint without its program. It is closed after use.
type Snapshot struct {
	*snapshot.Metadata
	// Location is its directory.
	Location string

	fs   storage.FS
	open map[string]storage.Reader // by name; those of which parts are read
}

// Open reads the metadata of what a path names: a directory, or the _metadata in it. The files that are named in it may be missing.
func Open(fsys storage.FS, spelt string) (*Snapshot, error) {
	m, location, err := storage.LoadMetadata(fsys, spelt)
	if err != nil {
		return nil, err
	}
	return &Snapshot{Metadata: m, Location: location, fs: fsys, open: map[string]storage.Reader{}}, nil
}

// Close closes the files that were read.
func (s *Snapshot) Close() error {
	var errs []error
	for _, r := range s.open {
		errs = append(errs, r.Close())
	}
	clear(s.open)
	return errors.Join(errs...)
}

// reader opens a file whose parts have checksums of their own, once.
func (s *Snapshot) reader(h snapshot.Handle) (storage.Reader, error) {
	r, ok := s.open[h.File]
	if ok && h.File != "" && r.Size() == h.Size {
		return r, nil
	}
	r, err := storage.OpenPages(s.fs, s.Location, h)
	if err == nil && h.File != "" && !ok {
		s.open[h.File] = r
	}
	return r, err
}

// readerAt is reader for those who do not want to know the size.
func (s *Snapshot) readerAt(h snapshot.Handle) (io.ReaderAt, error) { return s.reader(h) }

// bytes are all bytes of a handle, verified.
func (s *Snapshot) bytes(h snapshot.Handle) ([]byte, error) {
	r, err := storage.OpenHandle(s.fs, s.Location, h)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	return b, errors.Join(err, r.Close())
}

// isOutside reports whether a file lies in another directory.
func (s *Snapshot) isOutside(h snapshot.Handle) bool {
	return path.Dir(storage.FilePath(s.Location, h)) != s.Location
}
