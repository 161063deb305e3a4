package weirtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/cluster"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/graph"
)

// A harness does not know how operators are made: it has the environment build the job of a scripted source, what is to be tested, and a
// sink, as a program would, and takes the job's graph apart.
//
//	[source] --entry--> (the piece: nodes and inner edges) --exit--> [sink]
//
// Of the source and the sink nothing is run.

// plan is a piece of a job, taken out of its graph.
type plan struct {
	job     *graph.Job
	config  *config.Config
	nodes   []*graph.Node // of the piece, upstream first
	inner   []*graph.Edge
	entries [][]*graph.Edge // by source
	exits   []*graph.Edge
}

// outlet is the uid of a harness's sink.
const outlet = "weirtest outlet"

// graphOf is the graph of what an environment has built, which is not run.
func graphOf(env *weir.Env) (job cluster.Job, err error) {
	ctx := cluster.WithTuning(context.Background(), func(j *cluster.Job) {
		j.Instead = func(built cluster.Job) error {
			job = built
			return nil
		}
	})
	err = env.Execute(ctx, "harness")
	return job, err
}

// planOf takes the piece out of the graph of a job whose first nodes are as many sources of the harness.
func planOf(t testing.TB, env *weir.Env, sources int) *plan {
	t.Helper()
	built, err := graphOf(env)
	if err != nil {
		t.Fatal("weirtest: the piece of a job cannot run: ", err)
	}
	p := &plan{job: built.Graph, config: built.Config, entries: make([][]*graph.Edge, sources)}
	nodes := map[graph.NodeID]*graph.Node{}
	for _, v := range p.job.Vertices {
		for _, n := range v.Nodes {
			nodes[n.ID] = n
			if int(n.ID) >= sources && n.UID != outlet {
				p.nodes = append(p.nodes, n)
			}
		}
	}
	for _, v := range p.job.Vertices {
		for _, e := range v.Inner {
			p.add(t, e, e.Partitioning, nodes)
		}
		for _, l := range v.Inputs {
			p.add(t, l.Edge, l.Kind, nodes)
		}
	}
	return p
}

// add sorts an edge in.
func (p *plan) add(t testing.TB, e *graph.Edge, kind graph.Partitioning, nodes map[graph.NodeID]*graph.Node) {
	t.Helper()
	from, to := nodes[e.From], nodes[e.To]
	fromSource := int(e.From) < len(p.entries)
	switch {
	case fromSource && to.UID == outlet:
		t.Fatal("weirtest: the piece of a job does nothing with a stream that it was given: there is nothing to test")
	case fromSource:
		p.entries[e.From] = append(p.entries[e.From], e)
	case to.UID == outlet:
		p.exits = append(p.exits, e)
	case kind == graph.Forward:
		p.inner = append(p.inner, e)
	default:
		t.Fatal(fmt.Sprintf("weirtest: a harness drives one task, but between %s and %s records change their subtask (%v): "+
			"give the two harnesses of their own, or test them together with Run or Crash", from.Label(), to.Label(), kind))
	}
}

// head is true of a node that records enter the piece by.
func (p *plan) head(n *graph.Node) bool {
	for _, edges := range p.entries {
		for _, e := range edges {
			if e.To == n.ID {
				return true
			}
		}
	}
	return n.Kind == graph.Source
}
