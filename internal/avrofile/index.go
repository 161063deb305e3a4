package avrofile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// An index is
//
//	magic | crc u32 | size u64 | header crc u32 | n u32 | n blocks
//	block = first u64 | offset u64 | count u32 | crc u32
//
// all little-endian. Size is that of the file; its header ends where the first block begins, and a block where the next one does.
// The first crc is of all that comes behind it. It stands in front because a CRC over bytes and their own CRC is the same for all
// bytes of one length: behind them it would blind whoever takes the checksum of the whole index, as storage does.
const (
	indexMagic      = "WEIRIX\x01\x00" // name and version
	indexHeadBytes  = len(indexMagic) + 4 + 8 + 4 + 4
	indexBlockBytes = 8 + 8 + 4 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// ErrCorrupt is what files of rows that are damaged, or are none, are refused with.
var ErrCorrupt = errors.New("damaged file of rows")

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

// Index is the bytes of the index, after Close.
func (f *Writer) Index() []byte {
	b := make([]byte, 0, indexHeadBytes+len(f.blocks)*indexBlockBytes)
	b = append(b, indexMagic+"\x00\x00\x00\x00"...)
	b = binary.LittleEndian.AppendUint64(b, uint64(f.off))
	b = binary.LittleEndian.AppendUint32(b, f.header)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.blocks)))
	for _, x := range f.blocks {
		b = binary.LittleEndian.AppendUint64(b, x.first)
		b = binary.LittleEndian.AppendUint64(b, uint64(x.off))
		b = binary.LittleEndian.AppendUint32(b, uint32(x.count))
		b = binary.LittleEndian.AppendUint32(b, x.crc)
	}
	binary.LittleEndian.PutUint32(b[8:], checksum(b[12:]))
	return b
}

// index is what an index says.
type index struct {
	size   int64
	header uint32
	blocks []block
}

// parseIndex reads an index, and checks that it agrees with itself.
func parseIndex(b []byte) (x index, err error) {
	switch {
	case len(b) < indexHeadBytes || string(b[:6]) != indexMagic[:6]:
		return x, corrupt("the index is none, or cut short")
	case string(b[:8]) != indexMagic:
		return x, fmt.Errorf("the index has format version %d, this program reads version %d; use a newer one",
			binary.LittleEndian.Uint16(b[6:]), binary.LittleEndian.Uint16([]byte(indexMagic[6:])))
	case checksum(b[12:]) != binary.LittleEndian.Uint32(b[8:]):
		return x, corrupt("the index's checksum does not match")
	}
	size := binary.LittleEndian.Uint64(b[12:])
	x.header = binary.LittleEndian.Uint32(b[20:])
	n := binary.LittleEndian.Uint32(b[24:])
	b = b[indexHeadBytes:]
	if size > 1<<62 || uint64(n)*indexBlockBytes != uint64(len(b)) {
		return x, corrupt("the index says %d blocks in %d bytes", n, len(b))
	}
	x.size = int64(size)
	x.blocks = make([]block, n)
	for i := range x.blocks {
		x.blocks[i] = block{
			first: binary.LittleEndian.Uint64(b), off: int64(binary.LittleEndian.Uint64(b[8:])),
			count: int(binary.LittleEndian.Uint32(b[16:])), crc: binary.LittleEndian.Uint32(b[20:]),
		}
		b = b[indexBlockBytes:]
	}
	return x, x.check()
}

// check checks that blocks follow each other, with something in them, and within the file.
func (x *index) check() error {
	for i, b := range x.blocks {
		end := x.end(i)
		switch {
		case b.off < int64(len(magic)) || end > x.size || b.off > end-syncBytes-2 || b.count < 1:
			return corrupt("the index puts a block of %d rows at %d to %d in a file of %d bytes", b.count, b.off, end, x.size)
		case i > 0 && b.first < x.blocks[i-1].first:
			return corrupt("the index has its blocks out of order")
		}
	}
	return nil
}

// end is where block i ends.
func (x *index) end(i int) int64 {
	if i+1 < len(x.blocks) {
		return x.blocks[i+1].off
	}
	return x.size
}

// headerEnd is where the header ends.
func (x *index) headerEnd() int64 {
	if len(x.blocks) > 0 {
		return x.blocks[0].off
	}
	return x.size
}
