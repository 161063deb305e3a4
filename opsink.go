package weir

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
	"github.com/weirstream/weir/internal/task"
)

// SinkNode is the end of a stream.
type SinkNode struct {
	env  *Env
	node *graph.Node
}

// UID gives the sink its identity: the state of a two-phase sink is found by it. was has the UIDs of older versions, as at Stream.UID.
func (s SinkNode) UID(id string, was ...string) SinkNode {
	s.node.UID, s.node.Was = id, was
	return s
}

// Name gives the sink a name for people.
func (s SinkNode) Name(n string) SinkNode { s.node.Name = n; return s }

// Parallelism sets the number of the sink's subtasks.
func (s SinkNode) Parallelism(n int) SinkNode {
	if n == 0 {
		n = -1
	}
	s.node.Parallelism = n
	return s
}

// To writes the stream to a sink.
func (s Stream[T]) To(k Sink[T]) SinkNode {
	n := s.env.add(graph.Sink, "Sink", nil)
	s.into(n, 0)
	node := SinkNode{s.env, n}
	if k == nil {
		s.env.problem("To (at %s) was given a nil sink", n.Made)
		return node
	}
	if named, ok := k.(interface{ Name() string }); ok {
		n.Name = named.Name()
	}
	two, ok := k.(twoPhase[T])
	if !ok {
		s.refuseHalfTwoPhase(k, n)
		n.Factory = task.Factory(func() operator.Operator { return newSink(k) })
		return node
	}
	n.TwoPhase = true
	n.Factory = task.Factory(two.operator)
	schemas, _, err := two.operator().(declared).declare()
	if err != nil {
		s.env.problem("sink %q (made at %s): its committables: %v", n.Name, n.Made, err)
	}
	n.Schemas = schemas
	return node
}

// refuseHalfTwoPhase refuses a sink with methods of a TwoPhase that are never called: exactly-once would be lost in silence.
func (s Stream[T]) refuseHalfTwoPhase(k Sink[T], n *graph.Node) {
	for _, name := range []string{"Prepare", "Commit", "Restore"} {
		if _, has := reflect.TypeOf(k).MethodByName(name); has {
			s.env.problem("sink %T (made at %s) has a method %s, which would never be called: make it a two-phase sink, To(weir.Committing(k))", k, n.Made, name)
			return
		}
	}
}

// twoPhase is a sink that has gone through Committing.
type twoPhase[T any] interface {
	operator() operator.Operator
}

// writerContext is a WriterContext.
type writerContext struct{ rt *operator.Runtime }

// Subtask implements WriterContext.
func (c writerContext) Subtask() (index, of int) { return c.rt.Subtask, c.rt.Parallelism }

// Job implements WriterContext.
func (c writerContext) Job() string { return c.rt.Job }

// sink is the operator of a Sink that is not two-phase.
type sink[T any] struct {
	operator.Base
	make      func(WriterContext) (Writer[T], error)
	writer    Writer[T]
	watermark base.EventTime
}

func newSink[T any](k Sink[T]) *sink[T] { return &sink[T]{make: k.Writer, watermark: base.NoTime} }

// Input implements operator.Operator.
func (o *sink[T]) Input(int) any { return operator.In[T](o) }

// Restore implements operator.Operator.
func (o *sink[T]) Restore(r *operator.Restored) error {
	o.watermark = r.Watermark
	return refuse(r, keyedState, listState)
}

// Open implements operator.Operator.
func (o *sink[T]) Open() (err error) {
	o.writer, err = o.make(writerContext{o.Runtime})
	return err
}

// Push implements operator.In.
func (o *sink[T]) Push(b *operator.Batch[T]) error {
	before := o.Enter()
	for i := range b.Values {
		if err := o.writer.Write(b.Values[i], b.Times[i].Time()); err != nil {
			return err
		}
	}
	o.Leave(before)
	return nil
}

// Watermark implements operator.Control.
func (o *sink[T]) Watermark(t base.EventTime) error { o.watermark = t; return nil }

// Idle implements operator.Control.
func (o *sink[T]) Idle(bool) error { return nil }

// EndOfData implements operator.Control.
func (o *sink[T]) EndOfData(drained bool) error {
	before := o.Enter()
	defer o.Leave(before)
	return o.writer.Flush(drained)
}

// Snapshot implements operator.Operator.
func (o *sink[T]) Snapshot(operator.Cut) (operator.Part, error) {
	return o.part(), o.writer.Flush(false)
}

func (o *sink[T]) part() operator.Part {
	return operator.Part{State: snapshot.Subtask{Watermark: o.watermark, PendingWatermark: base.NoTime}}
}

// Close implements operator.Operator.
func (o *sink[T]) Close() error {
	if o.writer == nil {
		return nil
	}
	return o.writer.Close()
}

func (k committing[T, C]) operator() operator.Operator {
	return &committer[T, C]{sink: sink[T]{make: k.TwoPhase.Writer, watermark: base.NoTime}, to: k.TwoPhase}
}

// Name is the two-phase sink's own name, if it has one.
func (k committing[T, C]) Name() string {
	if named, ok := k.TwoPhase.(interface{ Name() string }); ok {
		return named.Name()
	}
	return "Sink"
}

// prepared is what one Prepare has sealed.
type prepared[C any] struct {
	Checkpoint  int64
	Committable C
}

// committer is the operator of a two-phase sink.
//
//	Snapshot(7): Prepare(7), pending = {7: a, b}; stored with the checkpoint
//	Complete(7): Commit(a, b), and whatever older checkpoints that never completed had prepared
//	Restore:     what is pending is committed before the first record, because its checkpoint did complete
//
// A lost notification is made up by the next one. What an aborted checkpoint had prepared stays pending, and is committed with
// the next that completes: its records are not read again.
type committer[T, C any] struct {
	sink[T]
	to      TwoPhase[T, C]
	ops     *state.Operator
	stored  state.OperatorList[prepared[C]]
	writers state.OperatorList[[]byte]
	pending []prepared[C]
}

// declare implements declared.
func (o *committer[T, C]) declare() ([]snapshot.StateSchema, []sideOutput, error) {
	o.ops = state.NewOperator()
	err := o.stored.Bind(o.ops, state.Spec{Name: "committables"})
	if err == nil {
		err = o.writers.Bind(o.ops, state.Spec{Name: "writer"})
	}
	return o.ops.Schemas(), nil, err
}

// Input implements operator.Operator.
func (o *committer[T, C]) Input(int) any { return operator.In[T](o) }

// Setup implements operator.Operator.
func (o *committer[T, C]) Setup(rt *operator.Runtime) error {
	o.Runtime = rt
	_, _, err := o.declare()
	return err
}

// Restore implements operator.Operator.
func (o *committer[T, C]) Restore(r *operator.Restored) error {
	o.watermark = r.Watermark
	if err := refuse(r, keyedState); err != nil {
		return err
	}
	return restoreOperatorState(o.ops, r)
}

// Open implements operator.Operator: what the restored checkpoint had prepared is committed before anything else.
func (o *committer[T, C]) Open() error {
	for p := range o.stored.All() {
		o.pending = append(o.pending, p)
	}
	if err := o.commit(all); err != nil {
		return err
	}
	if err := o.sink.Open(); err != nil {
		return err
	}
	var states [][]byte
	for s := range o.writers.All() {
		states = append(states, s)
	}
	if len(states) == 0 && !o.Runtime.Restored {
		return nil
	}
	return o.to.Restore(o.writer, states)
}

// Snapshot implements operator.Operator.
func (o *committer[T, C]) Snapshot(c operator.Cut) (operator.Part, error) {
	part := o.part()
	own, err := o.prepare(int64(c.ID))
	if err != nil {
		return part, err
	}
	o.stored.Update(o.pending)
	o.writers.Update(own)
	addOperatorState(&part, o.Runtime, o.ops)
	return part, nil
}

// prepare seals what was written, and returns the writer's own state.
func (o *committer[T, C]) prepare(id int64) (own [][]byte, err error) {
	cs, s, err := o.to.Prepare(o.writer, id)
	if err != nil {
		return nil, err
	}
	for _, c := range cs {
		o.pending = append(o.pending, prepared[C]{id, c})
	}
	if s != nil {
		own = [][]byte{s}
	}
	return own, nil
}

// Complete implements operator.Operator.
func (o *committer[T, C]) Complete(id base.CheckpointID) error { return o.commit(int64(id)) }

// EndOfData implements operator.Control. Without checkpoints the end of the input is what commits, also what savepoints have
// prepared before.
func (o *committer[T, C]) EndOfData(drained bool) error {
	before := o.Enter()
	defer o.Leave(before)
	if err := o.writer.Flush(drained); err != nil {
		return err
	}
	if o.Runtime.Checkpointed || !drained {
		return nil
	}
	if _, err := o.prepare(0); err != nil {
		return err
	}
	err := o.commit(all)
	if err != nil {
		err = errors.Join(err, o.to.Abort(o.Runtime.Context, committables(o.pending)))
	}
	return err
}

func committables[C any](ps []prepared[C]) (cs []C) {
	for _, p := range ps {
		cs = append(cs, p.Committable)
	}
	return cs
}

// all is a checkpoint after every other, for commit.
const all int64 = math.MaxInt64

const (
	retryFirst = 10 * time.Millisecond
	retryMost  = time.Second
)

// commit commits what checkpoints up to id have prepared, in order, and tries again what asks for it.
func (o *committer[T, C]) commit(id int64) error {
	n := 0
	for n < len(o.pending) && o.pending[n].Checkpoint <= id {
		n++
	}
	left := make([]*Commit[C], n)
	for i, p := range o.pending[:n] {
		left[i] = &Commit[C]{Value: p.Committable}
	}
	for wait := retryFirst; len(left) > 0; wait = min(2*wait, retryMost) {
		again, err := o.try(left)
		if err != nil {
			return err
		}
		if left = again; len(left) > 0 {
			if err := pause(o.Runtime.Context, wait); err != nil {
				return err
			}
		}
	}
	o.pending = append(o.pending[:0], o.pending[n:]...)
	return nil
}

// try commits once, and returns what is to be tried again.
func (o *committer[T, C]) try(cs []*Commit[C]) (again []*Commit[C], err error) {
	for _, c := range cs {
		c.Attempt++
		c.retry, c.err = false, nil
	}
	if err := o.to.Commit(o.Runtime.Context, slices.Clone(cs)); err != nil { // the slice is the sink's, to sort or to shrink
		return nil, fmt.Errorf("committing: %w", err)
	}
	for _, c := range cs {
		switch {
		case c.err != nil:
			return nil, fmt.Errorf("committing: %w", c.err)
		case c.retry:
			again = append(again, c)
		}
	}
	return again, nil
}

// pause waits, unless ctx is done before.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
