package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/weirstream/weir/internal/base"
)

// role is what a node does.
type role int

const (
	splitsSource role = iota // reads splits that its enumerator assigns
	rulesSource              // reads one list
	relay                    // passes on what it gets
	counter                  // counts by key, and passes the counts on
	sink                     // commits transactions in two phases
	roles
)

func (r role) String() string { return [...]string{"splits", "rules", "relay", "count", "sink"}[r] }

// edge is how a sender chooses among the receivers of an edge, and what becomes of records in flight at another parallelism.
type edge int

const (
	hash      edge = iota // by key
	rebalance             // any
	pointwise             // by subtask
	global                // the first
	broadcast             // all; never in flight
	edges
)

func (e edge) String() string {
	return [...]string{"hash", "rebalance", "pointwise", "global", "broadcast"}[e]
}

// feed is an input of a node. Its number is unique in the topology.
type feed struct {
	from   int
	edge   edge
	number int
}

// node is a vertex of the job.
type node struct {
	role  role
	feeds []feed
	rules bool // it sends rules, not data
}

// topology is a job of any shape: one or two sources of splits, perhaps one of rules (perhaps through a relay of several
// subtasks), up to three nodes behind them that unite and fan out, and one or two sinks. Rules are broadcast. It is in
// topological order.
type topology struct {
	nodes []node
	feeds int
}

// handlersMax is how many subtasks, and so barrier handlers, a job has at most.
const handlersMax = 12

func randomTopology(r *rand.Rand) *topology {
	g := &topology{}
	data := []int{g.add(node{role: splitsSource})}
	if r.IntN(3) == 0 {
		data = append(data, g.add(node{role: splitsSource}))
	}
	rules := -1
	if r.IntN(2) == 0 {
		rules = g.add(node{role: rulesSource, rules: true})
		if r.IntN(3) == 0 {
			rules = g.add(node{role: relay, rules: true}, feed{from: rules, edge: rebalance})
		}
	}
	idle := slices.Clone(data) // nodes that nothing reads from
	for i := range 1 + r.IntN(3) {
		n := node{role: relay + role(r.IntN(2))}
		if i == 0 {
			n.role = counter
		}
		from := takeSome(r, data, &idle)
		var broadcasts []feed
		if rules >= 0 && (i == 0 || r.IntN(2) == 0) {
			broadcasts = []feed{{from: rules, edge: broadcast}}
		}
		at := g.add(n, append(g.dataFeeds(r, n.role, from), broadcasts...)...)
		data, idle = append(data, at), append(idle, at)
	}
	if r.IntN(4) == 0 {
		g.add(node{role: sink}, g.dataFeeds(r, sink, takeSome(r, data, &idle))...)
	}
	last := idle
	if len(last) == 0 {
		last = data[len(data)-1:]
	}
	feeds := g.dataFeeds(r, sink, last)
	if rules >= 0 && r.IntN(4) == 0 {
		feeds = append(feeds, feed{from: rules, edge: broadcast})
	}
	g.add(node{role: sink}, feeds...)
	return g
}

// takeSome chooses one or two nodes to read from, first of all one that nothing reads from.
func takeSome(r *rand.Rand, data []int, idle *[]int) []int {
	pool := *idle
	if len(pool) == 0 {
		pool = data
	}
	some := []int{pool[r.IntN(len(pool))]}
	if second := data[r.IntN(len(data))]; second != some[0] && r.IntN(3) == 0 {
		some = append(some, second)
	}
	*idle = slices.DeleteFunc(*idle, func(n int) bool { return slices.Contains(some, n) })
	return some
}

// dataFeeds are the inputs of a node; a counter must see all of a key.
func (g *topology) dataFeeds(r *rand.Rand, ro role, from []int) []feed {
	var feeds []feed
	for _, n := range from {
		e := edge(r.IntN(int(broadcast)))
		if ro == counter {
			e = hash
		}
		feeds = append(feeds, feed{from: n, edge: e})
	}
	return feeds
}

func (g *topology) add(n node, feeds ...feed) int {
	for _, f := range feeds {
		f.number = g.feeds
		g.feeds++
		n.feeds = append(n.feeds, f)
	}
	g.nodes = append(g.nodes, n)
	return len(g.nodes) - 1
}

// pathsFrom is how often a record of a source comes to each node: over how many paths. Rules do not count.
func (g *topology) pathsFrom(source int) []int {
	paths := make([]int, len(g.nodes))
	paths[source] = 1
	for i, n := range g.nodes {
		for _, f := range n.feeds {
			if f.edge != broadcast && !n.rules {
				paths[i] += paths[f.from]
			}
		}
	}
	return paths
}

// randomParallelism deals out up to handlersMax subtasks.
func (g *topology) randomParallelism(r *rand.Rand) []int {
	const most = 4
	p := make([]int, len(g.nodes))
	for i := range p {
		p[i] = 1
	}
	for range r.IntN(handlersMax - len(g.nodes) + 1) {
		if i := r.IntN(len(p)); g.nodes[i].role != rulesSource && p[i] < most {
			p[i]++
		}
	}
	return p
}

// graph is what the coordinator knows of the job.
func (g *topology) graph(parallel []int, union int) Graph {
	var graph Graph
	for i, n := range g.nodes {
		v := Vertex{
			Name: fmt.Sprint(n.role, i), First: base.Task(graph.Tasks()), Parallelism: parallel[i],
			Coordinated: n.role == splitsSource, Union: i == union,
		}
		for _, f := range n.feeds {
			e := Edge{From: f.from}
			if f.edge == pointwise {
				e.Pattern = Pointwise
			}
			v.Inputs = append(v.Inputs, e)
		}
		graph.Vertices = append(graph.Vertices, v)
	}
	return graph
}

// String draws the topology in one line.
func (g *topology) String() string {
	text := ""
	for i, n := range g.nodes {
		text += fmt.Sprintf(" %v%d", n.role, i)
		for j, f := range n.feeds {
			text += fmt.Sprintf("%c%v %d", "(,"[min(j, 1)], f.edge, f.from)
			if j == len(n.feeds)-1 {
				text += ")"
			}
		}
	}
	return text[1:]
}
