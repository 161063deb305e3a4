package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
)

// What an operator has beside its states goes by names that no state has, as the timers do. Where nothing else is called so, the
// parentheses may be left out.
const (
	coordinatorName = "(coordinator)"
	inFlightName    = "(in-flight)"
)

// operator finds an operator by its UID, or by its name where only one has it.
func (s *Snapshot) operator(what string) (*snapshot.Operator, error) {
	var known []string
	var named []*snapshot.Operator
	for i := range s.Operators {
		o := &s.Operators[i]
		if o.UID == what {
			return o, nil
		}
		if o.Name == what {
			named = append(named, o)
		}
		known = append(known, o.UID)
		if o.Name != o.UID && o.Name != "" {
			known = append(known, o.Name)
		}
	}
	switch len(named) {
	case 0:
		return nil, fmt.Errorf("there is no operator %q in %s%s", what, s.Location, nearest(what, known))
	case 1:
		return named[0], nil
	}
	var uids []string
	for _, o := range named {
		uids = append(uids, o.UID)
	}
	return nil, fmt.Errorf("%d operators are called %q; name one by its UID: %s", len(named), what, list(uids))
}

// stateName finds the name of a state of o, or of what else it may have.
func stateName(o *snapshot.Operator, what string) (string, error) {
	known := names(o)
	for _, name := range []string{what, "(" + what + ")"} {
		if slices.Contains(known, name) {
			return name, nil
		}
	}
	return "", fmt.Errorf("%v has no state %q%s", o, what, nearest(what, known))
}

// names are what an operator has.
func names(o *snapshot.Operator) (all []string) {
	for _, s := range o.Schemas {
		all = append(all, s.Name)
	}
	if o.Coordinator != nil {
		all = append(all, coordinatorName)
	}
	if slices.ContainsFunc(o.Subtasks, func(t snapshot.Subtask) bool { return len(t.InFlight) > 0 }) {
		all = append(all, inFlightName)
	}
	return all
}

// schemaOf is the declared state of a name.
func schemaOf(o *snapshot.Operator, name string) snapshot.StateSchema {
	i := slices.IndexFunc(o.Schemas, func(s snapshot.StateSchema) bool { return s.Name == name })
	if i < 0 {
		return snapshot.StateSchema{Name: name}
	}
	return o.Schemas[i]
}

// nearestMost is how many names are told.
const nearestMost = 5

// nearest says what there is instead: the names that are spelt most alike.
func nearest(what string, known []string) string {
	if len(known) == 0 {
		return ": it has none"
	}
	known = slices.Clone(known)
	slices.SortStableFunc(known, func(a, b string) int { return cmp.Compare(distance(what, a), distance(what, b)) })
	if known = slices.Compact(known); len(known) <= nearestMost {
		return "; there are " + list(known)
	}
	return fmt.Sprintf("; the nearest of %d are %s", len(known), list(known[:nearestMost]))
}

func list(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(quoted, ", ")
}

// distance is how many letters must be changed, added or taken out to make a of b, whatever their case; a name that contains the other is
// near.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if a != "" && (strings.Contains(b, a) || strings.Contains(a, b)) {
		return 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			row[j+1] = min(changed, above+1, row[j]+1)
			diagonal = above
		}
	}
	return row[len(b)]
}

// isTimers tells whether a schema is that of timers.
func isTimers(s snapshot.StateSchema) bool { return s.Kind == state.KindTimers }
