package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
)

// storedPage is a page of a file, cut into keys and columns.
type storedPage struct {
	depth   uint8
	keys    [][]byte
	hashes  []uint64
	times   []base.EventTime // of timers
	columns [][]byte
}

// prefix is the first hash of its range.
func (p *storedPage) prefix() uint64 { return p.hashes[0] &^ lowBits(p.depth) }

// parsePage cuts the page off that src begins with.
func (s *StoredKeyed) parsePage(src []byte, columns int, timers bool) (p *storedPage, rest []byte, err error) {
	if len(src) < 2 || src[0] > 64 || src[1] == 0 || src[1] > slotsPerPage {
		return nil, nil, corrupt("a page's head makes no sense")
	}
	p = &storedPage{depth: src[0]}
	n := int(src[1])
	src = src[2:]
	for range n {
		if src, err = s.parseKey(p, src, timers); err != nil {
			return nil, nil, err
		}
	}
	for range columns {
		if len(src) < 4 {
			return nil, nil, errShort
		}
		length := uint64(binary.LittleEndian.Uint32(src))
		if length > uint64(len(src)-4) {
			return nil, nil, errShort
		}
		p.columns = append(p.columns, src[4:4+length])
		src = src[4+length:]
	}
	return p, src, nil
}

// parseKey cuts one key off, or one timer.
func (s *StoredKeyed) parseKey(p *storedPage, src []byte, timers bool) (rest []byte, err error) {
	h, rest, err := s.key.Hash(src)
	if err != nil {
		return nil, fmt.Errorf("%w: a stored key: %w", ErrCorrupt, err)
	}
	p.keys = append(p.keys, src[:len(src)-len(rest)])
	if timers {
		if len(rest) < 8 {
			return nil, errShort
		}
		at := binary.LittleEndian.Uint64(rest)
		p.times = append(p.times, base.EventTime(at))
		h, rest = codec.Namespaced(h, at), rest[8:]
	}
	if p.hashes = append(p.hashes, h); (h^p.hashes[0])&^lowBits(p.depth) != 0 {
		return nil, corrupt("a page has keys of another")
	}
	return rest, nil
}

// storedRun is the entries of a page, or of all pages of one hash, in the order of rows.
type storedRun struct {
	key    *codec.Type
	timers bool
	pages  []*storedPage
	order  []storedEntry
}

type storedEntry struct {
	hash uint64
	page *storedPage
	n    int // in the page
}

func (r *storedRun) clear() {
	r.pages = r.pages[:0]
	r.order = r.order[:0]
}

// add adds those entries of a page that are within the range.
func (r *storedRun) add(p *storedPage, within Hashes) {
	r.pages = append(r.pages, p)
	for n, h := range p.hashes {
		if within.has(h) {
			r.order = append(r.order, storedEntry{h, p, n})
		}
	}
}

func (r *storedRun) sort() {
	slices.SortFunc(r.order, func(a, b storedEntry) int {
		switch {
		case a.hash < b.hash:
			return -1
		case a.hash > b.hash:
			return 1
		}
		return bytes.Compare(r.canonical(a), r.canonical(b))
	})
}

// canonical is what entries of one hash are ordered by: the key's canonical bytes, and of timers the time.
func (r *storedRun) canonical(e storedEntry) []byte {
	b, _, _ := r.key.AppendCanonical(nil, e.page.keys[e.n]) // it was read before
	if r.timers {
		b = binary.BigEndian.AppendUint64(b, uint64(e.page.times[e.n])^1<<63)
	}
	return b
}

// storedColumn is a state by key, in a file.
type storedColumn struct {
	StoredState
	value, mapKey *codec.Type
}

func newStoredColumn(c fileColumn, key string) (s storedColumn, err error) {
	s.Schema, s.Stamped, s.TTL = c.schema, c.stamped, c.ttl
	s.Schema.Key = key
	s.mapKey, s.value, err = typesOf(c.schema.MapKey, c.schema.Value)
	if err != nil {
		return s, fmt.Errorf("%w: state %q: %w", ErrCorrupt, c.schema.Name, err)
	}
	if (s.mapKey != nil) != (c.schema.Kind == KindMap) {
		return s, corrupt("state %q of kind %q has keys, or none", c.schema.Name, c.schema.Kind)
	}
	return s, nil
}

// typesOf are the types of the keys of a map, if there are any, and of its values.
func typesOf(mapKey, value string) (k, v *codec.Type, err error) {
	if mapKey != "" {
		if k, err = codec.TypeOf(mapKey); err != nil {
			return nil, nil, err
		}
	}
	v, err = codec.TypeOf(value)
	return k, v, err
}

// rows calls yield with the rows of a run, which are column i of its pages. more: yield wants more of them.
func (c *storedColumn) rows(run *storedRun, i int, now int64, yield func(Row, error) bool) (more bool, err error) {
	values := map[*storedPage]*[slotsPerPage][]byte{}
	for _, p := range run.pages {
		if values[p], err = c.cut(p.columns[i], len(p.keys)); err != nil {
			return false, err
		}
	}
	for _, e := range run.order {
		src := values[e.page][e.n]
		if src == nil {
			continue
		}
		if more, err = c.entry(Row{Hash: e.hash, Key: e.page.keys[e.n]}, src, now, yield); err != nil || !more {
			return more, err
		}
	}
	return true, nil
}

// cut cuts a column of a page into the values of its keys; nil: it has none.
func (c *storedColumn) cut(src []byte, keys int) (*[slotsPerPage][]byte, error) {
	values := new([slotsPerPage][]byte)
	if len(src) == 0 {
		return values, nil
	}
	if len(src) < 4 {
		return nil, errShort
	}
	have := binary.LittleEndian.Uint32(src)
	if have&^lowestBits(keys) != 0 {
		return nil, corrupt("a column has values of no key")
	}
	src = src[4:]
	for n := range keys {
		if have>>n&1 == 0 {
			continue
		}
		rest, err := c.skip(src)
		if err != nil {
			return nil, err
		}
		values[n] = src[: len(src)-len(rest) : len(src)-len(rest)]
		if values[n] == nil {
			values[n] = []byte{}
		}
		src = rest
	}
	if len(src) > 0 {
		return nil, corrupt("%d bytes too many", len(src))
	}
	return values, nil
}

// skip passes over all that one key has.
func (c *storedColumn) skip(src []byte) (rest []byte, err error) {
	n := 1
	if c.Schema.Kind == KindList || c.Schema.Kind == KindMap {
		if n, src, err = readCount(src, c.weightless()); err != nil {
			return nil, err
		}
	}
	for range n {
		if _, src, err = c.read(src); err != nil {
			return nil, err
		}
	}
	return src, nil
}

// weightless tells whether an element may have no bytes at all.
func (c *storedColumn) weightless() bool {
	return c.Schema.Kind == KindList && !c.Stamped && c.value.Weightless()
}

// entry calls yield with the rows of one key.
func (c *storedColumn) entry(head Row, src []byte, now int64, yield func(Row, error) bool) (more bool, err error) {
	n := 1
	if c.Schema.Kind == KindList || c.Schema.Kind == KindMap {
		if n, src, err = readCount(src, c.weightless()); err != nil {
			return false, err
		}
	}
	index := int64(0)
	for range n {
		var e Row
		if e, src, err = c.read(src); err != nil {
			return false, err
		}
		if c.TTL > 0 && now != 0 && expired(e.Written, c.TTL, now) {
			continue
		}
		e.Hash, e.Key = head.Hash, head.Key
		if c.Schema.Kind == KindList {
			e.Index = index
			index++
		}
		if !yield(e, nil) {
			return false, nil
		}
	}
	return true, nil
}

// read reads one value, element or entry.
func (c *storedColumn) read(src []byte) (r Row, rest []byte, err error) {
	if c.Stamped {
		if r.Written, src, err = readStamp(src); err != nil {
			return r, nil, err
		}
	}
	if c.mapKey != nil {
		if r.MapKey, src, err = cutValue(c.mapKey, src); err != nil {
			return r, nil, err
		}
	}
	r.Value, rest, err = cutValue(c.value, src)
	return r, rest, err
}

// cutValue cuts a value of a type off.
func cutValue(t *codec.Type, src []byte) (value, rest []byte, err error) {
	if rest, err = t.Skip(src); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return src[:len(src)-len(rest)], rest, nil
}
