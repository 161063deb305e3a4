package state

import (
	"iter"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/snapshot"
)

// BroadcastMap is an ordered map of the subtask that is the same on all subtasks, because all of them make it of the same
// broadcast records. A restore gives each a copy of it.
type BroadcastMap[MK comparable, V any] struct{ m *broadcastMap[MK, V] }

// Bind declares the state in o.
func (b *BroadcastMap[MK, V]) Bind(o *Operator, s Spec) error {
	if o == nil {
		return errUnbound
	}
	keys, values, order, err := mapCodecs[MK, V]()
	if err != nil {
		return err
	}
	b.m = &broadcastMap[MK, V]{o: o, declared: s, keys: keys, values: values, epoch: o.epoch}
	b.m.order = order
	if !values.Flat() && !s.Immutable {
		b.m.clone = values.Clone
	}
	b.m.tree = b.m.make()
	return o.add(b.m)
}

// Get is the value at k, and whether there is one.
func (b *BroadcastMap[MK, V]) Get(k MK) (V, bool) { return b.bound().get(k) }

// Put stores v at k.
func (b *BroadcastMap[MK, V]) Put(k MK, v V) { b.bound().put(k, v) }

// Delete removes what is at k.
func (b *BroadcastMap[MK, V]) Delete(k MK) { b.bound().own().Delete(broadcastEntry[MK, V]{key: k}) }

// All yields the entries in the order of their keys, as they are when the loop begins: the loop may put and delete.
func (b *BroadcastMap[MK, V]) All() iter.Seq2[MK, V] {
	return func(yield func(MK, V) bool) { b.bound().all(yield) }
}

// Len is the number of entries.
func (b *BroadcastMap[MK, V]) Len() int { return b.bound().tree.Len() }

// Clear removes all entries.
func (b *BroadcastMap[MK, V]) Clear() { b.m.bound().clear() }

func (b *BroadcastMap[MK, V]) bound() *broadcastMap[MK, V] { return b.m.bound() }

type broadcastEntry[MK comparable, V any] = entry[MK, V, tending]

// broadcastMap is the map: one tree, copied at the first write of an epoch.
type broadcastMap[MK comparable, V any] struct {
	trees[MK, V, tending]
	o        *Operator
	declared Spec
	keys     *codec.Key[MK]
	values   *codec.Codec[V]
	stored   entryReader[MK, V]
	tree     *tree[MK, V, tending]
	epoch    epoch                 // in which tree was last copied
	looping  *tree[MK, V, tending] // read by a loop over All: not to be written
}

func (m *broadcastMap[MK, V]) bound() *broadcastMap[MK, V] {
	if m == nil {
		panic(&UsageError{Problem: unbound})
	}
	return m
}

// moment says that all older epochs may be read by a snapshot.
func (m *broadcastMap[MK, V]) moment() moment {
	return moment{epoch: m.o.epoch, pinned: m.o.epoch - 1}
}

// own is the tree, to be written.
func (m *broadcastMap[MK, V]) own() *tree[MK, V, tending] {
	if m.epoch != m.o.epoch || m.tree == m.looping {
		m.tree, m.epoch = m.tree.Copy(), m.o.epoch
	}
	return m.tree
}

func (m *broadcastMap[MK, V]) get(k MK) (V, bool) {
	t := m.tree
	if m.clone != nil {
		t = m.own()
	}
	v, ok, _ := m.trees.get(t, k, m.moment())
	return v, ok
}

func (m *broadcastMap[MK, V]) put(k MK, v V) {
	if err := m.keys.Valid(k); err != nil {
		panic(&UsageError{State: m.declared.Name, Problem: err.Error()})
	}
	m.trees.put(m.own(), k, v, m.moment())
}

func (m *broadcastMap[MK, V]) clear() { m.tree, m.epoch = m.make(), m.o.epoch }

func (m *broadcastMap[MK, V]) all(yield func(MK, V) bool) {
	t := m.tree
	if m.clone != nil {
		t = m.own()
		m.ownAll(t, m.moment())
	}
	outer := m.looping
	m.looping = t
	defer func() { m.looping = outer }()
	t.Scan(func(e broadcastEntry[MK, V]) bool { return yield(e.key, e.value) })
}

func (m *broadcastMap[MK, V]) spec() Spec          { return m.declared }
func (m *broadcastMap[MK, V]) mode() snapshot.Mode { return snapshot.Broadcast }
func (m *broadcastMap[MK, V]) schema() snapshot.StateSchema {
	return snapshot.StateSchema{
		Name: m.declared.Name, Kind: KindBroadcast, MapKey: m.keys.Codec().Schema(), Value: m.values.Schema(),
	}
}

func (m *broadcastMap[MK, V]) freeze() frozen {
	return frozenMap[MK, V]{keys: m.keys.Codec(), values: m.values, tree: m.tree}
}

func (m *broadcastMap[MK, V]) readAs(stored snapshot.StateSchema) error {
	return m.stored.as(stored, m.keys, m.values)
}

func (m *broadcastMap[MK, V]) decode(src []byte) (rest []byte, err error) {
	k, v, rest, err := m.stored.read(src)
	if err == nil {
		m.put(k, v)
	}
	return rest, err
}

func (m *broadcastMap[MK, V]) skip(src []byte) (rest []byte, err error) {
	_, _, rest, err = m.stored.read(src)
	return rest, err
}

type frozenMap[MK comparable, V any] struct {
	keys   *codec.Codec[MK]
	values *codec.Codec[V]
	tree   *tree[MK, V, tending]
}

func (f frozenMap[MK, V]) size() int { return f.tree.Len() }

func (f frozenMap[MK, V]) encode(dst []byte, yield func([]byte) []byte) (err error) {
	f.tree.Scan(func(e broadcastEntry[MK, V]) bool {
		if dst, err = f.keys.Append(dst, &e.key); err != nil {
			return false
		}
		if dst, err = f.values.Append(dst, &e.value); err != nil {
			return false
		}
		dst = yield(dst)
		return true
	})
	return err
}
