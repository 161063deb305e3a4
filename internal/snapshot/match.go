package snapshot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/base"
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
	// Dropped names the state that nobody takes, for the log.
	Dropped []string
}

// UnmatchedError says that a checkpoint has state that the program has no place for.
type UnmatchedError struct {
	ID base.CheckpointID
	// Unmatched names each such operator, hook and edge with what it has; Program are the program's UIDs.
	Unmatched, Program []string
	// InFlight: there are records in flight among it.
	InFlight bool
}

func (e *UnmatchedError) Error() string {
	hint := ""
	if e.InFlight {
		hint = "Restore the program that the records were in flight in, or restore from a savepoint: it has none. "
	}
	return fmt.Sprintf("snapshot: checkpoint %d has state that the program has no place for: %s. The program's UIDs are: %s. %s"+
		"Give an operator that was renamed its old UID back; to drop the state, allow it with --allowNonRestoredState "+
		"(execution.state-recovery.ignore-unclaimed-state: true)", e.ID, strings.Join(e.Unmatched, "; "), strings.Join(e.Program, ", "), hint)
}

// Match finds the program's operators, edges and hooks in the checkpoint. State that nobody takes is an
// *UnmatchedError, or is dropped when that is allowed; operators without state may go.
func (m *Metadata) Match(p Program, allowNonRestored bool) (*Match, error) {
	match := &Match{Operators: map[string]*Operator{}, Hooks: map[string]*Hook{}}
	var unmatched []string
	for i := range m.Operators {
		o := &m.Operators[i]
		switch {
		case slices.Contains(p.Operators, o.UID):
			match.Operators[o.UID] = o
		case o.hasOwnState():
			unmatched = append(unmatched, o.inventory())
		}
	}
	for i := range m.Hooks {
		h := &m.Hooks[i]
		if slices.Contains(p.Hooks, h.ID) {
			match.Hooks[h.ID] = h
		} else {
			unmatched = append(unmatched, fmt.Sprintf("master hook %q", h.ID))
		}
	}
	var lost []string
	match.Edges, lost = m.matchEdges(p)
	unmatched = append(unmatched, lost...)
	if len(unmatched) > 0 && !allowNonRestored {
		return nil, &UnmatchedError{ID: m.ID, Unmatched: unmatched, InFlight: len(lost) > 0, Program: slices.Sorted(slices.Values(p.Operators))}
	}
	match.Dropped = unmatched
	return match, nil
}

// inventory names the operator and its states.
func (o *Operator) inventory() string {
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
	return fmt.Sprintf("%v with %s", o, strings.Join(states, ", "))
}
