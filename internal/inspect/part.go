package inspect

import (
	"fmt"
	"iter"
	"slices"

	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
)

// part is what one old subtask has of one state.
type part struct {
	state.StoredState
	subtask int
	mode    snapshot.Mode // of a list
	// count is the number of rows; unknown: only they can tell. keys is the number of those of the whole file: some may have
	// another state only.
	count, keys int64
	// bytes are those of the state alone; unknown where it shares pages with others.
	bytes int64
	// rows are those whose hashes are within a range; of a list all.
	rows func(within state.Hashes) iter.Seq2[state.Row, error]
}

// unknown is a number that the metadata, trailers and indexes do not say.
const unknown = -1

// keyed reports whether its rows have keys.
func (p *part) keyed() bool { return p.Schema.Key != "" }

// parts are the states of one subtask, without their rows being read: by key, timers, then lists; in the order of the files.
func (s *Snapshot) parts(t *snapshot.Subtask) (all []part, err error) {
	slices.SortStableFunc(t.Keyed, func(a, b snapshot.KeyedHandle) int { return a.Range.First - b.Range.First })
	for _, h := range t.Keyed {
		keyed, err := s.keyedParts(h)
		if err != nil {
			return nil, fmt.Errorf("keyed state of subtask %d: %w", t.Index, err)
		}
		all = append(all, keyed...)
	}
	for _, h := range t.Lists {
		p, err := s.listPart(h)
		if err != nil {
			return nil, fmt.Errorf("state %q of subtask %d: %w", h.Name, t.Index, err)
		}
		all = append(all, p)
	}
	for _, h := range t.Rows {
		p, err := s.rowsPart(h)
		if err != nil {
			return nil, fmt.Errorf("state %q of subtask %d: %w", h.Name, t.Index, err)
		}
		all = append(all, p)
	}
	for i := range all {
		all[i].subtask = t.Index
	}
	return all, nil
}

func (s *Snapshot) keyedParts(h snapshot.KeyedHandle) (all []part, err error) {
	f, err := state.OpenKeyed(state.RestoreFile{Handle: h, Open: s.readerAt})
	if err != nil {
		return nil, err
	}
	states := f.States()
	for _, st := range states {
		p := part{StoredState: st, count: unknown, keys: f.Keys(), bytes: unknown}
		if alone := len(states) == 1 && st.TTL == 0; alone && st.Schema.Kind != state.KindList && st.Schema.Kind != state.KindMap {
			p.count = f.Keys() // every key that is there has a state
		}
		all = append(all, p)
	}
	if n := f.Timers(); n > 0 {
		all = append(all, part{StoredState: state.StoredState{Schema: f.TimerSchema()}, count: n, keys: unknown, bytes: unknown})
	}
	least, most := h.Range.Hashes()
	for i := range all {
		name := all[i].Schema.Name
		all[i].rows = func(within state.Hashes) iter.Seq2[state.Row, error] {
			within.Least, within.Most = max(within.Least, least), min(within.Most, most)
			return f.Rows(name, within)
		}
	}
	return all, nil
}

func (s *Snapshot) listPart(h snapshot.ListHandle) (p part, err error) {
	l, err := state.OpenList(h, s.readerAt)
	if err != nil {
		return p, err
	}
	p = part{StoredState: l.State(), mode: h.Mode, count: int64(len(h.Offsets)), keys: unknown, bytes: l.Bytes()}
	p.rows = func(state.Hashes) iter.Seq2[state.Row, error] { return l.Rows() }
	return p, nil
}

func (s *Snapshot) rowsPart(h snapshot.RowsHandle) (p part, err error) {
	f, err := s.openRows(h)
	if err != nil {
		return p, err
	}
	p = part{StoredState: f.State(), mode: h.Mode, count: h.Count, keys: unknown, bytes: h.Size}
	p.rows = func(within state.Hashes) iter.Seq2[state.Row, error] {
		if !h.Keyed {
			return f.ScanList()
		}
		least, most := h.Range.Hashes()
		within.Least, within.Most = max(within.Least, least), min(within.Most, most)
		return f.ScanKeyed(within)
	}
	return p, nil
}

// openRows opens a file of rows by its index.
func (s *Snapshot) openRows(h snapshot.RowsHandle) (*state.RowsFile, error) {
	index, err := s.bytes(h.Index)
	if err != nil {
		return nil, err
	}
	r, err := s.reader(h.Handle)
	if err != nil {
		return nil, err
	}
	f, err := state.OpenRows(r, h.Size, index)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s by its index %s: %w", h.File, h.Index.File, err)
	case f.State().Schema.Name != h.Name:
		return nil, fmt.Errorf("%w: %s is of state %q", state.ErrCorrupt, h.File, f.State().Schema.Name)
	}
	return f, nil
}
