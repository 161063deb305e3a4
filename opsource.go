package weir

import (
	"context"
	"fmt"
	"time"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
)

// From reads a source. Watermarks, at most one, say how event time is read off its records; without, the records keep what
// timestamps the source gives them, and there is no watermark before the end of the input.
func (e *Env) From[T any, S Split](s Source[T, S], w ...Watermarks[T]) Stream[T] {
	var marks *Watermarks[T]
	if len(w) > 0 {
		marks = &w[0]
	}
	factory := func() operator.Operator { return newSource(s, marks) }
	n := e.add(graph.Source, "Source", factory)
	n.Coordinator = coordinators[T, S]{s}
	if len(w) > 1 {
		e.problem("From (at %s) was given %d Watermarks: it takes one at most", n.Made, len(w))
	}
	if s == nil {
		e.problem("From (at %s) was given a nil source", n.Made)
		return from[T](e, n)
	}
	n.Bounded = s.Bounded()
	if named, ok := s.(interface{ Name() string }); ok {
		n.Name = named.Name()
	}
	schemas, _, err := newSource(s, marks).declare()
	if err != nil {
		e.problem("source %q (made at %s): its splits: %v", n.Name, n.Made, err)
	}
	n.Schemas = schemas
	return from[T](e, n)
}

// What goes between an enumerator and its readers.
type (
	assigned[S Split] struct{ splits []S }
	noMoreSplits      struct{}
	splitRequest      struct{}
)

// source is the operator of a Source on one subtask.
type source[T any, S Split] struct {
	core[T]
	from   Source[T, S]
	marks  *Watermarks[T]
	reader Reader[T, S]
	ops    *state.Operator
	splits state.OperatorList[S]
	codec  *codec.Codec[S]

	seen      splitProgress
	next      int64 // when Tick is due
	idle      bool
	idleAt    int   // records sent before it was idle
	idleSince int64 // when Poll had emitted the last there was; 0: there was more
}

func newSource[T any, S Split](s Source[T, S], w *Watermarks[T]) *source[T, S] {
	o := &source[T, S]{from: s, marks: w}
	o.ctx = &Context{}
	o.seen.init()
	o.seen.changed = o.hear
	return o
}

const splitsState = "splits"

// declare implements declared.
func (o *source[T, S]) declare() ([]snapshot.StateSchema, []sideOutput, error) {
	o.ops = state.NewOperator()
	if err := o.splits.Bind(o.ops, state.Spec{Name: splitsState}); err != nil {
		return nil, nil, err
	}
	var err error
	o.codec, err = codec.For[S]()
	return o.ops.Schemas(), nil, err
}

// Input implements operator.Operator: there is none.
func (o *source[T, S]) Input(int) any { return nil }

// Setup implements operator.Operator.
func (o *source[T, S]) Setup(rt *operator.Runtime) error {
	if _, _, err := o.declare(); err != nil {
		return err
	}
	if err := o.core.Setup(rt); err != nil {
		return err
	}
	if o.marks != nil {
		o.out.Stamp(func(b *operator.Batch[T]) error {
			o.marks.stamp(b.Values, b.Times, &o.seen.current.progress)
			return nil
		})
	}
	return nil
}

// Restore implements operator.Operator.
func (o *source[T, S]) Restore(r *operator.Restored) error {
	o.ctx.watermark = r.Watermark
	if err := refuse(r, keyedState); err != nil {
		return err
	}
	return restoreOperatorState(o.ops, r)
}

// Open implements operator.Operator.
func (o *source[T, S]) Open() (err error) {
	if o.reader, err = o.from.Reader(readerContext{o.Runtime}); err != nil {
		return err
	}
	if o.splits.Len() == 0 {
		return nil
	}
	splits := make([]S, 0, o.splits.Len())
	for s := range o.splits.All() {
		splits = append(splits, s)
	}
	return o.add(splits)
}

// add gives splits to the reader.
func (o *source[T, S]) add(splits []S) error {
	for _, s := range splits {
		o.seen.expect(s.SplitID())
	}
	return o.reader.AddSplits(splits)
}

// Close implements operator.Operator.
func (o *source[T, S]) Close() error {
	if o.reader == nil {
		return nil
	}
	return o.reader.Close()
}

// readerContext is a ReaderContext.
type readerContext struct{ rt *operator.Runtime }

// Subtask implements ReaderContext.
func (c readerContext) Subtask() (index, of int) { return c.rt.Subtask, c.rt.Parallelism }

// RequestSplit implements ReaderContext.
func (c readerContext) RequestSplit() { c.rt.Ask(splitRequest{}) }

// Wake implements ReaderContext.
func (c readerContext) Wake() { c.rt.Wake() }

// Event implements operator.Source.
func (o *source[T, S]) Event(payload any) error {
	switch p := payload.(type) {
	case assigned[S]:
		return o.add(p.splits)
	case noMoreSplits:
		o.reader.NoMoreSplits()
		return nil
	}
	return fmt.Errorf("weir: a source reader cannot take a %T", payload)
}

// Poll implements operator.Source.
func (o *source[T, S]) Poll(most int) (int, operator.Status, error) {
	sent := o.out.Sent()
	o.out.At(base.NoTime)
	status, err := o.reader.Poll(o.Runtime.Context, most, Out[T]{e: &o.out, splits: &o.seen})
	if err != nil {
		return 0, operator.Ended, err
	}
	emitted := o.out.Pending() || o.out.Sent() > sent // a full slice has been pushed already
	if o.idle && (o.out.Pending() || o.out.Sent() > max(sent, o.idleAt)) {
		o.idle, o.seen.whole.told = false, false
		if err := o.out.Idle(false); err != nil {
			return 0, operator.Ended, err
		}
	}
	if err := o.out.Flush(); err != nil {
		return 0, operator.Ended, err
	}
	return o.out.Sent() - sent, operator.Status(status), o.rest(emitted, status)
}

// hear passes on what the reader itself says of time.
func (o *source[T, S]) hear() {
	if t := o.seen.watermark(o.late()); t > o.ctx.watermark {
		o.ctx.watermark = t
		o.out.Control(func(c operator.Control) error { return c.Watermark(t) })
	}
	if !o.idle && o.seen.resting() {
		o.idle, o.idleAt = true, o.out.Sent()
		o.out.Control(func(c operator.Control) error { return c.Idle(true) })
	}
}

// late is how much the watermark stays behind.
func (o *source[T, S]) late() time.Duration {
	if o.marks == nil {
		return 0
	}
	return o.marks.OutOfOrderness
}

// rest keeps the idle clock: it begins with the poll that leaves the reader with nothing more, and runs only from poll to
// poll. Back-pressure, when nobody polls, makes nothing idle.
func (o *source[T, S]) rest(emitted bool, status Status) error {
	switch {
	case status != Waiting:
		o.idleSince = 0
	case emitted || o.idleSince == 0:
		o.idleSince = o.Runtime.Now()
	case o.marks != nil && o.marks.Idle > 0 && !o.idle && o.Runtime.Now()-o.idleSince >= int64(o.marks.Idle):
		o.idle = true
		return o.out.Idle(true)
	}
	return nil
}

// Deadline implements operator.Clocked.
func (o *source[T, S]) Deadline() (int64, bool) {
	return o.next, o.marks != nil && o.Runtime.WatermarksEvery > 0
}

// Tick implements operator.Clocked.
func (o *source[T, S]) Tick(now int64) error {
	o.next = now + int64(o.Runtime.WatermarksEvery)
	if o.idleSince != 0 && !o.idle {
		o.Runtime.Wake() // another Poll tells whether it still has nothing
	}
	o.seen.pass(o.Runtime.WatermarksEvery, o.marks.Idle)
	if t := o.seen.watermark(o.late()); t > o.ctx.watermark {
		return o.core.Watermark(t)
	}
	return nil
}

// Snapshot implements operator.Operator.
func (o *source[T, S]) Snapshot(c operator.Cut) (operator.Part, error) {
	splits, err := o.reader.Snapshot(int64(c.ID))
	if err != nil {
		return operator.Part{}, err
	}
	o.splits.Clear()
	for _, s := range splits { // the reader goes on with its own, while these are being written
		o.splits.Add(o.codec.Clone(s))
	}
	part, err := o.core.Snapshot(c)
	addOperatorState(&part, o.Runtime, o.ops)
	return part, err
}

// Complete implements operator.Operator.
func (o *source[T, S]) Complete(id base.CheckpointID) error {
	if r, ok := o.reader.(NotifyingReader); ok {
		return r.CheckpointCompleted(int64(id))
	}
	return nil
}

// coordinators makes the operator coordinators of a source.
type coordinators[T any, S Split] struct{ from Source[T, S] }

// New implements jobmaster.CoordinatorProvider.
func (c coordinators[T, S]) New(ctx jobmaster.CoordinatorContext, state []byte) (jobmaster.Coordinator, error) {
	en, err := c.from.Enumerator(enumeratorContext[S]{ctx}, state)
	if err != nil {
		return nil, err
	}
	return coordinator[S]{en}, nil
}

// coordinator is an Enumerator as the job master sees it.
type coordinator[S Split] struct{ en Enumerator[S] }

// Start implements jobmaster.Coordinator.
func (c coordinator[S]) Start() error { return c.en.Start() }

// Added implements jobmaster.Coordinator.
func (c coordinator[S]) Added(subtask int) error { return c.en.Added(subtask) }

// Handle implements jobmaster.Coordinator.
func (c coordinator[S]) Handle(subtask int, payload any) error {
	if _, ok := payload.(splitRequest); !ok {
		return fmt.Errorf("weir: an enumerator cannot take a %T", payload)
	}
	return c.en.SplitRequested(subtask)
}

// Snapshot implements jobmaster.Coordinator.
func (c coordinator[S]) Snapshot(id base.CheckpointID) ([]byte, error) {
	return c.en.Snapshot(int64(id))
}

// Close implements jobmaster.Coordinator.
func (c coordinator[S]) Close() error { return c.en.Close() }

// enumeratorContext is an EnumeratorContext.
type enumeratorContext[S Split] struct{ ctx jobmaster.CoordinatorContext }

// Assign implements EnumeratorContext.
func (c enumeratorContext[S]) Assign(subtask int, splits ...S) {
	c.ctx.Send(subtask, assigned[S]{splits})
}

// NoMoreSplits implements EnumeratorContext.
func (c enumeratorContext[S]) NoMoreSplits(subtask int) { c.ctx.Send(subtask, noMoreSplits{}) }

// Readers implements EnumeratorContext.
func (c enumeratorContext[S]) Readers() []int { return c.ctx.Readers() }

// Parallelism implements EnumeratorContext.
func (c enumeratorContext[S]) Parallelism() int { return c.ctx.Parallelism() }

// Backlog implements EnumeratorContext.
func (c enumeratorContext[S]) Backlog(backlog bool) { c.ctx.Backlog(backlog) }

// Run implements EnumeratorContext.
func (c enumeratorContext[S]) Run(work func(context.Context) (any, error), done func(any, error) error) {
	c.ctx.Run(work, done)
}
