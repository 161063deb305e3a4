package fit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// The program of these tests, and a checkpoint of it:
//
//	lines (2, a source) --by key--> count (2) --in turn--> out (1)

func keyed(name, value string) snapshot.StateSchema {
	return snapshot.StateSchema{Name: name, Kind: "value", Key: `"string"`, Value: value}
}

func list(name, value string) snapshot.StateSchema {
	return snapshot.StateSchema{Name: name, Kind: "oplist", Value: value}
}

var timers = snapshot.StateSchema{Name: Timers, Kind: "timers", Key: `"string"`}

func record(name string, fields ...string) string {
	var all []string
	for _, f := range fields {
		name, typ, _ := strings.Cut(f, " ")
		all = append(all, fmt.Sprintf(`{"name":%q,"type":%q}`, name, typ))
	}
	return fmt.Sprintf(`{"type":"record","name":%q,"fields":[%s]}`, name, strings.Join(all, ","))
}

var (
	linesToCount = snapshot.Edge{From: "lines", To: "count"}
	countToOut   = snapshot.Edge{From: "count", To: "out"}
)

func theProgram() *Program {
	return &Program{
		Operators: []Operator{
			{ID: "lines", Name: "Lines", Made: "main.go:10", Parallelism: 2, Source: true, States: []snapshot.StateSchema{list("splits", `"long"`)}},
			{ID: "count", Name: "Process", Made: "main.go:11", Parallelism: 2, States: []snapshot.StateSchema{keyed("n", `"long"`), keyed("seen", record("Seen", "At long", "By string")),
				timers, list("all", `"long"`)}},
			{ID: "out", Name: "Print", Made: "main.go:12", Parallelism: 1},
		},
		Edges: []snapshot.ProgramEdge{
			{EdgeSchema: snapshot.EdgeSchema{Edge: linesToCount, Record: `"string"`}, Routing: snapshot.ByKey},
			{EdgeSchema: snapshot.EdgeSchema{Edge: countToOut, Record: `"long"`}, Routing: snapshot.InTurn},
		},
		Hooks: []string{"audit"},
		Vertices: []snapshot.Vertex{{Name: "Lines", Operators: []string{"lines"}}, {Name: "Process", Operators: []string{"count"}, Inputs: []snapshot.VertexInput{{From: 0, AllToAll: true}}},
			{Name: "Print", Operators: []string{"out"}, Inputs: []snapshot.VertexInput{{From: 1, AllToAll: true}}}},
	}
}

func subtasks(n int, fill func(i int, s *snapshot.Subtask)) (all []snapshot.Subtask) {
	for i := range n {
		s := snapshot.Subtask{Index: i, Watermark: base.NoTime, PendingWatermark: base.NoTime}
		fill(i, &s)
		all = append(all, s)
	}
	return all
}

func lists(names ...string) func(int, *snapshot.Subtask) {
	return func(_ int, s *snapshot.Subtask) {
		for _, n := range names {
			s.Lists = append(s.Lists, snapshot.ListHandle{Name: n, Offsets: []int64{0}, Handle: snapshot.InlineHandle([]byte("list"))})
		}
	}
}

// inFlight puts records in flight on an edge to its receiver.
func inFlight(m *snapshot.Metadata, e snapshot.Edge, record string, to ...int) {
	o := operatorOf(m, e.To)
	o.InFlight = append(o.InFlight, snapshot.EdgeSchema{Edge: e, Record: record})
	for _, i := range to {
		h := snapshot.InFlightHandle{Edge: e, Records: 3, Handle: snapshot.InlineHandle([]byte("records"))}
		o.Subtasks[i].InFlight = append(o.Subtasks[i].InFlight, h)
	}
}

func operatorOf(m *snapshot.Metadata, uid string) *snapshot.Operator {
	return &m.Operators[slices.IndexFunc(m.Operators, func(o snapshot.Operator) bool { return o.UID == uid })]
}

func theCheckpoint() *snapshot.Metadata {
	p, coordinator := theProgram(), snapshot.InlineHandle([]byte("splits"))
	m := &snapshot.Metadata{ID: 7, Job: base.JobID(strings.Repeat("a", 32)), JobName: "words", Kind: snapshot.Checkpoint, Format: snapshot.Native}
	m.Operators = []snapshot.Operator{
		{UID: "lines", Name: "Lines", Parallelism: 2, Coordinator: &coordinator, Schemas: p.Operators[0].States, Subtasks: subtasks(2, lists("splits"))},
		{UID: "count", Name: "Process", Parallelism: 2, Schemas: p.Operators[1].States, Subtasks: subtasks(2, func(i int, s *snapshot.Subtask) {
			lists("all")(i, s)
			s.Keyed = []snapshot.KeyedHandle{{Range: base.RangeOf(i, 2), Handle: snapshot.InlineHandle([]byte("pages"))}}
		})},
		{UID: "out", Name: "Print", Parallelism: 1, Subtasks: subtasks(1, func(int, *snapshot.Subtask) {})},
	}
	m.Hooks = []snapshot.Hook{{ID: "audit", State: snapshot.InlineHandle([]byte("1"))}}
	return m
}

// rowsOf puts the keyed state of "count" into rows, as a canonical savepoint has it, of the named states.
func rowsOf(m *snapshot.Metadata, names ...string) {
	o := operatorOf(m, "count")
	for i := range o.Subtasks {
		s := &o.Subtasks[i]
		s.Keyed = nil
		for _, n := range names {
			s.Rows = append(s.Rows, snapshot.RowsHandle{Name: n, Keyed: true, Range: base.RangeOf(i, 2)})
		}
	}
}

// verdict is one finding as the tests name it.
func verdicts(r *Report) (all []string) {
	for _, line := range r.rows() {
		all = append(all, strings.Join(strings.Fields(fmt.Sprint(line.verdict, " ", line.what, " ", line.part)), " "))
	}
	return all
}

func TestVerdicts(t *testing.T) {
	const lines, out, hook = `same lines oplist "splits", enumerator`, "same out", "same hook audit"
	const count = `same count value "n", value "seen", timers, oplist "all"`
	for _, c := range []struct {
		what   string
		change func(p *Program, m *snapshot.Metadata)
		allow  bool
		want   []string // verdicts; empty: as it was
		says   []string // of the table, and, where it is refused, of the error
		fits   bool
	}{
		{what: "as it was", fits: true, says: []string{"The job can start from checkpoint 7 of job \"words\": it fits.\n"}},
		{what: "at another parallelism", change: func(p *Program, _ *snapshot.Metadata) { p.Operators[1].Parallelism = 3 }, fits: true, says: []string{"parallelism 2 -> 3"}},

		// States.
		{what: "a value that is widened", change: func(p *Program, m *snapshot.Metadata) { operatorOf(m, "count").Schemas = withState(m, "n", `"int"`) }, fits: true,
			want: []string{`migrate count value "n"`, lines, `same count value "seen", timers, oplist "all"`, out, hook}, says: []string{"widened from int to long", "migrates"}},
		{what: "a value that is narrowed", change: func(p *Program, m *snapshot.Metadata) { p.Operators[1].States[0].Value = `"int"` },
			want: []string{`refused count value "n"`, lines, `same count value "seen", timers, oplist "all"`, out, hook},
			says: []string{`operator "Process" (uid "count"): state "n" (value): stored as long, declared as int: values would be cut; declare it as before`,
				"The job cannot start"}},
		{what: "fields added, removed and renamed", change: func(p *Program, _ *snapshot.Metadata) {
			p.Operators[1].States[1].Value = `{"type":"record","name":"Seen","fields":[{"name":"When","type":"long","aliases":["At"]},{"name":"New","type":"string"}]}`
		}, fits: true, says: []string{"When renamed from At, By removed, New added"}},
		{what: "fields that have nothing in common", change: func(p *Program, _ *snapshot.Metadata) { p.Operators[1].States[1].Value = record("Seen", "X long") },
			says: []string{`state "seen" (value): stored as Seen{At, By}, declared as Seen{X}: they have no field in common`, `weir:"was=Name"`}},
		{what: "another kind", change: func(p *Program, _ *snapshot.Metadata) { p.Operators[1].States[0].Kind = "reducing" },
			says: []string{`state "n" (value): it is stored as one of kind value, but declared as reducing; give the state a new name, or its old kind back`}},
		{what: "a state that is new", change: func(p *Program, _ *snapshot.Metadata) {
			p.Operators[1].States = append(p.Operators[1].States, keyed("more", `"string"`))
		}, fits: true,
			want: []string{`new count value "more"`, lines, count, out, hook}},
		{what: "a state that is renamed", change: func(p *Program, _ *snapshot.Metadata) {
			p.Operators[1].States[0] = snapshot.StateSchema{Name: "total", Was: "n", Kind: "value", Key: `"string"`, Value: `"long"`}
		}, fits: true, want: []string{lines, `same count value "total"`, `same count value "seen", timers, oplist "all"`, out, hook}, says: []string{"was n"}},
		{what: "a list that is renamed to another type", change: func(p *Program, _ *snapshot.Metadata) {
			p.Operators[1].States[3] = snapshot.StateSchema{Name: "every", Was: "all", Kind: "oplist", Value: `"string"`}
		}, says: []string{`state "every" (oplist): stored as long, declared as string`}},
		{what: "a state that seems renamed", change: func(p *Program, _ *snapshot.Metadata) { p.Operators[1].States[0].Name = "total" },
			want: []string{`refused count value "n"`, `new count value "total"`, lines, `same count value "seen", timers, oplist "all"`, out, hook},
			says: []string{`state "n" (value): it is stored but not declared any more; if it was renamed to "total", declare that with the tag ` + "`state:\"total,was=n\"`", "-n"}},
		{what: "a state that is gone", change: func(p *Program, _ *snapshot.Metadata) { p.Operators[1].States = p.Operators[1].States[1:] },
			says: []string{`state "n" (value): it is stored but not declared any more; declare it (renamed: with was=n in its tag), or allow non-restored state (-n)`}},
		{what: "a state that may be gone", allow: true, change: func(p *Program, _ *snapshot.Metadata) { p.Operators[1].States = p.Operators[1].States[1:] }, fits: true,
			want: []string{`dropped count value "n"`, lines, `same count value "seen", timers, oplist "all"`, out, hook}, says: []string{"what is dropped is gone"}},
		{what: "a state that may be gone, and another that must fit", allow: true, change: func(p *Program, _ *snapshot.Metadata) {
			p.Operators[1].States = p.Operators[1].States[1:]
			p.Operators[1].States[0].Value = `"string"`
		}, says: []string{`state "seen" (value): stored as Seen, declared as string`}},
		{what: "a state of which nothing is stored", change: func(p *Program, m *snapshot.Metadata) {
			p.Operators[1].States = p.Operators[1].States[:3]
			for i := range operatorOf(m, "count").Subtasks {
				operatorOf(m, "count").Subtasks[i].Lists = nil
			}
		}, fits: true},
		{what: "a state of another type of which nothing is stored", change: func(p *Program, m *snapshot.Metadata) {
			p.Operators[1].States[3].Value = `"string"`
			for i := range operatorOf(m, "count").Subtasks {
				operatorOf(m, "count").Subtasks[i].Lists = nil
			}
		}, fits: true, want: []string{`new count oplist "all"`, lines, `same count value "n", value "seen", timers`, out, hook}},

		// Keys.
		{what: "keys of another type", change: func(p *Program, _ *snapshot.Metadata) { rekeyed(p, `"long"`) },
			says: []string{`the keys: stored as string, declared as long: a key must keep its canonical bytes, by which it is found again; keep the key's type`, "give the operator a new UID"}},
		{what: "keys that are widened", change: func(p *Program, m *snapshot.Metadata) {
			operatorOf(m, "count").Schemas = slices.Clone(operatorOf(m, "count").Schemas)
			for i := range 3 {
				operatorOf(m, "count").Schemas[i].Key = `"int"`
			}
			rekeyed(p, `"long"`)
		}, fits: true, want: []string{"migrate count keys", lines, count, out, hook}},
		{what: "no keys any more", change: func(p *Program, _ *snapshot.Metadata) { p.Operators[1].States = p.Operators[1].States[3:] },
			want: []string{`refused count value "n"`, `refused count value "seen"`, lines, `same count oplist "all"`, out, hook}},
		{what: "only timers, and none any more", change: func(p *Program, m *snapshot.Metadata) {
			p.Operators[1].States = p.Operators[1].States[3:]
			operatorOf(m, "count").Schemas = operatorOf(m, "count").Schemas[2:]
		}, says: []string{"state or timers by key are stored, but the operator declares none"}},
		{what: "rows of a canonical savepoint, and no keys any more", change: func(p *Program, m *snapshot.Metadata) {
			rowsOf(m, "n", "seen")
			p.Operators[1].States = p.Operators[1].States[3:]
		}, want: []string{`refused count value "n"`, `refused count value "seen"`, lines, `same count oplist "all"`, out, hook}},

		// Operators.
		{what: "an operator that is new", change: func(p *Program, _ *snapshot.Metadata) {
			p.Operators = append(p.Operators, Operator{ID: "alerts", Parallelism: 1, States: []snapshot.StateSchema{keyed("a", `"long"`), timers}})
		}, fits: true, want: []string{`new alerts value "a"`, lines, count, out, hook}},
		{what: "an operator without state that is gone", change: func(p *Program, _ *snapshot.Metadata) { p.Operators, p.Edges = p.Operators[:2], p.Edges[:1] }, fits: true,
			want: []string{"dropped out", lines, count, hook}, says: []string{"had no state"}},
		{what: "an operator that is renamed, with the same states", change: func(p *Program, _ *snapshot.Metadata) { renamed(p, "count", "tally") },
			says: []string{`operator "count" (Process) has state (value "n", value "seen", timers, oplist "all") that the program has no place for: ` +
				`if it was renamed to "tally" (made at main.go:11), which is new and has a place for all of it, write UID("tally", "count") there; to drop it, allow it with -n`}},
		{what: "an operator that is renamed alike, with other states", change: func(p *Program, _ *snapshot.Metadata) {
			renamed(p, "count", "counter")
			p.Operators[1].States[0].Kind = "list"
		}, says: []string{`renamed to "counter" (made at main.go:11), which is new and has a place for 2 of its 3 states, write UID("counter", "count")`}},
		{what: "an operator that is gone", change: func(p *Program, _ *snapshot.Metadata) { p.Operators = slices.Delete(p.Operators, 1, 2) },
			says: []string{`the program's UIDs are: lines, out; if one of them is its new one, write UID("new", "count") there`, "--allowNonRestoredState"}},
		{what: "an operator that may be gone", allow: true, change: func(p *Program, _ *snapshot.Metadata) { renamed(p, "count", "tally") }, fits: true,
			want: []string{`dropped count value "n", value "seen", oplist "all"`, `new tally value "n", value "seen", oplist "all"`, lines, out, hook}},
		{what: "an alias", change: func(p *Program, _ *snapshot.Metadata) { renamed(p, "count", "tally", "sums", "count") }, fits: true,
			want: []string{lines, `same tally value "n", value "seen", timers, oplist "all"`, out, hook}, says: []string{"was count"}},
		{what: "an alias, where the snapshot has the new UID too", change: func(p *Program, m *snapshot.Metadata) {
			p.Operators[2].Was = []string{"count"}
			p.Operators = slices.Delete(p.Operators, 1, 2)
		}, says: []string{`operator "count" (Process) has state`}},
		{what: "a source that is none any more", change: func(p *Program, _ *snapshot.Metadata) { p.Operators[0].Source = false },
			want: []string{"refused lines enumerator", `same lines oplist "splits"`, count, out, hook}, says: []string{"no source any more"}},
		{what: "a source that need not be one any more", allow: true, change: func(p *Program, _ *snapshot.Metadata) { p.Operators[0].Source = false }, fits: true,
			want: []string{"dropped lines enumerator", `same lines oplist "splits"`, count, out, hook}},
		{what: "splits of another type", change: func(p *Program, _ *snapshot.Metadata) { p.Operators[0].States[0].Value = `"string"` },
			says: []string{`operator "Lines" (uid "lines"): state "splits" (oplist): stored as long, declared as string`}},

		// Ends.
		{what: "partly ended, at another parallelism", change: func(p *Program, m *snapshot.Metadata) {
			o := operatorOf(m, "count")
			o.EndOfInput, o.Subtasks[0].Ended = true, true
			operatorOf(m, "lines").Subtasks[0].Ended, operatorOf(m, "lines").Subtasks[1].Ended = true, true
			p.Operators[1].Parallelism = 3
		}, says: []string{`cannot be restored at parallelism 3: 1 of its 2 subtasks had ended`}},
		{what: "finished, and fed by what had not", change: func(p *Program, m *snapshot.Metadata) {
			*operatorOf(m, "out") = snapshot.Operator{UID: "out", Name: "Print", Parallelism: 1, Finished: true}
		}, says: []string{"loses records", `vertex "Print" is fully finished`}},
		{what: "all ended", change: func(p *Program, m *snapshot.Metadata) {
			for i := range m.Operators {
				for j := range m.Operators[i].Subtasks {
					m.Operators[i].Subtasks[j].Ended = true
				}
			}
		}, fits: true, says: []string{"its input had ended"}},
		{what: "too parallel", change: func(p *Program, _ *snapshot.Metadata) { p.Operators[1].Parallelism = 40_000 }, says: []string{"must be between 1 and 32768"}},

		// Records in flight.
		{what: "records in flight", change: func(p *Program, m *snapshot.Metadata) { inFlight(m, linesToCount, `"string"`, 0, 1) }, fits: true,
			want: []string{lines, count, out, "same edge lines -> count 6 records", hook}},
		{what: "records in flight that are widened", change: func(p *Program, m *snapshot.Metadata) { inFlight(m, countToOut, `"int"`, 0) }, fits: true,
			want: []string{"migrate edge count -> out 3 records", lines, count, out, hook}, says: []string{"widened from int to long"}},
		{what: "records in flight of another type", change: func(p *Program, m *snapshot.Metadata) { inFlight(m, countToOut, `"string"`, 0) },
			says: []string{"the records in flight on the edge count -> out cannot be read as what they are now: stored as string, declared as long", "or restore from a savepoint"}},
		{what: "records in flight without a type now", change: func(p *Program, m *snapshot.Metadata) {
			inFlight(m, countToOut, `"string"`, 0)
			p.Edges[1].Record = ""
		}, says: []string{"edge count -> out", "have none now"}},
		{what: "records in flight on an edge that is gone", change: func(p *Program, m *snapshot.Metadata) {
			inFlight(m, linesToCount, `"string"`, 0, 1)
			p.Edges = p.Edges[1:]
		}, says: []string{"there are 6 records in flight on the edge lines -> count that the program has no place for", "restore from a savepoint: it has none", "-n"}},
		{what: "records in flight on an edge that may be gone", allow: true, change: func(p *Program, m *snapshot.Metadata) {
			inFlight(m, linesToCount, `"string"`, 0, 1)
			p.Edges = p.Edges[1:]
		}, fits: true, want: []string{"dropped edge lines -> count 6 records", lines, count, out, hook}},
		{what: "records in flight to an operator without state that is renamed", change: func(p *Program, m *snapshot.Metadata) {
			inFlight(m, countToOut, `"long"`, 0)
			renamed(p, "out", "output")
		}, says: []string{"3 records in flight on the edge count -> out", `of operator "out": if it was renamed to "output" (made at main.go:12), which is new and is called much alike, write UID("output", "out") there`}},
		{what: "records in flight between two that have become others", change: func(p *Program, m *snapshot.Metadata) {
			inFlight(m, linesToCount, `"string"`, 0, 1)
			renamed(p, "lines", "texts", "lines")
			renamed(p, "count", "tally", "count")
		}, fits: true, want: []string{`same texts oplist "splits", enumerator`, `same tally value "n", value "seen", timers, oplist "all"`, out, "same edge texts -> tally 6 records", hook}},
		{what: "records in flight to a subtask that had ended", change: func(p *Program, m *snapshot.Metadata) {
			inFlight(m, linesToCount, `"string"`, 1)
			for _, o := range []string{"lines", "count"} {
				operatorOf(m, o).Subtasks[0].Ended = true
			}
			operatorOf(m, "lines").Subtasks[1].Ended = true
			p.Edges[0].Routing = snapshot.ToFirst
		}, says: []string{`to subtask 0 of "Process", which had ended`, "restore from a savepoint"}},

		// Hooks.
		{what: "a hook that is renamed", change: func(p *Program, m *snapshot.Metadata) { p.Hooks = []string{"log"} },
			want: []string{"refused hook audit", "new hook log", lines, count, out},
			says: []string{`master hook "audit" has state that the program has no place for: its hooks are: log; if one of them is it, give it its old ID back`}},
		{what: "a hook that is gone", change: func(p *Program, m *snapshot.Metadata) { p.Hooks = nil }, says: []string{"it has no hooks; add it again"}},
		{what: "a hook that may be gone", allow: true, change: func(p *Program, m *snapshot.Metadata) { p.Hooks = nil }, fits: true,
			want: []string{"dropped hook audit", lines, count, out}},
	} {
		p, m := theProgram(), theCheckpoint()
		if c.change != nil {
			c.change(p, m)
		}
		r := Check(m, *p, c.allow)
		var table strings.Builder
		if err := r.WriteText(&table); err != nil {
			t.Fatal(err)
		}
		if c.want != nil && !slices.Equal(verdicts(r), c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.what, strings.Join(verdicts(r), "\n"), strings.Join(c.want, "\n"))
		}
		checkReport(t, c.what, r, c.fits)
		for _, want := range c.says {
			if text := table.String() + fmt.Sprint(r.Err()); !strings.Contains(text, want) {
				t.Errorf("%s:\n%s\nhas no %q", c.what, text, want)
			}
		}
	}
}

// checkReport checks what holds of every report.
func checkReport(t *testing.T, what string, r *Report, fits bool) {
	t.Helper()
	if r.Fits != fits || (r.Err() == nil) != fits || r.Fits == slices.ContainsFunc(r.rows(), func(l row) bool { return l.verdict == Refused }) {
		t.Errorf("%s: fits: %v, error: %v\n%s", what, r.Fits, r.Err(), strings.Join(verdicts(r), "\n"))
	}
	text, err := json.Marshal(r)
	var again Report
	if err := errors.Join(err, json.Unmarshal(text, &again)); err != nil {
		t.Fatal(err)
	}
	var one, two strings.Builder
	if err := errors.Join(r.WriteText(&one), again.WriteText(&two)); err != nil || one.String() != two.String() {
		t.Errorf("%s: after JSON it is\n%s\nnot\n%s", what, &two, &one)
	}
}

func withState(m *snapshot.Metadata, name, value string) []snapshot.StateSchema {
	all := slices.Clone(operatorOf(m, "count").Schemas)
	all[slices.IndexFunc(all, func(s snapshot.StateSchema) bool { return s.Name == name })].Value = value
	return all
}

func rekeyed(p *Program, key string) {
	for i := range 3 {
		p.Operators[1].States[i].Key = key
	}
}

// renamed gives an operator of the program another UID, and its edges.
func renamed(p *Program, old, now string, was ...string) {
	for i := range p.Operators {
		if p.Operators[i].ID == old {
			p.Operators[i].ID, p.Operators[i].Was = now, was
		}
	}
	for i := range p.Edges {
		e := &p.Edges[i].Edge
		if e.From == old {
			e.From = now
		}
		if e.To == old {
			e.To = now
		}
	}
	for i := range p.Vertices {
		for j, id := range p.Vertices[i].Operators {
			if id == old {
				p.Vertices[i].Operators[j] = now
			}
		}
	}
}

// TestErrorsCanBeFound: who starts a job asks for the errors of the rules below.
func TestErrorsCanBeFound(t *testing.T) {
	p, m := theProgram(), theCheckpoint()
	p.Operators[1].States[0].Value = `"int"`
	p.Operators[1].Parallelism = 3
	operatorOf(m, "count").EndOfInput, operatorOf(m, "count").Subtasks[0].Ended = true, true
	p.Hooks = nil
	err := Check(m, *p, false).Err()
	var partly *snapshot.PartlyEndedError
	var state *StateError
	var resolve *codec.ResolveError
	var unmatched *UnmatchedError
	for _, target := range []any{&partly, &state, &resolve, &unmatched} {
		if !errors.As(err, target) {
			t.Errorf("no %T in: %v", target, err)
		}
	}
	var permanent interface{ NonRecoverable() bool }
	if !errors.As(err, &permanent) || !permanent.NonRecoverable() {
		t.Error("a restart would be tried")
	}
}

// TestAliases: who adopts what.
func TestAliases(t *testing.T) {
	for _, c := range []struct {
		stored, want string
		was          []string
	}{
		{"b", "b->a", []string{"b"}},
		{"a", "", []string{"b"}},
		{"a b", "", []string{"b"}},
		{"b c", "b->a", []string{"b", "c"}},
		{"b c", "c->a", []string{"c", "b"}},
		{"c", "c->a", []string{"b", "c"}},
		{"d", "", []string{"b", "c"}},
	} {
		m := &snapshot.Metadata{}
		for _, uid := range strings.Fields(c.stored) {
			m.Operators = append(m.Operators, snapshot.Operator{UID: uid})
		}
		got := ""
		for old, now := range (Program{Operators: []Operator{{ID: "a", Was: c.was}}}).renames(m) {
			got += old + "->" + now
		}
		if got != c.want {
			t.Errorf("stored %s, aliases %q: %q, want %q", c.stored, c.was, got, c.want)
		}
	}
}

// TestNearest: the likeliest comes first, and what is stored itself, or takes something else over, is none.
func TestNearest(t *testing.T) {
	p, m := theProgram(), theCheckpoint()
	renamed(p, "count", "tally")
	p.Operators = append(p.Operators,
		Operator{ID: "counts", Made: "main.go:20", Parallelism: 1},
		Operator{ID: "count2", Made: "main.go:21", Parallelism: 1, States: []snapshot.StateSchema{keyed("n", `"long"`), timers}},
		Operator{ID: "counted", Was: []string{"out"}, Parallelism: 1},
		Operator{ID: "cent", Placed: true, Parallelism: 1},
		Operator{ID: "elsewhere", Parallelism: 1, States: []snapshot.StateSchema{keyed("x", `"long"`)}})
	r := Check(m, *p, false)
	i := slices.IndexFunc(r.Operators, func(o OperatorFit) bool { return o.UID == "count" })
	var got []string
	for _, n := range r.Operators[i].Nearest {
		got = append(got, fmt.Sprint(n.UID, " ", n.States, " ", n.Fix))
	}
	want := []string{`count2 1 UID("count2", "count")`, `tally 3 UID("tally", "count")`, `counts 0 UID("counts", "count")`}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("nearest are %q, want %q", got, want)
	}
	if err := r.Err(); !strings.Contains(err.Error(), "(near, too: ") {
		t.Errorf("the others are not told: %v", err)
	}
}
