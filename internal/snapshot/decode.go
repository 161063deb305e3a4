package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weirstream/weir/internal/base"
)

var (
	// ErrDamaged marks bytes that are not what was written: reading them again does not help.
	ErrDamaged = errors.New("damaged")
	// ErrVersion marks metadata of a format version that this build does not read.
	ErrVersion = errors.New("unknown format version")
)

// flinkMagic is what Flink's _metadata files begin with.
const flinkMagic = "\x49\x60\x67\x2d"

// Decode reads what Encode wrote, in this version of the format or one before. Any other bytes are an error that says what is wrong and at which byte, marked with
// ErrDamaged or ErrVersion. The result shares no memory with b.
func Decode(b []byte) (*Metadata, error) {
	version, err := checkHeader(b)
	if err != nil {
		return nil, err
	}
	m := &Metadata{}
	for at, number := headerBytes, 0; ; number++ {
		s, err := cutSection(b, at, number)
		if err != nil {
			return nil, err
		}
		at += frameBytes + len(s.payload)
		if s.kind == sectionEnd {
			return m, m.finish(b, s, at)
		}
		if err := m.decodeSection(s, version); err != nil {
			return nil, err
		}
	}
}

func damaged(at int, format string, args ...any) error {
	return fmt.Errorf("snapshot: metadata %w at byte %d: %s", ErrDamaged, at, fmt.Sprintf(format, args...))
}

// checkHeader gives the version of the format.
func checkHeader(b []byte) (uint32, error) {
	switch {
	case len(b) == 0:
		return 0, damaged(0, "it is empty")
	case len(b) >= len(flinkMagic) && string(b[:len(flinkMagic)]) == flinkMagic:
		return 0, damaged(0, "this is metadata of Apache Flink, not of Weir")
	case len(b) < headerBytes:
		return 0, damaged(len(b), "it ends within the header of %d bytes", headerBytes)
	case string(b[:len(magic)]) != magic:
		return 0, damaged(0, "it begins with %q instead of %q: no metadata of Weir", b[:len(magic)], magic)
	case binary.LittleEndian.Uint32(b[headerBytes-4:]) != Checksum(0, b[:headerBytes-4]):
		return 0, damaged(0, "the header's checksum is wrong")
	}
	v := binary.LittleEndian.Uint32(b[len(magic):])
	if v < 1 || v > Version {
		return 0, fmt.Errorf("snapshot: metadata of %w %d: this build of Weir reads versions up to %d; use a newer one", ErrVersion, v, Version)
	}
	return v, nil
}

// section is one framed section of the file b.
type section struct {
	number  int
	kind    sectionKind
	at      int // of the section
	payload []byte
}

// cutSection reads the frame at byte at and verifies its checksum. The length is believed only if as much is there.
func cutSection(b []byte, at, number int) (section, error) {
	rest := b[at:]
	if len(rest) < frameBytes {
		return section{}, damaged(len(b), "it is cut off in the frame of section %d, before the end section", number)
	}
	kind := sectionKind(rest[0])
	length := binary.LittleEndian.Uint64(rest[1:])
	if length > uint64(len(rest)-frameBytes) {
		return section{}, damaged(at, "section %d (%v) says it has %d bytes, but %d are left: cut off, or a wrong length",
			number, kind, length, len(rest)-frameBytes)
	}
	end := frameHead + int(length)
	if binary.LittleEndian.Uint32(rest[end:]) != Checksum(0, rest[:end]) {
		return section{}, damaged(at, "the checksum of section %d (%v) is wrong", number, kind)
	}
	return section{number: number, kind: kind, at: at, payload: rest[frameHead:end]}, nil
}

// finish verifies what only the end can tell: that no section is missing and nothing follows.
func (m *Metadata) finish(b []byte, s section, end int) error {
	switch {
	case len(s.payload) != 4 || binary.LittleEndian.Uint32(s.payload) != Checksum(0, b[:s.at]):
		return damaged(s.at, "the checksum of the whole is wrong: sections are missing, doubled or exchanged")
	case end != len(b):
		return damaged(end, "%d bytes follow the end", len(b)-end)
	case s.number == 0:
		return damaged(s.at, "the job section is missing")
	}
	if err := m.Validate(); err != nil {
		return fmt.Errorf("snapshot: metadata %w: %w", ErrDamaged, err)
	}
	return nil
}

func (m *Metadata) decodeSection(s section, version uint32) error {
	d := &decoder{b: s.payload, section: s, version: version}
	switch {
	case s.kind == sectionJob && s.number == 0:
		d.job(m)
	case s.kind == sectionOperator && s.number > 0 && len(m.Hooks) == 0:
		m.Operators = append(m.Operators, d.operator())
	case s.kind == sectionHook && s.number > 0:
		m.Hooks = append(m.Hooks, Hook{ID: d.string("id"), State: d.handle("state")})
	default:
		return damaged(s.at, "section %d may not be of kind %v: job first, then operators, then hooks", s.number, s.kind)
	}
	if d.err == nil && d.at < len(d.b) {
		d.fail("end of the section", "%d bytes are left over", len(d.b)-d.at)
	}
	return d.err
}

// decoder reads the fields of one section. The first failure stays in err; from then on every read returns a zero value, so
// the code that reads fields checks it only where it loops.
type decoder struct {
	b       []byte
	at      int
	section section
	version uint32
	owner   string // the operator, once its UID was read
	err     error
}

func (d *decoder) fail(field, format string, args ...any) {
	if d.err == nil {
		d.err = damaged(d.section.at+frameHead+d.at, "section %d (%v%s), %s: %s",
			d.section.number, d.section.kind, d.owner, field, fmt.Sprintf(format, args...))
	}
}

func (d *decoder) job(m *Metadata) {
	m.ID = base.CheckpointID(d.varint("checkpoint id"))
	m.Job = base.JobID(d.string("job id"))
	m.JobName = d.string("job name")
	m.Kind = Kind(d.string("kind"))
	m.Format = Format(d.string("format"))
	m.Run = d.varint("run")
	m.Wall = d.varint("wall time")
}

func (d *decoder) operator() (o Operator) {
	o.UID = d.string("UID")
	d.owner = " " + quote(o.UID)
	o.Name = d.string("name")
	o.Parallelism = d.int("parallelism")
	o.EndOfInput = d.bool("end of input")
	o.Finished = d.bool("finished")
	o.Schemas = many(d, "schemas", 5, d.schema)
	if d.version > 1 {
		o.InFlight = many(d, "types of records in flight", minEdge+1, d.edgeSchema)
	}
	if d.bool("has a coordinator") {
		h := d.handle("coordinator")
		o.Coordinator = &h
	}
	o.Subtasks = many(d, "subtasks", 7, d.subtask)
	return o
}

func (d *decoder) schema() StateSchema {
	return StateSchema{
		Name:   d.string("state name"),
		Kind:   d.string("state kind"),
		Key:    d.string("key schema"),
		Value:  d.string("value schema"),
		MapKey: d.string("map key schema"),
	}
}

func (d *decoder) subtask() (s Subtask) {
	s.Index = d.int("subtask index")
	s.Ended = d.bool("ended")
	s.Finished = d.bool("finished")
	s.Watermark = base.EventTime(d.varint("watermark"))
	s.PendingWatermark = base.EventTime(d.varint("pending watermark"))
	s.Keyed = many(d, "keyed handles", 2+minHandle, d.keyed)
	s.Lists = many(d, "lists", 3+minHandle, d.list)
	if d.version > 1 {
		s.Rows = many(d, "rows", 4+2*minHandle, d.rows)
		s.InFlight = many(d, "records in flight", minEdge+2+minHandle, d.inFlight)
	}
	return s
}

func (d *decoder) rows() (r RowsHandle) {
	r.Name = d.string("rows' name")
	if r.Keyed = d.bool("keyed"); r.Keyed {
		r.Range.First = d.int("first key group")
		r.Range.Last = d.int("last key group")
	} else {
		r.Mode = Mode(d.byte("rows' mode"))
	}
	r.Count = int64(d.int("number of rows"))
	r.Index = d.handle("index of rows " + quote(r.Name))
	r.Handle = d.handle("rows " + quote(r.Name))
	return r
}

// minEdge is the size of the smallest edge.
const minEdge = 4

func (d *decoder) edge() Edge {
	return Edge{From: d.string("edge's upstream"), To: d.string("edge's downstream"), Input: d.int("edge's input"), Tag: d.string("edge's tag"),
		Twin: d.int("edge's twin")}
}

func (d *decoder) edgeSchema() EdgeSchema {
	return EdgeSchema{Edge: d.edge(), Record: d.string("record schema")}
}

func (d *decoder) inFlight() (h InFlightHandle) {
	h.Edge = d.edge()
	h.Output = d.bool("of the sender")
	h.Records = int64(d.int("number of records"))
	h.Handle = d.handle("records in flight")
	return h
}

func (d *decoder) keyed() (h KeyedHandle) {
	h.Range.First = d.int("first key group")
	h.Range.Last = d.int("last key group")
	h.Handle = d.handle("keyed state")
	if d.version > 2 {
		h.Refers = many(d, "files referred to", minHandle, func() Handle { return d.handle("file referred to") })
	}
	return h
}

func (d *decoder) list() (l ListHandle) {
	l.Name = d.string("list name")
	l.Mode = Mode(d.byte("list mode"))
	l.Offsets = many(d, "offsets", 1, func() int64 { return int64(d.int("offset")) })
	l.Handle = d.handle("list " + quote(l.Name))
	return l
}

// minHandle is the size of the smallest handle: a kind, a length and a checksum.
const minHandle = 1 + 1 + 4

func (d *decoder) handle(field string) (h Handle) {
	switch kind := d.byte(field); {
	case d.err != nil:
	case kind == handleInline:
		if b := d.bytes(field); len(b) > 0 {
			h.Inline = append([]byte(nil), b...)
		}
		h.Size = int64(len(h.Inline))
	case kind == handleFile:
		h.File = d.string(field)
		h.Size = int64(d.int(field))
	default:
		d.fail(field, "there is no kind %d of handle", kind)
	}
	h.CRC = d.fixed32(field)
	return h
}

// many reads a count and as many items. Each has at least itemBytes bytes, so a count that the section cannot hold is
// refused before memory is taken for it; what is taken is a small multiple of what was read.
func many[T any](d *decoder, field string, itemBytes int, item func() T) []T {
	n := d.uvarint(field)
	if most := uint64(len(d.b)-d.at) / uint64(itemBytes); n > most {
		d.fail(field, "it says there are %d, but the section has room for %d", n, most)
	}
	if d.err != nil || n == 0 {
		return nil
	}
	items := make([]T, 0, n)
	for range n {
		if d.err != nil {
			return nil
		}
		items = append(items, item())
	}
	return items
}

func (d *decoder) string(field string) string { return string(d.bytes(field)) }

func (d *decoder) bytes(field string) []byte {
	n := d.uvarint(field)
	if left := len(d.b) - d.at; d.err == nil && n > uint64(left) {
		d.fail(field, "it says it has %d bytes, but %d are left in the section", n, left)
	}
	if d.err != nil {
		return nil
	}
	b := d.b[d.at : d.at+int(n)]
	d.at += int(n)
	return b
}

func (d *decoder) bool(field string) bool {
	v := d.byte(field)
	if v > 1 {
		d.fail(field, "%d is neither 0 nor 1", v)
	}
	return v == 1
}

func (d *decoder) byte(field string) byte {
	if d.err == nil && d.at == len(d.b) {
		d.fail(field, "the section ends before it")
	}
	if d.err != nil {
		return 0
	}
	d.at++
	return d.b[d.at-1]
}

func (d *decoder) fixed32(field string) uint32 {
	if d.err == nil && len(d.b)-d.at < 4 {
		d.fail(field, "the section ends within its checksum")
	}
	if d.err != nil {
		return 0
	}
	d.at += 4
	return binary.LittleEndian.Uint32(d.b[d.at-4:])
}

// int reads a number that is not negative.
func (d *decoder) int(field string) int {
	n := d.uvarint(field)
	if n > 1<<63-1 {
		d.fail(field, "%d is negative or beyond 63 bits", n)
		return 0
	}
	return int(n)
}

func (d *decoder) varint(field string) int64 {
	n := d.uvarint(field)
	return int64(n>>1) ^ -int64(n&1)
}

// uvarint reads a varint and refuses one that is longer than it need be: equal metadata must be equal bytes.
func (d *decoder) uvarint(field string) uint64 {
	if d.err != nil {
		return 0
	}
	n, length := binary.Uvarint(d.b[d.at:])
	switch {
	case length == 0:
		d.fail(field, "the section ends within it")
		return 0
	case length < 0:
		d.fail(field, "it is a number beyond 64 bits")
		return 0
	case length > 1 && d.b[d.at+length-1] == 0:
		d.fail(field, "it is not written in the shortest way")
		return 0
	}
	d.at += length
	return n
}
