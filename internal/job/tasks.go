package job

import (
	"errors"
	"fmt"
	"iter"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/graph"
)

// tasksOf are the tasks of a vertex.
func tasksOf(v *graph.Vertex) iter.Seq[base.Task] {
	return func(yield func(base.Task) bool) {
		for i := range v.Parallelism {
			if !yield(v.First + base.Task(i)) {
				return
			}
		}
	}
}

// checkpointGraph is the part of the graph that the coordinator needs.
func checkpointGraph(g *graph.Job) checkpoint.Graph {
	var c checkpoint.Graph
	for _, v := range g.Vertices {
		w := checkpoint.Vertex{Name: v.Name, First: v.First, Parallelism: v.Parallelism, Coordinated: coordinated(v)}
		for _, n := range v.Nodes {
			w.Union = w.Union || n.Union
		}
		for _, l := range v.Inputs {
			e := checkpoint.Edge{From: l.From.Index}
			if l.Kind.Pointwise() {
				e.Pattern = checkpoint.Pointwise
			}
			w.Inputs = append(w.Inputs, e)
		}
		c.Vertices = append(c.Vertices, w)
	}
	return c
}

// coordinated is true of a vertex with an operator coordinator.
func coordinated(v *graph.Vertex) bool { return v.IsSource() && v.Head().Coordinator != nil }

// regionOfTask is the region of a task.
func (m *Machine) regionOfTask(t base.Task) int {
	v, _ := m.graph.Locate(t)
	return m.regionOf[v.Index]
}

// current is the execution that x names, unless x is an old one or there is no such task.
func (m *Machine) current(x base.Exec) *execution {
	if x.Task < 0 || int(x.Task) >= len(m.tasks) || m.tasks[x.Task].attempt != x.Attempt || m.tasks[x.Task].state == idle {
		return nil
	}
	return &m.tasks[x.Task]
}

func (m *Machine) taskReported(now checkpoint.Time, e TaskReported) {
	x := m.current(e.Exec)
	if x == nil || !x.state.alive() {
		return
	}
	told := x.state == canceling
	switch e.State {
	case TaskInitializing:
	case TaskRunning:
		if x.state == deploying {
			x.state = running
			m.tell(checkpoint.TaskChanged{Exec: e.Exec, State: checkpoint.TaskRunning})
		}
	case TaskFinished:
		m.over(e.Exec, told)
	case TaskFailed:
		m.over(e.Exec, true)
		if !told {
			m.failed(now, m.failureOf(e.Exec, e.Err, e.Permanent))
		}
	case TaskCanceled:
		m.over(e.Exec, true)
		if !told {
			m.failed(now, m.failureOf(e.Exec, errors.New("it was canceled, and not by the job's master"), false))
		}
	default:
		panic(fmt.Sprintf("job: unknown task state %d", e.State))
	}
}

// over takes an execution that has ended. One that was told to end does not count as finished, whatever it says.
func (m *Machine) over(x base.Exec, isGone bool) {
	t := &m.tasks[x.Task]
	m.alive[m.regionOfTask(x.Task)]--
	if isGone {
		if t.state != canceling {
			m.tell(checkpoint.TaskChanged{Exec: x, State: checkpoint.TaskGone})
		}
		t.state = gone
		return
	}
	t.state = finished
	m.finished++
	m.tell(checkpoint.TaskChanged{Exec: x, State: checkpoint.TaskFinished})
}

func (m *Machine) linkBroken(now checkpoint.Time, e LinkBroken) {
	if x := m.current(e.Exec); x != nil && (x.state == deploying || x.state == running) {
		m.failed(now, m.failureOf(e.Exec, e.Err, false))
	}
}

// cancel tells those of the tasks to end that were not told yet.
func (m *Machine) cancel(tasks iter.Seq[base.Task]) {
	var told []base.Exec
	for t := range tasks {
		x := &m.tasks[t]
		if x.state != deploying && x.state != running {
			continue
		}
		x.state = canceling
		exec := base.Exec{Task: t, Attempt: x.attempt}
		told = append(told, exec)
		m.tell(checkpoint.TaskChanged{Exec: exec, State: checkpoint.TaskGone})
	}
	if len(told) > 0 {
		m.do(CancelTasks{told})
	}
}

// deploy starts a new execution of each task.
func (m *Machine) deploy(tasks []base.Task, from *checkpoint.Completed) {
	execs := make([]base.Exec, 0, len(tasks))
	for _, t := range tasks {
		x := &m.tasks[t]
		if x.state == finished {
			m.finished--
		}
		if x.state == idle {
			x.attempt = base.FirstAttempt(m.config.Run, 0)
		} else {
			x.attempt++
		}
		x.state = deploying
		m.alive[m.regionOfTask(t)]++
		execs = append(execs, base.Exec{Task: t, Attempt: x.attempt})
		m.tell(checkpoint.TaskChanged{Exec: execs[len(execs)-1], State: checkpoint.TaskDeploying})
	}
	m.do(DeployTasks{Tasks: execs, From: from})
}
