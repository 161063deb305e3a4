package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/pace"
)

// reader reads its splits one after the other. It asks for the next when it has read all that it has, so that a fast reader
// reads more than a slow one.
type reader struct {
	ctx     weir.ReaderContext
	maxLine int
	pacer   *pace.Pacer

	queue []Split // to be read after the open one
	open  *scanner
	file  *os.File // of the open split
	buf   []byte   // a window, for the next scanner
	asked bool     // for a split, and not been given one
	last  bool     // no split will be added
}

func (r *reader) AddSplits(splits []Split) error {
	for _, s := range splits {
		if err := s.check(); err != nil {
			return err
		}
	}
	r.queue = append(r.queue, splits...)
	r.asked = false
	return nil
}

func (r *reader) NoMoreSplits() { r.last = true }

func (r *reader) Poll(_ context.Context, most int, out weir.Out[string]) (weir.Status, error) {
	if r.idle() {
		return r.wait(), nil
	}
	n := r.pacer.Take(most)
	if n == 0 {
		return weir.Waiting, nil
	}
	for ; n > 0; n-- {
		line, ok, err := r.next()
		if err != nil {
			return weir.Waiting, err
		}
		if !ok {
			r.pacer.Return(n)
			return r.wait(), nil
		}
		out.Emit(line)
	}
	return weir.More, nil
}

// idle is true when there is no split to read.
func (r *reader) idle() bool { return r.open == nil && len(r.queue) == 0 }

// wait is the status of an idle reader, which asks for a split once.
func (r *reader) wait() weir.Status {
	if r.last {
		return weir.Ended
	}
	if !r.asked {
		r.asked = true
		r.ctx.RequestSplit()
	}
	return weir.Waiting
}

// next is the next line of all splits; false: all are read.
func (r *reader) next() (line string, ok bool, err error) {
	for {
		if r.open == nil {
			if len(r.queue) == 0 {
				return "", false, nil
			}
			if err := r.openNext(); err != nil {
				return "", false, err
			}
		}
		b, ok, err := r.open.next()
		if err != nil {
			return "", false, err
		}
		if ok {
			return string(b), true, nil
		}
		if err := r.closeOpen(); err != nil {
			return "", false, err
		}
	}
}

// openNext opens the first split of the queue.
func (r *reader) openNext() error {
	split := r.queue[0]
	file, err := os.Open(split.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("files: %s, read up to offset %d of %d, is gone: files must stay until the job has read them; "+
			"put it back, or start without a checkpoint", split.Path, split.Offset, split.Size)
	}
	if err != nil {
		return fmt.Errorf("files: opening an input: %w", err)
	}
	r.file = file
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("files: asking for the length of an input: %w", err)
	}
	if info.Size() < split.Size {
		return shrank(split, info.Size())
	}
	if r.open, err = newScanner(file, split, r.maxLine, r.buf); err != nil {
		return err
	}
	r.queue = r.queue[1:]
	return nil
}

// closeOpen lets go of a split that was read. A window that a long line made large goes, too.
func (r *reader) closeOpen() error {
	if cap(r.open.window) == windowBytes {
		r.buf = r.open.window
	}
	r.open = nil
	file := r.file
	r.file = nil
	if err := file.Close(); err != nil {
		return fmt.Errorf("files: closing an input: %w", err)
	}
	return nil
}

func (r *reader) Snapshot(int64) ([]Split, error) {
	var splits []Split
	if r.open != nil {
		splits = append(splits, r.open.split)
	}
	return append(splits, r.queue...), nil
}

func (r *reader) Close() error {
	r.pacer.Close()
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
