package state

import (
	"cmp"
	"math/bits"
	"reflect"
	"slices"
	"strconv"
	"unsafe"
)

// slotsPerPage is the number of entries a page holds; a bitmap has one bit for each.
const slotsPerPage = 32

// groupSlots is the number of slots whose tags are compared at once; a group of 8-byte keys is one cache line.
const (
	groupSlots = 8
	groups     = slotsPerPage / groupSlots
)

// bitmap has one bit per slot of a page.
type bitmap = uint32

const allSlots = ^bitmap(0)

// page is the head of a page. The rest of the object, which only layout knows the shape of, follows it:
//
//	page | words [w]bitmap | pad to a cache line | entries [32]struct{ key K; column 0 A; column 1 B; ... }
//
// So a key and all its values lie side by side in one object: one pointer to follow, one object to copy on write, and of an
// integer and its count one cache line to wait for. Keys and columns in pages of their own were tried: 12 % slower, for the
// second pointer; an array for each column behind that of the keys: a third slower, where memory is what is waited for. (What
// an entry costs for it is padding, where a column is smaller than the largest.)
//
// The head is not generic: directories, splits, merges and copies never know the type of a key or a value. Nor does it
// hold a pointer: a page of plain keys and values is never scanned by the collector, and keeps its cache-line alignment.
type page struct {
	tags  [groups]uint64 // a byte per slot, slot 0 lowest: 0 is free, else 0x80 | seven bits of the hash
	epoch epoch          // of the last write; older than the table's: a snapshot may read the page, see table.ownPage
	live  bitmap         // slots in use
	never bitmap         // always zero: the presence word of columns that must be asked, see access
	depth uint8          // leading bits of the hash that all entries share
	gate  bool           // holds no entries: a segment of its own lies behind it
	gone  bool           // the table has another page in its place; only the owner's goroutine looks at it
}

// epoch counts the snapshots of a table: a write belongs to the epoch that the last snapshot began. It has 64 bits, for
// loops over all keys take snapshots too.
type epoch uint64

// The hash of an entry, by its bits: the leading ones choose the page, bits 0-6 are the tag, bits 7-8 the home group.

func tagOf(h uint64) uint64 { return h&0x7f | 0x80 }
func groupOf(h uint64) uint { return uint(h>>7) % groups }

func (p *page) count() int        { return bits.OnesCount32(p.live) }
func (p *page) tag(i uint) uint64 { return p.tags[i/8] >> (i % 8 * 8) & 0xff }

func (p *page) take(i uint, tag uint64) {
	p.tags[i/8] |= tag << (i % 8 * 8)
	p.live |= 1 << i
}

// likely is the slot at which search would look first for h; any one, where no tag is that of h.
func (p *page) likely(h uint64) uint {
	g, tags := groupOf(h), everyTag(h)
	m := matchTags(p.tags[g], tags)
	for n := 1; m == 0 && n < groups; n++ {
		g = (g + 1) % groups
		m = matchTags(p.tags[g], tags)
	}
	return (g*groupSlots + uint(bits.TrailingZeros64(m))/8) % slotsPerPage
}

func (p *page) drop(mask bitmap) {
	p.live &^= mask
	for m := mask; m != 0; m &= m - 1 {
		i := lowest(m)
		p.tags[i/8] &^= 0xff << (i % 8 * 8)
	}
}

// free is the first free slot from group g on, round the page: nearly every entry lies in its home group, where one
// comparison of eight tags finds it. The page is not full.
func (p *page) free(g uint) uint {
	from := groupSlots * g
	return (from + uint(bits.TrailingZeros32(bits.RotateLeft32(^p.live, -int(from))))) % slotsPerPage
}

// lowest is the lowest slot in m, which is not empty. Slots are visited so:
//
//	for m := mask; m != 0; m &= m - 1 { i := lowest(m); ... }
func lowest(m bitmap) uint { return uint(bits.TrailingZeros32(m)) % slotsPerPage }

// word is the bitmap at an offset in p.
func word(p *page, off uintptr) *bitmap { return (*bitmap)(unsafe.Add(unsafe.Pointer(p), off)) }

// matchTags has the top bit set of each byte of tags that equals the byte repeated in wanted. A carry may report the byte
// above a true match as well: the key decides. A free slot is never reported, for its top bit differs.
func matchTags(tags, wanted uint64) uint64 {
	const low, high = 0x0101010101010101, 0x8080808080808080
	x := tags ^ wanted
	return (x - low) &^ x & high
}

// everyTag repeats the tag of h in all bytes, as matchTags wants it.
func everyTag(h uint64) uint64 { return tagOf(h) * 0x0101010101010101 }

// part is one field of the entries of a page: the key, the value of a state, its time stamp.
type part interface {
	elem() reflect.Type
	place(off, stride uintptr)                 // where it lies in the first entry, and how far it is to the next
	move(dst *page, d uint, src *page, s uint) // copies one element
	clear(p *page, mask bitmap)                // zeroes elements
}

// array is the part whose elements are of type T.
type array[T any] struct{ off, stride uintptr }

func (a *array[T]) elem() reflect.Type        { return reflect.TypeFor[T]() }
func (a *array[T]) place(off, stride uintptr) { a.off, a.stride = off, stride }
func (a *array[T]) at(p *page, i uint) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(p), a.off+uintptr(i%slotsPerPage)*a.stride))
}

func (a *array[T]) move(dst *page, d uint, src *page, s uint) { *a.at(dst, d) = *a.at(src, s) }

func (a *array[T]) clear(p *page, mask bitmap) {
	var zero T
	for m := mask; m != 0; m &= m - 1 {
		*a.at(p, lowest(m)) = zero
	}
}

// layout is the shape of a table's pages. It is made once, when all columns are known.
type layout struct {
	typ    reflect.Type
	plain  bool      // there is no pointer in a page
	parts  []part    // of an entry, in their order there
	words  []uintptr // offsets of all bitmaps, that travel with their slot
	owned  []uintptr // those of words that a copy on write clears, see ownership in column.go
	stride uintptr   // from each entry to the next
	lines  []uintptr // offsets at which the first entry is read, to have its cache lines
}

// bitsRequest asks a layout for one of its bitmaps: off is set to its place.
type bitsRequest struct {
	off   *uintptr
	owned bool
}

// cacheLine is the alignment of the entries; the allocator's size classes keep it for pages without pointers.
const cacheLine = 64

func newLayout(parts []part, words []bitsRequest) *layout {
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(rank(a), rank(b)) })
	entry := make([]reflect.StructField, len(parts))
	for i, p := range parts {
		entry[i] = reflect.StructField{Name: "P" + strconv.Itoa(i), Type: p.elem()}
	}
	one := reflect.StructOf(entry)
	fields := []reflect.StructField{
		{Name: "Head", Type: reflect.TypeFor[page]()},
		{Name: "Words", Type: reflect.ArrayOf(len(words), reflect.TypeFor[bitmap]())},
	}
	head := int(fields[0].Type.Size() + fields[1].Type.Size())
	fields = append(fields, reflect.StructField{Name: "Pad", Type: reflect.ArrayOf(-head&(cacheLine-1), reflect.TypeFor[byte]())},
		reflect.StructField{Name: "Entries", Type: reflect.ArrayOf(slotsPerPage, one)})
	l := &layout{typ: reflect.StructOf(fields), parts: parts, stride: one.Size()}
	l.plain = !hasPointers(l.typ)
	entries := l.typ.Field(3).Offset
	for i, p := range parts {
		p.place(entries+one.Field(i).Offset, l.stride)
	}
	l.placeWords(words, l.typ.Field(1).Offset)
	l.lines = linesOf(entries, l.stride, l.plain)
	return l
}

// rank orders the parts of an entry so that there is the least padding between and behind them: a last field of no size has
// padding of its own.
func rank(p part) int {
	if p.elem().Size() == 0 {
		return -1 << 16
	}
	return -p.elem().Align()
}

// placeWords places the bitmaps one after the other.
func (l *layout) placeWords(words []bitsRequest, off uintptr) {
	for _, w := range words {
		*w.off = off
		l.words = append(l.words, off)
		if w.owned {
			l.owned = append(l.owned, off)
		}
		off += unsafe.Sizeof(bitmap(0))
	}
}

// linesOf are the places where an entry of so many bytes is read, the first in its page being at off. Where entries fill
// cache lines evenly, each lies in one. Else it may begin anywhere in a line, so its last byte is read too. A very large
// entry is not read whole: nobody may want all of it.
func linesOf(off, bytes uintptr, aligned bool) (lines []uintptr) {
	if bytes == 0 {
		return nil
	}
	for at := uintptr(0); at < min(bytes, 4*cacheLine); at += cacheLine {
		lines = append(lines, off+at)
	}
	if !aligned || cacheLine%bytes != 0 {
		lines = append(lines, off+min(bytes, 4*cacheLine)-1)
	}
	return lines
}

// hasPointers is true of types in whose values the collector looks for pointers.
func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && hasPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	}
	return t.Kind() < reflect.Bool || t.Kind() > reflect.Complex128
}

// newPage makes an empty page.
func (l *layout) newPage(epoch epoch, depth uint8) *page {
	p := (*page)(reflect.New(l.typ).UnsafePointer())
	p.epoch, p.depth = epoch, depth
	return p
}

// clone copies a page that a snapshot may read. What its values point to is shared with the snapshot from now on.
func (l *layout) clone(p *page, epoch epoch) *page {
	var q *page
	if l.plain { // append does not clear what it is about to fill: half the cost
		bytes := append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(p)), l.typ.Size())...)
		q = (*page)(unsafe.Pointer(unsafe.SliceData(bytes)))
	} else {
		v := reflect.New(l.typ)
		v.Elem().Set(reflect.NewAt(l.typ, unsafe.Pointer(p)).Elem())
		q = (*page)(v.UnsafePointer())
	}
	q.epoch, q.gone = epoch, false
	l.share(q, allSlots)
	return q
}

// share notes that a snapshot may read what the values at these slots of p point to.
func (l *layout) share(p *page, mask bitmap) {
	for _, w := range l.owned {
		*word(p, w) &^= mask
	}
}

// move copies the entry at slot s of src, which stays as it is, to the free slot d of dst.
func (l *layout) move(dst *page, d uint, src *page, s uint) {
	dst.take(d, src.tag(s))
	for _, p := range l.parts {
		p.move(dst, d, src, s)
	}
	for _, w := range l.words {
		*word(dst, w) |= *word(src, w) >> s & 1 << d
	}
}

// clear frees slots of p.
func (l *layout) clear(p *page, mask bitmap) {
	for _, a := range l.parts {
		a.clear(p, mask)
	}
	for _, w := range l.words {
		*word(p, w) &^= mask
	}
	p.drop(mask)
}

// bytes is the size of a page.
func (l *layout) bytes() int { return int(l.typ.Size()) }
