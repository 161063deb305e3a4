package checkpoint

import (
	"errors"
	"fmt"

	"github.com/weirstream/weir/internal/base"
)

// plan says who takes part in a checkpoint.
type plan struct {
	trigger  []base.Exec    // the running tasks without a running predecessor
	wait     []base.Attempt // by task: who is to acknowledge; NoExec.Attempt: nobody
	waits    int
	notify   []base.Exec // who is told of the end: the same, as a list
	finished []bool      // by task
}

var (
	errNobodyRuns = errors.New("all tasks of the job have already finished")
	errFinished   = errors.New("Some tasks of the job have already finished and checkpointing with finished tasks is not enabled.")
)

// makePlan looks at the tasks as they are now. A task that has finished is left out, its part of the state with it; one
// that is gone, or not yet running, refuses the checkpoint: taken for finished, its state would be missing.
func (c *Coordinator) makePlan() (plan, error) {
	n := len(c.tasks)
	p := plan{wait: make([]base.Attempt, n), finished: make([]bool, n), notify: make([]base.Exec, 0, c.running)}
	for i := range c.tasks {
		t := &c.tasks[i]
		switch t.state {
		case TaskFinished:
			p.finished[i] = true
			p.wait[i] = NoExec.Attempt
		case TaskRunning:
			p.wait[i] = t.attempt
			p.notify = append(p.notify, base.Exec{Task: base.Task(i), Attempt: t.attempt})
		case TaskDeploying, TaskGone:
			return plan{}, c.notRunningError(base.Task(i))
		default:
			panic(fmt.Sprintf("checkpoint: unknown state %d of a task", t.state))
		}
	}
	p.waits = len(p.notify)
	switch {
	case p.waits == 0:
		return plan{}, errNobodyRuns
	case p.waits < n && c.cfg.FinishAtEnd:
		return plan{}, errFinished
	}
	c.chooseTriggered(&p)
	return p, nil
}

// chooseTriggered lists whom no barrier would reach: running tasks without a running predecessor.
func (c *Coordinator) chooseTriggered(p *plan) {
	running := make([]int, len(c.graph.Vertices)) // by vertex
	for _, x := range p.notify {
		running[c.tasks[x.Task].vertex]++
	}
	for vi := range c.graph.Vertices {
		v := &c.graph.Vertices[vi]
		if c.allFed(p, v, running) {
			continue
		}
		for i := range v.Parallelism {
			t := v.First + base.Task(i)
			if !p.finished[t] && !c.fed(p, v, i, running) {
				p.trigger = append(p.trigger, base.Exec{Task: t, Attempt: p.wait[t]})
			}
		}
	}
}

// allFed: an input alone feeds every subtask of v.
func (c *Coordinator) allFed(p *plan, v *Vertex, running []int) bool {
	for _, e := range v.Inputs {
		if n := running[e.From]; n > 0 && (e.Pattern == AllToAll || n == c.graph.Vertices[e.From].Parallelism) {
			return true
		}
	}
	return false
}

// fed: subtask i of v has a running predecessor.
func (c *Coordinator) fed(p *plan, v *Vertex, i int, running []int) bool {
	for _, e := range v.Inputs {
		if running[e.From] == 0 {
			continue
		}
		for t, end := c.graph.senders(v, e, i); t < end; t++ {
			if !p.finished[t] {
				return true
			}
		}
	}
	return false
}

func (c *Coordinator) notRunningError(t base.Task) error {
	return fmt.Errorf("checkpoint triggering task %s is not being executed at the moment (%v). Aborting checkpoint.",
		c.graph.describe(t), c.tasks[t].state)
}
