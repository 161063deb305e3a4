package state

import (
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/weirstream/weir/internal/snapshot"
)

// window is a file that is read from front to back, mostly: it holds some bytes from where the last ones were wanted. In each file
// that a checkpoint refers to, the pages have the order of the table. So reading a table goes through all of them side by side, and
// passes over what is dead in them, which is less than half.
type window struct {
	r    io.ReaderAt
	size int64
	name string
	off  int64 // of buf
	buf  []byte
}

// windowBytes is how much is read at once.
const windowBytes = 128 << 10

// bytes are n bytes at off, valid until the next call.
func (w *window) bytes(off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > w.size-n {
		return nil, corrupt("what is wanted lies outside the file")
	}
	if off < w.off || off+n > w.off+int64(len(w.buf)) {
		most := int(min(max(n, windowBytes), w.size-off))
		w.off, w.buf = off, slices.Grow(w.buf[:0], most)[:most]
		if err := readFull(w.r, w.buf, off); err != nil {
			w.buf = w.buf[:0]
			return nil, err
		}
	}
	return w.buf[off-w.off:][:n], nil
}

// block reads a block of version 1.
func (w *window) block(b block) ([]byte, error) {
	src, err := w.bytes(b.off, int64(b.length))
	if err != nil {
		return nil, w.in(err)
	}
	if crc32.Checksum(src, castagnoli) != b.crc {
		return nil, w.in(corrupt("the checksum of the block at %d does not match", b.off))
	}
	return src, nil
}

// record reads the record at off, which ends at end at the latest: its bytes, and its whole length.
func (w *window) record(off, end int64) (b []byte, length int64, err error) {
	src, err := w.bytes(off, min(recordHead, end-off))
	for err == nil {
		var more int64
		if b, length, more, err = readRecord(src); err == nil && more == 0 {
			return b, length, nil
		} else if err == nil && more > end-off {
			err = corrupt("it is longer than there is room")
		}
		if err == nil {
			src, err = w.bytes(off, more)
		}
	}
	return nil, 0, w.in(fmt.Errorf("the record at %d: %w", off, err))
}

// in says in which file something is wrong.
func (w *window) in(err error) error {
	if err == nil || w.name == "" {
		return err
	}
	return fmt.Errorf("%s: %w", w.name, err)
}

// windows are the files of a checkpoint, opened when something of them is wanted.
type windows struct {
	open func(h snapshot.Handle) (io.ReaderAt, error)
	all  []*window
	of   []storedFile // by number
}

// window is the file of a number.
func (ws *windows) window(n fileNumber) (*window, error) {
	i := indexOf(ws.of, n)
	if i < 0 {
		return nil, corrupt("it refers to a file numbered %d, which it does not name", n)
	}
	if ws.all[i] == nil {
		h := ws.of[i].handle
		r, err := ws.open(h)
		if err != nil {
			return nil, err
		}
		ws.all[i] = &window{r: r, size: h.Size, name: h.File}
	}
	return ws.all[i], nil
}
