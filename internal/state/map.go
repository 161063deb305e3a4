package state

import (
	"encoding/binary"
	"iter"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/snapshot"
)

// Map is a state of an ordered map per key. An empty map is no state.
type Map[MK comparable, V any] struct{ col mapState[MK, V] }

// mapState is a mapColumn of either kind of notes.
type mapState[MK comparable, V any] interface {
	column
	get(k MK) (V, bool)
	put(k MK, v V)
	delete(k MK)
	all(yield func(MK, V) bool)
	size() int
	clear()
}

// Bind declares the state in t.
func (m *Map[MK, V]) Bind(t Table, s Spec) error {
	keys, values, order, err := mapCodecs[MK, V]()
	if err != nil {
		return err
	}
	clones := !values.Flat() && !s.Immutable
	if s.TTL > 0 || clones {
		m.col = newMapColumn[MK, V, tending](keys, values, order, s, clones)
	} else {
		m.col = newMapColumn[MK, V, struct{}](keys, values, order, s, clones)
	}
	return m.col.common().bindTo(t, s, m.col)
}

func mapCodecs[MK comparable, V any]() (keys *codec.Key[MK], values *codec.Codec[V], o order[MK], err error) {
	if keys, err = codec.KeyFor[MK](); err != nil {
		return nil, nil, nil, err
	}
	if values, err = codec.For[V](); err != nil {
		return nil, nil, nil, err
	}
	o, err = orderOf[MK]()
	return keys, values, o, err
}

// Get is the value at k, and whether there is one.
func (m *Map[MK, V]) Get(k MK) (V, bool) { return m.bound().get(k) }

// Put stores v at k.
func (m *Map[MK, V]) Put(k MK, v V) { m.bound().put(k, v) }

// Delete removes what is at k.
func (m *Map[MK, V]) Delete(k MK) { m.bound().delete(k) }

// All yields the entries in the order of their keys, as they are when the loop begins: the loop may put and delete.
func (m *Map[MK, V]) All() iter.Seq2[MK, V] {
	return func(yield func(MK, V) bool) { m.bound().all(yield) }
}

// Len is the number of entries.
func (m *Map[MK, V]) Len() int { return m.bound().size() }

// Clear removes the map.
func (m *Map[MK, V]) Clear() { m.bound().clear() }

func (m *Map[MK, V]) bound() mapState[MK, V] {
	if m.col == nil {
		panic(&UsageError{Problem: unbound})
	}
	return m.col
}

// mapColumn is the column of a Map: a tree per key.
type mapColumn[MK comparable, V any, N note] struct {
	declared
	trees[MK, V, N]
	keys    *codec.Key[MK]
	values  *codec.Codec[V]
	stored  entryReader[MK, V]
	array   array[*tree[MK, V, N]]
	looping *tree[MK, V, N] // read by a loop over All: not to be written
}

func newMapColumn[MK comparable, V any, N note](keys *codec.Key[MK], values *codec.Codec[V], o order[MK], s Spec, clones bool) *mapColumn[MK, V, N] {
	c := &mapColumn[MK, V, N]{keys: keys, values: values}
	c.order, c.ttl = o, s.TTL
	if clones {
		c.clone = values.Clone
	}
	return c
}

func (c *mapColumn[MK, V, N]) schema() snapshot.StateSchema {
	return snapshot.StateSchema{
		Name: c.spec.Name, Kind: KindMap, MapKey: c.keys.Codec().Schema(), Value: c.values.Schema(),
	}
}

func (c *mapColumn[MK, V, N]) readAs(stored snapshot.StateSchema) error {
	return c.stored.as(stored, c.keys, c.values)
}

func (c *mapColumn[MK, V, N]) layOut() ([]part, []bitsRequest) { return c.request(true, &c.array) }
func (c *mapColumn[MK, V, N]) opened()                         {}

// moment is now, for the tree functions.
func (c *mapColumn[MK, V, N]) moment() (m moment) {
	m.epoch, m.pinned = c.t.cur.epoch, c.t.pinned
	if c.ttl > 0 {
		m.now = c.now()
	}
	return m
}

// tree is the current key's, to be read; nil if it has none.
func (c *mapColumn[MK, V, N]) tree() *tree[MK, V, N] {
	if !c.present() {
		return nil
	}
	return *c.place()
}

func (c *mapColumn[MK, V, N]) place() **tree[MK, V, N] {
	cur := &c.t.cur
	return c.array.at(cur.page, uint(cur.slot))
}

// ownTree is the current key's tree, to be written; a new one if it has none.
func (c *mapColumn[MK, V, N]) ownTree() *tree[MK, V, N] {
	c.hold()
	place := c.place()
	owned := c.takeOwnership()
	switch {
	case *place == nil:
		*place = c.make()
	case !owned || *place == c.looping:
		*place = (*place).Copy()
	}
	return *place
}

func (c *mapColumn[MK, V, N]) get(k MK) (v V, ok bool) {
	t := c.tree()
	if t == nil {
		return v, false
	}
	if c.clone != nil {
		t = c.ownTree()
	}
	v, ok, dead := c.trees.get(t, k, c.moment())
	if dead {
		c.delete(k)
	}
	return v, ok
}

func (c *mapColumn[MK, V, N]) put(k MK, v V) {
	c.mustBeKeyed()
	if err := c.keys.Valid(k); err != nil {
		panic(&UsageError{State: c.spec.Name, Problem: err.Error()})
	}
	c.trees.put(c.ownTree(), k, v, c.moment())
}

func (c *mapColumn[MK, V, N]) delete(k MK) {
	t := c.tree()
	if t == nil {
		return
	}
	e := entry[MK, V, N]{key: k}
	if _, ok := t.Get(e); !ok {
		return
	}
	if t = c.ownTree(); t.Len() == 1 {
		c.clear()
		return
	}
	t.Delete(e)
}

func (c *mapColumn[MK, V, N]) all(yield func(MK, V) bool) {
	t := c.tree()
	if t == nil {
		return
	}
	m := c.moment()
	if c.clone != nil {
		t = c.ownTree()
		c.ownAll(t, m)
	}
	outer := c.looping
	c.looping = t
	defer func() { c.looping = outer }()
	t.Scan(func(e entry[MK, V, N]) bool {
		return c.dead(&e, m.now) || yield(e.key, e.value)
	})
}

func (c *mapColumn[MK, V, N]) size() int {
	if t := c.tree(); t != nil {
		return c.countLiving(t, c.moment().now)
	}
	return 0
}

func (c *mapColumn[MK, V, N]) living(p *page, mask bitmap, now int64) bitmap {
	mask &= *word(p, c.has)
	if c.ttl == 0 {
		return mask
	}
	for m := mask; m != 0; m &= m - 1 {
		if i := lowest(m); !c.anyLiving(*c.array.at(p, i), now) {
			mask &^= 1 << i
		}
	}
	return mask
}

func (c *mapColumn[MK, V, N]) encode(dst []byte, p *page, mask bitmap, now int64) (_ []byte, err error) {
	for m := mask; m != 0; m &= m - 1 {
		if dst, err = c.encodeTree(dst, *c.array.at(p, lowest(m)), now); err != nil {
			return nil, c.fail(err)
		}
	}
	return dst, nil
}

func (c *mapColumn[MK, V, N]) encodeTree(dst []byte, t *tree[MK, V, N], now int64) (_ []byte, err error) {
	dst = binary.AppendUvarint(dst, uint64(c.countLiving(t, now)))
	keys := c.keys.Codec()
	t.Scan(func(e entry[MK, V, N]) bool {
		if c.dead(&e, now) {
			return true
		}
		if c.ttl > 0 {
			dst = appendStamp(dst, tend(&e).stamp)
		}
		if dst, err = keys.Append(dst, &e.key); err == nil {
			dst, err = c.values.Append(dst, &e.value)
		}
		return err == nil
	})
	return dst, err
}

func (c *mapColumn[MK, V, N]) decode(src []byte, p *page, slots []uint8, from encoding) (_ []byte, gone bitmap, err error) {
	for _, i := range slots {
		t := c.make()
		if src, err = c.decodeTree(src, t, from); err != nil {
			return nil, 0, c.fail(err)
		}
		*c.array.at(p, uint(i)) = t
		if t.Len() == 0 {
			gone |= 1 << i
		}
	}
	return src, gone, nil
}

func (c *mapColumn[MK, V, N]) decodeTree(src []byte, t *tree[MK, V, N], from encoding) (_ []byte, err error) {
	n, src, err := readCount(src, false)
	if err != nil {
		return nil, err
	}
	for range n {
		m := moment{now: from.now, epoch: c.t.cur.epoch}
		var k MK
		var v V
		if from.stamped {
			if m.now, src, err = readStamp(src); err != nil {
				return nil, err
			}
		}
		if k, v, src, err = c.stored.read(src); err != nil {
			return nil, err
		}
		if !from.stamped || !from.leftOut(m.now) {
			c.trees.put(t, k, v, m)
		}
	}
	return src, nil
}

func (c *mapColumn[MK, V, N]) appendRows(w *rowWriter, p *page, i uint, now int64) (err error) {
	keys := c.keys.Codec()
	(*c.array.at(p, i)).Scan(func(e entry[MK, V, N]) bool {
		if c.dead(&e, now) {
			return true
		}
		row := w.begin()
		if row, err = keys.Append(row, &e.key); err != nil {
			return false
		}
		if row, err = c.values.Append(row, &e.value); err != nil {
			return false
		}
		if c.ttl > 0 {
			row = appendExpiry(row, tend(&e).stamp, c.ttl)
		}
		err = w.end(row)
		return err == nil
	})
	return err
}

// readRow reads an entry.
func (c *mapColumn[MK, V, N]) readRow(src []byte, form rowForm) (k MK, v V, stamp int64, rest []byte, err error) {
	if k, v, src, err = c.stored.read(src); err != nil {
		return k, v, 0, nil, err
	}
	stamp, rest, err = form.stamp(src)
	return k, v, stamp, rest, err
}

func (c *mapColumn[MK, V, N]) decodeRow(src []byte, p *page, i uint, form rowForm) ([]byte, error) {
	k, v, stamp, rest, err := c.readRow(src, form)
	if err != nil {
		return nil, err
	}
	t := *c.array.at(p, i)
	if t == nil {
		t = c.make()
		*c.array.at(p, i) = t
	}
	before := t.Len()
	if c.trees.put(t, k, v, moment{now: stamp, epoch: c.t.cur.epoch}); t.Len() == before {
		return nil, corrupt("a map has a key twice")
	}
	return rest, nil
}

func (c *mapColumn[MK, V, N]) skipRow(src []byte, form rowForm) ([]byte, error) {
	_, _, _, rest, err := c.readRow(src, form)
	return rest, err
}
