package state

import (
	"cmp"
	"slices"
)

// unchanged finds what of a snapshot lies in the files of its base as it is now: by epochs, that say what was not written since,
// and by the base's manifest, that says where it is.
//
// # Which files stay
//
// What is referred to is parts of files, but what must be kept is whole files. Before a snapshot is written the bytes are counted
// that it could refer to in each. A file of which that is less than half is let go: what it has is written again, from memory.
// So all files that are referred to are together at most twice what is alive in them, after each single checkpoint and
// whatever happened before it. Their number is bounded as well: when there are too many, the half with the fewest bytes goes, which
// writes each byte again at most once in as many checkpoints as it takes to fill up that half, and once each time the state doubles.
//
// A section does not count as alive: it may lie in a file that goes, and then is written again though its pages stay. So files that
// hold little but sections do not last, and there is no circle in which one file's going makes another one go.
type unchanged struct {
	base  *manifest
	since [tables]epoch
	kept  []storedFile // what lies elsewhere is written again
}

// section is that of a whole segment, if nothing in it has changed; nil is one without pages.
func (u *unchanged) section(table int, v *view, i int) (*section, bool) {
	if u == nil || !u.clean(table, v, i) {
		return nil, false
	}
	s := u.base.tables[table].sections
	if i >= len(s) || s[i] == nil {
		return nil, true
	}
	return s[i], u.keeps(s[i].at.file) && !slices.ContainsFunc(s[i].usage, func(o usage) bool { return !u.keeps(o.file) })
}

// clean reports that a segment was not written since the base, where it was the same segment: roots are of the same shape.
func (u *unchanged) clean(table int, v *view, i int) bool {
	return v.root[i].epoch <= u.since[table] && v.shift == u.base.tables[table].shift
}

// page is where the page of a range is, if it has not changed.
func (u *unchanged) page(table int, first uint64, p *page) (extent, bool) {
	if u == nil || p.epoch > u.since[table] {
		return extent{}, false
	}
	at, ok := u.base.tables[table].find(first, p.depth)
	return at, ok && u.keeps(at.file)
}

func (u *unchanged) keeps(n fileNumber) bool { return indexOf(u.kept, n) >= 0 }

// filesMost is the number of files to which a checkpoint refers at most.
const filesMost = 24

// choose decides which files of the base are referred to by a snapshot of these views.
func (u *unchanged) choose(views *[tables]*view) {
	u.kept = u.base.files
	alive := u.alive(views)
	var kept []storedFile
	for i, f := range u.base.files {
		if 2*alive[i] >= f.handle.Size {
			kept = append(kept, f)
		}
	}
	if len(kept) > filesMost {
		aliveIn := func(f storedFile) int64 { return alive[indexOf(u.base.files, f.number)] }
		slices.SortStableFunc(kept, func(a, b storedFile) int { return cmp.Compare(aliveIn(b), aliveIn(a)) })
		kept = kept[:filesMost/2]
		slices.SortFunc(kept, func(a, b storedFile) int { return cmp.Compare(a.number, b.number) })
	}
	u.kept = kept
}

// alive counts the bytes of pages that can be referred to in each of the base's files.
func (u *unchanged) alive(views *[tables]*view) []int64 {
	alive := make([]int64, len(u.base.files))
	for table, v := range views {
		for i := range v.root {
			if s, ok := u.section(table, v, i); ok {
				for _, o := range s.usages() {
					alive[indexOf(u.base.files, o.file)] += o.bytes
				}
				continue
			}
			for first, p := range v.segment(i) {
				if at, ok := u.page(table, first, p); ok {
					alive[indexOf(u.base.files, at.file)] += int64(at.length)
				}
			}
		}
	}
	return alive
}

func (s *section) usages() []usage {
	if s == nil {
		return nil
	}
	return s.usage
}
