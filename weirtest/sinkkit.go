package weirtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir"
)

// SinkKit is what TestSink must know of a two-phase sink.
type SinkKit[T any] struct {
	// Open prepares a place outside, empty, and says how it is reached.
	Open func(t testing.TB) Outside[T]
	// Record makes the i-th record; no two are equal.
	Record func(i int) T
}

// Outside is a place that a sink writes to, as a test sees it.
type Outside[T any] struct {
	// Sink makes the sink, as each process of a job does that is started anew.
	Sink func() weir.Sink[T]
	// Visible is what a reader of the place sees, in any order.
	Visible func() []T
	// Left, where it is not nil, names what lies about though nobody will use it: open transactions, hidden files. When a job has ended,
	// after whatever failures, there must be nothing; but of a process that died before its first checkpoint nobody knows.
	Left func() []string
}

// TestSink is what every two-phase sink must keep, for who writes one:
//
//   - what is written becomes visible when its checkpoint has completed, whole, and not before;
//   - once: though the process dies between prepare and commit, or right after the commit, and commits again when it is restored;
//   - what was written after the checkpoint that a job goes back to never becomes visible, be it prepared or not;
//   - what an aborted checkpoint has prepared is committed with the next that completes; so is what was not told of;
//   - all of that at another parallelism than before too;
//   - without checkpoints, the end of the input commits;
//   - a checkpoint in which nothing was written does nothing, and Close may be called at any time;
//   - nothing is left lying about.
func TestSink[T any](t *testing.T, kit SinkKit[T]) {
	t.Helper()
	run(t, kit.checks())
}

// sinkStep is a step of a story: what a job does.
type sinkStep struct {
	text string
	do   func(s *sinkStory)
}

func write(n int) sinkStep {
	return sinkStep{fmt.Sprintf("write %d", n), func(s *sinkStory) { s.write(n) }}
}
func restore(parallelism int, killed bool) sinkStep {
	how := "fail and restore"
	if killed {
		how = "kill the process and restore"
	}
	return sinkStep{fmt.Sprintf("%s at parallelism %d", how, parallelism), func(s *sinkStory) { s.restore(parallelism, killed) }}
}

var (
	prepare  = sinkStep{"prepare", func(s *sinkStory) { s.prepare() }}
	store    = sinkStep{"the checkpoint is stored", func(s *sinkStory) { s.store() }}
	complete = sinkStep{"complete", func(s *sinkStory) { s.complete() }}
	abort    = sinkStep{"abort", func(s *sinkStory) { s.abort() }}
)

// sinkStories are what a sink must come through, by what each shows.
var sinkStories = []struct {
	name  string
	steps []sinkStep
}{
	{"visible when complete", []sinkStep{write(10), prepare, write(5), store, complete, prepare, store, complete}},
	{"nothing written", []sinkStep{prepare, store, complete, prepare, store, complete, write(1), prepare, store, complete}},
	{"dies between prepare and commit", []sinkStep{write(10), prepare, store, write(3), restore(2, true), write(4), prepare, store, complete}},
	{"fails between prepare and commit", []sinkStep{write(10), prepare, store, write(3), restore(2, false), write(4), prepare, store, complete}},
	{"commits again", []sinkStep{write(10), prepare, store, complete, restore(2, true), restore(2, false), write(4), prepare, store, complete}},
	{"what was not stored is gone", []sinkStep{write(3), prepare, store, complete, write(10), prepare, restore(2, true), write(4), prepare, store, complete}},
	{"what was not prepared is gone", []sinkStep{write(3), prepare, store, complete, write(10), restore(2, true), write(4), prepare, store, complete}},
	{"dies before its first checkpoint", []sinkStep{write(10), prepare, restore(2, true), write(10), prepare, store, complete}},
	{"an aborted checkpoint", []sinkStep{write(10), prepare, abort, write(5), prepare, store, complete}},
	{"a lost notification", []sinkStep{write(10), prepare, store, write(5), prepare, store, complete}},
	{"rescales", []sinkStep{write(10), prepare, store, restore(5, true), write(5), prepare, store, write(2), restore(1, true), write(5), prepare, store, complete,
		write(2), restore(3, false), prepare, store, complete}},
	{"dies again and again", []sinkStep{write(3), prepare, store, restore(2, true), restore(2, true), write(3), restore(2, true), write(3), prepare,
		restore(1, true), restore(2, true), write(1), prepare, store, complete}},
}

func (k SinkKit[T]) checks() []check {
	var all []check
	for _, story := range sinkStories {
		all = append(all, check{story.name, func(t testing.TB) { k.tell(t, story.steps) }})
	}
	all = append(all, check{"without checkpoints", k.withoutCheckpoints}, check{"closes", k.closes})
	for seed := range uint64(walks) {
		all = append(all, check{walkName(seed), func(t testing.TB) { k.tell(t, walkOf(seed)) }})
	}
	return all
}

// walkOf is a story at random.
func walkOf(seed uint64) (steps []sinkStep) {
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 10 + rng.IntN(20) {
		switch rng.IntN(8) {
		case 0, 1, 2:
			steps = append(steps, write(1+rng.IntN(9)))
		case 3:
			steps = append(steps, prepare, store, complete)
		case 4:
			steps = append(steps, prepare, store)
		case 5:
			steps = append(steps, prepare)
		case 6:
			steps = append(steps, prepare, abort)
		case 7:
			steps = append(steps, restore(1+rng.IntN(4), rng.IntN(2) == 0))
		}
	}
	return append(steps, prepare, store, complete)
}

// sinkStory is a story being told, without the type of its records: they are numbers here.
type sinkStory struct {
	harness sinkHarness
	next    int   // the number of the next record
	written []int // since the last prepare
	pending [][]int
	visible []int

	last   *Snapshot // the newest that was prepared
	stored *Snapshot // the newest that is stored
	sealed int       // how many of pending belong to it
	lost   bool      // a process has died of which no checkpoint knows
	told   []string
}

// sinkHarness is what a story acts upon.
type sinkHarness interface {
	push(i int)
	Snapshot() *Snapshot
	Complete(*Snapshot)
	Abort(*Snapshot)
	again(from *Snapshot, parallelism int, killed bool)
}

func (s *sinkStory) write(n int) {
	for range n {
		s.harness.push(s.next)
		s.written = append(s.written, s.next)
		s.next++
	}
}

func (s *sinkStory) prepare() {
	s.last = s.harness.Snapshot()
	s.pending = append(s.pending, s.written)
	s.written = nil
}

func (s *sinkStory) store() { s.stored, s.sealed = s.last, len(s.pending) }

func (s *sinkStory) complete() {
	s.harness.Complete(s.stored)
	s.commit()
}

func (s *sinkStory) abort() { s.harness.Abort(s.last) }

// commit has everything be visible that the stored checkpoint and those before it have prepared.
func (s *sinkStory) commit() {
	s.visible = append(s.visible, slices.Concat(s.pending[:s.sealed]...)...)
	s.pending, s.sealed = s.pending[s.sealed:], 0
}

// restore goes back to what is stored; what came after it is written again, by others, so as other records.
func (s *sinkStory) restore(parallelism int, killed bool) {
	s.harness.again(s.stored, parallelism, killed)
	s.commit()
	s.pending, s.written, s.lost = nil, nil, s.lost || s.stored == nil
}

// told is a harness that makes records of numbers, and processes that follow one another.
type told[T any] struct {
	*Harness[T, struct{}]
	kit     SinkKit[T]
	outside Outside[T]
}

func (h *told[T]) push(i int) { h.Push(h.kit.Record(i)) }

func (h *told[T]) again(from *Snapshot, parallelism int, killed bool) {
	if killed {
		h.abandon()
	} else {
		h.Close()
	}
	options := []Option{Parallelism(parallelism)}
	if from != nil {
		options = append(options, From(from))
	}
	id := h.id
	h.Harness = NewSinkHarness(h.t, h.outside.Sink(), options...)
	h.id = max(h.id, id) // ids are never used twice
}

// tell tells a story, and compares after each step what is visible.
func (k SinkKit[T]) tell(t testing.TB, steps []sinkStep) {
	t.Helper()
	outside := k.Open(t)
	h := &told[T]{NewSinkHarness(t, outside.Sink(), Parallelism(2)), k, outside}
	s := &sinkStory{harness: h}
	for _, step := range steps {
		s.told = append(s.told, step.text)
		step.do(s)
		k.compare(t, outside, s)
		if t.Failed() {
			return
		}
	}
	h.End()
	h.Checkpoint()
	s.visible = append(s.visible, s.written...)
	s.told = append(s.told, "the input ends, and a last checkpoint completes")
	k.compare(t, outside, s)
	h.Close()
	if outside.Left == nil || s.lost {
		return
	}
	if left := outside.Left(); len(left) > 0 {
		t.Errorf("after: %s:\nthe job has ended, and there is left behind\n%s", strings.Join(s.told, ", "), list(left))
	}
}

func (k SinkKit[T]) compare(t testing.TB, outside Outside[T], s *sinkStory) {
	t.Helper()
	want := make([]T, len(s.visible))
	for i, n := range s.visible {
		want[i] = k.Record(n)
	}
	if wrong := differences(outside.Visible(), want); len(wrong) > 0 {
		t.Errorf("after: %s:\nwhat is visible is not what it should be\n%s", strings.Join(s.told, ", "), list(wrong))
	}
}

func (k SinkKit[T]) withoutCheckpoints(t testing.TB) {
	outside := k.Open(t)
	h := NewSinkHarness(t, outside.Sink(), Parallelism(2), WithoutCheckpoints())
	s := &sinkStory{harness: &told[T]{h, k, outside}}
	s.write(10)
	s.told = []string{"write 10 in a job without checkpoints"}
	k.compare(t, outside, s)
	h.End()
	s.visible = s.written
	s.told = append(s.told, "the input ends")
	k.compare(t, outside, s)
}

// closes closes at several moments, and a writer twice.
func (k SinkKit[T]) closes(t testing.TB) {
	outside := k.Open(t)
	NewSinkHarness(t, outside.Sink()).Close()
	h := NewSinkHarness(t, outside.Sink())
	h.Push(k.Record(0))
	h.Close()
	w, err := outside.Sink().Writer(alone{})
	if err != nil {
		t.Fatal("a writer cannot be made: ", err)
	}
	for i := range 2 {
		if err := guarded(w.Close); err != nil {
			t.Errorf("call %d of the writer's Close: %v", i+1, err)
		}
	}
}

// alone is a weir.WriterContext without anything around it.
type alone struct{}

func (alone) Subtask() (index, of int) { return 0, 1 }
func (alone) Job() string              { return "alone" }
