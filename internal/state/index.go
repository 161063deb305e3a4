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

	passing [TouchMost]*page // of the last touch: the page of each hash
	likely  [TouchMost]uint8 // and the slot there
	touched uint64           // what the touching pass read: so that it really reads
}

// keyArray is the part of the keys.
type keyArray[K comparable] struct {
	array[K]
	x    *index[K]
	hash func(K) uint64
	key  K // the current one
}

func (a *keyArray[K]) hashAt(p *page, i uint) uint64 { return a.hash(*a.at(p, i)) }
func (a *keyArray[K]) putCurrent(p *page, i uint)    { *a.at(p, i) = a.key }

func (a *keyArray[K]) has(h uint64, p *page, i uint) bool {
	_, at := a.x.find(h, *a.at(p, i))
	return at >= 0
}

// init makes an index over the hashes of r. Columns are added until it is opened.
func (x *index[K]) init(hash func(K) uint64, r base.KeyGroupRange) {
	x.slots.x, x.slots.hash = x, hash
	x.keys = &x.slots
	x.least, x.most = r.Hashes()
	x.parts = []part{&x.slots}
}

// seekTouched is seek of the hash numbered j of the last touch, which has found page and slot already. A page that was copied
// or merged away since then says so. Whatever else happened in it, the slot is right if k is there and in use; else k is
// looked for as any other key.
func (x *index[K]) seekTouched(j int, h uint64, k K) {
	j &= TouchMost - 1
	p, i := x.passing[j], uint(x.likely[j])
	if p.gone || p.tag(i) != tagOf(h) || *x.slots.at(p, i) != k {
		x.seek(h, k)
		return
	}
	x.slots.key, x.cur.hash = k, h
	x.cur.enter(p, i)
}

// seek makes k the current key. Nearly always it lies in its home group, and no other key of that has its tag.
func (x *index[K]) seek(h uint64, k K) {
	c, p := &x.cur, x.pageOf(h)
	x.slots.key, c.hash = k, h
	g := groupOf(h)
	if m := matchTags(p.tags[g], everyTag(h)); m != 0 {
		i := g*groupSlots + uint(bits.TrailingZeros64(m))/8
		if *x.slots.at(p, i) == k {
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
	g, tags := groupOf(h), everyTag(h)
	for range groups {
		for m := matchTags(p.tags[g], tags); m != 0; m &= m - 1 {
			if i := g*groupSlots + uint(bits.TrailingZeros64(m))/8; *x.slots.at(p, i) == k {
				return int32(i)
			}
		}
		g = (g + 1) % groups
	}
	return -1
}

// touch is the touching pass. It reads the cache lines in which the records of a slice will most likely be found: the head of
// each record's page, then the entry that has its tag. Within a loop no line's address depends on what another line holds: so
// the misses of many records overlap, where the records one after the other would wait for each.
func (x *index[K]) touch(hs []uint64) {
	ps, slots := x.passing[:len(hs)], x.likely[:len(hs)]
	for j, h := range hs {
		ps[j] = x.pageOf(h)
	}
	var sum uint64
	for _, p := range ps {
		sum += p.tags[0]
	}
	for j, h := range hs {
		slots[j] = uint8(ps[j].likely(h))
	}
	stride := x.lay.stride
	for _, off := range x.lay.lines {
		for j, p := range ps {
			sum += uint64(*(*byte)(unsafe.Add(unsafe.Pointer(p), off+uintptr(slots[j])*stride)))
		}
	}
	x.touched = sum
}
