package checkpoint

import "slices"

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

// finalCompleted is called when a checkpoint completes by which all tasks finish, whoever asked for it. One more would only be
// aborted by the first task that finishes, and asked for again, until the last has.
func (c *Coordinator) finalCompleted() {
	c.final, c.finalAt = finalDone, Never
	c.queue = slices.DeleteFunc(c.queue, func(r request) bool { return r.origin == final })
}

// finalFailed has the final checkpoint asked for again after a while.
func (c *Coordinator) finalFailed() {
	if c.final == finalAsked {
		c.final, c.finalAt = finalDue, c.now.Add(c.cfg.FinalRetry)
	}
}
