package weirtest

import (
	"fmt"
	"iter"
	"slices"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/operator"
)

// What a test reads of a function's state. States are found by the names in their tags; a name that two operators of the piece have is
// refused.

// Value is the value of a key's weir.Value, weir.Reducing or weir.Aggregating, and whether there is one.
func (r *rig) Value[V any](key any, state string) (v V, ok bool) {
	r.t.Helper()
	r.byKey(key, state, func(field any) bool {
		s, is := field.(interface{ Lookup() (V, bool) })
		if is {
			v, ok = s.Lookup()
		}
		return is
	}, fmt.Sprintf("one value of %T", v))
	return v, ok
}

// List is the elements of a key's weir.List.
func (r *rig) List[V any](key any, state string) (vs []V) {
	r.t.Helper()
	r.byKey(key, state, func(field any) bool {
		s, is := field.(interface{ All() iter.Seq[V] })
		if is {
			vs = slices.Collect(s.All())
		}
		return is
	}, fmt.Sprintf("a list of %T", *new(V)))
	return vs
}

// Map is the entries of a key's weir.Map.
func (r *rig) Map[MK comparable, V any](key any, state string) map[MK]V {
	r.t.Helper()
	m := map[MK]V{}
	r.byKey(key, state, func(field any) bool { return entries(m, field) }, fmt.Sprintf("a map, as %T", m))
	return m
}

// Elements are those of a weir.OperatorList or weir.UnionList, of all subtasks one after the other.
func (r *rig) Elements[V any](state string) (vs []V) {
	r.t.Helper()
	n := r.declares(state)
	for _, s := range r.subtasks {
		field, is := s.ops[n.ID].(operator.Inspected).Field(state).(interface{ All() iter.Seq[V] })
		if !is {
			r.refuseType(n, state, fmt.Sprintf("a list of %T", *new(V)))
		}
		vs = slices.AppendSeq(vs, field.All())
	}
	return vs
}

// Broadcast is the entries of a weir.BroadcastMap of a subtask. All subtasks should have the same.
func (r *rig) Broadcast[MK comparable, V any](subtask int, state string) map[MK]V {
	r.t.Helper()
	n, m := r.declares(state), map[MK]V{}
	if !entries(m, r.subtasks[subtask].ops[n.ID].(operator.Inspected).Field(state)) {
		r.refuseType(n, state, fmt.Sprintf("a map, as %T", m))
	}
	return m
}

func entries[MK comparable, V any](m map[MK]V, field any) bool {
	s, is := field.(interface{ All() iter.Seq2[MK, V] })
	if is {
		for k, v := range s.All() {
			m[k] = v
		}
	}
	return is
}

// Look calls look with the function of the subtask that owns a key, its state being that of the key: to read what the function itself reads.
//
//	h.Look("ann", func(c *count) { n = c.N.Get() })
func (r *rig) Look[F any](key any, look func(f F)) {
	r.t.Helper()
	for _, n := range r.plan.nodes {
		if _, is := r.subtasks[0].ops[n.ID].(operator.InspectedByKey); !is {
			continue
		}
		op := r.owner(n, key)
		if f, is := op.Function().(F); is {
			r.with(n, op, key, func() { look(f) })
			return
		}
	}
	r.t.Fatalf("weirtest: no operator by key has a function of %T", *new(F))
}

// Keys are the keys that have state, in no order.
func (r *rig) Keys[K comparable]() (keys []K) {
	r.t.Helper()
	for _, s := range r.subtasks {
		for _, n := range r.plan.nodes {
			op, is := s.ops[n.ID].(operator.InspectedByKey)
			if !is {
				continue
			}
			op.Keys(func(key any, _ uint64) bool {
				k, is := key.(K)
				if !is {
					r.t.Fatalf("weirtest: the keys of operator %s are of %T, not %T", n.Label(), key, k)
				}
				keys = append(keys, k)
				return true
			})
		}
	}
	return keys
}

// EventTimers is the number of event timers that have not fired.
func (r *rig) EventTimers() int { return r.timers(true) }

// ProcessingTimers is the number of processing timers that have not fired.
func (r *rig) ProcessingTimers() int { return r.timers(false) }

func (r *rig) timers(event bool) (count int) {
	_ = r.each(func(_ *subtask, _ *graph.Node, op operator.Operator) error {
		if k, is := op.(operator.InspectedByKey); is {
			count += k.Timers(event)
		}
		return nil
	})
	return count
}

// byKey reads a state of a key; read is false where it is of another type than asked for.
func (r *rig) byKey(key any, state string, read func(field any) bool, asked string) {
	r.t.Helper()
	n := r.declares(state)
	if _, is := r.subtasks[0].ops[n.ID].(operator.InspectedByKey); !is {
		r.t.Fatalf("weirtest: the operator %s that declares the state %q has no keys: read it with Elements or Broadcast", n.Label(), state)
	}
	op, is := r.owner(n, key), false
	r.with(n, op, key, func() { is = read(op.Field(state)) })
	if !is {
		r.refuseType(n, state, asked)
	}
}

// with makes a key current.
func (r *rig) with(n *graph.Node, op operator.InspectedByKey, key any, look func()) {
	r.t.Helper()
	if err := op.WithKey(key, look); err != nil {
		r.t.Fatalf("weirtest: operator %s: %v", n.Label(), err)
	}
}

// owner is the operator of the subtask that owns a key.
func (r *rig) owner(n *graph.Node, key any) operator.InspectedByKey {
	r.t.Helper()
	hash, err := r.subtasks[0].ops[n.ID].(operator.InspectedByKey).HashOf(key)
	if err != nil {
		r.t.Fatalf("weirtest: operator %s: %v", n.Label(), err)
	}
	return r.subtasks[base.OwnerOf(hash, len(r.subtasks))].ops[n.ID].(operator.InspectedByKey)
}

// declares is the node that declares a state.
func (r *rig) declares(state string) (found *graph.Node) {
	r.t.Helper()
	if len(r.subtasks) == 0 {
		r.t.Fatal("weirtest: the harness is closed: its operators have no state any more")
	}
	var all []string
	for _, n := range r.plan.nodes {
		op, is := r.subtasks[0].ops[n.ID].(operator.Inspected)
		if !is {
			continue
		}
		all = append(all, op.States()...)
		if !slices.Contains(op.States(), state) {
			continue
		}
		if found != nil {
			r.t.Fatalf("weirtest: both %s and %s declare a state %q: give them a harness each", found.Label(), n.Label(), state)
		}
		found = n
	}
	if found == nil {
		r.t.Fatalf("weirtest: no operator declares a state %q; there are %q", state, all)
	}
	return found
}

func (r *rig) refuseType(n *graph.Node, state, asked string) {
	r.t.Helper()
	field := r.subtasks[0].ops[n.ID].(operator.Inspected).Field(state)
	r.t.Fatalf("weirtest: the state %q of operator %s is a %T, and cannot be read as %s", state, n.Label(), field, asked)
}
