package state

import (
	"iter"
	"slices"
)

// view is a table as it was at the end of an epoch. Any goroutine may read it, while the owner writes the table, until
// the owner releases it.
type view struct {
	root    []*segment
	shift   uint8
	base    uint64
	epoch   epoch
	entries int
	bytes   int // of a page
}

// view is the synchronous part of a snapshot: it copies the root and begins a new epoch. No key is current afterwards.
func (t *table) view() *view {
	v := t.present()
	v.root = slices.Clone(t.root)
	t.views = append(t.views, v.epoch)
	t.pinned = v.epoch
	t.cur.epoch++
	t.cur.leave(t.void, noKey)
	return &v
}

// present is the table as it is, for the owner to read while nothing is written.
func (t *table) present() view {
	return view{root: t.root, shift: t.shift, base: t.base, epoch: t.cur.epoch, entries: t.entries, bytes: t.lay.bytes()}
}

// release says, on the owner's goroutine, that v is read no more: its pages need no copy. A second release does nothing.
func (t *table) release(v *view) {
	t.views = slices.DeleteFunc(t.views, func(e epoch) bool { return e == v.epoch })
	t.pinned = 0
	if len(t.views) > 0 {
		t.pinned = slices.Max(t.views)
	}
}

// pages are all pages in the order of their ranges, each with the first hash of its range.
func (v *view) pages() iter.Seq2[uint64, *page] {
	return func(yield func(uint64, *page) bool) {
		for i, s := range v.root {
			if !s.walk(v.first(i), v.bytes, yield) {
				return
			}
		}
	}
}

// segment are the pages of one segment of the root.
func (v *view) segment(i int) iter.Seq2[uint64, *page] {
	return func(yield func(uint64, *page) bool) { v.root[i].walk(v.first(i), v.bytes, yield) }
}

// first is the first hash of a segment's range.
func (v *view) first(i int) uint64 { return (v.base + uint64(i)) << v.shift }
