package snapshot

import (
	"fmt"
)

// Vertex is a vertex of the job that is restored: a chain of operators that run in one task.
type Vertex struct {
	Name string
	// Operators are the chain's UIDs.
	Operators []string
	Inputs    []VertexInput
}

// VertexInput is an edge into a vertex.
type VertexInput struct {
	// From is the index of the upstream vertex.
	From int
	// AllToAll says that every upstream subtask feeds every subtask; else the edge is pointwise.
	AllToAll bool
}

// finish is how far a vertex had come to its end when the checkpoint was taken.
type finish int

const (
	running finish = iota
	partlyFinished
	fullyFinished
)

func (f finish) String() string {
	return [...]string{"running", "partly finished", "fully finished"}[f]
}

// ValidateFinished refuses a changed job that would feed what had already finished: a finished operator reads no more, so its
// new predecessor's records would be lost (Flink's VertexFinishedStateChecker).
//
//   - All operators of a vertex must be equally finished: a chain ends as a whole.
//   - Before a fully finished vertex everything must be fully finished.
//   - Before a partly finished vertex an all-to-all input must be fully finished, and a pointwise one at least partly.
func (m *Metadata) ValidateFinished(vertices []Vertex) error {
	byUID := map[string]*Operator{}
	for i := range m.Operators {
		byUID[m.Operators[i].UID] = &m.Operators[i]
	}
	states := make([]finish, len(vertices))
	for i := range vertices {
		f, err := vertices[i].finish(byUID)
		if err != nil {
			return err
		}
		states[i] = f
	}
	for i := range vertices {
		if err := vertices[i].checkInputs(states[i], vertices, states); err != nil {
			return err
		}
	}
	return nil
}

func (v *Vertex) finish(byUID map[string]*Operator) (finish, error) {
	all := running
	for i, uid := range v.Operators {
		f := running
		if o := byUID[uid]; o != nil {
			f = o.finish()
		}
		if i > 0 && f != all {
			return 0, fmt.Errorf("snapshot: vertex %q cannot be restored: its operator %q is %v in the checkpoint, but %q is %v; "+
				"operators of one chain must be equally finished, so put the new one elsewhere or break the chain", v.Name, v.Operators[0], all, uid, f)
		}
		all = f
	}
	return all, nil
}

func (o *Operator) finish() finish {
	switch ended := o.countEnded(); {
	case o.Finished || ended == o.Parallelism:
		return fullyFinished
	case ended > 0:
		return partlyFinished
	}
	return running
}

func (v *Vertex) checkInputs(f finish, vertices []Vertex, states []finish) error {
	if f == running {
		return nil
	}
	for _, in := range v.Inputs {
		needed := partlyFinished
		if f == fullyFinished || in.AllToAll {
			needed = fullyFinished
		}
		if states[in.From] < needed {
			return fmt.Errorf("snapshot: the job was changed in a way that loses records: vertex %q is %v in the checkpoint, so its "+
				"input %q must be %v, but is %v", v.Name, f, vertices[in.From].Name, needed, states[in.From])
		}
	}
	return nil
}

// Ended says how many of the operator's subtasks had come to their end: "all", "some", or none: "".
func (o *Operator) Ended() string {
	return [...]string{"", "some", "all"}[o.finish()]
}
