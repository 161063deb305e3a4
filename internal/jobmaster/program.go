package jobmaster

import (
	"fmt"

	"github.com/weirstream/weir/internal/fit"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
)

// Program is what of a job takes the state of a snapshot back.
func Program(g *graph.Job, hooks []Hook) fit.Program {
	var p fit.Program
	for _, v := range g.Vertices {
		w := snapshot.Vertex{Name: v.Name}
		for _, n := range v.Nodes {
			p.Operators = append(p.Operators, programOperator(n, v))
			w.Operators = append(w.Operators, n.StateID())
		}
		for _, e := range v.Inner {
			p.Edges = append(p.Edges, programEdge(e, v, v, snapshot.Pointwise))
		}
		for _, l := range v.Inputs {
			p.Edges = append(p.Edges, programEdge(l.Edge, l.From, v, routingOf(l.Kind)))
			w.Inputs = append(w.Inputs, snapshot.VertexInput{From: l.From.Index, AllToAll: !l.Kind.Pointwise()})
		}
		p.Vertices = append(p.Vertices, w)
	}
	for _, h := range hooks {
		p.Hooks = append(p.Hooks, h.ID())
	}
	return p
}

func programOperator(n *graph.Node, v *graph.Vertex) fit.Operator {
	return fit.Operator{ID: n.StateID(), Placed: n.UID == "", Was: n.Was, Name: n.Name, Made: n.Made, Parallelism: v.Parallelism,
		Source: n.Kind == graph.Source, States: n.Schemas}
}

func programEdge(e *graph.Edge, from, to *graph.Vertex, r snapshot.Routing) snapshot.ProgramEdge {
	p := snapshot.ProgramEdge{Routing: r}
	p.Edge = e.ID(from, to)
	if w, ok := e.Wire.(operator.Wire); ok { // tests run without
		p.Record, _ = w.Record() // a type without a schema is refused if there are records of it
	}
	return p
}

func routingOf(p graph.Partitioning) snapshot.Routing {
	switch p {
	case graph.Hash:
		return snapshot.ByKey
	case graph.Forward, graph.Rescale:
		return snapshot.Pointwise
	case graph.Rebalance:
		return snapshot.InTurn
	case graph.Global:
		return snapshot.ToFirst
	case graph.Broadcast:
		return snapshot.ToAll
	case graph.Custom:
		return snapshot.ByChoice
	}
	panic(fmt.Sprintf("jobmaster: partitioning %v", p))
}
