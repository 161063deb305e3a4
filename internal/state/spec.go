package state

import (
	"fmt"
	"time"
)

// Spec is a state as the user's tag declares it.
type Spec struct {
	// Name identifies the state among those of its operator, in every checkpoint.
	Name string
	// TTL is how long a value, a list's element or a map's entry lives after it was last written; 0: for ever.
	TTL time.Duration
	// Was is the name under which older checkpoints have the state, after a renaming.
	Was string
	// Immutable promises that what a Get returns is never changed in place, so that it need not be cloned when a snapshot
	// may be reading it.
	Immutable bool
}

// The kinds of states, as schemas name them.
const (
	KindValue       = "value"
	KindList        = "list"
	KindMap         = "map"
	KindReducing    = "reducing"
	KindAggregating = "aggregating"
	KindTimers      = "timers"
	KindOpList      = "oplist"
	KindUnion       = "union"
	KindBroadcast   = "broadcast"
)

// UsageError is the panic of a state that is used where it cannot be: the task that runs the user's function recovers it.
type UsageError struct {
	State   string // its name; empty: the field was never bound
	Problem string
}

func (e *UsageError) Error() string {
	if e.State == "" {
		return "state: " + e.Problem
	}
	return fmt.Sprintf("state %q: %s", e.State, e.Problem)
}

// NonRecoverable is true: the same program does the same again, so no restart helps.
func (e *UsageError) NonRecoverable() bool { return true }

const (
	otherKey = "the key of a record is not the one that it had when it was sent here: the function given to KeyBy must return the " +
		"same key whenever it is asked for the same record (it must not read a clock, a random number or anything that changes)"
	unbound = "a state field that is not part of an open operator was used; declare it as an exported field of the function's " +
		"struct with a tag `state:\"name\"`, and use it only in the methods the engine calls"
	outsideCall = "used outside a keyed call; use it only while a record or timer of a key is being processed, on the same goroutine " +
		"(not in Open or Close, nor from a goroutine of your own)"
)

// expired reports whether something written at stamp has outlived ttl. Times that overflow never come; a clock that was
// set back makes nothing expire, for then the age is less than nothing.
func expired(stamp int64, ttl time.Duration, now int64) bool {
	end := stamp + int64(ttl)
	return end <= now && (end >= stamp || stamp < 0)
}
