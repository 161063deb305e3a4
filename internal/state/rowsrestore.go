package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/base"
)

// RestoreRows is Restore for one file of a canonical savepoint. stored are the names of all states that the savepoint has of the
// operator, by which a state that was renamed is told from one that is there beside it.
func (k *Keyed[K]) RestoreRows(f *RowsFile, within base.KeyGroupRange, stored []string) error {
	if err := k.readKeysAs(f.schema.Key); err != nil {
		return err
	}
	within, ok := within.Intersect(k.within)
	d := rowRestorer{file: f, keys: k, table: &k.table}
	d.least, d.most = within.Hashes()
	if f.schema.Kind == KindTimers {
		if !ok {
			return nil
		}
		for i := range k.timers {
			k.timers[i].stale = true
		}
		return d.restore(func(src []byte) ([]byte, error) { return k.restoreTimer(&d, src) })
	}
	c, err := k.matchOne(f.schema, func(name string) bool { return slices.Contains(stored, name) })
	if c == nil || err != nil || !ok {
		return err
	}
	d.column, d.form.ttl = c, f.ttl
	if k.expires {
		d.form.now = k.clock()
	}
	err = d.restore(d.row)
	k.Leave()
	if err != nil {
		return c.common().fail(err)
	}
	return nil
}

// rowForm says how rows end.
type rowForm struct {
	ttl time.Duration // 0: without an expiry time
	now int64         // the stamp to give where there is none
}

// stamp reads when something expires, and gives when it was written.
func (f rowForm) stamp(src []byte) (stamp int64, rest []byte, err error) {
	if f.ttl == 0 {
		return f.now, src, nil
	}
	expires, rest, err := readLong(src)
	return expires - int64(f.ttl), rest, err
}

func readLong(src []byte) (int64, []byte, error) {
	v, n := binary.Varint(src)
	if n <= 0 {
		return 0, nil, errShort
	}
	return v, src[n:], nil
}

// rowRestorer puts the rows of one file whose hashes are in [least, most] into a state that is new but for other files.
//
// Rows of one key follow each other, and the bytes of a key are never the beginning of another's: so whether a row has the key
// of the one before is seen from its bytes, and only the first row of a key is looked up.
type rowRestorer struct {
	file        *RowsFile
	keys        rowSeeker
	table       *table
	column      column
	form        rowForm
	least, most uint64

	hash uint64 // of the last row
	head []byte // its hash and key
	own  bool   // it is in the range, and its key current
}

// rowSeeker is a Keyed of any type of keys.
type rowSeeker interface {
	// seekRow reads a key whose hash is h; enter: it is made current, with an entry that may be written.
	seekRow(src []byte, h uint64, enter bool) (rest []byte, err error)
}

func (k *Keyed[K]) seekRow(src []byte, h uint64, enter bool) ([]byte, error) {
	var key K
	src, err := k.decodeRowKey(src, &key)
	if err != nil {
		return nil, err
	}
	if own := k.slots.hash(key); own != h {
		return nil, corrupt("a row has the hash %016x, and a key with the hash %016x", h, own)
	}
	if enter {
		k.seek(h, key)
		k.ensure()
	}
	return src, nil
}

func (k *Keyed[K]) decodeRowKey(src []byte, key *K) (rest []byte, err error) {
	if rest, err = k.stored.Decode(src, key); err == nil {
		err = k.codec.Valid(*key)
	}
	if err != nil {
		return nil, fmt.Errorf("a stored key: %w", err)
	}
	return rest, nil
}

// restore calls row with the rows from the first that may be in the range to the last that is.
func (d *rowRestorer) restore(row func(src []byte) (rest []byte, err error)) error {
	for b, err := range d.file.Blocks(d.least) {
		if err != nil {
			return damaged(err)
		}
		if b.First > d.most {
			return nil
		}
		src := b.Rows
		for n := range b.Count {
			h, err := d.rowHash(src)
			switch {
			case err != nil:
				return err
			case n == 0 && h != b.First:
				return corrupt("a block begins with the hash %016x, its index says %016x", h, b.First)
			case h > d.most:
				return nil
			}
			if src, err = row(src); err != nil {
				return err
			}
			d.hash = h
		}
		if len(src) > 0 {
			return corrupt("a block has %d bytes too many", len(src))
		}
	}
	return nil
}

// rowHash is the hash of the next row, which is not less than that of the last.
func (d *rowRestorer) rowHash(src []byte) (uint64, error) {
	if len(src) < 8 {
		return 0, errShort
	}
	h := binary.BigEndian.Uint64(src)
	if h < d.hash {
		return 0, corrupt("its rows are out of order")
	}
	return h, nil
}

// row restores the next row.
func (d *rowRestorer) row(src []byte) ([]byte, error) {
	rest, same := bytes.CutPrefix(src, d.head)
	if !same || len(d.head) == 0 {
		var err error
		h := binary.BigEndian.Uint64(src)
		d.own = h >= d.least
		if rest, err = d.keys.seekRow(src[8:], h, d.own); err != nil {
			return nil, err
		}
		d.head = append(d.head[:0], src[:len(src)-len(rest)]...)
	}
	if !d.own {
		return d.column.skipRow(rest, d.form)
	}
	cur := &d.table.cur
	rest, err := d.column.decodeRow(rest, cur.page, uint(cur.slot), d.form)
	if err != nil {
		return nil, err
	}
	*word(cur.page, d.column.common().has) |= cur.bit
	if owned := d.column.common().owned; owned != 0 {
		*word(cur.page, owned) |= cur.bit
	}
	return rest, nil
}

// restoreTimer restores the next row of a file of timers.
func (k *Keyed[K]) restoreTimer(d *rowRestorer, src []byte) (rest []byte, err error) {
	h := binary.BigEndian.Uint64(src)
	var x timer[K]
	if src, err = k.decodeRowKey(src[8:], &x.key); err != nil {
		return nil, err
	}
	at, src, err := readLong(src)
	if err != nil {
		return nil, err
	}
	switch {
	case len(src) == 0:
		return nil, errShort
	case src[0] > 1:
		return nil, corrupt("a timer of the kind %d", src[0])
	}
	x.at = base.EventTime(at)
	set := &k.timers[src[0]].set
	if own := set.slots.hash(x); own != h {
		return nil, corrupt("a timer has the hash %016x, should have %016x", h, own)
	}
	if h < d.least {
		return src[1:], nil
	}
	if set.seek(h, x); set.cur.slot >= 0 {
		return nil, corrupt("a timer was restored already")
	}
	set.ensure()
	return src[1:], nil
}
