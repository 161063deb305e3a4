package checkpoint

import (
	"slices"

	"github.com/weirstream/weir/internal/base"
)

// track is a checkpoint that an at-least-once task has seen a barrier of. Nothing is blocked, so barriers of several
// checkpoints may be under way; each channel brings its own in order.
type track struct {
	barrier Barrier
	in      []bool // by channel
	left    int    // open channels that are missing
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
		if !h.isNew(b) {
			return
		}
		i = h.newTrack(b)
	}
	h.tracks[i].mark(channel)
	h.maybeTrackComplete()
}

// newTrack begins to track b and returns its index, the last.
func (h *BarrierHandler) newTrack(b Barrier) int {
	h.tracks = append(h.tracks, track{barrier: b, in: make([]bool, len(h.channels)), left: h.open})
	if len(h.tracks) > tracksMax {
		h.giveUp(0, DeclinedSubsumed)
	}
	return len(h.tracks) - 1
}

// mark notes that nothing of before the barrier will come on a channel.
func (t *track) mark(channel int) {
	if !t.in[channel] {
		t.in[channel] = true
		t.left--
	}
}

// maybeTrackComplete takes the snapshot of the newest checkpoint that no channel is missing of, and gives up older ones: a
// snapshot is never taken after one of a newer checkpoint.
func (h *BarrierHandler) maybeTrackComplete() {
	for i := len(h.tracks) - 1; i >= 0; i-- {
		if h.tracks[i].left > 0 {
			continue
		}
		b := h.tracks[i].barrier
		for range i {
			h.giveUp(0, DeclinedSubsumed)
		}
		h.tracks = slices.Delete(h.tracks, 0, 1)
		h.snapshot(b, nil)
		return
	}
}

// giveUp ends track i without a snapshot. Barriers of it that still come are obsolete.
func (h *BarrierHandler) giveUp(i int, why Reason) {
	id := h.tracks[i].barrier.ID
	h.tracks = slices.Delete(h.tracks, i, i+1)
	h.do(ForwardCancel{id})
	h.sayAborted(id, why)
}

// trackCancel gives up the checkpoint that the marker names, and those before it whose barrier has not come on this channel:
// now it will not.
func (h *BarrierHandler) trackCancel(e CancelArrived) {
	for i := 0; i < len(h.tracks); {
		t := &h.tracks[i]
		switch {
		case t.barrier.ID == e.ID:
			h.giveUp(i, DeclinedOnCancel)
		case t.barrier.ID < e.ID && !t.in[e.Channel]:
			h.giveUp(i, DeclinedSubsumed)
		default:
			i++
		}
	}
	if e.ID > h.last {
		h.last = e.ID
		h.do(ForwardCancel{e.ID})
		h.sayAborted(e.ID, DeclinedOnCancel)
	}
}

func (h *BarrierHandler) trackEnd(channel int) {
	if h.cfg.FinishAtEnd {
		for range h.tracks {
			h.giveUp(0, DeclinedEndOfStream)
		}
		return
	}
	for i := range h.tracks {
		h.tracks[i].mark(channel)
	}
	h.maybeTrackComplete()
}

func (h *BarrierHandler) trackTrigger(b Barrier) {
	if !h.isNew(b) {
		return
	}
	h.maybeEndSource(b)
	h.newTrack(b)
	h.maybeTrackComplete()
}
