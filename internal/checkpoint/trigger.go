package checkpoint

import "github.com/weirstream/weir/internal/base"

// start makes a pending checkpoint of a request, or refuses it. The timeout counts from here, so that a location, an
// operator coordinator or a hook that never answers is found too.
func (c *Coordinator) start(r request) {
	pl, err := c.makePlan()
	if err != nil {
		c.refuse(r, NotAllTasksRunning, err)
		return
	}
	c.lastID++
	n := len(c.tasks)
	p := &pending{
		id: c.lastID, request: r, began: c.now, deadline: c.now.Add(c.cfg.Timeout), plan: pl, left: pl.waits,
		acked: make([]bool, n),
	}
	p.barrier = c.makeBarrier(p)
	p.done = &Completed{
		ID: p.id, Kind: p.barrier.Kind, Format: p.barrier.Format, Base: p.barrier.Base, Keep: p.barrier.Kind.IsSavepoint(),
		Tasks: make([]any, n), Finished: pl.finished, Ended: make([]bool, n),
		Operators: make([]any, len(c.graph.Vertices)), Hooks: make([]any, c.cfg.Hooks),
	}
	c.pending = append(c.pending, p)
	c.triggering = p
	c.do(CreateLocation{c.ask(askedLocation, p.id, 0), p.id, p.barrier.Kind, r.Target})
}

// makeBarrier is the barrier of p, without what its location will add.
func (c *Coordinator) makeBarrier(p *pending) Barrier {
	b := Barrier{ID: p.id, Kind: p.request.Kind, Format: p.request.format(), Alignment: c.alignment(p.request.Kind)}
	if b.Alignment == Aligned && c.cfg.Unaligned && !b.Kind.IsSavepoint() {
		b.Timeout = c.cfg.AlignedTimeout
	}
	if b.Kind == Checkpoint && c.forceFull {
		b.Kind = FullCheckpoint
	}
	if b.Kind == Checkpoint {
		b.Base = c.base()
	}
	return b
}

// alignment is how a checkpoint of this kind begins. In a job of at-least-once even savepoints block nothing; a stop is
// exact all the same, because no record follows the end of data. Savepoints are never unaligned.
func (c *Coordinator) alignment(k Kind) Alignment {
	switch {
	case c.cfg.AtLeastOnce:
		return AtLeastOnce
	case c.cfg.Unaligned && !k.IsSavepoint() && c.cfg.AlignedTimeout == 0:
		return Unaligned
	default:
		return Aligned
	}
}

// base is the newest checkpoint of the job's own: its files may be referred to.
func (c *Coordinator) base() base.CheckpointID {
	if c.cfg.Whole {
		return 0
	}
	for i := len(c.completed) - 1; i >= 0; i-- {
		if d := c.completed[i]; !d.Kind.IsSavepoint() && !d.Keep && !d.Apart {
			return d.ID
		}
	}
	return 0
}

// locationCreated goes on to the operator coordinators. They come first, before hooks and tasks: what they sent before
// their snapshot is then delivered before any barrier, and what they send after it waits for the barrier.
func (c *Coordinator) locationCreated(e LocationCreated) {
	q, p, ok := c.answered(e.Token, askedLocation)
	switch {
	case !ok:
		return
	case p == nil:
		if e.Err == nil {
			c.discard(Discard{ID: q.id, Location: e.Location})
		}
		return
	case e.Err != nil:
		c.abort(p, reasonOf(e.Err, IOFailure), NoExec, e.Err)
		return
	}
	p.barrier.Location, p.done.Location = e.Location, e.Location
	p.barrier.Wall, p.done.Wall = e.Wall, e.Wall
	p.phase = operators
	c.do(p.report(Begun))
	for v := range c.graph.Vertices {
		if c.graph.Vertices[v].Coordinated {
			p.answers++
			c.do(SnapshotOperator{c.ask(askedOperator, p.id, v), p.id, v})
		}
	}
	c.maybeSnapshotHooks(p)
}

// operatorSnapped keeps an operator coordinator's state and closes the gate behind it: its events now wait.
func (c *Coordinator) operatorSnapped(e OperatorSnapped) {
	q, p, ok := c.answered(e.Token, askedOperator)
	if !ok || p == nil {
		return
	}
	if e.Err != nil {
		c.abort(p, reasonOf(e.Err, TriggerFailure), NoExec, e.Err)
		return
	}
	p.done.Operators[q.slot] = e.State
	v := &c.graph.Vertices[q.slot]
	for t := v.First; t < v.First+base.Task(v.Parallelism); t++ {
		if p.plan.wait[t] != NoExec.Attempt {
			c.tasks[t].holdFor = p.id
		}
	}
	p.answers--
	c.maybeSnapshotHooks(p)
}

func (c *Coordinator) maybeSnapshotHooks(p *pending) {
	if p.answers > 0 {
		return
	}
	p.phase = hooks
	for h := range c.cfg.Hooks {
		p.answers++
		c.do(SnapshotHook{c.ask(askedHook, p.id, h), p.id, h})
	}
	c.maybeTrigger(p)
}

func (c *Coordinator) hookSnapped(e HookSnapped) {
	q, p, ok := c.answered(e.Token, askedHook)
	if !ok || p == nil {
		return
	}
	if e.Err != nil {
		c.abort(p, reasonOf(e.Err, TriggerFailure), NoExec, e.Err)
		return
	}
	p.done.Hooks[q.slot] = e.State
	p.answers--
	c.maybeTrigger(p)
}

// maybeTrigger sends the barrier out, and behind it on the same links the events that waited for it.
func (c *Coordinator) maybeTrigger(p *pending) {
	if p.answers > 0 {
		return
	}
	p.phase = triggered
	c.triggering = nil
	c.do(TriggerTasks{p.plan.trigger, p.barrier})
	c.release(p.id)
}

// release opens the gates that are closed for a checkpoint. Only sources have operator coordinators, and every running
// source is triggered itself: so no event needs to wait longer than for TriggerTasks.
func (c *Coordinator) release(id base.CheckpointID) {
	for vi := range c.graph.Vertices {
		v := &c.graph.Vertices[vi]
		if !v.Coordinated {
			continue
		}
		for t := v.First; t < v.First+base.Task(v.Parallelism); t++ {
			if c.tasks[t].holdFor == id {
				c.releaseTask(t)
			}
		}
	}
}

func (c *Coordinator) releaseTask(t base.Task) {
	s := &c.tasks[t]
	for _, payload := range s.held {
		c.do(SendEvent{base.Exec{Task: t, Attempt: s.attempt}, payload})
	}
	s.holdFor, s.held = 0, nil
}

// operatorSent passes an operator coordinator's event on, or holds it.
func (c *Coordinator) operatorSent(e OperatorSent) {
	if !c.isKnown(e.To) {
		return
	}
	t := &c.tasks[e.To]
	if t.holdFor != 0 {
		t.held = append(t.held, e.Payload)
		return
	}
	c.do(SendEvent{base.Exec{Task: e.To, Attempt: t.attempt}, e.Payload})
}

func (c *Coordinator) triggerRefused(e TriggerRefused) {
	if p := c.find(e.ID); p != nil && p.expects(e.Exec) {
		c.abort(p, e.Reason.orElse(TriggerFailure), NoExec, e.Err)
	}
}
