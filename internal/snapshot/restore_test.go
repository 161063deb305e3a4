package snapshot

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/base"
)

func TestMatch(t *testing.T) {
	m := sample()
	all := Program{Operators: []string{"lines", "counts", "new"}, Hooks: []string{"log"}}
	match := m.Match(all)
	if match.Operators["counts"] != &m.Operators[1] || match.Operators["new"] != nil || match.Hooks["log"] != &m.Hooks[0] || match.Lost() != nil {
		t.Errorf("%+v", match)
	}
	fewer := Program{Operators: []string{"tally", "lines"}}
	m.Operators[1].Schemas = append(m.Operators[1].Schemas, StateSchema{Name: "(timers)", Kind: "timers"})
	match = m.Match(fewer)
	lost := match.Lost()
	want := []string{`operator "counts" (Count) with value "count", map "seen", timers`, `master hook "log"`}
	if !slices.Equal(lost, want) || match.Operators["lines"] == nil {
		t.Errorf("lost are %q", lost)
	}
}

// TestRenamed: operators and the edges between them have their new UIDs, and the old metadata has the old ones.
func TestRenamed(t *testing.T) {
	m := newFlightWorld(rand.New(rand.NewPCG(2, 2)), InTurn, 1, 4, false).m
	before := m.Encode()
	n := m.Renamed(map[string]string{"b": "c", "gone": "d"})
	if err := n.Validate(); err != nil {
		t.Error(err)
	}
	p := Program{Operators: []string{"a", "c"}, Edges: []ProgramEdge{{EdgeSchema{Edge{From: "a", To: "c"}, `"long"`}, InTurn}}}
	if match := n.Match(p); match.Lost() != nil || len(match.Edges) != 1 || match.Operators["c"] == nil {
		t.Errorf("%+v", match)
	}
	if !bytes.Equal(before, m.Encode()) {
		t.Error("the metadata itself was changed")
	}
	if same := m.Renamed(nil); same != m {
		t.Error("nothing is renamed, but it is another")
	}
}

func TestValidateFinished(t *testing.T) {
	operator := func(uid string, ended ...bool) Operator {
		o := Operator{UID: uid, Parallelism: len(ended)}
		for i, e := range ended {
			o.Subtasks = append(o.Subtasks, Subtask{Index: i, Ended: e})
		}
		return o
	}
	m := &Metadata{Operators: []Operator{
		operator("full", true, true), operator("part", true, false), operator("none", false, false), {UID: "gone", Parallelism: 2, Finished: true},
	}}
	chain := func(from string, allToAll bool, to string) []Vertex {
		return []Vertex{
			{Name: from, Operators: []string{from}},
			{Name: to, Operators: []string{to}, Inputs: []VertexInput{{From: 0, AllToAll: allToAll}}},
		}
	}
	for _, c := range []struct {
		what     string
		vertices []Vertex
		want     string
	}{
		{"finished before running", chain("full", true, "none"), ""},
		{"gone before finished", chain("gone", true, "full"), ""},
		{"a new one behind", chain("part", true, "new"), ""},
		{"a new source before a finished one", chain("new", false, "gone"), `vertex "gone" is fully finished in the checkpoint, so its input "new" must be fully finished, but is running`},
		{"partly before finished", chain("part", false, "full"), "must be fully finished, but is partly finished"},
		{"partly before partly, all to all", chain("part", true, "part"), "must be fully finished, but is partly finished"},
		{"partly before partly, pointwise", chain("part", false, "part"), ""},
		{"running before partly, pointwise", chain("none", false, "part"), "must be partly finished, but is running"},
		{"a mixed chain", []Vertex{{Name: "v", Operators: []string{"full", "new"}}}, "equally finished"},
	} {
		err := m.ValidateFinished(c.vertices)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

func part(uid string, subtask int) OperatorPart {
	return OperatorPart{UID: uid, Schemas: []StateSchema{{Name: "s", Kind: "value"}}, Subtask: Subtask{Index: subtask}}
}

// No checkpoint is complete before everyone has spoken who was asked at the start (B062).
func TestCollectionWaitsForAll(t *testing.T) {
	c := Collect([]Operator{{UID: "a", Parallelism: 2}, {UID: "b", Parallelism: 1, Coordinator: &Handle{}}})
	add := func(parts ...OperatorPart) {
		t.Helper()
		if err := c.Add(&TaskState{Operators: parts}); err != nil {
			t.Fatal(err)
		}
	}
	add(part("a", 1))
	if _, err := c.Operators(); err == nil || !strings.Contains(err.Error(), `1 of the 2 subtasks of operator "a" are missing`) {
		t.Errorf("%v", err)
	}
	add(part("a", 0))
	if err := c.AddFinished("b", 0); err != nil {
		t.Fatal(err)
	}
	got, err := c.Operators()
	want := []Operator{
		{UID: "a", Parallelism: 2, Schemas: part("a", 0).Schemas, Subtasks: []Subtask{{Index: 0}, {Index: 1}}},
		{UID: "b", Parallelism: 1, Finished: true},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCollectionRefuses(t *testing.T) {
	other := part("a", 1)
	other.Schemas = nil
	for want, parts := range map[string][]OperatorPart{
		`"x" does not take part`:   {part("x", 0)},
		"has no subtask 2":         {part("a", 2)},
		"subtask 0 is there twice": {part("a", 0), part("a", 0)},
		"declares other states":    {part("a", 0), other},
	} {
		c := Collect([]Operator{{UID: "a", Parallelism: 2}})
		if err := c.Add(&TaskState{Operators: parts}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestPartlyFinishedOperatorKeepsItsCoordinator(t *testing.T) {
	c := Collect([]Operator{{UID: "a", Parallelism: 2, Coordinator: &Handle{}}})
	if err := errors.Join(c.AddFinished("a", 0), c.Add(&TaskState{Operators: []OperatorPart{part("a", 1)}})); err != nil {
		t.Fatal(err)
	}
	ops, err := c.Operators()
	if err != nil || ops[0].Finished || ops[0].Coordinator == nil {
		t.Fatalf("%+v, %v", ops, err)
	}
	if s := ops[0].Subtasks[0]; !s.Finished || !s.Ended || s.Watermark != base.EndOfTime {
		t.Errorf("%+v", s)
	}
}
