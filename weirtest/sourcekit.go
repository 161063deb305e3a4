package weirtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/operator"
)

// SourceKit is what TestSource must know of a source.
type SourceKit[T any, S weir.Split] struct {
	// New makes the source, each time over the same input. It is called for each harness.
	New func(t testing.TB) weir.Source[T, S]
	// Want is what the source must read, each record as often as it is there, in any order. Of a source without end it is what
	// there is to read at first.
	Want []T
}

// TestSource is what every source must keep, for who writes one:
//
//   - it reads everything, once, at any parallelism, and says when it has ended;
//   - a reader emits no more than it is asked for, does not wait in Poll, and wakes who waits for it;
//   - restored from a snapshot, whenever that was taken and whatever was read since, it goes on behind what it had emitted before, also
//     at another parallelism: nothing is lost, nothing comes twice;
//   - restored from a snapshot that was taken at its end, it ends;
//   - Close may be called at any time, and again;
//   - a context that is done keeps Poll from nothing but returning.
//
// It drives the source's own halves, in the engine's operators; a few of the records, say 100, show as much as many.
func TestSource[T any, S weir.Split](t *testing.T, kit SourceKit[T, S]) {
	t.Helper()
	run(t, kit.checks())
}

func (k SourceKit[T, S]) checks() []check {
	all := []check{{"reads everything", k.readsEverything}, {"restores anywhere", k.restoresAnywhere}, {"ends again", k.endsAgain},
		{"closes", k.closes}, {"heeds its context", k.heedsContext}}
	for seed := range uint64(walks) {
		all = append(all, check{walkName(seed), func(t testing.TB) { k.walk(t, seed) }})
	}
	return all
}

// all reads what there is, and compares it with what is wanted; before is what was read already.
func (k SourceKit[T, S]) all(t testing.TB, h *SourceHarness[T, S], before []T, when string) {
	t.Helper()
	h.Read(len(k.Want) - len(before))
	if h.bounded() {
		h.ReadAll()
	}
	if wrong := differences(append(slices.Clone(before), h.Take()...), k.Want); len(wrong) > 0 {
		t.Errorf("%s: what was read is not what is there:\n%s", when, list(wrong))
	}
}

func (h *SourceHarness[T, S]) bounded() bool { return h.plan.nodes[0].Bounded }

func (k SourceKit[T, S]) readsEverything(t testing.TB) {
	for _, parallelism := range []int{1, 2, 5} {
		for _, most := range []int{1, 100} {
			h := NewSourceHarness(t, k.New(t), Parallelism(parallelism))
			for range 3 {
				h.Poll(most)
			}
			k.all(t, h, h.Take(), fmt.Sprintf("at parallelism %d, after 3 polls for %d", parallelism, most))
			h.Close()
		}
	}
}

// pointsMost is how many points a source is restored at.
const pointsMost = 15

// restoresAnywhere takes a snapshot after each poll, and goes on; then it goes on from each.
func (k SourceKit[T, S]) restoresAnywhere(t testing.TB) {
	type point struct {
		snapshot *Snapshot
		before   int // records read by then
	}
	for _, parallelism := range []int{1, 3} {
		h := NewSourceHarness(t, k.New(t), Parallelism(parallelism))
		var read []T
		points := []point{{h.Snapshot(), 0}}
		step := 1 + len(k.Want)/pointsMost/parallelism
		for status := weir.More; status != weir.Ended && len(points) < 2*pointsMost; {
			if status = h.Poll(step); status == weir.Waiting {
				if len(read) >= len(k.Want) {
					break
				}
				h.await()
			}
			read = append(read, h.Take()...)
			points = append(points, point{h.Snapshot(), len(read)})
		}
		h.Close()
		for i, p := range points {
			for _, next := range []int{parallelism, 1 + i%4} {
				h := NewSourceHarness(t, k.New(t), From(p.snapshot), Parallelism(next))
				k.all(t, h, read[:p.before], fmt.Sprintf("restored, from parallelism %d to %d, from the snapshot that was taken when %d records were read",
					parallelism, next, p.before))
				h.Close()
			}
			if t.Failed() {
				return
			}
		}
	}
}

func (k SourceKit[T, S]) endsAgain(t testing.TB) {
	h := NewSourceHarness(t, k.New(t), Parallelism(2))
	if !h.bounded() {
		return
	}
	h.ReadAll()
	s := h.Snapshot()
	h.Take()
	for _, parallelism := range []int{2, 1, 3} {
		h.RestoreAt(s, parallelism)
		h.ReadAll()
		if again := h.Take(); len(again) > 0 {
			t.Errorf("restored at parallelism %d from a snapshot that was taken at its end, it reads again\n%s", parallelism, list(texts(again)))
		}
	}
}

// closes closes readers and enumerators at once, in mid-read, and twice.
func (k SourceKit[T, S]) closes(t testing.TB) {
	for polls := range 3 {
		h := NewSourceHarness(t, k.New(t))
		for range polls {
			h.Poll(1)
		}
		h.Close()
	}
	src := k.New(t)
	reader, err := src.Reader(lonely{})
	if err != nil {
		t.Fatal("a reader cannot be made: ", err)
	}
	for i := range 2 {
		if err := guarded(reader.Close); err != nil {
			t.Errorf("call %d of the reader's Close: %v", i+1, err)
		}
	}
}

func guarded(call func() error) error { return (&rig{}).guarded(call) }

// lonely is a weir.ReaderContext without anything around it.
type lonely struct{}

func (lonely) Subtask() (index, of int) { return 0, 1 }
func (lonely) RequestSplit()            {}
func (lonely) Wake()                    {}

// heedsContext polls with a context that is done: Poll must return soon, whatever it returns.
func (k SourceKit[T, S]) heedsContext(t testing.TB) {
	h := NewSourceHarness(t, k.New(t))
	h.Poll(1)
	h.subtasks[0].cancel()
	returned := make(chan error, 1)
	startPoll(h, returned)
	select {
	case <-returned:
	case <-time.After(readPatience):
		t.Fatalf("Poll, whose context is done, has not returned after %v: it must never wait", readPatience)
	}
}

// startPoll polls on a goroutine, which ends with the poll; what comes of it is none of the test's business.
func startPoll[T any, S weir.Split](h *SourceHarness[T, S], returned chan<- error) {
	op := h.subtasks[0].ops[h.plan.nodes[0].ID].(operator.Source)
	go func() {
		returned <- guarded(func() error {
			_, _, err := op.Poll(1)
			return err
		})
	}()
}

// walk does at random what a job may: polls, snapshots, failures, restores at other parallelisms.
func (k SourceKit[T, S]) walk(t testing.TB, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	h := NewSourceHarness(t, k.New(t), Parallelism(1+rng.IntN(4)))
	var read, stored []T // of this history, and up to the snapshot
	var last *Snapshot
	var did []string
	note := func(format string, args ...any) { did = append(did, fmt.Sprintf(format, args...)) }
	for range 10 + rng.IntN(30) {
		switch rng.IntN(6) {
		case 0:
			last, stored = h.Snapshot(), slices.Clone(read)
			note("snapshot at %d records", len(stored))
		case 1:
			if last == nil {
				continue
			}
			parallelism := 1 + rng.IntN(4)
			note("restore at parallelism %d", parallelism)
			h.RestoreAt(last, parallelism)
			read = slices.Clone(stored)
		default:
			most := 1 + rng.IntN(7)
			h.Poll(most)
			got := h.Take()
			read = append(read, got...)
			note("poll for %d: %d", most, len(got))
		}
	}
	k.all(t, h, read, "after "+strings.Join(did, ", "))
}
