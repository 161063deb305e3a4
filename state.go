package weir

import (
	"errors"
	"iter"
	"reflect"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/state"
)

// Value is one value per key. Declare it as a field of a function's struct:
//
//	Sum weir.Value[int64] `state:"sum"`
//
// The tag names the state; options follow: ttl=1h (how long a value lives after it was last written), was=oldname (what it
// was called in older checkpoints), immutable (what Get returns is never changed in place, so it need not be cloned).
type Value[V any] struct{ s state.Value[V] }

// Get is the key's value; the zero value where there is none.
func (s *Value[V]) Get() V { return s.s.Get() }

// Lookup is the key's value, and whether there is one.
func (s *Value[V]) Lookup() (V, bool) { return s.s.Lookup() }

// Set replaces the key's value.
func (s *Value[V]) Set(v V) { s.s.Set(v) }

// Clear removes the key's value.
func (s *Value[V]) Clear() { s.s.Clear() }

// List is a list per key, to append to. The tag's ttl is that of each element.
type List[V any] struct{ s state.List[V] }

// Add appends vs.
func (s *List[V]) Add(vs ...V) { s.s.Add(vs...) }

// All are the elements in the order in which they were added.
func (s *List[V]) All() iter.Seq[V] { return s.s.All() }

// Len is the number of elements.
func (s *List[V]) Len() int { return s.s.Len() }

// Update replaces all elements.
func (s *List[V]) Update(vs []V) { s.s.Update(vs) }

// Clear removes all elements.
func (s *List[V]) Clear() { s.s.Clear() }

// Map is an ordered map per key. The tag's ttl is that of each entry.
type Map[MK comparable, V any] struct{ s state.Map[MK, V] }

// Get is the value at k, and whether there is one.
func (s *Map[MK, V]) Get(k MK) (V, bool) { return s.s.Get(k) }

// Put sets the value at k.
func (s *Map[MK, V]) Put(k MK, v V) { s.s.Put(k, v) }

// Delete removes the value at k.
func (s *Map[MK, V]) Delete(k MK) { s.s.Delete(k) }

// All are the entries in the order of their keys.
func (s *Map[MK, V]) All() iter.Seq2[MK, V] { return s.s.All() }

// Len is the number of entries.
func (s *Map[MK, V]) Len() int { return s.s.Len() }

// Clear removes all entries.
func (s *Map[MK, V]) Clear() { s.s.Clear() }

// Reducing is one value per key that each added value is merged into. Set Reduce before the job is executed, e.g. in the
// literal of the function's struct.
type Reducing[V any] struct {
	// Reduce merges b, the newer, into a. All subtasks share it.
	Reduce func(a, b V) V
	s      state.Reducing[V]
}

// Add merges v into the key's value; the first one is the value.
func (s *Reducing[V]) Add(v V) { s.s.Add(v) }

// Get is the key's value; the zero value where there is none.
func (s *Reducing[V]) Get() V { return s.s.Get() }

// Lookup is the key's value, and whether there is one.
func (s *Reducing[V]) Lookup() (V, bool) { return s.s.Lookup() }

// Clear removes the key's value.
func (s *Reducing[V]) Clear() { s.s.Clear() }

// Aggregating is one accumulator per key, of another type than what is added and what is read. Set its functions before
// the job is executed. All subtasks share them.
type Aggregating[In, Acc, Res any] struct {
	// New is an empty accumulator; nil: the zero Acc.
	New func() Acc
	// Fold is acc with one more value.
	Fold func(acc Acc, v In) Acc
	// Result is what Get returns for acc.
	Result func(acc Acc) Res
	s      state.Aggregating[In, Acc, Res]
}

// Add folds v into the key's accumulator.
func (s *Aggregating[In, Acc, Res]) Add(v In) { s.s.Add(v) }

// Get is the result for the key's accumulator; the zero value where nothing was added.
func (s *Aggregating[In, Acc, Res]) Get() Res { return s.s.Get() }

// Lookup is the result for the key's accumulator, and whether anything was added.
func (s *Aggregating[In, Acc, Res]) Lookup() (Res, bool) { return s.s.Lookup() }

// Clear removes the key's accumulator.
func (s *Aggregating[In, Acc, Res]) Clear() { s.s.Clear() }

// OperatorList is a list per subtask; at another parallelism its elements are dealt out anew.
type OperatorList[V any] struct{ s state.OperatorList[V] }

// Add appends vs.
func (s *OperatorList[V]) Add(vs ...V) { s.s.Add(vs...) }

// All are the elements.
func (s *OperatorList[V]) All() iter.Seq[V] { return s.s.All() }

// Len is the number of elements.
func (s *OperatorList[V]) Len() int { return s.s.Len() }

// Update replaces all elements.
func (s *OperatorList[V]) Update(vs []V) { s.s.Update(vs) }

// Clear removes all elements.
func (s *OperatorList[V]) Clear() { s.s.Clear() }

// UnionList is a list per subtask; after a restore each subtask has the elements of all. Keep only your own in Open, else
// the lists grow with every restore.
type UnionList[V any] struct{ s state.UnionList[V] }

// Add appends vs.
func (s *UnionList[V]) Add(vs ...V) { s.s.Add(vs...) }

// All are the elements.
func (s *UnionList[V]) All() iter.Seq[V] { return s.s.All() }

// Len is the number of elements.
func (s *UnionList[V]) Len() int { return s.s.Len() }

// Update replaces all elements.
func (s *UnionList[V]) Update(vs []V) { s.s.Update(vs) }

// Clear removes all elements.
func (s *UnionList[V]) Clear() { s.s.Clear() }

// BroadcastMap is a map that is the same on every subtask, because each changes it by the same broadcast records. So only
// what processes broadcast records may change it; elsewhere Put and Delete fail the task.
type BroadcastMap[MK comparable, V any] struct {
	s      state.BroadcastMap[MK, V]
	locked *bool // records that are not broadcast are being processed
}

// Get is the value at k, and whether there is one.
func (s *BroadcastMap[MK, V]) Get(k MK) (V, bool) { return s.s.Get(k) }

// Put sets the value at k.
func (s *BroadcastMap[MK, V]) Put(k MK, v V) { s.check(); s.s.Put(k, v) }

// Delete removes the value at k.
func (s *BroadcastMap[MK, V]) Delete(k MK) { s.check(); s.s.Delete(k) }

func (s *BroadcastMap[MK, V]) check() {
	if s.locked != nil && *s.locked {
		panic(&state.UsageError{Problem: "a BroadcastMap was changed for a record or timer that only this subtask has, so it would no longer be the same " +
			"on all: change it where broadcast records are processed"})
	}
}

// All are the entries in the order of their keys.
func (s *BroadcastMap[MK, V]) All() iter.Seq2[MK, V] { return s.s.All() }

// Len is the number of entries.
func (s *BroadcastMap[MK, V]) Len() int { return s.s.Len() }

// Side is a side output. Declare it as a field of a function's struct, `side:"name"`, and read it with SideOutput.
type Side[X any] struct {
	e  *operator.Emitter[X]
	at *base.EventTime
}

// Emit sends v to the side output, with the timestamp of the record or timer being processed.
func (s *Side[X]) Emit(v X) {
	if s.e == nil {
		panic(&state.UsageError{Problem: "a weir.Side was used that is not a field of an operator's function: declare it in the function's struct, with a tag `side:\"name\"`"})
	}
	s.e.At(*s.at)
	s.e.Emit(v)
}

// The fields of a function's struct that the engine fills in.
type (
	// keyedField is state by key.
	keyedField interface {
		bindKeyed(t state.Table, spec state.Spec) error
	}
	// operatorField is state of the subtask.
	operatorField interface {
		bindOperator(o *state.Operator, spec state.Spec) error
	}
	// broadcastField is state that only a function with a broadcast input may declare.
	broadcastField interface{ lockedBy(locked *bool) }
	// sideField is a side output.
	sideField interface {
		bindSide(at *base.EventTime) operator.Output
		sideType() reflect.Type
	}
)

func (s *Value[V]) bindKeyed(t state.Table, spec state.Spec) error   { return s.s.Bind(t, spec) }
func (s *List[V]) bindKeyed(t state.Table, spec state.Spec) error    { return s.s.Bind(t, spec) }
func (s *Map[MK, V]) bindKeyed(t state.Table, spec state.Spec) error { return s.s.Bind(t, spec) }

func (s *Reducing[V]) bindKeyed(t state.Table, spec state.Spec) error {
	if s.Reduce == nil {
		return errors.New("its function Reduce is nil: set it in the literal of the function's struct")
	}
	s.s.Use(s.Reduce)
	return s.s.Bind(t, spec)
}

func (s *Aggregating[In, Acc, Res]) bindKeyed(t state.Table, spec state.Spec) error {
	if s.Fold == nil || s.Result == nil {
		return errors.New("its function Fold or Result is nil: set both in the literal of the function's struct")
	}
	s.s.Use(state.Aggregate[In, Acc, Res]{New: s.New, Add: s.Fold, Result: s.Result})
	return s.s.Bind(t, spec)
}

func (s *OperatorList[V]) bindOperator(o *state.Operator, spec state.Spec) error {
	return s.s.Bind(o, spec)
}
func (s *UnionList[V]) bindOperator(o *state.Operator, spec state.Spec) error {
	return s.s.Bind(o, spec)
}
func (s *BroadcastMap[MK, V]) bindOperator(o *state.Operator, spec state.Spec) error {
	return s.s.Bind(o, spec)
}
func (s *BroadcastMap[MK, V]) lockedBy(locked *bool) { s.locked = locked }

func (s *Side[X]) bindSide(at *base.EventTime) operator.Output {
	s.e, s.at = &operator.Emitter[X]{}, at
	return s.e
}

func (s *Side[X]) sideType() reflect.Type { return reflect.TypeFor[X]() }
