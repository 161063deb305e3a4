package state

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// errTooLarge is a state of one page, 32 keys, that a file cannot tell the length of.
var errTooLarge = errors.New("one key's state is larger than 4 GiB; spread it over more keys")

// tables is the number of tables of keyed state: keys, processing timers, event timers.
const tables = 3

// The kinds of state files.
const (
	fileKeyed    = 1
	fileOperator = 2
)

// Flags of a column in a file.
const flagStamped = 1

// appendTrailer writes the trailer of a keyed file.
func (s *KeyedSnapshot) appendTrailer(dst []byte, m *manifest) []byte {
	dst = s.appendSchemas(dst)
	dst = binary.AppendVarint(dst, s.now)
	dst = binary.AppendUvarint(dst, uint64(s.within.First))
	dst = binary.AppendUvarint(dst, uint64(s.within.Last))
	dst = binary.AppendUvarint(dst, uint64(m.number))
	dst = binary.AppendUvarint(dst, uint64(len(m.files)))
	for _, f := range m.files {
		dst = binary.AppendUvarint(dst, uint64(f.number))
	}
	for i := range m.tables {
		dst = append(dst, m.tables[i].shift)
		dst = binary.AppendUvarint(dst, uint64(m.tables[i].entries))
		dst = appendReferences(dst, m.tables[i].references())
	}
	return dst
}

// appendSchemas writes the first part of a keyed file's trailer: key and columns.
func (s *KeyedSnapshot) appendSchemas(dst []byte) []byte {
	dst = append(dst, fileKeyed)
	dst = appendString(dst, s.schemas[len(s.schemas)-1].Key)
	dst = binary.AppendUvarint(dst, uint64(len(s.columns)))
	for i, c := range s.columns {
		dst = appendSchema(dst, s.schemas[i])
		if ttl := c.common().spec.TTL; ttl > 0 {
			dst = binary.AppendUvarint(append(dst, flagStamped), uint64(ttl))
		} else {
			dst = append(dst, 0)
		}
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

// appendReferences writes where the sections of a table are.
func appendReferences(dst []byte, all []reference) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(all)))
	for _, r := range all {
		dst = binary.AppendUvarint(dst, uint64(r.segment))
		dst = binary.AppendUvarint(dst, uint64(r.sections))
		dst = binary.AppendUvarint(dst, uint64(r.file))
		dst = binary.AppendUvarint(dst, uint64(r.off))
		dst = binary.AppendUvarint(dst, uint64(r.length))
	}
	return dst
}

// keyedTrailer is the trailer of a keyed state file.
type keyedTrailer struct {
	key     string
	columns []fileColumn

	blocks [tables][]block // version 1

	// version 2
	moment int64 // of the snapshot
	within base.KeyGroupRange
	number fileNumber   // of the file itself
	others []fileNumber // of those it refers to
	tables [tables]storedTable
}

// fileColumn is a column as the file has it.
type fileColumn struct {
	schema  snapshot.StateSchema
	stamped bool
	ttl     time.Duration // 0: there is none, or the file is of version 1, which does not say it
}

// storedTable says where the sections of a table are.
type storedTable struct {
	entries    int64
	shift      uint8
	base       uint64
	references []reference
}

func parseKeyedTrailer(e fileEnd) (*keyedTrailer, error) {
	p := e.trailer
	if kind := p.byte(); p.err == nil && kind != fileKeyed {
		return nil, corrupt("it is of kind %d, not keyed state", kind)
	}
	t := &keyedTrailer{key: p.string()}
	for range p.count() {
		c := fileColumn{schema: p.schema(), stamped: p.byte()&flagStamped != 0}
		if c.stamped && e.version >= version2 {
			c.ttl = time.Duration(p.uvarint() & math.MaxInt64)
		}
		t.columns = append(t.columns, c)
	}
	if e.version == version1 {
		for i := range t.blocks {
			t.blocks[i] = p.blocks(e.bodyEnd)
		}
		return t, p.done()
	}
	t.moment = p.varint()
	p.files(t)
	for i := range t.tables {
		t.tables[i] = p.table(t.within)
	}
	return t, p.done()
}

// files reads of which range a file is, and how it and others are called in it.
func (p *parser) files(t *keyedTrailer) {
	first, last := p.uvarint(), p.uvarint()
	if first > last || last >= base.KeyGroups {
		p.fail()
		return
	}
	t.within = base.KeyGroupRange{First: int(first), Last: int(last)}
	t.number = p.fileNumber()
	for range p.count() {
		n := p.fileNumber()
		if n >= t.number || len(t.others) > 0 && n <= t.others[len(t.others)-1] {
			p.fail()
		}
		t.others = append(t.others, n)
	}
}

// segmentsMost is the most segments of a root that a reader puts up with.
const segmentsMost = 1 << 16

// table reads where the sections of a table of a range are: in the order of the segments.
func (p *parser) table(within base.KeyGroupRange) storedTable {
	least, most := within.Hashes()
	t := storedTable{shift: p.byte() & 63, entries: p.int64()}
	t.base = least >> t.shift
	segments := most>>t.shift - t.base + 1
	if segments > segmentsMost {
		p.fail()
	}
	next := uint64(0)
	for range p.count() {
		segment, sections := p.uvarint(), p.uvarint()
		r := run{file: p.fileNumber(), off: p.int64(), length: p.int64()}
		if segment < next || segment >= segments || sections == 0 || sections > segments-segment {
			p.fail()
			break
		}
		next = segment + sections
		t.references = append(t.references, reference{int(segment), int(sections), r})
	}
	return t
}

func (p *parser) fileNumber() fileNumber {
	n := p.uvarint()
	if n > math.MaxUint32 {
		p.fail()
	}
	return fileNumber(n)
}

func (p *parser) varint() int64 {
	n := p.uvarint()
	return int64(n>>1) ^ -int64(n&1)
}

// int64 reads an offset or a length.
func (p *parser) int64() int64 {
	n := p.uvarint()
	if n > math.MaxInt64 {
		p.fail()
		return 0
	}
	return int64(n)
}

// ---- where blocks are: in operator state, and version 1 of keyed state

// block is where some pages or elements in succession are in a file.
type block struct {
	first, last uint64 // of pages, hashes: the ends of their ranges
	off         int64
	length      int
	count       int // entries
	crc         uint32
}

// appendBlocks writes where the blocks of a list are.
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
