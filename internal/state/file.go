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
// The body is pages of keyed state and the sections of their manifest, or the elements of operator state. The trailer has the
// schemas and says where in the body is what; the footer, of fixed size, where the trailer is. So a file is written from
// beginning to end without going back, and read from its end.

const (
	fileMagic   = "WEIRST"
	magicBytes  = len(fileMagic) + 2 // with the version
	footerBytes = 24                 // trailer's offset and length, checksum of trailer and these, magic's first four bytes
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

// The versions of the format. Keyed state is written in the second, in which a file may refer to others, and read in both; of
// operator state there is only the first.
const (
	version1 = 1
	version2 = 2
)

// begin writes the magic.
func (f *fileWriter) begin(version uint16) error {
	return f.write(binary.LittleEndian.AppendUint16([]byte(fileMagic), version))
}

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

// fileEnd is what the ends of a file say.
type fileEnd struct {
	version uint16
	trailer *parser
	bodyEnd int64
}

// readEnd reads and checks the ends of a file.
func readEnd(r io.ReaderAt, size int64) (e fileEnd, err error) {
	if size < int64(magicBytes)+footerBytes {
		return e, corrupt("%d bytes are too few", size)
	}
	var magic [magicBytes]byte
	var footer [footerBytes]byte
	if err := readFull(r, magic[:], 0); err != nil {
		return e, err
	}
	if err := readFull(r, footer[:], size-footerBytes); err != nil {
		return e, err
	}
	e.version = binary.LittleEndian.Uint16(magic[len(fileMagic):])
	switch {
	case string(magic[:len(fileMagic)]) != fileMagic || string(footer[20:]) != footerMagic:
		return e, corrupt("no state file, or cut short")
	case e.version != version1 && e.version != version2:
		return e, fmt.Errorf("state: the file has format version %d, this program reads versions up to %d; use a newer one", e.version, version2)
	}
	at, n := binary.LittleEndian.Uint64(footer[:]), binary.LittleEndian.Uint64(footer[8:])
	most := uint64(size) - footerBytes
	if at < uint64(magicBytes) || at > most || n != most-at {
		return e, corrupt("the footer points outside the file")
	}
	b := make([]byte, n+16)
	if err := readFull(r, b, int64(at)); err != nil {
		return e, err
	}
	if crc32.Checksum(b, castagnoli) != binary.LittleEndian.Uint32(footer[16:]) {
		return e, corrupt("the trailer's checksum does not match")
	}
	e.trailer, e.bodyEnd = &parser{b: b[:n]}, int64(at)
	return e, nil
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

// A record is some bytes that carry their length and their checksum: a page, or a section of the manifest. So what is cut out of
// the middle of a file can be read, and checked, alone.
//
//	record = length:uvarint crc:u32 bytes

// record adds a record to f.buf, and says where in the file it will be.
func (f *fileWriter) record(b []byte) (off int64, length uint32, err error) {
	if len(b) > math.MaxUint32-recordHead {
		return 0, 0, errTooLarge
	}
	start := len(f.buf)
	f.buf = binary.AppendUvarint(f.buf, uint64(len(b)))
	f.buf = binary.LittleEndian.AppendUint32(f.buf, crc32.Checksum(b, castagnoli))
	f.buf = append(f.buf, b...)
	off, length = f.off+int64(start), uint32(len(f.buf)-start)
	if len(f.buf) >= blockBytes {
		err = f.flush()
	}
	return off, length, err
}

// recordHead is the most bytes before those of a record.
const recordHead = binary.MaxVarintLen64 + 4

// flush writes f.buf.
func (f *fileWriter) flush() error {
	err := f.write(f.buf)
	f.buf = f.buf[:0]
	return err
}

// readRecord checks the record that src begins with, and returns its bytes and its whole length; more: src must have so many bytes
// to hold it.
func readRecord(src []byte) (b []byte, length, more int64, err error) {
	n, size := binary.Uvarint(src)
	if size <= 0 || n > math.MaxUint32 {
		return nil, 0, 0, corrupt("a record's length makes no sense")
	}
	length = int64(size) + 4 + int64(n)
	if length > int64(len(src)) {
		return nil, 0, length, nil
	}
	b = src[size+4 : length]
	if crc32.Checksum(b, castagnoli) != binary.LittleEndian.Uint32(src[size:]) {
		return nil, 0, 0, corrupt("a record's checksum does not match")
	}
	return b, length, 0, nil
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
