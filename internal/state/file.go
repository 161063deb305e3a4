package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

// A state file (docs/format/state.md) is
//
//	magic | body | trailer | footer
//
// The body is blocks of keyed state, or the elements of operator state. The trailer has the schemas and says where in the
// body is what; the footer, of fixed size, where the trailer is. So a file is written from beginning to end without going
// back, and read from its end.

const (
	fileMagic   = "WEIRST\x01\x00" // name and version
	footerBytes = 24               // trailer's offset and length, checksum of trailer and these, magic's first four bytes
	footerMagic = "WSF1"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrCorrupt is what a state file that is damaged, or is none, is refused with.
var ErrCorrupt = errors.New("state: damaged state file")

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

// errShort is the end of the bytes in the middle of something.
var errShort = corrupt("it ends too early")

// fileWriter writes a state file. Its buffer is used again for each block.
type fileWriter struct {
	w   io.Writer
	off int64 // of what comes next
	buf []byte
}

// begin writes the magic.
func (f *fileWriter) begin() error { return f.write([]byte(fileMagic)) }

// write writes b at f.off.
func (f *fileWriter) write(b []byte) error {
	n, err := f.w.Write(b)
	f.off += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// end writes trailer and footer.
func (f *fileWriter) end(trailer []byte) error {
	at, n := f.off, len(trailer)
	trailer = binary.LittleEndian.AppendUint64(trailer, uint64(at))
	trailer = binary.LittleEndian.AppendUint64(trailer, uint64(n))
	trailer = binary.LittleEndian.AppendUint32(trailer, crc32.Checksum(trailer, castagnoli))
	return f.write(append(trailer, footerMagic...))
}

// readTrailer checks the ends of a file, and returns the trailer and where the body ends.
func readTrailer(r io.ReaderAt, size int64) (t *parser, bodyEnd int64, err error) {
	if size < int64(len(fileMagic))+footerBytes {
		return nil, 0, corrupt("%d bytes are too few", size)
	}
	var magic [len(fileMagic)]byte
	var footer [footerBytes]byte
	if err := readFull(r, magic[:], 0); err != nil {
		return nil, 0, err
	}
	if err := readFull(r, footer[:], size-footerBytes); err != nil {
		return nil, 0, err
	}
	switch {
	case string(magic[:6]) != fileMagic[:6] || string(footer[20:]) != footerMagic:
		return nil, 0, corrupt("no state file, or cut short")
	case string(magic[:]) != fileMagic:
		return nil, 0, fmt.Errorf("state: the file has format version %d, this program reads version %d; use a newer one",
			binary.LittleEndian.Uint16(magic[6:]), binary.LittleEndian.Uint16([]byte(fileMagic[6:])))
	}
	at, n := binary.LittleEndian.Uint64(footer[:]), binary.LittleEndian.Uint64(footer[8:])
	most := uint64(size) - footerBytes
	if at < uint64(len(fileMagic)) || at > most || n != most-at {
		return nil, 0, corrupt("the footer points outside the file")
	}
	b := make([]byte, n+16)
	if err := readFull(r, b, int64(at)); err != nil {
		return nil, 0, err
	}
	if crc32.Checksum(b, castagnoli) != binary.LittleEndian.Uint32(footer[16:]) {
		return nil, 0, corrupt("the trailer's checksum does not match")
	}
	return &parser{b: b[:n]}, int64(at), nil
}

func readFull(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case err == nil || err == io.EOF:
		return errShort
	}
	return fmt.Errorf("state: reading a state file: %w", err)
}

// parser takes values off the front of b. After the first failure it yields zeros; err says what was wrong.
type parser struct {
	b   []byte
	err error
}

func (p *parser) fail() {
	if p.err == nil {
		p.err = errShort
	}
	p.b = nil
}

func (p *parser) uvarint() uint64 {
	v, n := binary.Uvarint(p.b)
	if n <= 0 {
		p.fail()
		return 0
	}
	p.b = p.b[n:]
	return v
}

// count is the number of things that follow, each of at least one byte.
func (p *parser) count() int {
	n := p.uvarint()
	if n > uint64(len(p.b)) {
		p.fail()
		return 0
	}
	return int(n)
}

func (p *parser) bytes(n int) []byte {
	if n > len(p.b) {
		p.fail()
		return nil
	}
	b := p.b[:n]
	p.b = p.b[n:]
	return b
}

func (p *parser) string() string { return string(p.bytes(p.count())) }

func (p *parser) uint32() uint32 {
	if b := p.bytes(4); p.err == nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (p *parser) uint64() uint64 {
	if b := p.bytes(8); p.err == nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (p *parser) byte() byte {
	if b := p.bytes(1); p.err == nil {
		return b[0]
	}
	return 0
}

// done fails if something is left.
func (p *parser) done() error {
	if p.err == nil && len(p.b) > 0 {
		return corrupt("%d bytes too many", len(p.b))
	}
	return p.err
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// Stamps and counts stand inside the values of columns.

func appendStamp(dst []byte, stamp int64) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(stamp))
}

func readStamp(src []byte) (int64, []byte, error) {
	if len(src) < 8 {
		return 0, nil, errShort
	}
	return int64(binary.LittleEndian.Uint64(src)), src[8:], nil
}

// readCount reads the number of elements that follow. Unless they have no bytes at all, there cannot be more than bytes are
// left: a file's word alone takes no memory and no time. (A map of keys without bytes has one entry at most.)
func readCount(src []byte, noBytes bool) (int, []byte, error) {
	v, n := binary.Uvarint(src)
	if n <= 0 || v > math.MaxInt32 || v > 1 && v > uint64(len(src)-n) && !noBytes {
		return 0, nil, errShort
	}
	return int(v), src[n:], nil
}
