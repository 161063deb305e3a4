package state

import (
	"maps"
	"slices"
	"unsafe"
)

// dirMax is the number of entries to which a segment's directory doubles.
const dirMax = 4096

// segment holds the pages of one range of hashes. Its directory is indexed by the hash bits above shift; a page whose
// depth is less than the segment's stands at several entries in a row.
//
// A page that is full where the directory may double no more becomes a gate: an empty page in whose place a segment of
// its own holds the next bits. That happens only to hashes with a long common prefix (the million timers of one key), and
// keeps them logarithmic. Where no bit is left the segment is a list: any number of pages of one and the same hash. So
// bad hashes cost time, never memory.
type segment struct {
	dir   []*page
	shift uint8
	list  bool
	epoch epoch               // never older than any page or segment inside
	deep  int                 // pages with one directory entry; none: the directory can halve
	inner map[uint64]*segment // those behind gates, by the first hash of the gate's range
}

func (s *segment) at(h uint64) uint64  { return h >> (s.shift & 63) & uint64(len(s.dir)-1) }
func (s *segment) depth() uint8        { return 64 - s.shift }
func (s *segment) span(p *page) uint64 { return 1 << (s.depth() - p.depth) }

// firstOf is the first hash of the range of p, in which h lies.
func firstOf(p *page, h uint64) uint64 { return h &^ lowBits(p.depth) }

// lowBits are the bits of a hash that a prefix of depth bits leaves open.
func lowBits(depth uint8) uint64 {
	if depth == 0 {
		return ^uint64(0)
	}
	return 1<<(64-depth) - 1
}

// put points all of p's entries at p; di is one of them.
func (s *segment) put(di uint64, p *page) {
	n := s.span(p)
	di &^= n - 1
	for j := range n {
		s.dir[di+j] = p
	}
}

// replace puts q where p was.
func (s *segment) replace(h uint64, p, q *page) {
	if s.list {
		s.dir[slices.Index(s.dir, p)] = q
		return
	}
	s.put(s.at(h), q)
}

// count counts the pages, those behind gates excepted, and the deep ones. It compares pointers: reading each page's depth
// is a cache miss a page, which took 9 ms when the root grew to its last size.
func (s *segment) count() (pages, deep int) {
	for i := 0; i < len(s.dir); {
		j := i + 1
		for j < len(s.dir) && s.dir[j] == s.dir[i] {
			j++
		}
		pages++
		if j == i+1 {
			deep++
		}
		i = j
	}
	return pages, deep
}

// double gives the directory one more bit.
func (s *segment) double() {
	dir := make([]*page, 2*len(s.dir))
	for i, p := range s.dir {
		dir[2*i], dir[2*i+1] = p, p
	}
	s.dir, s.shift, s.deep = dir, s.shift-1, 0
}

// maybeHalve takes bits away from the directory while no page needs the last one.
func (s *segment) maybeHalve() {
	for s.deep == 0 && len(s.dir) > 1 {
		dir := make([]*page, len(s.dir)/2)
		for i := range dir {
			dir[i] = s.dir[2*i]
		}
		s.dir, s.shift = dir, s.shift+1
		_, s.deep = s.count()
	}
}

// clone copies the directory, not the pages.
func (s *segment) clone() *segment {
	c := *s
	c.dir, c.inner = slices.Clone(s.dir), maps.Clone(s.inner)
	return &c
}

// setInner puts a segment behind the gate whose range begins at first.
func (s *segment) setInner(first uint64, in *segment) {
	if s.inner == nil {
		s.inner = map[uint64]*segment{}
	}
	s.inner[first] = in
}

// adopt takes the inner segments of o whose ranges lie in [least, largest].
func (s *segment) adopt(o *segment, least, largest uint64) {
	for first, in := range o.inner {
		if least <= first && first <= largest {
			s.setInner(first, in)
		}
	}
}

// walk yields the pages, of so many bytes each, in the order of their ranges, each with the first hash of its range; the
// segment's own range begins at first.
func (s *segment) walk(first uint64, bytes int, yield func(uint64, *page) bool) bool {
	n, ahead := uint64(len(s.dir)), uint64(0) // up to where was read ahead
	for i := uint64(0); i < n; {
		if i >= ahead {
			ahead = min(i+aheadEntries, n)
			readAhead(s.dir[i:ahead], bytes)
		}
		p := s.dir[i]
		at := first + i<<s.shift
		switch {
		case s.list:
			if !yield(first, p) {
				return false
			}
			i++
			continue
		case p.gate:
			if !s.inner[at].walk(at, bytes, yield) {
				return false
			}
		case !yield(at, p):
			return false
		}
		i += s.span(p)
	}
	return true
}

// walk reads pages of so many directory entries ahead, if they are not too large to stay in the first cache together.
const (
	aheadEntries = 16
	aheadBytes   = 1 << 10
)

// readAhead reads the cache lines of pages: so their misses overlap, where who reads one page after the other waits for each. (It
// is not inlined, for then there would be nothing left of it.)
//
//go:noinline
func readAhead(dir []*page, bytes int) (sum byte) {
	var last *page
	for _, p := range dir {
		if p == last {
			continue
		}
		last = p
		for off := 0; off < min(bytes, aheadBytes); off += cacheLine {
			sum += *(*byte)(unsafe.Add(unsafe.Pointer(p), off))
		}
	}
	return sum
}
