package job

import (
	"fmt"
	"iter"
	"slices"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
)

// NoRestartError says why a job FAILED where a restart might have helped.
type NoRestartError struct {
	Failure  Failure
	Restarts int
	Err      error // what the strategy says
}

func (e *NoRestartError) Error() string {
	return fmt.Sprintf("%v; no restart follows, after %d of them: %v", e.Failure, e.Restarts, e.Err)
}

func (e *NoRestartError) Unwrap() error { return e.Failure }

// fail ends the job FAILED.
func (m *Machine) fail(err error) {
	m.decide(ending{status: Failed, how: checkpoint.JobFailed, err: err})
}

// decide ends the job, once all tasks are gone. The first decision counts.
func (m *Machine) decide(e ending) {
	if m.end != nil {
		return
	}
	m.end, m.restart = &e, nil
	switch e.status {
	case Failed:
		m.become(Failing, e.err)
	case Canceled:
		m.become(Cancelling, nil)
	}
	m.cancel(m.allTasks())
}

func (m *Machine) allTasks() iter.Seq[base.Task] {
	return func(yield func(base.Task) bool) {
		for t := range m.tasks {
			if !yield(base.Task(t)) {
				return
			}
		}
	}
}

// advanceEnd has the end recorded once all tasks are gone, then closes the coordinator, and ends the job once that is closed.
// The record comes first: the coordinator deletes the checkpoints that a job which has FINISHED needs no more, and a crash
// behind that would leave neither them nor a word of why.
func (m *Machine) advanceEnd() bool {
	switch e := m.end; {
	case e.told || slices.ContainsFunc(m.alive, func(n int) bool { return n > 0 }):
		return false
	case e.status == Suspended: // another master goes on
		e.known = true
		return m.closeCheckpoints(e)
	case !e.asked:
		e.asked = true
		m.do(RecordEnd{e.status})
		return true
	default:
		return m.closeCheckpoints(e)
	}
}

// endRecorded goes on with the end. One that is not on record deletes nothing.
func (m *Machine) endRecorded(a EndRecorded) {
	if m.end == nil || !m.end.asked || m.end.known {
		return
	}
	m.end.known = true
	if a.Err != nil {
		m.end.how = checkpoint.JobSuspended
	}
}

// closeCheckpoints closes the coordinator, and ends the job once it is closed.
func (m *Machine) closeCheckpoints(e *ending) bool {
	switch {
	case !e.known:
		return false
	case !e.closed:
		e.closed = true
		m.tell(checkpoint.Closed{End: e.how})
		return true
	case !m.checkpoints.Status().Closed:
		return false
	default:
		e.told = true
		m.finish(e)
		return true
	}
}

// finish answers who waited for the end, and ends.
func (m *Machine) finish(e *ending) {
	for _, r := range m.replies {
		if m.stopped != nil && r.ID == m.stopped.ID && e.status != Finished {
			r.Err = e.err
			if r.Err == nil {
				r.Err = &StoppedError{Job: m.config.Name, Location: r.Location, Err: fmt.Errorf("the job is %v", e.status)}
			}
		}
		m.do(r)
	}
	m.become(e.status, e.err)
	end := End{Status: e.status, Err: e.err}
	if m.stopped != nil {
		end.Savepoint = m.stopped.Location
	}
	m.do(end)
}

// become changes the status.
func (m *Machine) become(s Status, why error) {
	if m.status == s {
		return
	}
	switch {
	case s == Running:
		m.tell(checkpoint.JobRunning{})
	case m.status == Running && !s.Terminal():
		m.tell(checkpoint.JobNotRunning{})
	}
	m.status = s
	report := ReportStatus{Status: s, Err: why}
	if s == Cancelling {
		report.Savepoint = m.end.savepoint
	}
	m.do(report)
}
