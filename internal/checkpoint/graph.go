package checkpoint

import (
	"errors"
	"fmt"

	"github.com/weirstream/weir/internal/base"
)

// Graph is the part of the job graph that a Coordinator needs.
type Graph struct {
	Vertices []Vertex // in topological order
}

// Vertex is a set of subtasks that run the same chain of operators.
type Vertex struct {
	Name        string    // for messages
	First       base.Task // its subtasks are the tasks First .. First+Parallelism-1
	Parallelism int
	Coordinated bool // it has an operator coordinator; only sources may
	Union       bool // an operator has union state, which only all subtasks together can restore
	Inputs      []Edge
}

// Edge is an input of a vertex.
type Edge struct {
	From    int // index of the upstream vertex
	Pattern Pattern
}

// Pattern says which subtasks an edge connects.
type Pattern uint8

const (
	// AllToAll connects every upstream subtask with every downstream one.
	AllToAll Pattern = iota
	// Pointwise connects the subtasks that PointwiseSenders says.
	Pointwise
)

// Tasks is the number of subtasks of all vertices.
func (g *Graph) Tasks() int {
	if len(g.Vertices) == 0 {
		return 0
	}
	v := &g.Vertices[len(g.Vertices)-1]
	return int(v.First) + v.Parallelism
}

// VertexOf is the index of the vertex that t is a subtask of; -1: there is none.
func (g *Graph) VertexOf(t base.Task) int {
	for i := range g.Vertices {
		if v := &g.Vertices[i]; t >= v.First && t < v.First+base.Task(v.Parallelism) {
			return i
		}
	}
	return -1
}

// describe names a task to a person.
func (g *Graph) describe(t base.Task) string {
	i := g.VertexOf(t)
	if i < 0 {
		return fmt.Sprintf("task %d", t)
	}
	v := &g.Vertices[i]
	return fmt.Sprintf("%s (%d/%d)", v.Name, t-v.First+1, v.Parallelism)
}

// PointwiseSenders are the upstream subtasks [lo, hi) that send to downstream subtask i over a pointwise edge.
func PointwiseSenders(up, down, i int) (lo, hi int) {
	lo = i * up / down
	if up < down {
		return lo, lo + 1
	}
	return lo, (i + 1) * up / down
}

// senders are the tasks [lo, hi) that send over e to subtask i of down.
func (g *Graph) senders(down *Vertex, e Edge, i int) (lo, hi base.Task) {
	up := &g.Vertices[e.From]
	first, end := 0, up.Parallelism
	if e.Pattern == Pointwise {
		first, end = PointwiseSenders(up.Parallelism, down.Parallelism, i)
	}
	return up.First + base.Task(first), up.First + base.Task(end)
}

// Validate reports everything that is wrong with g.
func (g *Graph) Validate() error {
	var all []error
	bad := func(i int, format string, args ...any) {
		all = append(all, fmt.Errorf("checkpoint: vertex %d %q: %s", i, g.Vertices[i].Name, fmt.Sprintf(format, args...)))
	}
	next := base.Task(0)
	for i := range g.Vertices {
		v := &g.Vertices[i]
		if v.First != next {
			bad(i, "its first task is %d, want %d: tasks are numbered without a gap", v.First, next)
		}
		if v.Parallelism < 1 {
			bad(i, "parallelism %d, want at least 1", v.Parallelism)
		}
		if v.Coordinated && len(v.Inputs) > 0 {
			bad(i, "has an operator coordinator and inputs: only sources may have one, because nothing orders its events "+
				"with barriers that come through channels")
		}
		for _, e := range v.Inputs {
			if e.From < 0 || e.From >= i {
				bad(i, "has an input from vertex %d, which is not before it: vertices are in topological order", e.From)
			}
		}
		next = v.First + base.Task(v.Parallelism)
	}
	if len(g.Vertices) == 0 {
		all = append(all, errors.New("checkpoint: the graph has no vertex"))
	}
	return errors.Join(all...)
}
