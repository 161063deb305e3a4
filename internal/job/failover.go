package job

import (
	"errors"
	"iter"
	"slices"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
)

// restart is everything from a failure to the next deployment.
//
//	waiting ---- all affected tasks gone, delay over: RestoreAsked ----> asking
//	   ^                                                                   | Restore{From}
//	   |<------------- another region fails: it joins ---------------- resetting ---- OperatorsReset ----> deployed
//
// A failure that joins sends the restart back to waiting, for the tasks of the newly failed region. The coordinator still
// owes one answer if it was asked; it is not asked again before it has come, so restarts and Restores stay one to one even
// when ten failures fall into one delay. An answer to an abandoned reset is known by its token.
type restart struct {
	phase    phase
	affected []bool // by region
	at       checkpoint.Time
	due      bool // at has come
	asked    bool // the coordinator owes a Restore
	token    Token
	from     *checkpoint.Completed
}

type phase uint8

const (
	waiting phase = iota
	asking
	resetting
)

// started begins the first deployment: a restart of everything that no failure began.
func (m *Machine) started(now checkpoint.Time) {
	if m.status != Created || m.end != nil || m.restart != nil {
		return
	}
	m.restart = m.newRestart(now)
	m.join(m.allRegions())
}

func (m *Machine) newRestart(at checkpoint.Time) *restart {
	return &restart{at: at, affected: make([]bool, len(m.regions))}
}

func (m *Machine) allRegions() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range m.regions {
			if !yield(i) {
				return
			}
		}
	}
}

func (m *Machine) operatorFailed(now checkpoint.Time, e OperatorFailed) {
	if e.Vertex < 0 || e.Vertex >= len(m.graph.Vertices) {
		return
	}
	m.failed(now, Failure{Where: "the coordinator of source " + m.graph.Vertices[e.Vertex].Head().Label(), Exec: checkpoint.NoExec,
		Err: e.Err, Permanent: e.Permanent})
}

// failJob takes what the coordinator thinks a failure.
func (m *Machine) failJob(now checkpoint.Time, a checkpoint.FailJob) {
	if n := len(m.failures); a.Terminal && m.stopped != nil && n > 0 {
		m.fail(&StoppedError{Job: m.config.Name, Location: m.stopped.Location, Err: m.failures[n-1]})
		return
	}
	err := a.Err
	if err == nil {
		err = errors.New(a.Reason.Message())
	}
	f := Failure{Exec: checkpoint.NoExec, Err: err, Permanent: a.Terminal}
	if a.Exec != checkpoint.NoExec {
		x := m.current(a.Exec)
		if !a.Terminal && (x == nil || !x.state.alive()) {
			return
		}
		if int(a.Exec.Task) < len(m.tasks) {
			f.Where, f.Exec = m.label(a.Exec.Task), a.Exec
		}
	}
	m.failed(now, f)
}

// failed decides what follows a failure: the end, a restart, or that it joins the restart under way.
func (m *Machine) failed(now checkpoint.Time, f Failure) {
	m.failures = append(m.failures, f)
	if len(m.failures) > failuresKept {
		m.failures = slices.Delete(m.failures, 0, 1)
	}
	if m.end != nil {
		return
	}
	if m.stopped != nil {
		m.fail(&StoppedError{Job: m.config.Name, Location: m.stopped.Location, Err: f})
		return
	}
	if f.Permanent {
		m.fail(f)
		return
	}
	if m.restart == nil && !m.begin(now, f) {
		return
	}
	m.join(m.affectedBy(f))
}

// affectedBy are the regions that a failure takes down: that of its task, or all.
func (m *Machine) affectedBy(f Failure) iter.Seq[int] {
	if f.Exec == checkpoint.NoExec {
		return m.allRegions()
	}
	return slices.Values([]int{m.regionOfTask(f.Exec.Task)})
}

// begin begins a restart; false: the strategy has none, and the job fails.
func (m *Machine) begin(now checkpoint.Time, f Failure) bool {
	random := 0.5
	if m.config.Random != nil {
		random = m.config.Random()
	}
	delay, err := m.config.Restart.next(&m.history, now, random)
	if err != nil {
		m.fail(&NoRestartError{Failure: f, Restarts: m.restarts, Err: err})
		return false
	}
	m.restarts++
	m.restart = m.newRestart(now.Add(delay))
	m.do(ReportRestart{Failure: f, Number: m.restarts, Delay: delay, Strategy: m.config.Restart.Kind})
	m.become(Restarting, f)
	return true
}

// join adds regions to the restart under way, and tells their tasks to end.
func (m *Machine) join(regions iter.Seq[int]) {
	r := m.restart
	for i := range regions {
		if !r.affected[i] {
			r.affected[i] = true
			r.phase = waiting
		}
		m.cancel(slices.Values(m.regions[i]))
	}
}

// advanceRestart asks for a restore point once the last affected task is gone and the delay is over.
func (m *Machine) advanceRestart(now checkpoint.Time) bool {
	r := m.restart
	r.due = now >= r.at
	if r.phase != waiting || !r.due || r.asked || m.anyAlive() {
		return false
	}
	r.phase, r.asked = asking, true
	m.tell(checkpoint.RestoreAsked{Global: !slices.Contains(r.affected, false)})
	return true
}

// anyAlive is true while a task of an affected region is not gone.
func (m *Machine) anyAlive() bool {
	for i, affected := range m.restart.affected {
		if affected && m.alive[i] > 0 {
			return true
		}
	}
	return false
}

// restorePoint hears from the coordinator what to go on from.
func (m *Machine) restorePoint(from *checkpoint.Completed) {
	r := m.restart
	if m.end != nil || r == nil || !r.asked {
		return
	}
	r.asked = false
	if r.phase != asking {
		return // another region has joined; asked again when its tasks are gone
	}
	m.tokens++
	r.phase, r.token, r.from = resetting, m.tokens, from
	m.do(ResetOperators{Token: r.token, Vertices: m.affectedSources(), From: from})
}

// affectedSources are the vertices with operator coordinators in the affected regions.
func (m *Machine) affectedSources() (vertices []int) {
	for _, v := range m.graph.Vertices {
		if coordinated(v) && m.restart.affected[m.regionOf[v.Index]] {
			vertices = append(vertices, v.Index)
		}
	}
	return vertices
}

// operatorsReset ends the restart with the deployment of all affected tasks. A reset that failed is a failure of its own, of
// everything, with a restart of its own: or a coordinator that cannot be restored would be tried in a tight loop.
func (m *Machine) operatorsReset(now checkpoint.Time, e OperatorsReset) {
	r := m.restart
	if m.end != nil || r == nil || r.phase != resetting || r.token != e.Token {
		return
	}
	m.restart = nil
	if e.Err != nil {
		m.failed(now, Failure{Exec: checkpoint.NoExec, Err: e.Err, Permanent: e.Permanent})
		return
	}
	var tasks []base.Task
	for i, affected := range r.affected {
		if affected {
			tasks = append(tasks, m.regions[i]...)
		}
	}
	slices.Sort(tasks)
	m.deploy(tasks, r.from)
	m.become(Running, nil)
}
