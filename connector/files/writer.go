package files

import (
	"time"
)

// bufferBytes is how much a writer gathers before it writes to the disk.
const bufferBytes = 256 << 10

// writer turns records into parts. An error is final: whatever had been written since the last checkpoint may be damaged, so
// the writer does nothing any more, also when the engine tries another checkpoint with it.
type writer[T any] struct {
	format func(dst []byte, v T) []byte
	parts  parts
	buf    []byte // formatted, not yet in the part
	failed error
}

func (w *writer[T]) Write(v T, _ time.Time) error {
	if w.failed != nil {
		return w.failed
	}
	w.buf = w.format(w.buf, v)
	w.parts.records++
	if len(w.buf) >= bufferBytes || w.parts.full(len(w.buf)) {
		return w.Flush(false)
	}
	return nil
}

// Flush hands what was gathered to the part. It is made durable by prepare.
func (w *writer[T]) Flush(bool) error {
	if w.failed == nil {
		w.failed = w.parts.write(w.buf)
		w.buf = w.buf[:0]
	}
	if w.failed == nil && w.parts.full(0) {
		w.failed = w.parts.seal()
	}
	return w.failed
}

// prepare seals the part, and gives all that were sealed since the last checkpoint to this one.
func (w *writer[T]) prepare(checkpoint int64) ([]pending, []byte, error) {
	if err := w.Flush(false); err != nil {
		return nil, nil, err
	}
	sealed, err := w.parts.handOver(checkpoint)
	if err != nil {
		w.failed = err
		return nil, nil, err
	}
	state, err := w.parts.lineage().encode()
	return sealed, state, err
}

// Close removes what no checkpoint has been given.
func (w *writer[T]) Close() error { return w.parts.discard() }
