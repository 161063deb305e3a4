package fit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// Near is an operator of the program, new to the snapshot, that a stored operator may have been renamed to.
type Near struct {
	UID  string `json:"uid"`
	Name string `json:"name,omitempty"`
	Made string `json:"made,omitempty"`
	// States is how many of the stored states would find their place in it, and Stored how many there are.
	States int `json:"states"`
	Stored int `json:"stored"`
	// Fix is what makes it take the state over, in place of its UID("...").
	Fix string `json:"fix"`

	score float64
}

const (
	nearMost  = 3   // how many are told
	nearLeast = 0.5 // of names alone: so much alike
)

// nearest are the operators that o may have been renamed to, the likeliest first: those that take all its states, or are called much alike.
func (p Program) nearest(o *snapshot.Operator, m *snapshot.Metadata) (all []Near) {
	for i := range p.Operators {
		c := &p.Operators[i]
		has := func(s snapshot.Operator) bool { return s.UID == c.ID || slices.Contains(c.Was, s.UID) }
		if c.Placed || slices.ContainsFunc(m.Operators, has) {
			continue
		}
		if n, near := c.nearTo(o); near {
			all = append(all, n)
		}
	}
	slices.SortStableFunc(all, func(a, b Near) int { return cmp.Compare(b.score, a.score) })
	return all[:min(len(all), nearMost)]
}

// nearTo says how likely it is that o was renamed to c.
func (c *Operator) nearTo(o *snapshot.Operator) (Near, bool) {
	n := Near{UID: c.ID, Name: c.Name, Made: c.Made, Fix: fmt.Sprintf("UID(%q, %q)", c.ID, o.UID), Stored: len(states(o, nil, true))}
	n.States = n.Stored
	for _, s := range states(o, c.States, false) {
		switch {
		case s.Verdict != Refused:
		case s.Kind == keysKind:
			n.States = 0
		default:
			n.States = max(0, n.States-1)
		}
	}
	alike, share := max(likeness(o.UID, c.ID), likeness(o.UID, c.Name), likeness(o.Name, c.ID)), 0.0
	if n.Stored > 0 {
		share = float64(n.States) / float64(n.Stored)
	}
	n.score = alike + share
	if o.Name == c.Name { // often both are called what all of the kind are
		n.score += 0.1
	}
	if o.HasOwnState() && (o.Coordinator != nil) != c.Source {
		return n, false
	}
	return n, share == 1 || alike >= nearLeast
}

// likeness is 1 for equal names, and 0 for those that have nothing in common.
func likeness(a, b string) float64 {
	a, b = strings.ToLower(a), strings.ToLower(b)
	longer := max(len(a), len(b))
	if longer == 0 || a == "" || b == "" {
		return 0
	}
	return 1 - float64(base.Distance(a, b))/float64(longer)
}

// hint says what to do if an operator was renamed to one of these.
func hint(nearest []Near) string {
	if len(nearest) == 0 {
		return ""
	}
	n := nearest[0]
	why := "is called much alike"
	switch {
	case n.Stored > 0 && n.States == n.Stored:
		why = "has a place for all of it"
	case n.States > 0:
		why = fmt.Sprintf("has a place for %d of its %d states", n.States, n.Stored)
	}
	at := ""
	if n.Made != "" {
		at = fmt.Sprintf(" (made at %s)", n.Made)
	}
	s := fmt.Sprintf("if it was renamed to %q%s, which is new and %s, write %s there", n.UID, at, why, n.Fix)
	if len(nearest) > 1 {
		var others []string
		for _, o := range nearest[1:] {
			others = append(others, fmt.Sprintf("%q", o.UID))
		}
		s += fmt.Sprintf(" (near, too: %s)", strings.Join(others, ", "))
	}
	return s
}
