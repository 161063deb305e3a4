package weirtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirstream/weir"
)

// Source is a source that plays a script. Its methods append to the script, and return the source, so that a script reads as
// one sentence:
//
//	src := weirtest.NewSource[string]().
//		Split("left").At(noon, "a", "b").Watermark(noon).AwaitCheckpoint(1).Emit("c").
//		Split("right").Emit("d").Pause(time.Minute).Fail(errors.New("the disk is full")).Emit("e")
//
// A step belongs to the split named last; what is said before the first Split belongs to one of its own. The subtask that is
// the split's number, modulo the parallelism, plays it. Subtasks with several splits take a record of each in turn. After a
// restore a split goes on where it stood in the checkpoint: a script is replayed as any good source is.
//
// A script may be appended to while it is played, from any goroutine. It ends with its last step, unless Endless was called.
type Source[T any] struct {
	mu        sync.Mutex
	tracks    []*track[T]                 // protected by mu, as is all below
	current   *track[T]                   // what steps are appended to
	playing   bool                        // a job has the splits: there can be no more
	endless   bool                        // what is not over by End is only waiting
	unbounded bool                        // Endless was called
	completed int64                       // the newest checkpoint that a reader has heard of
	readers   map[*scriptReader[T]]func() // wakes them
}

// track is the script of one split.
type track[T any] struct {
	id    string
	steps []step[T]
}

// step is one thing to do. Exactly one of its parts is set.
type step[T any] struct {
	record     *record[T]
	watermark  *time.Time
	idle       bool
	pause      time.Duration
	checkpoint int64
	fault      *fault
}

type record[T any] struct {
	value T
	at    time.Time // zero: none
}

// fault is an error or a panic, left more times.
type fault struct {
	left  int // protected by the source's mu
	err   error
	panic any
}

// NewSource is a source with an empty script.
func NewSource[T any]() *Source[T] {
	return &Source[T]{readers: map[*scriptReader[T]]func(){}}
}

// Split begins the script of another split, or goes on with that of one. There can be no new ones once a job reads the source.
func (s *Source[T]) Split(id string) *Source[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = s.trackLocked(id)
	if s.current == nil {
		s.beginLocked(id)
	}
	return s
}

func (s *Source[T]) beginLocked(id string) {
	if s.playing {
		panic(fmt.Sprintf("weirtest: a job is reading the source already, so it can have no new split %q: name all splits before", id))
	}
	s.current = &track[T]{id: id}
	s.tracks = append(s.tracks, s.current)
}

func (s *Source[T]) trackLocked(id string) *track[T] {
	for _, t := range s.tracks {
		if t.id == id {
			return t
		}
	}
	return nil
}

// Emit emits records without timestamps.
func (s *Source[T]) Emit(vs ...T) *Source[T] { return s.At(time.Time{}, vs...) }

// At emits records with a timestamp.
func (s *Source[T]) At(at time.Time, vs ...T) *Source[T] {
	steps := make([]step[T], len(vs))
	for i, v := range vs {
		steps[i].record = &record[T]{v, at}
	}
	return s.add(steps...)
}

// Watermark says that no record of the split at or before t follows. The source's watermark is the least over all splits.
func (s *Source[T]) Watermark(t time.Time) *Source[T] { return s.add(step[T]{watermark: &t}) }

// Idle says that the split holds watermarks back no more until it has a record again.
func (s *Source[T]) Idle() *Source[T] { return s.add(step[T]{idle: true}) }

// Pause lets time pass before the split goes on; in a bubble of testing/synctest, as Crash runs its jobs in one, it takes none. A
// restored split pauses anew.
func (s *Source[T]) Pause(d time.Duration) *Source[T] { return s.add(step[T]{pause: d}) }

// AwaitCheckpoint waits until checkpoint n, or a later one, has completed. Ids begin with 1 and go on after a restart.
func (s *Source[T]) AwaitCheckpoint(n int64) *Source[T] { return s.add(step[T]{checkpoint: n}) }

// Fail fails the reader once, in place of the element that would come here: the job restarts, and goes on behind it.
func (s *Source[T]) Fail(err error) *Source[T] { return s.FailTimes(1, err) }

// FailTimes is Fail, n times.
func (s *Source[T]) FailTimes(n int, err error) *Source[T] {
	return s.add(step[T]{fault: &fault{left: n, err: err}})
}

// Panic panics once in the reader.
func (s *Source[T]) Panic(v any) *Source[T] { return s.add(step[T]{fault: &fault{left: 1, panic: v}}) }

// Endless has the source wait for more where its script ends: a job that reads it ends only when it is stopped or cancelled, or after
// End.
func (s *Source[T]) Endless() *Source[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endless, s.unbounded = true, true
	return s
}

// End says that an endless source ends with its script as it is now.
func (s *Source[T]) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endless = false
	s.wakeLocked()
}

func (s *Source[T]) add(steps ...step[T]) *Source[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		s.beginLocked("0")
	}
	s.current.steps = append(s.current.steps, steps...)
	s.wakeLocked()
	return s
}

func (s *Source[T]) wakeLocked() {
	for _, wake := range s.readers {
		wake()
	}
}

// Position is the split of a Source: how many steps of it were played.
type Position struct {
	Split string
	Next  int
}

// SplitID implements weir.Split.
func (p Position) SplitID() string { return p.Split }

// Name is for people.
func (s *Source[T]) Name() string { return "Script" }

// Bounded implements weir.Source.
func (s *Source[T]) Bounded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.unbounded
}

// Enumerator implements weir.Source.
func (s *Source[T]) Enumerator(ctx weir.EnumeratorContext[Position], state []byte) (weir.Enumerator[Position], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.playing = true
	e := &scriptEnumerator{ctx: ctx, number: map[string]int{}}
	for i, t := range s.tracks {
		e.number[t.id] = i
		if state == nil {
			e.pending = append(e.pending, Position{Split: t.id})
		}
	}
	if state == nil {
		return e, nil
	}
	if err := json.Unmarshal(state, &e.pending); err != nil {
		return nil, weir.NonRecoverable(fmt.Errorf("weirtest: the checkpoint is not one of a scripted source: %w", err))
	}
	return e, nil
}

// scriptEnumerator deals the splits by their numbers.
type scriptEnumerator struct {
	ctx     weir.EnumeratorContext[Position]
	number  map[string]int
	pending []Position // nobody has them
}

func (e *scriptEnumerator) Start() error { return nil }

func (e *scriptEnumerator) Added(subtask int) error {
	mine := func(p Position) bool { return e.number[p.Split]%e.ctx.Parallelism() == subtask }
	for _, p := range e.pending {
		if mine(p) {
			e.ctx.Assign(subtask, p)
		}
	}
	e.pending = slices.DeleteFunc(e.pending, mine)
	e.ctx.NoMoreSplits(subtask)
	return nil
}

func (e *scriptEnumerator) SplitRequested(int) error       { return nil }
func (e *scriptEnumerator) Snapshot(int64) ([]byte, error) { return json.Marshal(e.pending) }
func (e *scriptEnumerator) Close() error                   { return nil }

// Reader implements weir.Source.
func (s *Source[T]) Reader(ctx weir.ReaderContext) (weir.Reader[T, Position], error) {
	r := &scriptReader[T]{source: s, wake: ctx.Wake}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers[r] = ctx.Wake
	return r, nil
}

// scriptReader plays splits.
type scriptReader[T any] struct {
	source *Source[T]
	wake   func()
	heads  []*head
	turn   int  // whose record comes next
	last   bool // no split will be added
}

// head is where a reader stands in a split.
type head struct {
	Position
	until time.Time // when the pause at hand is over; zero: there is none
	timer *time.Timer
}

// AddSplits implements weir.Reader.
func (r *scriptReader[T]) AddSplits(splits []Position) error {
	r.source.mu.Lock()
	defer r.source.mu.Unlock()
	for _, p := range splits {
		if r.source.trackLocked(p.Split) == nil || p.Next < 0 {
			return weir.NonRecoverable(fmt.Errorf("weirtest: the script has no split %q: the checkpoint is of another script", p.Split))
		}
		r.heads = append(r.heads, &head{Position: p})
	}
	return nil
}

// NoMoreSplits implements weir.Reader.
func (r *scriptReader[T]) NoMoreSplits() { r.last = true }

// errWaiting and errEnded say why a split has no record.
var (
	errWaiting = errors.New("waiting")
	errEnded   = errors.New("ended")
)

// Poll implements weir.Reader.
func (r *scriptReader[T]) Poll(_ context.Context, most int, out weir.Out[T]) (weir.Status, error) {
	waiting := 0 // splits in a row that had nothing
	for n := 0; n < most && waiting < len(r.heads); {
		r.turn %= len(r.heads)
		switch err := r.play(r.heads[r.turn], out); {
		case err == nil:
			n, waiting = n+1, 0
			r.turn++
		case errors.Is(err, errWaiting):
			waiting++
			r.turn++
		case errors.Is(err, errEnded):
			out.SplitDone(r.heads[r.turn].Split)
			r.heads = slices.Delete(r.heads, r.turn, r.turn+1)
			waiting = 0
		default:
			return weir.Ended, err
		}
	}
	switch {
	case waiting < len(r.heads):
		return weir.More, nil
	case len(r.heads) == 0 && r.last:
		return weir.Ended, nil
	}
	return weir.Waiting, nil
}

// play does the steps of a split up to a record, which it emits.
func (r *scriptReader[T]) play(h *head, out weir.Out[T]) error {
	for {
		s, err := r.source.next(h)
		if err != nil {
			return err
		}
		if s.pause > 0 && !r.paused(h, s.pause) {
			return errWaiting
		}
		h.Next++
		switch to := out.Split(h.Split); {
		case s.record != nil && s.record.at.IsZero():
			to.Emit(s.record.value)
			return nil
		case s.record != nil:
			to.EmitAt(s.record.value, s.record.at)
			return nil
		case s.watermark != nil:
			to.Watermark(*s.watermark)
		case s.idle:
			to.Idle()
		}
	}
}

// next is the step at which a split stands, unless it waits, has ended, or fails.
func (s *Source[T]) next(h *head) (step[T], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.trackLocked(h.Split)
	if h.Next >= len(t.steps) {
		if s.endless {
			return step[T]{}, errWaiting
		}
		return step[T]{}, errEnded
	}
	next := t.steps[h.Next]
	if next.checkpoint > s.completed {
		return step[T]{}, errWaiting
	}
	if f := next.fault; f != nil && f.left > 0 {
		f.left--
		if f.panic != nil {
			panic(f.panic)
		}
		return step[T]{}, f.err
	}
	return next, nil
}

// paused is true when the pause at which a split stands is over.
func (r *scriptReader[T]) paused(h *head, d time.Duration) bool {
	now := time.Now()
	if h.until.IsZero() {
		h.until = now.Add(d)
		h.timer = time.AfterFunc(d, r.wake)
	}
	if now.Before(h.until) {
		return false
	}
	h.until = time.Time{}
	return true
}

// Snapshot implements weir.Reader.
func (r *scriptReader[T]) Snapshot(int64) ([]Position, error) {
	all := make([]Position, len(r.heads))
	for i, h := range r.heads {
		all[i] = h.Position
	}
	return all, nil
}

// CheckpointCompleted implements weir.NotifyingReader.
func (r *scriptReader[T]) CheckpointCompleted(id int64) error {
	s := r.source
	s.mu.Lock()
	defer s.mu.Unlock()
	s.completed = max(s.completed, id)
	s.wakeLocked()
	return nil
}

// Close implements weir.Reader.
func (r *scriptReader[T]) Close() error {
	for _, h := range r.heads {
		if h.timer != nil {
			h.timer.Stop()
		}
	}
	r.source.mu.Lock()
	defer r.source.mu.Unlock()
	delete(r.source.readers, r)
	return nil
}
