package checkpoint

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/base"
)

// BarrierHandler is the checkpoint half of one subtask: the alignment of its inputs, its snapshots, its end. It is a
// machine like the Coordinator, driven by the subtask's own loop. A source is a handler without channels.
//
// What a barrier does on its way is in alignment.go (exactly once) and tracker.go (at least once); here is what both share:
// a snapshot's life after its barrier has been sent on, the coordinator's messages, and the end of the task.
//
// Two things hold of every task and checkpoint, whatever arrives in whatever order: at most one of barrier and cancel
// marker goes downstream, and at most one of acknowledgement and decline goes to the coordinator. Both follow from one
// number: nothing is begun that is not newer than last.
type BarrierHandler struct {
	cfg HandlerConfig
	now Time

	channels []channel
	open     int               // channels that have not ended
	last     base.CheckpointID // the newest one begun, or known to be cancelled
	aborted  abortedIDs        // newer than last

	align   alignment // exactly once
	tracks  []track   // at least once
	tracked Timing    // of the last track that became a snapshot

	uploads   map[base.CheckpointID]bool // snapshots being written; true: taken after the end
	acked     []base.CheckpointID        // snapshots of which the coordinator has not said yet how they ended
	convertID base.CheckpointID          // its barrier may still lie in output queues
	convertAt Time

	reported   base.CheckpointID // the newest one known to be complete
	ended      bool
	firstEnded base.CheckpointID // the first snapshot taken after the end
	stopsBy    base.CheckpointID // the savepoint by which the task stops
	finished   bool

	out []HandlerAction
}

// channel is an input channel.
type channel struct {
	open      bool
	in        bool              // the current barrier has come
	inOrder   bool              // in its place: everything before it has been processed
	blocked   bool              // by Block or Seal
	announced base.CheckpointID // lies in the queue
}

// NewBarrierHandler is the handler of a subtask that has read nothing yet.
func NewBarrierHandler(cfg HandlerConfig) *BarrierHandler {
	h := &BarrierHandler{
		cfg:       cfg,
		channels:  make([]channel, cfg.Channels),
		open:      cfg.Channels,
		last:      cfg.Restored,
		reported:  cfg.Restored,
		align:     alignment{alarm: Never},
		uploads:   map[base.CheckpointID]bool{},
		convertAt: Never,
		ended:     cfg.Ended,
	}
	for i := range h.channels {
		h.channels[i].open = true
	}
	return h
}

// Step takes one event and says what is to be done, in this order. The slice is valid until the next Step.
func (h *BarrierHandler) Step(now Time, e HandlerEvent) []HandlerAction {
	clear(h.out)
	h.out = h.out[:0]
	h.now = now
	if !h.finished {
		h.take(e)
		h.ring()
	}
	return h.out
}

// take changes the state by one event.
func (h *BarrierHandler) take(e HandlerEvent) {
	switch e := e.(type) {
	case BarrierArrived:
		h.barrierArrived(e)
	case BarrierAnnounced:
		h.barrierAnnounced(e)
	case CancelArrived:
		h.cancelArrived(e)
	case ChannelEnded:
		h.channelEnded(e.Channel)
	case Triggered:
		h.triggered(e.Barrier)
	case DataEnded:
		h.dataEnded(e)
	case SnapshotWritten:
		h.snapshotWritten(e)
	case CompleteNotified:
		h.completeNotified(e.ID)
	case AbortNotified:
		h.abortNotified(e)
	case AlarmRang: // ring looks at the clock
	default:
		panic(fmt.Sprintf("checkpoint: unknown event of a task %T", e))
	}
}

// ring does what is due.
func (h *BarrierHandler) ring() {
	if h.now >= h.align.alarm {
		h.align.alarm, h.align.hurry = Never, true
		h.maybeTurn()
	}
	if h.now >= h.convertAt {
		h.convertAt = Never
		h.do(ConvertOutput{h.convertID})
	}
}

func (h *BarrierHandler) do(a HandlerAction) { h.out = append(h.out, a) }

// Deadline is when AlarmRang is due; false: not at all.
func (h *BarrierHandler) Deadline() (Time, bool) {
	d := min(h.align.alarm, h.convertAt)
	return d, d != Never && !h.finished
}

func (h *BarrierHandler) barrierArrived(e BarrierArrived) {
	if h.cfg.AtLeastOnce {
		h.trackBarrier(e.Barrier, e.Channel)
	} else {
		h.alignBarrier(e)
	}
}

func (h *BarrierHandler) cancelArrived(e CancelArrived) {
	if h.cfg.AtLeastOnce {
		h.trackCancel(e.ID)
	} else {
		h.alignCancel(e.ID)
	}
}

// channelEnded counts the end of a channel as its barrier: nothing can come behind it.
func (h *BarrierHandler) channelEnded(channel int) {
	c := &h.channels[channel]
	if !c.open {
		return
	}
	c.open = false
	h.open--
	if h.cfg.AtLeastOnce {
		h.trackEnd(channel)
	} else {
		h.alignEnd(channel)
	}
}

// triggered begins a checkpoint that no barrier brings: this is a source, or all predecessors have finished. In the second
// case channels may still hold their last records, and then their ends; so the trigger is treated as the news of a barrier
// that is missing on all open channels.
func (h *BarrierHandler) triggered(b Barrier) {
	if b.ID <= h.last {
		return
	}
	if h.cfg.AtLeastOnce {
		h.trackTrigger(b)
	} else {
		h.alignTrigger(b)
	}
}

// maybeEndSource stops a source that is triggered by a stop. Other tasks come to their end through their channels.
func (h *BarrierHandler) maybeEndSource(b Barrier) {
	if !b.Kind.IsSynchronous() || len(h.channels) > 0 {
		return
	}
	h.stopsBy = b.ID
	if !h.ended {
		h.ended = b.Kind == Drain
		h.do(EndSource{b.Kind == Drain})
	}
}

// snapshot takes this task's part. A checkpoint of which it returns no more is one that it has sent the barrier of. Ended: it is taken after
// the end of the data, of all channels.
func (h *BarrierHandler) snapshot(b Barrier, record []bool, ended bool) {
	if ended && h.firstEnded == 0 {
		h.firstEnded = b.ID
	}
	if b.Kind.IsSynchronous() {
		h.stopsBy = b.ID
	}
	h.uploads[b.ID] = ended
	h.do(Snapshot{Barrier: b, Record: record, Ended: ended})
	h.convertAt = Never
	if b.Alignment == Aligned && b.Timeout > 0 {
		h.convertID, h.convertAt = b.ID, h.now.Add(b.Timeout)
	}
}

func (h *BarrierHandler) snapshotWritten(e SnapshotWritten) {
	ended, ok := h.uploads[e.ID]
	if !ok {
		return
	}
	h.forget(e.ID)
	if e.Err == nil {
		h.acked = append(h.acked, e.ID)
		h.do(Ack{ID: e.ID, State: e.State, Ended: ended})
		return
	}
	if h.align.pending && h.align.barrier.ID == e.ID {
		h.align.pending = false // it was recording; nothing is blocked
	}
	h.do(Decline{ID: e.ID, Reason: reasonOf(e.Err, AsyncFailure), Err: e.Err})
}

// forget ends what is remembered of a snapshot being written; false: it is not being written.
func (h *BarrierHandler) forget(id base.CheckpointID) bool {
	_, ok := h.uploads[id]
	delete(h.uploads, id)
	if h.convertID == id {
		h.convertAt = Never
	}
	return ok
}

// dataEnded is the task's own end. From here it waits for a checkpoint that it takes after it.
func (h *BarrierHandler) dataEnded(e DataEnded) {
	h.ended = h.ended || e.Drained
	if h.ended && h.cfg.FinishAtEnd {
		h.finish()
	}
}

func (h *BarrierHandler) completeNotified(id base.CheckpointID) {
	if id <= h.reported {
		return
	}
	h.reported = id
	h.acked = slices.DeleteFunc(h.acked, func(acked base.CheckpointID) bool { return acked <= id })
	h.do(Complete{id})
	if h.ended && h.firstEnded > 0 && id >= h.firstEnded || id == h.stopsBy {
		h.finish()
	}
}

func (h *BarrierHandler) finish() {
	h.finished = true
	h.do(Finish{})
}

// errStopFailed is Flink's message.
var errStopFailed = errors.New("Stop-with-savepoint failed.")

// abortNotified ends a checkpoint of which the coordinator has given up. If it is the one by which this task stops there is
// no way back: the sources read no more, only a restart makes them.
func (h *BarrierHandler) abortNotified(e AbortNotified) {
	h.completeNotified(e.LatestComplete)
	switch {
	case h.finished:
	case h.stopsBy != 0 && e.ID == h.stopsBy:
		h.do(FailTask{errStopFailed})
	case h.align.pending && e.ID == h.align.barrier.ID:
		h.abortAlignment(NoReason)
	case h.forget(e.ID):
		h.do(DropSnapshot{e.ID})
		h.do(Abort{e.ID})
	case slices.Contains(h.acked, e.ID):
		h.acked = slices.DeleteFunc(h.acked, func(acked base.CheckpointID) bool { return acked == e.ID })
		h.do(Abort{e.ID})
	case h.isTracked(e.ID):
		h.trackAbort(e.ID)
	case e.ID > h.last:
		h.aborted.add(e.ID)
	}
}

// abortedIDs remembers the newest aborted checkpoints whose barriers may yet come. What falls out of it is so old that a
// newer one has long been seen; else its barrier begins an alignment that the next one ends.
type abortedIDs struct {
	ids  [16]base.CheckpointID
	next int
}

func (a *abortedIDs) add(id base.CheckpointID) {
	a.ids[a.next] = id
	a.next = (a.next + 1) % len(a.ids)
}

func (a *abortedIDs) has(id base.CheckpointID) bool {
	for _, x := range a.ids {
		if x == id {
			return true
		}
	}
	return false
}

// HandlerStatus is what a BarrierHandler tells about itself.
type HandlerStatus struct {
	Aligning  base.CheckpointID // waits for barriers, or records until they come; 0: none
	Recording bool              // its snapshot has been taken already
	Tracked   int               // checkpoints that wait for barriers, at least once
	Blocked   int               // channels
	Writing   int               // snapshots
	Ended     bool
	Finished  bool
}

// Status is a copy that the caller may keep.
func (h *BarrierHandler) Status() HandlerStatus {
	s := HandlerStatus{Tracked: len(h.tracks), Writing: len(h.uploads), Ended: h.ended, Finished: h.finished}
	if h.align.pending {
		s.Aligning, s.Recording = h.align.barrier.ID, h.align.taken
	}
	for i := range h.channels {
		if h.channels[i].blocked {
			s.Blocked++
		}
	}
	return s
}
