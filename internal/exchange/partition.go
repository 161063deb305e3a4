package exchange

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Limits bound what may wait in one channel, in batches.
type Limits struct {
	Batches   int // a sender with that many in a channel takes no more input; at least 1
	Overdraft int // beyond Batches: what one slice of input may add before Send waits
}

// Partition is the sending end of one output of a subtask: one channel to each receiver. Only the subtask's own goroutine
// calls Send, Broadcast and Room.
type Partition struct {
	limits   Limits
	bell     Bell // of the sender: there is room again
	channels []*Channel

	// full counts the channels with limits.Batches batches or more, so that Room need not look at each of them.
	full atomic.Int64
	mu   sync.Mutex // one recount at a time

	records, bytes atomic.Int64 // sent
	waited         atomic.Int64 // in Send, in nanoseconds
}

// Sent is how many records went into the channels, each as often as there were channels that it went into, and their bytes. Any
// goroutine may call it.
func (p *Partition) Sent() (records, bytes int64) { return p.records.Load(), p.bytes.Load() }

// Waited is how long Send has waited for room. Any goroutine may call it.
func (p *Partition) Waited() time.Duration { return time.Duration(p.waited.Load()) }

// NewPartition makes the sending end of the given channels; bell rings when a full one has room again.
func NewPartition(channels []*Channel, l Limits, bell Bell) *Partition {
	p := &Partition{limits: l, bell: bell, channels: channels}
	for _, c := range channels {
		c.sender.Store(p)
	}
	return p
}

// Len is the number of channels.
func (p *Partition) Len() int { return len(p.channels) }

// Room is true while no channel is full: the sender may take more input.
func (p *Partition) Room() bool { return p.full.Load() == 0 }

// Full is true where channel i has no room.
func (p *Partition) Full(i int) bool { return int(p.channels[i].waiting.Load()) >= p.limits.Batches }

// Send gives a sealed batch to channel i. Beyond the overdraft it waits until the receiver has taken something, or ctx is
// done: then the batch is released and ctx's error returned.
func (p *Partition) Send(ctx context.Context, i int, b Payload) error {
	if p.overdrawn(i) {
		if err := p.await(ctx, i); err != nil {
			b.Release()
			return err
		}
	}
	p.Put(i, b)
	return nil
}

// overdrawn is true where not even Send puts anything into channel i.
func (p *Partition) overdrawn(i int) bool {
	return int(p.channels[i].waiting.Load()) >= p.limits.Batches+p.limits.Overdraft
}

// await waits until channel i is not overdrawn.
func (p *Partition) await(ctx context.Context, i int) error {
	began := time.Now()
	defer func() { p.waited.Add(int64(time.Since(began))) }()
	for p.overdrawn(i) {
		select {
		case <-p.bell:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Put is Send that never waits, however full the channel is.
func (p *Partition) Put(i int, b Payload) {
	c := p.channels[i]
	p.records.Add(int64(b.Len()))
	p.bytes.Add(int64(b.Bytes()))
	c.put(Element{Kind: Data, Payload: b})
	if int(c.waiting.Load()) >= p.limits.Batches {
		p.recount()
	}
}

// Broadcast puts a control element into every channel. It never waits.
func (p *Partition) Broadcast(e Element) {
	for _, c := range p.channels {
		c.put(e)
	}
}

// recount sets full from the queues. The sender calls it when a channel filled up, a receiver when one has room again. Each
// changes a queue before it takes the mutex, so whoever is last has seen both changes. (A compare-and-swap instead of the
// mutex would let the sender's stale "one full" overwrite the receiver's "none", and the sender would wait for ever.)
func (p *Partition) recount() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := int64(0)
	for _, c := range p.channels {
		if int(c.waiting.Load()) >= p.limits.Batches {
			n++
		}
	}
	p.full.Store(n)
}

// drained hears that a channel has left batches left.
func (p *Partition) drained(left int32) {
	if int(left) == p.limits.Batches-1 || int(left) == p.limits.Batches+p.limits.Overdraft-1 {
		p.recount()
		p.bell.Ring()
	}
}
