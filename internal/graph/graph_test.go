package graph

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/snapshot"
)

// line is a logical graph: a source, transforms and a sink in a row, joined by the given partitionings.
func line(kinds ...Partitioning) *Logical {
	l := &Logical{}
	for i := range len(kinds) + 1 {
		n := &Node{ID: NodeID(i), Kind: Transform, Name: fmt.Sprint("n", i), Made: "x.go:1"}
		switch i {
		case 0:
			n.Kind = Source
		case len(kinds):
			n.Kind = Sink
		}
		l.Nodes = append(l.Nodes, n)
	}
	for i, k := range kinds {
		l.Edges = append(l.Edges, &Edge{From: NodeID(i), To: NodeID(i + 1), Partitioning: k})
	}
	return l
}

func build(t *testing.T, l *Logical, o Options) *Job {
	t.Helper()
	j, err := l.Build("test", o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestChains(t *testing.T) {
	l := line(Forward, Hash, Forward, Forward)
	l.Nodes[4].Parallelism = 1
	j := build(t, l, Options{Parallelism: 3, Chaining: true})
	if got, want := j.String(), "0: n0 -> n1 (3)\n1: n2 -> n3 (3) <- 0 HASH\n2: n4 (1) <- 1 REBALANCE\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if v, i := j.Locate(6); v.Index != 2 || i != 0 || j.Subtasks() != 7 {
		t.Errorf("task 6 is subtask %d of vertex %d, of %d", i, v.Index, j.Subtasks())
	}
	if n := len(build(t, line(Forward, Forward), Options{Chaining: false}).Vertices); n != 3 {
		t.Errorf("%d vertices without chaining", n)
	}
	l.Nodes[1].NewChain = true
	if other := build(t, l, Options{Parallelism: 3, Chaining: true}); other.Hash == j.Hash || len(other.Vertices) != 4 {
		t.Errorf("another graph has hash %x and %d vertices", other.Hash, len(other.Vertices))
	}
}

// The exchange and the coordinator's plan must agree about who sends to whom.
func TestChannelsAreThoseOfThePlan(t *testing.T) {
	for up := 1; up <= 9; up++ {
		for down := 1; down <= 9; down++ {
			l := &Link{From: &Vertex{Parallelism: up}, To: &Vertex{Parallelism: down}, Kind: Rescale}
			for i := range down {
				lo, hi := checkpoint.PointwiseSenders(up, down, i)
				if got := l.Senders(i); !slices.Equal(got, between(lo, hi-1)) {
					t.Errorf("%d to %d: subtask %d is sent to by %v, and by the plan by %d to %d", up, down, i, got, lo, hi-1)
				}
			}
		}
	}
	l := &Link{From: &Vertex{Parallelism: 2}, To: &Vertex{Parallelism: 3}, Kind: Hash}
	if got := l.Receivers(1); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("by key: %v", got)
	}
}

func TestRegions(t *testing.T) {
	l := line(Hash, Hash)
	other := line(Hash)
	for _, n := range other.Nodes {
		n.ID += 3
		l.Nodes = append(l.Nodes, n)
	}
	for _, e := range other.Edges {
		e.From, e.To = e.From+3, e.To+3
		l.Edges = append(l.Edges, e)
	}
	if got := fmt.Sprint(build(t, l, Options{}).Regions()); got != "[[0 1 2] [3 4]]" {
		t.Errorf("regions %s", got)
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	l := line(Forward, Forward)
	l.Nodes[0].UID, l.Nodes[1].UID = "same", "same"
	l.Nodes[2].Schemas = []snapshot.StateSchema{{Name: "s", Kind: "value"}, {Name: "s", Kind: "map"}}
	l.Nodes[2].Parallelism = -1
	l.Nodes = append(l.Nodes, &Node{ID: 3, Kind: Source, Name: "unread"})
	err := l.Validate()
	for _, want := range []string{`the uid "same"`, "has state but no uid", "-1 is not in 1 to 32768", `two states named "s"`, `output of "unread"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
	if err := (&Logical{}).Validate(); err == nil {
		t.Error("an empty graph is valid")
	}
}

// TestAliases: an old UID must lead to one operator.
func TestAliases(t *testing.T) {
	for _, c := range []struct {
		what string
		set  func(a, b, c *Node)
		want string // "": it is valid
	}{
		{"an alias", func(a, b, c *Node) { b.UID, b.Was = "new", []string{"old", "older"} }, ""},
		{"its own uid", func(a, b, c *Node) { b.UID, b.Was = "new", []string{"new"} }, ""},
		{"twice the same", func(a, b, c *Node) { b.UID, b.Was = "new", []string{"old", "old"} }, ""},
		{"another's uid", func(a, b, c *Node) { a.UID, b.UID, b.Was = "a", "b", []string{"a"} }, `alias "a", which is the uid of "n0" (uid "a") (made at x.go:1)`},
		{"a place that another has", func(a, b, c *Node) { b.UID, b.Was = "b", []string{"node-0"} }, `alias "node-0", which is the uid of "n0"`},
		{"its own place", func(a, b, c *Node) { b.UID, b.Was = "b", []string{"node-1"} }, ""},
		{"another's alias", func(a, b, c *Node) { a.UID, b.UID, a.Was, b.Was = "a", "b", []string{"x"}, []string{"y", "x"} }, `two operators have the alias "x"`},
		{"nothing", func(a, b, c *Node) { b.UID, b.Was = "b", []string{""} }, "has an empty alias"},
		{"no uid", func(a, b, c *Node) { b.Was = []string{"old"} }, "has old uids, but none now"},
		{"a uid that is another's place", func(a, b, c *Node) { a.UID = "node-2" }, `the uid "node-2"`},
	} {
		l := line(Forward, Hash)
		c.set(l.Nodes[0], l.Nodes[1], l.Nodes[2])
		err := l.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

func TestUnboundedInputs(t *testing.T) {
	l := line(Forward, Hash)
	if got := l.UnboundedInputs(); !got[2] {
		t.Errorf("%v", got)
	}
	l.Nodes[0].Bounded = true
	if got := l.UnboundedInputs(); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
