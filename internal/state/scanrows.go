package state

import (
	"encoding/binary"
	"fmt"
	"iter"
	"time"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/avrofile"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// State is what the file says of its state.
func (f *RowsFile) State() StoredState {
	return StoredState{Schema: f.schema, Stamped: f.ttl > 0, TTL: f.ttl}
}

// ScanKeyed are the rows whose hashes are within a range, of a state by key or of timers. An error is the last that comes.
func (f *RowsFile) ScanKeyed(within Hashes) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		p, err := newRowParser(f)
		if err == nil && p.key == nil {
			err = corrupt("its rows have no keys")
		}
		if err != nil {
			yield(Row{}, err)
			return
		}
		for b, err := range f.Blocks(within.Least) {
			if err != nil {
				yield(Row{}, damaged(err))
				return
			}
			if b.First > within.Most || !p.block(b, within, yield) {
				return
			}
		}
	}
}

// ScanList are all rows of a list of an operator, or of a broadcast map. An error is the last that comes.
func (f *RowsFile) ScanList() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		p, err := newRowParser(f)
		if err == nil && p.key != nil {
			err = corrupt("its rows have keys")
		}
		if err != nil {
			yield(Row{}, err)
			return
		}
		for b, err := range f.Blocks(0) {
			if err != nil {
				yield(Row{}, damaged(err))
				return
			}
			if !p.block(b, AllHashes, yield) {
				return
			}
		}
	}
}

// rowParser cuts blocks into rows.
type rowParser struct {
	kind               string
	key, mapKey, value *codec.Type // nil: there is none
	ttl                time.Duration
	hash               uint64 // of the last row
	number             int64  // of the next row
}

func newRowParser(f *RowsFile) (p *rowParser, err error) {
	p = &rowParser{kind: f.schema.Kind, ttl: f.ttl}
	for _, t := range []struct {
		schema string
		to     **codec.Type
	}{{f.schema.Key, &p.key}, {f.schema.MapKey, &p.mapKey}, {f.schema.Value, &p.value}} {
		if t.schema == "" {
			continue
		}
		if *t.to, err = codec.TypeOf(t.schema); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	}
	if (p.value == nil) != (p.kind == KindTimers) {
		return nil, corrupt("state %q of kind %q has no values, or some", f.schema.Name, f.schema.Kind)
	}
	return p, nil
}

// block calls yield with the rows of a block that are within the range.
func (p *rowParser) block(b avrofile.Block, within Hashes, yield func(Row, error) bool) (more bool) {
	src := b.Rows
	for n := range b.Count {
		var r Row
		var err error
		if r, src, err = p.row(src); err == nil {
			err = p.check(&r, n == 0, b.First)
		}
		if err != nil {
			yield(Row{}, err)
			return false
		}
		p.hash, p.number = r.Hash, p.number+1
		if r.Hash > within.Most || r.Hash >= within.Least && !yield(r, nil) {
			return false
		}
	}
	if len(src) > 0 {
		yield(Row{}, corrupt("a block has %d bytes too many", len(src)))
		return false
	}
	return true
}

// check checks that a row is where it belongs.
func (p *rowParser) check(r *Row, first bool, order uint64) error {
	switch {
	case p.key == nil && first && order != uint64(p.number):
		return corrupt("a block begins with row %d, its index says %d", p.number, order)
	case p.key != nil && first && r.Hash != order:
		return corrupt("a block begins with the hash %016x, its index says %016x", r.Hash, order)
	case r.Hash < p.hash:
		return corrupt("its rows are out of order")
	}
	return nil
}

// row cuts a row off.
func (p *rowParser) row(src []byte) (r Row, rest []byte, err error) {
	if p.key != nil {
		if src, err = p.head(&r, src); err != nil {
			return r, nil, err
		}
	}
	if p.kind == KindTimers {
		return p.timer(r, src)
	}
	if p.kind == KindList {
		if r.Index, src, err = readLong(src); err != nil {
			return r, nil, err
		}
	}
	if p.mapKey != nil {
		if r.MapKey, src, err = cutValue(p.mapKey, src); err != nil {
			return r, nil, err
		}
	}
	if r.Value, src, err = cutValue(p.value, src); err != nil {
		return r, nil, err
	}
	r.Written, rest, err = rowForm{ttl: p.ttl}.stamp(src)
	if p.key == nil {
		r.Index = p.number
	}
	return r, rest, err
}

// head cuts off hash and key, and checks that they belong together.
func (p *rowParser) head(r *Row, src []byte) (rest []byte, err error) {
	if len(src) < 8 {
		return nil, errShort
	}
	r.Hash = binary.BigEndian.Uint64(src)
	src = src[8:]
	h, rest, err := p.key.Hash(src)
	if err != nil {
		return nil, fmt.Errorf("%w: a stored key: %w", ErrCorrupt, err)
	}
	r.Key = src[:len(src)-len(rest)]
	if p.kind != KindTimers && h != r.Hash {
		return nil, corrupt("a row has the hash %016x, and a key with the hash %016x", r.Hash, h)
	}
	return rest, nil
}

// timer cuts off the rest of a timer.
func (p *rowParser) timer(r Row, src []byte) (_ Row, rest []byte, err error) {
	at, src, err := readLong(src)
	switch {
	case err != nil:
		return r, nil, err
	case len(src) == 0:
		return r, nil, errShort
	case src[0] > 1:
		return r, nil, corrupt("a timer of the kind %d", src[0])
	}
	r.At, r.Event = base.EventTime(at), src[0] == 1
	h, _, err := p.key.Hash(r.Key)
	if own := codec.Namespaced(h, uint64(at)); err == nil && own != r.Hash {
		err = corrupt("a timer has the hash %016x, should have %016x", r.Hash, own)
	}
	return r, src[1:], err
}

// CopyRows are rows to be written that were read from another file: a state by key, or else a list that is dealt by mode.
func CopyRows(s StoredState, mode snapshot.Mode, rows iter.Seq2[Row, error]) *Rows {
	r := &Rows{schema: s.Schema, columns: rowColumns(s.Schema, s.TTL), mode: mode, keyed: s.Schema.Key != "", ttl: s.TTL}
	r.write = func(f *avrofile.Writer) error {
		n := uint64(0)
		for row, err := range rows {
			if err != nil {
				return err
			}
			order := n
			if r.keyed {
				order = row.Hash
			}
			if err := f.Add(row.append(f.Buffer(), s), order); err != nil {
				return err
			}
			n++
		}
		return nil
	}
	return r
}

// append appends the row as a file of rows has it.
func (r *Row) append(dst []byte, s StoredState) []byte {
	if s.Schema.Key != "" {
		dst = append(binary.BigEndian.AppendUint64(dst, r.Hash), r.Key...)
	}
	switch s.Schema.Kind {
	case KindTimers:
		dst = binary.AppendVarint(dst, int64(r.At))
		return append(dst, map[bool]byte{true: 1}[r.Event])
	case KindList:
		dst = binary.AppendVarint(dst, r.Index)
	}
	dst = append(append(dst, r.MapKey...), r.Value...)
	if s.TTL > 0 {
		dst = appendExpiry(dst, r.Written, s.TTL)
	}
	return dst
}
