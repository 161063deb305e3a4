package state

import (
	"encoding/binary"
	"io"
	"math"
	"math/bits"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// KeyedSnapshot is the keyed state of a subtask as it was when it was taken.
//
// Taking one and releasing it is for the owner's goroutine. In between any one goroutine writes it out, while the owner
// goes on.
type KeyedSnapshot struct {
	now      int64 // what had expired then is not written
	views    [tables]*view
	columns  []column
	schemas  []snapshot.StateSchema
	encoders [3]func(dst []byte, p *page, mask bitmap) ([]byte, error) // of keys
	rows     [3]rowKeys
	expires  bool
	entries  int
	release  func()

	within   base.KeyGroupRange
	upon     *unchanged // nil: everything is written
	baseline *baseline  // that the snapshot will be; nil: none
	manifest *manifest  // of what was written
}

// The tables of a keyed state file, in their order.
const (
	tableKeys = iota
	tableProcessing
	tableEvent
)

// Snapshot is the synchronous part: it copies the roots, some 10 us each. No key is current afterwards.
//
// id is the checkpoint it is for, and may be the base of a later one; 0: it never will (a savepoint). What has not changed since
// the checkpoint upon, which is complete and stays until this one has ended, need not be written again; 0: everything is
// written.
func (k *Keyed[K]) Snapshot(id, upon base.CheckpointID) *KeyedSnapshot {
	s := &KeyedSnapshot{columns: k.columns, schemas: k.Schemas(), expires: k.expires, within: k.within}
	if k.expires {
		s.now = k.clock()
	}
	s.views[tableKeys], s.encoders[tableKeys], s.rows[tableKeys] = k.view(), k.encodeKeys, k
	for i := range k.timers {
		t := &k.timers[i]
		s.views[tableProcessing+i], s.encoders[tableProcessing+i], s.rows[tableProcessing+i] = t.set.view(), t.encode, t
	}
	var epochs [tables]epoch
	for i, v := range s.views {
		s.entries += v.entries
		epochs[i] = v.epoch
	}
	s.upon = k.baselines.upon(upon)
	s.baseline = k.baselines.add(id, upon, epochs)
	s.release = func() {
		k.table.release(s.views[tableKeys])
		for i := range k.timers {
			k.timers[i].set.release(s.views[tableProcessing+i])
		}
	}
	return s
}

// Empty reports that there is neither state nor a timer in it: nothing need be written.
func (s *KeyedSnapshot) Empty() bool { return s.entries == 0 }

// Release says, on the owner's goroutine, that the snapshot is read no more: from now on pages need not be copied for it.
func (s *KeyedSnapshot) Release() { s.release() }

// blockBytes is how much is written at once, and of operator state checked at once.
const blockBytes = 128 << 10

// WriteTo writes the snapshot as a state file: all of it, or what does not lie in the files of its base.
func (s *KeyedSnapshot) WriteTo(w io.Writer) (n int64, err error) {
	f := &fileWriter{w: w, buf: make([]byte, 0, blockBytes+blockBytes/4)}
	if err := f.begin(version2); err != nil {
		return f.off, err
	}
	m := s.newManifest()
	for i := range m.tables {
		e := tableEncoder{file: f, snapshot: s, number: i, own: m.number, keys: s.encoders[i]}
		if i == tableKeys {
			e.columns = s.columns
		}
		if m.tables[i], err = e.encode(s.views[i]); err != nil {
			return f.off, err
		}
	}
	if err := m.writeSections(f); err != nil {
		return f.off, err
	}
	if err := f.end(s.appendTrailer(nil, m)); err != nil {
		return f.off, err
	}
	s.manifest = m
	return f.off, nil
}

// newManifest is the manifest that the snapshot gets, empty as yet.
func (s *KeyedSnapshot) newManifest() *manifest {
	if s.upon == nil {
		return &manifest{number: 1}
	}
	s.upon.choose(&s.views)
	return &manifest{number: s.upon.base.number + 1, files: s.upon.kept}
}

// tableEncoder writes the pages of one table.
type tableEncoder struct {
	file     *fileWriter
	snapshot *KeyedSnapshot
	number   int // of the table
	own      fileNumber
	columns  []column
	keys     func(dst []byte, p *page, mask bitmap) ([]byte, error)

	page  []byte     // the one being encoded
	pages []filePage // of the segment being encoded
}

// encode writes the pages that have changed, and says where all of them are.
func (e *tableEncoder) encode(v *view) (t tableManifest, err error) {
	t = tableManifest{entries: v.entries, shift: v.shift, base: v.base, sections: make([]*section, len(v.root))}
	for i := range v.root {
		s, ok := e.snapshot.upon.section(e.number, v, i)
		if !ok {
			if s, err = e.encodeSegment(v, i); err != nil {
				return t, err
			}
		}
		t.sections[i] = s
	}
	return t, nil
}

// encodeSegment writes the pages of a segment that have changed.
func (e *tableEncoder) encodeSegment(v *view, i int) (_ *section, err error) {
	e.pages = e.pages[:0]
	for first, p := range v.segment(i) {
		at, ok := e.snapshot.upon.page(e.number, first, p)
		if !ok {
			if at, err = e.writePage(p); err != nil {
				return nil, err
			}
		}
		if at.length > 0 {
			e.pages = append(e.pages, filePage{placeOf(first, p.depth), at})
		}
	}
	return newSection(e.pages), nil
}

// writePage writes a page as a record; one without entries that live is not written, and has no length.
func (e *tableEncoder) writePage(p *page) (at extent, err error) {
	mask := e.living(p)
	if mask == 0 {
		return at, nil
	}
	if e.page, err = e.encodePage(e.page[:0], p, mask); err != nil {
		return at, err
	}
	at.file = e.own
	at.off, at.length, err = e.file.record(e.page)
	return at, err
}

// writeSections writes those sections that lie in no file yet, each as a record.
func (m *manifest) writeSections(f *fileWriter) (err error) {
	var b []byte
	for i := range m.tables {
		for segment, s := range m.tables[i].sections {
			if s == nil || s.at.length > 0 {
				continue
			}
			b = appendSection(b[:0], segment, s)
			s.at.file = m.number
			if s.at.off, s.at.length, err = f.record(b); err != nil {
				return err
			}
		}
	}
	return f.flush()
}

// living are the entries of p to be written.
func (e *tableEncoder) living(p *page) bitmap {
	if !e.snapshot.expires || e.columns == nil {
		return p.live
	}
	var mask bitmap
	for _, c := range e.columns {
		mask |= c.living(p, p.live, e.snapshot.now)
	}
	return mask
}

// encodePage writes depth, count and keys; then of each column its length, its bits and its values.
func (e *tableEncoder) encodePage(dst []byte, p *page, mask bitmap) (_ []byte, err error) {
	dst = append(dst, p.depth, byte(bits.OnesCount32(mask)))
	if dst, err = e.keys(dst, p, mask); err != nil {
		return nil, err
	}
	for _, c := range e.columns {
		have := c.living(p, mask, e.snapshot.now)
		dst = append(dst, 0, 0, 0, 0)
		start := len(dst)
		if have != 0 {
			dst = binary.LittleEndian.AppendUint32(dst, compress(have, mask))
			if dst, err = c.encode(dst, p, have, e.snapshot.now); err != nil {
				return nil, err
			}
		}
		if len(dst)-start > math.MaxUint32 {
			return nil, c.common().fail(errTooLarge)
		}
		binary.LittleEndian.PutUint32(dst[start-4:], uint32(len(dst)-start))
	}
	return dst, nil
}

// compress numbers the bits of have by their order in mask, which they are all in.
func compress(have, mask bitmap) (dense bitmap) {
	if have == mask {
		return lowestBits(bits.OnesCount32(mask))
	}
	for n := 0; mask != 0; n++ {
		dense |= have >> lowest(mask) & 1 << n
		mask &= mask - 1
	}
	return dense
}

// lowestBits has the n lowest bits set.
func lowestBits(n int) bitmap { return bitmap(1<<n - 1) }

func (k *Keyed[K]) encodeKeys(dst []byte, p *page, mask bitmap) ([]byte, error) {
	return appendSlots(dst, k.codec.Codec(), &k.slots.array, p, mask)
}

// appendSlots appends the elements at the slots in mask. An int64 is what most keys and counts are: its bytes are those of
// the codec, a zigzag varint, made in a loop without a call.
func appendSlots[T any](dst []byte, c *codec.Codec[T], a *array[T], p *page, mask bitmap) (_ []byte, err error) {
	if ints, ok := any(a).(*array[int64]); ok {
		for m := mask; m != 0; m &= m - 1 {
			dst = binary.AppendVarint(dst, *ints.at(p, lowest(m)))
		}
		return dst, nil
	}
	for m := mask; m != 0; m &= m - 1 {
		if dst, err = c.Append(dst, a.at(p, lowest(m))); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func (t *Timers[K]) encode(dst []byte, p *page, mask bitmap) (_ []byte, err error) {
	c := t.owner.codec.Codec()
	for m := mask; m != 0; m &= m - 1 {
		x := t.set.slots.at(p, lowest(m))
		if dst, err = c.Append(dst, &x.key); err != nil {
			return nil, err
		}
		dst = binary.LittleEndian.AppendUint64(dst, uint64(x.at))
	}
	return dst, nil
}

// decodeTimer reads what encode wrote of one timer.
func (t *Timers[K]) decodeTimer(src []byte, x *timer[K]) (_ []byte, err error) {
	if src, err = t.owner.stored.Decode(src, &x.key); err != nil {
		return nil, err
	}
	if len(src) < 8 {
		return nil, errShort
	}
	x.at = base.EventTime(binary.LittleEndian.Uint64(src))
	return src[8:], nil
}
