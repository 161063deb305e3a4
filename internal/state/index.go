package state

import (
	"math/bits"
	"unsafe"

	"github.com/weirstream/weir/internal/base"
)

const (
	// TouchMost is the most hashes that one touching pass takes.
	TouchMost = 128
	// touchBytes is the size of a table from which the touching pass pays: a table of less lies in the L2 cache of a core.
	touchBytes = 512 << 10
)

// index is a table with keys of type K.
type index[K comparable] struct {
	table
	slots keyArray[K]

	passing [TouchMost]*page
	touched uint64 // what the touching pass read: so that it really reads
}

// keyArray is the part of the keys.
type keyArray[K comparable] struct {
	array[K]
	x    *index[K]
	hash func(K) uint64
	key  K // the current one
}

func (a *keyArray[K]) hashAt(p *page, i uint) uint64 { return a.hash(a.of(p)[i%slotsPerPage]) }
func (a *keyArray[K]) putCurrent(p *page, i uint)    { a.of(p)[i%slotsPerPage] = a.key }

func (a *keyArray[K]) has(h uint64, p *page, i uint) bool {
	_, at := a.x.find(h, a.of(p)[i%slotsPerPage])
	return at >= 0
}

// init makes an index over the hashes of r. Columns are added until it is opened.
func (x *index[K]) init(hash func(K) uint64, r base.KeyGroupRange) {
	x.slots.x, x.slots.hash = x, hash
	x.keys = &x.slots
	x.least, x.most = r.Hashes()
	x.parts = []part{&x.slots}
}

// seek makes k the current key.
func (x *index[K]) seek(h uint64, k K) { x.seekIn(x.pageOf(h), h, k) }

// seekTouched is seek of the hash numbered j of the last touch, which has found the page already. A page that was copied or
// merged away since then says so; one that was split has its other half looked for as what is not in its home group is.
func (x *index[K]) seekTouched(j int, h uint64, k K) {
	p := x.passing[j&(TouchMost-1)]
	if p.gone {
		p = x.pageOf(h)
	}
	x.seekIn(p, h, k)
}

// seekIn looks in p first. Nearly always k lies in its home group there, and no other key of that has its tag.
func (x *index[K]) seekIn(p *page, h uint64, k K) {
	c := &x.cur
	x.slots.key, c.hash = k, h
	g := groupOf(h)
	if m := matchTags(p.tags[g], everyTag(h)); m != 0 {
		i := g*groupSlots + uint(bits.TrailingZeros64(m))/8
		if (*[slotsPerPage]K)(unsafe.Add(unsafe.Pointer(p), x.slots.off))[i%slotsPerPage] == k {
			c.enter(p, i)
			return
		}
	}
	x.seekFar(h, k)
}

func (x *index[K]) seekFar(h uint64, k K) {
	if p, i := x.find(h, k); i >= 0 {
		x.cur.enter(p, uint(i))
		return
	}
	x.cur.leave(x.void, noEntry)
}

// find is the page and slot of k, or -1.
func (x *index[K]) find(h uint64, k K) (*page, int32) {
	s, p := x.leaf(h)
	if !s.list {
		return p, x.search(p, h, k)
	}
	for _, p := range s.dir {
		if i := x.search(p, h, k); i >= 0 {
			return p, i
		}
	}
	return p, -1
}

// search is the slot of k in p, or -1.
func (x *index[K]) search(p *page, h uint64, k K) int32 {
	g, tags, keys := groupOf(h), everyTag(h), x.slots.of(p)
	for range groups {
		for m := matchTags(p.tags[g], tags); m != 0; m &= m - 1 {
			if i := g*groupSlots + uint(bits.TrailingZeros64(m))/8; keys[i%slotsPerPage] == k {
				return int32(i)
			}
		}
		g = (g + 1) % groups
	}
	return -1
}

// touch is the touching pass. It reads the cache lines in which the records of a slice will most likely be found: head,
// keys and values of each record's page. No line's address depends on what another line of the page holds, for the group
// is known from the hash: so the misses overlap, where the records one after the other would wait for each.
func (x *index[K]) touch(hs []uint64) {
	ps := x.passing[:len(hs)]
	for j, h := range hs {
		ps[j] = x.pageOf(h)
	}
	var sum uint64
	for _, p := range ps {
		sum += p.tags[0]
	}
	for _, a := range x.lay.parts {
		sum += a.touch(ps, hs)
	}
	x.touched = sum
}
