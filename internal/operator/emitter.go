package operator

import (
	"github.com/weirstream/weir/internal/base"
)

// Control is what travels beside the records of a chain, in their order.
type Control interface {
	// Watermark says that no record at or before t follows.
	Watermark(t base.EventTime) error
	// Idle says whether the input holds watermarks back no more (true), or does again.
	Idle(idle bool) error
	// EndOfData says that no record follows. Drained: the input is at its own end, and what is buffered is to come out;
	// else the job is suspended and goes on later from its state.
	EndOfData(drained bool) error
}

// In is where records enter an operator of a chain.
type In[T any] interface {
	// Push lends a batch. When it returns, everything that the batch caused has passed the rest of the chain.
	Push(b *Batch[T]) error
	Control
}

// Emitter is the output of an operator: it gathers the records of one slice of input and pushes them on.
//
// Emit stores at a place that Next finds in arrays of fixed length: so it is small enough to be inlined into the user's
// function, and a large record is copied once, where as an argument it would be twice. An error further down the chain is kept
// until the operator asks for it, after each slice; what is emitted in between is dropped, as the task is about to fail.
type Emitter[T any] struct {
	values []T
	times  []base.EventTime
	n      int
	time   base.EventTime
	hop    hop[T]
}

// hop is the slow half of an emitter.
type hop[T any] struct {
	batch Batch[T]
	outs  []In[T]
	stamp func(*Batch[T]) error
	sent  int
	err   error
}

// emitterRecords is the number of records after which an emitter pushes in mid-slice.
const emitterRecords = 128

// Init makes the emitter ready for records.
func (e *Emitter[T]) Init() {
	n := min(emitterRecords, capacityOf[T]())
	e.values, e.times = make([]T, n), make([]base.EventTime, n)
	e.time = base.NoTime
}

// To adds a receiver.
func (e *Emitter[T]) To(in In[T]) { e.hop.outs = append(e.hop.outs, in) }

// Stamp has f look at each batch before it is pushed; f may change the timestamps.
func (e *Emitter[T]) Stamp(f func(*Batch[T]) error) { e.hop.stamp = f }

// Sent is the number of records pushed so far.
func (e *Emitter[T]) Sent() int { return e.hop.sent }

// At sets the timestamp of the records that follow.
func (e *Emitter[T]) At(t base.EventTime) { e.time = t }

// Time is the timestamp that Emit gives.
func (e *Emitter[T]) Time() base.EventTime { return e.time }

// Emit sends v with the timestamp set by At.
func (e *Emitter[T]) Emit(v T) { *e.Next() = v }

// Next is the place of a record with the timestamp set by At, for the caller to fill before it emits anything else.
func (e *Emitter[T]) Next() *T {
	i := e.n
	if i >= len(e.values) {
		e.push()
		i = 0
	}
	e.n = i + 1
	e.times[i] = e.time
	return &e.values[i]
}

// Pending is true where records wait for Push or Flush.
func (e *Emitter[T]) Pending() bool { return e.n > 0 }

// Push pushes what was gathered; the next Flush returns its error.
func (e *Emitter[T]) Push() {
	if e.n > 0 {
		e.push()
	}
}

// EmitAt sends v with a timestamp of its own.
func (e *Emitter[T]) EmitAt(v T, t base.EventTime) {
	own := e.time
	e.time = t
	e.Emit(v)
	e.time = own
}

// Pass sends on the records [from, to) of a batch that was lent, as they are. A long run is lent in turn, a short one copied.
func (e *Emitter[T]) Pass(b *Batch[T], from, to int) {
	if to-from >= lendLeast {
		e.Push()
		e.hop.push(b.Values[from:to], b.Times[from:to])
		return
	}
	for ; from < to; from++ {
		e.time = b.Times[from]
		*e.Next() = b.Values[from]
	}
}

// lendLeast is the least number of records that Pass lends: what a push costs, many copies cost.
const lendLeast = 16

// push lends what was gathered to the receivers.
func (e *Emitter[T]) push() {
	e.hop.push(e.values[:e.n], e.times[:e.n])
	clear(e.values[:e.n])
	e.n = 0
}

// push lends records to the receivers.
func (h *hop[T]) push(values []T, times []base.EventTime) {
	h.batch.Values, h.batch.Times = values, times
	h.sent += len(values)
	if h.stamp != nil && h.err == nil {
		h.err = h.stamp(&h.batch)
	}
	for _, in := range h.outs {
		if h.err != nil {
			break
		}
		h.err = in.Push(&h.batch)
	}
}

// Flush pushes what was gathered, and returns the first error of the chain behind.
func (e *Emitter[T]) Flush() error {
	e.Push()
	return e.hop.err
}

// Watermark sends t behind what was emitted.
func (e *Emitter[T]) Watermark(t base.EventTime) error {
	return e.control(func(c Control) error { return c.Watermark(t) })
}

// Idle sends the status behind what was emitted.
func (e *Emitter[T]) Idle(idle bool) error {
	return e.control(func(c Control) error { return c.Idle(idle) })
}

// EndOfData sends the end behind what was emitted.
func (e *Emitter[T]) EndOfData(drained bool) error {
	return e.control(func(c Control) error { return c.EndOfData(drained) })
}

// Control is for what is said in the middle of user code that hears no error: the next Flush returns it.
func (e *Emitter[T]) Control(send func(Control) error) {
	if err := e.control(send); e.hop.err == nil {
		e.hop.err = err
	}
}

func (e *Emitter[T]) control(send func(Control) error) error {
	if err := e.Flush(); err != nil {
		return err
	}
	for _, in := range e.hop.outs {
		if err := send(in); err != nil {
			return err
		}
	}
	return nil
}

// Output is the untyped face of an emitter.
type Output interface {
	Control
	Init()
	Flush() error
}
