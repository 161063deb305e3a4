package checkpoint

import "slices"

// marks counts how often rare things happen: a simulation that never comes to them proves nothing about them.
type marks map[string]int

func (m marks) hit(what string) { m[what]++ }

func (m marks) hitIf(happened bool, what string) {
	if happened {
		m[what]++
	}
}

// often is what a run of oftenSteps must come to. Each happens at least twenty times in so many steps on average, so that a
// run without one says that something has changed, and not that it had bad luck.
var often = []string{
	"acknowledgement doubled", "acknowledgement of nothing known",
	"announced and forced", "barrier prioritized", "channel sealed",
	"early abort", "event held", "final checkpoint again", "incremental", "late acknowledgement deleted",
	"location created too late", "message to a task lost", "obsolete barrier", "output converted",
	"record in flight restored", "record recorded on arrival", "records in flight in a checkpoint",
	"record in flight restored at another parallelism: hash", "record in flight restored at another parallelism: rebalance",
	"record in flight restored at another parallelism: pointwise", "record in flight restored at another parallelism: global",
	"restored as ended", "restored from DRAIN", "restored from FULL_CHECKPOINT", "restored from SAVEPOINT", "restored from SUSPEND",
	"snapshot dropped", "some tasks had finished", "started from a claimed checkpoint", "started from an unclaimed checkpoint",
	"started from an unclaimed savepoint", "started from a claimed savepoint", "stop failed", "task behind finished ones triggered",
	"triggers wait for cleaning", AsyncFailure.String(), IOFailure.String(), MinimumPause.String(),
	NotAllTasksRunning.String(), Suspended.String(), TaskFailure.String(), TriggerFailure.String(), FinalizeFailure.String(),
	"declined: " + AsyncFailure.String(), "declined: " + DeclinedOnCancel.String(),
}

// seldom is what a run of seldomSteps must come to, by the same measure.
var seldom = []string{
	"last records while triggered", "metadata published by a dead master", "older completes after newer",
	"restore waits for a sealed checkpoint", "restored as partly ended", "snapshot failed while recording", "terminal failure",
	"tolerable failures exceeded", "unaligned trigger", DeclinedClosing.String(), Expired.String(), FailoverRegion.String(),
	Subsumed.String(), "declined: " + DeclinedSubsumed.String(),
}

const (
	oftenSteps  = 1_000_000  // make test
	seldomSteps = 20_000_000 // make sim, in about ten seconds
)

// missing is what a run of so many steps should have come to, and has not.
func (m marks) missing(steps int) []string {
	var due []string
	if steps >= oftenSteps {
		due = append(due, often...)
	}
	if steps >= seldomSteps {
		due = append(due, seldom...)
	}
	return slices.DeleteFunc(due, func(what string) bool { return m[what] > 0 })
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
