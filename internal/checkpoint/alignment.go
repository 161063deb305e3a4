package checkpoint

import "github.com/weirstream/weir/internal/base"

// alignment is the one checkpoint that an exactly-once task has begun and whose barriers have not all come.
//
//	          first barrier,                last barrier: Snapshot
//	waiting ------------------> collecting -----------------------> waiting
//	   |        trigger             |
//	   |                            | hurry: Snapshot at once
//	   +---------------------> recording -------------------------> waiting
//	     unaligned barrier               last barrier: StopRecording
//
// Collecting, a channel waits behind its barrier. In a hurry (an unaligned barrier has come, or an aligned one takes longer
// than its timeout) the snapshot is taken at once; what the barriers yet to come have overtaken is recorded into it.
//
// Channels of broadcast edges are never recorded: their records act on every subtask alike, and a restore at another
// parallelism could not say who has seen which. So the hurry waits until their barriers have come in order. Meanwhile, what
// of the other channels? Their barriers overtook records in two places. What had arrived here before the barrier may be
// processed now, or else goes into this task's part. What was still with the sender is in the sender's part: it arrives
// *behind* the barrier, and processed before the snapshot it would be counted twice. Hence Seal, which divides the two; to
// go on "with the records that the barrier overtook" is the obvious reading, and wrong.
//
// A barrier that was taken in its place has left nothing to record on its channel, one that came with priority has.
type alignment struct {
	barrier Barrier
	pending bool
	taken   bool // the snapshot is taken: recording
	hurry   bool // to be unaligned as soon as the broadcast channels allow
	timed   bool // the alarm has been set
	alarm   Time
	in      int // open channels whose barrier has come
	times   Timing
}

// begin makes b the current one; false: it is obsolete, or was aborted before it came. A newer one ends an older, which
// cannot complete any more: each channel brings its barriers in order.
func (h *BarrierHandler) begin(b Barrier) bool {
	a := &h.align
	if a.pending && b.ID == a.barrier.ID {
		return true
	}
	if b.ID <= h.last {
		return false
	}
	if a.pending {
		h.abortAlignment(DeclinedSubsumed)
	}
	h.last = b.ID
	if h.aborted.has(b.ID) {
		h.do(ForwardCancel{b.ID})
		return false
	}
	*a = alignment{barrier: b, pending: true, alarm: Never, times: newTiming(b.ID)}
	for i := range h.channels {
		h.channels[i].in = false
	}
	return true
}

// maybeSetAlarm starts the clock of an aligned barrier that may turn unaligned: at its first sight here, because the clocks
// of two hosts cannot be compared. A forced one does not count: its edge could not hurry anyway.
func (h *BarrierHandler) maybeSetAlarm(b Barrier) {
	a := &h.align
	if b.Timeout > 0 && !b.Forced && !a.timed && !a.taken {
		a.timed, a.alarm = true, h.now.Add(b.Timeout)
	}
}

func (h *BarrierHandler) alignBarrier(e BarrierArrived) {
	c := &h.channels[e.Channel]
	if c.announced == e.Barrier.ID {
		c.announced = 0
	}
	if !h.begin(e.Barrier) || c.in {
		return
	}
	a := &h.align
	c.in, c.inOrder = true, !e.Priority
	a.in++
	a.times.came(h.now, e.Channel)
	a.hurry = a.hurry || e.Barrier.Alignment == Unaligned
	h.maybeSetAlarm(e.Barrier)
	h.maybeTurn()
	if !a.taken && a.in < h.open {
		h.holdBack(e.Channel)
	}
	h.maybeAllIn()
}

// holdBack lets nothing behind the barrier of a channel through.
func (h *BarrierHandler) holdBack(channel int) {
	c := &h.channels[channel]
	c.blocked = true
	if c.inOrder {
		h.do(Block{channel})
	} else {
		h.do(Seal{channel})
	}
}

func (h *BarrierHandler) barrierAnnounced(e BarrierAnnounced) {
	if h.cfg.AtLeastOnce || !h.begin(e.Barrier) {
		return
	}
	h.channels[e.Channel].announced = e.Barrier.ID
	h.align.times.announced(h.now, e.Channel)
	h.maybeSetAlarm(e.Barrier)
	if h.align.taken {
		h.do(Prioritize{e.Channel, e.Barrier.ID})
	}
}

// alignTrigger begins a checkpoint all of whose open channels are missing.
func (h *BarrierHandler) alignTrigger(b Barrier) {
	if !h.begin(b) {
		return
	}
	h.align.times.came(h.now, NoChannel)
	h.maybeEndSource(b)
	h.align.hurry = b.Alignment == Unaligned
	h.maybeSetAlarm(b)
	h.maybeTurn()
	h.maybeAllIn()
}

// maybeTurn goes unaligned if that is wanted and every broadcast channel's barrier has come.
func (h *BarrierHandler) maybeTurn() {
	a := &h.align
	if !a.pending || !a.hurry || a.taken {
		return
	}
	for i, broadcast := range h.cfg.Broadcast {
		if c := &h.channels[i]; broadcast && c.open && !c.in {
			return
		}
	}
	h.turnUnaligned()
}

// turnUnaligned takes the snapshot now. Barriers that are known to lie in queues overtake what is before them.
func (h *BarrierHandler) turnUnaligned() {
	a := &h.align
	a.barrier.Alignment, a.barrier.Timeout, a.barrier.Forced = Unaligned, 0, false
	a.taken, a.alarm = true, Never
	a.times.turned()
	record := make([]bool, len(h.channels))
	for i := range h.channels {
		c := &h.channels[i]
		record[i] = c.open && !(c.in && c.inOrder)
	}
	h.snapshot(a.barrier, record, h.ended)
	h.unblock()
	for i := range h.channels {
		if c := &h.channels[i]; c.announced == a.barrier.ID && !c.in {
			h.do(Prioritize{i, a.barrier.ID})
		}
	}
}

// maybeAllIn ends the alignment when no open channel is missing.
func (h *BarrierHandler) maybeAllIn() {
	a := &h.align
	if !a.pending || a.in < h.open {
		return
	}
	a.pending, a.alarm = false, Never
	if a.taken {
		h.do(StopRecording{a.barrier.ID})
		return
	}
	h.snapshot(a.barrier, nil, h.ended)
	h.unblock()
}

func (h *BarrierHandler) unblock() {
	for i := range h.channels {
		if c := &h.channels[i]; c.blocked {
			c.blocked = false
			h.do(Unblock{i})
		}
	}
}

// abortAlignment gives the current checkpoint up at once, without waiting for the barriers that have not come. With a
// reason the coordinator is told; NoReason: it knows.
func (h *BarrierHandler) abortAlignment(why Reason) {
	a := &h.align
	id := a.barrier.ID
	a.pending, a.alarm = false, Never
	h.unblock()
	if a.taken {
		h.forget(id)
		h.do(DropSnapshot{id})
	} else {
		h.do(ForwardCancel{id})
	}
	h.sayAborted(id, why)
}

// sayAborted tells the operators, and with a reason the coordinator.
func (h *BarrierHandler) sayAborted(id base.CheckpointID, why Reason) {
	h.do(Abort{id})
	if why != NoReason {
		h.do(Decline{ID: id, Reason: why})
	}
}

// alignCancel ends a checkpoint that some predecessor takes no part in. Of one that is not known yet the barriers will be
// obsolete when they come; and if it is newer than the current one, that one cannot complete any more.
func (h *BarrierHandler) alignCancel(id base.CheckpointID) {
	a := &h.align
	if a.pending && id == a.barrier.ID {
		h.abortAlignment(DeclinedOnCancel)
		return
	}
	if id <= h.last {
		return
	}
	if a.pending {
		h.abortAlignment(DeclinedSubsumed)
	}
	h.last = id
	h.do(ForwardCancel{id})
	h.sayAborted(id, DeclinedOnCancel)
}

func (h *BarrierHandler) alignEnd(channel int) {
	a, c := &h.align, &h.channels[channel]
	if !a.pending {
		return
	}
	if c.in {
		c.in = false
		a.in--
	} else if a.times.First != Never {
		a.times.came(h.now, channel)
	}
	if h.cfg.FinishAtEnd {
		h.abortAlignment(DeclinedEndOfStream)
		return
	}
	h.maybeTurn()
	h.maybeAllIn()
}
