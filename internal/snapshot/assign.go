package snapshot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/base"
)

// Redistribution: which part of an operator's old state each new subtask gets (Flink's StateAssignmentOperation and
// RoundRobinOperatorStateRepartitioner).
//
//	keyed       Key groups are ranges, and every handle lies within its old owner's range, so a new subtask gets the handles
//	            of the old subtasks whose ranges meet its own, each cut to the common part.
//
//	                old, 2   |0 ............ 16383|16384 ............ 32767|
//	                new, 3   |0 .... 10922|10923 .... 21845|21846 .... 32767|
//	                          A            A   and   B      B
//
//	split       All elements, in the order of the old subtasks, are dealt in contiguous runs: total/new each, and one more
//	            for as many as the remainder says. The first to get one more is not always subtask 0: it goes on from list to
//	            list (in the order of the names), or else subtask 0 would get the odd element of every list.
//	union       Everyone gets all of it, at the same parallelism too.
//	broadcast   Each old subtask that reported the list has a copy; new subtask i takes copy i mod copies.
//
// Rows of a canonical savepoint go the same ways: those by key by range, those of a list by the numbers of the rows.
//
// At the same parallelism split lists stay where they were, and the ended flags are those of each old subtask.
//
// The watermark of a new subtask is the least of the old subtasks that owned part of its key groups (of all, when there is no
// keyed state): a later one would make records late that the old job would have taken. A pending watermark is the target that
// a subtask was still firing up to, so the new target is the least target.

// Restored is what one subtask of an operator gets back.
type Restored struct {
	// Keyed are handles to read from, each with the range of key groups to take from it: the part of the handle's own range
	// that the subtask owns. A handle goes with all files that it refers to, whatever part of the range they have.
	Keyed []KeyedHandle
	// Lists are in the order of their names, then of the old subtasks; Offsets are the elements to take. A broadcast list has
	// at most one entry here.
	Lists []ListHandle
	// Rows are the states of a canonical savepoint, in place of Keyed and Lists: those by key, then the lists, each in the order of their
	// names, then of the old subtasks.
	Rows []RowsPart
	// States are the names of all states that the operator had, also of those of which nothing falls to the subtask.
	States []string
	// Ended says that the subtask's data had ended: it neither reads nor fires nor ends again.
	Ended bool
	// Watermark is where every input channel starts from; PendingWatermark, when it is not base.NoTime, is later and still to
	// be fired up to.
	Watermark, PendingWatermark base.EventTime
	// Rescaled says that the parallelism is not the old one.
	Rescaled bool
}

// RowsPart is what a new subtask reads of a RowsHandle: of keyed rows those of the key groups in Range; of a list the rows from
// From on, before To.
type RowsPart struct {
	RowsHandle
	From, To int64
}

// PartlyEndedError says that an operator of which only some subtasks had ended cannot be restored at another parallelism:
// those subtasks did what they do at the end of their input, and their share of the state cannot be told from the others'.
type PartlyEndedError struct {
	Operator             string
	Ended                int
	Parallelism, Restore int
}

func (e *PartlyEndedError) Error() string {
	return fmt.Sprintf("snapshot: %s cannot be restored at parallelism %d: %d of its %d subtasks had ended and run their "+
		"end-of-input code; restore it at parallelism %d, or from a checkpoint taken before the first or after the last of them ended",
		e.Operator, e.Restore, e.Ended, e.Parallelism, e.Parallelism)
}

// Redistribution gives an operator's old state out to its subtasks at one parallelism. What is the same for all of them is found once.
type Redistribution struct {
	operator    *Operator
	parallelism int
	lists       []pile[ListHandle]
	rowLists    []pile[RowsPart]
	keyed       bool
	allEnded    bool
	least       progress // of all old subtasks
}

// Redistribute prepares to give the operator's state out at the given parallelism.
func (o *Operator) Redistribute(parallelism int) (*Redistribution, error) {
	if err := o.redistributable(parallelism); err != nil {
		return nil, err
	}
	r := &Redistribution{operator: o, parallelism: parallelism, keyed: o.keyed(), allEnded: o.countEnded() == len(o.Subtasks), least: leastOf(o.Subtasks)}
	r.lists = gather(o, parallelism, func(s *Subtask) []ListHandle { return s.Lists })
	r.rowLists = gather(o, parallelism, (*Subtask).rowLists)
	return r, nil
}

func (o *Operator) redistributable(parallelism int) error {
	switch {
	case parallelism < 1 || parallelism > base.KeyGroups:
		return fmt.Errorf("snapshot: %v cannot run at parallelism %d: it must be between 1 and %d", o, parallelism, base.KeyGroups)
	case !o.Finished && len(o.Subtasks) != o.Parallelism:
		return fmt.Errorf("snapshot: %v has %d of %d subtasks", o, len(o.Subtasks), o.Parallelism)
	}
	if ended := o.countEnded(); parallelism != o.Parallelism && o.EndOfInput && ended > 0 && ended < len(o.Subtasks) {
		return &PartlyEndedError{Operator: o.String(), Ended: ended, Parallelism: o.Parallelism, Restore: parallelism}
	}
	return nil
}

// Assign is what a new subtask of the operator gets.
func (r *Redistribution) Assign(subtask int) Restored {
	if r.operator.Finished {
		return Restored{Rescaled: r.rescaled(), Ended: true, Watermark: base.EndOfTime, PendingWatermark: base.NoTime}
	}
	own := base.RangeOf(subtask, r.parallelism)
	a := Restored{Rescaled: r.rescaled(), Ended: r.ended(subtask), Keyed: r.operator.assignKeyed(own), Rows: r.operator.assignKeyedRows(own)}
	for i := range r.lists {
		a.Lists = append(a.Lists, r.lists[i].share(r.parallelism, subtask)...)
	}
	for i := range r.rowLists {
		a.Rows = append(a.Rows, r.rowLists[i].share(r.parallelism, subtask)...)
	}
	for _, s := range r.operator.Schemas {
		a.States = append(a.States, s.Name)
	}
	a.Watermark, a.PendingWatermark = r.progress(subtask).watermarks()
	return a
}

// Assign is what one subtask gets of op at the given parallelism. A nil op is an operator that the checkpoint does not have: it begins
// empty, without a watermark. Who assigns to all subtasks asks a Redistribution.
func Assign(op *Operator, parallelism, subtask int) (Restored, error) {
	if op == nil {
		return Restored{Watermark: base.NoTime, PendingWatermark: base.NoTime}, nil
	}
	r, err := op.Redistribute(parallelism)
	if err != nil {
		return Restored{}, err
	}
	if subtask < 0 || subtask >= parallelism {
		return Restored{}, fmt.Errorf("snapshot: %v at parallelism %d has no subtask %d", op, parallelism, subtask)
	}
	return r.Assign(subtask), nil
}

func (r *Redistribution) rescaled() bool { return r.parallelism != r.operator.Parallelism }

// ended is the flag of one old subtask, or of all of them: what is merged of some that ended and some that did not goes on.
func (r *Redistribution) ended(subtask int) bool {
	if r.rescaled() {
		return r.allEnded
	}
	return r.operator.Subtasks[subtask].Ended
}

func (o *Operator) countEnded() (n int) {
	for i := range o.Subtasks {
		if o.Subtasks[i].Ended {
			n++
		}
	}
	return n
}

// owners are the old subtasks, first to last, that owned part of r.
func (o *Operator) owners(r base.KeyGroupRange) []Subtask {
	least, largest := r.Hashes()
	return o.Subtasks[base.OwnerOf(least, o.Parallelism) : base.OwnerOf(largest, o.Parallelism)+1]
}

func (o *Operator) assignKeyed(own base.KeyGroupRange) (handles []KeyedHandle) {
	old := o.owners(own)
	for i := range old {
		for _, h := range old[i].Keyed {
			if both, ok := h.Range.Intersect(own); ok {
				handles = append(handles, KeyedHandle{Range: both, Handle: h.Handle, Refers: h.Refers})
			}
		}
	}
	return handles
}

func (o *Operator) assignKeyedRows(own base.KeyGroupRange) (parts []RowsPart) {
	old := o.owners(own)
	for i := range old {
		for _, r := range old[i].Rows {
			if both, ok := r.Range.Intersect(own); ok && r.Keyed {
				r.Range = both
				parts = append(parts, RowsPart{RowsHandle: r, To: r.Count})
			}
		}
	}
	slices.SortStableFunc(parts, func(a, b RowsPart) int { return strings.Compare(a.Name, b.Name) })
	return parts
}

// progress is how far event time had come, and how far it was to come by timers that were still firing.
type progress struct{ now, target base.EventTime }

func leastOf(subtasks []Subtask) progress {
	p := progress{base.EndOfTime, base.EndOfTime}
	for i := range subtasks {
		s := &subtasks[i]
		p.now = min(p.now, s.Watermark)
		p.target = min(p.target, max(s.Watermark, s.PendingWatermark))
	}
	return p
}

func (p progress) watermarks() (now, pending base.EventTime) {
	if p.target > p.now {
		return p.now, p.target
	}
	return p.now, base.NoTime
}

func (r *Redistribution) progress(subtask int) progress {
	switch {
	case !r.rescaled():
		return leastOf(r.operator.Subtasks[subtask : subtask+1])
	case r.keyed:
		return leastOf(r.operator.owners(base.RangeOf(subtask, r.parallelism)))
	}
	return r.least
}

// keyed reports whether the operator's state is keyed, be it empty in this checkpoint.
func (o *Operator) keyed() bool {
	for i := range o.Schemas {
		if o.Schemas[i].Key != "" {
			return true
		}
	}
	return slices.ContainsFunc(o.Subtasks, func(s Subtask) bool {
		return len(s.Keyed) > 0 || slices.ContainsFunc(s.Rows, func(r RowsHandle) bool { return r.Keyed })
	})
}
