package state

import (
	"time"

	"github.com/tidwall/btree"
)

// entry is one entry of a map state. Its note is nothing for entries that neither expire nor need be cloned, so that these
// pay nothing for the others.
type entry[MK comparable, V any, N note] struct {
	key   MK
	note  N // not last: a last field without size would be padded
	value V
}

// note is what a map keeps beside each value.
type note interface{ struct{} | tending }

// tending is the note of entries that expire, or that must be cloned before the user sees them in a new epoch.
type tending struct {
	stamp int64
	epoch epoch // of the last cloning or writing: newer than every snapshot, and no snapshot can read the referents
}

// tree is an ordered map that can be copied in no time. Only its owner copies it, always by Copy, which lets both copies
// share nodes until one of them is written.
type tree[MK comparable, V any, N note] = btree.BTreeG[entry[MK, V, N]]

// trees is how trees of one type are made, read and written. Columns and broadcast states have one.
type trees[MK comparable, V any, N note] struct {
	order order[MK]
	ttl   time.Duration
	clone func(V) V // nil: values need not be cloned
}

func (s *trees[MK, V, N]) make() *tree[MK, V, N] {
	less := func(a, b entry[MK, V, N]) bool { return s.order.less(a.key, b.key) }
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

// tend is the note of e; nil for entries without.
func tend[MK comparable, V any, N note](e *entry[MK, V, N]) *tending {
	t, _ := any(&e.note).(*tending)
	return t
}

// dead reports whether e has expired.
func (s *trees[MK, V, N]) dead(e *entry[MK, V, N], now int64) bool {
	return s.ttl > 0 && expired(tend(e).stamp, s.ttl, now)
}

// get looks k up in t, which is owned if values are cloned: the value that is returned is then owned as well.
func (s *trees[MK, V, N]) get(t *tree[MK, V, N], k MK, at moment) (v V, ok, dead bool) {
	e, ok := t.Get(entry[MK, V, N]{key: k})
	switch {
	case !ok:
		return v, false, false
	case s.dead(&e, at.now):
		return v, false, true
	}
	if s.clone != nil {
		if note := tend(&e); note.epoch <= at.pinned {
			note.epoch, e.value = at.epoch, s.clone(e.value)
			t.Set(e)
		}
	}
	return e.value, true, false
}

// put sets k in t, which is owned.
func (s *trees[MK, V, N]) put(t *tree[MK, V, N], k MK, v V, at moment) {
	e := entry[MK, V, N]{key: k, value: v}
	if note := tend(&e); note != nil {
		note.stamp, note.epoch = at.now, at.epoch
	}
	t.Set(e)
}

// ownAll clones all values in t, which is owned, that a snapshot may read.
func (s *trees[MK, V, N]) ownAll(t *tree[MK, V, N], at moment) {
	t.WalkMut(func(es []entry[MK, V, N]) bool {
		for i := range es {
			if note := tend(&es[i]); note.epoch <= at.pinned {
				note.epoch, es[i].value = at.epoch, s.clone(es[i].value)
			}
		}
		return true
	})
}

// countLiving counts the entries of t that have not expired.
func (s *trees[MK, V, N]) countLiving(t *tree[MK, V, N], now int64) int {
	if s.ttl == 0 {
		return t.Len()
	}
	n := 0
	t.Scan(func(e entry[MK, V, N]) bool {
		if !s.dead(&e, now) {
			n++
		}
		return true
	})
	return n
}

// anyLiving reports whether an entry of t has not expired.
func (s *trees[MK, V, N]) anyLiving(t *tree[MK, V, N], now int64) bool {
	if s.ttl == 0 {
		return t.Len() > 0
	}
	living := false
	t.Scan(func(e entry[MK, V, N]) bool {
		living = !s.dead(&e, now)
		return !living
	})
	return living
}

// moment is when a tree is used: the time, and what snapshots may be reading.
type moment struct {
	now           int64
	epoch, pinned epoch
}
