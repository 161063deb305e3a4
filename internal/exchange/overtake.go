package exchange

import (
	"slices"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
)

// Unaligned barriers overtake what is queued. The queue of a channel is the sender's and the receiver's in one, so a barrier that
// is sent with priority has arrived at once, and everything before it is the receiver's to process or to record; only a mark
// stays in the queue:
//
//	receiver <- [ a b c | d e ] <- sender      ahead = 3: a, b, c were overtaken; d and e came behind the barrier
//
// An aligned barrier that may turn unaligned stands in the queue, and is announced beside it. Prioritize takes it out, and leaves
// the mark in its place.

// Urgent is what the receiver must know before it takes another element.
type Urgent struct {
	Channel int
	Barrier *checkpoint.Barrier
	// Announced: the barrier stands in the queue. Else it has overtaken what is there.
	Announced bool
	// Ended: there is no barrier, and none will come: the sender has ended while its records were recorded. All are.
	Ended bool
}

// Urgent takes what has come so, in the order of its arrival; nil: nothing has. It costs one atomic load where nothing has.
func (g *Gate) Urgent() []Urgent {
	if !g.alarm.Load() {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.urgent
	g.urgent = nil
	g.alarm.Store(false)
	return all
}

func (g *Gate) urgeLocked(u Urgent) {
	g.urgent = append(g.urgent, u)
	g.alarm.Store(true)
}

// Overtake sends a barrier past everything that is queued in the channels.
func (p *Partition) Overtake(b *checkpoint.Barrier) {
	for _, c := range p.channels {
		c.overtake(b)
	}
}

func (c *Channel) overtake(b *checkpoint.Barrier) {
	g := c.gate
	g.mu.Lock()
	if c.closed {
		g.mu.Unlock()
		return
	}
	c.overtookLocked(b, c.length)
	g.mu.Unlock()
	g.bell.Ring()
}

// overtookLocked: b has overtaken the first n elements.
func (c *Channel) overtookLocked(b *checkpoint.Barrier, n int) {
	c.barrier, c.ahead = b.ID, n
	c.sentLocked(b.ID)
	c.gate.urgeLocked(Urgent{Channel: c.number, Barrier: b})
}

// barrierSentLocked hears of a barrier that was put into the queue.
func (c *Channel) barrierSentLocked(b *checkpoint.Barrier) {
	c.sentLocked(b.ID)
	if b.Timeout > 0 && !b.Forced {
		c.gate.urgeLocked(Urgent{Channel: c.number, Barrier: b, Announced: true})
	}
}

// endedLocked hears that the sender has sent its last element, which is the last in the queue.
func (c *Channel) endedLocked() {
	if id := c.recording; id != 0 {
		c.recording, c.barrier, c.ahead = 0, id, c.length-1
		c.gate.urgeLocked(Urgent{Channel: c.number, Ended: true})
	}
}

// sentLocked: a barrier is on its way, or has come; what is sent from here on is behind it.
func (c *Channel) sentLocked(id base.CheckpointID) {
	c.sent = max(c.sent, id)
	if c.recording <= id {
		c.recording = 0
	}
}

// Prioritize lets the announced barrier of checkpoint id overtake what is queued before it in channel i, and gives it; nil: it is
// not there any more.
func (g *Gate) Prioritize(i int, id base.CheckpointID) *checkpoint.Barrier {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.channels[i]
	n := c.findLocked(id)
	if n < 0 {
		return nil
	}
	b := c.atLocked(n).Barrier
	for j := n; j+1 < c.length; j++ {
		*c.atLocked(j) = *c.atLocked(j + 1)
	}
	*c.atLocked(c.length - 1) = Element{}
	c.length--
	switch {
	case c.barrier < id:
		c.barrier, c.ahead = id, n
	case n < c.ahead: // the next one has overtaken meanwhile, this one too
		c.ahead--
	}
	return b
}

// findLocked is the place of the barrier of checkpoint id in the queue; -1: it is not there.
func (c *Channel) findLocked(id base.CheckpointID) int {
	for j := range c.length {
		if e := c.atLocked(j); e.Kind == Barrier && e.Barrier.ID == id {
			return j
		}
	}
	return -1
}

func (c *Channel) atLocked(j int) *Element { return &c.queue[(c.first+j)%len(c.queue)] }

// Seal lets of channel i only what the last barrier has overtaken be taken, until Unblock.
func (g *Gate) Seal(i int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.channels[i].sealed = true
}

// Record keeps what is in flight in channel i for checkpoint id: what is queued before its barrier, and if that has not come
// yet, what is sent until it does. over: it cannot come any more, as the sender has ended; all that it sent is kept. Of a checkpoint
// whose barrier the sender has passed over, for the next one's, nothing is kept: the next one ends it.
func (g *Gate) Record(i int, id base.CheckpointID) (over bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.channels[i]
	n, announced := c.length, c.findLocked(id)
	switch {
	case c.barrier == id:
		n = c.ahead
	case announced >= 0:
		n = announced
	case c.sent > id:
		n = 0
	case c.length > 0 && c.atLocked(c.length-1).Kind == EndOfPartition:
		c.barrier, c.ahead, over = id, c.length-1, true
	default:
		c.recording = id
	}
	for j := range n {
		if e := c.atLocked(j); e.Kind == Data {
			e.Payload.Retain(1)
			c.recorded = append(c.recorded, e.Payload)
		}
	}
	return over
}

// Recorded ends Record, and gives what was kept, in order: the caller releases it.
func (g *Gate) Recorded(i int) []Payload {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.channels[i]
	all := c.recorded
	c.recording, c.recorded = 0, nil
	return all
}

// Preload puts payloads in front of everything in channel i: they were on their way when the checkpoint was taken that the
// receiver is restored from.
func (g *Gate) Preload(i int, payloads []Payload) {
	c := g.channels[i]
	g.mu.Lock()
	for _, p := range slices.Backward(payloads) {
		if c.length == len(c.queue) {
			c.growLocked()
		}
		c.first = (c.first - 1 + len(c.queue)) % len(c.queue)
		c.queue[c.first] = Element{Kind: Data, Payload: p}
		c.length++
		c.waiting.Add(1)
	}
	c.offerLocked()
	g.mu.Unlock()
	if p := c.sender.Load(); p != nil {
		p.recount()
	}
}
