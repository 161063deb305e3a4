package snapshot

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/base"
)

// randomOperator has keyed state and three lists on some of its subtasks.
func randomOperator(rng *rand.Rand, parallelism int) *Operator {
	o := &Operator{UID: "op", Name: "op", Parallelism: parallelism, Schemas: []StateSchema{{Name: "v", Kind: "value", Key: `"int"`}}}
	for i := range parallelism {
		s := Subtask{Index: i, Watermark: base.EventTime(rng.IntN(50)), PendingWatermark: base.NoTime}
		if rng.IntN(4) > 0 {
			own := base.RangeOf(i, parallelism)
			middle := own.First + rng.IntN(own.Last-own.First+1)
			s.Keyed = append(s.Keyed, KeyedHandle{Range: base.KeyGroupRange{First: own.First, Last: middle}, Handle: file("k", i)})
			if middle < own.Last {
				s.Keyed = append(s.Keyed, KeyedHandle{Range: base.KeyGroupRange{First: middle + 1, Last: own.Last}, Handle: file("l", i)})
			}
		}
		for mode, name := range []string{"split", "union", "broadcast"} {
			if rng.IntN(3) > 0 {
				s.Lists = append(s.Lists, list(name, Mode(mode), i, rng.IntN(5)))
			}
		}
		o.Subtasks = append(o.Subtasks, s)
	}
	return o
}

func file(name string, subtask int) Handle {
	return Handle{File: fmt.Sprintf("%s%d", name, subtask), Size: 1000, CRC: 7}
}

// list has n elements, which are told apart by file and offset.
func list(name string, mode Mode, subtask, n int) ListHandle {
	l := ListHandle{Name: name, Mode: mode, Handle: file(name, subtask)}
	for i := range n {
		l.Offsets = append(l.Offsets, int64(10*i))
	}
	return l
}

// elements are "file@offset" of all elements of the named list.
func elements(lists []ListHandle, name string) (all []string) {
	for _, l := range lists {
		if l.Name == name {
			for _, at := range l.Offsets {
				all = append(all, fmt.Sprintf("%s@%d", l.File, at))
			}
		}
	}
	return all
}

func mustAssign(t *testing.T, o *Operator, parallelism int) []Restored {
	t.Helper()
	r, err := o.Redistribute(parallelism)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]Restored, parallelism)
	for i := range all {
		all[i] = r.Assign(i)
	}
	return all
}

// Invariant 4, for many pairs of parallelisms: nothing lost, nothing doubled, and only to its owner.
func TestRedistributionIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 400 {
		o := randomOperator(rng, 1+rng.IntN(9))
		parallelism := 1 + rng.IntN(9)
		restored := mustAssign(t, o, parallelism)
		checkKeyed(t, o, restored)
		checkElements(t, o, restored)
	}
}

func checkKeyed(t *testing.T, o *Operator, restored []Restored) {
	t.Helper()
	var want, got int
	for _, s := range o.Subtasks {
		for _, h := range s.Keyed {
			want += h.Range.Last - h.Range.First + 1
		}
	}
	seen := map[string]bool{}
	for i, r := range restored {
		own := base.RangeOf(i, len(restored))
		for _, h := range r.Keyed {
			if both, ok := h.Range.Intersect(own); !ok || both != h.Range {
				t.Fatalf("subtask %d of %d gets key groups %v", i, len(restored), h.Range)
			}
			part := fmt.Sprint(h.File, h.Range)
			if seen[part] {
				t.Fatalf("%s is given out twice", part)
			}
			seen[part] = true
			got += h.Range.Last - h.Range.First + 1
		}
	}
	if got != want {
		t.Fatalf("%d of %d key groups are given out", got, want)
	}
}

func checkElements(t *testing.T, o *Operator, restored []Restored) {
	t.Helper()
	var old []ListHandle
	for _, s := range o.Subtasks {
		old = append(old, s.Lists...)
	}
	var split []string
	union := elements(old, "union")
	for i, r := range restored {
		split = append(split, elements(r.Lists, "split")...)
		if got, want := elements(r.Lists, "union"), union; !slices.Equal(got, want) {
			t.Fatalf("subtask %d of %d has the union %v, want %v", i, len(restored), got, want)
		}
	}
	want := elements(old, "split")
	slices.Sort(want)
	slices.Sort(split)
	if !slices.Equal(split, want) {
		t.Fatalf("the split list is %v, want %v", split, want)
	}
}

// The same parallelism gives everyone its own back.
func TestAssignAtEqualParallelism(t *testing.T) {
	o := randomOperator(rand.New(rand.NewPCG(5, 6)), 4)
	o.Subtasks[2].Ended = true
	o.EndOfInput = true
	for i, r := range mustAssign(t, o, 4) {
		s := o.Subtasks[i]
		if !reflect.DeepEqual(r.Keyed, s.Keyed) || r.Watermark != s.Watermark || r.Ended != (i == 2) || r.Rescaled {
			t.Errorf("subtask %d: %+v", i, r)
		}
		if got, want := elements(r.Lists, "split"), elements(s.Lists, "split"); !slices.Equal(got, want) {
			t.Errorf("subtask %d: %v, want %v", i, got, want)
		}
	}
}

// Lists are dealt in contiguous runs, the odd ones going on from list to list (Flink: RoundRobinOperatorStateRepartitioner).
func TestSplitListsAreDealtInRuns(t *testing.T) {
	o := &Operator{UID: "op", Parallelism: 2, Subtasks: []Subtask{
		{Index: 0, Lists: []ListHandle{list("a", Split, 0, 3), list("b", Split, 0, 1)}},
		{Index: 1, Lists: []ListHandle{list("a", Split, 1, 1), list("b", Split, 1, 1)}},
	}}
	restored := mustAssign(t, o, 3)
	// Four of a over three are 2, 1, 1; the odd one went to subtask 0, so b starts at subtask 1.
	for i, want := range []string{"a0@0 a0@10 | ", "a0@20 | b0@0", "a1@0 | b1@0"} {
		got := strings.Join(elements(restored[i].Lists, "a"), " ") + " | " + strings.Join(elements(restored[i].Lists, "b"), " ")
		if got != want {
			t.Errorf("subtask %d gets %s, want %s", i, got, want)
		}
	}
}

func TestBroadcastCopiesGoRound(t *testing.T) {
	o := &Operator{UID: "op", Parallelism: 3, Subtasks: []Subtask{
		{Index: 0, Lists: []ListHandle{list("rules", Broadcast, 0, 2)}},
		{Index: 1, Ended: true, Finished: true},
		{Index: 2, Lists: []ListHandle{list("rules", Broadcast, 2, 2)}},
	}}
	for parallelism, want := range map[int][]string{3: {"rules0", "rules2", "rules2"}, 5: {"rules0", "rules2", "rules0", "rules2", "rules0"}} {
		for i, r := range mustAssign(t, o, parallelism) {
			if len(r.Lists) != 1 || r.Lists[0].File != want[i] {
				t.Errorf("subtask %d of %d gets %+v, want %s", i, parallelism, r.Lists, want[i])
			}
		}
	}
}

// Key groups without data need no handles (B067).
func TestSparseKeyGroups(t *testing.T) {
	o := &Operator{UID: "op", Parallelism: 2, Subtasks: []Subtask{
		{Index: 0, Keyed: []KeyedHandle{{Range: base.KeyGroupRange{First: 11008, Last: 11008}, Handle: file("k", 0)}}},
		{Index: 1},
	}}
	for _, parallelism := range []int{1, 2, 3, 127, base.KeyGroups} {
		restored := mustAssign(t, o, parallelism)
		for i := range parallelism {
			r := restored[i]
			if owns := base.OwnerOf(11008<<49, parallelism) == i; (len(r.Keyed) == 1) != owns {
				t.Fatalf("subtask %d of %d gets %+v", i, parallelism, r.Keyed)
			}
		}
	}
}

func TestWatermarkIsTheLeastOfTheOwners(t *testing.T) {
	subtasks := []Subtask{
		{Index: 0, Watermark: 10, PendingWatermark: 30},
		{Index: 1, Watermark: 20, PendingWatermark: base.NoTime},
		{Index: 2, Watermark: base.EndOfTime, PendingWatermark: base.NoTime, Ended: true},
	}
	keyed := []StateSchema{{Name: "v", Kind: "value", Key: `"int"`}}
	for _, c := range []struct {
		what           string
		schemas        []StateSchema
		parallelism, i int
		now, pending   base.EventTime
	}{
		{"the same subtask goes on firing", keyed, 3, 0, 10, 30},
		{"the same subtask", nil, 3, 1, 20, base.NoTime},
		{"owners 0 and 1: what one had fired, the other fires too", keyed, 2, 0, 10, 20},
		{"owners 1 and 2", keyed, 2, 1, 20, base.NoTime},
		{"not keyed: all", nil, 2, 1, 10, 20},
		{"all in one", keyed, 1, 0, 10, 20},
	} {
		o := &Operator{UID: "op", Parallelism: 3, Schemas: c.schemas, Subtasks: subtasks}
		r, err := Assign(o, c.parallelism, c.i)
		if err != nil || r.Watermark != c.now || r.PendingWatermark != c.pending {
			t.Errorf("%s: %d, pending %d, %v; want %d, pending %d", c.what, r.Watermark, r.PendingWatermark, err, c.now, c.pending)
		}
	}
}

func TestPartlyEndedAtAnotherParallelism(t *testing.T) {
	o := &Operator{UID: "total", Parallelism: 2, Subtasks: []Subtask{{Index: 0, Ended: true}, {Index: 1}}}
	for i, r := range mustAssign(t, o, 3) {
		if r.Ended || !r.Rescaled {
			t.Errorf("subtask %d: %+v", i, r)
		}
	}
	o.EndOfInput = true
	_, err := Assign(o, 3, 0)
	var partly *PartlyEndedError
	if !errors.As(err, &partly) || !strings.Contains(err.Error(), `operator "total" cannot be restored at parallelism 3: 1 of its 2 subtasks`) {
		t.Errorf("%v", err)
	}
	o.Subtasks[1].Ended = true
	for i, r := range mustAssign(t, o, 3) {
		if !r.Ended {
			t.Errorf("subtask %d of an operator that ended goes on", i)
		}
	}
}

func TestFinishedOperatorIsRestoredAsEnded(t *testing.T) {
	o := &Operator{UID: "op", Parallelism: 2, Finished: true}
	for _, r := range append(mustAssign(t, o, 2), mustAssign(t, o, 5)...) {
		if !r.Ended || r.Watermark != base.EndOfTime || len(r.Keyed)+len(r.Lists) > 0 {
			t.Errorf("%+v", r)
		}
	}
}

func TestNewOperatorBeginsEmpty(t *testing.T) {
	r, err := Assign(nil, 2, 1)
	want := Restored{Watermark: base.NoTime, PendingWatermark: base.NoTime}
	if err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("%+v, %v", r, err)
	}
}

// Union state stays as large as it is when each subtask saves only its own elements again (B071).
func TestUnionStateOfTrimmingSubtasksDoesNotGrow(t *testing.T) {
	o := &Operator{UID: "op", Parallelism: 4, Subtasks: make([]Subtask, 4)}
	for i := range o.Subtasks {
		o.Subtasks[i] = Subtask{Index: i, Lists: []ListHandle{list("u", Union, i, 1)}}
	}
	for range 20 {
		for i, r := range mustAssign(t, o, 4) {
			if n := len(elements(r.Lists, "u")); n != 4 {
				t.Fatalf("the union has %d elements", n)
			}
			o.Subtasks[i].Lists = []ListHandle{list("u", Union, i, 1)}
		}
	}
}

func TestAssignRefusesWhatCannotRun(t *testing.T) {
	o := &Operator{UID: "op", Parallelism: 2, Subtasks: make([]Subtask, 1)}
	for _, c := range [][2]int{{0, 0}, {base.KeyGroups + 1, 0}, {2, 2}, {2, -1}, {2, 0}} {
		if _, err := Assign(o, c[0], c[1]); err == nil {
			t.Errorf("parallelism %d, subtask %d is accepted", c[0], c[1])
		}
	}
}
