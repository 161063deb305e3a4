package checkpoint

import "github.com/weirstream/weir/internal/base"

// task is what is known of a subtask: of its newest attempt.
type task struct {
	attempt base.Attempt
	vertex  int
	state   TaskState
	ended   bool
	holdFor base.CheckpointID // events wait for the trigger of this checkpoint; 0: they go out at once
	held    []any
}

// active: it runs, or need not run any more.
func (t *task) active() bool { return t.state == TaskRunning || t.state == TaskFinished }

// count adds t to the counters of tasks, or (by -1) takes it out before it changes.
func (c *Coordinator) count(t *task, by int) {
	if t.state == TaskRunning {
		c.running += by
	}
	if !t.active() {
		c.notRunning += by
	}
	if !t.ended {
		c.toEnd += by
		c.toEndOf[t.vertex] += by
	}
}

// isKnown: there is such a task. After a rescale an old message may name one that is out of range.
func (c *Coordinator) isKnown(t base.Task) bool { return t >= 0 && int(t) < len(c.tasks) }

// isCurrent: x is the newest attempt of its task; anything else is late.
func (c *Coordinator) isCurrent(x base.Exec) bool {
	return c.isKnown(x.Task) && c.tasks[x.Task].attempt == x.Attempt
}

func (c *Coordinator) taskChanged(e TaskChanged) {
	if !c.isKnown(e.Exec.Task) {
		return
	}
	t := &c.tasks[e.Exec.Task]
	over := t.state == TaskGone || t.state == TaskFinished && e.State != TaskGone
	if e.Exec.Attempt < t.attempt || e.Exec.Attempt == t.attempt && over {
		return // late: a task that is gone, or has finished, comes back only by a new attempt
	}
	c.count(t, -1)
	if e.Exec.Attempt > t.attempt {
		*t = task{attempt: e.Exec.Attempt, vertex: t.vertex}
	}
	t.state = e.State
	t.ended = t.ended || e.State == TaskFinished
	c.count(t, +1)
	c.abortMissing(e.Exec.Task)
	c.taskSettled(t)
}

// abortMissing aborts the checkpoints that wait for an acknowledgement that will not come: the task finished, or went, or
// was replaced, without it.
func (c *Coordinator) abortMissing(task base.Task) {
	if len(c.pending) == 0 {
		return
	}
	t := &c.tasks[task]
	c.abortPending(TaskFailure, c.leftError(task), func(p *pending) bool {
		missing := p.plan.wait[task] != NoExec.Attempt && !p.acked[task]
		return missing && (t.state != TaskRunning || t.attempt != p.plan.wait[task])
	})
}

func (c *Coordinator) taskEnded(e TaskEnded) {
	if !c.isCurrent(e.Exec) || c.tasks[e.Exec.Task].ended {
		return
	}
	t := &c.tasks[e.Exec.Task]
	c.count(t, -1)
	t.ended = true
	c.count(t, +1)
	c.taskSettled(t)
}

// taskSettled is called after t changed its state or ended.
func (c *Coordinator) taskSettled(t *task) {
	if c.toEndOf[t.vertex] == 0 {
		c.setBacklog(t.vertex, false)
	}
	switch {
	case c.toEnd > 0:
		c.final, c.finalAt = finalNone, Never
	case c.final == finalNone || c.final == finalDue:
		c.final, c.finalAt = finalDue, c.now
	}
}
