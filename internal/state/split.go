package state

import "slices"

// split makes room in the full page of h, or takes an empty one deeper: it halves the page, or makes it a gate.
func (t *table) split(h uint64) {
	s := t.ownLeaf(h)
	p := s.dir[s.at(h)]
	if p.depth == s.depth() {
		if len(s.dir) >= dirMax || s.shift == 0 {
			t.makeGate(s, h)
			return
		}
		s.double()
	}
	t.halve(s, h)
	if t.pages > growPages*len(t.root) && len(t.root) < rootMax && t.shift > 0 {
		t.growRoot()
	}
}

// makeGate puts the page of h into a segment of its own, behind an empty page in its place. Where all 64 bits are used up
// the segment is a list.
func (t *table) makeGate(s *segment, h uint64) {
	p := t.ownPage(h, s.dir[s.at(h)])
	gate := t.lay.newPage(t.cur.epoch, p.depth)
	gate.gate = true
	s.put(s.at(h), gate)
	s.setInner(firstOf(p, h), &segment{
		dir: []*page{p}, shift: 64 - p.depth, list: p.depth == 64, epoch: t.cur.epoch, deep: 1,
	})
	t.pages++
	t.stats.gates++
}

// halve moves the entries of the right half of the range of h's page to a new page. The segment s is owned, and deeper
// than the page.
func (t *table) halve(s *segment, h uint64) {
	p := t.ownPage(h, s.dir[s.at(h)])
	left := s.at(h) &^ (s.span(p) - 1)
	p.depth++
	q := t.lay.newPage(t.cur.epoch, p.depth)
	t.divide(p, q)
	s.put(left+s.span(p), q)
	t.pages++
	if p.depth == s.depth() {
		s.deep += 2
	}
	t.stats.splits++
}

// divide moves those entries from p to the empty page q whose last bit of the prefix is set. Entries that stay, and lie
// outside their home group, go home if they can.
func (t *table) divide(p, q *page) {
	var right bitmap
	var strays bitmap
	var home [slotsPerPage]uint8
	for m := p.live; m != 0; m &= m - 1 {
		i := lowest(m)
		h := t.keys.hashAt(p, i)
		g := groupOf(h)
		switch {
		case h>>(64-p.depth)&1 == 1:
			right |= 1 << i
			t.lay.move(q, q.free(g), p, i)
		case g != i/groupSlots:
			strays |= 1 << i
			home[i] = uint8(g)
		}
	}
	t.lay.clear(p, right)
	for ; strays != 0 && p.live != allSlots; strays &= strays - 1 {
		i := lowest(strays)
		if d := p.free(uint(home[i])); d/groupSlots == uint(home[i]) {
			t.lay.move(p, d, p, i)
			t.lay.clear(p, 1<<i)
		}
	}
}

// merge undoes one split or gate at h, if so little is left that both pages fill less than half of one.
func (t *table) merge(h uint64) bool {
	s, p := t.leaf(h)
	if s.list {
		return t.trimList(h)
	}
	n := s.span(p)
	if n == uint64(len(s.dir)) {
		return t.openGate(h, s, p)
	}
	if p.count() >= slotsPerPage/4 { // to look at the buddy is a cache miss: only when it is worth it
		return false
	}
	buddy := s.dir[s.at(h)&^(n-1)^n]
	if buddy.depth != p.depth || buddy.gate || p.count()+buddy.count() >= slotsPerPage/2 {
		return false
	}
	s = t.ownLeaf(h)
	p = t.ownPage(h, p)
	if p.depth == s.depth() {
		s.deep -= 2
	}
	for m := buddy.live; m != 0; m &= m - 1 {
		i := lowest(m)
		d := p.free(i / groupSlots)
		t.lay.move(p, d, buddy, i)
		if buddy.epoch <= t.pinned {
			t.lay.share(p, 1<<d)
		}
	}
	buddy.gone = true
	p.depth--
	s.put(s.at(h), p)
	t.pages--
	t.stats.merges++
	s.maybeHalve()
	return true
}

// openGate puts p, all that is left of the inner segment s, back in its gate's place.
func (t *table) openGate(h uint64, s *segment, p *page) bool {
	i := h>>t.shift - t.base
	if t.root[i] == s || p.count() >= slotsPerPage/2 {
		return false
	}
	outer := t.ownSegment(t.root[i])
	t.root[i] = outer
	for {
		first := firstOf(outer.dir[outer.at(h)], h)
		in := outer.inner[first]
		if in == s {
			outer.put(outer.at(h), p)
			delete(outer.inner, first)
			t.pages--
			return true
		}
		in = t.ownSegment(in)
		outer.inner[first] = in
		outer = in
	}
}

// trimList drops the empty pages of the list of h; a list of one page is no list.
func (t *table) trimList(h uint64) bool {
	s := t.ownLeaf(h)
	n := len(s.dir)
	s.dir = slices.DeleteFunc(s.dir, func(p *page) bool { return p.live == 0 })
	if len(s.dir) == 0 {
		s.dir = append(s.dir, t.lay.newPage(t.cur.epoch, 64))
	}
	t.pages += len(s.dir) - n
	return len(s.dir) == 1 && t.openGate(h, s, s.dir[0])
}
