package snapshot

import (
	"encoding/binary"
)

// The bytes of a _metadata file (docs/format/checkpoint.md draws them):
//
//	"WEIRCKPT" | version u32 | crc32c u32           the header; the checksum is of the 12 bytes before it
//	kind u8 | length u64 | payload | crc32c u32     a section; the checksum is of kind, length and payload
//	...                                             job first, then operators, then hooks
//	kind 'E' | length 4 | crc32c u32 | crc32c u32   the end: the payload is the checksum of all bytes before the section
//
// Each section has a checksum of its own so that an error can say which operator is damaged; the end's covers them all, so
// that a lost or doubled section is found too. Fixed-size integers are little-endian. Within a payload, counts, lengths and
// sizes are minimal unsigned varints of up to 64 bits, times are zigzag varints, and fields stand in the order of the
// structs without tags: a new field is a new version.
const (
	magic       = "WEIRCKPT"
	headerBytes = len(magic) + 4 + 4
	// frameHead is what stands before a section's payload, and frameBytes all that a section costs beside it.
	frameHead  = 1 + 8
	frameBytes = frameHead + 4
)

// sectionKind says what a section holds.
type sectionKind byte

const (
	sectionJob      sectionKind = 'J'
	sectionOperator sectionKind = 'O'
	sectionHook     sectionKind = 'H'
	sectionEnd      sectionKind = 'E'
)

func (k sectionKind) String() string {
	switch k {
	case sectionJob:
		return "job"
	case sectionOperator:
		return "operator"
	case sectionHook:
		return "hook"
	case sectionEnd:
		return "end"
	}
	return "unknown kind " + quote(string(rune(k)))
}

// handleKind says what stands in place of a handle.
const (
	handleInline = 0
	handleFile   = 1
)

// Encode is m as the bytes of a _metadata file. Metadata that Validate refuses is encoded to bytes that Decode refuses.
func (m *Metadata) Encode() []byte {
	e := encoder{}
	e.header()
	e.section(sectionJob, func() { e.job(m) })
	for i := range m.Operators {
		e.section(sectionOperator, func() { e.operator(&m.Operators[i]) })
	}
	for i := range m.Hooks {
		e.section(sectionHook, func() { e.hook(&m.Hooks[i]) })
	}
	all := Checksum(0, e.b)
	e.section(sectionEnd, func() { e.fixed32(all) })
	return e.b
}

// encoder appends fields to b.
type encoder struct{ b []byte }

func (e *encoder) header() {
	e.b = append(e.b, magic...)
	e.fixed32(Version)
	e.fixed32(Checksum(0, e.b))
}

// section frames what payload appends. The length is filled in afterwards.
func (e *encoder) section(k sectionKind, payload func()) {
	start := len(e.b)
	e.b = append(e.b, byte(k), 0, 0, 0, 0, 0, 0, 0, 0)
	body := len(e.b)
	payload()
	binary.LittleEndian.PutUint64(e.b[start+1:], uint64(len(e.b)-body))
	e.fixed32(Checksum(0, e.b[start:]))
}

func (e *encoder) job(m *Metadata) {
	e.varint(int64(m.ID))
	e.string(string(m.Job))
	e.string(m.JobName)
	e.string(string(m.Kind))
	e.string(string(m.Format))
	e.varint(m.Run)
	e.varint(m.Wall)
}

func (e *encoder) hook(h *Hook) {
	e.string(h.ID)
	e.handle(&h.State)
}

func (e *encoder) operator(o *Operator) {
	e.string(o.UID)
	e.string(o.Name)
	e.count(o.Parallelism)
	e.bool(o.EndOfInput)
	e.bool(o.Finished)
	e.count(len(o.Schemas))
	for _, s := range o.Schemas {
		e.schema(s)
	}
	e.count(len(o.InFlight))
	for _, s := range o.InFlight {
		e.edge(s.Edge)
		e.string(s.Record)
	}
	e.bool(o.Coordinator != nil)
	if o.Coordinator != nil {
		e.handle(o.Coordinator)
	}
	e.count(len(o.Subtasks))
	for i := range o.Subtasks {
		e.subtask(&o.Subtasks[i])
	}
}

func (e *encoder) schema(s StateSchema) {
	e.string(s.Name)
	e.string(s.Kind)
	e.string(s.Key)
	e.string(s.Value)
	e.string(s.MapKey)
}

func (e *encoder) subtask(s *Subtask) {
	e.count(s.Index)
	e.bool(s.Ended)
	e.bool(s.Finished)
	e.varint(int64(s.Watermark))
	e.varint(int64(s.PendingWatermark))
	e.count(len(s.Keyed))
	for i := range s.Keyed {
		e.count(s.Keyed[i].Range.First)
		e.count(s.Keyed[i].Range.Last)
		e.handle(&s.Keyed[i].Handle)
		e.count(len(s.Keyed[i].Refers))
		for j := range s.Keyed[i].Refers {
			e.handle(&s.Keyed[i].Refers[j])
		}
	}
	e.count(len(s.Lists))
	for i := range s.Lists {
		e.list(&s.Lists[i])
	}
	e.count(len(s.Rows))
	for i := range s.Rows {
		e.rows(&s.Rows[i])
	}
	e.count(len(s.InFlight))
	for i := range s.InFlight {
		e.inFlight(&s.InFlight[i])
	}
}

func (e *encoder) rows(r *RowsHandle) {
	e.string(r.Name)
	e.bool(r.Keyed)
	if r.Keyed {
		e.count(r.Range.First)
		e.count(r.Range.Last)
	} else {
		e.b = append(e.b, byte(r.Mode))
	}
	e.uvarint(uint64(r.Count))
	e.handle(&r.Index)
	e.handle(&r.Handle)
}

func (e *encoder) edge(g Edge) {
	e.string(g.From)
	e.string(g.To)
	e.count(g.Input)
	e.string(g.Tag)
	e.count(g.Twin)
}

func (e *encoder) inFlight(h *InFlightHandle) {
	e.edge(h.Edge)
	e.bool(h.Output)
	e.uvarint(uint64(h.Records))
	e.handle(&h.Handle)
}

func (e *encoder) list(l *ListHandle) {
	e.string(l.Name)
	e.b = append(e.b, byte(l.Mode))
	e.count(len(l.Offsets))
	for _, o := range l.Offsets {
		e.uvarint(uint64(o))
	}
	e.handle(&l.Handle)
}

func (e *encoder) handle(h *Handle) {
	if h.File == "" {
		e.b = append(e.b, handleInline)
		e.string(string(h.Inline))
	} else {
		e.b = append(e.b, handleFile)
		e.string(h.File)
		e.uvarint(uint64(h.Size))
	}
	e.fixed32(h.CRC)
}

func (e *encoder) string(s string) {
	e.count(len(s))
	e.b = append(e.b, s...)
}

func (e *encoder) bool(v bool) {
	if v {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

func (e *encoder) count(n int)      { e.uvarint(uint64(n)) }
func (e *encoder) uvarint(n uint64) { e.b = binary.AppendUvarint(e.b, n) }
func (e *encoder) varint(n int64)   { e.b = binary.AppendVarint(e.b, n) }
func (e *encoder) fixed32(n uint32) { e.b = binary.LittleEndian.AppendUint32(e.b, n) }
