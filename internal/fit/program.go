package fit

import (
	"github.com/weirstream/weir/internal/snapshot"
)

// Program is what takes the state of a snapshot back.
type Program struct {
	Operators []Operator
	// Edges are all edges between them, also those within a chain.
	Edges []snapshot.ProgramEdge
	// Hooks are the ids of the master hooks.
	Hooks []string
	// Vertices are the chains. Their operators are by ID.
	Vertices []snapshot.Vertex
}

// Operator is one operator of a program.
type Operator struct {
	// ID is what its state is found by: its UID, or, where it is Placed, its place in the program.
	ID     string
	Placed bool
	// Was are UIDs that it had in older versions of the program, the latest first.
	Was []string
	// Name and Made are for people: Made is the line that made it.
	Name, Made  string
	Parallelism int
	// Source: it has an enumerator.
	Source bool
	States []snapshot.StateSchema
}

// takers is the program as a snapshot matches it.
func (p Program) takers() snapshot.Program {
	t := snapshot.Program{Edges: p.Edges, Hooks: p.Hooks}
	for _, o := range p.Operators {
		t.Operators = append(t.Operators, o.ID)
		if o.Placed {
			t.Places = append(t.Places, o.ID)
		}
	}
	return t
}

// Match is who takes which state of the snapshot back. Adopt comes first.
func (p Program) Match(m *snapshot.Metadata) *snapshot.Match { return m.Match(p.takers()) }

// Adopt is the snapshot with the UIDs that its operators have in the program now, where they have become others. An operator whose own
// UID the snapshot has adopts nothing; of several old UIDs the first counts that the snapshot has.
func (p Program) Adopt(m *snapshot.Metadata) *snapshot.Metadata { return m.Renamed(p.renames(m)) }

// renames has the new UID of each old one.
func (p Program) renames(m *snapshot.Metadata) map[string]string {
	stored := map[string]bool{}
	for i := range m.Operators {
		stored[m.Operators[i].UID] = true
	}
	renamed := map[string]string{}
	for _, o := range p.Operators {
		if stored[o.ID] {
			continue
		}
		for _, was := range o.Was {
			if stored[was] {
				renamed[was] = o.ID
				break
			}
		}
	}
	return renamed
}

func (p Program) operator(id string) *Operator {
	for i := range p.Operators {
		if p.Operators[i].ID == id {
			return &p.Operators[i]
		}
	}
	return nil
}
