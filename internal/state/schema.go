package state

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/snapshot"
)

// SchemaError refuses a restore: a state is stored as something that cannot become what is declared now. Who knows the
// operator says which it is.
type SchemaError struct {
	State  string // its name; empty: the keys
	Stored string // its kind in the file
	// Declared is its kind now; empty: it is declared no more.
	Declared string
	// Type says, where the kind is the same, at what place in the type it fails, and why; nearly always a *codec.ResolveError.
	Type   error
	MapKey bool // the type is that of the map's keys
}

func (e *SchemaError) Error() string {
	switch {
	case e.State == "":
		return fmt.Sprintf("the keys: %v, or give the operator a new UID", e.Type)
	case e.Declared == "" && e.State == timersName:
		return "state or timers by key are stored, but the operator declares none that could take them; declare them as before, " +
			"or allow non-restored state (-n) to drop them"
	case e.Declared == "":
		return fmt.Sprintf("state %q (%s) is stored but not declared any more; declare it (renamed: with was=%s in its tag), or allow "+
			"non-restored state (-n) to drop it", e.State, e.Stored, e.State)
	case e.Type == nil:
		return fmt.Sprintf("state %q is stored as one of kind %s, but declared as %s; give the state a new name, or its old kind back",
			e.State, e.Stored, e.Declared)
	case e.MapKey:
		return fmt.Sprintf("state %q (%s), its keys: %v", e.State, e.Stored, e.Type)
	}
	return fmt.Sprintf("state %q (%s): %v", e.State, e.Stored, e.Type)
}

// Unwrap is what the codec says of it.
func (e *SchemaError) Unwrap() error { return e.Type }

// NonRecoverable says that no restart changes it.
func (e *SchemaError) NonRecoverable() bool { return true }

// suit refuses, with a *SchemaError, a stored state that cannot become the declared one. Every restore asks it, and so does
// CheckSchemas: what is refused is refused alike before anything runs. Types are compared by the rules of codec's Reader:
// their names do not count, those of fields do.
func suit(stored, declared snapshot.StateSchema) error {
	e := &SchemaError{State: declared.Name, Stored: stored.Kind, Declared: declared.Kind}
	if stored.Kind != declared.Kind {
		return e
	}
	if _, e.Type = codec.CompareKeys(stored.MapKey, declared.MapKey); e.Type != nil {
		e.MapKey = true
		return e
	}
	_, e.Type = codec.Compare(stored.Value, declared.Value)
	if e.Type == nil && stored.Kind == KindList {
		// What holds for the elements of a list anywhere in a type holds for those of a list state.
		_, e.Type = codec.Compare(listOf(stored.Value), listOf(declared.Value))
	}
	if e.Type != nil {
		return e
	}
	return nil
}

func listOf(schema string) string { return `{"type":"array","items":` + schema + `}` }

// suitKeys is suit for the keys of an operator.
func suitKeys(stored, declared string) error {
	if _, err := codec.CompareKeys(stored, declared); err != nil {
		return &SchemaError{Type: err}
	}
	return nil
}

// migrate makes a declared state read what is stored, or refuses.
func migrate(stored snapshot.StateSchema, declared interface {
	schema() snapshot.StateSchema
	readAs(stored snapshot.StateSchema) error
}) error {
	if err := suit(stored, declared.schema()); err != nil {
		return err
	}
	return declared.readAs(stored)
}

// CheckSchemas refuses, before anything runs, the states of an operator that a restore would refuse: those that are declared no more
// (unless they may be dropped), and those whose type cannot become the declared one.
func CheckSchemas(o *snapshot.Operator, declared []snapshot.StateSchema, allowDropped bool) error {
	var all []error
	keys := slices.ContainsFunc(declared, func(d snapshot.StateSchema) bool { return d.Key != "" })
	for _, s := range o.Schemas {
		if !isStored(o, s) || s.Key != "" && !keys && s.Name != timersName { // without keys, timers speak for all
			continue
		}
		d, ok := declaredFor(s, o.Schemas, declared)
		switch keyed := s.Key != ""; {
		case !ok && !allowDropped:
			all = append(all, &SchemaError{State: s.Name, Stored: s.Kind})
		case !ok:
		case keyed && suitKeys(s.Key, d.Key) != nil:
			return suitKeys(s.Key, d.Key) // of all states
		default:
			all = append(all, suit(s, d))
		}
	}
	return errors.Join(all...)
}

// declaredFor is the declared state that a stored one becomes, as Keyed.columnFor and Operator.listFor find it.
func declaredFor(s snapshot.StateSchema, stored, declared []snapshot.StateSchema) (snapshot.StateSchema, bool) {
	find := func(is func(d snapshot.StateSchema) bool) int {
		return slices.IndexFunc(declared, func(d snapshot.StateSchema) bool { return (d.Key != "") == (s.Key != "") && is(d) })
	}
	i := find(func(d snapshot.StateSchema) bool { return d.Name == s.Name })
	if i < 0 {
		i = find(func(d snapshot.StateSchema) bool {
			return d.Was == s.Name && !slices.ContainsFunc(stored, func(o snapshot.StateSchema) bool { return o.Name == d.Name })
		})
	}
	if i < 0 {
		return snapshot.StateSchema{}, false
	}
	return declared[i], true
}

// isStored: there is something of the state in a checkpoint, and not only its declaration.
func isStored(o *snapshot.Operator, s snapshot.StateSchema) bool {
	keyed := s.Key != ""
	return slices.ContainsFunc(o.Subtasks, func(t snapshot.Subtask) bool {
		return keyed && len(t.Keyed) > 0 ||
			!keyed && slices.ContainsFunc(t.Lists, func(l snapshot.ListHandle) bool { return l.Name == s.Name }) ||
			slices.ContainsFunc(t.Rows, func(r snapshot.RowsHandle) bool { return r.Name == s.Name && r.Keyed == keyed })
	})
}
