package state

// settle ends a call that cleared something or used states that expire.
func (t *table) settle() {
	c := &t.cur
	c.unsettled = false
	if c.slot >= 0 && t.isBare(c.page, c.bit) {
		t.removeCurrent()
	}
	if t.expires {
		t.sweep()
	}
}

// isBare reports whether the entry at one slot has no state.
func (t *table) isBare(p *page, bit bitmap) bool {
	for _, c := range t.columns {
		if *word(p, c.common().has)&bit != 0 {
			return false
		}
	}
	return true
}

// sweep looks at the next few slots of the table and removes what has expired there: so that state nobody asks for again
// goes too. Each call that uses expiring state pays for eight slots, in a page that is read four times in a row.
func (t *table) sweep() {
	now := t.clock()
	h := t.sweepAt
	s, p := t.leaf(h)
	if s.list { // equal hashes: leave them to those who read them
		t.sweepOn(64)
		return
	}
	mask := p.live & (lowestBits(groupSlots) << (t.sweepGroup * groupSlots))
	depth := p.depth
	if t.sweepGroup++; t.sweepGroup == groups {
		t.sweepOn(depth)
	}
	if mask != 0 {
		t.expire(h, p, mask, now)
	}
}

// sweepOn goes on to the page behind that of the sweep, of the given depth.
func (t *table) sweepOn(depth uint8) {
	t.sweepGroup = 0
	last := t.sweepAt | lowBits(depth)
	if last >= t.most {
		t.sweepAt = t.least
		return
	}
	t.sweepAt = last + 1
}

// expire removes from the slots in mask of p, the page of h, what has expired, and entries that had nothing else.
func (t *table) expire(h uint64, p *page, mask bitmap, now int64) {
	for _, c := range t.columns {
		d := c.common()
		if d.spec.TTL == 0 {
			continue
		}
		have := *word(p, d.has) & mask
		if dead := have &^ c.living(p, have, now); dead != 0 {
			p = t.ownPage(h, p)
			d.drop(p, dead)
		}
	}
	var bare bitmap
	for m := mask; m != 0; m &= m - 1 {
		if bit := bitmap(1) << lowest(m); t.isBare(p, bit) {
			bare |= bit
		}
	}
	if bare != 0 {
		t.removeAll(h, p, bare)
		t.cur.leave(t.void, noKey)
	}
}
