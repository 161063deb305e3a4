package fit

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/weirstream/weir/internal/snapshot"
)

// gravity orders verdicts for people: what matters most comes first.
var gravity = []Verdict{Refused, Dropped, Migrate, New, Same}

// row is one line of the table.
type row struct {
	verdict        Verdict
	what, part, is string
}

// WriteText writes the report for people: a line for each thing that something happens to, what matters most first, then a line for each
// operator that is as it was, and a sentence.
func (r *Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, line := range r.rows() {
		text := strings.TrimRight(strings.Join([]string{string(line.verdict), line.what, line.part, line.is}, "\t"), "\t")
		if _, err := fmt.Fprintln(t, text); err != nil {
			return err
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, r.Conclusion())
	return err
}

// rows are the lines of the table, in order.
func (r *Report) rows() []row {
	var all []row
	for _, f := range r.Job {
		all = append(all, row{f.Verdict, "job", "", f.Why})
	}
	for i := range r.Operators {
		all = append(all, r.Operators[i].rows()...)
	}
	for i := range r.Edges {
		e := &r.Edges[i]
		all = append(all, row{e.Verdict, fmt.Sprintf("edge %v", e.edge()), fmt.Sprintf("%d records", e.Records), e.text()})
	}
	for _, h := range r.Hooks {
		all = append(all, row{h.Verdict, "hook " + h.ID, "", h.text()})
	}
	slices.SortStableFunc(all, func(a, b row) int {
		return cmp.Compare(slices.Index(gravity, a.verdict), slices.Index(gravity, b.verdict))
	})
	return all
}

// rows are a line for what happens to the operator, or for all of it that stays, and one for each state that something happens to.
func (o *OperatorFit) rows() (all []row) {
	var same []string
	for i := range o.States {
		s := &o.States[i]
		switch {
		case o.Verdict == New, o.Why != "": // said of the operator
			same = append(same, s.label())
		case s.Verdict == Same && s.Was == "":
			same = append(same, s.label())
		default:
			all = append(all, row{s.Verdict, o.UID, s.label(), s.text()})
		}
	}
	verdict := o.Verdict
	if verdict == Migrate || verdict == Refused && o.Why == "" {
		verdict = Same
	}
	if verdict == Same && len(same) == 0 && len(all) > 0 && o.text() == "" {
		return all
	}
	return append(all, row{verdict, o.UID, strings.Join(same, ", "), o.text()})
}

// text is what else there is to say of the operator.
func (o *OperatorFit) text() string {
	var notes []string
	if o.Was != "" {
		notes = append(notes, fmt.Sprintf("was %s", o.Was))
	}
	if o.Parallelism > 0 && o.StoredParallelism > 0 && o.Parallelism != o.StoredParallelism {
		notes = append(notes, fmt.Sprintf("parallelism %d -> %d", o.StoredParallelism, o.Parallelism))
	}
	switch o.Ended {
	case "all":
		notes = append(notes, "its input had ended")
	case "some":
		notes = append(notes, "the input of some subtasks had ended")
	}
	if o.Why != "" {
		notes = append(notes, o.Why)
	}
	return strings.Join(notes, ", ")
}

// text is what else there is to say of the state.
func (s *StateFit) text() string {
	var notes []string
	if s.Was != "" {
		notes = append(notes, fmt.Sprintf("was %s", s.Was))
	}
	if s.Verdict == New && s.Declared != "" {
		notes = append(notes, s.Declared)
	}
	if text := s.Finding.text(); text != "" {
		notes = append(notes, text)
	}
	return strings.Join(notes, ", ")
}

// text is the changes, or why.
func (f *Finding) text() string {
	if f.Why != "" {
		return f.Why
	}
	return strings.Join(f.Changes, ", ")
}

// Changes are a line for each thing that is not as it was.
func (r *Report) Changes() (all []string) {
	for _, line := range r.rows() {
		if line.verdict != Same || line.is != "" {
			text := strings.Join(strings.Fields(fmt.Sprintf("%s: %s %s", line.verdict, line.what, line.part)), " ")
			if line.is != "" {
				text += ": " + line.is
			}
			all = append(all, text)
		}
	}
	return all
}

// Conclusion is the report in one sentence.
func (r *Report) Conclusion() string {
	counts := map[Verdict]int{}
	for _, line := range r.rows() {
		counts[line.verdict]++
	}
	kind := "checkpoint"
	if snapshot.Kind(r.Snapshot.Kind).IsSavepoint() {
		kind = "savepoint"
	}
	what := fmt.Sprintf("%s %d of job %q", kind, r.Snapshot.ID, cmp.Or(r.Snapshot.JobName, r.Snapshot.Job))
	switch {
	case !r.Fits:
		return fmt.Sprintf("The job cannot start from %s: %d refused.", what, counts[Refused])
	case snapshot.Kind(r.Snapshot.Kind) == snapshot.Drain:
		return fmt.Sprintf("The job can start from %s, by which it was drained: what is left to commit is committed, and it is FINISHED.", what)
	case counts[Dropped] > 0 && r.AllowNonRestored:
		return fmt.Sprintf("The job can start from %s: it fits, and what is dropped is gone with the first checkpoint.", what)
	case counts[Migrate] > 0:
		return fmt.Sprintf("The job can start from %s: it fits, and what migrates does so while it starts.", what)
	}
	return fmt.Sprintf("The job can start from %s: it fits.", what)
}
