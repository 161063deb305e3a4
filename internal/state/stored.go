package state

import (
	"io"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// RestoreFile is the keyed state that one old subtask had in a checkpoint.
type RestoreFile struct {
	// ID is the checkpoint's, if the next ones of this job may refer to its files; else 0.
	ID     base.CheckpointID
	Handle snapshot.KeyedHandle
	// Open reads one of the handle's files; each is opened once at most, when something of it is wanted. Who calls Restore closes
	// them afterwards.
	Open func(h snapshot.Handle) (io.ReaderAt, error)
}

// storedKeyed is a RestoreFile, opened: it yields pages, of either version of the format.
type storedKeyed struct {
	*keyedTrailer
	version uint16
	files   windows
}

// storedPages are some pages in succession, whose bytes are checked; of version 2 it is one page.
type storedPages struct {
	bytes       []byte
	least, most uint64 // the hashes that the segment or the block may have

	// version 2
	section *storedSection
	at      extent
}

// storedSection is a section as it was found in a file.
type storedSection struct {
	segment int
	runs    []run
	at      extent
}

// open reads the ends of the file.
func (from RestoreFile) open() (*storedKeyed, error) {
	h := from.Handle
	r, err := from.Open(h.Handle)
	if err != nil {
		return nil, err
	}
	own := &window{r: r, size: h.Size, name: h.File}
	end, err := readEnd(r, h.Size)
	if err != nil {
		return nil, own.in(err)
	}
	s := &storedKeyed{version: end.version, files: windows{open: from.Open}}
	if s.keyedTrailer, err = parseKeyedTrailer(end); err != nil {
		return nil, own.in(err)
	}
	if len(s.others) != len(h.Refers) {
		return nil, own.in(corrupt("it refers to %d files, the metadata names %d", len(s.others), len(h.Refers)))
	}
	for i, n := range s.others {
		s.files.of = append(s.files.of, storedFile{n, h.Refers[i]})
	}
	s.files.of = append(s.files.of, storedFile{s.number, h.Handle})
	s.files.all = make([]*window, len(s.files.of))
	s.files.all[len(s.others)] = own
	return s, nil
}

// entries is the number of entries of a table, as the file says without its pages. Some may have expired.
func (s *storedKeyed) entries(table int) (n int64) {
	for _, b := range s.blocks[table] {
		n += int64(b.count)
	}
	return n + s.tables[table].entries
}

// pages calls yield with the pages of a table that may have hashes from least to most, in the order of their ranges.
func (s *storedKeyed) pages(table int, least, most uint64, yield func(storedPages) error) error {
	if s.version == version1 {
		return s.pagesOfBlocks(table, least, most, yield)
	}
	t := &s.tables[table]
	for i, r := range t.references {
		last := ^uint64(0) // of the segments up to the next reference
		if i+1 < len(t.references) {
			last = t.first(t.references[i+1].segment) - 1
		}
		if last < least || t.first(r.segment) > most {
			continue
		}
		sections, err := s.sections(r)
		if err != nil {
			return err
		}
		for i := range sections {
			if err := s.pagesOfSection(t, &sections[i], least, most, yield); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *storedKeyed) pagesOfBlocks(table int, least, most uint64, yield func(storedPages) error) error {
	own := s.files.all[0]
	for _, b := range s.blocks[table] {
		if b.last < least || b.first > most {
			continue
		}
		src, err := own.block(b)
		if err == nil {
			err = own.in(yield(storedPages{bytes: src, least: b.first, most: b.last}))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// first is the first hash of a segment's range.
func (t *storedTable) first(segment int) uint64 { return (t.base + uint64(segment)) << t.shift }

// sections reads the sections of a reference.
func (s *storedKeyed) sections(r reference) ([]storedSection, error) {
	w, err := s.files.window(r.file)
	if err != nil {
		return nil, err
	}
	var all []storedSection
	off, end, next := r.off, r.off+r.length, r.segment
	for range r.sections {
		b, length, err := w.record(off, end)
		if err != nil {
			return nil, err
		}
		p := parser{b: b}
		segment, runs := p.section()
		if err := p.done(); err != nil {
			return nil, w.in(err)
		}
		if len(all) == 0 && segment != uint64(next) || segment < uint64(next) || segment >= segmentsMost {
			return nil, w.in(corrupt("the section at %d is of another segment", off))
		}
		all = append(all, storedSection{int(segment), runs, extent{off, uint32(length), r.file}})
		off, next = off+length, int(segment)+1
	}
	if off != end {
		return nil, w.in(corrupt("there are more sections than it names"))
	}
	return all, nil
}

// pagesOfSection yields the pages of one section.
func (s *storedKeyed) pagesOfSection(t *storedTable, from *storedSection, least, most uint64, yield func(storedPages) error) error {
	first := t.first(from.segment)
	last := first | (1<<t.shift - 1)
	if last < least || first > most {
		return nil
	}
	for _, r := range from.runs {
		w, err := s.files.window(r.file)
		if err != nil {
			return err
		}
		off, end := r.off, r.off+r.length
		for range r.pages {
			b, length, err := w.record(off, end)
			if err != nil {
				return err
			}
			page := storedPages{b, first, last, from, extent{off, uint32(length), r.file}}
			if err := yield(page); err != nil {
				return w.in(err)
			}
			off += length
		}
		if off != end {
			return w.in(corrupt("there are more pages at %d than it says", r.off))
		}
	}
	return nil
}
