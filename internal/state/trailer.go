package state

import (
	"encoding/binary"
	"errors"

	"github.com/weirstream/weir/internal/snapshot"
)

// errTooLarge is a state of one page, 32 keys, that a file cannot tell the length of.
var errTooLarge = errors.New("one key's state is larger than 4 GiB; spread it over more keys")

// The kinds of state files.
const (
	fileKeyed    = 1
	fileOperator = 2
)

// Flags of a column in a file.
const flagStamped = 1

// appendSchemas writes the first part of a keyed file's trailer: key and columns.
func (s *KeyedSnapshot) appendSchemas(dst []byte) []byte {
	dst = append(dst, fileKeyed)
	dst = appendString(dst, s.schemas[len(s.schemas)-1].Key)
	dst = binary.AppendUvarint(dst, uint64(len(s.columns)))
	for i, c := range s.columns {
		dst = appendSchema(dst, s.schemas[i])
		var flags byte
		if c.common().spec.TTL > 0 {
			flags |= flagStamped
		}
		dst = append(dst, flags)
	}
	return dst
}

func appendSchema(dst []byte, s snapshot.StateSchema) []byte {
	dst = appendString(dst, s.Name)
	dst = appendString(dst, s.Kind)
	dst = appendString(dst, s.MapKey)
	return appendString(dst, s.Value)
}

func (p *parser) schema() (s snapshot.StateSchema) {
	s.Name, s.Kind, s.MapKey, s.Value = p.string(), p.string(), p.string(), p.string()
	return s
}

// appendBlocks writes where the blocks of a table are.
func appendBlocks(dst []byte, blocks []block) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(blocks)))
	for _, b := range blocks {
		dst = binary.LittleEndian.AppendUint64(dst, b.first)
		dst = binary.LittleEndian.AppendUint64(dst, b.last)
		dst = binary.AppendUvarint(dst, uint64(b.off))
		dst = binary.AppendUvarint(dst, uint64(b.length))
		dst = binary.AppendUvarint(dst, uint64(b.count))
		dst = binary.LittleEndian.AppendUint32(dst, b.crc)
	}
	return dst
}

// blocks reads what appendBlocks wrote, of a file whose body ends at bodyEnd.
func (p *parser) blocks(bodyEnd int64) (all []block) {
	for range p.count() {
		b := block{first: p.uint64(), last: p.uint64()}
		off, length, count := p.uvarint(), p.uvarint(), p.uvarint()
		b.crc = p.uint32()
		if off > uint64(bodyEnd) || length > uint64(bodyEnd)-off {
			p.fail()
			return nil
		}
		b.off, b.length, b.count = int64(off), int(length), int(count)
		all = append(all, b)
	}
	return all
}

// keyedFile is the trailer of a keyed state file.
type keyedFile struct {
	key     string
	columns []fileColumn
	tables  [3][]block
}

// fileColumn is a column as the file has it.
type fileColumn struct {
	schema  snapshot.StateSchema
	stamped bool
}

func parseKeyedTrailer(p *parser, bodyEnd int64) (*keyedFile, error) {
	if kind := p.byte(); p.err == nil && kind != fileKeyed {
		return nil, corrupt("it is of kind %d, not keyed state", kind)
	}
	f := &keyedFile{key: p.string()}
	for range p.count() {
		f.columns = append(f.columns, fileColumn{p.schema(), p.byte()&flagStamped != 0})
	}
	for i := range f.tables {
		f.tables[i] = p.blocks(bodyEnd)
	}
	return f, p.done()
}
