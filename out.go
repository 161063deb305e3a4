package weir

import (
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/operator"
)

// Out is where a function emits records. It is valid during the call that it was given to.
type Out[T any] struct {
	e      *operator.Emitter[T]
	splits *splitProgress // of a source's reader; else nil
}

// Emit sends v on, with the timestamp of the record or timer being processed. It is not copied on its way, not between the
// tasks of a process either: what v refers to (slices, maps, pointers) must not change afterwards, so of a state's value that
// is changed in place a copy is to be emitted.
func (o Out[T]) Emit(v T) { o.e.Emit(v) }

// EmitAt sends v on, with a timestamp of its own.
func (o Out[T]) EmitAt(v T, at time.Time) { o.e.EmitAt(v, base.TimeOf(at)) }

// Split says, in a reader, that the records that follow are of the split with this id. The source's watermark is then the
// least over all splits that the reader was given and has not finished by SplitDone, so that no split's records are late because
// another one is ahead. A split that has had no record for Watermarks.Idle is passed over; without Idle, an empty one holds
// time back.
func (o Out[T]) Split(id string) Out[T] {
	if o.splits != nil {
		o.e.Push()
		o.splits.enter(id)
	}
	return o
}

// SplitDone says, in a reader, that the split has no more records.
func (o Out[T]) SplitDone(id string) {
	if o.splits != nil {
		o.e.Push()
		o.splits.finish(id)
	}
}

// Watermark says, in a reader, that of the split at hand no record at or before t follows; without Split, of the whole reader. The source's
// watermark follows at once, behind what was emitted, as far as the other splits allow. It is for inputs that carry their time in
// themselves; most leave it to Watermarks.
func (o Out[T]) Watermark(t time.Time) {
	if o.splits != nil {
		o.e.Push()
		o.splits.reach(base.TimeOf(t))
	}
}

// Idle says, in a reader, that the split at hand, or without Split the whole reader, holds watermarks back no more until it has a
// record again.
func (o Out[T]) Idle() {
	if o.splits != nil {
		o.e.Push()
		o.splits.rest()
	}
}
