package jobmaster

import (
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

var numbersOut = snapshot.Edge{From: "numbers", To: "out"}

// overtaken is a checkpoint of "numbers (2) -> out (2)" with two records in flight to each subtask of out.
func overtaken() *snapshot.Metadata {
	coordinator := snapshot.InlineHandle([]byte("3"))
	m := &snapshot.Metadata{ID: 7, Job: jobID, Kind: snapshot.Checkpoint, Format: snapshot.Native, Operators: []snapshot.Operator{
		{UID: "numbers", Name: "numbers", Parallelism: 2, Coordinator: &coordinator},
		{UID: "out", Name: "out", Parallelism: 2, InFlight: []snapshot.EdgeSchema{{Edge: numbersOut, Record: `"long"`}}},
	}}
	for i := range m.Operators {
		for j := range 2 {
			m.Operators[i].Subtasks = append(m.Operators[i].Subtasks, snapshot.Subtask{Index: j, Watermark: base.NoTime, PendingWatermark: base.NoTime})
		}
	}
	for j := range 2 {
		h := snapshot.InFlightHandle{Edge: numbersOut, Records: 2, Handle: snapshot.InlineHandle([]byte{byte(j)})}
		m.Operators[1].Subtasks[j].InFlight = []snapshot.InFlightHandle{h}
	}
	return m
}

// twoStep is "numbers (2) -> out", the records of which have a type.
func twoStep(t *testing.T, wire any, p graph.Partitioning, parallelism int) *graph.Job {
	l := graph.Logical{
		Nodes: []*graph.Node{{ID: 0, Kind: graph.Source, Name: "numbers", UID: "numbers", Parallelism: 2, Coordinator: &provider{}},
			{ID: 1, Kind: graph.Sink, Name: "out", UID: "out", Parallelism: parallelism}},
		Edges: []*graph.Edge{{From: 0, To: 1, Partitioning: p, Wire: wire}},
	}
	j, err := l.Build("test", graph.Options{Parallelism: 1, Chaining: true})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// threeStep is "numbers (2) -> out (2) -> more (2)".
func threeStep(t *testing.T, wire any) *graph.Job {
	l := graph.Logical{
		Nodes: []*graph.Node{{ID: 0, Kind: graph.Source, Name: "numbers", UID: "numbers", Parallelism: 2, Coordinator: &provider{}},
			{ID: 1, Kind: graph.Transform, Name: "out", UID: "out", Parallelism: 2}, {ID: 2, Kind: graph.Sink, Name: "more", UID: "more", Parallelism: 2}},
		Edges: []*graph.Edge{{From: 0, To: 1, Partitioning: graph.Hash, Wire: wire}, {From: 1, To: 2, Partitioning: graph.Hash, Wire: wire}},
	}
	j, err := l.Build("test", graph.Options{Parallelism: 1})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// namelessOut takes the UID of "out" away.
func namelessOut(g *graph.Job) *graph.Job {
	g.Vertices[1].Nodes[0].UID = ""
	return g
}

// TestRecordsInFlightAreJudgedFirst: what of them does not fit the program is refused before anything starts, in words that help.
func TestRecordsInFlightAreJudgedFirst(t *testing.T) {
	long := &operator.Edge[int64]{}
	renamed := twoStep(t, long, graph.Hash, 2)
	renamed.Vertices[0].Nodes[0].UID = "figures"
	narrow := overtaken()
	narrow.Operators[1].InFlight[0].Record = `"int"`
	nameless := overtaken()
	nameless.Operators[1].UID = "node-1"
	toNode := snapshot.Edge{From: "numbers", To: "node-1"}
	nameless.Operators[1].InFlight[0].Edge = toNode
	for i := range nameless.Operators[1].Subtasks {
		nameless.Operators[1].Subtasks[i].InFlight[0].Edge = toNode
	}
	ended := overtaken()
	ended.Operators[0].Subtasks[0].Ended, ended.Operators[0].Subtasks[1].Ended = true, true
	ended.Operators[1].Subtasks[0].Ended, ended.Operators[1].Subtasks[0].InFlight = true, nil
	for _, c := range []struct {
		what string
		m    *snapshot.Metadata
		g    *graph.Job
		want []string
	}{
		{"as it was", overtaken(), twoStep(t, long, graph.Hash, 2), nil},
		{"at another parallelism, dealt in turn", overtaken(), twoStep(t, long, graph.Rebalance, 5), nil},
		{"chained", overtaken(), twoStep(t, long, graph.Forward, 2), nil},
		{"wider records", narrow, twoStep(t, long, graph.Hash, 2), nil},
		{"narrower records", overtaken(), twoStep(t, &operator.Edge[int32]{}, graph.Hash, 2), []string{"edge numbers -> out", "stored as long, declared as int"}},
		{"records without a schema", overtaken(), twoStep(t, &operator.Edge[func()]{}, graph.Hash, 2), []string{"edge numbers -> out", "have none now"}},
		{"other records", overtaken(), twoStep(t, &operator.Edge[string]{}, graph.Hash, 2),
			[]string{"cannot be restored from /c", "edge numbers -> out", "stored as long, declared as string", "restore from a savepoint"}},
		{"no edge", overtaken(), renamed, []string{"4 records in flight on the edge numbers -> out", "--allowNonRestoredState"}},
		{"an end without a UID", nameless, namelessOut(twoStep(t, long, graph.Hash, 2)), nil},
		{"an end without a UID that has come to be elsewhere", nameless, namelessOut(threeStep(t, long)), []string{"4 records in flight on the edge numbers -> node-1", "has no UID"}},
		{"to a subtask that had ended", ended, twoStep(t, long, graph.Global, 2), []string{`to subtask 0 of "out", which had ended`, "restore from a savepoint"}},
		{"past one that had ended", ended, twoStep(t, long, graph.Rebalance, 2), nil},
	} {
		o := Options{ID: jobID, Graph: c.g, Store: storage.OpenJobMemory(storage.Memory(), jobID, 0), Worker: &rig{t: t},
			Recovered: []Point{{Metadata: c.m, Location: "/c", Keep: true}}}
		_, err := New(o)
		if c.want == nil {
			if err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
			continue
		}
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v\nwant %q", c.what, err, want)
			}
		}
	}
}

// restoredRig starts a master of the graph from a checkpoint.
func restoredRig(t *testing.T, m *snapshot.Metadata, g func(*graph.Job) *graph.Job) *rig {
	return newRig(t, func(o *Options) {
		o.Graph, o.Log = g(o.Graph), slog.New(slog.DiscardHandler)
		o.Recovered = []Point{{Metadata: m, Location: "/c", Keep: true}}
	})
}

// TestEachTaskGetsItsRecordsInFlight: all of them, each once, with the schema that they were written with.
func TestEachTaskGetsItsRecordsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := restoredRig(t, overtaken(), func(g *graph.Job) *graph.Job {
			g.Vertices[1].Inputs[0].Edge.Wire = &operator.Edge[int64]{}
			return g
		})
		var got []byte
		for _, s := range r.deployed {
			for _, p := range s.Restore.InFlight {
				if s.Vertex.Name != "out" || p.Record != `"long"` || p.Edge != numbersOut || p.OldParallelism != 2 {
					t.Errorf("task %v reads %+v", s.Exec, p)
				}
				got = append(got, p.Inline...)
			}
		}
		if !slices.Equal(got, []byte{0, 1}) {
			t.Errorf("the parts are %v", got)
		}
		r.end()
	})
}

// TestACanonicalSavepoint says so, and its rows are given out again.
func TestACanonicalSavepoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := storage.Memory()
		r := newRig(t, func(o *Options) { o.Store.(*faultyStore).Checkpoints = storage.OpenJobMemory(disk, jobID, 0) })
		a, err := r.TriggerSavepoint(t.Context(), Savepoint{Kind: checkpoint.Savepoint, Format: checkpoint.Canonical})
		if err != nil {
			t.Fatal(err)
		}
		r.end()
		m, _, err := storage.ReadMetadata(disk, a.Location)
		if err != nil || m.Format != snapshot.Canonical || completedOf(Point{Metadata: m}).Format != checkpoint.Canonical {
			t.Fatalf("the format is %q, %v", m.Format, err)
		}
		out := &m.Operators[1].Subtasks[0]
		out.Rows = []snapshot.RowsHandle{{Name: "n", Keyed: true, Range: base.RangeOf(0, 1), Count: 3, Handle: snapshot.InlineHandle([]byte("rows"))}}
		r = restoredRig(t, m, func(g *graph.Job) *graph.Job { return g })
		for _, s := range r.deployed {
			var want []snapshot.RowsPart
			if s.Vertex.Name == "out" {
				want = []snapshot.RowsPart{{RowsHandle: out.Rows[0], To: 3}}
			}
			if got := s.Restore.Operators[0].Rows; !reflect.DeepEqual(got, want) {
				t.Errorf("%s gets %+v, want %+v", s.Vertex.Name, got, want)
			}
		}
		r.end()
	})
}

// TestFinishedVerticesAreRestoredAsFinished, and one that had finished cannot be fed by something new.
func TestFinishedVerticesAreRestoredAsFinished(t *testing.T) {
	finished := func() *snapshot.Metadata {
		m := overtaken()
		m.Operators[0] = snapshot.Operator{UID: "numbers", Name: "numbers", Parallelism: 2, Finished: true}
		m.Operators[1].InFlight, m.Operators[1].Subtasks[0].InFlight, m.Operators[1].Subtasks[1].InFlight = nil, nil, nil
		return m
	}
	synctest.Test(t, func(t *testing.T) {
		r := restoredRig(t, finished(), func(g *graph.Job) *graph.Job { return g })
		for _, s := range r.deployed {
			part := s.Restore.Operators[0]
			if had := s.Vertex.Name == "numbers"; part.Ended != had || had && part.Watermark != base.EndOfTime {
				t.Errorf("%s is restored with %+v", s.Vertex.Name, part)
			}
		}
		r.end()
	})
	m := finished()
	m.Operators[0].UID, m.Operators[1] = "out", m.Operators[0]
	m.Operators = m.Operators[:1] // only "out" had been there, and had finished
	o := Options{ID: jobID, Graph: twoStep(t, &operator.Edge[int64]{}, graph.Hash, 2), Store: storage.OpenJobMemory(storage.Memory(), jobID, 0), Worker: &rig{t: t},
		Recovered: []Point{{Metadata: m, Location: "/c", Keep: true}}}
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "loses records") {
		t.Errorf("%v", err)
	}
}
