package checkpoint

import (
	"time"

	"github.com/weirstream/weir/internal/base"
)

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
	if e.Exec.Attempt < t.attempt || e.Exec.Attempt == t.attempt && t.state == TaskGone {
		return // late: a task that is gone does not come back, or finish, but by a new attempt
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

// finalState says where the job's final checkpoint is. Once every task is at the end of its data, all wait for one more
// checkpoint, so that what they have written is committed. It is asked for at once, not at the next period, and again after
// a failure: a job of one interval a day would else end a day late.
type finalState uint8

const (
	finalNone  finalState = iota // some task has still data
	finalDue                     // to be asked for at finalAt
	finalAsked                   // queued or pending
	finalDone                    // completed: now the tasks finish
)

// reviseFinal has a final checkpoint that could not be asked for yet asked for now.
func (c *Coordinator) reviseFinal() {
	if c.final == finalDue {
		c.finalAt = c.now
	}
}

// askFinal asks for the final checkpoint when it is due.
func (c *Coordinator) askFinal() {
	if c.final != finalDue || c.now < c.finalAt {
		return
	}
	c.finalAt = Never
	if c.cfg.FinishAtEnd || c.running == 0 || !c.jobRunning || c.terminal != nil || c.closing || c.restoring {
		return // JobRunning or the next change of a task looks again
	}
	c.final = finalAsked
	c.enqueue(request{Requested: Requested{Kind: Checkpoint}, origin: final, at: c.now})
}

// finalFailed has the final checkpoint asked for again after a while.
func (c *Coordinator) finalFailed() {
	if c.final == finalAsked {
		c.final, c.finalAt = finalDue, c.now.Add(c.cfg.FinalRetry)
	}
}

// activate starts the periodic checkpoints once the job runs with all its tasks, and stops them as soon as it does not.
func (c *Coordinator) activate() {
	whole := c.jobRunning && c.notRunning == 0
	want := c.cfg.Interval > 0 && whole && c.stops == 0 && c.terminal == nil && !c.closing
	switch {
	case want && !c.scheduling:
		c.scheduling = true
		c.next = c.now.Add(c.firstDelay)
		c.firstDelay = c.cfg.MinPause
	case !want && c.scheduling:
		c.scheduling, c.next = false, Never
		if !whole {
			c.abortAll(Suspended)
		}
	}
}

// tick asks for a periodic checkpoint when one is due. The rate is fixed, but a late tick does not make up for the ones it
// missed, and at most one request waits: while a checkpoint takes long, Flink queues a request each interval and then runs
// them back to back.
func (c *Coordinator) tick() {
	if c.now < c.next {
		return
	}
	if interval, some := c.interval(); some {
		c.next = c.next.Add(interval)
		if c.next <= c.now {
			c.next = c.now.Add(interval)
		}
	} else {
		c.next = Never
	}
	if !c.queue.has(periodic) {
		c.enqueue(request{Requested: Requested{Kind: Checkpoint}, origin: periodic, at: c.now})
	}
}

// interval is the time between periodic checkpoints; false: none are taken now.
func (c *Coordinator) interval() (time.Duration, bool) {
	if len(c.backlog) > 0 && c.cfg.BacklogInterval != 0 {
		return c.cfg.BacklogInterval, c.cfg.BacklogInterval > 0
	}
	return c.cfg.Interval, c.cfg.Interval > 0
}

func (c *Coordinator) backlogChanged(e BacklogChanged) {
	if e.Vertex >= 0 && e.Vertex < len(c.toEndOf) && (!e.Backlog || c.toEndOf[e.Vertex] > 0) {
		c.setBacklog(e.Vertex, e.Backlog)
	}
}

// setBacklog notes whether a vertex works off a backlog. Leaving one may pull the next checkpoint forward; entering one never
// puts it off.
func (c *Coordinator) setBacklog(vertex int, backlog bool) {
	if c.backlog[vertex] == backlog {
		return
	}
	if backlog {
		c.backlog[vertex] = true
	} else {
		delete(c.backlog, vertex)
	}
	if interval, some := c.interval(); some && c.scheduling {
		c.next = min(c.next, c.now.Add(interval))
	}
}
