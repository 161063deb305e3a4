package inspect

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/fit"
)

// Change is what became of an operator or of a state from one snapshot to the other.
type Change string

// All but Same are differences in shape.
const (
	Same    Change = "same"
	Added   Change = "added"
	Removed Change = "removed"
	// Migrates: another type, and what was stored with the older becomes one of the newer.
	Migrates Change = "migrates"
	// Incompatible: another type or kind, and a program that declares the newer refuses the older.
	Incompatible Change = "incompatible"
)

// Difference is how two snapshots differ.
type Difference struct {
	Before    string         `json:"before"`
	After     string         `json:"after"`
	Operators []OperatorDiff `json:"operators"`
	Bytes     Amount         `json:"bytes"`
}

// Amount is a number in both snapshots; nil: it is not known, or not there.
type Amount struct {
	Before *int64 `json:"before"`
	After  *int64 `json:"after"`
}

// OperatorDiff is how an operator differs.
type OperatorDiff struct {
	UID         string      `json:"uid"`
	Name        string      `json:"name,omitempty"`
	Change      Change      `json:"change"`
	Parallelism Amount      `json:"parallelism"`
	Keys        Amount      `json:"keys"`
	KeyedBytes  Amount      `json:"keyed_bytes"`
	States      []StateDiff `json:"states,omitempty"`
}

// StateDiff is how a state differs.
type StateDiff struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`
	Change  Change   `json:"change"`
	What    []string `json:"what,omitempty"` // what is different about the types
	Entries Amount   `json:"entries"`
	Bytes   Amount   `json:"bytes"`
}

// SameShape reports that both have the same operators with the same states of the same types.
func (d *Difference) SameShape() bool {
	return !slices.ContainsFunc(d.Operators, func(o OperatorDiff) bool {
		return o.Change != Same || slices.ContainsFunc(o.States, func(s StateDiff) bool { return s.Change != Same })
	})
}

// Diff compares two snapshots. Operators are found again by their UIDs.
func Diff(before, after *Snapshot) *Difference {
	a, b := before.Summary(), after.Summary()
	d := &Difference{Before: a.Path, After: b.Path, Bytes: Amount{&a.Totals.Bytes, &b.Totals.Bytes}}
	for i := range a.Operators {
		old := &a.Operators[i]
		j := slices.IndexFunc(b.Operators, func(o Operator) bool { return o.UID == old.UID })
		if j < 0 {
			d.Operators = append(d.Operators, diffOperators(old, nil))
			continue
		}
		d.Operators = append(d.Operators, diffOperators(old, &b.Operators[j]))
	}
	for i := range b.Operators {
		o := &b.Operators[i]
		if !slices.ContainsFunc(a.Operators, func(old Operator) bool { return old.UID == o.UID }) {
			d.Operators = append(d.Operators, diffOperators(nil, o))
		}
	}
	return d
}

// diffOperators compares an operator in both; nil: it is not there.
func diffOperators(a, b *Operator) OperatorDiff {
	none := &Operator{}
	before, after := cmp.Or(a, none), cmp.Or(b, none)
	d := OperatorDiff{UID: cmp.Or(before.UID, after.UID), Name: cmp.Or(after.Name, before.Name), Change: presence(a != nil, b != nil),
		Keys: Amount{before.Keys, after.Keys}, KeyedBytes: Amount{before.KeyedBytes, after.KeyedBytes}}
	if a != nil {
		d.Parallelism.Before = new(int64(a.Parallelism))
	}
	if b != nil {
		d.Parallelism.After = new(int64(b.Parallelism))
	}
	for i := range before.States {
		old := &before.States[i]
		j := slices.IndexFunc(after.States, old.isSame)
		if j < 0 {
			d.States = append(d.States, diffStates(old, nil))
			continue
		}
		d.States = append(d.States, diffStates(old, &after.States[j]))
	}
	for i := range after.States {
		if s := &after.States[i]; !slices.ContainsFunc(before.States, s.isSame) {
			d.States = append(d.States, diffStates(nil, s))
		}
	}
	return d
}

func presence(before, after bool) Change {
	switch {
	case !before:
		return Added
	case !after:
		return Removed
	}
	return Same
}

// isSame reports whether both are the same state, maybe of another type.
func (s *State) isSame(o State) bool { return s.Name == o.Name && (s.Key == "") == (o.Key == "") }

func diffStates(a, b *State) StateDiff {
	none := &State{}
	before, after := cmp.Or(a, none), cmp.Or(b, none)
	d := StateDiff{Name: cmp.Or(before.Name, after.Name), Kind: cmp.Or(after.Kind, before.Kind), Change: presence(a != nil, b != nil),
		Entries: Amount{before.Entries, after.Entries}, Bytes: Amount{before.Bytes, after.Bytes}}
	if d.Change != Same {
		return d
	}
	keys, err := fit.Keys(before.schema.Key, after.schema.Key)
	if before.Key == "" {
		keys, err = nil, nil
	}
	changes := keys
	if err == nil && before.Kind != after.Kind || before.Value != "" {
		values, failed := fit.State(before.schema, after.schema)
		changes, err = append(changes, values...), cmp.Or(err, failed)
	}
	for _, c := range changes {
		d.What = append(d.What, c.String())
	}
	switch {
	case err != nil:
		d.Change, d.What = Incompatible, []string{fmt.Sprint(err)}
	case len(changes) > 0:
		d.Change = Migrates
	}
	return d
}
