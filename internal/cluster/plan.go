package cluster

import (
	"encoding/json"

	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/fit"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
)

// PlanVersion is the version of the JSON of a Plan.
const PlanVersion = 1

// Plan is what a program says of its job, in place of running it.
type Plan struct {
	Version int `json:"version"`
	// Error is why the job cannot run; empty: it can.
	Error string  `json:"error,omitempty"`
	Job   PlanJob `json:"job"`
	// Options are those that were set, by key.
	Options  []PlanOption `json:"options"`
	Vertices []PlanVertex `json:"vertices"`
	// Edges are those between the operators, also within a vertex.
	Edges []PlanEdge `json:"edges"`
	Hooks []string   `json:"hooks"`
	// Restore is what becomes of the snapshot that the job would start from; nil: it would start empty.
	Restore *PlanRestore `json:"restore,omitempty"`
}

// PlanJob names the job.
type PlanJob struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

// PlanOption is an option, and where it was set.
type PlanOption struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// PlanVertex is a chain of operators that run in one task.
type PlanVertex struct {
	Name        string         `json:"name"`
	Parallelism int            `json:"parallelism"`
	Operators   []PlanOperator `json:"operators"`
}

// PlanOperator is one operator.
type PlanOperator struct {
	// ID is what snapshots know it by: its UID, or, where it has none, its place in the program.
	ID   string   `json:"id"`
	UID  string   `json:"uid,omitempty"`
	Was  []string `json:"was,omitempty"`
	Name string   `json:"name"`
	Kind string   `json:"kind"` // source, transform or sink
	Made string   `json:"made"` // the line of the program that made it
	// Enumerator: it has the state of one, beside States.
	Enumerator bool        `json:"enumerator,omitempty"`
	Bounded    bool        `json:"bounded,omitempty"`
	TwoPhase   bool        `json:"two_phase,omitempty"`
	EndsInput  bool        `json:"ends_input,omitempty"`
	States     []PlanState `json:"states"`
}

// PlanState is a declared state. Key, Value and MapKey are Avro schemas.
type PlanState struct {
	Name   string          `json:"name"`
	Was    string          `json:"was,omitempty"`
	Kind   string          `json:"kind"`
	Key    json.RawMessage `json:"key,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"`
	MapKey json.RawMessage `json:"map_key,omitempty"`
}

// PlanEdge is an edge. From and To are IDs of operators.
type PlanEdge struct {
	From         string `json:"from"`
	To           string `json:"to"`
	Input        int    `json:"input,omitempty"`
	Tag          string `json:"tag,omitempty"`
	Twin         int    `json:"twin,omitempty"`
	Partitioning string `json:"partitioning"`
	// Chained: both ends run in one task.
	Chained bool   `json:"chained,omitempty"`
	Type    string `json:"type"`
	// Record is the Avro schema of its records; nothing: their type has none.
	Record json.RawMessage `json:"record,omitempty"`
}

// PlanRestore is what becomes of a snapshot.
type PlanRestore struct {
	// Wanted is what -s says.
	Wanted string `json:"wanted"`
	// Error is why nothing can be said of it: it is not there, or damaged. Empty with a nil Report: there is none, and the job starts empty.
	Error  string      `json:"error,omitempty"`
	Report *fit.Report `json:"report,omitempty"`
}

// PlanOf is the plan of a job. The storage is looked at, where the job is to start from a snapshot, and nothing else is.
func PlanOf(j Job) *Plan {
	j = j.withDefaults()
	p := &Plan{Version: PlanVersion, Job: PlanJob{Name: j.Graph.Name, ID: string(j.id())}, Options: []PlanOption{}, Hooks: []string{}}
	for _, s := range j.Config.Settings() {
		p.Options = append(p.Options, PlanOption{Key: s.Key, Value: s.Value.(string), Origin: string(s.Origin)})
	}
	for _, v := range j.Graph.Vertices {
		p.addVertex(v)
	}
	for _, h := range j.Hooks {
		p.Hooks = append(p.Hooks, h.ID())
	}
	if wanted, set := j.Config.Lookup(config.SavepointPath); set {
		p.Restore = &PlanRestore{Wanted: wanted}
		var err error
		if p.Restore.Report, err = Check(j); err != nil {
			p.Restore.Error = err.Error()
		}
	}
	return p
}

func (p *Plan) addVertex(v *graph.Vertex) {
	vertex := PlanVertex{Name: v.Name, Parallelism: v.Parallelism}
	for _, n := range v.Nodes {
		vertex.Operators = append(vertex.Operators, planOperator(n))
	}
	p.Vertices = append(p.Vertices, vertex)
	for _, e := range v.Inner {
		p.Edges = append(p.Edges, planEdge(e, v, v, graph.Forward))
	}
	for _, l := range v.Inputs {
		p.Edges = append(p.Edges, planEdge(l.Edge, l.From, v, l.Kind))
	}
}

func planOperator(n *graph.Node) PlanOperator {
	o := PlanOperator{ID: n.StateID(), UID: n.UID, Was: n.Was, Name: n.Name, Kind: n.Kind.String(), Made: n.Made, Enumerator: n.Kind == graph.Source,
		Bounded: n.Bounded, TwoPhase: n.TwoPhase, EndsInput: n.EndsInput, States: []PlanState{}}
	for _, s := range n.Schemas {
		o.States = append(o.States, planState(s))
	}
	return o
}

func planState(s snapshot.StateSchema) PlanState {
	return PlanState{Name: s.Name, Was: s.Was, Kind: s.Kind, Key: json.RawMessage(s.Key), Value: json.RawMessage(s.Value), MapKey: json.RawMessage(s.MapKey)}
}

func planEdge(e *graph.Edge, from, to *graph.Vertex, kind graph.Partitioning) PlanEdge {
	id := e.ID(from, to)
	p := PlanEdge{From: id.From, To: id.To, Input: id.Input, Tag: id.Tag, Twin: id.Twin, Partitioning: kind.String(), Chained: from == to, Type: e.Type}
	if w, ok := e.Wire.(operator.Wire); ok {
		if record, err := w.Record(); err == nil {
			p.Record = json.RawMessage(record)
		}
	}
	return p
}
