package state

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// What follows reads stored state without the program that wrote it: by the schemas that stand in the files. Whatever the files are,
// native or canonical, it comes out as the rows that docs/format/savepoint.md describes, and in their order. So there is one way to show a
// state, and one to write it as a canonical savepoint.
//
// A native file has its entries in pages, in the order of the pages' ranges of hashes. What is left to do is to order those of one page; or of
// one list of pages, where more keys than a page holds have one hash. So a scan holds one block of the file and its own page, however large
// the state is.

// Row is one value, element of a list, entry of a map, or timer. Its bytes are those of the schemas, and are valid until the next row.
type Row struct {
	// Hash and Key are those of the key, where there is one. The hash of a timer is its own.
	Hash uint64
	Key  []byte
	// Index is the place in its list.
	Index  int64
	MapKey []byte
	Value  []byte
	// Written is when something was written that has a time to live, in nanoseconds of processing time since the Unix epoch.
	Written int64
	// At is when a timer fires, Event its kind.
	At    base.EventTime
	Event bool
}

// StoredState is a state as it is stored.
type StoredState struct {
	Schema snapshot.StateSchema
	// Stamped: rows say when they were written, because the state has a time to live.
	Stamped bool
	// TTL is the time to live; 0: there is none, or the file does not say it.
	TTL time.Duration
}

// StoredKeyed is the keyed state of one old subtask. It is for one goroutine. What had expired when the snapshot was taken is not in it,
// also where it still stands in a page of an older file.
type StoredKeyed struct {
	now     int64 // when the snapshot was taken; 0: nothing that had expired is in the file
	from    RestoreFile
	file    *storedKeyed
	key     *codec.Type
	columns []storedColumn
}

// OpenKeyed reads what the file says of itself: types, and where the entries are.
func OpenKeyed(from RestoreFile) (*StoredKeyed, error) {
	f, err := from.open()
	if err != nil {
		return nil, err
	}
	s := &StoredKeyed{now: f.moment, from: from, file: f}
	if s.key, err = keyType(f.key); err != nil {
		return nil, err
	}
	for _, c := range f.columns {
		column, err := newStoredColumn(c, f.key)
		if err != nil {
			return nil, err
		}
		s.columns = append(s.columns, column)
	}
	return s, nil
}

// keyType is the type of keys, by which a page is cut into them.
func keyType(schema string) (*codec.Type, error) {
	t, err := codec.TypeOf(schema)
	if err != nil {
		return nil, fmt.Errorf("%w: the keys: %w", ErrCorrupt, err)
	}
	return t, nil
}

// States are the states by key, without the timers.
func (s *StoredKeyed) States() (all []StoredState) {
	for _, c := range s.columns {
		all = append(all, c.StoredState)
	}
	return all
}

// TimerSchema is what the timers are stored as.
func (s *StoredKeyed) TimerSchema() snapshot.StateSchema {
	return snapshot.StateSchema{Name: timersName, Kind: KindTimers, Key: s.file.key}
}

// Keys is the number of keys, and Timers that of timers, as the file says without its pages.
func (s *StoredKeyed) Keys() int64 { return s.file.entries(tableKeys) }

// Timers is the number of timers of both kinds.
func (s *StoredKeyed) Timers() int64 {
	return s.file.entries(tableProcessing) + s.file.entries(tableEvent)
}

// Hashes is a range of hashes, both ends included.
type Hashes struct{ Least, Most uint64 }

// AllHashes is the range of all.
var AllHashes = Hashes{0, ^uint64(0)}

func (r Hashes) has(h uint64) bool { return r.Least <= h && h <= r.Most }

// Rows are the rows of a state whose hashes are within a range; of timers by the name that they have among the schemas. An error is the last
// that comes.
func (s *StoredKeyed) Rows(name string, within Hashes) iter.Seq2[Row, error] {
	if name == timersName {
		return s.timers(within)
	}
	i := slices.IndexFunc(s.columns, func(c storedColumn) bool { return c.Schema.Name == name })
	if i < 0 {
		return failed(fmt.Errorf("state %q is not in the file", name))
	}
	return func(yield func(Row, error) bool) {
		c := &s.columns[i]
		for run, err := range s.runs(tableKeys, within) {
			var more bool
			if err == nil {
				more, err = c.rows(run, i, s.now, yield)
			}
			if err != nil {
				yield(Row{}, fmt.Errorf("state %q: %w", name, err))
			}
			if err != nil || !more {
				return
			}
		}
	}
}

// failed is a sequence that is only an error.
func failed(err error) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) { yield(Row{}, err) }
}

// Check reads everything, and tells the first fault.
func (s *StoredKeyed) Check() error {
	for table := range tables {
		for run, err := range s.runs(table, AllHashes) {
			if err != nil {
				return err
			}
			if table != tableKeys {
				continue
			}
			for i, c := range s.columns {
				for _, p := range run.pages {
					if _, err := c.cut(p.columns[i], len(p.keys)); err != nil {
						return fmt.Errorf("state %q: %w", c.Schema.Name, err)
					}
				}
			}
		}
	}
	return nil
}

// timers are the rows of both tables, merged.
func (s *StoredKeyed) timers(within Hashes) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		var next [2]func() (timerRow, error, bool)
		var heads [2]timerRow
		var have [2]bool
		for i := range next {
			var stop func()
			next[i], stop = iter.Pull2(s.timersOf(tableProcessing+i, within))
			defer stop()
		}
		for i := -1; ; {
			for j := range next { // at first both, then the one that was given out
				if i >= 0 && i != j {
					continue
				}
				var err error
				if heads[j], err, have[j] = next[j](); err != nil {
					yield(Row{}, err)
					return
				}
			}
			i = 0
			switch {
			case !have[0] && !have[1]:
				return
			case !have[0], have[1] && heads[1].compare(&heads[0]) < 0:
				i = 1
			}
			if !yield(heads[i].Row, nil) {
				return
			}
		}
	}
}

// timerRow is a timer, and what it is ordered by.
type timerRow struct {
	Row
	canonical []byte
}

func (a *timerRow) compare(b *timerRow) int {
	switch {
	case a.Hash < b.Hash:
		return -1
	case a.Hash > b.Hash:
		return 1
	}
	return bytes.Compare(a.canonical, b.canonical)
}

// timersOf are the timers of one table.
func (s *StoredKeyed) timersOf(table int, within Hashes) iter.Seq2[timerRow, error] {
	return func(yield func(timerRow, error) bool) {
		for run, err := range s.runs(table, within) {
			if err != nil {
				yield(timerRow{}, fmt.Errorf("timers: %w", err))
				return
			}
			for _, e := range run.order {
				r := timerRow{Row{Hash: e.hash, Key: e.page.keys[e.n], At: e.page.times[e.n], Event: table == tableEvent}, run.canonical(e)}
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// runs are the entries of a table, a page at a time, or all pages of one hash. A run is valid until the next.
func (s *StoredKeyed) runs(table int, within Hashes) iter.Seq2[*storedRun, error] {
	return func(yield func(*storedRun, error) bool) {
		run := &storedRun{key: s.key, timers: table != tableKeys}
		first := uint64(0)
		for p, err := range s.pages(table, within) {
			if err != nil {
				yield(nil, err)
				return
			}
			if prefix := p.prefix(); len(run.pages) > 0 && (prefix != first || p.depth < 64) {
				if prefix <= first {
					yield(nil, corrupt("its pages are out of order"))
					return
				}
				if run.sort(); !yield(run, nil) {
					return
				}
				run.clear()
			}
			first = p.prefix()
			run.add(p, within)
		}
		if len(run.pages) > 0 {
			run.sort()
			yield(run, nil)
		}
	}
}

// pages are those pages of a table that may have hashes within the range. Each scan reads the files by windows of its own, for two of them
// may go on side by side; and each page is a copy, for it is still wanted when the next one has been read.
func (s *StoredKeyed) pages(table int, within Hashes) iter.Seq2[*storedPage, error] {
	return func(yield func(*storedPage, error) bool) {
		columns := len(s.columns)
		if table != tableKeys {
			columns = 0
		}
		file, err := s.from.open()
		if err != nil {
			yield(nil, err)
			return
		}
		err = file.pages(table, within.Least, within.Most, func(from storedPages) error {
			for src := bytes.Clone(from.bytes); len(src) > 0; {
				p, rest, err := s.parsePage(src, columns, table != tableKeys)
				if err != nil {
					return err
				}
				if h := p.prefix(); h < from.least || h > from.most {
					return corrupt("a page lies among those of another range")
				}
				if !yield(p, nil) {
					return errStopped
				}
				src = rest
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// errStopped ends a loop over pages that wants no more.
var errStopped = errors.New("stopped")
