package fit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weirstream/weir/internal/snapshot"
)

// Verdict is what becomes of something.
type Verdict string

const (
	Same    Verdict = "same"
	Migrate Verdict = "migrate"
	New     Verdict = "new"
	Dropped Verdict = "dropped"
	Refused Verdict = "refused"
)

// Report says what becomes of everything that a snapshot has, and a program wants. Its JSON is what `weir check --json` prints.
type Report struct {
	Fits     bool     `json:"fits"`
	Snapshot Snapshot `json:"snapshot"`
	// AllowNonRestored: state that nobody takes may be dropped.
	AllowNonRestored bool `json:"allow_non_restored"`
	// Operators are those of the program in its order, then those that only the snapshot has.
	Operators []OperatorFit `json:"operators"`
	// Edges are those with records in flight.
	Edges []EdgeFit `json:"edges"`
	Hooks []HookFit `json:"hooks"`
	// Job is what is wrong with the whole.
	Job []Finding `json:"job"`

	refusals []error
}

// Snapshot names a snapshot.
type Snapshot struct {
	Location string `json:"location,omitempty"`
	ID       int64  `json:"id"`
	Kind     string `json:"kind"`
	Format   string `json:"format"`
	Job      string `json:"job"`
	JobName  string `json:"job_name,omitempty"`
	// Wall is when it was triggered, in milliseconds since the Unix epoch.
	Wall int64 `json:"timestamp"`
}

// Finding is what becomes of one thing, and why.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	// Changes are the differences of types, where it migrates.
	Changes []string `json:"changes,omitempty"`
	// Why says, of what is refused or dropped, what is wrong and what to do.
	Why string `json:"why,omitempty"`

	err error // that refuses; it says, too, of what
}

// refuse makes a finding of an error. One that has a Problem says the rest of it elsewhere in the report.
func refuse(err error) Finding {
	f := Finding{Verdict: Refused, Why: err.Error(), err: err}
	if short, ok := errors.AsType[interface {
		error
		Problem() string
	}](err); ok {
		f.Why = short.Problem()
	}
	return f
}

// OperatorFit is what becomes of an operator. Its verdict is the gravest of its own and its states'.
type OperatorFit struct {
	// UID is that in the program; of one that has none, its place. Was is the alias that it was found by.
	UID  string `json:"uid"`
	Was  string `json:"was,omitempty"`
	Name string `json:"name,omitempty"`
	// Parallelism is that in the program, 0: it is not there; StoredParallelism that in the snapshot.
	Parallelism       int `json:"parallelism,omitempty"`
	StoredParallelism int `json:"stored_parallelism,omitempty"`
	// Ended says that its input had ended: "all" of its subtasks, which do nothing more, or "some".
	Ended string `json:"ended,omitempty"`
	Finding
	States []StateFit `json:"states"`
	// Nearest are what it may have been renamed to, of one that only the snapshot has.
	Nearest []Near `json:"nearest,omitempty"`
}

// StateFit is what becomes of one state of an operator.
type StateFit struct {
	// Name is empty for what is not the user's: timers, the keys, the state of an enumerator. Was is what it is called in the snapshot.
	Name string `json:"name,omitempty"`
	Was  string `json:"was,omitempty"`
	Kind string `json:"kind"`
	// Stored and Declared are its types; empty: it has none, or is not there.
	Stored   string `json:"stored,omitempty"`
	Declared string `json:"declared,omitempty"`
	Finding
}

// label names the state among those of an operator.
func (s *StateFit) label() string {
	if s.Name == "" {
		return s.Kind
	}
	return fmt.Sprintf("%s %q", s.Kind, s.Name)
}

// EdgeFit is what becomes of the records in flight on an edge.
type EdgeFit struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Input   int    `json:"input,omitempty"`
	Tag     string `json:"tag,omitempty"`
	Twin    int    `json:"twin,omitempty"`
	Records int64  `json:"records"`
	// Stored and Declared are the types of the records.
	Stored   string `json:"stored,omitempty"`
	Declared string `json:"declared,omitempty"`
	Finding
}

func (e *EdgeFit) edge() snapshot.Edge {
	return snapshot.Edge{From: e.From, To: e.To, Input: e.Input, Tag: e.Tag, Twin: e.Twin}
}

// HookFit is what becomes of the state of a master hook.
type HookFit struct {
	ID string `json:"id"`
	Finding
}

// RefusedError says why a job cannot start from a snapshot: all reasons.
type RefusedError struct{ Report *Report }

func (e *RefusedError) Error() string {
	var all []string
	for _, err := range e.Unwrap() {
		all = append(all, err.Error())
	}
	return strings.Join(all, "\n")
}

// Unwrap are the reasons, among them errors such as a *snapshot.PartlyEndedError or a *StateError.
func (e *RefusedError) Unwrap() []error { return e.Report.refusals }

// NonRecoverable says that no restart changes it.
func (e *RefusedError) NonRecoverable() bool { return true }

// Err is nil where the snapshot fits, else a *RefusedError.
func (r *Report) Err() error {
	if r.Fits {
		return nil
	}
	return &RefusedError{r}
}

// gather finds all findings that refuse, those of the whole first.
func (r *Report) gather() {
	add := func(f Finding, format string, args ...any) {
		if f.err != nil {
			r.refusals = append(r.refusals, fmt.Errorf(format+"%w", append(args, f.err)...))
		}
	}
	for _, f := range r.Job {
		add(f, "")
	}
	for i := range r.Operators {
		o := &r.Operators[i]
		add(o.Finding, "")
		for j := range o.States {
			add(o.States[j].Finding, "operator %s: ", o.label())
		}
	}
	for i := range r.Edges {
		add(r.Edges[i].Finding, "")
	}
	for i := range r.Hooks {
		add(r.Hooks[i].Finding, "")
	}
	r.Fits = len(r.refusals) == 0
}

// label names the operator: its name, and its uid when it has another.
func (o *OperatorFit) label() string {
	if o.Name == "" || o.UID == o.Name {
		return fmt.Sprintf("%q", o.UID)
	}
	return fmt.Sprintf("%q (uid %q)", o.Name, o.UID)
}
