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
	overtakenLost
	convertedLost
	recordingEndsEarly
	inOrderRecorded
	blockIgnored
	eventBeforeBarrier
	eventsSurvive
	heldForgotten
	enumeratorSnappedLate
	unclaimedTaken
	firstNotFull
	hashToOldOwner
	outputNotRestored
	restoreDoesNotCommit
	endNotSentAgain
	unionIgnored
	savepointCommits
	finishesTooEarly
	endedBetween
	earlyNotPassedOn
	faults
)

// late are the faults that take the simulation more than a quarter of a million steps to find.
var late = []fault{
	pointwiseDoubled, finishedRunAgain, endedRunAgain, openTriggerAtOnce, markerOvertakes, notWithdrawn, heldForgotten,
	hashToOldOwner, unionIgnored, savepointCommits, endedBetween, earlyNotPassedOn,
}

func (f fault) String() string {
	return [...]string{
		noFault:               "none",
		notifyBeforeStored:    "tasks are notified before the checkpoint is stored",
		blockNotLifted:        "a channel stays blocked",
		eventsNotHeld:         "the enumerator's events are not held",
		cancelForgotten:       "a cancel marker is forgotten",
		pointwiseDoubled:      "a record on a pointwise edge is doubled by a rescale",
		finishedRunAgain:      "a finished task is restored as one that has not begun",
		endedRunAgain:         "an ended task is restored as a running one",
		broadcastInFlight:     "broadcast channels are recorded",
		sealIgnored:           "what comes behind an overtaking barrier is processed before the snapshot",
		openTriggerAtOnce:     "a triggered task does not wait for the ends of its channels",
		restoreDoesNotWait:    "a restore does not wait for a sealed checkpoint",
		lateAckDeletes:        "every late acknowledgement's files are deleted",
		terminalIgnored:       "a restart ignores the savepoint that the job stopped with",
		goneTakenForFinished:  "a failed task is taken for a finished one",
		oldAttemptAcks:        "pending checkpoints survive a failover and take acknowledgements of old attempts",
		checkpointAfterStop:   "checkpoints go on after the savepoint that the job stops with",
		stopOvertaken:         "a checkpoint overtakes the savepoint that the job stops with",
		baseNotPinned:         "what an incremental checkpoint builds upon is deleted under it",
		markerOvertakes:       "a cancel marker overtakes barriers of older checkpoints",
		idUsedAgain:           "a restart uses an id again",
		notWithdrawn:          "what could not be stored is aborted at once",
		overtakenLost:         "the last record that a barrier overtook in an output queue is lost",
		convertedLost:         "what a barrier overtook when it turned unaligned in an output queue is lost",
		recordingEndsEarly:    "a snapshot is acknowledged while records in flight are still recorded",
		inOrderRecorded:       "a channel whose barrier came in its place is recorded",
		blockIgnored:          "a channel is not blocked behind its barrier",
		eventBeforeBarrier:    "the enumerator's events go out before the barrier that they belong behind",
		eventsSurvive:         "the enumerator's events survive a restore",
		heldForgotten:         "events that were held for an aborted checkpoint are forgotten",
		enumeratorSnappedLate: "the enumerator's snapshot is taken after it has sent more",
		unclaimedTaken:        "a snapshot that was not claimed is taken for the job's own",
		firstNotFull:          "the first checkpoint after a start from an unclaimed snapshot is incremental",
		hashToOldOwner:        "records in flight on a hash edge go to the subtask that had them, whoever has the key now",
		outputNotRestored:     "records in flight in output queues are not restored",
		restoreDoesNotCommit:  "a restore does not commit what its checkpoint prepared",
		endNotSentAgain:       "a task restored as ended does not send its end",
		unionIgnored:          "union state of which some subtasks have ended is accepted",
		savepointCommits:      "tasks commit by a plain savepoint",
		finishesTooEarly:      "a task finishes by a checkpoint that it took before its end",
		endedBetween:          "at least once, a task that ended between two barriers had ended in that checkpoint",
		earlyNotPassedOn:      "at least once, a barrier does not say that its sender had not ended",
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
	case firstNotFull:
		m.forceFull = false
	case unionIgnored:
		for v := range m.graph.Vertices {
			m.graph.Vertices[v].Union = false
		}
	default:
	}
	return m.Step(w.now, e)
}

// faultyActions are the actions of a step of the master, with a fault among them.
func (w *world) faultyActions(actions []CoordinatorAction) []CoordinatorAction {
	isEvent := func(a CoordinatorAction) bool { _, ok := a.(SendEvent); return ok }
	isTrigger := func(a CoordinatorAction) bool { _, ok := a.(TriggerTasks); return ok }
	isAbort := func(a CoordinatorAction) bool { _, ok := a.(NotifyAborted); return ok }
	switch {
	case w.fault == eventBeforeBarrier && slices.ContainsFunc(actions, isTrigger):
		slices.SortStableFunc(actions, func(a, b CoordinatorAction) int { return boolInt(isEvent(b)) - boolInt(isEvent(a)) })
	case w.fault == heldForgotten && slices.ContainsFunc(actions, isAbort):
		actions = slices.DeleteFunc(actions, isEvent)
	}
	return actions
}

// faultyOvertaken is what a barrier overtook in an output queue, or not all of it.
func (w *world) faultyOvertaken(items []item) []item {
	if w.fault == overtakenLost && len(items) > 0 {
		return items[:len(items)-1]
	}
	return items
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
	case BarrierArrived:
		e.Barrier.Early = e.Barrier.Early && w.fault != earlyNotPassedOn
		return w.barrierStep(h, e)
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
	case DataEnded:
		actions := h.Step(w.now, e)
		if w.fault == finishesTooEarly && h.ended {
			h.firstEnded = 1
		}
		return actions
	case AbortNotified:
		if i := h.trackOf(e.ID); w.fault == markerOvertakes && i >= 0 {
			h.tracks = slices.Delete(h.tracks, i, i+1)
			return []HandlerAction{ForwardCancel{e.ID}, Abort{e.ID}}
		}
	default:
	}
	return h.Step(w.now, e)
}

// barrierStep may have a handler forget on which side of its end barriers came.
func (w *world) barrierStep(h *BarrierHandler, e BarrierArrived) []HandlerAction {
	if i := h.trackOf(e.Barrier.ID); w.fault == endedBetween && i >= 0 {
		h.tracks[i].early = false
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
