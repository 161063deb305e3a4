package fit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/snapshot"
)

// Timers is the name of the timers among the schemas of an operator. No state of the user's has it.
const Timers = "(timers)"

// keysKind is the kind of the finding of an operator's keys.
const keysKind = "keys"

// listKind is the kind of keyed lists, whose elements must fit as those of a list anywhere in a type.
const listKind = "list"

// StateError refuses a state: it is stored as something that cannot become what is declared now. Who knows the operator says which
// it is.
type StateError struct {
	State  string // its name; empty: the keys
	Stored string // its kind in the snapshot
	// Declared is its kind now; empty: it is declared no more.
	Declared string
	// Type says, where the kind is the same, at what place in the type it fails, and why; nearly always a *codec.ResolveError.
	Type   error
	MapKey bool // the type is that of the map's keys
	// Near is a state that is declared, new, and could take it over; empty: there is none, or nobody looked.
	Near string
}

func (e *StateError) Error() string {
	switch {
	case e.State == "":
		return "the keys: " + e.Problem()
	case e.Declared == "" && e.State == Timers:
		return e.Problem()
	case e.MapKey:
		return fmt.Sprintf("state %q (%s), its keys: %s", e.State, e.Stored, e.Problem())
	}
	return fmt.Sprintf("state %q (%s): %s", e.State, e.Stored, e.Problem())
}

// Problem is the error without the name of the state.
func (e *StateError) Problem() string {
	switch {
	case e.State == "":
		return fmt.Sprintf("%v, or give the operator a new UID", e.Type)
	case e.Declared == "" && e.State == Timers:
		return "state or timers by key are stored, but the operator declares none that could take them; declare them as before, " +
			"or allow non-restored state (-n) to drop them"
	case e.Declared == "" && e.Near != "":
		return fmt.Sprintf("it is stored but not declared any more; if it was renamed to %q, declare that with the tag `state:\"%s,was=%s\"`, "+
			"or allow non-restored state (-n) to drop it", e.Near, e.Near, e.State)
	case e.Declared == "":
		return fmt.Sprintf("it is stored but not declared any more; declare it (renamed: with was=%s in its tag), or allow "+
			"non-restored state (-n) to drop it", e.State)
	case e.Type == nil:
		return fmt.Sprintf("it is stored as one of kind %s, but declared as %s; give the state a new name, or its old kind back", e.Stored, e.Declared)
	}
	return e.Type.Error()
}

// Unwrap is what the codec says of it.
func (e *StateError) Unwrap() error { return e.Type }

// NonRecoverable says that no restart changes it.
func (e *StateError) NonRecoverable() bool { return true }

// State says what is different between a stored state and the declared one that it becomes, or refuses with a *StateError. Types are
// compared by the rules of codec's Reader: their names do not count, those of fields do. The keys of the operator are not looked at.
func State(stored, declared snapshot.StateSchema) ([]codec.Change, error) {
	e := &StateError{State: declared.Name, Stored: stored.Kind, Declared: declared.Kind}
	if stored.Kind != declared.Kind {
		return nil, e
	}
	var changes []codec.Change
	if changes, e.Type = codec.CompareKeys(stored.MapKey, declared.MapKey); e.Type != nil {
		e.MapKey = true
		return nil, e
	}
	for i := range changes {
		changes[i].Path = "[key]" + changes[i].Path
	}
	values, err := codec.Compare(stored.Value, declared.Value)
	if err == nil && stored.Kind == listKind {
		_, err = codec.Compare(listOf(stored.Value), listOf(declared.Value))
	}
	if err != nil {
		e.Type = err
		return nil, e
	}
	return append(changes, values...), nil
}

func listOf(schema string) string { return `{"type":"array","items":` + schema + `}` }

// Keys is State for the keys of an operator.
func Keys(stored, declared string) ([]codec.Change, error) {
	changes, err := codec.CompareKeys(stored, declared)
	if err != nil {
		return nil, &StateError{Type: err}
	}
	return changes, nil
}

// States refuses what a restore of the operator would refuse: states that are declared no more (unless they may be dropped), and
// those whose type cannot become the declared one.
func States(o *snapshot.Operator, declared []snapshot.StateSchema, allowDropped bool) error {
	var all []error
	for _, s := range states(o, declared, allowDropped) {
		all = append(all, s.err)
	}
	return errors.Join(all...)
}

// states are the findings of an operator's states: the keys, the declared states in their order, then what is stored beside.
func states(o *snapshot.Operator, declared []snapshot.StateSchema, allowDropped bool) []StateFit {
	all := keys(o, declared)
	taken := make([]bool, len(o.Schemas))
	for _, d := range declared {
		i := storedFor(d, o.Schemas, declared)
		if i >= 0 {
			taken[i] = true
		}
		if f := declaredState(o, d, i); f.Name != "" || f.Verdict != New { // timers that are new are no news
			all = append(all, f)
		}
	}
	alone := func(s snapshot.StateSchema) bool { // timers speak for keyed state only where there is nothing else
		return s.Name != Timers || !slices.ContainsFunc(o.Schemas, func(other snapshot.StateSchema) bool {
			return other.Key != "" && other.Name != Timers && isStored(o, other)
		})
	}
	for i, s := range o.Schemas {
		if !taken[i] && isStored(o, s) && alone(s) {
			all = append(all, undeclared(o, s, declared, allowDropped))
		}
	}
	return all
}

// keys is the finding of the keys, where there is something to say.
func keys(o *snapshot.Operator, declared []snapshot.StateSchema) []StateFit {
	keyed := func(s snapshot.StateSchema) bool { return s.Key != "" }
	i := slices.IndexFunc(o.Schemas, func(s snapshot.StateSchema) bool { return keyed(s) && isStored(o, s) })
	j := slices.IndexFunc(declared, keyed)
	if i < 0 || j < 0 {
		return nil
	}
	f := StateFit{Kind: keysKind, Stored: describe(o.Schemas[i].Key), Declared: describe(declared[j].Key)}
	changes, err := Keys(o.Schemas[i].Key, declared[j].Key)
	f.Finding = judged(changes, err)
	if f.Verdict == Same {
		return nil
	}
	return []StateFit{f}
}

// judged is the finding of two types.
func judged(changes []codec.Change, err error) Finding {
	switch {
	case err != nil:
		return refuse(err)
	case len(changes) == 0:
		return Finding{Verdict: Same}
	}
	f := Finding{Verdict: Migrate}
	for _, c := range changes {
		f.Changes = append(f.Changes, c.String())
	}
	return f
}

// declaredState is the finding of a declared state, which the i-th stored one becomes; -1: none does.
func declaredState(o *snapshot.Operator, d snapshot.StateSchema, i int) StateFit {
	f := named(d)
	f.Declared, f.Verdict = typeOf(d), New
	if i < 0 {
		return f
	}
	s := o.Schemas[i]
	if s.Name != d.Name {
		f.Was = s.Name
	}
	found := judged(State(s, d))
	if !isStored(o, s) && found.Verdict != Same { // there is no value that would have to become another
		return f
	}
	f.Stored, f.Finding = typeOf(s), found
	return f
}

// undeclared is the finding of a stored state that no declared one takes.
func undeclared(o *snapshot.Operator, s snapshot.StateSchema, declared []snapshot.StateSchema, allowDropped bool) StateFit {
	f := named(s)
	f.Stored = typeOf(s)
	if allowDropped {
		f.Finding = Finding{Verdict: Dropped, Why: "it is stored, but not declared any more"}
		return f
	}
	e := &StateError{State: s.Name, Stored: s.Kind}
	for _, d := range declared {
		if d.Was == "" && (d.Key != "") == (s.Key != "") && storedFor(d, o.Schemas, declared) < 0 {
			if _, err := State(s, d); err == nil && e.Near == "" {
				e.Near = d.Name
			}
		}
	}
	f.Finding = refuse(e)
	return f
}

// named is a finding of a state of that name.
func named(s snapshot.StateSchema) StateFit {
	f := StateFit{Name: s.Name, Kind: s.Kind}
	if strings.HasPrefix(s.Name, "(") {
		f.Name = ""
	}
	return f
}

// storedFor is which stored state becomes a declared one: the one of its name, else the one that it was called by before, if no other
// declared one takes that; -1: none. A restore finds the same.
func storedFor(d snapshot.StateSchema, stored, declared []snapshot.StateSchema) int {
	find := func(name string) int {
		return slices.IndexFunc(stored, func(s snapshot.StateSchema) bool { return s.Name == name && (s.Key != "") == (d.Key != "") })
	}
	i := find(d.Name)
	if i >= 0 || d.Was == "" {
		return i
	}
	among := slices.DeleteFunc(slices.Clone(declared), func(o snapshot.StateSchema) bool { return (o.Key != "") != (d.Key != "") })
	if slices.ContainsFunc(among, func(o snapshot.StateSchema) bool { return o.Name == d.Was }) {
		return -1
	}
	heir := slices.IndexFunc(among, func(o snapshot.StateSchema) bool { return o.Was == d.Was && find(o.Name) < 0 })
	if heir < 0 || among[heir].Name != d.Name {
		return -1
	}
	return find(d.Was)
}

// isStored: there is something of the state in a snapshot, and not only its declaration.
func isStored(o *snapshot.Operator, s snapshot.StateSchema) bool {
	keyed := s.Key != ""
	return slices.ContainsFunc(o.Subtasks, func(t snapshot.Subtask) bool {
		return keyed && len(t.Keyed) > 0 ||
			!keyed && slices.ContainsFunc(t.Lists, func(l snapshot.ListHandle) bool { return l.Name == s.Name }) ||
			slices.ContainsFunc(t.Rows, func(r snapshot.RowsHandle) bool { return r.Name == s.Name && r.Keyed == keyed })
	})
}

// typeOf is the type of a state for people.
func typeOf(s snapshot.StateSchema) string {
	switch {
	case s.Value == "":
		return ""
	case s.MapKey != "":
		return fmt.Sprintf("map[%s]%s", describe(s.MapKey), describe(s.Value))
	}
	return describe(s.Value)
}

// describe is a schema for people.
func describe(schema string) string {
	if schema == "" {
		return ""
	}
	t, err := codec.TypeOf(schema)
	if err != nil {
		return "unreadable"
	}
	return t.String()
}
