package weirtest

import (
	"testing"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/operator"
)

// Harness drives one operator, or a few that run in one task, by hand: the test pushes records and watermarks, lets processing time pass,
// looks at what comes out and at the state, takes snapshots and restores them. It runs the engine's own operators on the test's goroutine:
// when a call returns, everything that it caused has happened.
//
//	h := weirtest.NewHarness(t, func(s weir.Stream[string]) weir.Stream[string] {
//		return s.KeyBy(user).Process(&count{}).UID("count")
//	})
//	h.PushAt(noon, "ann logs in")
//	h.Watermark(noon.Add(time.Hour)) // timers fire
//	h.Expect("ann: 1")
//	n, ok := h.Value[int64]("ann", "n")
//
// What a function does that it must not is an error of the test: records changed after they were emitted, or by who was given them;
// state changed after its key's call; a panic. An error that a function returns fails the test too; where it is wanted, Try has it.
type Harness[T, U any] struct {
	*rig
	outputs[U]
	in     *entry[T]
	clocks clocks
}

// NewHarness makes a harness of a piece of a job: what piece makes of the stream that it is given. All of it must run in one task: it may key
// the stream first, and must not distribute it anew behind an operator.
func NewHarness[T, U any](t testing.TB, piece func(weir.Stream[T]) weir.Stream[U], options ...Option) *Harness[T, U] {
	t.Helper()
	return newHarness[T, U](t, func(s weir.Stream[T]) { piece(s).To(NewSink[U]().Sink()).UID(outlet) }, options)
}

// NewSinkHarness makes a harness of a sink: Snapshot prepares, and Complete commits.
func NewSinkHarness[T any](t testing.TB, k weir.Sink[T], options ...Option) *Harness[T, struct{}] {
	t.Helper()
	return newHarness[T, struct{}](t, func(s weir.Stream[T]) { s.To(k).UID("sink") }, options)
}

func newHarness[T, U any](t testing.TB, build func(weir.Stream[T]), options []Option) *Harness[T, U] {
	t.Helper()
	s := settingsOf(options)
	env := s.env()
	build(env.From(NewSource[T]()).UID("weirtest inlet"))
	h := &Harness[T, U]{rig: newRig(t, planOf(t, env, 1), s)}
	h.wire = func(sub *subtask) error { return h.outputs.join(h.rig, sub) }
	h.in = newEntry[T](h.rig, h.plan.entries[0])
	h.clocks.inputs = []clock{h.in}
	h.begin = h.clocks.restored
	h.start(s.from, s.parallelism)
	return h
}

// Push pushes records without timestamps.
func (h *Harness[T, U]) Push(vs ...T) {
	h.t.Helper()
	h.PushAt(time.Time{}, vs...)
}

// PushAt pushes records with a timestamp.
func (h *Harness[T, U]) PushAt(at time.Time, vs ...T) {
	h.t.Helper()
	for _, v := range vs {
		h.in.push(&h.clocks, v, timeOf(at))
	}
}

// Watermark says that no record at or before t follows: event timers up to t fire. One that is not later than the last does nothing.
func (h *Harness[T, U]) Watermark(t time.Time) {
	h.t.Helper()
	h.in.advance(&h.clocks, base.TimeOf(t))
}

// Idle says that the input is idle, until it has a record or watermark again.
func (h *Harness[T, U]) Idle() {
	h.t.Helper()
	h.in.rest(&h.clocks)
}

// End ends the input: the watermark goes to the end of time, all event timers fire, EndOfInput is called.
func (h *Harness[T, U]) End() {
	h.t.Helper()
	h.in.end(&h.clocks)
}

// Harness2 is a Harness of two inputs. The operators' watermark is the less of theirs.
type Harness2[A, B, U any] struct {
	*rig
	outputs[U]
	a      *entry[A]
	b      *entry[B]
	clocks clocks
}

// NewHarness2 makes a harness of a piece of a job that joins two streams: those of Connect, or one beside a broadcast one.
func NewHarness2[A, B, U any](t testing.TB, piece func(weir.Stream[A], weir.Stream[B]) weir.Stream[U], options ...Option) *Harness2[A, B, U] {
	t.Helper()
	s := settingsOf(options)
	env := s.env()
	first := env.From(NewSource[A]()).UID("weirtest inlet 1")
	piece(first, env.From(NewSource[B]()).UID("weirtest inlet 2")).To(NewSink[U]().Sink()).UID(outlet)
	h := &Harness2[A, B, U]{rig: newRig(t, planOf(t, env, 2), s)}
	h.wire = func(sub *subtask) error { return h.outputs.join(h.rig, sub) }
	h.a, h.b = newEntry[A](h.rig, h.plan.entries[0]), newEntry[B](h.rig, h.plan.entries[1])
	h.clocks.inputs = []clock{h.a, h.b}
	h.begin = h.clocks.restored
	h.start(s.from, s.parallelism)
	return h
}

// Push1 pushes records without timestamps into the first input.
func (h *Harness2[A, B, U]) Push1(vs ...A) { h.t.Helper(); h.Push1At(time.Time{}, vs...) }

// Push2 pushes records without timestamps into the second input.
func (h *Harness2[A, B, U]) Push2(vs ...B) { h.t.Helper(); h.Push2At(time.Time{}, vs...) }

// Push1At pushes records with a timestamp into the first input.
func (h *Harness2[A, B, U]) Push1At(at time.Time, vs ...A) {
	h.t.Helper()
	for _, v := range vs {
		h.a.push(&h.clocks, v, timeOf(at))
	}
}

// Push2At pushes records with a timestamp into the second input.
func (h *Harness2[A, B, U]) Push2At(at time.Time, vs ...B) {
	h.t.Helper()
	for _, v := range vs {
		h.b.push(&h.clocks, v, timeOf(at))
	}
}

// Watermark1 says that no record at or before t follows in the first input.
func (h *Harness2[A, B, U]) Watermark1(t time.Time) {
	h.t.Helper()
	h.a.advance(&h.clocks, base.TimeOf(t))
}

// Watermark2 says that no record at or before t follows in the second input.
func (h *Harness2[A, B, U]) Watermark2(t time.Time) {
	h.t.Helper()
	h.b.advance(&h.clocks, base.TimeOf(t))
}

// Watermark is Watermark1 and Watermark2.
func (h *Harness2[A, B, U]) Watermark(t time.Time) {
	h.t.Helper()
	h.Watermark1(t)
	h.Watermark2(t)
}

// Idle1 says that the first input is idle, until it has a record or watermark again.
func (h *Harness2[A, B, U]) Idle1() { h.t.Helper(); h.a.rest(&h.clocks) }

// Idle2 says that the second input is idle, until it has a record or watermark again.
func (h *Harness2[A, B, U]) Idle2() { h.t.Helper(); h.b.rest(&h.clocks) }

// End1 ends the first input.
func (h *Harness2[A, B, U]) End1() { h.t.Helper(); h.a.end(&h.clocks) }

// End2 ends the second input.
func (h *Harness2[A, B, U]) End2() { h.t.Helper(); h.b.end(&h.clocks) }

// Record is a record with what a harness knows of it.
type Record[U any] struct {
	Value U
	// At is its timestamp; the zero Time: it has none.
	At time.Time
	// Subtask is the number of the one that emitted it.
	Subtask int
}

// outputs are what came out of a piece.
type outputs[U any] struct {
	r     *rig
	taken []Record[U]
}

// join has what leaves a new subtask come here.
func (o *outputs[U]) join(r *rig, s *subtask) error {
	o.r = r
	for _, e := range r.plan.exits {
		r.watch(s.ops[e.From], e.Tag, r.node(e.From).Label())
		c := &catcher{in: drain[U]{func(v Record[U]) { o.taken = append(o.taken, v) }, s.index}}
		if err := e.Wire.(operator.Wire).Chain(s.ops[e.From], c, e.Tag, 0); err != nil {
			return err
		}
	}
	return nil
}

// Take is what has come out since the last Take, in order.
func (o *outputs[U]) Take() []U {
	var all []U
	for _, r := range o.TakeRecords() {
		all = append(all, r.Value)
	}
	return all
}

// TakeRecords is Take, with timestamps and subtasks.
func (o *outputs[U]) TakeRecords() []Record[U] {
	all := o.taken
	o.taken = nil
	return all
}

// Expect takes what has come out, which must be want, in that order.
func (o *outputs[U]) Expect(want ...U) {
	o.r.t.Helper()
	expectInOrder(o.r.t, "what came out", o.Take(), want)
}

// catcher is an operator that ends a chain.
type catcher struct {
	operator.Operator // none: only Input is called
	in                any
}

// Input implements operator.Operator.
func (c *catcher) Input(int) any { return c.in }

// drain is an operator.In that hands its records over.
type drain[U any] struct {
	take    func(Record[U])
	subtask int
}

// Push implements operator.In.
func (d drain[U]) Push(b *operator.Batch[U]) error {
	for i, v := range b.Values {
		d.take(Record[U]{Value: v, At: b.Times[i].Time(), Subtask: d.subtask})
	}
	return nil
}

// Watermark implements operator.Control.
func (d drain[U]) Watermark(base.EventTime) error { return nil }

// Idle implements operator.Control.
func (d drain[U]) Idle(bool) error { return nil }

// EndOfData implements operator.Control.
func (d drain[U]) EndOfData(bool) error { return nil }
