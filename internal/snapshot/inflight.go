package snapshot

import (
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/base"
)

// Records in flight are given to the new receivers by how their edge sends records now:
//
//	hash        by the key's hash: each reads the parts of the old receivers whose key groups meet its own, and takes its own
//	pointwise   the part of old receiver i goes to i*new/old, whole
//	in turn     the same parallelism: each its own part; else record k of a part to (k + its old receiver) mod new
//	first       to subtask 0
//	all         to everyone: only an edge that became a broadcast has any, as broadcast edges are aligned
//	choice      everyone reads all, and asks the user's function
//
// (Flink cannot rescale pointwise edges.) A part that was still with its sender has no old receiver: it is dealt likewise, by its
// sender's index where an index is needed, and by hash everyone reads it.

// Routing is how an edge sends records to the subtasks of its receiver.
type Routing uint8

const (
	ByHash Routing = iota
	Pointwise
	InTurn
	ToFirst
	ToAll
	ByChoice
)

func (r Routing) String() string {
	return [...]string{"by key", "pointwise", "in turn", "to the first", "to all", "by choice"}[r]
}

// ProgramEdge is an edge of the job that takes state back, also one within a chain.
type ProgramEdge struct {
	EdgeSchema
	Routing Routing
}

// InFlightPart is one handle with records that a new subtask reads.
type InFlightPart struct {
	InFlightHandle
	// Record is the schema that they were written with.
	Record  string
	Routing Routing
	// All of them are the subtask's. Else it takes its own: by Routing, and in turn those whose number in the part, counted from
	// Turn, divides by the parallelism with the subtask as remainder.
	All  bool
	Turn int
	// Old is who would have received them, of OldParallelism; 0 of 0: it is not known.
	Old, OldParallelism int
}

// assignInFlight is what the subtask of the operator uid reads of the records in flight on one edge to it.
func (m *Metadata) assignInFlight(e ProgramEdge, parallelism, subtask int) (parts []InFlightPart) {
	for i := range m.Operators {
		o := &m.Operators[i]
		if o.UID != e.To && o.UID != e.From {
			continue
		}
		for j := range o.Subtasks {
			for _, h := range o.Subtasks[j].InFlight {
				if h.Edge != e.Edge {
					continue
				}
				p := InFlightPart{InFlightHandle: h, Record: m.RecordOf(h.Edge), Routing: e.Routing, Turn: j, OldParallelism: o.Parallelism, Old: j}
				if p.deal(parallelism, subtask) {
					parts = append(parts, p)
				}
			}
		}
	}
	// Of one channel, what had arrived comes before what was still with the sender.
	slices.SortStableFunc(parts, func(a, b InFlightPart) int {
		switch {
		case a.Output == b.Output:
			return 0
		case b.Output:
			return -1
		}
		return 1
	})
	return parts
}

// deal decides whether the subtask reads the part, and what of it.
func (p *InFlightPart) deal(parallelism, subtask int) bool {
	old, of := p.Old, p.OldParallelism
	if p.Output {
		p.Old, p.OldParallelism = 0, 0
	}
	switch p.Routing {
	case ByHash:
		_, meets := base.RangeOf(old, of).Intersect(base.RangeOf(subtask, parallelism))
		return p.Output || meets
	case Pointwise:
		p.All = true
		return old*parallelism/of == subtask
	case InTurn:
		p.All = of == parallelism
		return !p.All || old == subtask
	case ToFirst:
		p.All = true
		return subtask == 0
	case ToAll:
		p.All = true
		return true
	case ByChoice:
		return true
	}
	panic(fmt.Sprintf("snapshot: routing %d", p.Routing))
}

// RecordOf is the schema of the records in flight on an edge; "": there are none.
func (m *Metadata) RecordOf(e Edge) string {
	for i := range m.Operators {
		for _, s := range m.Operators[i].InFlight {
			if s.Edge == e {
				return s.Record
			}
		}
	}
	return ""
}

// inFlight counts the records in flight by edge, in the order in which edges come.
func (m *Metadata) inFlight() (edges []Edge, records map[Edge]int64) {
	records = map[Edge]int64{}
	for i := range m.Operators {
		for j := range m.Operators[i].Subtasks {
			for _, h := range m.Operators[i].Subtasks[j].InFlight {
				if _, seen := records[h.Edge]; !seen {
					edges = append(edges, h.Edge)
				}
				records[h.Edge] += h.Records
			}
		}
	}
	return edges, records
}

// matchEdges finds the program's edges for the records in flight, and names those that have none.
func (m *Metadata) matchEdges(program []ProgramEdge) (unmatched []string) {
	edges, records := m.inFlight()
	for _, e := range edges {
		if !slices.ContainsFunc(program, func(p ProgramEdge) bool { return p.Edge == e }) {
			unmatched = append(unmatched, fmt.Sprintf("%d records in flight on the edge %v", records[e], e))
		}
	}
	return unmatched
}

// validateEdges refuses a checkpoint whose records in flight have no type, or more than one.
func (v *validator) validateEdges(m *Metadata) {
	edges, _ := m.inFlight()
	for _, e := range edges {
		if m.RecordOf(e) == "" {
			v.fault("the type of the records in flight on the edge %v is not there", e)
		}
	}
}
