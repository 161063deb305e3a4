package state

import (
	"iter"
	"slices"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/snapshot"
)

// OperatorList is a list of the subtask. At another parallelism the elements of all subtasks are dealt out anew.
type OperatorList[V any] struct{ list *opList[V] }

// UnionList is a list of the subtask. A restore gives every subtask the elements of all.
type UnionList[V any] struct{ list *opList[V] }

// Bind declares the state in o.
func (l *OperatorList[V]) Bind(o *Operator, s Spec) (err error) {
	l.list, err = bindList[V](o, s, snapshot.Split)
	return err
}

// Add appends to the list.
func (l *OperatorList[V]) Add(vs ...V) { l.list.bound().add(vs) }

// All yields the elements as they are when the loop begins.
func (l *OperatorList[V]) All() iter.Seq[V] { return l.list.bound().all() }

// Len is the number of elements.
func (l *OperatorList[V]) Len() int { return len(l.list.bound().vs) }

// Update replaces the list; the elements of vs are copied.
func (l *OperatorList[V]) Update(vs []V) { l.list.bound().update(vs) }

// Clear empties the list.
func (l *OperatorList[V]) Clear() { l.list.bound().update(nil) }

// Bind declares the state in o.
func (l *UnionList[V]) Bind(o *Operator, s Spec) (err error) {
	l.list, err = bindList[V](o, s, snapshot.Union)
	return err
}

// Add appends to the list.
func (l *UnionList[V]) Add(vs ...V) { l.list.bound().add(vs) }

// All yields the elements as they are when the loop begins.
func (l *UnionList[V]) All() iter.Seq[V] { return l.list.bound().all() }

// Len is the number of elements.
func (l *UnionList[V]) Len() int { return len(l.list.bound().vs) }

// Update replaces the list; the elements of vs are copied.
func (l *UnionList[V]) Update(vs []V) { l.list.bound().update(vs) }

// Clear empties the list.
func (l *UnionList[V]) Clear() { l.list.bound().update(nil) }

// opList is a list of the subtask. It grows behind the length that snapshots know of; what takes elements away makes a new
// array.
type opList[V any] struct {
	o        *Operator
	declared Spec
	deal     snapshot.Mode
	codec    *codec.Codec[V]
	stored   reader[V]
	clones   bool
	vs       []V
	epoch    epoch // in which the elements were last cloned
}

func bindList[V any](o *Operator, s Spec, mode snapshot.Mode) (*opList[V], error) {
	if o == nil {
		return nil, errUnbound
	}
	c, err := codec.For[V]()
	if err != nil {
		return nil, err
	}
	l := &opList[V]{o: o, declared: s, deal: mode, codec: c, clones: !c.Flat() && !s.Immutable, epoch: o.epoch}
	return l, o.add(l)
}

// bound is l, of a field that was bound.
func (l *opList[V]) bound() *opList[V] {
	if l == nil {
		panic(&UsageError{Problem: unbound})
	}
	return l
}

func (l *opList[V]) add(vs []V) { l.vs = append(l.vs, vs...) }

func (l *opList[V]) update(vs []V) {
	l.vs = slices.Clone(vs)
	l.epoch = l.o.epoch
}

func (l *opList[V]) all() iter.Seq[V] {
	return func(yield func(V) bool) {
		if l.clones && l.epoch != l.o.epoch {
			l.cloneAll()
		}
		for _, v := range l.vs {
			if !yield(v) {
				return
			}
		}
	}
}

func (l *opList[V]) cloneAll() {
	vs := make([]V, len(l.vs))
	for i, v := range l.vs {
		vs[i] = l.codec.Clone(v)
	}
	l.update(vs)
}

func (l *opList[V]) spec() Spec          { return l.declared }
func (l *opList[V]) mode() snapshot.Mode { return l.deal }
func (l *opList[V]) schema() snapshot.StateSchema {
	kind := KindOpList
	if l.deal == snapshot.Union {
		kind = KindUnion
	}
	return snapshot.StateSchema{Name: l.declared.Name, Kind: kind, Value: l.codec.Schema()}
}

func (l *opList[V]) freeze() frozen { return frozenList[V]{l.codec, l.vs[:len(l.vs):len(l.vs)]} }

func (l *opList[V]) readAs(stored snapshot.StateSchema) error {
	return l.stored.as(stored.Value, l.codec)
}

func (l *opList[V]) decode(src []byte) (rest []byte, err error) {
	var v V
	if rest, err = l.stored.Decode(src, &v); err != nil {
		return nil, err
	}
	l.vs = append(l.vs, v)
	return rest, nil
}

func (l *opList[V]) skip(src []byte) (rest []byte, err error) {
	var v V
	return l.stored.Decode(src, &v)
}

type frozenList[V any] struct {
	codec *codec.Codec[V]
	vs    []V
}

func (f frozenList[V]) size() int { return len(f.vs) }

func (f frozenList[V]) encode(dst []byte, yield func([]byte) []byte) (err error) {
	for i := range f.vs {
		if dst, err = f.codec.Append(dst, &f.vs[i]); err != nil {
			return err
		}
		dst = yield(dst)
	}
	return nil
}
