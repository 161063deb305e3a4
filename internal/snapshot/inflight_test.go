package snapshot

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/base"
)

// overtaken is a record in flight of these tests: its key's hash, and where it was.
type overtaken struct {
	handle string
	number int
	hash   uint64
}

// flightWorld is an edge "a -> b" with records in flight: the bytes of each handle are records.
type flightWorld struct {
	routing Routing
	records map[string][]overtaken
	m       *Metadata
}

// newFlightWorld puts up to 12 records into the parts of old receivers, and of senders where held says so, as the routing would have.
func newFlightWorld(rng *rand.Rand, routing Routing, senders, receivers int, held bool) *flightWorld {
	w := &flightWorld{routing: routing, records: map[string][]overtaken{}, m: &Metadata{ID: 1, Job: testJob, Kind: Checkpoint, Format: Native}}
	a := Operator{UID: "a", Parallelism: senders, Subtasks: make([]Subtask, senders)}
	b := Operator{UID: "b", Parallelism: receivers, Subtasks: make([]Subtask, receivers), InFlight: []EdgeSchema{{edgeAB, `"long"`}}}
	for i := range a.Subtasks {
		a.Subtasks[i].Index = i
		if held && rng.IntN(3) > 0 {
			w.fill(rng, &a.Subtasks[i], true, receivers)
		}
	}
	for i := range b.Subtasks {
		b.Subtasks[i].Index = i
		if rng.IntN(4) > 0 {
			w.fill(rng, &b.Subtasks[i], false, receivers)
		}
	}
	w.m.Operators = []Operator{a, b}
	return w
}

var edgeAB = Edge{From: "a", To: "b"}

func (w *flightWorld) fill(rng *rand.Rand, s *Subtask, output bool, receivers int) {
	if w.routing == ToFirst && !output && s.Index > 0 {
		return
	}
	name := fmt.Sprintf("in%d", s.Index)
	if output {
		name = fmt.Sprintf("out%d", s.Index)
	}
	n := 1 + rng.IntN(12)
	for k := range n {
		r := overtaken{handle: name, number: k, hash: rng.Uint64()}
		for !output && w.routing == ByKey && base.OwnerOf(r.hash, receivers) != s.Index {
			r.hash = rng.Uint64()
		}
		w.records[name] = append(w.records[name], r)
	}
	s.InFlight = append(s.InFlight, InFlightHandle{Edge: edgeAB, Output: output, Records: int64(n), Handle: file(name[:len(name)-1], s.Index)})
}

// chosen is what the user's function says.
func (r overtaken) chosen(parallelism int) int { return int(r.hash % uint64(parallelism)) }

// takes is what the receiver does with a part: as package operator.
func (w *flightWorld) takes(t *testing.T, p InFlightPart, parallelism, subtask int) (taken []overtaken) {
	t.Helper()
	for _, r := range w.records[p.File] {
		mine := p.All
		switch {
		case p.All:
		case w.routing == ByKey:
			if p.OldParallelism > 0 && base.OwnerOf(r.hash, p.OldParallelism) != p.Old {
				t.Fatalf("the key of %v is not one of subtask %d of %d", r, p.Old, p.OldParallelism)
			}
			mine = base.OwnerOf(r.hash, parallelism) == subtask
		case w.routing == ByChoice:
			mine = r.chosen(parallelism) == subtask
		default:
			mine = r.number%p.Of == p.Turn
		}
		if mine {
			taken = append(taken, r)
		}
	}
	return taken
}

func (w *flightWorld) match(t *testing.T) *MatchedEdge {
	t.Helper()
	p := Program{Operators: []string{"a", "b"}, Edges: []ProgramEdge{{EdgeSchema{edgeAB, `"long"`}, w.routing}}}
	match := w.m.Match(p)
	if lost := match.Lost(); lost != nil {
		t.Fatal(lost)
	}
	if len(match.Edges) == 0 {
		return &MatchedEdge{ProgramEdge: p.Edges[0]}
	}
	return match.Edges[0]
}

var routings = []Routing{ByKey, Pointwise, InTurn, ToFirst, ToAll, ByChoice}

// TestInFlightIsGivenOutOnce: every record goes to exactly one new subtask, of a broadcast to each once, and to the one that its
// key, or the user's function, says; and those of one part stay in order.
func TestInFlightIsGivenOutOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, routing := range routings {
		for old := range 7 {
			for parallelism := range 7 {
				for _, held := range []bool{false, true} {
					w := newFlightWorld(rng, routing, 1+rng.IntN(7), old+1, held)
					if err := w.m.Validate(); err != nil {
						t.Fatal(err)
					}
					t.Run(fmt.Sprintf("routing %d, %d to %d, held %v", routing, old+1, parallelism+1, held), func(t *testing.T) { w.check(t, parallelism+1) })
				}
			}
		}
	}
}

func (w *flightWorld) check(t *testing.T, parallelism int) {
	edge, times := w.match(t), map[overtaken]int{}
	for subtask := range parallelism {
		for _, p := range edge.Assign(parallelism, subtask) {
			if p.Record != `"long"` {
				t.Errorf("the schema is %q", p.Record)
			}
			for _, r := range w.takes(t, p, parallelism, subtask) {
				times[r]++
				w.mustBelong(t, r, parallelism, subtask)
			}
		}
	}
	want := 1
	if w.routing == ToAll {
		want = parallelism
	}
	for _, all := range w.records {
		for _, r := range all {
			if times[r] != want {
				t.Errorf("%+v is given out %d times, want %d", r, times[r], want)
			}
		}
	}
}

func (w *flightWorld) mustBelong(t *testing.T, r overtaken, parallelism, subtask int) {
	t.Helper()
	switch {
	case w.routing == ByKey && base.OwnerOf(r.hash, parallelism) != subtask,
		w.routing == ToFirst && subtask != 0,
		w.routing == ByChoice && parallelism != w.m.Operators[1].Parallelism && r.chosen(parallelism) != subtask:
		t.Errorf("%+v does not belong to subtask %d of %d", r, subtask, parallelism)
	}
}

// At the same parallelism every part that had arrived goes back to its receiver, and to no one else.
func TestInFlightAtEqualParallelism(t *testing.T) {
	for _, routing := range []Routing{ByKey, Pointwise, InTurn, ByChoice} {
		w := newFlightWorld(rand.New(rand.NewPCG(1, 1)), routing, 2, 5, false)
		edge := w.match(t)
		for subtask := range 5 {
			parts := edge.Assign(5, subtask)
			if own := w.m.Operators[1].Subtasks[subtask].InFlight; len(parts) != len(own) || len(own) == 1 && parts[0].File != own[0].File {
				t.Errorf("routing %d: subtask %d reads %+v, want %+v", routing, subtask, parts, own)
			}
		}
	}
}

// What had arrived comes before what the senders held: it was sent before.
func TestInFlightOfSendersComesLast(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for _, routing := range routings {
		edge := newFlightWorld(rng, routing, 4, 3, true).match(t)
		for subtask := range 5 {
			parts := edge.Assign(5, subtask)
			if held := slices.IndexFunc(parts, func(p InFlightPart) bool { return p.Output }); held >= 0 &&
				slices.ContainsFunc(parts[held:], func(p InFlightPart) bool { return !p.Output }) {
				t.Errorf("routing %d: %+v", routing, parts)
			}
		}
	}
}

// TestInFlightIsReadByFew: what is dealt by range or in turn is read by no more subtasks than need be, at the largest parallelism too.
func TestInFlightIsReadByFew(t *testing.T) {
	for _, c := range [][2]int{{base.KeyGroups, base.KeyGroups}, {base.KeyGroups, 1000}, {1000, base.KeyGroups}, {base.KeyGroups, base.KeyGroups - 1}, {1, 5}} {
		old, parallelism := c[0], c[1]
		for _, routing := range []Routing{ByKey, Pointwise, InTurn} {
			m := &MatchedEdge{ProgramEdge: ProgramEdge{Routing: routing}, arrived: flights{parallelism: old}}
			for i := range old {
				m.arrived.parts = append(m.arrived.parts, flight{i, InFlightHandle{Edge: edgeAB, Records: 1}})
			}
			reads, whole := 0, 0
			for subtask := range parallelism {
				parts := m.Assign(parallelism, subtask)
				reads += len(parts)
				for _, p := range parts {
					if p.All || p.Turn == 0 && p.Of > 0 {
						whole++
					}
				}
			}
			if reads > old+parallelism {
				t.Errorf("routing %d, %d to %d: %d reads", routing, old, parallelism, reads)
			}
			if routing != ByKey && whole != old {
				t.Errorf("routing %d, %d to %d: %d parts have a first or only reader", routing, old, parallelism, whole)
			}
		}
	}
}

func TestMatchEdges(t *testing.T) {
	m := newFlightWorld(rand.New(rand.NewPCG(2, 2)), InTurn, 1, 4, false).m
	var records int64
	for _, s := range m.Operators[1].Subtasks {
		for _, h := range s.InFlight {
			records += h.Records
		}
	}
	edge := func(e Edge) []ProgramEdge { return []ProgramEdge{{EdgeSchema{e, `"long"`}, InTurn}} }
	ab := []string{"a", "b"}
	for _, c := range []struct {
		what string
		p    Program
		want string // of what is lost
	}{
		{"the edge is there", Program{Operators: ab, Edges: edge(edgeAB)}, ""},
		{"a new operator", Program{Operators: []string{"a", "b", "c"}, Edges: edge(edgeAB)}, ""},
		{"another input", Program{Operators: ab, Edges: edge(Edge{From: "a", To: "b", Input: 1})}, "records in flight on the edge a -> b"},
		{"another side output", Program{Operators: ab, Edges: edge(Edge{From: "a", To: "b", Tag: "x"})}, "records in flight on the edge a -> b"},
		{"a twin", Program{Operators: ab, Edges: edge(Edge{From: "a", To: "b", Twin: 1})}, "records in flight on the edge a -> b"},
		{"the receiver is gone", Program{Operators: []string{"a"}}, "records in flight on the edge a -> b"},
		{"an end without a UID, all as it was", Program{Operators: ab, Places: []string{"b"}, Edges: edge(edgeAB)}, ""},
		{"an end without a UID, and a new operator", Program{Operators: []string{"a", "b", "c"}, Places: []string{"b"}, Edges: edge(edgeAB)}, "an end has no UID"},
		{"an end without a UID, and another operator", Program{Operators: []string{"c", "b"}, Places: []string{"b"}, Edges: edge(edgeAB)}, "an end has no UID"},
		{"no UID elsewhere", Program{Operators: []string{"a", "b", "node-7"}, Places: []string{"node-7"}, Edges: edge(edgeAB)}, ""},
	} {
		match := m.Match(c.p)
		lost := match.Lost()
		if c.want == "" {
			if lost != nil || len(match.Edges) != 1 || match.Edges[0].Written != `"long"` || match.Edges[0].Records != records {
				t.Errorf("%s: %+v", c.what, match)
			}
			continue
		}
		if len(match.Edges) != 0 || len(lost) != 1 || !strings.Contains(lost[0], c.want) || !strings.Contains(lost[0], fmt.Sprint(records)) {
			t.Errorf("%s: %+v; want %q", c.what, match, c.want)
		}
	}
}

func TestValidateInFlight(t *testing.T) {
	for want, spoil := range map[string]func(m *Metadata){
		"but a savepoint has none":            func(m *Metadata) { m.Kind = Savepoint },
		"a -> b is not there":                 func(m *Metadata) { m.Operators[1].InFlight = nil },
		"or there are two":                    func(m *Metadata) { m.Operators[0].InFlight = []EdgeSchema{{edgeAB, `"int"`}} },
		"subtask 0 had ended, but records":    func(m *Metadata) { m.Operators[1].Subtasks[0].Ended = true },
		"records in flight on the edge a -> ": func(m *Metadata) { m.Operators[1].Subtasks[0].InFlight[0].Records = 0 },
		"are not its own":                     func(m *Metadata) { m.Operators[1].Subtasks[0].InFlight[0].Output = true },
		`"b", subtask 0, records in flight`:   func(m *Metadata) { m.Operators[1].Subtasks[0].InFlight[0].CRC++; inline(m) },
	} {
		m := newFlightWorld(rand.New(rand.NewPCG(4, 5)), ToFirst, 1, 1, false).m
		if len(m.Operators[1].Subtasks[0].InFlight) == 0 {
			t.Fatal("nothing is in flight")
		}
		spoil(m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// inline takes the name of the file away.
func inline(m *Metadata) { m.Operators[1].Subtasks[0].InFlight[0].File = "" }

// Rows of a canonical savepoint go the very ways that the same states go in the native format.
func TestRowsGoAsNativeStates(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 400 {
		native := randomOperator(rng, 1+rng.IntN(9))
		canonical := rowsOf(native)
		parallelism := 1 + rng.IntN(9)
		a, b := mustAssign(t, native, parallelism), mustAssign(t, canonical, parallelism)
		for i := range a {
			if want, got := nativePlaces(a[i]), rowPlaces(b[i]); !slices.Equal(got, want) {
				t.Fatalf("subtask %d of %d, from %d: rows\n%v\nwant\n%v", i, parallelism, native.Parallelism, got, want)
			}
			if a[i].Watermark != b[i].Watermark {
				t.Fatalf("the watermark is %d, want %d", b[i].Watermark, a[i].Watermark)
			}
		}
	}
}

// rowsOf is the operator in the canonical format. A native subtask may have several keyed handles: here each is a state.
func rowsOf(o *Operator) *Operator {
	c := *o
	c.Schemas, c.Subtasks = nil, slices.Clone(o.Subtasks)
	keyed := slices.ContainsFunc(o.Subtasks, func(s Subtask) bool { return len(s.Keyed) > 0 })
	if !keyed {
		c.Schemas = o.Schemas
	}
	for i := range c.Subtasks {
		s := &c.Subtasks[i]
		for _, h := range s.Keyed {
			s.Rows = append(s.Rows, RowsHandle{Name: strings.TrimRight(h.File, "0123456789"), Keyed: true, Range: h.Range, Count: 9, Handle: h.Handle})
		}
		for _, l := range s.Lists {
			s.Rows = append(s.Rows, RowsHandle{Name: l.Name, Mode: l.Mode, Count: int64(len(l.Offsets)), Handle: l.Handle})
		}
		s.Keyed, s.Lists = nil, nil
	}
	return &c
}

func nativePlaces(r Restored) (all []string) {
	for _, h := range r.Keyed {
		all = append(all, fmt.Sprint(h.File, h.Range))
	}
	slices.Sort(all)
	for _, l := range r.Lists {
		for _, at := range l.Offsets {
			all = append(all, fmt.Sprint(l.File, " ", at/10))
		}
	}
	return all
}

func rowPlaces(r Restored) (all []string) {
	for _, p := range r.Rows {
		if p.Keyed {
			all = append(all, fmt.Sprint(p.File, p.Range))
		}
	}
	slices.Sort(all)
	for _, p := range r.Rows {
		for at := p.From; !p.Keyed && at < p.To; at++ {
			all = append(all, fmt.Sprint(p.File, " ", at))
		}
	}
	return all
}

func TestValidateRows(t *testing.T) {
	rows := func(i int) []RowsHandle {
		return []RowsHandle{
			{Name: "n", Keyed: true, Range: base.RangeOf(i, 2), Count: 3, Handle: file("n", i), Index: file("ni", i)},
			{Name: "l", Mode: Union, Count: 3, Handle: file("l", i), Index: file("li", i)},
		}
	}
	for want, spoil := range map[string]func(o *Operator){
		"two files of rows":       func(o *Operator) { o.Subtasks[0].Rows[1].Name = "n" },
		"in another way":          func(o *Operator) { o.Subtasks[1].Rows[1].Mode = Split },
		"there cannot be -1":      func(o *Operator) { o.Subtasks[1].Rows[1].Count = -1 },
		"0-16383 are not within":  func(o *Operator) { o.Subtasks[1].Rows[0].Range = base.RangeOf(0, 2) },
		"there is no mode 3":      func(o *Operator) { o.Subtasks[0].Rows[1].Mode = 3 },
		`index of rows "n": size`: func(o *Operator) { o.Subtasks[0].Rows[0].Index = Handle{Size: 4} },
	} {
		m := sample()
		m.Format = Canonical
		m.Operators = []Operator{{UID: "op", Parallelism: 2, Subtasks: []Subtask{{Index: 0, Rows: rows(0)}, {Index: 1, Rows: rows(1)}}}}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		spoil(&m.Operators[0])
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// Every part of a checkpoint has its types once, though every subtask tells them.
func TestCollectionGathersTypesOfEdges(t *testing.T) {
	other := Edge{From: "z", To: "a"}
	p0, p1 := part("a", 0), part("a", 1)
	p0.InFlight = []EdgeSchema{{edgeAB, `"long"`}}
	p1.InFlight = []EdgeSchema{{other, `"int"`}, {edgeAB, `"long"`}}
	c := Collect([]Operator{{UID: "a", Parallelism: 2}})
	if err := c.Add(&TaskState{Operators: []OperatorPart{p0, p1}}); err != nil {
		t.Fatal(err)
	}
	ops, err := c.Operators()
	if want := []EdgeSchema{{edgeAB, `"long"`}, {other, `"int"`}}; err != nil || !reflect.DeepEqual(ops[0].InFlight, want) {
		t.Errorf("%+v, %v", ops[0].InFlight, err)
	}
	p1.InFlight[1].Record = `"int"`
	c = Collect([]Operator{{UID: "a", Parallelism: 2}})
	if err := c.Add(&TaskState{Operators: []OperatorPart{p0, p1}}); err == nil || !strings.Contains(err.Error(), "of the edge a -> b are of one type in one subtask") {
		t.Errorf("%v", err)
	}
}
