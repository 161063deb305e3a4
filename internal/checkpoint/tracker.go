package checkpoint

import (
	"slices"

	"github.com/weirstream/weir/internal/base"
)

// track is a checkpoint that an at-least-once task has seen a barrier of. Nothing is blocked, so barriers of several
// checkpoints may be under way; each channel brings its own in order, and this task sends on what it has in order too.
type track struct {
	barrier Barrier
	in      []bool // by channel
	left    int    // open channels that are missing
	times   Timing
	aborted bool // by the coordinator: its turn comes, but for a cancel marker

	// early: a barrier came before the end of the task's data, or is early itself. So a sender had not ended in its snapshot, and has records to
	// send again after a restore: this task must not have ended then either, though it had when the last barrier came. (Where barriers
	// block, the end cannot come between two.) A drain's barriers come behind the ends of their channels.
	early bool
}

// tracksMax is how many checkpoints are tracked; beyond, the oldest is given up. It is Flink's number.
const tracksMax = 50

// trackOf is the index of the track of id; -1: there is none.
func (h *BarrierHandler) trackOf(id base.CheckpointID) int {
	return slices.IndexFunc(h.tracks, func(t track) bool { return t.barrier.ID == id })
}

func (h *BarrierHandler) isTracked(id base.CheckpointID) bool { return h.trackOf(id) >= 0 }

func (h *BarrierHandler) trackBarrier(b Barrier, channel int) {
	i := h.trackOf(b.ID)
	if i < 0 {
		if b.ID <= h.last {
			return
		}
		i = h.newTrack(b)
	}
	t := &h.tracks[i]
	t.mark(h.now, channel)
	t.early = t.early || b.Early || !h.ended && b.Kind != Drain
	h.maybeTrackComplete()
}

// newTrack begins to track b and returns its index, the last.
func (h *BarrierHandler) newTrack(b Barrier) int {
	h.last = b.ID
	h.tracks = append(h.tracks, track{barrier: b, in: make([]bool, len(h.channels)), left: h.open, times: newTiming(b.ID),
		aborted: h.aborted.has(b.ID)})
	if len(h.tracks) > tracksMax {
		h.giveUp(DeclinedSubsumed)
	}
	return len(h.tracks) - 1
}

// mark notes that nothing of before the barrier will come on a channel.
func (t *track) mark(now Time, channel int) {
	if !t.in[channel] {
		t.in[channel] = true
		t.left--
		t.times.came(now, channel)
	}
}

// maybeTrackComplete takes the snapshot of the newest checkpoint that no channel is missing of, and gives up older ones: a
// snapshot is never taken after one of a newer checkpoint.
func (h *BarrierHandler) maybeTrackComplete() {
	for i := len(h.tracks) - 1; i >= 0; i-- {
		t := h.tracks[i]
		if t.left > 0 {
			continue
		}
		for range i {
			h.giveUp(DeclinedSubsumed)
		}
		if t.aborted {
			h.giveUp(NoReason)
			return
		}
		h.tracks = slices.Delete(h.tracks, 0, 1)
		t.barrier.Early = h.ended && t.early
		h.tracked = t.times
		h.snapshot(t.barrier, nil, h.ended && !t.early)
		return
	}
}

// giveUp ends the oldest track without a snapshot. Barriers of it that still come are obsolete.
func (h *BarrierHandler) giveUp(why Reason) {
	t := h.tracks[0]
	h.tracks = slices.Delete(h.tracks, 0, 1)
	h.do(ForwardCancel{t.barrier.ID})
	if !t.aborted {
		h.sayAborted(t.barrier.ID, why)
	}
}

// trackAbort notes an abort by the coordinator. Nothing is sent on before its turn: a marker that overtook the barriers of
// older checkpoints would end these downstream.
func (h *BarrierHandler) trackAbort(id base.CheckpointID) {
	t := &h.tracks[h.trackOf(id)]
	if !t.aborted {
		t.aborted = true
		h.do(Abort{id})
	}
}

// trackCancel gives up the checkpoint that the marker names, and those before it.
func (h *BarrierHandler) trackCancel(id base.CheckpointID) {
	for len(h.tracks) > 0 && h.tracks[0].barrier.ID < id {
		h.giveUp(DeclinedSubsumed)
	}
	switch {
	case len(h.tracks) > 0 && h.tracks[0].barrier.ID == id:
		h.giveUp(DeclinedOnCancel)
	case id > h.last:
		h.last = id
		h.do(ForwardCancel{id})
		h.sayAborted(id, DeclinedOnCancel)
	}
}

func (h *BarrierHandler) trackEnd(channel int) {
	if h.cfg.FinishAtEnd {
		for range h.tracks {
			h.giveUp(DeclinedEndOfStream)
		}
		return
	}
	for i := range h.tracks {
		h.tracks[i].mark(h.now, channel)
	}
	h.maybeTrackComplete()
}

func (h *BarrierHandler) trackTrigger(b Barrier) {
	t := &h.tracks[h.newTrack(b)]
	t.times.came(h.now, NoChannel)
	if !t.aborted {
		h.maybeEndSource(b)
	}
	h.maybeTrackComplete()
}
