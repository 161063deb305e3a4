package state

import (
	"bytes"
	"encoding/binary"
	"iter"
	"slices"
	"time"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/avrofile"
)

// The columns that rows begin with, and those that time stands in. A hash is a uint64 as the codec writes one: big-endian, so
// that its bytes are in the order of the rows.
const (
	hashType    = `{"type":"fixed","name":"weir.uint64","size":8}`
	instantType = `{"type":"long","logicalType":"timestamp-nanos"}`
)

// Rows are the states of the snapshot in the canonical format: one for each that is declared, also where no key has it, and
// one for the timers, if there are any.
func (s *KeyedSnapshot) Rows() (all []*Rows) {
	for i, c := range s.columns {
		r := &Rows{schema: s.schemas[i], keyed: true, ttl: c.common().spec.TTL}
		r.columns = rowColumns(r.schema, r.ttl)
		r.write = func(f *avrofile.Writer) error { return s.writeColumn(f, c) }
		all = append(all, r)
	}
	if s.views[tableProcessing].entries+s.views[tableEvent].entries > 0 {
		schema := s.schemas[len(s.schemas)-1]
		all = append(all, &Rows{schema: schema, columns: rowColumns(schema, 0), keyed: true, write: s.writeTimers})
	}
	return all
}

// rowKeys is how the rows of the entries of a table begin.
type rowKeys interface {
	// rowHashes hashes the entries at the slots in mask.
	rowHashes(p *page, mask bitmap, hs *[slotsPerPage]uint64)
	// appendKey appends the key of an entry, and of a timer the time.
	appendKey(dst []byte, p *page, i uint) ([]byte, error)
	// appendOrder appends bytes by which entries with one hash are ordered.
	appendOrder(dst []byte, p *page, i uint) []byte
}

func (k *Keyed[K]) rowHashes(p *page, mask bitmap, hs *[slotsPerPage]uint64) {
	k.slots.hashes(p, mask, hs)
}

func (a *keyArray[K]) hashes(p *page, mask bitmap, hs *[slotsPerPage]uint64) {
	hash := a.hash
	for m := mask; m != 0; m &= m - 1 {
		i := lowest(m)
		hs[i] = hash(*a.at(p, i))
	}
}

func (k *Keyed[K]) appendKey(dst []byte, p *page, i uint) ([]byte, error) {
	return appendOne(dst, k.codec.Codec(), k.slots.at(p, i))
}

func (k *Keyed[K]) appendOrder(dst []byte, p *page, i uint) []byte {
	return k.codec.AppendCanonical(dst, *k.slots.at(p, i))
}

func (t *Timers[K]) rowHashes(p *page, mask bitmap, hs *[slotsPerPage]uint64) {
	t.set.slots.hashes(p, mask, hs)
}

func (t *Timers[K]) appendKey(dst []byte, p *page, i uint) (_ []byte, err error) {
	x := t.set.slots.at(p, i)
	if dst, err = t.owner.codec.Codec().Append(dst, &x.key); err != nil {
		return nil, err
	}
	return binary.AppendVarint(dst, int64(x.at)), nil
}

func (t *Timers[K]) appendOrder(dst []byte, p *page, i uint) []byte {
	x := t.set.slots.at(p, i)
	dst = t.owner.codec.AppendCanonical(dst, x.key)
	return binary.BigEndian.AppendUint64(dst, uint64(x.at)^1<<63)
}

// appendOne appends a value; an int64, which most keys and counts are, without a call, as appendSlots does.
func appendOne[T any](dst []byte, c *codec.Codec[T], v *T) ([]byte, error) {
	if n, ok := any(v).(*int64); ok {
		return binary.AppendVarint(dst, *n), nil
	}
	return c.Append(dst, v)
}

// rowWriter writes rows that begin alike: with the hash and the key of one entry.
type rowWriter struct {
	file *avrofile.Writer
	hash uint64
	head []byte
}

// enter makes the rows to come those of an entry.
func (w *rowWriter) enter(keys rowKeys, e placed) (err error) {
	w.hash = e.hash
	w.head, err = keys.appendKey(binary.BigEndian.AppendUint64(w.head[:0], e.hash), e.page, e.slot)
	return err
}

// begin is a row that has its hash and key; end takes it back whole.
func (w *rowWriter) begin() []byte        { return append(w.file.Buffer(), w.head...) }
func (w *rowWriter) end(row []byte) error { return w.file.Add(row, w.hash) }

// appendExpiry appends when something expires that was written at stamp. The sum wraps round where it is too large, in the
// year 2262: so the stamp can be had again.
func appendExpiry(row []byte, stamp int64, ttl time.Duration) []byte {
	return binary.AppendVarint(row, stamp+int64(ttl))
}

// writeColumn writes the rows of one state.
func (s *KeyedSnapshot) writeColumn(f *avrofile.Writer, c column) error {
	w, keys := rowWriter{file: f}, s.rows[tableKeys]
	for run := range s.runs(tableKeys, func(p *page) bitmap { return c.living(p, p.live, s.now) }) {
		for _, e := range run {
			if err := w.enter(keys, e); err != nil {
				return err
			}
			if err := c.appendRows(&w, e.page, e.slot, s.now); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeTimers writes the rows of all timers: those of both tables, merged.
func (s *KeyedSnapshot) writeTimers(f *avrofile.Writer) error {
	w := rowWriter{file: f}
	var next [2]func() ([]placed, bool)
	var left [2][]placed // of the run at hand
	for i := range next {
		var stop func()
		next[i], stop = iter.Pull(s.runs(tableProcessing+i, func(p *page) bitmap { return p.live }))
		defer stop()
	}
	for {
		for i := range left {
			if len(left[i]) == 0 {
				left[i], _ = next[i]()
			}
		}
		i := 0
		switch {
		case len(left[0])+len(left[1]) == 0:
			return nil
		case len(left[0]) == 0, len(left[1]) > 0 && compareEntries(s.rows[tableEvent], left[1][0], s.rows[tableProcessing], left[0][0]) < 0:
			i = 1
		}
		if err := w.enter(s.rows[tableProcessing+i], left[i][0]); err != nil {
			return err
		}
		if err := w.end(append(w.begin(), byte(i))); err != nil {
			return err
		}
		left[i] = left[i][1:]
	}
}

// placed is an entry in a page of a view.
type placed struct {
	hash uint64
	page *page
	slot uint
}

// compareEntries orders entries by hash, then key.
func compareEntries(ak rowKeys, a placed, bk rowKeys, b placed) int {
	switch {
	case a.hash < b.hash:
		return -1
	case a.hash > b.hash:
		return 1
	}
	return bytes.Compare(ak.appendOrder(nil, a.page, a.slot), bk.appendOrder(nil, b.page, b.slot))
}

// runs are the entries of a table, in the order of rows. Pages are in the order of their ranges, so what is ordered is the
// entries of one range: of one page, but where a list of pages has one hash. A run is valid until the next.
func (s *KeyedSnapshot) runs(table int, living func(*page) bitmap) iter.Seq[[]placed] {
	return func(yield func([]placed) bool) {
		r := runner{keys: s.rows[table]}
		last := uint64(0)
		for first, p := range s.views[table].pages() {
			if first != last && len(r.run) > 0 {
				if !yield(r.ordered()) {
					return
				}
				r.run = r.run[:0]
			}
			last = first
			r.add(p, living(p))
		}
		if len(r.run) > 0 {
			yield(r.ordered())
		}
	}
}

// runner gathers the entries of one range.
type runner struct {
	keys   rowKeys
	run    []placed
	hashes [slotsPerPage]uint64
	sorted bool // run is
}

// add adds the entries at the slots in mask of p, ordered by hash. What is sorted is one word for each: its hash, with the slot in
// place of the lowest bits, which nearly never decide.
func (r *runner) add(p *page, mask bitmap) {
	r.keys.rowHashes(p, mask, &r.hashes)
	var words [slotsPerPage]uint64
	n := 0
	for m := mask; m != 0; m &= m - 1 {
		i := lowest(m)
		x, j := r.hashes[i]&^(slotsPerPage-1)|uint64(i), n
		for ; j > 0 && x < words[(j-1)%slotsPerPage]; j-- {
			words[j%slotsPerPage] = words[(j-1)%slotsPerPage]
		}
		words[j%slotsPerPage] = x
		n++
	}
	r.sorted = len(r.run) == 0
	for j, x := range words[:n] {
		i := uint(x % slotsPerPage)
		r.run = append(r.run, placed{r.hashes[i], p, i})
		r.sorted = r.sorted && (j == 0 || x/slotsPerPage != words[j-1]/slotsPerPage)
	}
}

// ordered is the run, in its order.
func (r *runner) ordered() []placed {
	if !r.sorted {
		slices.SortFunc(r.run, func(a, b placed) int { return compareEntries(r.keys, a, r.keys, b) })
	}
	return r.run
}
