package exchange

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirstream/weir/internal/base"
)

// Gate is the receiving end of a subtask: its channels, numbered from 0 over all inputs. Only the subtask's own goroutine
// calls its methods; senders reach it through their partitions.
//
// Channels that hold elements and are not blocked stand in a queue, and Next serves them in turn, so a busy channel does
// not starve a slow one and no call looks at all channels. Sealed ones come last: who seals waits for others.
type Gate struct {
	bell     Bell
	channels []*Channel

	mu     sync.Mutex // protects ready, last, urgent, and the queues of all channels
	ready  []int      // numbers of offered channels, oldest first
	head   int
	last   []int       // offered channels that are sealed, oldest first; some are in ready until it is their turn there
	urgent []Urgent    // not yet taken
	alarm  atomic.Bool // urgent is not empty
}

// Channel is the queue from one sender to one receiver.
type Channel struct {
	gate   *Gate
	number int

	// Protected by gate.mu.
	queue   []Element // a ring
	first   int
	length  int
	offered bool // stands in gate.ready or gate.last
	blocked bool
	closed  bool

	// Of unaligned barriers; overtake.go. Protected by gate.mu.
	barrier   base.CheckpointID // the last one that overtook
	sent      base.CheckpointID // the last one at all
	ahead     int               // elements still queued that it overtook
	sealed    bool              // only those may be taken
	recording base.CheckpointID // 0: none
	recorded  []Payload

	sender  atomic.Pointer[Partition]
	waiting atomic.Int32 // batches in the queue, for the sender
}

// NewGate makes a gate of n channels that rings bell when there is something to take.
func NewGate(n int, bell Bell) *Gate {
	g := &Gate{bell: bell, ready: make([]int, 0, n)}
	for i := range n {
		g.channels = append(g.channels, &Channel{gate: g, number: i})
	}
	return g
}

// Channel is the channel numbered i.
func (g *Gate) Channel(i int) *Channel { return g.channels[i] }

// Len is the number of channels.
func (g *Gate) Len() int { return len(g.channels) }

// Next takes the next element of the next channel that has one; false: there is none, or something Urgent comes first.
func (g *Gate) Next() (channel int, e Element, ok bool) {
	g.mu.Lock()
	for len(g.urgent) == 0 {
		c := g.turnLocked()
		if c == nil {
			break
		}
		if !c.openLocked() {
			c.offered = false
			continue
		}
		e = c.popLocked()
		if c.openLocked() {
			g.ready = append(g.ready, c.number)
		} else {
			c.offered = false
		}
		g.compactLocked()
		g.mu.Unlock()
		c.taken(e)
		return c.number, e, true
	}
	if g.head == len(g.ready) {
		g.ready, g.head = g.ready[:0], 0
	}
	g.mu.Unlock()
	return 0, Element{}, false
}

// turnLocked takes the channel whose turn it is out of its queue; nil: none is offered.
func (g *Gate) turnLocked() *Channel {
	for g.head < len(g.ready) {
		c := g.channels[g.ready[g.head]]
		g.head++
		if !c.sealed {
			return c
		}
		g.last = append(g.last, c.number)
	}
	if len(g.last) == 0 {
		return nil
	}
	c := g.channels[g.last[0]]
	g.last = slices.Delete(g.last, 0, 1)
	return c
}

// compactLocked keeps the queue of ready channels from creeping along its array.
func (g *Gate) compactLocked() {
	if g.head > 64 && g.head > len(g.ready)/2 {
		n := copy(g.ready, g.ready[g.head:])
		g.ready, g.head = g.ready[:n], 0
	}
}

// Block stops the channel numbered i: Next passes it over until Unblock.
func (g *Gate) Block(i int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.channels[i].blocked = true
}

// Unblock offers the channel numbered i again, blocked or sealed.
func (g *Gate) Unblock(i int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.channels[i]
	c.blocked, c.sealed = false, false
	if at := slices.Index(g.last, i); at >= 0 {
		g.last = slices.Delete(g.last, at, at+1)
		g.ready = append(g.ready, i)
	}
	c.offerLocked()
}

// openLocked: the channel has an element that may be taken.
func (c *Channel) openLocked() bool {
	return c.length > 0 && !c.blocked && (!c.sealed || c.ahead > 0)
}

// Close releases what is queued, and whatever is still sent: the receiver is gone.
func (g *Gate) Close() {
	for _, c := range g.channels {
		g.mu.Lock()
		c.closed = true
		var left []Element
		for c.length > 0 {
			left = append(left, c.popLocked())
		}
		kept := c.recorded
		c.recording, c.recorded = 0, nil
		g.mu.Unlock()
		for _, p := range kept {
			p.Release()
		}
		for _, e := range left {
			c.taken(e)
			if e.Payload != nil {
				e.Payload.Release()
			}
		}
	}
}

// put appends an element and wakes the receiver where it may be asleep.
func (c *Channel) put(e Element) {
	g := c.gate
	g.mu.Lock()
	if c.closed {
		g.mu.Unlock()
		if e.Payload != nil {
			e.Payload.Release()
		}
		return
	}
	c.pushLocked(e)
	ring := c.offerLocked() || len(g.urgent) > 0 // who waits for room only must hear of an announcement
	g.mu.Unlock()
	if ring {
		g.bell.Ring()
	}
}

// offerLocked puts the channel into the ready queue where it belongs there; true: the queue was empty.
func (c *Channel) offerLocked() bool {
	if c.offered || !c.openLocked() {
		return false
	}
	g := c.gate
	c.offered = true
	g.ready = append(g.ready, c.number)
	return len(g.ready)-g.head+len(g.last) == 1
}

// pushLocked appends to the ring. A watermark behind a watermark takes its place: nothing lies between them, no barrier either.
func (c *Channel) pushLocked(e Element) {
	if e.Kind == Watermark && c.length > c.ahead {
		if last := &c.queue[(c.first+c.length-1)%len(c.queue)]; last.Kind == Watermark {
			last.Time = max(last.Time, e.Time)
			return
		}
	}
	if c.length == len(c.queue) {
		c.growLocked()
	}
	c.queue[(c.first+c.length)%len(c.queue)] = e
	c.length++
	switch {
	case e.Kind == Data:
		c.waiting.Add(1)
		if c.recording != 0 {
			e.Payload.Retain(1)
			c.recorded = append(c.recorded, e.Payload)
		}
	case e.Kind == Barrier:
		c.barrierSentLocked(e.Barrier)
	case e.Kind == EndOfPartition:
		c.endedLocked()
	}
}

func (c *Channel) growLocked() {
	larger := make([]Element, max(8, 2*len(c.queue)))
	for i := range c.length {
		larger[i] = c.queue[(c.first+i)%len(c.queue)]
	}
	c.queue, c.first = larger, 0
}

func (c *Channel) popLocked() Element {
	e := c.queue[c.first]
	c.queue[c.first] = Element{}
	c.first = (c.first + 1) % len(c.queue)
	c.length--
	c.ahead = max(0, c.ahead-1)
	return e
}

// taken tells the sender that a batch has left the queue.
func (c *Channel) taken(e Element) {
	if e.Kind != Data {
		return
	}
	left := c.waiting.Add(-1)
	if p := c.sender.Load(); p != nil {
		p.drained(left)
	}
}
