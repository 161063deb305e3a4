package jobmaster

import (
	"fmt"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/stats"
	"github.com/weirstream/weir/internal/task"
	"github.com/weirstream/weir/internal/worker"
)

// Here the statistics hear of what happens: of what the machine hears (observe), of what it wants done (perform), and of what tasks
// tell of themselves (noted). Nothing depends on them.

// observe looks at what the machine hears.
func (m *Master) observe(e job.Event) {
	switch e := e.(type) {
	case job.TaskReported:
		m.lives.reported(e)
		m.observeStart(e)
	case job.Relayed:
		m.observeCheckpoint(e.Event)
	default: // of what else happens the machine tells in its reports
	}
}

func (m *Master) observeCheckpoint(e checkpoint.CoordinatorEvent) {
	switch e := e.(type) {
	case checkpoint.TaskAcked:
		var size snapshot.Sizes
		if t, ok := e.State.(*snapshot.TaskState); ok {
			size = t.Sizes()
		}
		m.stats.Acknowledged(e, size, time.Now())
	case checkpoint.OperatorSnapped:
		m.answered(e.Token)
	case checkpoint.HookSnapped:
		m.answered(e.Token)
	default: // of what else happens the coordinator tells in its reports
	}
}

// question is an operator coordinator or a hook whose snapshot is waited for.
type question struct {
	id  base.CheckpointID
	who string
}

func (m *Master) asking(t checkpoint.Token, id base.CheckpointID, who string) {
	m.questions[t] = question{id, who}
	m.stats.Asked(id, who)
}

func (m *Master) answered(t checkpoint.Token) {
	q := m.questions[t]
	delete(m.questions, t)
	m.stats.Answered(q.id, q.who)
}

// finished is whether a task takes no part in checkpoints any more.
func (m *Master) finished(t base.Task) bool { return m.lives.tasks[t].State == TaskFinished }

// noted hears what a task tells of itself.
func (m *Master) noted(x base.Exec, n worker.Noted) {
	m.lives.counted(x, n.Counters)
	now := time.Now()
	switch n := n.Note.(type) {
	case task.Aligning:
		m.stats.Aligning(n.ID, x.Task, now)
	case task.Writing:
		m.stats.Writing(n.ID, x.Task, n.Metrics, now)
	case task.Restored:
		m.stats.Phased(x, phasesOf(n))
	default:
		panic(fmt.Sprintf("jobmaster: unknown note %T", n))
	}
}

func phasesOf(n task.Restored) stats.Phases {
	return stats.Phases{Read: n.Read, Restore: n.Restore, InFlight: n.InFlight, Open: n.Open, Bytes: n.Bytes}
}

func (m *Master) observeStart(r job.TaskReported) {
	switch r.State {
	case job.TaskInitializing:
		m.stats.Initializing(r.Exec, time.Now())
	case job.TaskRunning:
		if m.stats.Running(r.Exec, time.Now()) {
			m.log.Info(m.stats.Restored.Explain(m.options.Graph))
		}
	}
}
