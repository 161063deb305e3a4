package weir

import (
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
)

// Watermarks says how event time is read off the records and how far it has come.
type Watermarks[T any] struct {
	// Timestamp is a record's event time; nil: the timestamp that the record has already.
	Timestamp func(T) time.Time
	// OutOfOrderness is how much later than a record with a later timestamp a record may come. The watermark stays that much
	// behind the largest timestamp.
	OutOfOrderness time.Duration
	// Idle is the time without records after which the input is idle: it holds back no watermark until it has records again.
	// 0: never.
	Idle time.Duration
}

// progress is how far event time has come in one split, or in one input.
type progress struct{ largest base.EventTime }

// watermark is the watermark after the records seen.
func (p *progress) watermark(late time.Duration) base.EventTime {
	if p.largest <= base.NoTime+base.EventTime(late)+1 {
		return base.NoTime
	}
	return p.largest - base.EventTime(late) - 1
}

// stamp reads the timestamps of a batch into times.
func (w *Watermarks[T]) stamp(values []T, times []base.EventTime, p *progress) {
	if w.Timestamp != nil {
		for i, v := range values {
			times[i] = base.TimeOf(w.Timestamp(v))
		}
	}
	for _, t := range times {
		p.largest = max(p.largest, t)
	}
}

// Watermarks reads timestamps off the records and makes watermarks, in place of those of the input.
func (s Stream[T]) Watermarks(w Watermarks[T]) Stream[T] {
	u, _ := then[T, T](s, "Watermarks", func() operator.Operator {
		o := &watermarks[T]{spec: w}
		o.ctx = &Context{}
		return o
	})
	return u
}

// watermarks is the operator of Stream.Watermarks.
//
// Its idle clock counts only while the operator is looked at: what passed while the task stood still, blocked by the next
// one, counts as one interval at most. Else back-pressure would make a busy input look idle, the watermark would jump ahead,
// and the records that waited would come late.
type watermarks[T any] struct {
	core[T]
	spec    Watermarks[T]
	seen    progress
	times   []base.EventTime
	view    operator.Batch[T]
	next    int64 // when Tick is due
	last    int64 // the Tick before
	records bool  // since the Tick before
	still   time.Duration
	idle    bool
}

// Input implements operator.Operator.
func (o *watermarks[T]) Input(int) any { return operator.In[T](o) }

// Setup implements operator.Operator.
func (o *watermarks[T]) Setup(rt *operator.Runtime) error {
	o.seen.largest = base.NoTime
	return o.core.Setup(rt)
}

// Push implements operator.In.
func (o *watermarks[T]) Push(b *operator.Batch[T]) error {
	before := o.Enter()
	o.times = append(o.times[:0], b.Times...)
	o.spec.stamp(b.Values, o.times, &o.seen)
	o.records = true
	if o.idle {
		o.idle = false
		if err := o.out.Idle(false); err != nil {
			return err
		}
	}
	for i, v := range b.Values {
		o.out.At(o.times[i])
		o.out.Emit(v)
	}
	err := o.out.Flush()
	if err == nil {
		o.Leave(before)
	}
	return err
}

// Watermark implements operator.Control: only the end of time is handed on.
func (o *watermarks[T]) Watermark(t base.EventTime) error {
	if t != base.EndOfTime {
		return nil
	}
	return o.core.Watermark(t)
}

// Idle implements operator.Control: the operator looks at the records, not at what the input says.
func (o *watermarks[T]) Idle(bool) error { return nil }

// Deadline implements operator.Clocked.
func (o *watermarks[T]) Deadline() (int64, bool) {
	return o.next, o.Runtime.WatermarksEvery > 0
}

// Tick implements operator.Clocked.
func (o *watermarks[T]) Tick(now int64) error {
	every := o.Runtime.WatermarksEvery
	passed := min(time.Duration(now-o.last), every)
	o.last, o.next = now, now+int64(every)
	if t := o.seen.watermark(o.spec.OutOfOrderness); t > o.ctx.watermark {
		if err := o.core.Watermark(t); err != nil {
			return err
		}
	}
	if o.records {
		o.records, o.still = false, 0
		return nil
	}
	o.still += passed
	if o.spec.Idle > 0 && o.still >= o.spec.Idle && !o.idle {
		o.idle = true
		return o.out.Idle(true)
	}
	return nil
}

// EndOfData implements operator.Control.
func (o *watermarks[T]) EndOfData(drained bool) error { return o.core.EndOfData(drained) }

// Snapshot implements operator.Operator.
func (o *watermarks[T]) Snapshot(operator.Cut) (operator.Part, error) {
	return operator.Part{State: snapshot.Subtask{Watermark: o.ctx.watermark, PendingWatermark: base.NoTime}}, nil
}
