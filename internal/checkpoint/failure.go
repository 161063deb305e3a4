package checkpoint

import (
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/base"
)

// failures counts the checkpoints that failed in a row. Each fails only once, because it is pending only once.
type failures struct {
	consecutive int
	lastGood    base.CheckpointID
}

// succeeded: what failed before id does not matter any more, even where it is heard of later.
func (f *failures) succeeded(id base.CheckpointID) {
	if id > f.lastGood {
		*f = failures{lastGood: id}
	}
}

// abortedRing remembers the last checkpoints that were aborted, to tell a late acknowledgement from a doubled one.
type abortedRing struct {
	ids  [256]base.CheckpointID
	next int
}

func (r *abortedRing) add(id base.CheckpointID) {
	r.ids[r.next] = id
	r.next = (r.next + 1) % len(r.ids)
}

func (r *abortedRing) has(id base.CheckpointID) bool { return id != 0 && slices.Contains(r.ids[:], id) }

// abort ends p badly and deletes what it left, unless it is sealed. The execution is that of the task that declined it.
func (c *Coordinator) abort(p *pending, why Reason, x base.Exec, err error) {
	if p.sealed() {
		return
	}
	c.drop(p, why)
	if p.phase > locating {
		c.discard(Discard{ID: p.id, Location: p.done.Location, Completed: p.done})
	}
	c.failedPending(p, why, x, err)
}

// drop has p pending no more, and tells its tasks.
func (c *Coordinator) drop(p *pending, why Reason) {
	c.remove(p)
	c.aborted.add(p.id)
	c.release(p.id)
	a := NotifyAborted{ID: p.id, Reason: why, Tasks: p.plan.notify}
	if l := c.latest(); l != nil {
		a.LatestComplete = l.ID
	}
	c.do(a)
}

// failedPending tells whoever asked for p, and counts.
func (c *Coordinator) failedPending(p *pending, why Reason, x base.Exec, err error) {
	if p.request.Request != 0 {
		c.do(Reply{Request: p.request.Request, ID: p.id, Reason: why, Err: err})
	}
	c.ended(&p.request)
	r := p.report(Failed)
	r.Reason, r.Err, r.Exec, r.Duration = why, err, x, c.now.Sub(p.began)
	c.failed(&p.request, r)
}

// abortAll aborts everything queued, and everything pending that is not sealed.
func (c *Coordinator) abortAll(why Reason) {
	c.refuseQueued(why, nil, anyRequest)
	c.abortPending(why, nil, anyPending)
}

func anyPending(*pending) bool { return true }

func anyRequest(*request) bool { return true }

// abortPending aborts the pending checkpoints that match and are not sealed.
func (c *Coordinator) abortPending(why Reason, err error, match func(*pending) bool) {
	for i := 0; i < len(c.pending); {
		p := c.pending[i]
		if p.sealed() || !match(p) {
			i++
			continue
		}
		c.abort(p, why, NoExec, err)
	}
}

// refuseQueued refuses the queued requests that match.
func (c *Coordinator) refuseQueued(why Reason, err error, match func(*request) bool) {
	for i := 0; i < len(c.queue); {
		r := c.queue[i]
		if !match(&r) {
			i++
			continue
		}
		c.queue = slices.Delete(c.queue, i, i+1)
		c.refuse(r, why, err)
	}
}

// failed reports a failure, counts it, and fails the job where there were too many. Failures of savepoints count only where
// a task caused them; a stop that a task declined fails the job at once, because its sources may have stopped.
func (c *Coordinator) failed(r *request, line Report) {
	byTask := line.Exec != NoExec
	stop := byTask && r.Kind.IsSynchronous()
	counted := line.Reason.Counted() && (byTask || !r.Kind.IsSavepoint()) && !stop &&
		c.cfg.TolerableFailures >= 0 && (line.ID == 0 || line.ID > c.failures.lastGood)
	if counted {
		c.failures.consecutive++
	}
	line.What, line.Consecutive, line.Periodic = Failed, c.failures.consecutive, r.origin == periodic
	c.do(line)
	switch {
	case stop:
		c.do(FailJob{Exec: line.Exec, Reason: line.Reason, Err: withReason(line.Reason, line.Err)})
	case counted && c.failures.consecutive > c.cfg.TolerableFailures && !c.restoring && !c.closing:
		c.failures.consecutive = 0
		c.do(FailJob{Exec: line.Exec, Reason: line.Reason, Err: thresholdError(line, c.cfg.TolerableFailures)})
	}
}

func thresholdError(line Report, tolerable int) error {
	return fmt.Errorf("Exceeded checkpoint tolerable failure threshold (execution.checkpointing.tolerable-failed-checkpoints: %d). "+
		"The latest checkpoint failed due to %w", tolerable, withReason(line.Reason, line.Err))
}

// withReason is err with the reason told before it, if it does not tell it itself.
func withReason(why Reason, err error) error {
	if reasonOf(err, NoReason) == why {
		return err
	}
	return &DeclineError{Reason: why, Err: err}
}
