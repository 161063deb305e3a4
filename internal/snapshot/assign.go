package snapshot

import (
	"fmt"
	"maps"
	"slices"

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
	// Rows are in the order of their names, then of the old subtasks.
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

// lists are all handles of each list, in the order of the old subtasks.
func (o *Operator) lists() map[string][]ListHandle {
	byName := map[string][]ListHandle{}
	for i := range o.Subtasks {
		for _, l := range o.Subtasks[i].Lists {
			byName[l.Name] = append(byName[l.Name], l)
		}
	}
	return byName
}

func (o *Operator) assignLists(parallelism, subtask int) (lists []ListHandle) {
	byName := o.lists()
	start := 0
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all := byName[name]
		switch mode := all[0].Mode; {
		case mode == Union:
			lists = append(lists, all...)
		case mode == Broadcast:
			lists = append(lists, o.broadcastCopy(name, all, parallelism, subtask))
		case parallelism == o.Parallelism:
			lists = append(lists, named(o.Subtasks[subtask].Lists, name)...)
		default:
			var run []ListHandle
			run, start = deal(all, parallelism, subtask, start)
			lists = append(lists, run...)
		}
	}
	return lists
}

// broadcastCopy is the subtask's own copy when every old subtask reported one and the parallelism is the old one; else the
// copies go round.
func (o *Operator) broadcastCopy(name string, copies []ListHandle, parallelism, subtask int) ListHandle {
	if parallelism == o.Parallelism {
		if own := named(o.Subtasks[subtask].Lists, name); len(own) > 0 {
			return own[0]
		}
	}
	return copies[subtask%len(copies)]
}

// named are the lists of that name: one or none.
func named(lists []ListHandle, name string) []ListHandle {
	for i := range lists {
		if lists[i].Name == name {
			return lists[i : i+1]
		}
	}
	return nil
}

// deal is the subtask's run of a split list's elements. Subtask start gets the first run, and so on around; next is the first
// subtask that got no odd element, where the next list starts.
func deal(all []ListHandle, parallelism, subtask, start int) (run []ListHandle, next int) {
	total := 0
	for i := range all {
		total += len(all[i].Offsets)
	}
	each, odd := total/parallelism, total%parallelism
	turn := (subtask - start + parallelism) % parallelism
	first := turn*each + min(turn, odd)
	n := each
	if turn < odd {
		n++
	}
	return cut(all, first, n), (start + odd) % parallelism
}

// cut is n elements from the element numbered first, counted over all handles.
func cut(all []ListHandle, first, n int) (run []ListHandle) {
	for _, l := range all {
		if n == 0 {
			break
		}
		if first >= len(l.Offsets) {
			first -= len(l.Offsets)
			continue
		}
		l.Offsets = l.Offsets[first:min(first+n, len(l.Offsets))]
		n -= len(l.Offsets)
		first = 0
		run = append(run, l)
	}
	return run
}

// assignRows deals the states of a canonical savepoint as the same ones of a native one are dealt.
func (o *Operator) assignRows(parallelism, subtask int) (parts []RowsPart) {
	byName := map[string][]RowsPart{}
	for i := range o.Subtasks {
		for _, r := range o.Subtasks[i].Rows {
			byName[r.Name] = append(byName[r.Name], RowsPart{RowsHandle: r, To: r.Count})
		}
	}
	start := 0
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all := byName[name]
		switch {
		case all[0].Keyed:
			parts = append(parts, withinRange(all, base.RangeOf(subtask, parallelism))...)
		case all[0].Mode == Union:
			parts = append(parts, all...)
		case all[0].Mode == Broadcast:
			parts = append(parts, all[subtask%len(all)])
		case parallelism == o.Parallelism:
			parts = append(parts, rowsNamed(o.Subtasks[subtask].Rows, name)...)
		default:
			var run []RowsPart
			run, start = dealRows(all, parallelism, subtask, start)
			parts = append(parts, run...)
		}
	}
	return parts
}

func withinRange(all []RowsPart, own base.KeyGroupRange) (parts []RowsPart) {
	for _, p := range all {
		if both, ok := p.Range.Intersect(own); ok {
			p.Range = both
			parts = append(parts, p)
		}
	}
	return parts
}

func rowsNamed(rows []RowsHandle, name string) (parts []RowsPart) {
	for _, r := range rows {
		if r.Name == name {
			parts = append(parts, RowsPart{RowsHandle: r, To: r.Count})
		}
	}
	return parts
}

// dealRows is deal for rows.
func dealRows(all []RowsPart, parallelism, subtask, start int) (run []RowsPart, next int) {
	total := int64(0)
	for _, p := range all {
		total += p.Count
	}
	each, odd := total/int64(parallelism), int(total%int64(parallelism))
	turn := (subtask - start + parallelism) % parallelism
	first := int64(turn)*each + int64(min(turn, odd))
	last := first + each
	if turn < odd {
		last++
	}
	at := int64(0)
	for _, p := range all {
		from, to := max(first-at, 0), min(last-at, p.Count)
		if at += p.Count; from < to {
			p.From, p.To = from, to
			run = append(run, p)
		}
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
