package weir

import (
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/state"
)

// Context is what a function knows of the record that it processes. It is valid during the call.
type Context struct {
	time      base.EventTime
	watermark base.EventTime
	runtime   *operator.Runtime
}

// Timestamp is the record's timestamp; false: it has none. For a timer it is the time that the timer was registered for.
func (c *Context) Timestamp() (time.Time, bool) { return c.time.Time(), c.time != base.NoTime }

// Watermark is the operator's current watermark: no record at or before it is expected. The zero Time: there is none yet.
func (c *Context) Watermark() time.Time { return c.watermark.Time() }

// Subtask is the number of the subtask, of the operator's parallelism.
func (c *Context) Subtask() (index, of int) { return c.runtime.Subtask, c.runtime.Parallelism }

// Now is processing time, as of the beginning of the slice of records that the task works on.
func (c *Context) Now() time.Time { return time.Unix(0, c.runtime.Now()) }

// KeyedContext is a Context of a record or timer with a key.
type KeyedContext[K comparable] struct {
	Context
	key    K
	timers *keyedTimers[K]
}

// keyedTimers are the timers of an operator.
type keyedTimers[K comparable] struct {
	event, processing *state.Timers[K]
	used              bool // OnTimer is there

	// While timers fire at the end of time:
	ending bool
	firing base.EventTime // of the one that fires
}

// Key is the key of the record or timer.
func (c *KeyedContext[K]) Key() K { return c.key }

// EventTimer registers a timer of the key: OnTimer is called once the watermark reaches at. A timer that is registered
// already stays one. At the end of the input, when time has no further to go, a timer that OnTimer registers for its own
// time or before is not kept: else it would fire for ever.
func (c *KeyedContext[K]) EventTimer(at time.Time) {
	c.timers.check()
	t := base.TimeOf(at)
	if c.timers.ending && t <= c.timers.firing {
		return
	}
	c.timers.event.Register(t)
}

// ProcessingTimer registers a timer of the key: OnTimer is called once the machine's clock reaches at.
func (c *KeyedContext[K]) ProcessingTimer(at time.Time) {
	c.timers.check()
	c.timers.processing.Register(base.TimeOf(at))
}

// DeleteEventTimer removes a timer of the key, if there is one at that time.
func (c *KeyedContext[K]) DeleteEventTimer(at time.Time) { c.timers.event.Delete(base.TimeOf(at)) }

// DeleteProcessingTimer removes a timer of the key, if there is one at that time.
func (c *KeyedContext[K]) DeleteProcessingTimer(at time.Time) {
	c.timers.processing.Delete(base.TimeOf(at))
}

// check refuses timers that nobody would hear.
func (t *keyedTimers[K]) check() {
	if !t.used {
		panic(&state.UsageError{Problem: "a timer was registered by a function without an OnTimer method: " +
			"add OnTimer(*weir.KeyedContext[K], weir.Timer, weir.Out[U]) error"})
	}
}
