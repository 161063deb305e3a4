package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// windowBytes is what is read from a file at once. A longer line makes the window grow, up to the longest line allowed.
const windowBytes = 256 << 10

// scanner finds the lines of one split.
//
// It holds a window of the file: the bytes from base on, of which those before at were scanned. Lines are slices of the
// window, so nothing is copied but the part of a line that crosses the window's end, when the window moves on.
//
//	base          base+at          base+len(window)
//	 |  lines read  | unread           |
//
// Where the scanner begins is the one subtle thing. At an offset in mid-file it cannot know whether a line begins there, so it
// begins one byte earlier and skips to behind the first \n: if that one byte is the \n, the line at the offset is the first.
// This is right at the beginning of a split, where the line that lies across it belongs to the split before, and as right at
// an offset behind a line that was read, so a restored split is nothing special.
type scanner struct {
	file    io.ReaderAt
	split   Split // Offset is kept up to date
	maxLine int

	window []byte
	base   int64
	at     int
}

// newScanner uses the memory of buf for its window.
func newScanner(file io.ReaderAt, split Split, maxLine int, buf []byte) (*scanner, error) {
	if cap(buf) < windowBytes {
		buf = make([]byte, 0, windowBytes)
	}
	s := &scanner{file: file, split: split, maxLine: maxLine, window: buf[:0], base: split.Offset}
	if split.Offset == 0 || split.Offset >= split.End {
		return s, nil
	}
	s.base--
	return s, s.skipLine()
}

// skipLine moves to where the next line begins.
func (s *scanner) skipLine() error {
	for {
		if i := bytes.IndexByte(s.window[s.at:], '\n'); i >= 0 {
			s.at += i + 1
			break
		}
		s.at = len(s.window)
		if more, err := s.fill(); !more || err != nil {
			s.split.Offset = s.split.Size
			return err
		}
	}
	s.split.Offset = s.base + int64(s.at)
	return nil
}

// next is the next line of the split, without its end, valid until the call after; false: there is none.
func (s *scanner) next() (line []byte, ok bool, err error) {
	if s.split.Offset >= s.split.End {
		return nil, false, nil
	}
	searched := 0 // bytes of the line known to have no \n
	for {
		unread := s.window[s.at:]
		if i := bytes.IndexByte(unread[searched:], '\n'); i >= 0 {
			line = unread[:searched+i]
			s.at += len(line) + 1
			break
		}
		if searched = len(unread); searched > s.maxLine+1 { // the one may be a \r
			return nil, false, s.tooLong()
		}
		more, err := s.fill()
		if err != nil {
			return nil, false, err
		}
		if !more {
			line = s.window[s.at:]
			s.at = len(s.window)
			break
		}
	}
	line = bytes.TrimSuffix(line, []byte{'\r'})
	if len(line) > s.maxLine {
		return nil, false, s.tooLong()
	}
	s.split.Offset = s.base + int64(s.at)
	return line, true, nil
}

// fill reads on behind the window, which moves to the first unread byte, and grows where that is not enough to read
// anything. more is false at the end of the file.
func (s *scanner) fill() (more bool, err error) {
	if s.at > 0 {
		s.base += int64(s.at)
		s.window = s.window[:copy(s.window, s.window[s.at:])]
		s.at = 0
	}
	from := s.base + int64(len(s.window))
	left := s.split.Size - from
	if left <= 0 {
		return false, nil
	}
	if len(s.window) == cap(s.window) {
		s.window = append(make([]byte, 0, 2*cap(s.window)), s.window...)
	}
	have := len(s.window)
	want := int(min(left, int64(cap(s.window)-have)))
	n, err := s.file.ReadAt(s.window[have:have+want], from)
	s.window = s.window[:have+n]
	switch {
	case n == want:
		return true, nil
	case err == nil || errors.Is(err, io.EOF):
		return false, shrank(s.split, from+int64(n))
	default:
		return false, fmt.Errorf("files: reading %s at offset %d: %w", s.split.Path, from+int64(n), err)
	}
}

func (s *scanner) tooLong() error {
	return fmt.Errorf("files: the line of %s at offset %d is longer than %d bytes: "+
		"set a greater MaxLine, or leave the file out", s.split.Path, s.split.Offset, s.maxLine)
}

// shrank is the error for a file that has only size bytes now.
func shrank(s Split, size int64) error {
	return fmt.Errorf("files: %s has become shorter: it had %d bytes when it was found, was read up to offset %d, and has %d bytes now: "+
		"files must not change until the job has read them; put the file back, or start without a checkpoint",
		s.Path, s.Size, s.Offset, size)
}
