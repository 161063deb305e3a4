package weir

import (
	"reflect"
	"slices"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
	"github.com/weirstream/weir/internal/task"
)

// core is what all operators with an output and a user's function share: the subtask's copy of the function, its optional
// methods, its side outputs, its operator state, the output, and the current watermark.
type core[U any] struct {
	operator.Base
	proto *prototype // nil: a built-in function without fields
	inst  *instance
	ops   *state.Operator
	out   operator.Emitter[U]
	sides []sideOutput
	ctx   *Context
}

// declared is an operator that can say, before it runs, what it declares.
type declared interface {
	// declare binds a copy of the function that will never run.
	declare() (schemas []snapshot.StateSchema, sides []sideOutput, err error)
}

// instantiate makes the subtask's copy of the function. keyed: nil where there are no keys.
func (c *core[U]) instantiate(keyed state.Table) error {
	if c.inst != nil || c.proto == nil {
		return nil
	}
	c.ops = state.NewOperator()
	in, err := c.proto.copy(keyed, c.ops, &c.ctx.time)
	if err != nil {
		return err
	}
	c.inst, c.sides = in, in.sides
	return nil
}

// declare implements declared for operators without keys.
func (c *core[U]) declare() ([]snapshot.StateSchema, []sideOutput, error) {
	if err := c.instantiate(nil); err != nil || c.proto == nil {
		return nil, nil, err
	}
	return c.ops.Schemas(), c.sides, nil
}

// function is the subtask's copy.
func (c *core[U]) function() any {
	if c.inst == nil {
		return nil
	}
	return c.inst.function
}

// Setup implements operator.Operator.
func (c *core[U]) Setup(rt *operator.Runtime) error {
	c.Runtime = rt
	c.ctx.runtime, c.ctx.watermark, c.ctx.time = rt, base.NoTime, base.NoTime
	c.out.Init()
	for _, s := range c.sides {
		s.out.Init()
	}
	return nil
}

// Output implements operator.Operator.
func (c *core[U]) Output(tag string) any {
	if tag == "" {
		return &c.out
	}
	for _, s := range c.sides {
		if s.name == tag {
			return s.out
		}
	}
	return nil
}

// Open implements operator.Operator.
func (c *core[U]) Open() error {
	f, ok := c.function().(opener)
	if !ok {
		return nil
	}
	rt := c.Runtime
	return f.Open(OpenContext{Context: rt.Context, Subtask: rt.Subtask, Parallelism: rt.Parallelism, Attempt: rt.Exec.Attempt.Number(), Restored: rt.Restored})
}

// Close implements operator.Operator.
func (c *core[U]) Close() error {
	if f, ok := c.function().(closer); ok && c.Runtime != nil {
		return f.Close()
	}
	return nil
}

// Complete implements operator.Operator.
func (c *core[U]) Complete(id base.CheckpointID) error {
	if f, ok := c.function().(completer); ok {
		return f.CheckpointCompleted(int64(id))
	}
	return nil
}

// Abort implements operator.Operator.
func (c *core[U]) Abort(id base.CheckpointID) error {
	if f, ok := c.function().(aborter); ok {
		return f.CheckpointAborted(int64(id))
	}
	return nil
}

// Watermark implements operator.Control.
func (c *core[U]) Watermark(t base.EventTime) error {
	c.ctx.watermark = t
	return c.each(func(o operator.Output) error { return o.Watermark(t) })
}

// Idle implements operator.Control.
func (c *core[U]) Idle(idle bool) error {
	return c.each(func(o operator.Output) error { return o.Idle(idle) })
}

// EndOfData implements operator.Control: the function's EndOfInput comes first, if the input is at its own end.
func (c *core[U]) EndOfData(drained bool) error {
	if f, ok := c.function().(ender[U]); ok && drained {
		before := c.Enter()
		c.at(base.NoTime)
		if err := f.EndOfInput(Out[U]{e: &c.out}); err != nil {
			return err
		}
		c.Leave(before)
	}
	return c.each(func(o operator.Output) error { return o.EndOfData(drained) })
}

// each calls the main output and the side outputs.
func (c *core[U]) each(call func(operator.Output) error) error {
	for _, s := range c.sides {
		if err := call(s.out); err != nil {
			return err
		}
	}
	return call(&c.out)
}

// flush pushes what the function has emitted.
func (c *core[U]) flush() error {
	for _, s := range c.sides {
		if err := s.out.Flush(); err != nil {
			return err
		}
	}
	return c.out.Flush()
}

// at sets the timestamp of the record or timer that comes next.
func (c *core[U]) at(t base.EventTime) {
	c.ctx.time = t
	c.out.At(t)
}

// Restore implements operator.Operator, for operators without keys.
func (c *core[U]) Restore(r *operator.Restored) error {
	if err := refuse(r, keyedState); err != nil {
		return err
	}
	return c.restoreUnkeyed(r)
}

// restoreUnkeyed restores all but state by key.
func (c *core[U]) restoreUnkeyed(r *operator.Restored) error {
	c.ctx.watermark = r.Watermark
	if c.inst == nil {
		return refuse(r, listState)
	}
	err := restoreOperatorState(c.ops, r)
	c.warnOfDropped(c.ops.Dropped())
	return err
}

// warnOfDropped tells which states of the checkpoint the function declares no more: -n has let them go. One subtask is enough.
func (c *core[U]) warnOfDropped(names []string) {
	if rt := c.Runtime; len(names) > 0 && rt.Subtask == 0 {
		rt.Log.Warn("State was dropped that the operator declares no more.", "operator", rt.Name, "uid", rt.UID, "states", names)
	}
}

// Snapshot implements operator.Operator.
func (c *core[U]) Snapshot(operator.Cut) (operator.Part, error) {
	part := operator.Part{State: snapshot.Subtask{Watermark: c.ctx.watermark, PendingWatermark: base.NoTime}}
	if c.inst != nil && c.inst.operator {
		addOperatorState(&part, c.Runtime, c.ops)
	}
	return part, nil
}

// addNode makes the node of an operator with a user's function and the output U, and reports what is wrong with the function.
func addNode[U any](e *Env, name string, proto *prototype, factory task.Factory) *graph.Node {
	n := e.add(graph.Transform, name, factory)
	for _, p := range proto.problems {
		e.problem("operator %q (made at %s): %s", n.Name, n.Made, p)
	}
	_, n.EndsInput = proto.original.(ender[U])
	if len(proto.problems) > 0 {
		e.refused = append(e.refused, n)
		return n
	}
	schemas, sides, err := factory().(declared).declare()
	if err != nil {
		e.problem("operator %q (made at %s): %v", n.Name, n.Made, err)
		e.refused = append(e.refused, n)
	}
	n.Schemas = schemas
	for i, s := range schemas {
		n.Union = n.Union || s.Kind == state.KindUnion
		if same := func(o snapshot.StateSchema) bool { return o.Name == s.Name }; slices.ContainsFunc(schemas[:i], same) {
			e.problem("operator %q (made at %s): state %q is declared twice, by key and of the operator; give one of them another name", n.Name, n.Made, s.Name)
		}
	}
	e.declareSides(n, sides)
	return n
}

// declareSides notes the side outputs of a node.
func (e *Env) declareSides(n *graph.Node, sides []sideOutput) {
	for _, s := range sides {
		if e.sides == nil {
			e.sides = map[sideKey]reflect.Type{}
		}
		if _, twice := e.sides[sideKey{n.ID, s.name}]; twice {
			e.problem("operator %q (made at %s) declares two side outputs named %q", n.Name, n.Made, s.name)
		}
		e.sides[sideKey{n.ID, s.name}] = s.typ
	}
}

// hasSide tells whether a node declares a side output of that name and type, and reports it if it does not. Of a node whose
// function was refused nothing is known, and nothing more is said.
func (e *Env) hasSide(n *graph.Node, name string, typ reflect.Type, line string) bool {
	declared := e.sides[sideKey{n.ID, name}]
	switch {
	case slices.Contains(e.refused, n):
		return false
	case declared == nil:
		e.problem("operator %s has no side output %q of %s (asked for at %s): declare a field X weir.Side[%s] `side:%q`", n.Label(), name, typ, line, typ, name)
	case declared != typ:
		e.problem("the side output %q of operator %s is of %s, but asked for as one of %s (at %s)", name, n.Label(), declared, typ, line)
	}
	return declared == typ
}

// sideKey names a side output in a graph.
type sideKey struct {
	node graph.NodeID
	name string
}
