package checkpoint

import "github.com/weirstream/weir/internal/base"

// Timing is when the barriers of one checkpoint came to a task.
type Timing struct {
	ID base.CheckpointID
	// First and Last are of the first and the last barrier that has come; Never: none has. A trigger counts as one, and so does the end
	// of a channel that is waited for. Where barriers overtake after a time-out, which counts from the first that is announced, First is
	// when that was.
	First, Last Time
	// FirstOn and LastOn are their channels; NoChannel: the task was triggered.
	FirstOn, LastOn int
	// Waits: more are to come.
	Waits bool

	seen   Time // the first was announced; Never: none was
	seenOn int
}

// NoChannel is where a trigger comes from.
const NoChannel = -1

func newTiming(id base.CheckpointID) Timing {
	return Timing{ID: id, First: Never, Last: Never, FirstOn: NoChannel, LastOn: NoChannel, seen: Never}
}

func (t *Timing) announced(now Time, channel int) {
	if t.seen == Never {
		t.seen, t.seenOn = now, channel
	}
}

// turned says that barriers overtake from here on.
func (t *Timing) turned() {
	if t.seen < t.First {
		t.First, t.FirstOn = t.seen, t.seenOn
	}
	if t.Last == Never {
		t.Last, t.LastOn = t.First, t.FirstOn
	}
}

func (t *Timing) came(now Time, channel int) {
	if t.First == Never {
		t.First, t.FirstOn = now, channel
	}
	t.Last, t.LastOn = now, channel
}

// Timing is that of a checkpoint, which may be any that waits for barriers, or the last one whose snapshot was taken; false: of none
// of these.
func (h *BarrierHandler) Timing(id base.CheckpointID) (t Timing, ok bool) {
	switch i := h.trackOf(id); {
	case i >= 0:
		t, ok = h.tracks[i].times, true
		t.Waits = true
	case h.cfg.AtLeastOnce:
		t, ok = h.tracked, h.tracked.ID == id
	default:
		t, ok = h.align.times, h.align.times.ID == id
		t.Waits = h.align.pending
	}
	return t, ok
}

// Newest is the newest checkpoint that the task has heard of; 0: none.
func (h *BarrierHandler) Newest() base.CheckpointID { return h.last }
