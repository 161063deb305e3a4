package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/weirstream/weir/internal/snapshot"
)

// OpenHandle opens the bytes that h names, in the checkpoint at location, after reading them once to verify size and checksum.
// Reads of the result are full, whatever the file system does: fewer bytes than asked for come only with an error.
func OpenHandle(fsys FS, location string, h snapshot.Handle) (Reader, error) {
	return open(fsys, location, h, (*fullReader).verify)
}

// OpenPages is OpenHandle of a file whose parts carry checksums of their own, and of which maybe few are needed: it is not read
// before, and only its size is verified.
func OpenPages(fsys FS, location string, h snapshot.Handle) (Reader, error) {
	return open(fsys, location, h, (*fullReader).verifySize)
}

func open(fsys FS, location string, h snapshot.Handle, verify func(*fullReader, snapshot.Handle) error) (Reader, error) {
	if h.File == "" {
		if got := snapshot.Checksum(0, h.Inline); int64(len(h.Inline)) != h.Size || got != h.CRC {
			return nil, fmt.Errorf("storage: inline state of checkpoint %s is %w: %d bytes with checksum %08x, but %d with %08x were written",
				location, ErrDamaged, len(h.Inline), got, h.Size, h.CRC)
		}
		return inlineReader{bytes.NewReader(h.Inline)}, nil
	}
	name := filePath(location, h.File)
	under, err := fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("storage: opening state: %w", markMissing(err))
	}
	r := &fullReader{Reader: under, name: name}
	if err := verify(r, h); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

type inlineReader struct{ *bytes.Reader }

func (inlineReader) Close() error { return nil }

// fullReader reads in full what its file system may give out in pieces.
type fullReader struct {
	Reader
	name string
}

// emptyReadsMax is how many reads in turn may return nothing, neither bytes nor an error.
const emptyReadsMax = 100

func (r *fullReader) ReadAt(p []byte, off int64) (int, error) {
	left := r.Size() - off
	if off < 0 || left >= int64(len(p)) {
		return r.fill(p, off)
	}
	n, err := r.fill(p[:max(left, 0)], off)
	if err == nil {
		err = io.EOF
	}
	return n, err
}

// fill reads all of p, which lies within the file.
func (r *fullReader) fill(p []byte, off int64) (n int, err error) {
	for empty := 0; n < len(p) && empty < emptyReadsMax; empty++ {
		got, err := r.Reader.ReadAt(p[n:], off+int64(n))
		n += got
		switch {
		case n == len(p):
			return n, nil // and if err is io.EOF, so be it
		case errors.Is(err, io.EOF):
			return n, fmt.Errorf("storage: %s is %w: it ends after %d of %d bytes: %w", r.name, ErrDamaged, off+int64(n), r.Size(), io.ErrUnexpectedEOF)
		case err != nil:
			return n, fmt.Errorf("storage: reading %s: %w", r.name, err)
		case got > 0:
			empty = 0
		}
	}
	if n < len(p) {
		return n, fmt.Errorf("storage: reading %s at byte %d: %w", r.name, off+int64(n), io.ErrNoProgress)
	}
	return n, nil
}

func (r *fullReader) verifySize(h snapshot.Handle) error {
	if r.Size() != h.Size {
		return fmt.Errorf("storage: %s is %w: it has %d bytes, but %d were written", r.name, ErrDamaged, r.Size(), h.Size)
	}
	return nil
}

func (r *fullReader) verify(h snapshot.Handle) error {
	if err := r.verifySize(h); err != nil {
		return err
	}
	var crc uint32
	buf := make([]byte, min(r.Size(), 256<<10))
	for off := int64(0); off < r.Size(); {
		n, err := r.ReadAt(buf[:min(int64(len(buf)), r.Size()-off)], off)
		if err != nil {
			return err
		}
		crc = snapshot.Checksum(crc, buf[:n])
		off += int64(n)
	}
	if crc != h.CRC {
		return fmt.Errorf("storage: %s is %w: its checksum is %08x, but what was written had %08x", r.name, ErrDamaged, crc, h.CRC)
	}
	return nil
}

// readFile is the whole of a file.
func readFile(fsys FS, name string) ([]byte, error) {
	under, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	r := &fullReader{Reader: under, name: name}
	b := make([]byte, r.Size())
	_, err = r.ReadAt(b, 0)
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	return b, nil
}
