package rest

import (
	"crypto/rand"
	"encoding/hex"
	"sync"
	"time"
)

// storedFor is how long the end of an operation is known (Flink's rest.async.store-duration).
const storedFor = 5 * time.Minute

// operationKind keeps apart what is asked for at different paths. A stop is asked for as a savepoint.
type operationKind string

const (
	savepointOperation  operationKind = "savepoint"
	checkpointOperation operationKind = "checkpoint"
	disposalOperation   operationKind = "disposal"
)

// operationKey names an operation; the disposal of a savepoint is of no job.
type operationKey struct {
	kind    operationKind
	job     string
	trigger string
}

// operation is something that takes its time.
type operation struct {
	body    any // how it ended, once it has
	ended   time.Time
	fetched bool // somebody has heard how it ended
}

// operations are those that are under way, and those that ended of late.
type operations struct {
	mu      sync.Mutex
	all     map[operationKey]*operation // protected by mu
	running int                         // protected by mu
	changed chan struct{}               // closed and replaced when one ends, or somebody has heard of an end; protected by mu
}

func newOperations() *operations {
	return &operations{all: map[operationKey]*operation{}, changed: make(chan struct{})}
}

// newTrigger is a trigger id for who brought none.
func newTrigger() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// begin begins an operation; it does nothing where there is one of this key. What do returns is told of it.
func (o *operations) begin(key operationKey, do func() any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forgetLocked()
	if o.all[key] != nil {
		return
	}
	o.all[key] = &operation{}
	o.startLocked(o.all[key], do)
}

// startLocked has do done on a goroutine of the operation's own, which ends with it.
func (o *operations) startLocked(op *operation, do func() any) {
	o.running++
	go o.run(op, do)
}

func (o *operations) run(op *operation, do func() any) {
	body := do()
	o.mu.Lock()
	defer o.mu.Unlock()
	op.body, op.ended = body, time.Now()
	o.running--
	o.changeLocked()
}

func (o *operations) changeLocked() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// forgetLocked forgets what ended long ago.
func (o *operations) forgetLocked() {
	for key, op := range o.all {
		if !op.ended.IsZero() && time.Since(op.ended) > storedFor {
			delete(o.all, key)
		}
	}
}

// look is how an operation ended; nil: it has not.
func (o *operations) look(key operationKey) (body any, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forgetLocked()
	op := o.all[key]
	if op == nil {
		return nil, false
	}
	if op.body != nil && !op.fetched {
		op.fetched = true
		o.changeLocked()
	}
	return op.body, true
}

// settle waits until all operations have ended, and all ends are fetched that came within the last while; for these not longer than it.
func (o *operations) settle(while time.Duration) {
	late := time.NewTimer(while)
	defer late.Stop()
	for {
		o.mu.Lock()
		wait := o.waitLocked(while)
		o.mu.Unlock()
		if wait == nil {
			return
		}
		select {
		case <-wait:
		case <-late.C:
			while = 0
		}
	}
}

// waitLocked is closed at the next change; nil: there is nothing to wait for.
func (o *operations) waitLocked(while time.Duration) <-chan struct{} {
	if o.running > 0 {
		return o.changed
	}
	for _, op := range o.all {
		if !op.fetched && time.Since(op.ended) < while {
			return o.changed
		}
	}
	return nil
}
