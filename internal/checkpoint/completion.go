package checkpoint

import (
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/base"
)

// taskAcked takes a task's part. What to do with one that nobody waits for is less obvious than it looks: to delete its
// files whenever its checkpoint is not pending would delete those of a completed checkpoint as soon as a link doubles a
// message. They go only where the checkpoint is known to have been aborted, or never expected this execution; the rest is
// left to the sweep of orphans.
func (c *Coordinator) taskAcked(e TaskAcked) {
	switch p := c.find(e.ID); {
	case p == nil:
		if c.aborted.has(e.ID) {
			c.discard(Discard{ID: e.ID, State: e.State})
		}
	case !p.expects(e.Exec):
		c.discard(Discard{ID: e.ID, State: e.State})
	case p.acked[e.Exec.Task] || p.phase != triggered: // doubled: its files are the ones we have
	default:
		c.acknowledge(p, e)
	}
}

func (c *Coordinator) acknowledge(p *pending, e TaskAcked) {
	p.acked[e.Exec.Task] = true
	p.done.Tasks[e.Exec.Task], p.done.Ended[e.Exec.Task] = e.State, e.Ended
	p.left--
	if p.left == 0 {
		c.finalize(p)
	}
}

func (c *Coordinator) taskDeclined(e TaskDeclined) {
	if p := c.find(e.ID); p != nil && p.expects(e.Exec) {
		c.abort(p, e.Reason.orElse(Declined), e.Exec, e.Err)
	}
}

// finalize seals p: from here on only the answers decide.
func (c *Coordinator) finalize(p *pending) {
	if err := c.unionError(p); err != nil {
		c.abort(p, DeclinedClosing, NoExec, err)
		return
	}
	p.phase, p.allAcked = writing, c.now
	c.do(WriteMetadata{c.ask(askedMetadata, p.id, 0), p.done})
}

// unionError refuses a checkpoint in which some but not all subtasks of a vertex with union state are at their end: each
// restored subtask is given the union of all parts, and those of the others are no longer there.
func (c *Coordinator) unionError(p *pending) error {
	for vi := range c.graph.Vertices {
		v := &c.graph.Vertices[vi]
		if !v.Union {
			continue
		}
		ended := 0
		for t := v.First; t < v.First+base.Task(v.Parallelism); t++ {
			if p.done.Finished[t] || p.done.Ended[t] {
				ended++
			}
		}
		if ended > 0 && ended < v.Parallelism {
			return fmt.Errorf("the vertex %s (id=%d) has used UnionListState, but only %d of its %d tasks have finished",
				v.Name, vi, ended, v.Parallelism)
		}
	}
	return nil
}

func (c *Coordinator) metadataWritten(e MetadataWritten) {
	_, p, ok := c.answered(e.Token, askedMetadata)
	switch {
	case !ok || p == nil:
	case e.Err != nil:
		p.phase = triggered
		c.abort(p, reasonOf(e.Err, FinalizeFailure), NoExec, e.Err)
	case p.commits():
		p.phase, p.bytes = storing, e.Bytes
		c.do(Store{c.ask(askedStore, p.id, 0), p.done})
	default:
		p.bytes = e.Bytes
		c.complete(p)
	}
}

func (c *Coordinator) stored(e Stored) {
	_, p, ok := c.answered(e.Token, askedStore)
	switch {
	case !ok || p == nil:
	case e.Err != nil:
		c.withdraw(p, e.Err)
	default:
		c.complete(p)
	}
}

// withdraw takes back what has been published but could not be stored. Until it is gone p stays sealed: a restart may still
// begin from it, so nothing may go on without it, and no late acknowledgement may have a file of it deleted.
func (c *Coordinator) withdraw(p *pending, err error) {
	p.phase, p.failure = withdrawing, err
	c.cleaning++
	c.do(Discard{Token: c.ask(askedWithdraw, p.id, 0), ID: p.id, Location: p.done.Location, Completed: p.done})
}

// complete ends p well. Tasks commit only what a restart would begin from: so no task hears of a plain savepoint, and of
// everything else only after it has been stored.
func (c *Coordinator) complete(p *pending) {
	c.remove(p)
	c.lastDone, c.everDone = c.now, true
	c.failures.succeeded(p.id)
	if c.final != finalNone && p.commits() && p.endsAll() {
		c.finalCompleted()
	}
	c.reportSuccess(p)
	if p.request.Request != 0 {
		c.do(Reply{Request: p.request.Request, ID: p.id, Location: p.done.Location})
	}
	if p.commits() {
		c.commit(p)
	}
}

func (c *Coordinator) reportSuccess(p *pending) {
	r := p.report(Succeeded)
	r.Bytes, r.Duration, r.Finalize = p.bytes, c.now.Sub(p.began), c.now.Sub(p.allAcked)
	c.do(r)
}

// commit makes p the newest completed checkpoint, tells its tasks, and gives up what it makes obsolete.
func (c *Coordinator) commit(p *pending) {
	if !p.done.Kind.IsSavepoint() {
		c.forceFull = false
	}
	c.keep(p.done)
	retired := c.retire()
	c.do(NotifyComplete{ID: p.id, Subsumed: newestBefore(retired, p.id), Tasks: p.plan.notify})
	c.discardAll(retired)
	if p.stops() {
		c.stopAt(p.done)
		return
	}
	c.abortPending(Subsumed, nil, func(o *pending) bool { return o.id < p.id && !o.done.Kind.IsSavepoint() })
}

// stopAt ends checkpointing with the savepoint by which the job stops. From now on tasks finish by it, not by their end of
// data: a later checkpoint would take one that has stopped early for one that has processed everything, and lose its state.
func (c *Coordinator) stopAt(s *Completed) {
	c.terminal = s
	c.refuseQueued(Suspended, stoppedError(s), anyRequest)
	c.abortPending(Suspended, stoppedError(s), anyPending)
}

func stoppedError(s *Completed) error {
	return fmt.Errorf("the job has stopped with savepoint %d at %s", s.ID, s.Location)
}

// keep adds d to the completed checkpoints. An older one may complete after a newer: it was sealed when the newer came.
func (c *Coordinator) keep(d *Completed) {
	i := len(c.completed)
	for i > 0 && c.completed[i-1].ID > d.ID {
		i--
	}
	c.completed = slices.Insert(c.completed, i, d)
}

// retire takes out, oldest first, what retention does not keep: more checkpoints than are to be retained, and before the
// newest whatever belongs to somebody else. A checkpoint that a pending one builds upon stays until that one ends.
func (c *Coordinator) retire() []*Completed {
	own := 0
	for _, d := range c.completed {
		if !d.Keep {
			own++
		}
	}
	var retired []*Completed
	for i := 0; i < len(c.completed)-1; {
		d := c.completed[i]
		if c.pinned(d.ID) || !d.Keep && own <= c.cfg.Retained {
			i++
			continue
		}
		if !d.Keep {
			own--
		}
		retired = append(retired, d)
		c.completed = slices.Delete(c.completed, i, i+1)
	}
	return retired
}

func (c *Coordinator) pinned(id base.CheckpointID) bool {
	return slices.ContainsFunc(c.pending, func(p *pending) bool { return p.barrier.Base == id })
}

// newestBefore is the last id of some checkpoints that is before another; 0: there is none.
func newestBefore(ds []*Completed, id base.CheckpointID) base.CheckpointID {
	for i := len(ds) - 1; i >= 0; i-- {
		if ds[i].ID < id {
			return ds[i].ID
		}
	}
	return 0
}

// discardAll deletes checkpoints that are not somebody else's.
func (c *Coordinator) discardAll(ds []*Completed) {
	for _, d := range ds {
		if !d.Keep {
			c.discard(Discard{ID: d.ID, Location: d.Location, Completed: d})
		}
	}
}

// discard has something deleted. What is being cleaned holds new checkpoints back: a storage that deletes slower than it is
// written to would fill up.
func (c *Coordinator) discard(d Discard) {
	c.cleaning++
	d.Token = c.ask(askedDiscard, d.ID, 0)
	c.do(d)
}

func (c *Coordinator) discarded(e Discarded) {
	if _, _, ok := c.answered(e.Token, askedDiscard); ok {
		c.cleaning--
		return
	}
	if _, p, ok := c.answered(e.Token, askedWithdraw); ok {
		c.cleaning--
		why := reasonOf(p.failure, FinalizeFailure)
		c.drop(p, why)
		c.failedPending(p, why, NoExec, p.failure)
	}
}
