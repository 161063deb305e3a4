package avrofile

import (
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"sort"
)

// Reader reads the rows of a file whose index is known.
type Reader struct {
	r          io.ReaderAt
	index      index
	properties map[string]string
	sync       [syncBytes]byte
	buf        []byte
}

// Open reads the header of a file of the given size. The index was read whole; it is not referred to later.
func Open(r io.ReaderAt, size int64, indexBytes []byte) (*Reader, error) {
	x, err := parseIndex(indexBytes)
	if err != nil {
		return nil, err
	}
	if x.size != size {
		return nil, corrupt("it has %d bytes, but its index is of a file of %d", size, x.size)
	}
	f := &Reader{r: r, index: x}
	header, err := f.read(0, x.headerEnd())
	if err != nil {
		return nil, err
	}
	if checksum(header) != x.header {
		return nil, corrupt("the header's checksum is not the one in the index")
	}
	return f, f.parseHeader(header)
}

// parseHeader reads magic, properties and sync marker, which are all of b.
func (f *Reader) parseHeader(b []byte) error {
	if len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return corrupt("it is no Avro object container file")
	}
	p := parser{b: b[len(magic):]}
	f.properties = map[string]string{}
	for n := p.long(); n != 0 && !p.short; n = p.long() {
		if n < 0 {
			return corrupt("a header that Weir has not written")
		}
		for ; n > 0 && !p.short; n-- {
			name := p.string()
			f.properties[name] = p.string()
		}
	}
	if copy(f.sync[:], p.b) != syncBytes || len(p.b) != syncBytes || p.short {
		return corrupt("its header ends where it should not")
	}
	if codec := f.properties[codecProperty]; codec != nullCodec {
		return corrupt("its blocks are compressed by %q", codec)
	}
	return nil
}

// Property is a property of the header; where there is none, nothing.
func (f *Reader) Property(name string) string { return f.properties[name] }

// Rows is the number of rows.
func (f *Reader) Rows() (n int64) {
	for _, b := range f.index.blocks {
		n += int64(b.count)
	}
	return n
}

// Block is some rows in succession.
type Block struct {
	First uint64 // the order of the first row
	Count int    // one at least
	Rows  []byte // all of them; valid until the next block is read
}

// Blocks yields the blocks that may have rows of the given order or a higher one, and the blocks behind them. A block says the
// order of its first row only: so the first that comes is the last whose first row is below, or where there is none the first
// of all. (Of blocks that begin with the order itself the one before may end with it.) An error is the last that is yielded.
func (f *Reader) Blocks(from uint64) iter.Seq2[Block, error] {
	return func(yield func(Block, error) bool) {
		all := f.index.blocks
		i := sort.Search(len(all), func(i int) bool { return all[i].first >= from })
		for i = max(i-1, 0); i < len(all); i++ {
			b, err := f.block(i)
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// block reads block i, and checks that it is what the index says.
func (f *Reader) block(i int) (Block, error) {
	at := f.index.blocks[i]
	b, err := f.read(at.off, f.index.end(i))
	if err != nil {
		return Block{}, err
	}
	if checksum(b) != at.crc {
		return Block{}, corrupt("the checksum of the block at %d is not the one in the index", at.off)
	}
	p := parser{b: b}
	count, size := p.long(), p.long()
	if p.short || count != int64(at.count) || size < 0 || size != int64(len(p.b)-syncBytes) {
		return Block{}, corrupt("the block at %d says %d rows in %d bytes, the index %d in %d", at.off, count, size, at.count, len(p.b)-syncBytes)
	}
	if rows := p.b[:size]; string(p.b[size:]) == string(f.sync[:]) {
		return Block{First: at.first, Count: at.count, Rows: rows}, nil
	}
	return Block{}, corrupt("the block at %d does not end with the sync marker", at.off)
}

// read reads a part of the file into the buffer.
func (f *Reader) read(from, to int64) ([]byte, error) {
	n := int(to - from)
	if cap(f.buf) < n {
		f.buf = make([]byte, n)
	}
	b := f.buf[:n]
	switch got, err := f.r.ReadAt(b, from); {
	case got == n:
		return b, nil
	case err == nil || err == io.EOF:
		return nil, corrupt("it ends too early")
	default:
		return nil, fmt.Errorf("reading rows: %w", err)
	}
}

// parser takes values off the front of b. After the first failure it yields zeros, and short is set.
type parser struct {
	b     []byte
	short bool
}

func (p *parser) long() int64 {
	v, n := binary.Varint(p.b)
	if n <= 0 {
		p.b, p.short = nil, true
		return 0
	}
	p.b = p.b[n:]
	return v
}

func (p *parser) string() string {
	n := p.long()
	if n < 0 || n > int64(len(p.b)) {
		p.b, p.short = nil, true
		return ""
	}
	s := string(p.b[:n])
	p.b = p.b[n:]
	return s
}
