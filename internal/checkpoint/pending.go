package checkpoint

import (
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/base"
)

// phase is how far a pending checkpoint has come.
type phase uint8

const (
	locating    phase = iota // its id is made durable, its directory made
	operators                // operator coordinators are snapshotted
	hooks                    // then master hooks
	triggered                // tasks are to acknowledge
	writing                  // its metadata is being published: sealed
	storing                  // it is becoming the latest: sealed
	withdrawing              // it could not, its metadata is being deleted: sealed
)

// pending is a checkpoint that has an id and is neither completed nor aborted.
type pending struct {
	id       base.CheckpointID
	request  request
	phase    phase
	began    Time
	deadline Time
	allAcked Time
	plan     plan
	acked    []bool // by task
	left     int    // acknowledgements
	answers  int    // of operator coordinators or hooks, still to come
	barrier  Barrier
	done     *Completed // what it will be; nobody changes it any more once the metadata is written
	bytes    int64      // of the metadata
	failure  error      // why it is withdrawn
}

// sealed: its metadata may be visible already. Only an answer decides what becomes of it.
func (p *pending) sealed() bool { return p.phase >= writing }

// decidesRestore: whether it completes decides what a restore begins from.
func (p *pending) decidesRestore() bool { return p.sealed() && p.commits() }

// commits: when it completes, its transactions are committed; so it must be what a restart finds.
func (p *pending) commits() bool { return !p.done.Kind.IsSavepoint() || p.stops() }

// stops: the job stops by it.
func (p *pending) stops() bool { return p.done.Kind.IsSynchronous() }

// endsAll: every task took its part after the end of its data, or had finished. By such a checkpoint all tasks finish.
func (p *pending) endsAll() bool {
	for t := range p.done.Ended {
		if !p.done.Ended[t] && !p.done.Finished[t] {
			return false
		}
	}
	return true
}

// expects: p waits, or has waited, for an acknowledgement of x.
func (p *pending) expects(x base.Exec) bool {
	return x.Task >= 0 && int(x.Task) < len(p.plan.wait) && x.Attempt != NoExec.Attempt && p.plan.wait[x.Task] == x.Attempt
}

// report is what a Report says of p at any time.
func (p *pending) report(what Progress) Report {
	return Report{
		What: what, ID: p.id, Kind: p.done.Kind, Format: p.done.Format, Location: p.done.Location, Wall: p.done.Wall,
		Periodic: p.request.origin == periodic, Tasks: p.plan.waits, Queued: p.began.Sub(p.request.at), Exec: NoExec,
	}
}

// find is the pending checkpoint with this id; nil: there is none.
func (c *Coordinator) find(id base.CheckpointID) *pending {
	for _, p := range c.pending {
		if p.id == id {
			return p
		}
	}
	return nil
}

func (c *Coordinator) remove(p *pending) {
	c.pending = slices.DeleteFunc(c.pending, func(o *pending) bool { return o == p })
	if c.triggering == p {
		c.triggering = nil
	}
}

// asked is what a Token's answer will be about.
type asked uint8

const (
	askedLocation asked = iota
	askedOperator
	askedHook
	askedMetadata
	askedStore
	askedDiscard
	askedWithdraw
)

// question is an action without an answer yet.
type question struct {
	asked asked
	id    base.CheckpointID
	slot  int // vertex or hook
}

// ask is a token for a new question.
func (c *Coordinator) ask(what asked, id base.CheckpointID, slot int) Token {
	c.lastToken++
	c.questions[c.lastToken] = question{what, id, slot}
	return c.lastToken
}

// answered takes the question of t out; false: t is no token of such a question, or was answered before. The pending is
// nil when the checkpoint has been aborted meanwhile.
func (c *Coordinator) answered(t Token, what asked) (question, *pending, bool) {
	q, ok := c.questions[t]
	if !ok || q.asked != what {
		return question{}, nil, false
	}
	delete(c.questions, t)
	return q, c.find(q.id), true
}

// expire aborts what takes too long.
func (c *Coordinator) expire() {
	for i := 0; i < len(c.pending); {
		p := c.pending[i]
		if c.now < p.deadline || p.sealed() {
			i++
			continue
		}
		c.abort(p, Expired, NoExec, c.missingError(p))
	}
}

// missingError says what an expired checkpoint waited for.
func (c *Coordinator) missingError(p *pending) error {
	switch p.phase {
	case locating:
		return fmt.Errorf("checkpoint %d waited for its location", p.id)
	case operators:
		return fmt.Errorf("checkpoint %d waited for %d operator coordinators", p.id, p.answers)
	case hooks:
		return fmt.Errorf("checkpoint %d waited for %d master hooks", p.id, p.answers)
	case triggered:
		first := slices.IndexFunc(p.plan.notify, func(x base.Exec) bool { return !p.acked[x.Task] })
		return fmt.Errorf("checkpoint %d: %d of %d tasks did not acknowledge it, the first is %s",
			p.id, p.left, p.plan.waits, c.graph.describe(p.plan.notify[first].Task))
	case writing, storing, withdrawing:
		return nil
	default:
		panic(fmt.Sprintf("checkpoint: unknown phase %d", p.phase))
	}
}

func (c *Coordinator) leftError(t base.Task) error {
	return fmt.Errorf("task %s is not running any more and had not acknowledged the checkpoint (%v)",
		c.graph.describe(t), c.tasks[t].state)
}
