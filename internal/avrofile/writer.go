package avrofile

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/zeebo/xxh3"
)

// BlockBytes is the size at which a block ends, with the row that reached it.
const BlockBytes = 256 << 10

const (
	magic     = "Obj\x01"
	syncBytes = 16
	// headBytes is the most that the count and the size in front of a block take.
	headBytes = 2 * binary.MaxVarintLen64
)

// The properties that every header has.
const (
	schemaProperty = "avro.schema"
	codecProperty  = "avro.codec"
	nullCodec      = "null"
)

// Property is a name and a text in a file's header. Names beginning with "avro." are Avro's own.
type Property struct{ Name, Value string }

// Writer writes rows to a file. A row is appended to Buffer and given back with Add:
//
//	row := append(w.Buffer(), ...)
//	err := w.Add(row, order)
//
// so that nothing is copied. The block's count and size, which are known when it ends, go into room left before its rows.
type Writer struct {
	w      io.Writer
	off    int64
	sync   [syncBytes]byte
	header uint32 // its checksum
	buf    []byte // room for a head, then the open block's rows
	open   block  // the one that buf is filled for
	rows   int64
	blocks []block
}

// block is where some rows in succession are in a file.
type block struct {
	first uint64 // the order of the first row
	off   int64
	count int
	crc   uint32
}

// NewWriter writes the header of a file of rows.
func NewWriter(w io.Writer, schema string, properties []Property) (*Writer, error) {
	f := &Writer{w: w, buf: make([]byte, headBytes, headBytes+BlockBytes+BlockBytes/4)}
	header := binary.AppendVarint([]byte(magic), int64(len(properties)+2))
	for _, p := range append([]Property{{schemaProperty, schema}, {codecProperty, nullCodec}}, properties...) {
		header = appendString(appendString(header, p.Name), p.Value)
	}
	header = append(header, 0)
	f.sync = xxh3.Hash128(header).Bytes() // any bytes will do, and equal files are to be equal
	header = append(header, f.sync[:]...)
	f.header = checksum(header)
	return f, f.write(header)
}

// Buffer is where the next row is appended.
func (f *Writer) Buffer() []byte { return f.buf }

// Add takes Buffer back, with one more row, of the given order.
func (f *Writer) Add(row []byte, order uint64) error {
	if f.open.count == 0 {
		f.open.first = order
	}
	f.open.count++
	f.buf = row
	if len(row) >= headBytes+BlockBytes {
		return f.flush()
	}
	return nil
}

// Close ends the file. It does not close the io.Writer.
func (f *Writer) Close() error {
	if f.open.count == 0 {
		return nil
	}
	return f.flush()
}

// Rows is the number of rows added.
func (f *Writer) Rows() int64 { return f.rows + int64(f.open.count) }

// Size is the number of bytes written.
func (f *Writer) Size() int64 { return f.off }

// flush writes the open block: count, size, rows, sync marker.
func (f *Writer) flush() error {
	var head [headBytes]byte
	h := binary.AppendVarint(head[:0], int64(f.open.count))
	h = binary.AppendVarint(h, int64(len(f.buf)-headBytes))
	start := headBytes - len(h)
	copy(f.buf[start:], h)
	b := append(f.buf[start:], f.sync[:]...)
	f.open.off, f.open.crc = f.off, checksum(b)
	f.rows += int64(f.open.count)
	f.blocks = append(f.blocks, f.open)
	f.open = block{}
	f.buf = f.buf[:headBytes]
	return f.write(b)
}

func (f *Writer) write(b []byte) error {
	n, err := f.w.Write(b)
	f.off += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("writing rows: %w", err)
	}
	return nil
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendVarint(dst, int64(len(s))), s...)
}
