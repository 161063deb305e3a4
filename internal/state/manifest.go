package state

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/weirstream/weir/internal/snapshot"
)

// manifest says in which files the pages of a checkpoint lie. A restore goes by it, and so does the next checkpoint, which is
// written upon it: a page that has not changed is not written again but referred to.
//
//	manifest --(table, segment of its root)--> section --(first hash, depth)--> page: file, offset, length
//
// It has the shape of the root: a section for each segment. A segment that was not written between two checkpoints has one and
// the same section in both, in memory as in the files, where each section is a record of its own that the trailer refers to.
// So what a checkpoint costs goes by what has changed, in bytes and in time; only the list of sections is as long as the root.
//
// The straightforward alternatives: a list of all pages in the trailer grows with the state, and would be a tenth of it each time;
// a log of changes since a full snapshot is shorter for a single key, but has to be replayed, and made into a snapshot by reading
// it back. Here nothing is ever read back: what must move to a newer file is written from memory, where it is anyway.
//
// A manifest is not changed any more once it is in a baseline: so any goroutine may read it.
type manifest struct {
	number fileNumber
	tables [tables]tableManifest
	// files are those that pages or sections lie in, by their numbers. The checkpoint's own is among them once it is written: but not if
	// it came to lie inline in the metadata. Then its pages are nowhere, for who looks for them in the manifest.
	files []storedFile
}

// fileNumber is what the pages and sections of a checkpoint call a file. That of a new file is one more than its base's. So along a
// line of checkpoints, each upon another, no number is used twice, and a section means the same whichever later file refers to
// it. Which files the numbers are, the trailer and the metadata say together: no file knows the name of another, for they may
// be moved.
type fileNumber uint32

// storedFile is a file, by its number.
type storedFile struct {
	number fileNumber
	handle snapshot.Handle
}

// indexOf is the place of a file among others; -1: it is not there.
func indexOf(files []storedFile, n fileNumber) int {
	i, ok := slices.BinarySearchFunc(files, n, func(f storedFile, n fileNumber) int { return cmp.Compare(f.number, n) })
	if !ok {
		return -1
	}
	return i
}

// tableManifest is the part of one table.
type tableManifest struct {
	entries  int
	shift    uint8  // bits of a hash below a segment
	base     uint64 // of the first segment: its first hash >> shift
	sections []*section
}

// section says where the pages of one segment lie. One without pages is nil.
type section struct {
	pages []filePage // in the order of their ranges
	usage []usage
	at    extent // its own record; of no length until that is written
}

// extent is some bytes of a file.
type extent struct {
	off    int64
	length uint32
	file   fileNumber
}

// filePage is the record of a page. There are many: they hold no pointers, so that the collector passes over them.
type filePage struct {
	place uint64
	extent
}

// usage is how many bytes of a file are pages of a section.
type usage struct {
	file  fileNumber
	bytes int64
}

// placeOf is the range of a page in one number: its prefix, then a one, then zeros. Of pages whose ranges do not overlap, places
// have the order of the ranges. (Pages of depth 64, which has no bit left for the one, may share a hash: they are never sought.)
func placeOf(first uint64, depth uint8) uint64 { return first | 1<<63>>depth }

// newSection is the section of some pages, which it copies.
func newSection(pages []filePage) *section {
	if len(pages) == 0 {
		return nil
	}
	s := &section{pages: slices.Clone(pages)}
	for _, p := range s.pages {
		i := slices.IndexFunc(s.usage, func(u usage) bool { return u.file == p.file })
		if i < 0 {
			i = len(s.usage)
			s.usage = append(s.usage, usage{file: p.file})
		}
		s.usage[i].bytes += int64(p.length)
	}
	return s
}

// find looks up the page of a range.
func (t *tableManifest) find(first uint64, depth uint8) (extent, bool) {
	i := first>>t.shift - t.base
	if i >= uint64(len(t.sections)) || t.sections[i] == nil || depth == 64 {
		return extent{}, false
	}
	return t.sections[i].find(placeOf(first, depth))
}

func (s *section) find(place uint64) (extent, bool) {
	pages := s.pages
	for len(pages) > 1 { // the generic search calls a function at each step
		half := len(pages) / 2
		if pages[half].place <= place {
			pages = pages[half:]
		} else {
			pages = pages[:half]
		}
	}
	return pages[0].extent, pages[0].place == place
}

// put makes s the section of a segment.
func (t *tableManifest) put(segment int, s *section) {
	for len(t.sections) <= segment {
		t.sections = append(t.sections, nil)
	}
	t.sections[segment] = s
}

// ---- as bytes

// run is pages that lie one behind the other, in the order of their ranges.
type run struct {
	file        fileNumber
	off, length int64
	pages       int
}

// runs are the pages of a section, joined.
func (s *section) runs() (all []run) {
	for _, p := range s.pages {
		if n := len(all) - 1; n >= 0 && all[n].file == p.file && all[n].off+all[n].length == p.off {
			all[n].length += int64(p.length)
			all[n].pages++
			continue
		}
		all = append(all, run{p.file, p.off, int64(p.length), 1})
	}
	return all
}

// appendSection writes the section of a segment.
func appendSection(dst []byte, segment int, s *section) []byte {
	runs := s.runs()
	dst = binary.AppendUvarint(dst, uint64(segment))
	dst = binary.AppendUvarint(dst, uint64(len(runs)))
	for _, r := range runs {
		dst = binary.AppendUvarint(dst, uint64(r.file))
		dst = binary.AppendUvarint(dst, uint64(r.off))
		dst = binary.AppendUvarint(dst, uint64(r.length))
		dst = binary.AppendUvarint(dst, uint64(r.pages))
	}
	return dst
}

// section reads what appendSection wrote.
func (p *parser) section() (segment uint64, runs []run) {
	segment = p.uvarint()
	for range p.count() {
		file, off, length, pages := p.fileNumber(), p.int64(), p.int64(), p.uvarint()
		if pages > uint64(length) {
			p.fail()
		}
		runs = append(runs, run{file, off, length, int(pages)})
	}
	return segment, runs
}

// reference is sections that lie one behind the other in a file, the first of them being that of a segment.
type reference struct {
	segment, sections int
	run               // of which pages says nothing
}

// references are the sections of a table, joined.
func (t *tableManifest) references() (all []reference) {
	for i, s := range t.sections {
		if s == nil {
			continue
		}
		if n := len(all) - 1; n >= 0 && all[n].file == s.at.file && all[n].off+all[n].length == s.at.off {
			all[n].length += int64(s.at.length)
			all[n].sections++
			continue
		}
		all = append(all, reference{i, 1, run{file: s.at.file, off: s.at.off, length: int64(s.at.length)}})
	}
	return all
}
