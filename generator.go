package weir

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/weirstream/weir/internal/pace"
)

// Endless is the number of records of a generator that never ends.
const Endless int64 = -1

// Generated is a source that computes its records instead of reading them; Generate and FromSlice make it. The record of an
// index is computed once in every history of the job, at any parallelism, also after a restore at another one.
//
// The indices are dealt to lanes like cards, as many lanes as the source has subtasks at its first start: lane 2 of 4 has the
// indices 2, 6, 10 and so on. So all subtasks stand at about the same index, and timestamps that grow with the index do not
// drift apart. (With a range for each subtask, the watermark would stay where the first range ends until all had ended.) A
// subtask that has several lanes, after a restore at a lower parallelism, takes their indices in ascending order; after a
// restore at a higher one the subtasks without a lane have nothing to do.
type Generated[T any] struct {
	name  string
	n     int64 // Endless: no end
	value func(i int64) T
	rate  float64
}

// Generate is a source of the records f(0), f(1) ... f(n-1); of all that follow, too, where n is Endless. f is called by all
// subtasks at once, and must give the same record for an index each time: after a failure it is asked again.
func Generate[T any](n int64, f func(i int64) T) Generated[T] {
	return Generated[T]{name: "Generate", n: max(n, Endless), value: f}
}

// Rate limits the source to so many records a second, over all subtasks together. Zero, the default, is no limit.
func (g Generated[T]) Rate(perSecond float64) Generated[T] {
	g.rate = perSecond
	return g
}

// Name is for people.
func (g Generated[T]) Name() string { return g.name }

// Bounded is true unless the generator is Endless.
func (g Generated[T]) Bounded() bool { return g.n != Endless }

// Enumerator deals the lanes.
func (g Generated[T]) Enumerator(ctx EnumeratorContext[Lane], state []byte) (Enumerator[Lane], error) {
	if state == nil {
		return &laneEnumerator{ctx: ctx, pending: lanes(g.n, ctx.Parallelism())}, nil
	}
	var s laneState
	if err := json.Unmarshal(state, &s); err != nil {
		return nil, NonRecoverable(fmt.Errorf("weir: what the checkpoint has for this source are no lanes of a generator; a source that takes another's place "+
			"needs a UID of its own: %w", err))
	}
	if s.Version != laneStateVersion {
		return nil, NonRecoverable(fmt.Errorf("weir: the state of a generator's lanes has version %d, this program knows %d: "+
			"restore it with the version of Weir that wrote it, or a newer one", s.Version, laneStateVersion))
	}
	return &laneEnumerator{ctx: ctx, pending: s.Pending}, nil
}

// Reader computes the records of its lanes.
func (g Generated[T]) Reader(ctx ReaderContext) (Reader[T, Lane], error) {
	return &laneReader[T]{source: g, ctx: ctx, pacer: pace.New(g.rate, ctx.Wake)}, nil
}

// Lane is a split of a Generated source: of the indices below N, every Of-th from Index on.
type Lane struct {
	// Index is the lane's number, and its first index.
	Index int64
	// Of is the number of lanes.
	Of int64
	// N is the number of indices of all lanes; Endless: no end.
	N int64
	// Next is the index of the next record.
	Next int64
}

// SplitID is like "2/4".
func (l Lane) SplitID() string { return fmt.Sprintf("%d/%d", l.Index, l.Of) }

// over is true when all records of the lane were emitted.
func (l *Lane) over() bool { return l.N != Endless && l.Next >= l.N }

// check tells why the lane cannot be read: only one that never came from a generator.
func (l *Lane) check() error {
	if l.Of < 1 || l.Index < 0 || l.Index >= l.Of || l.N < Endless || l.Next < l.Index || (l.Next-l.Index)%l.Of != 0 {
		return NonRecoverable(fmt.Errorf("weir: a generator has no lane %+v: the checkpoint is not one of this source", *l))
	}
	return nil
}

// lanes divides n indices; lanes that would have none are left out.
func lanes(n int64, of int) []Lane {
	var ls []Lane
	for i := range int64(of) {
		if l := (Lane{Index: i, Of: int64(of), N: n, Next: i}); !l.over() {
			ls = append(ls, l)
		}
	}
	return ls
}

const laneStateVersion = 1

// laneState is a laneEnumerator's snapshot, as JSON.
type laneState struct {
	Version int
	Pending []Lane
}

// laneEnumerator gives each lane to the subtask that is its index modulo the parallelism, as soon as that one is there.
// Nothing depends on who asks first, so a bounded job deals its records the same way each time.
type laneEnumerator struct {
	ctx     EnumeratorContext[Lane]
	pending []Lane // nobody has them
}

func (e *laneEnumerator) Start() error { return nil }

func (e *laneEnumerator) Added(subtask int) error {
	mine := func(l Lane) bool { return l.Index%int64(e.ctx.Parallelism()) == int64(subtask) }
	for _, l := range e.pending {
		if mine(l) {
			e.ctx.Assign(subtask, l)
		}
	}
	e.pending = slices.DeleteFunc(e.pending, mine)
	e.ctx.NoMoreSplits(subtask)
	return nil
}

func (e *laneEnumerator) SplitRequested(int) error { return nil }

func (e *laneEnumerator) Snapshot(int64) ([]byte, error) {
	return json.Marshal(laneState{Version: laneStateVersion, Pending: e.pending})
}

func (e *laneEnumerator) Close() error { return nil }

// laneReader emits the records of its lanes, the least index first.
type laneReader[T any] struct {
	source Generated[T]
	ctx    ReaderContext
	lanes  []Lane // a heap by Next; none is over
	last   bool   // no lane will be added
	pacer  *pace.Pacer
}

func (r *laneReader[T]) AddSplits(splits []Lane) error {
	for _, l := range splits {
		if err := l.check(); err != nil {
			return err
		}
		if l.N != r.source.n {
			return NonRecoverable(fmt.Errorf("weir: the checkpoint is of a source of %s, and this one is of %s: "+
				"restore with as many as before, or start without a checkpoint", recordCount(l.N), recordCount(r.source.n)))
		}
		if !l.over() {
			r.lanes = append(r.lanes, l)
		}
	}
	slices.SortFunc(r.lanes, func(a, b Lane) int { return cmp.Compare(a.Next, b.Next) })
	r.share()
	return nil
}

func recordCount(n int64) string {
	if n == Endless {
		return "endless records"
	}
	return fmt.Sprint(n, " records")
}

func (r *laneReader[T]) NoMoreSplits() { r.last = true }

func (r *laneReader[T]) Poll(_ context.Context, most int, out Out[T]) (Status, error) {
	if len(r.lanes) == 0 {
		return r.idle(), nil
	}
	n := r.pacer.Take(most)
	if n == 0 {
		return Waiting, nil
	}
	for ; n > 0 && len(r.lanes) > 0; n-- {
		*out.e.Next() = r.source.value(r.next())
	}
	r.pacer.Return(n)
	if len(r.lanes) == 0 {
		return r.idle(), nil
	}
	return More, nil
}

// idle is the status of a reader without lanes.
func (r *laneReader[T]) idle() Status {
	if r.last {
		return Ended
	}
	return Waiting
}

// next takes the least index of the lanes.
func (r *laneReader[T]) next() int64 {
	l := &r.lanes[0]
	i := l.Next
	l.Next += l.Of
	if l.over() {
		last := len(r.lanes) - 1
		r.lanes[0] = r.lanes[last]
		r.lanes = r.lanes[:last]
		r.share()
	}
	r.sink()
	return i
}

// sink lets the lane at the heap's root down to its place.
func (r *laneReader[T]) sink() {
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(r.lanes); child++ {
			if r.lanes[child].Next < r.lanes[least].Next {
				least = child
			}
		}
		if least == i {
			return
		}
		r.lanes[i], r.lanes[least] = r.lanes[least], r.lanes[i]
		i = least
	}
}

// share sets the reader's rate: its lanes' part of the source's.
func (r *laneReader[T]) share() {
	part := 0.0
	for i := range r.lanes {
		part += 1 / float64(r.lanes[i].Of)
	}
	r.pacer.SetRate(r.source.rate * math.Min(1, part))
}

func (r *laneReader[T]) Snapshot(int64) ([]Lane, error) { return slices.Clone(r.lanes), nil }

func (r *laneReader[T]) Close() error {
	r.pacer.Close()
	return nil
}
