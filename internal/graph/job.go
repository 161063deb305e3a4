package graph

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// Options are the settings that shape a job.
type Options struct {
	Parallelism int  // of nodes that name none; at least 1
	Chaining    bool // operators that can run in one task do
}

// Job is a graph of vertices, ready to run.
type Job struct {
	Name     string
	Vertices []*Vertex // sources first; each after those it reads from
	Hash     uint64    // equal exactly when the same program was built with the same options
	tasks    int
}

// Vertex is a chain of nodes that run in one task, by Parallelism subtasks.
type Vertex struct {
	Index       int
	Name        string
	Parallelism int
	First       base.Task // the number of subtask 0; the others follow
	Nodes       []*Node   // the head first
	Inner       []*Edge   // edges within the chain
	Inputs      []*Link
	Outputs     []*Link
}

// Link is an edge between two vertices. A sender has one channel to each receiver that Receivers names.
type Link struct {
	Edge     *Edge
	From, To *Vertex
	Kind     Partitioning // Forward between unequal parallelisms is Rebalance here
}

// ID is what the edge between nodes of the two vertices is found by in a checkpoint.
func (e *Edge) ID(from, to *Vertex) snapshot.Edge {
	return snapshot.Edge{From: from.Node(e.From).StateID(), To: to.Node(e.To).StateID(), Input: e.Input, Tag: e.Tag, Twin: e.Twin}
}

// Head is the node through which records enter the chain.
func (v *Vertex) Head() *Node { return v.Nodes[0] }

// Node is the node of the chain with that number; nil: it is in another one.
func (v *Vertex) Node(id NodeID) *Node {
	for _, n := range v.Nodes {
		if n.ID == id {
			return n
		}
	}
	return nil
}

// NodeByStateID is the place in the chain of the node that is found in checkpoints by uid; -1: it is in another one.
func (v *Vertex) NodeByStateID(uid string) int {
	for i, n := range v.Nodes {
		if n.StateID() == uid {
			return i
		}
	}
	return -1
}

// IsSource is true where the vertex reads from outside.
func (v *Vertex) IsSource() bool { return v.Head().Kind == Source }

// Subtasks is the number of subtasks of all vertices.
func (j *Job) Subtasks() int { return j.tasks }

// Locate is the vertex and the subtask index of a task.
func (j *Job) Locate(t base.Task) (v *Vertex, subtask int) {
	for _, v := range j.Vertices {
		if t < v.First+base.Task(v.Parallelism) {
			return v, int(t - v.First)
		}
	}
	panic(fmt.Sprintf("graph: task %d of a job with %d", t, j.tasks))
}

// Receivers are the subtasks of l.To that subtask sender of l.From has a channel to, in ascending order.
func (l *Link) Receivers(sender int) []int {
	from, to := l.From.Parallelism, l.To.Parallelism
	switch {
	case l.Kind == Forward:
		return []int{sender}
	case l.Kind == Rescale && from >= to:
		return []int{((sender+1)*to - 1) / from}
	case l.Kind == Rescale:
		return between((sender*to+from-1)/from, ((sender+1)*to-1)/from)
	}
	return between(0, to-1)
}

// Senders are the subtasks of l.From that have a channel to subtask receiver of l.To, in ascending order.
func (l *Link) Senders(receiver int) []int {
	var all []int
	for s := range l.From.Parallelism {
		for _, r := range l.Receivers(s) {
			if r == receiver {
				all = append(all, s)
			}
		}
	}
	return all
}

func between(first, last int) []int {
	all := make([]int, 0, last-first+1)
	for i := first; i <= last; i++ {
		all = append(all, i)
	}
	return all
}

// Regions are the sets of vertices that fail and restart together: the connected parts of the graph, each ascending.
func (j *Job) Regions() [][]int {
	region := make([]int, len(j.Vertices))
	for i := range region {
		region[i] = i
	}
	find := func(i int) int {
		for region[i] != i {
			i = region[i]
		}
		return i
	}
	for _, v := range j.Vertices {
		for _, l := range v.Outputs {
			a, b := find(v.Index), find(l.To.Index)
			region[max(a, b)] = min(a, b)
		}
	}
	at := map[int]int{}
	var all [][]int
	for i := range j.Vertices {
		root := find(i)
		if _, ok := at[root]; !ok {
			at[root] = len(all)
			all = append(all, nil)
		}
		all[at[root]] = append(all[at[root]], i)
	}
	return all
}

// Build validates the logical graph and makes a job of it.
func (l *Logical) Build(name string, o Options) (*Job, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	l.countTwins()
	b := builder{logical: l, options: o, inputs: map[NodeID][]*Edge{}, vertexOf: map[NodeID]*Vertex{}, job: &Job{Name: name}}
	for _, e := range l.Edges {
		b.inputs[e.To] = append(b.inputs[e.To], e)
	}
	for _, n := range l.Nodes {
		b.place(n)
	}
	b.connect()
	b.job.Hash = b.hash()
	return b.job, nil
}

// countTwins tells edges apart that are otherwise the same.
func (l *Logical) countTwins() {
	type ends struct {
		from, to NodeID
		input    int
		tag      string
	}
	seen := map[ends]int{}
	for _, e := range l.Edges {
		k := ends{e.From, e.To, e.Input, e.Tag}
		e.Twin = seen[k]
		seen[k]++
	}
}

type builder struct {
	logical  *Logical
	options  Options
	inputs   map[NodeID][]*Edge
	vertexOf map[NodeID]*Vertex
	job      *Job
}

func (b *builder) parallelism(n *Node) int {
	if n.Parallelism > 0 {
		return n.Parallelism
	}
	return max(1, b.options.Parallelism)
}

// place chains n to its input, or begins a vertex with it.
func (b *builder) place(n *Node) {
	if e := b.chainable(n); e != nil {
		v := b.vertexOf[e.From]
		v.Nodes = append(v.Nodes, n)
		v.Inner = append(v.Inner, e)
		v.Name += " -> " + n.Name
		b.vertexOf[n.ID] = v
		return
	}
	v := &Vertex{Index: len(b.job.Vertices), Name: n.Name, Parallelism: b.parallelism(n), First: base.Task(b.job.tasks), Nodes: []*Node{n}}
	b.job.tasks += v.Parallelism
	b.job.Vertices = append(b.job.Vertices, v)
	b.vertexOf[n.ID] = v
}

// chainable is the edge by which n joins its input's chain, or nil.
func (b *builder) chainable(n *Node) *Edge {
	in := b.inputs[n.ID]
	if !b.options.Chaining || n.NewChain || len(in) != 1 || in[0].Partitioning != Forward {
		return nil
	}
	if b.vertexOf[in[0].From].Parallelism != b.parallelism(n) {
		return nil
	}
	return in[0]
}

// connect makes a link of every edge between two vertices.
func (b *builder) connect() {
	for _, e := range b.logical.Edges {
		from, to := b.vertexOf[e.From], b.vertexOf[e.To]
		if from == to {
			continue
		}
		l := &Link{Edge: e, From: from, To: to, Kind: e.Partitioning}
		if l.Kind == Forward && from.Parallelism != to.Parallelism {
			l.Kind = Rebalance
		}
		from.Outputs = append(from.Outputs, l)
		to.Inputs = append(to.Inputs, l)
	}
}

// hash covers all that two processes of one job must agree on.
func (b *builder) hash() uint64 {
	h := fnv.New64a()
	for _, v := range b.job.Vertices {
		fmt.Fprintf(h, "vertex %d x %d\n", v.Index, v.Parallelism)
		for _, n := range v.Nodes {
			fmt.Fprintf(h, "node %d %d %q %q %q\n", n.ID, n.Kind, n.UID, n.Was, n.Name)
			for _, s := range n.Schemas {
				fmt.Fprintf(h, "state %q\n", s)
			}
		}
		for _, l := range v.Inputs {
			fmt.Fprintf(h, "link %d %d %q %v %s\n", l.From.Index, l.Edge.Input, l.Edge.Tag, l.Kind, l.Edge.Type)
		}
	}
	return h.Sum64()
}

// String draws the job, a line a vertex.
func (j *Job) String() string {
	var b strings.Builder
	for _, v := range j.Vertices {
		fmt.Fprintf(&b, "%d: %s (%d)", v.Index, v.Name, v.Parallelism)
		for _, l := range v.Inputs {
			fmt.Fprintf(&b, " <- %d %v", l.From.Index, l.Kind)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
