package state

import "slices"

const (
	rootMax     = 4096 // segments up to which the root doubles
	growPages   = 32   // pages a segment at which it doubles
	shrinkPages = 2    // pages a segment under which it halves
)

// growRoot halves the range of a segment. Small segments are what makes the first write after a snapshot cheap: it copies
// one directory. Many segments make every look-up dear, for it waits for one, and they do not stay in a core's cache beside all
// else; and a large root makes the snapshot dear: 4,096 pointers are copied in some 10 us. (A million keys with 2,048 segments
// instead of 4,096: 3 % faster; with 1,024: 4 %, but the last growth, which is one long call, takes 5 ms instead of 3.)
func (t *table) growRoot() {
	for i := range t.root { // no page may be wider than a new segment
		h := (t.base + uint64(i)) << t.shift
		if s := t.root[i]; s.dir[0] == s.dir[len(s.dir)/2] {
			s = t.ownLeaf(h)
			if len(s.dir) == 1 {
				s.double()
			}
			t.halve(s, h)
		}
	}
	shift := t.shift - 1
	base, last := t.least>>shift, t.most>>shift
	root := make([]*segment, last-base+1)
	for i := range root {
		at := base + uint64(i)
		o := t.root[at/2-t.base]
		half := uint64(len(o.dir) / 2)
		s := &segment{dir: slices.Clone(o.dir[at%2*half:][:half]), shift: o.shift, epoch: t.cur.epoch}
		s.adopt(o, at<<shift, at<<shift|(1<<shift-1))
		root[i] = s
	}
	t.setRoot(root, shift, base)
}

// shrinkRoot joins segments two by two.
func (t *table) shrinkRoot() {
	shift := t.shift + 1
	base, last := t.least>>shift, t.most>>shift
	root := make([]*segment, last-base+1)
	for i := range root {
		at := 2 * (base + uint64(i))
		left, right := t.segmentAt(at), t.segmentAt(at+1)
		s := &segment{shift: min(left.shift, right.shift), epoch: t.cur.epoch}
		for _, o := range []*segment{left, right} {
			for _, p := range o.dir {
				for range 1 << (o.shift - s.shift) {
					s.dir = append(s.dir, p)
				}
			}
			s.adopt(o, 0, ^uint64(0))
		}
		root[i] = s
	}
	t.setRoot(root, shift, base)
	for i := range root {
		for h := (base + uint64(i)) << shift; t.merge(h); {
		}
	}
}

// segmentAt is the segment numbered at, or an empty one beyond the range's ends.
func (t *table) segmentAt(at uint64) *segment {
	if i := at - t.base; i < uint64(len(t.root)) {
		return t.root[i]
	}
	return t.emptySegment()
}

// setRoot exchanges the root, and counts pages and deep pages anew.
func (t *table) setRoot(root []*segment, shift uint8, base uint64) {
	for _, o := range t.root {
		n, _ := o.count()
		t.pages -= n
	}
	for _, s := range root {
		n, deep := s.count()
		s.deep = deep
		t.pages += n
	}
	t.root, t.shift, t.base = root, shift, base
	t.stats.reroots++
}
