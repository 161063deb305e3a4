package stats

import (
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/snapshot"
)

// Checkpoint is one entry of the history: a checkpoint or a savepoint.
type Checkpoint struct {
	ID       base.CheckpointID
	Kind     checkpoint.Kind
	Format   checkpoint.Format
	What     checkpoint.Progress
	Location string

	Wall      time.Time     // when its directory had been made; what tasks measure counts from here
	Triggered time.Duration // after Wall: the sources were triggered; 0: not yet
	Ended     time.Time     // zero: not yet
	Duration  time.Duration // from its begin, before Wall, until its end
	Finalize  time.Duration // of that, behind the last acknowledgement, of one that completed

	// Sizes are of all states; of one under way, of what has been acknowledged.
	Sizes snapshot.Sizes

	// Reason and Err say why it failed, and By which task declined; NoExec: none did.
	Reason checkpoint.Reason
	Err    error
	By     base.Exec

	// Tasks is how many are to acknowledge, and Acked how many did. Parts are by base.Task.
	Tasks, Acked int
	Parts        []Part
	// Asked are the operator coordinators and hooks that have not answered yet.
	Asked []string

	// Discarded: its files are deleted again, whether it was complete or given up.
	Discarded bool
	// Explanation is the sentence about one that has ended, and in a Clone about one under way.
	Explanation string
}

// Stage is how far a task has come with its part of a checkpoint.
type Stage uint8

const (
	// Nothing is known: no barrier has come, or no news of it.
	Nothing Stage = iota
	// Aligning: a barrier has come, others are waited for.
	Aligning
	// Writing: its snapshot is taken, the barrier sent on.
	Writing
	// Acked: its part is complete.
	Acked
	// Exempt: it had finished before the checkpoint began.
	Exempt
)

// Part is one task's part of a checkpoint.
type Part struct {
	Stage Stage
	// Since is when the master heard that the task has come to its stage.
	Since time.Time
	// Sizes are of an acknowledged part.
	snapshot.Sizes
	// AckMetrics are known from Writing on; the last of them only of an acknowledged part.
	checkpoint.AckMetrics
}

// Acked is whether the task has acknowledged.
func (p *Part) Acked() bool { return p.Stage == Acked }

// sent is whether the task has sent the barrier on. One that had finished has sent its end, which counts as one.
func (p *Part) sent() bool { return p.Stage >= Writing }

// LastAck is when the last task acknowledged; zero: none did.
func (c *Checkpoint) LastAck() (last time.Time) {
	for i := range c.Parts {
		if p := &c.Parts[i]; p.Acked() && p.Since.After(last) {
			last = p.Since
		}
	}
	return last
}

// After is how long after the begin a task has come to its stage.
func (c *Checkpoint) After(p *Part) time.Duration { return max(0, p.Since.Sub(c.Wall)) }

// EndToEnd is Flink's duration of a checkpoint: until the last acknowledgement, or until it failed; negative: nobody has acknowledged.
func (c *Checkpoint) EndToEnd() time.Duration {
	if c.What == checkpoint.Failed {
		return max(0, c.Ended.Sub(c.Wall))
	}
	last := c.LastAck()
	if last.IsZero() {
		return -1
	}
	return max(0, last.Sub(c.Wall))
}

// Unaligned is whether barriers have overtaken records in any task.
func (c *Checkpoint) Unaligned() bool {
	for i := range c.Parts {
		if c.Parts[i].Unaligned {
			return true
		}
	}
	return false
}

// Processed are the bytes of records that all tasks processed while they aligned.
func (c *Checkpoint) Processed() (bytes int64) {
	for i := range c.Parts {
		bytes += c.Parts[i].Processed
	}
	return bytes
}

// Persisted are the bytes of records that went into the checkpoint.
func (c *Checkpoint) Persisted() (bytes int64) {
	for i := range c.Parts {
		bytes += c.Parts[i].Persisted
	}
	return bytes
}
