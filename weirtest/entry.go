package weirtest

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/operator"
)

// entry is where the records of one input go into the piece: along each of the input's edges to the subtasks that an exchange would choose.
type entry[T any] struct {
	r         *rig
	edges     []entryEdge[T]
	guard     *operator.Emitter[T]
	check     func()
	watermark base.EventTime
	idle      bool
	ended     bool
}

// entryEdge is one of the edges.
type entryEdge[T any] struct {
	*graph.Edge
	hash   func([]T, []uint64) error // of a hash edge
	choose func(T, int) int
	turn   int
}

func newEntry[T any](r *rig, edges []*graph.Edge) *entry[T] {
	e := &entry[T]{r: r, guard: &operator.Emitter[T]{}, watermark: base.NoTime}
	for _, edge := range edges {
		wire := edge.Wire.(*operator.Edge[T])
		x := entryEdge[T]{Edge: edge, choose: wire.Choose}
		if wire.Hasher != nil {
			x.hash = wire.Hasher()
		}
		e.edges = append(e.edges, x)
	}
	e.guard.Init()
	e.check = e.guard.Guard(func(err error) { r.t.Errorf("weirtest: an input: %v", err) })
	return e
}

// push pushes a record.
func (e *entry[T]) push(c *clocks, v T, at base.EventTime) {
	e.r.t.Helper()
	e.r.step("Push", func() error {
		if e.ended {
			return errEndedInput
		}
		if e.idle {
			e.idle = false
			if err := c.tell(e.r); err != nil {
				return err
			}
		}
		e.r.stored.before()
		e.guard.Emit(v)
		if err := e.guard.Flush(); err != nil {
			return err
		}
		var own []place
		for i := range e.edges {
			touched, err := e.along(&e.edges[i], v, at)
			if err != nil {
				return err
			}
			own = append(own, touched)
		}
		e.r.stored.after(own...)
		e.check()
		return nil
	})
}

var errEndedInput = errors.New("the input has ended: nothing can come behind its end")

// advance says that no record at or before t follows.
func (e *entry[T]) advance(c *clocks, t base.EventTime) {
	e.r.t.Helper()
	e.say("Watermark", c, func() { e.watermark, e.idle = max(e.watermark, t), false })
}

// rest says that the input is idle.
func (e *entry[T]) rest(c *clocks) {
	e.r.t.Helper()
	e.say("Idle", c, func() { e.idle = true })
}

// end ends the input; with the last one, the data ends.
func (e *entry[T]) end(c *clocks) {
	e.r.t.Helper()
	e.say("End", c, func() { e.ended = true })
}

func (e *entry[T]) say(what string, c *clocks, change func()) {
	e.r.t.Helper()
	e.r.step(what, func() error {
		if e.ended {
			return errEndedInput
		}
		change()
		if err := c.tell(e.r); err != nil || !c.allEnded() {
			return err
		}
		if err := e.r.settle(); err != nil { // timers come before the end
			return err
		}
		e.r.over = true
		return e.r.control(func(to operator.Control) error { return to.EndOfData(true) })
	})
}

// along pushes a record along an edge.
func (e *entry[T]) along(x *entryEdge[T], v T, at base.EventTime) (own place, err error) {
	hashes := make([]uint64, 1)
	if x.hash != nil {
		if err := x.hash([]T{v}, hashes); err != nil {
			return place{}, err
		}
	}
	n := len(e.r.subtasks)
	for _, i := range x.receivers(v, hashes[0], n) {
		if i < 0 || i >= n {
			return place{}, fmt.Errorf("the partition function returned %d for %d receivers", i, n)
		}
		in := e.r.subtasks[i].ops[x.To].Input(x.Input).(operator.In[T])
		b := &operator.Batch[T]{Values: []T{v}, Times: []base.EventTime{at}}
		if x.hash != nil {
			b.Hashes = hashes
		}
		if err := e.r.as(e.r.node(x.To), func() error { return in.Push(b) }); err != nil {
			return place{}, err
		}
	}
	return place{x.To, hashes[0]}, nil
}

// receivers are the subtasks, of n, that an exchange would choose.
func (x *entryEdge[T]) receivers(v T, hash uint64, n int) []int {
	switch x.Partitioning {
	case graph.Hash:
		return []int{base.OwnerOf(hash, n)}
	case graph.Broadcast:
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all
	case graph.Global:
		return []int{0}
	case graph.Custom:
		return []int{x.choose(v, n)}
	case graph.Forward, graph.Rebalance, graph.Rescale:
		x.turn++
		return []int{(x.turn - 1) % n}
	}
	panic(fmt.Sprintf("weirtest: partitioning %v", x.Partitioning))
}

// timeOf is a timestamp; the zero Time is none.
func timeOf(t time.Time) base.EventTime {
	if t.IsZero() {
		return base.NoTime
	}
	return base.TimeOf(t)
}

// ---- what the harnesses' inputs say of time, together

// clock is an entry without its type.
type clock interface {
	mark() (watermark base.EventTime, idle, ended bool)
	reset(watermark base.EventTime, ended bool)
}

func (e *entry[T]) mark() (base.EventTime, bool, bool) { return e.watermark, e.idle, e.ended }
func (e *entry[T]) reset(watermark base.EventTime, ended bool) {
	e.watermark, e.idle, e.ended = watermark, false, ended
}

// clocks are all inputs of a harness, and what its operators know of them.
type clocks struct {
	inputs    []clock
	watermark base.EventTime
	idle      bool
}

// tell hands on what the inputs say together: the least watermark of those that are not idle; whether all of them are.
func (c *clocks) tell(r *rig) error {
	least, idle, active := base.EndOfTime, true, false
	for _, in := range c.inputs {
		w, resting, ended := in.mark()
		if ended {
			continue
		}
		if idle = idle && resting; !resting {
			least, active = min(least, w), true
		}
	}
	if done := c.allEnded(); (active || done) && least > c.watermark {
		c.watermark = least
		if err := r.control(func(to operator.Control) error { return to.Watermark(least) }); err != nil {
			return err
		}
	}
	if idle != c.idle && !c.allEnded() {
		c.idle = idle
		return r.control(func(to operator.Control) error { return to.Idle(idle) })
	}
	return nil
}

func (c *clocks) allEnded() bool {
	for _, in := range c.inputs {
		if _, _, ended := in.mark(); !ended {
			return false
		}
	}
	return true
}

// restored has everything begin from a restored watermark, or from an end.
func (c *clocks) restored(watermark base.EventTime, ended bool) {
	c.watermark, c.idle = watermark, false
	for _, in := range c.inputs {
		in.reset(watermark, ended)
	}
}
