package graph

import (
	"fmt"
	"strings"

	"github.com/weirstream/weir/internal/snapshot"
)

// NodeID is the number of a node, in the order in which the program made them.
type NodeID int

// Kind is what a node is for.
type Kind int

const (
	// Source has no inputs; its splits are given out by an operator coordinator.
	Source Kind = iota
	// Transform has inputs and outputs.
	Transform
	// Sink has inputs only.
	Sink
)

func (k Kind) String() string { return [...]string{"source", "transform", "sink"}[k] }

// Partitioning says which subtasks of the receiver get a record.
type Partitioning int

const (
	// Forward gives the records of subtask i to subtask i; between different parallelisms it is Rebalance.
	Forward Partitioning = iota
	// Hash gives all records of one key to the subtask that owns the key's group.
	Hash
	// Rebalance gives records to all subtasks in turn.
	Rebalance
	// Rescale gives records to the nearest subtasks in turn.
	Rescale
	// Broadcast gives every record to every subtask.
	Broadcast
	// Global gives every record to subtask 0.
	Global
	// Custom asks a user's function.
	Custom
)

var partitioningNames = [...]string{"FORWARD", "HASH", "REBALANCE", "RESCALE", "BROADCAST", "GLOBAL", "CUSTOM"}

func (p Partitioning) String() string { return partitioningNames[p] }

// Pointwise is true where a subtask sends only to some neighbours, not to all.
func (p Partitioning) Pointwise() bool { return p == Forward || p == Rescale }

// Node is one operator of the program.
type Node struct {
	ID          NodeID
	Kind        Kind
	UID         string   // identity of its state; empty: none given
	Was         []string // UIDs that it had in older versions of the program, the latest first
	Name        string   // for people
	Parallelism int      // 0: the job's
	NewChain    bool     // never chained to its input
	Bounded     bool     // sources: ends by itself
	EndsInput   bool     // has something to do at the end of its input
	TwoPhase    bool     // a sink whose output becomes visible when a checkpoint completes
	Schemas     []snapshot.StateSchema
	Union       bool   // declares union list state
	Made        string // file:line of the call that made it

	// Factory makes the operator of one subtask; Coordinator (sources only) the enumerator. Opaque here.
	Factory, Coordinator any
}

// Stateful is true where the node declares state.
func (n *Node) Stateful() bool { return len(n.Schemas) > 0 }

// StateID is what the node is found by in a checkpoint: its uid, or a name made of its place in the program, which is good
// enough for an operator without state of its own.
func (n *Node) StateID() string {
	if n.UID != "" {
		return n.UID
	}
	return fmt.Sprintf("node-%d", n.ID)
}

// Label names the node in messages: its name, and its uid when it has one.
func (n *Node) Label() string {
	if n.UID == "" || n.UID == n.Name {
		return fmt.Sprintf("%q", n.Name)
	}
	return fmt.Sprintf("%q (uid %q)", n.Name, n.UID)
}

// Edge carries one output of a node to one input of another.
type Edge struct {
	From, To     NodeID
	Input        int    // of To
	Tag          string // side output of From; empty: the main output
	Twin         int    // how many edges before it are equal in all that stands above, as of a stream united with itself; Build counts
	Partitioning Partitioning
	Type         string // of its records, for people and for the hash

	// Wire knows the type of the records: it makes both ends. Opaque here.
	Wire any
}

// Logical is the graph as the program describes it.
type Logical struct {
	Nodes []*Node
	Edges []*Edge
}

// Problems are all reasons why a graph cannot run.
type Problems []string

func (p Problems) Error() string { return strings.Join(p, "\n") }

// Validate reports everything that is wrong with the graph at once, as Problems.
func (l *Logical) Validate() error {
	var all Problems
	if len(l.Nodes) == 0 {
		all = append(all, "the job is empty: call From on the environment before Execute")
	}
	for _, n := range l.Nodes {
		all = append(all, n.problems()...)
	}
	all = append(all, l.uidProblems()...)
	for _, n := range l.Nodes {
		if n.Kind != Sink && !l.read(n.ID) {
			all = append(all, fmt.Sprintf("nothing reads the output of %s (made at %s): end it with To(sink), e.g. To(weir.Discard[T]())", n.Label(), n.Made))
		}
	}
	if len(all) > 0 {
		return all
	}
	return nil
}

// uidProblems are UIDs and aliases that would find one state for two operators.
func (l *Logical) uidProblems() (all Problems) {
	made := func(n *Node) string { return fmt.Sprintf("%s (made at %s)", n.Label(), n.Made) }
	uids, aliases := map[string]*Node{}, map[string]*Node{}
	for _, n := range l.Nodes {
		id := n.StateID()
		if other := uids[id]; other != nil {
			all = append(all, fmt.Sprintf("two operators have the uid %q: %s and %s; state is found by uid, so each needs its own", id, made(other), made(n)))
		}
		uids[id] = n
	}
	for _, n := range l.Nodes {
		if n.UID == "" && len(n.Was) > 0 {
			all = append(all, fmt.Sprintf("operator %s has old uids, but none now: UID takes the new one first", made(n)))
		}
		for _, was := range n.Was {
			uid, alias := uids[was], aliases[was]
			switch {
			case was == "":
				all = append(all, fmt.Sprintf("operator %s has an empty alias: UID takes the new uid first, then old ones", made(n)))
			case uid != nil && uid != n:
				all = append(all, fmt.Sprintf("operator %s has the alias %q, which is the uid of %s: what is stored under it is that one's", made(n), was, made(uid)))
			case alias != nil && alias != n:
				all = append(all, fmt.Sprintf("two operators have the alias %q: %s and %s; what is stored under it can go to only one", was, made(alias), made(n)))
			}
			aliases[was] = n
		}
	}
	return all
}

func (n *Node) problems() (all Problems) {
	if n.Stateful() && n.UID == "" {
		all = append(all, fmt.Sprintf("operator %s (made at %s) has state but no uid, so a restore could not find it: add .UID(%q)", n.Label(), n.Made, suggestUID(n.Name)))
	}
	if n.Parallelism < 0 || n.Parallelism > maxParallelism {
		all = append(all, fmt.Sprintf("operator %s (made at %s): parallelism %d is not in 1 to %d", n.Label(), n.Made, n.Parallelism, maxParallelism))
	}
	names := map[string]snapshot.StateSchema{}
	for _, s := range n.Schemas {
		if other, ok := names[s.Name]; ok {
			all = append(all, fmt.Sprintf("operator %s (made at %s) declares two states named %q: a %s of %s and a %s of %s", n.Label(), n.Made, s.Name, other.Kind, other.Value, s.Kind, s.Value))
		}
		names[s.Name] = s
	}
	return all
}

const maxParallelism = 32768

// suggestUID makes a uid of a name.
func suggestUID(name string) string {
	return strings.ToLower(strings.Join(strings.Fields(name), "-"))
}

// UnboundedInputs are the nodes that records of an unbounded source can reach.
func (l *Logical) UnboundedInputs() map[NodeID]bool {
	reached := map[NodeID]bool{}
	for _, n := range l.Nodes {
		if n.Kind == Source && !n.Bounded {
			reached[n.ID] = true
		}
	}
	for _, n := range l.Nodes { // edges go forward, so one pass is enough
		for _, e := range l.Edges {
			if e.To == n.ID && reached[e.From] {
				reached[n.ID] = true
			}
		}
	}
	return reached
}

// read is true where some edge begins at the node.
func (l *Logical) read(id NodeID) bool {
	for _, e := range l.Edges {
		if e.From == id {
			return true
		}
	}
	return false
}
