package snapshot

import (
	"fmt"
	"slices"
	"strings"
)

// Program is what a job has that may take state back.
type Program struct {
	// Operators are the UIDs of all operators.
	Operators []string
	// Places are those of them that have no UID, and are called by their place in the program.
	Places []string
	// Edges are all edges between them, also those within a chain.
	Edges []ProgramEdge
	// Hooks are the ids of the master hooks.
	Hooks []string
}

// Match is who takes which state back. What is in neither map starts empty.
type Match struct {
	Operators map[string]*Operator
	Hooks     map[string]*Hook
	// Edges are the program's edges with records in flight.
	Edges []*MatchedEdge

	// Below is the state that nobody takes: of operators, hooks and edges. Whether it may be dropped is for others to say.
	LostOperators []*Operator
	LostHooks     []*Hook
	LostEdges     []LostEdge
}

// Match finds the program's operators, edges and hooks in the checkpoint. Operators without state may go: they are not lost.
func (m *Metadata) Match(p Program) *Match {
	match := &Match{Operators: map[string]*Operator{}, Hooks: map[string]*Hook{}}
	for i := range m.Operators {
		o := &m.Operators[i]
		switch {
		case slices.Contains(p.Operators, o.UID):
			match.Operators[o.UID] = o
		case o.HasOwnState():
			match.LostOperators = append(match.LostOperators, o)
		}
	}
	for i := range m.Hooks {
		h := &m.Hooks[i]
		if slices.Contains(p.Hooks, h.ID) {
			match.Hooks[h.ID] = h
		} else {
			match.LostHooks = append(match.LostHooks, h)
		}
	}
	match.Edges, match.LostEdges = m.matchEdges(p)
	return match
}

// Lost names each operator, hook and edge that nobody takes back, with what it has.
func (m *Match) Lost() []string {
	var all []string
	for _, o := range m.LostOperators {
		all = append(all, fmt.Sprintf("%v with %s", o, o.Inventory()))
	}
	for _, h := range m.LostHooks {
		all = append(all, fmt.Sprintf("master hook %q", h.ID))
	}
	for _, e := range m.LostEdges {
		all = append(all, e.String())
	}
	return all
}

// Inventory names the operator's states.
func (o *Operator) Inventory() string {
	states := make([]string, 0, len(o.Schemas)+1)
	for _, s := range o.Schemas {
		if strings.HasPrefix(s.Name, "(") { // the engine's own
			states = append(states, s.Kind)
			continue
		}
		states = append(states, fmt.Sprintf("%s %q", s.Kind, s.Name))
	}
	if o.Coordinator != nil {
		states = append(states, "coordinator")
	}
	return strings.Join(states, ", ")
}

// Renamed is the checkpoint with other UIDs for some of its operators: renamed has the new one of each old one. What the operators and
// the edges between them have stays; m is left as it is. No new UID may be one that the checkpoint has.
func (m *Metadata) Renamed(renamed map[string]string) *Metadata {
	if len(renamed) == 0 {
		return m
	}
	now := func(uid string) string {
		if n, ok := renamed[uid]; ok {
			return n
		}
		return uid
	}
	edge := func(e Edge) Edge {
		e.From, e.To = now(e.From), now(e.To)
		return e
	}
	other := *m
	other.Operators = slices.Clone(m.Operators)
	for i := range other.Operators {
		o := &other.Operators[i]
		o.UID = now(o.UID)
		o.InFlight = slices.Clone(o.InFlight)
		for j := range o.InFlight {
			o.InFlight[j].Edge = edge(o.InFlight[j].Edge)
		}
		o.Subtasks = slices.Clone(o.Subtasks)
		for j := range o.Subtasks {
			s := &o.Subtasks[j]
			s.InFlight = slices.Clone(s.InFlight)
			for k := range s.InFlight {
				s.InFlight[k].Edge = edge(s.InFlight[k].Edge)
			}
		}
	}
	return &other
}
