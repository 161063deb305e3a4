package state

import (
	"math/bits"
	"slices"
)

// table is the part of an index that knows neither keys nor values by type: it finds, inserts, splits, merges and copies
// pages.
//
//	root --(h>>shift - base)--> segment --(the next bits of h)--> page --(tag, key)--> slot
//
// A page's range is a prefix of the whole hash, whatever range the table owns: so page boundaries are the same at every
// parallelism.
//
// # Copy-on-write by epoch
//
// A snapshot copies the root, takes the current epoch for its own and begins the next one. Root, segments and pages are
// stamped with the epoch of their last write. The first write of an epoch to a page copies it if a snapshot that is not
// yet released may read it (its epoch is at most that of the newest such snapshot: pinned), else stamps it in place.
// Either way all segments above it are copied or stamped too: a segment is never older than a page inside.
//
// The straightforward alternatives: a set of the pages written since the snapshot costs a look-up per write; a reference
// count per page is written by both goroutines. A comparison of two numbers that lie in lines the owner has read anyway
// costs nothing that can be measured.
//
// All of it is confined to the owner's goroutine, except that a view (see view.go) may be read by any goroutine until it
// is released.
type table struct {
	cur   cursor
	root  []*segment
	shift uint8 // bits of a hash below a segment of the root
	base  uint64
	least uint64 // own range, both ends inclusive
	most  uint64
	lay   *layout
	keys  keyPart
	void  *page // all zero and in no segment: the cursor's page when there is no current key

	entries int
	pages   int
	pinned  epoch // the newest epoch that a view not yet released reads; 0: none
	views   []epoch

	clock   func() int64 // processing time
	columns []column
	expires bool // a column has a time to live

	sweepAt    uint64 // a hash of the page that the sweep looks at next
	sweepGroup uint   // the group there

	parts []part        // until open
	words []bitsRequest // until open
	stats tableStats
}

// tableStats count what the table did; tests look whether the rare things happened at all.
type tableStats struct{ splits, merges, copies, reroots, gates int }

// keyPart is what the table needs to know of its keys.
type keyPart interface {
	part
	hashAt(p *page, i uint) uint64
	putCurrent(p *page, i uint)         // writes the cursor's key
	has(h uint64, p *page, i uint) bool // whether the table has the key that lies in a page outside it
}

// cursor is the place of the current key, and what the columns read. Only the table writes it.
//
// bit and writable are masks for the presence word of a column. A read is allowed by word&bit, a write in place by
// word&writable: one comparison tells at once that there is a current key, that it has an entry, that the entry has this
// state, and for a write that the page is of the current epoch.
type cursor struct {
	page      *page
	bit       bitmap // 1<<slot, or 0: no entry
	writable  bitmap // bit, or 0: the page is of an older epoch
	slot      int32  // or noEntry, noKey
	epoch     epoch  // the table's
	hash      uint64
	unsettled bool // Settle has something to do
}

const (
	noEntry = -1 // the current key has no entry
	noKey   = -2 // there is no current key
)

// enter makes slot i of p the place of the current key.
func (c *cursor) enter(p *page, i uint) {
	c.page, c.slot, c.bit, c.writable = p, int32(i), 1<<(i%slotsPerPage), 0
	if p.epoch == c.epoch {
		c.writable = c.bit
	}
}

// leave forgets the place.
func (c *cursor) leave(void *page, slot int32) {
	c.page, c.slot, c.bit, c.writable = void, slot, 0, 0
}

// open lays pages out and makes the root: one segment, or two where the own range crosses a boundary of its first bits.
func (t *table) open() {
	t.lay = newLayout(t.parts, t.words)
	t.parts, t.words = nil, nil
	t.void = t.lay.newPage(0, 0)
	t.sweepAt = t.least
	t.cur.epoch = 1
	t.cur.leave(t.void, noKey)
	t.shift = 63
	if differ := t.most ^ t.least; differ>>63 == 0 {
		t.shift = uint8(max(bits.Len64(differ), 1) - 1)
	}
	t.base = t.least >> t.shift
	for range t.most>>t.shift - t.base + 1 {
		t.root = append(t.root, t.emptySegment())
	}
	t.pages = len(t.root)
}

func (t *table) emptySegment() *segment {
	p := t.lay.newPage(t.cur.epoch, 64-t.shift)
	return &segment{dir: []*page{p}, shift: t.shift, epoch: t.cur.epoch, deep: 1}
}

// bytes is about what the pages take.
func (t *table) bytes() int { return t.pages * t.lay.bytes() }

// pageOf is the page of h in the outermost segment; it may be a gate.
func (t *table) pageOf(h uint64) *page {
	s := t.root[h>>(t.shift&63)-t.base]
	return s.dir[s.at(h)]
}

// leaf is the innermost segment of h, and its page there: of a list, the first.
func (t *table) leaf(h uint64) (*segment, *page) {
	s := t.root[h>>(t.shift&63)-t.base]
	p := s.dir[s.at(h)]
	for p.gate {
		s = s.inner[firstOf(p, h)]
		if s.list {
			return s, s.dir[0]
		}
		p = s.dir[s.at(h)]
	}
	return s, p
}

// ---- ownership: what is written must be of the current epoch

// ownSegment is s, to be written; the caller puts it where s was.
func (t *table) ownSegment(s *segment) *segment {
	if s.epoch <= t.pinned {
		s = s.clone()
	}
	s.epoch = t.cur.epoch
	return s
}

// ownLeaf makes the innermost segment of h, and those around it, writable.
func (t *table) ownLeaf(h uint64) *segment {
	i := h>>t.shift - t.base
	s := t.ownSegment(t.root[i])
	t.root[i] = s
	for !s.list {
		p := s.dir[s.at(h)]
		if !p.gate {
			break
		}
		in := t.ownSegment(s.inner[firstOf(p, h)])
		s.inner[firstOf(p, h)] = in
		s = in
	}
	return s
}

// ownPage makes p, the page of h or one of its list, writable: the result is p or a copy in its place.
func (t *table) ownPage(h uint64, p *page) *page {
	if p.epoch == t.cur.epoch {
		return p
	}
	s := t.ownLeaf(h)
	if p.epoch > t.pinned {
		p.epoch = t.cur.epoch
		return p
	}
	t.stats.copies++
	q := t.lay.clone(p, t.cur.epoch)
	p.gone = true
	s.replace(h, p, q)
	return q
}

// own makes the page of the current key, which has an entry, writable.
func (t *table) own() {
	c := &t.cur
	if c.writable == 0 {
		c.page = t.ownPage(c.hash, c.page)
		c.writable = c.bit
	}
}

// ensure gives the current key an entry that may be written.
func (t *table) ensure() {
	if t.cur.slot >= 0 {
		t.own()
		return
	}
	p, i := t.insert(t.cur.hash)
	t.keys.putCurrent(p, i)
	if t.keys.hashAt(p, i) != t.cur.hash {
		panic(&UsageError{Problem: otherKey})
	}
	t.cur.enter(p, i)
}

// ---- insertion

// insert takes a slot for hash h, which the caller must fill: at least the key.
func (t *table) insert(h uint64) (*page, uint) {
	for {
		s, p := t.leaf(h)
		switch {
		case s.list:
			p = t.roomInList(h)
		case p.live == allSlots:
			t.split(h)
			continue
		}
		p = t.ownPage(h, p)
		i := p.free(groupOf(h))
		p.take(i, tagOf(h))
		t.entries++
		return p, i
	}
}

// roomInList is a page with a free slot in the list of h.
func (t *table) roomInList(h uint64) *page {
	s := t.ownLeaf(h)
	for _, p := range slices.Backward(s.dir) {
		if p.live != allSlots {
			return p
		}
	}
	p := t.lay.newPage(t.cur.epoch, 64)
	s.dir = append(s.dir, p)
	t.pages++
	return p
}

// ---- deletion

// removeCurrent frees the entry of the current key.
func (t *table) removeCurrent() {
	c := &t.cur
	t.remove(c.hash, c.page, uint(c.slot))
	c.leave(t.void, noEntry)
}

// remove frees slot i of p, the page of h.
func (t *table) remove(h uint64, p *page, i uint) { t.removeAll(h, p, 1<<i) }

// removeAll frees slots of p, the page of h, and merges pages while two buddies would fill less than half of one. Entries
// move: no place of any key is valid afterwards.
func (t *table) removeAll(h uint64, p *page, mask bitmap) {
	p = t.ownPage(h, p)
	t.lay.clear(p, mask)
	t.entries -= bits.OnesCount32(mask)
	for t.merge(h) {
	}
	if t.pages < shrinkPages*len(t.root) && len(t.root) > 2 && t.shift < 63 {
		t.shrinkRoot()
	}
}
