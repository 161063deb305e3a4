package snapshot

import (
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/base"
)

// Records in flight: who reads what an unaligned barrier overtook. They were on their way to an old receiver over an edge; how that
// edge sends records now says which new subtasks read its part, and what each takes of it:
//
//	by key      those whose key groups meet the old receiver's; each takes the records whose keys are its own
//	pointwise   old receiver i's part goes whole to i * new / old
//	in turn     the same; where there are more new subtasks than old, all those of which i is nearest share it, in turn
//	to first    subtask 0, whole
//	to all      everyone, whole. A broadcast edge holds its barriers in their places, so this is one that has become a broadcast.
//	by choice   at the same parallelism the old receiver, whole: the user's function has chosen him already. Else everyone, and each asks
//	            the function, which must then give the same answer to all.
//
//	        old, 2     |      0       |      1       |
//	        new, 3     |    0    |    1    |    2    |      by key: 1 reads both parts.    pointwise: 0 reads the first, 1 the second.
//
// An edge within a chain is pointwise. (Flink has no way for pointwise edges: it does not let barriers overtake there.)
//
// A part that was still with its sender is given out by the sender's number, as if the records had been for the receiver of that
// number; only by key and by choice everyone reads it.

// Routing is how an edge sends records to the subtasks of its receiver.
type Routing uint8

const (
	ByKey Routing = iota
	Pointwise
	InTurn
	ToFirst
	ToAll
	ByChoice
)

// ProgramEdge is an edge of the job, or one within a chain.
type ProgramEdge struct {
	EdgeSchema
	Routing Routing
}

// InFlightPart is a handle with records in flight that a new subtask reads.
type InFlightPart struct {
	InFlightHandle
	// Record is the schema that they were written with.
	Record string
	// All of them are the subtask's. Else it takes its own: by key and by choice it asks the edge; in turn record number k, counted from 0
	// over the handle, is its own when k mod Of is Turn.
	All      bool
	Turn, Of int
	// Old would have received them, as one of OldParallelism; 0 of 0: it is not known.
	Old, OldParallelism int
}

// MatchedEdge is an edge of the program with the records in flight that were on it.
type MatchedEdge struct {
	ProgramEdge
	// Written is the schema that the records were written with; Records is how many they are.
	Written string
	Records int64
	// arrived and held are the parts of the receiver's subtasks and of the sender's, each ascending by subtask.
	arrived, held flights
}

// flights are records in flight by the old subtask that reported them.
type flights struct {
	parallelism int
	parts       []flight
}

type flight struct {
	subtask int
	handle  InFlightHandle
}

// Assign is what a subtask of the receiver reads: of each sender first what had arrived, then what it still held.
func (e *MatchedEdge) Assign(parallelism, subtask int) []InFlightPart {
	return append(e.assign(&e.arrived, parallelism, subtask), e.assign(&e.held, parallelism, subtask)...)
}

func (e *MatchedEdge) assign(f *flights, parallelism, subtask int) (parts []InFlightPart) {
	if len(f.parts) == 0 {
		return nil
	}
	held := f == &e.held
	ask := held && (e.Routing == ByKey || e.Routing == ByChoice) // who would have received them is not known
	first, last := e.Routing.reads(f.parallelism, parallelism, subtask)
	if ask {
		first, last = 0, f.parallelism-1
	}
	i, _ := slices.BinarySearchFunc(f.parts, first, func(p flight, first int) int { return p.subtask - first })
	for ; i < len(f.parts) && f.parts[i].subtask <= last; i++ {
		old := f.parts[i]
		p := InFlightPart{InFlightHandle: old.handle, Record: e.Written, Old: old.subtask, OldParallelism: f.parallelism}
		if held {
			p.Old, p.OldParallelism = 0, 0
		}
		if !ask {
			p.All, p.Turn, p.Of = e.Routing.takes(old.subtask, f.parallelism, parallelism, subtask)
		}
		parts = append(parts, p)
	}
	return parts
}

// reads are the old receivers, of old, whose parts one of parallelism subtasks reads: first to last.
func (r Routing) reads(old, parallelism, subtask int) (first, last int) {
	switch r {
	case ByKey:
		least, largest := base.RangeOf(subtask, parallelism).Hashes()
		return base.OwnerOf(least, old), base.OwnerOf(largest, old)
	case InTurn:
		if parallelism > old {
			return subtask * old / parallelism, subtask * old / parallelism
		}
		return nearest(subtask, parallelism, old)
	case Pointwise:
		return nearest(subtask, parallelism, old)
	case ToFirst:
		if subtask > 0 {
			return 0, -1
		}
	case ByChoice:
		if parallelism == old {
			return subtask, subtask
		}
	}
	return 0, old - 1
}

// nearest are the j of to with j * of / to == i: first to last, or none.
func nearest(i, of, to int) (first, last int) {
	return (i*to + of - 1) / of, ((i+1)*to+of-1)/of - 1
}

// takes is what the subtask takes of the part of one old receiver that it reads.
func (r Routing) takes(receiver, old, parallelism, subtask int) (all bool, turn, of int) {
	switch r {
	case ByKey:
		return false, 0, 0
	case ByChoice:
		return parallelism == old, 0, 0
	case InTurn:
		if first, last := nearest(receiver, old, parallelism); last > first {
			return false, subtask - first, last - first + 1
		}
	}
	return true, 0, 0
}

// edgeFlights are the records in flight on one edge of a checkpoint.
type edgeFlights struct {
	Edge
	records       int64
	arrived, held flights
}

// inFlight gathers the records in flight by edge, in the order in which edges come.
func (m *Metadata) inFlight() (edges []*edgeFlights) {
	byEdge := map[Edge]*edgeFlights{}
	for i := range m.Operators {
		o := &m.Operators[i]
		for j := range o.Subtasks {
			for _, h := range o.Subtasks[j].InFlight {
				e := byEdge[h.Edge]
				if e == nil {
					e = &edgeFlights{Edge: h.Edge}
					byEdge[h.Edge] = e
					edges = append(edges, e)
				}
				e.add(h, o.Parallelism, j)
			}
		}
	}
	return edges
}

func (e *edgeFlights) add(h InFlightHandle, parallelism, subtask int) {
	f := &e.arrived
	if h.Output {
		f = &e.held
	}
	f.parallelism = parallelism
	f.parts = append(f.parts, flight{subtask, h})
	e.records += h.Records
}

// recordsOf is the schema of the records of each edge that has records in flight.
func (m *Metadata) recordsOf() map[Edge]string {
	records := map[Edge]string{}
	for i := range m.Operators {
		for _, s := range m.Operators[i].InFlight {
			records[s.Edge] = s.Record
		}
	}
	return records
}

// LostEdge is an edge of a checkpoint with records in flight, that the program does not have.
type LostEdge struct {
	Edge
	Records int64
	// Placed: it does seem to be there, but an end of it has no UID, and operators came or went.
	Placed bool
}

func (e LostEdge) String() string {
	s := fmt.Sprintf("%d records in flight on the edge %v", e.Records, e.Edge)
	if e.Placed {
		s += ", of which an end has no UID and could be told by its place in the program only while no operator came or went"
	}
	return s
}

// matchEdges finds the program's edges for the records in flight, and those that have none.
func (m *Metadata) matchEdges(p Program) (matched []*MatchedEdge, lost []LostEdge) {
	records, same := m.recordsOf(), m.sameOperators(p)
	for _, f := range m.inFlight() {
		i := slices.IndexFunc(p.Edges, func(e ProgramEdge) bool { return e.Edge == f.Edge })
		placed := slices.Contains(p.Places, f.From) || slices.Contains(p.Places, f.To)
		switch {
		case i < 0:
			lost = append(lost, LostEdge{Edge: f.Edge, Records: f.records})
		case placed && !same:
			lost = append(lost, LostEdge{Edge: f.Edge, Records: f.records, Placed: true})
		default:
			matched = append(matched, &MatchedEdge{ProgramEdge: p.Edges[i], Written: records[f.Edge], Records: f.records, arrived: f.arrived, held: f.held})
		}
	}
	return matched, lost
}

// sameOperators is true where the program has just the operators of the checkpoint.
func (m *Metadata) sameOperators(p Program) bool {
	for i := range m.Operators {
		if !slices.Contains(p.Operators, m.Operators[i].UID) {
			return false
		}
	}
	return len(p.Operators) == len(m.Operators)
}
