package weir

import (
	"fmt"
	"reflect"

	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/task"
)

// Stream is a stream of records of type T: the output of an operator, and how its records will be distributed.
type Stream[T any] struct {
	env  *Env
	legs []leg[T]
}

// leg is one output that a stream's records come from; a union has several.
type leg[T any] struct {
	node *graph.Node
	tag  string
	kind graph.Partitioning
	edge *operator.Edge[T]
}

// UID gives the operator its identity: its state is found by it, over all versions of the job. Where it was another in older versions,
// was has the old ones, the latest first: UID("new", "old") takes over what a snapshot has under "old", unless it has "new" too.
func (s Stream[T]) UID(id string, was ...string) Stream[T] {
	n := s.node("UID")
	n.UID, n.Was = id, was
	return s
}

// Name gives the operator a name for people.
func (s Stream[T]) Name(n string) Stream[T] { s.node("Name").Name = n; return s }

// Parallelism sets the number of the operator's subtasks.
func (s Stream[T]) Parallelism(n int) Stream[T] {
	if n == 0 {
		n = -1 // 0 means "the job's": to ask for it is a mistake
	}
	s.node("Parallelism").Parallelism = n
	return s
}

// NewChain keeps the operator out of its input's task.
func (s Stream[T]) NewChain() Stream[T] { s.node("NewChain").NewChain = true; return s }

// node is the operator that the stream is the output of.
func (s Stream[T]) node(method string) *graph.Node {
	if len(s.legs) != 1 || s.legs[0].tag != "" {
		s.env.problem("%s was called on a union or a side output (at %s): call it on the operator itself", method, config.Caller(2))
		return &graph.Node{}
	}
	return s.legs[0].node
}

func (e *Env) problem(format string, args ...any) {
	e.problems = append(e.problems, fmt.Sprintf(format, args...))
}

// add makes a node of the graph. skip: how many frames lie between the user's call and this one.
func (e *Env) add(kind graph.Kind, name string, factory task.Factory) *graph.Node {
	n := &graph.Node{ID: graph.NodeID(len(e.logical.Nodes)), Kind: kind, Name: name, Factory: factory, Made: userLine()}
	e.logical.Nodes = append(e.logical.Nodes, n)
	return n
}

// into makes the edges from the stream to an input of a node.
func (s Stream[T]) into(n *graph.Node, input int) {
	if len(s.legs) == 0 {
		return
	}
	for _, l := range s.legs {
		s.env.logical.Edges = append(s.env.logical.Edges, &graph.Edge{From: l.node.ID, To: n.ID, Input: input, Tag: l.tag, Partitioning: l.kind,
			Type: reflect.TypeFor[T]().String(), Wire: l.edge})
	}
}

// from is the main output of a node.
func from[T any](e *Env, n *graph.Node) Stream[T] {
	return Stream[T]{env: e, legs: []leg[T]{{node: n, edge: &operator.Edge[T]{}}}}
}

// then appends a transformation.
func then[T, U any](s Stream[T], name string, factory task.Factory) (Stream[U], *graph.Node) {
	n := s.env.add(graph.Transform, name, factory)
	s.into(n, 0)
	return from[U](s.env, n), n
}

// distributed is the stream with another distribution of its records.
func (s Stream[T]) distributed(kind graph.Partitioning, edge *operator.Edge[T]) Stream[T] {
	legs := make([]leg[T], len(s.legs))
	for i, l := range s.legs {
		l.kind, l.edge = kind, edge
		legs[i] = l
	}
	return Stream[T]{s.env, legs}
}

// Union is this stream and others together, in no particular order.
func (s Stream[T]) Union(others ...Stream[T]) Stream[T] {
	legs := append([]leg[T](nil), s.legs...)
	for _, o := range others {
		legs = append(legs, o.legs...)
	}
	return Stream[T]{s.env, legs}
}

// Rebalance gives the records to all subtasks of the next operator in turn.
func (s Stream[T]) Rebalance() Stream[T] { return s.distributed(graph.Rebalance, &operator.Edge[T]{}) }

// Rescale gives the records to the nearest subtasks of the next operator in turn.
func (s Stream[T]) Rescale() Stream[T] { return s.distributed(graph.Rescale, &operator.Edge[T]{}) }

// Global gives all records to the first subtask of the next operator.
func (s Stream[T]) Global() Stream[T] { return s.distributed(graph.Global, &operator.Edge[T]{}) }

// Partition gives each record to the subtask, of n, that p returns. p is shared by all subtasks.
func (s Stream[T]) Partition(p func(v T, n int) int) Stream[T] {
	return s.distributed(graph.Custom, &operator.Edge[T]{Choose: p})
}

// Broadcast gives every record to every subtask of the operator that it is connected to, or of the next operator.
func (s Stream[T]) Broadcast() BroadcastStream[T] {
	return BroadcastStream[T]{s.distributed(graph.Broadcast, &operator.Edge[T]{})}
}

// isBroadcast is true where every subtask of the next operator gets every record.
func (s Stream[T]) isBroadcast() bool {
	for _, l := range s.legs {
		if l.kind != graph.Broadcast {
			return false
		}
	}
	return len(s.legs) > 0
}

// BroadcastStream is a stream each record of which goes to every subtask of the operator that it is connected to.
type BroadcastStream[T any] struct{ s Stream[T] }

// Stream is the broadcast records as an ordinary stream: each subtask of the next operator gets all of them.
func (b BroadcastStream[T]) Stream() Stream[T] { return b.s }

// SideOutput is the records of type X that the operator emits to its declared Side[X] field of that name.
func (s Stream[T]) SideOutput[X any](name string) Stream[X] {
	n := s.node("SideOutput")
	if !s.env.hasSide(n, name, reflect.TypeFor[X](), userLine()) {
		return Stream[X]{env: s.env}
	}
	return Stream[X]{env: s.env, legs: []leg[X]{{node: n, tag: name, edge: &operator.Edge[X]{}}}}
}

// Connect joins this stream and another of another type at one operator.
func (s Stream[T]) Connect[B any](b Stream[B]) Connected[T, B] { return Connected[T, B]{s, b} }

// Connected is two streams that one operator reads.
type Connected[A, B any] struct {
	a Stream[A]
	b Stream[B]
}

// KeyBy keys both streams by keys of one type: records of one key meet at one subtask, with one state.
func (c Connected[A, B]) KeyBy[K comparable](a func(A) K, b func(B) K) KeyedConnected[K, A, B] {
	return KeyedConnected[K, A, B]{c.a.KeyBy(a), c.b.KeyBy(b)}
}
