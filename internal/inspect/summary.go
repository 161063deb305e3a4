package inspect

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
)

// Summary is what is in a snapshot. Numbers that are not there are not known without reading all entries.
type Summary struct {
	Path      string            `json:"path"`
	Job       base.JobID        `json:"job"`
	JobName   string            `json:"job_name"`
	ID        base.CheckpointID `json:"id"`
	Kind      snapshot.Kind     `json:"kind"`
	Format    snapshot.Format   `json:"format"`
	Run       int64             `json:"run"`
	Taken     time.Time         `json:"taken"`
	Operators []Operator        `json:"operators"`
	Hooks     []Hook            `json:"hooks,omitempty"`
	InFlight  []Flight          `json:"in_flight,omitempty"`
	Totals    Totals            `json:"totals"`
	// Problems are files that could not be looked at.
	Problems []string `json:"problems,omitempty"`
}

// Operator is what an operator has.
type Operator struct {
	UID         string `json:"uid"`
	Name        string `json:"name,omitempty"`
	Parallelism int    `json:"parallelism"`
	// Finished: all subtasks had finished before the snapshot. Ended is how many had come to the end of their data.
	Finished bool `json:"finished,omitempty"`
	Ended    int  `json:"ended_subtasks,omitempty"`
	// Watermark is the least of the subtasks', as RFC 3339, "none" or "end".
	Watermark string `json:"watermark"`
	// Coordinator is the size of the state of a source's enumerator.
	Coordinator *int64 `json:"coordinator_bytes,omitempty"`
	// Keys and KeyedBytes are those of all states by key that share their files.
	Keys       *int64  `json:"keys,omitempty"`
	KeyedBytes *int64  `json:"keyed_bytes,omitempty"`
	States     []State `json:"states,omitempty"`
	// Splits are the first of a source's splits, SplitsMore how many more there are.
	Splits     []json.RawMessage `json:"splits,omitempty"`
	SplitsMore int64             `json:"splits_more,omitempty"`
}

// State is one state of an operator.
type State struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Mode is how the elements of a list are dealt to new subtasks.
	Mode   string `json:"mode,omitempty"`
	Key    string `json:"key,omitempty"`
	MapKey string `json:"map_key,omitempty"`
	Value  string `json:"value,omitempty"`
	TTL    string `json:"ttl,omitempty"`
	// Entries are values, elements of lists, entries of maps, or timers.
	Entries *int64 `json:"entries,omitempty"`
	Bytes   *int64 `json:"bytes,omitempty"`

	schema snapshot.StateSchema
	stored bool // by some subtask
}

// Hook is the state of a master hook.
type Hook struct {
	ID    string `json:"id"`
	Bytes int64  `json:"bytes"`
}

// Flight is records that were in flight on an edge.
type Flight struct {
	Edge    string `json:"edge"`
	Record  string `json:"record"`
	Records int64  `json:"records"`
	Bytes   int64  `json:"bytes"`
}

// Totals are sums over the snapshot.
type Totals struct {
	// Bytes are all that a restore needs, New those that this snapshot has written itself.
	Bytes int64 `json:"bytes"`
	New   int64 `json:"new_bytes"`
	Files int   `json:"files"`
	// Outside are files in other directories, of older checkpoints: it cannot be restored without them, nor moved as a whole.
	Outside      int   `json:"outside_files,omitempty"`
	OutsideBytes int64 `json:"outside_bytes,omitempty"`
}

// splitsMost is how many splits of a source a Summary has.
const splitsMost = 20

// splitsState is the state of a source's operator that holds its splits.
const splitsState = "splits"

// Summary gathers what is in the snapshot.
func (s *Snapshot) Summary() *Summary {
	sum := &Summary{Path: s.Location, Job: s.Job, JobName: s.JobName, ID: s.ID, Kind: s.Kind, Format: s.Format, Run: s.Run,
		Taken: time.Unix(0, s.Wall).UTC(), InFlight: s.flights(), Totals: s.totals()}
	for i := range s.Operators {
		o, problems := s.summaryOf(&s.Operators[i])
		sum.Operators = append(sum.Operators, o)
		sum.Problems = append(sum.Problems, problems...)
	}
	for _, h := range s.Hooks {
		sum.Hooks = append(sum.Hooks, Hook{h.ID, h.State.Size})
	}
	return sum
}

func (s *Snapshot) totals() (t Totals) {
	sizes := s.Sizes()
	t.Bytes, t.New = sizes.State, sizes.New
	seen := map[string]bool{}
	_ = s.Handles(func(o snapshot.Owner, h *snapshot.Handle) error { // which never fails
		if h.File == "" || seen[h.File] {
			return nil
		}
		seen[h.File] = true
		t.Files++
		if s.isOutside(*h) {
			t.Outside++
			t.OutsideBytes += h.Size
		}
		return nil
	})
	return t
}

// summaryOf gathers what an operator has.
func (s *Snapshot) summaryOf(o *snapshot.Operator) (sum Operator, problems []string) {
	sum = Operator{UID: o.UID, Name: o.Name, Parallelism: o.Parallelism, Finished: o.Finished, Watermark: watermarkOf(o)}
	if o.Coordinator != nil {
		sum.Coordinator = &o.Coordinator.Size
	}
	for _, schema := range o.Schemas {
		sum.States = append(sum.States, newState(schema))
	}
	for i := range o.Subtasks {
		t := &o.Subtasks[i]
		if t.Ended {
			sum.Ended++
		}
		for _, h := range t.Keyed {
			sum.KeyedBytes = add(sum.KeyedBytes, h.Size)
		}
		parts, err := s.parts(t)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%v: %v", o, err))
			continue
		}
		sum.addParts(parts)
	}
	if len(problems) == 0 {
		sum.settle()
	}
	if err := sum.addSplits(s, o); err != nil {
		problems = append(problems, fmt.Sprintf("%v, its splits: %v", o, err))
	}
	return sum, problems
}

// watermarkOf is the least watermark of the subtasks.
func watermarkOf(o *snapshot.Operator) string {
	if len(o.Subtasks) == 0 {
		return "none"
	}
	least := base.EndOfTime
	for _, t := range o.Subtasks {
		least = min(least, t.Watermark)
	}
	return timeText(least)
}

func timeText(t base.EventTime) string {
	switch t {
	case base.NoTime:
		return "none"
	case base.EndOfTime:
		return "end"
	}
	return t.Time().Format(time.RFC3339Nano)
}

// newState is a state as it was declared.
func newState(s snapshot.StateSchema) State {
	return State{Name: s.Name, Kind: s.Kind, Key: typeText(s.Key), MapKey: typeText(s.MapKey), Value: typeText(s.Value), schema: s}
}

// typeText is a type for people.
func typeText(schema string) string {
	if schema == "" {
		return ""
	}
	t, err := codec.TypeOf(schema)
	if err != nil {
		return schema
	}
	return t.String()
}

// add adds n to a number that may be none yet.
func add(to *int64, n int64) *int64 {
	if to == nil {
		return &n
	}
	*to += n
	return to
}

// addParts adds what a subtask has.
func (sum *Operator) addParts(parts []part) {
	counted := false
	for _, p := range parts {
		if p.keys != unknown && !counted { // of one file
			sum.Keys, counted = add(sum.Keys, p.keys), true
		}
		i := slices.IndexFunc(sum.States, func(s State) bool { return s.Name == p.Schema.Name && (s.Key != "") == p.keyed() })
		if i < 0 {
			sum.States = append(sum.States, newState(p.Schema))
			i = len(sum.States) - 1
		}
		st := &sum.States[i]
		st.stored = true
		if p.TTL > 0 {
			st.TTL = p.TTL.String()
		} else if p.Stamped {
			st.TTL = "unknown"
		}
		if !p.keyed() {
			st.Mode = p.mode.String()
		}
		if p.count != unknown {
			st.Entries = add(st.Entries, p.count)
		}
		if p.bytes != unknown {
			st.Bytes = add(st.Bytes, p.bytes)
		}
	}
}

// settle says of states that no subtask has anything of that they are empty.
func (sum *Operator) settle() {
	for i := range sum.States {
		if s := &sum.States[i]; !s.stored {
			s.Entries = new(int64)
		}
	}
}

// addSplits reads the first splits of a source.
func (sum *Operator) addSplits(s *Snapshot, o *snapshot.Operator) error {
	schema := schemaOf(o, splitsState)
	if schema.Kind != state.KindOpList {
		return nil
	}
	all := int64(0)
	if i := slices.IndexFunc(sum.States, func(s State) bool { return s.Name == splitsState }); i >= 0 && sum.States[i].Entries != nil {
		all = *sum.States[i].Entries
	}
	for e, err := range s.entries(o, splitsState, nil) {
		if err != nil {
			return err
		}
		if len(sum.Splits) == splitsMost {
			break
		}
		value, err := e.value()
		if err != nil {
			return err
		}
		sum.Splits = append(sum.Splits, value)
	}
	sum.SplitsMore = all - int64(len(sum.Splits))
	return nil
}

// flights are the records in flight, by edge.
func (s *Snapshot) flights() (all []Flight) {
	at := map[snapshot.Edge]int{}
	for _, o := range s.Operators {
		for _, t := range o.Subtasks {
			for _, h := range t.InFlight {
				i, ok := at[h.Edge]
				if !ok {
					i = len(all)
					at[h.Edge] = i
					all = append(all, Flight{Edge: h.Edge.String(), Record: typeText(s.recordOf(h.Edge))})
				}
				all[i].Records += h.Records
				all[i].Bytes += h.Size
			}
		}
	}
	return all
}

// recordOf is the schema of the records of an edge.
func (s *Snapshot) recordOf(e snapshot.Edge) string {
	for _, o := range s.Operators {
		for _, schema := range o.InFlight {
			if schema.Edge == e {
				return schema.Record
			}
		}
	}
	return ""
}
