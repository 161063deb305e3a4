package checkpoint

import "slices"

// fault is a bug that is planted to see that the checkers find it. Nothing of it is in the machines: a fault is planted in
// the driver, or by changing a machine's state between its steps.
type fault int

const (
	noFault fault = iota
	notifyBeforeStored
	blockNotLifted
	eventsNotHeld
	cancelForgotten
	pointwiseDoubled
	finishedRunAgain
	endedRunAgain
	broadcastInFlight
	sealIgnored
	openTriggerAtOnce
	restoreDoesNotWait
	lateAckDeletes
	terminalIgnored
	goneTakenForFinished
	oldAttemptAcks
	checkpointAfterStop
	stopOvertaken
	baseNotPinned
	markerOvertakes
	idUsedAgain
	notWithdrawn
	faults
)

func (f fault) String() string {
	return [...]string{
		noFault:              "none",
		notifyBeforeStored:   "tasks are notified before the checkpoint is stored",
		blockNotLifted:       "a channel stays blocked",
		eventsNotHeld:        "the enumerator's events are not held",
		cancelForgotten:      "a cancel marker is forgotten",
		pointwiseDoubled:     "a record on a pointwise edge is doubled by a rescale",
		finishedRunAgain:     "a finished task is restored as one that has not begun",
		endedRunAgain:        "an ended task is restored as a running one",
		broadcastInFlight:    "broadcast channels are recorded",
		sealIgnored:          "what comes behind an overtaking barrier is processed before the snapshot",
		openTriggerAtOnce:    "a triggered task does not wait for the ends of its channels",
		restoreDoesNotWait:   "a restore does not wait for a sealed checkpoint",
		lateAckDeletes:       "every late acknowledgement's files are deleted",
		terminalIgnored:      "a restart ignores the savepoint that the job stopped with",
		goneTakenForFinished: "a failed task is taken for a finished one",
		oldAttemptAcks:       "pending checkpoints survive a failover and take acknowledgements of old attempts",
		checkpointAfterStop:  "checkpoints go on after the savepoint that the job stops with",
		stopOvertaken:        "a checkpoint overtakes the savepoint that the job stops with",
		baseNotPinned:        "what an incremental checkpoint builds upon is deleted under it",
		markerOvertakes:      "a cancel marker overtakes barriers of older checkpoints",
		idUsedAgain:          "a restart uses an id again",
		notWithdrawn:         "what could not be stored is aborted at once",
	}[f]
}

// faultyStep is a step of the master, with a fault around it.
func (w *world) faultyStep(e CoordinatorEvent) []CoordinatorAction {
	m := w.master
	switch e := e.(type) {
	case RestoreAsked:
		if w.fault == restoreDoesNotWait {
			for _, p := range m.pending {
				p.phase = min(p.phase, triggered)
			}
		}
	case TaskAcked:
		switch p := m.find(e.ID); {
		case w.fault == lateAckDeletes && p == nil:
			m.aborted.add(e.ID)
		case w.fault == oldAttemptAcks && p != nil && m.isKnown(e.Exec.Task):
			p.plan.wait[e.Exec.Task] = e.Exec.Attempt
		}
	case Stored:
		if w.fault == notWithdrawn && e.Err != nil {
			return m.Step(w.now, MetadataWritten{Token: w.swapQuestion(e.Token), Err: e.Err})
		}
	case TaskChanged:
		if w.fault == goneTakenForFinished && e.State == TaskGone {
			return m.Step(w.now, TaskChanged{e.Exec, TaskFinished})
		}
	default:
	}
	switch w.fault {
	case oldAttemptAcks:
		switch e.(type) {
		case JobNotRunning, RestoreAsked, TaskChanged:
			return w.stepHiding(e, func(*pending) bool { return true })
		default:
		}
	case stopOvertaken:
		if _, ok := e.(Requested); ok {
			return w.stepHiding(e, func(p *pending) bool { return p.stops() && p.phase == triggered })
		}
	case checkpointAfterStop:
		m.terminal = nil
	case baseNotPinned:
		for _, p := range m.pending {
			p.barrier.Base = 0
		}
	default:
	}
	return m.Step(w.now, e)
}

// swapQuestion has the answer to Store be taken for one to WriteMetadata.
func (w *world) swapQuestion(t Token) Token {
	q := w.master.questions[t]
	q.asked = askedMetadata
	w.master.questions[t] = q
	return t
}

// stepHiding is a step of which some pending checkpoints take no notice.
func (w *world) stepHiding(e CoordinatorEvent, hide func(*pending) bool) []CoordinatorAction {
	m := w.master
	var hidden []*pending
	m.pending = slices.DeleteFunc(m.pending, func(p *pending) bool {
		if hide(p) {
			hidden = append(hidden, p)
		}
		return hide(p)
	})
	actions := m.Step(w.now, e)
	m.pending = append(hidden, m.pending...)
	return actions
}

// faultyTaskStep is a step of a task's handler, with a fault around it.
func (w *world) faultyTaskStep(t *simTask, e HandlerEvent) []HandlerAction {
	h := t.handler
	switch e := e.(type) {
	case CancelArrived:
		if w.fault == cancelForgotten && e.ID > h.last {
			actions := h.Step(w.now, e)
			h.last = min(h.last, e.ID-1)
			return actions
		}
	case Triggered:
		if w.fault == openTriggerAtOnce && e.Barrier.ID > h.last {
			return w.triggerAtOnce(h, e)
		}
	case AbortNotified:
		if i := h.trackOf(e.ID); w.fault == markerOvertakes && i >= 0 {
			h.tracks = slices.Delete(h.tracks, i, i+1)
			return []HandlerAction{ForwardCancel{e.ID}, Abort{e.ID}}
		}
	default:
	}
	return h.Step(w.now, e)
}

// triggerAtOnce has a handler believe, for the moment of a trigger, that all its channels have ended.
func (w *world) triggerAtOnce(h *BarrierHandler, e Triggered) []HandlerAction {
	channels, n := slices.Clone(h.channels), h.open
	for i := range h.channels {
		h.channels[i].open = false
	}
	h.open = 0
	actions := h.Step(w.now, e)
	copy(h.channels, channels)
	h.open = n
	return actions
}

// marks counts how often rare things happen: a simulation that never comes to them proves nothing about them.
type marks map[string]int

func (m marks) hit(what string) { m[what]++ }

func (m marks) hitIf(happened bool, what string) {
	if happened {
		m[what]++
	}
}

// rare is what a long run must come to.
var rare = []string{
	"acknowledgement doubled", "acknowledgement of nothing known",
	"announced and forced", "barrier prioritized", "channel sealed",
	"early abort", "event held", "final checkpoint again", "incremental", "last records while triggered", "late acknowledgement deleted",
	"location created too late", "message to a task lost", "metadata published by a dead master", "obsolete barrier",
	"older completes after newer", "output converted", "record in flight restored", "record recorded on arrival",
	"records in flight in a checkpoint", "restore waits for a sealed checkpoint", "restored as ended",
	"resumed from DRAIN", "resumed from SUSPEND", "snapshot dropped", "snapshot failed while recording", "stop failed",
	"terminal failure", "tolerable failures exceeded", "triggers wait for cleaning", "unaligned trigger",
	AsyncFailure.String(), DeclinedClosing.String(), Expired.String(),
	FailoverRegion.String(), FinalizeFailure.String(), IOFailure.String(), MinimumPause.String(),
	NotAllTasksRunning.String(), Subsumed.String(), Suspended.String(), TaskFailure.String(), TriggerFailure.String(),
	"declined: " + AsyncFailure.String(), "declined: " + DeclinedOnCancel.String(), "declined: " + DeclinedSubsumed.String(),
}

// markAfter looks at the master after an event.
func (w *world) markAfter() {
	m := w.master
	if w.stopped {
		return
	}
	w.marks.hitIf(m.restoring, "restore waits for a sealed checkpoint")
	w.marks.hitIf(m.final == finalDue && m.finalAt > w.now && m.finalAt != Never, "final checkpoint again")
	w.marks.hitIf(len(m.queue) > 0 && m.cleaning > m.cfg.MaxConcurrent, "triggers wait for cleaning")
}

// markBefore looks at the master before an event.
func (w *world) markBefore(e CoordinatorEvent) {
	m := w.master
	switch e := e.(type) {
	case TaskAcked:
		p := m.find(e.ID)
		w.marks.hitIf(p != nil && p.expects(e.Exec) && p.acked[e.Exec.Task], "acknowledgement doubled")
		w.marks.hitIf(p == nil && !m.aborted.has(e.ID), "acknowledgement of nothing known")
	case LocationCreated:
		w.marks.hitIf(e.Err == nil && m.find(m.questions[e.Token].id) == nil, "location created too late")
	case OperatorSent:
		w.marks.hitIf(m.tasks[e.To].holdFor != 0, "event held")
	default:
	}
}

// markHandler looks at a handler before an event.
func (w *world) markHandler(t *simTask, e HandlerEvent) {
	h := t.handler
	switch e := e.(type) {
	case Triggered:
		w.marks.hitIf(len(h.channels) > 0 && h.open > 0, "last records while triggered")
		w.marks.hitIf(len(h.channels) > 0 && h.open > 0 && e.Barrier.Alignment == Unaligned, "unaligned trigger")
	case BarrierArrived:
		w.marks.hitIf(e.Barrier.ID < h.last, "obsolete barrier")
		w.marks.hitIf(h.aborted.has(e.Barrier.ID) && e.Barrier.ID > h.last, "early abort")
	case BarrierAnnounced:
		w.marks.hitIf(h.align.pending && h.align.barrier.Forced && !h.align.timed, "announced and forced")
	default:
	}
}
