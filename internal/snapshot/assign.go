package snapshot

import (
	"fmt"
	"maps"
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
	// that the subtask owns.
	Keyed []KeyedHandle
	// Lists are in the order of their names, then of the old subtasks; Offsets are the elements to take. A broadcast list has
	// at most one entry here.
	Lists []ListHandle
	// Rows are the states of a canonical savepoint, in place of Keyed and Lists: those by key, then the lists, each in the order of their
	// names, then of the old subtasks.
	Rows []RowsPart
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

// Assign is what the subtask gets of op when the operator runs at the given parallelism. A nil op is an operator that the
// checkpoint does not have: it begins empty, without a watermark.
func Assign(op *Operator, parallelism, subtask int) (Restored, error) {
	if op == nil {
		return Restored{Watermark: base.NoTime, PendingWatermark: base.NoTime}, nil
	}
	if err := op.assignable(parallelism, subtask); err != nil {
		return Restored{}, err
	}
	r := Restored{Rescaled: parallelism != op.Parallelism}
	if op.Finished {
		r.Ended, r.Watermark, r.PendingWatermark = true, base.EndOfTime, base.NoTime
		return r, nil
	}
	r.Ended = op.ended(subtask, r.Rescaled)
	r.Keyed = op.assignKeyed(base.RangeOf(subtask, parallelism))
	r.Lists = op.assignLists(parallelism, subtask)
	r.Rows = op.assignRows(parallelism, subtask)
	r.Watermark, r.PendingWatermark = op.assignWatermark(parallelism, subtask)
	return r, nil
}

func (o *Operator) assignable(parallelism, subtask int) error {
	switch {
	case parallelism < 1 || parallelism > base.KeyGroups:
		return fmt.Errorf("snapshot: %v cannot run at parallelism %d: it must be between 1 and %d", o, parallelism, base.KeyGroups)
	case subtask < 0 || subtask >= parallelism:
		return fmt.Errorf("snapshot: %v at parallelism %d has no subtask %d", o, parallelism, subtask)
	case !o.Finished && len(o.Subtasks) != o.Parallelism:
		return fmt.Errorf("snapshot: %v has %d of %d subtasks", o, len(o.Subtasks), o.Parallelism)
	}
	if ended := o.countEnded(); parallelism != o.Parallelism && o.EndOfInput && ended > 0 && ended < len(o.Subtasks) {
		return &PartlyEndedError{Operator: o.String(), Ended: ended, Parallelism: o.Parallelism, Restore: parallelism}
	}
	return nil
}

func (o *Operator) countEnded() (n int) {
	for i := range o.Subtasks {
		if o.Subtasks[i].Ended {
			n++
		}
	}
	return n
}

// ended is the flag of one old subtask, or of all of them: what is merged of some that ended and some that did not goes on.
func (o *Operator) ended(subtask int, rescaled bool) bool {
	if !rescaled {
		return o.Subtasks[subtask].Ended
	}
	return o.countEnded() == len(o.Subtasks)
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
				handles = append(handles, KeyedHandle{Range: both, Handle: h.Handle})
			}
		}
	}
	return handles
}

func (o *Operator) assignLists(parallelism, subtask int) []ListHandle {
	return share(o, parallelism, subtask, func(s *Subtask) []ListHandle { return s.Lists })
}

// assignRows gives out the states of a canonical savepoint as native ones are: those by key by range, the others as lists.
func (o *Operator) assignRows(parallelism, subtask int) []RowsPart {
	keyed := o.assignKeyedRows(base.RangeOf(subtask, parallelism))
	return append(keyed, share(o, parallelism, subtask, (*Subtask).rowLists)...)
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

// rowLists are the lists of a canonical savepoint.
func (s *Subtask) rowLists() (lists []RowsPart) {
	for _, r := range s.Rows {
		if !r.Keyed {
			lists = append(lists, RowsPart{RowsHandle: r, To: r.Count})
		}
	}
	return lists
}

// dealt is a list of one old subtask, in either format.
type dealt[L any] interface {
	list() (name string, mode Mode, count int64)
	// cut is the elements from one on, before another.
	cut(from, to int64) L
}

func (l ListHandle) list() (string, Mode, int64) { return l.Name, l.Mode, int64(len(l.Offsets)) }

func (l ListHandle) cut(from, to int64) ListHandle {
	l.Offsets = l.Offsets[from:to]
	return l
}

func (p RowsPart) list() (string, Mode, int64) { return p.Name, p.Mode, p.Count }

func (p RowsPart) cut(from, to int64) RowsPart {
	p.From, p.To = from, to
	return p
}

// share is what the subtask gets of the operator's lists.
func share[L dealt[L]](o *Operator, parallelism, subtask int, listsOf func(*Subtask) []L) (lists []L) {
	byName, modes := map[string][]L{}, map[string]Mode{}
	for i := range o.Subtasks {
		for _, l := range listsOf(&o.Subtasks[i]) {
			name, mode, _ := l.list()
			byName[name], modes[name] = append(byName[name], l), mode
		}
	}
	var own []L
	if parallelism == o.Parallelism {
		own = listsOf(&o.Subtasks[subtask])
	}
	start := 0
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all, mine := byName[name], named(own, name)
		switch {
		case modes[name] == Union:
			lists = append(lists, all...)
		case parallelism == o.Parallelism && (modes[name] == Split || len(mine) > 0):
			lists = append(lists, mine...)
		case modes[name] == Broadcast:
			lists = append(lists, all[subtask%len(all)])
		default:
			var run []L
			run, start = deal(all, parallelism, subtask, start)
			lists = append(lists, run...)
		}
	}
	return lists
}

// named is the list of that name, if it is there.
func named[L dealt[L]](lists []L, name string) []L {
	i := slices.IndexFunc(lists, func(l L) bool { n, _, _ := l.list(); return n == name })
	if i < 0 {
		return nil
	}
	return lists[i : i+1]
}

// deal is the subtask's run of a split list's elements. Subtask start gets the first run, and so on around; next is the first
// subtask that got no odd element, where the next list starts.
func deal[L dealt[L]](all []L, parallelism, subtask, start int) (run []L, next int) {
	total := int64(0)
	for _, l := range all {
		_, _, n := l.list()
		total += n
	}
	each, odd := total/int64(parallelism), int(total%int64(parallelism))
	turn := (subtask - start + parallelism) % parallelism
	first := int64(turn)*each + int64(min(turn, odd))
	end := first + each
	if turn < odd {
		end++
	}
	for _, l := range all {
		_, _, n := l.list()
		if from, to := max(first, 0), min(end, n); from < to {
			run = append(run, l.cut(from, to))
		}
		first, end = first-n, end-n
	}
	return run, (start + odd) % parallelism
}

func (o *Operator) assignWatermark(parallelism, subtask int) (now, pending base.EventTime) {
	old := o.Subtasks
	switch {
	case parallelism == o.Parallelism:
		old = o.Subtasks[subtask : subtask+1]
	case o.keyed():
		old = o.owners(base.RangeOf(subtask, parallelism))
	}
	now, target := base.EndOfTime, base.EndOfTime
	for i := range old {
		now = min(now, old[i].Watermark)
		target = min(target, max(old[i].Watermark, old[i].PendingWatermark))
	}
	if target > now {
		return now, target
	}
	return now, base.NoTime
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
