package weir

import (
	"github.com/weirstream/weir/internal/operator"
)

// Map makes of each record another one.
func (s Stream[T]) Map[U any](f func(T) U) Stream[U] {
	return apply(s, "Map", func(b *operator.Batch[T], out *operator.Emitter[U]) error {
		for i := range b.Values {
			out.At(b.Times[i])
			*out.Next() = f(b.Values[i])
		}
		return nil
	})
}

// TryMap makes of each record another one. An error fails the job, which restarts from its latest checkpoint.
func (s Stream[T]) TryMap[U any](f func(T) (U, error)) Stream[U] {
	return apply(s, "TryMap", func(b *operator.Batch[T], out *operator.Emitter[U]) error {
		for i := range b.Values {
			u, err := f(b.Values[i])
			if err != nil {
				return err
			}
			out.At(b.Times[i])
			out.Emit(u)
		}
		return nil
	})
}

// Filter keeps the records for which f is true.
func (s Stream[T]) Filter(f func(T) bool) Stream[T] {
	return apply(s, "Filter", func(b *operator.Batch[T], out *operator.Emitter[T]) error {
		from := 0 // where a run of records begins that are kept
		for i := range b.Values {
			if !f(b.Values[i]) {
				if from < i {
					out.Pass(b, from, i)
				}
				from = i + 1
			}
		}
		out.Pass(b, from, len(b.Values))
		return nil
	})
}

// FlatMap makes of each record any number of others. An error fails the job, which restarts from its latest checkpoint.
func (s Stream[T]) FlatMap[U any](f func(T, Out[U]) error) Stream[U] {
	return apply(s, "FlatMap", func(b *operator.Batch[T], out *operator.Emitter[U]) error {
		to := Out[U]{e: out}
		for i := range b.Values {
			out.At(b.Times[i])
			if err := f(b.Values[i], to); err != nil {
				return err
			}
		}
		return nil
	})
}

// apply appends an operator whose function has neither fields nor a context.
func apply[T, U any](s Stream[T], name string, each func(*operator.Batch[T], *operator.Emitter[U]) error) Stream[U] {
	u, _ := then[T, U](s, name, func() operator.Operator { return newSimple(each) })
	return u
}

// simple is an operator that applies a function to each batch.
type simple[T, U any] struct {
	core[U]
	do func(*operator.Batch[T], *operator.Emitter[U]) error
}

func newSimple[T, U any](do func(*operator.Batch[T], *operator.Emitter[U]) error) *simple[T, U] {
	o := &simple[T, U]{do: do}
	o.ctx = &Context{}
	return o
}

// Input implements operator.Operator.
func (o *simple[T, U]) Input(int) any { return operator.In[T](o) }

// Push implements operator.In.
func (o *simple[T, U]) Push(b *operator.Batch[T]) error {
	before := o.Enter()
	if err := o.do(b, &o.out); err != nil {
		return err
	}
	err := o.out.Flush()
	if err == nil {
		o.Leave(before)
	}
	return err
}

// Process applies a function with fields, optional methods and a context.
func (s Stream[T]) Process[U any](f Function[T, U]) Stream[U] {
	proto := inspect(f, methodsOf[U]()).withoutBroadcast()
	n := addNode[U](s.env, "Process", proto, func() operator.Operator {
		o := &process[T, U]{}
		o.ctx, o.proto = &Context{}, proto
		return o
	})
	s.into(n, 0)
	return from[U](s.env, n)
}

// methodsOf are the optional methods of a function without keys.
func methodsOf[U any]() []optional {
	return []optional{optionalOf[opener]("Open"), optionalOf[closer]("Close"), optionalOf[completer]("CheckpointCompleted"),
		optionalOf[aborter]("CheckpointAborted"), optionalOf[ender[U]]("EndOfInput")}
}

// process is the operator of a Function.
type process[T, U any] struct {
	core[U]
	f Function[T, U]
}

// Input implements operator.Operator.
func (o *process[T, U]) Input(int) any { return operator.In[T](o) }

// Setup implements operator.Operator.
func (o *process[T, U]) Setup(rt *operator.Runtime) error {
	if err := o.instantiate(nil); err != nil {
		return err
	}
	o.f = o.inst.function.(Function[T, U])
	return o.core.Setup(rt)
}

// Push implements operator.In.
func (o *process[T, U]) Push(b *operator.Batch[T]) error {
	return run(&o.core, b, o.f.Process)
}

// run calls a function without keys for each record of a batch.
func run[T, U any](c *core[U], b *operator.Batch[T], f func(*Context, T, Out[U]) error) error {
	before := c.Enter()
	out := Out[U]{e: &c.out}
	for i := range b.Values {
		c.at(b.Times[i])
		if err := f(c.ctx, b.Values[i], out); err != nil {
			return err
		}
	}
	err := c.flush()
	if err == nil {
		c.Leave(before)
	}
	return err
}

// Process applies a function to both streams.
func (c Connected[A, B]) Process[U any](f CoFunction[A, B, U]) Stream[U] {
	proto := inspect(f, methodsOf[U]())
	if !c.b.isBroadcast() {
		proto = proto.withoutBroadcast()
	}
	e := c.a.env
	n := addNode[U](e, "CoProcess", proto, func() operator.Operator {
		o := &coProcess[A, B, U]{casts: c.b.isBroadcast()}
		o.ctx, o.proto = &Context{}, proto
		return o
	})
	c.a.into(n, 0)
	c.b.into(n, 1)
	return from[U](e, n)
}

// ConnectBroadcast joins this stream, without keys, and a broadcast one: Process1 sees the records of this stream, Process2
// every broadcast record on every subtask, and may change BroadcastMaps.
func (s Stream[T]) ConnectBroadcast[B any](b BroadcastStream[B]) Connected[T, B] {
	return Connected[T, B]{s, b.s}
}

// coProcess is the operator of a CoFunction.
type coProcess[A, B, U any] struct {
	core[U]
	f     CoFunction[A, B, U]
	casts bool // the second input is broadcast
}

// input is one of several inputs of an operator. Control goes to the operator.
type input[T any] struct {
	operator.Control
	push func(*operator.Batch[T]) error
}

// Push implements operator.In.
func (i input[T]) Push(b *operator.Batch[T]) error { return i.push(b) }

// Input implements operator.Operator.
func (o *coProcess[A, B, U]) Input(i int) any {
	if i == 0 {
		return operator.In[A](input[A]{o, func(b *operator.Batch[A]) error {
			o.inst.locked = o.casts
			err := run(&o.core, b, o.f.Process1)
			o.inst.locked = false
			return err
		}})
	}
	return operator.In[B](input[B]{o, func(b *operator.Batch[B]) error { return run(&o.core, b, o.f.Process2) }})
}

// Setup implements operator.Operator.
func (o *coProcess[A, B, U]) Setup(rt *operator.Runtime) error {
	if err := o.instantiate(nil); err != nil {
		return err
	}
	o.f = o.inst.function.(CoFunction[A, B, U])
	return o.core.Setup(rt)
}
