package checkpoint

import "time"

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

// setBacklog notes whether a vertex works off a backlog. Leaving one may pull the next checkpoint forward; entering one
// never puts it off.
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
