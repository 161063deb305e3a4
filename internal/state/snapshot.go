package state

import (
	"encoding/binary"
	"hash/crc32"
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
	views    [3]*view
	columns  []column
	schemas  []snapshot.StateSchema
	encoders [3]func(dst []byte, p *page, mask bitmap) ([]byte, error) // of keys
	rows     [3]rowKeys
	expires  bool
	entries  int
	release  func()
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
	s := &KeyedSnapshot{columns: k.columns, schemas: k.Schemas(), expires: k.expires}
	if k.expires {
		s.now = k.clock()
	}
	s.views[tableKeys], s.encoders[tableKeys], s.rows[tableKeys] = k.view(), k.encodeKeys, k
	for i := range k.timers {
		t := &k.timers[i]
		s.views[tableProcessing+i], s.encoders[tableProcessing+i], s.rows[tableProcessing+i] = t.set.view(), t.encode, t
	}
	for _, v := range s.views {
		s.entries += v.entries
	}
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

// Refers are, after WriteTo, the files of the base that the new one refers to, in the order of the numbers it has for them.
func (s *KeyedSnapshot) Refers() []snapshot.Handle { return nil }

// Written says, on any goroutine, after WriteTo and before Release, where the file is now: a later checkpoint may refer to it.
// Bytes that lie inline in the metadata are no file, and never referred to.
func (s *KeyedSnapshot) Written(snapshot.Handle) {}

// Forget says that the checkpoint was aborted: it will be the base of none.
func (k *Keyed[K]) Forget(base.CheckpointID) {}

// Release says, on the owner's goroutine, that the snapshot is read no more: from now on pages need not be copied for it.
func (s *KeyedSnapshot) Release() { s.release() }

// blockBytes is the size at which a block ends, with the page that reached it.
const blockBytes = 128 << 10

// block is where some pages in succession are in a file.
type block struct {
	first, last uint64 // hashes: the ends of the pages' ranges
	off         int64
	length      int
	count       int // entries
	crc         uint32
}

// WriteTo writes the snapshot as a state file.
func (s *KeyedSnapshot) WriteTo(w io.Writer) (n int64, err error) {
	f := &fileWriter{w: w, buf: make([]byte, 0, blockBytes+blockBytes/4)}
	if err := f.begin(); err != nil {
		return f.off, err
	}
	trailer := s.appendSchemas(nil)
	for i, v := range s.views {
		e := tableEncoder{file: f, snapshot: s, keys: s.encoders[i]}
		if i == tableKeys {
			e.columns = s.columns
		}
		if err := e.encode(v); err != nil {
			return f.off, err
		}
		trailer = appendBlocks(trailer, e.blocks)
	}
	err = f.end(trailer)
	return f.off, err
}

// tableEncoder writes the pages of one table.
type tableEncoder struct {
	file     *fileWriter
	snapshot *KeyedSnapshot
	columns  []column
	keys     func(dst []byte, p *page, mask bitmap) ([]byte, error)
	blocks   []block
	open     block // the one that f.buf is filled for
}

func (e *tableEncoder) encode(v *view) (err error) {
	f := e.file
	f.buf = f.buf[:0]
	for first, p := range v.pages() {
		mask := e.living(p)
		if mask == 0 {
			continue
		}
		if len(f.buf) == 0 {
			e.open = block{first: first, off: f.off}
		}
		if f.buf, err = e.encodePage(f.buf, p, mask); err != nil {
			return err
		}
		e.open.last = first | lowBits(p.depth)
		e.open.count += bits.OnesCount32(mask)
		if len(f.buf) >= blockBytes {
			if err := e.flush(); err != nil {
				return err
			}
		}
	}
	if len(f.buf) > 0 {
		return e.flush()
	}
	return nil
}

func (e *tableEncoder) flush() error {
	e.open.length = len(e.file.buf)
	e.open.crc = crc32.Checksum(e.file.buf, castagnoli)
	e.blocks = append(e.blocks, e.open)
	err := e.file.write(e.file.buf)
	e.file.buf = e.file.buf[:0]
	return err
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
