package state

import (
	"errors"
	"fmt"

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
	case e.Declared == "":
		return fmt.Sprintf("state %q (%s) is stored but not declared any more; declare it (renamed: with was=%s in its tag), or drop it with "+
			"-n (--allowNonRestoredState)", e.State, e.Stored, e.State)
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

// CheckSchemas refuses, before anything runs, what a restore would refuse: stored states that keep their name, but have a type
// that cannot become the declared one. (Which of the others are renamed, only the operator knows.)
func CheckSchemas(stored, declared []snapshot.StateSchema) error {
	var all []error
	for _, s := range stored {
		for _, d := range declared {
			keyed := s.Key != ""
			if d.Name != s.Name || keyed != (d.Key != "") {
				continue
			}
			if keyed {
				if err := suitKeys(s.Key, d.Key); err != nil {
					return err // of all states
				}
			}
			all = append(all, suit(s, d))
		}
	}
	return errors.Join(all...)
}
