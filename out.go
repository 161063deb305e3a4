package weir

import (
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/operator"
)

// Out is where a function emits records. It is valid during the call that it was given to.
type Out[T any] struct{ e *operator.Emitter[T] }

// Emit sends v on, with the timestamp of the record or timer being processed.
func (o Out[T]) Emit(v T) { o.e.Emit(v) }

// EmitAt sends v on, with a timestamp of its own.
func (o Out[T]) EmitAt(v T, at time.Time) { o.e.EmitAt(v, base.TimeOf(at)) }
