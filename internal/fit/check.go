package fit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/snapshot"
)

// Check says whether the snapshot fits the program. allow: state that nobody takes may be dropped (-n).
func Check(m *snapshot.Metadata, p Program, allow bool) *Report {
	c := checker{program: p, allow: allow, was: map[string]string{}}
	for old, now := range p.renames(m) {
		c.was[now] = old
	}
	c.snapshot = p.Adopt(m)
	c.match = p.Match(c.snapshot)
	c.report = &Report{Snapshot: about(m), AllowNonRestored: allow, Operators: []OperatorFit{}, Edges: []EdgeFit{}, Hooks: []HookFit{}, Job: []Finding{}}
	c.finished()
	for i := range p.Operators {
		c.report.Operators = append(c.report.Operators, c.operator(&p.Operators[i]))
	}
	c.others()
	c.edges()
	c.hooks()
	c.report.gather()
	return c.report
}

func about(m *snapshot.Metadata) Snapshot {
	return Snapshot{ID: int64(m.ID), Kind: string(m.Kind), Format: string(m.Format), Job: string(m.Job), JobName: m.JobName,
		Wall: m.Wall / int64(time.Millisecond)}
}

// checker is a report in the making.
type checker struct {
	program  Program
	allow    bool
	snapshot *snapshot.Metadata // with the UIDs of the program
	match    *snapshot.Match
	was      map[string]string // the old UID of what was adopted
	report   *Report
}

// finished finds what would feed operators that had finished.
func (c *checker) finished() {
	if err := c.snapshot.ValidateFinished(c.program.Vertices); err != nil {
		c.report.Job = append(c.report.Job, refuse(err))
	}
}

// operator is the finding of an operator of the program.
func (c *checker) operator(n *Operator) OperatorFit {
	f := OperatorFit{UID: n.ID, Was: c.was[n.ID], Name: n.Name, Parallelism: n.Parallelism, Finding: Finding{Verdict: New}, States: []StateFit{}}
	o := c.match.Operators[n.ID]
	if o == nil {
		for _, d := range n.States {
			if s := declaredState(&snapshot.Operator{}, d, -1); s.Name != "" {
				f.States = append(f.States, s)
			}
		}
		return f
	}
	f.Verdict, f.StoredParallelism, f.Ended = Same, o.Parallelism, o.Ended()
	if _, err := o.Redistribute(n.Parallelism); err != nil {
		f.Finding = refuse(err)
	}
	f.States = append(f.States, states(o, n.States, c.allow)...)
	if o.Coordinator != nil {
		f.States = append(f.States, c.enumerator(n))
	}
	f.Verdict = gravest(f)
	return f
}

// enumerator is the finding of the state of an enumerator. Its bytes are the enumerator's own: it reads them itself.
func (c *checker) enumerator(n *Operator) StateFit {
	f := StateFit{Kind: "enumerator", Finding: Finding{Verdict: Same}}
	switch {
	case n.Source:
	case c.allow:
		f.Finding = Finding{Verdict: Dropped, Why: "the operator is no source any more"}
	default:
		f.Finding = refuse(errors.New("the state of an enumerator is stored, but the operator is no source any more; give it a new UID, or allow " +
			"non-restored state (-n) to drop it"))
	}
	return f
}

// gravest is the verdict of an operator with its states: what is added to it, or gone, makes it another too.
func gravest(f OperatorFit) Verdict {
	worst := f.Verdict
	for i := range f.States {
		switch v := f.States[i].Verdict; {
		case v == Refused || worst == Refused:
			worst = Refused
		case v != Same:
			worst = Migrate
		}
	}
	return worst
}

// others are the findings of the operators that only the snapshot has.
func (c *checker) others() {
	for i := range c.snapshot.Operators {
		o := &c.snapshot.Operators[i]
		if c.program.operator(o.UID) != nil {
			continue
		}
		f := OperatorFit{UID: o.UID, Name: o.Name, StoredParallelism: o.Parallelism, Ended: o.Ended(), Finding: Finding{Verdict: Dropped}, States: []StateFit{}}
		if !o.HasOwnState() {
			f.Why = "it is not in the program any more, and had no state"
			c.report.Operators = append(c.report.Operators, f)
			continue
		}
		f.Nearest = c.program.nearest(o, c.snapshot)
		for _, s := range states(o, nil, true) {
			s.Why = ""
			f.States = append(f.States, s)
		}
		if o.Coordinator != nil {
			f.States = append(f.States, StateFit{Kind: "enumerator", Finding: Finding{Verdict: Dropped}})
		}
		f.Why = "it has state, but is not in the program any more"
		if !c.allow {
			f.Finding = refuse(&UnmatchedError{What: fmt.Sprintf("%v has state (%s)", o, o.Inventory()), Hint: cmp.Or(hint(f.Nearest), c.aliasHint(o.UID))})
		}
		c.report.Operators = append(c.report.Operators, f)
	}
}

// aliasHint says what to do for an operator that was renamed, where nobody can say which that is.
func (c *checker) aliasHint(old string) string {
	var uids []string
	for _, o := range c.program.Operators {
		if !o.Placed {
			uids = append(uids, o.ID)
		}
	}
	slices.Sort(uids)
	return fmt.Sprintf("the program's UIDs are: %s; if one of them is its new one, write UID(\"new\", %q) there", strings.Join(uids, ", "), old)
}

// UnmatchedError says that a snapshot has something that the program has no place for.
type UnmatchedError struct {
	What string
	Hint string // what to do if it is to be kept
}

func (e *UnmatchedError) Error() string {
	return fmt.Sprintf("%s that the program has no place for: %s; to drop it, allow it with -n, --allowNonRestoredState "+
		"(execution.state-recovery.ignore-unclaimed-state: true)", e.What, e.Hint)
}

// Problem is the error without its What.
func (e *UnmatchedError) Problem() string {
	return fmt.Sprintf("the program has no place for it: %s; to drop it: -n", e.Hint)
}

// NonRecoverable says that no restart changes it.
func (e *UnmatchedError) NonRecoverable() bool { return true }

// edges are the findings of the records in flight.
func (c *checker) edges() {
	for _, e := range c.match.Edges {
		f := edgeFit(e.Edge, e.Records)
		f.Stored, f.Declared = describe(e.Written), describe(e.Record)
		f.Finding = c.records(e)
		c.report.Edges = append(c.report.Edges, f)
	}
	for _, e := range c.match.LostEdges {
		f := edgeFit(e.Edge, e.Records)
		f.Finding = Finding{Verdict: Dropped, Why: e.String()}
		if !c.allow {
			f.Finding = refuse(&UnmatchedError{What: "there are " + e.String(), Hint: c.edgeHint(e)})
		}
		c.report.Edges = append(c.report.Edges, f)
	}
}

func edgeFit(e snapshot.Edge, records int64) EdgeFit {
	return EdgeFit{From: e.From, To: e.To, Input: e.Input, Tag: e.Tag, Twin: e.Twin, Records: records}
}

// records is the finding of records in flight on an edge that is there.
func (c *checker) records(e *snapshot.MatchedEdge) Finding {
	if e.Record == "" {
		return unreadable(e.Edge, errNoSchema)
	}
	changes, err := codec.Compare(e.Written, e.Record)
	if err != nil {
		return unreadable(e.Edge, err)
	}
	if err := c.toEnded(e); err != nil {
		return refuse(err)
	}
	return judged(changes, nil)
}

func unreadable(e snapshot.Edge, why error) Finding {
	return refuse(fmt.Errorf("the records in flight on the edge %v cannot be read as what they are now: %w; "+
		"or restore from a savepoint, which has no records in flight", e, why))
}

var errNoSchema = errors.New("they were of a type with a schema, and have none now; give the type back what made it one, for example exported fields")

// toEnded refuses records in flight to a subtask that had ended.
func (c *checker) toEnded(e *snapshot.MatchedEdge) error {
	n, o := c.program.operator(e.To), c.match.Operators[e.To]
	if n == nil || o == nil || o.Ended() == "" {
		return nil
	}
	given, err := o.Redistribute(n.Parallelism)
	if err != nil {
		return nil // said of the operator
	}
	for subtask := range n.Parallelism {
		if len(e.Assign(n.Parallelism, subtask)) > 0 && given.Assign(subtask).Ended {
			return fmt.Errorf("records in flight on the edge %v would go to subtask %d of %q, which had ended: restore the program that they were "+
				"in flight in, or restore from a savepoint: it has none", e.Edge, subtask, n.Name)
		}
	}
	return nil
}

// edgeHint says what to do about an edge that is gone.
func (c *checker) edgeHint(e snapshot.LostEdge) string {
	hints := []string{"restore the program that the records were in flight in, or restore from a savepoint: it has none"}
	for _, end := range []string{e.From, e.To} {
		if c.program.operator(end) != nil || e.Placed {
			continue
		}
		i := slices.IndexFunc(c.snapshot.Operators, func(o snapshot.Operator) bool { return o.UID == end })
		if i < 0 || c.snapshot.Operators[i].HasOwnState() { // then it is said of the operator
			continue
		}
		if h := hint(c.program.nearest(&c.snapshot.Operators[i], c.snapshot)); h != "" {
			hints = append(hints, fmt.Sprintf("of operator %q: %s", end, h))
		}
	}
	return strings.Join(hints, "; ")
}

// hooks are the findings of the master hooks.
func (c *checker) hooks() {
	for _, id := range c.program.Hooks {
		f := HookFit{ID: id, Finding: Finding{Verdict: New}}
		if c.match.Hooks[id] != nil {
			f.Verdict = Same
		}
		c.report.Hooks = append(c.report.Hooks, f)
	}
	for _, h := range c.match.LostHooks {
		f := HookFit{ID: h.ID, Finding: Finding{Verdict: Dropped, Why: "it has state, but is not in the program any more"}}
		if !c.allow {
			f.Finding = refuse(&UnmatchedError{What: fmt.Sprintf("master hook %q has state", h.ID), Hint: c.hookHint()})
		}
		c.report.Hooks = append(c.report.Hooks, f)
	}
}

// hookHint says what to do for a hook that was renamed.
func (c *checker) hookHint() string {
	if len(c.program.Hooks) == 0 {
		return "it has no hooks; add it again, by Env.Hook"
	}
	return fmt.Sprintf("its hooks are: %s; if one of them is it, give it its old ID back", strings.Join(c.program.Hooks, ", "))
}
