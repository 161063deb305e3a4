package checkpoint

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirstream/weir/internal/base"
)

// Config is how a job takes checkpoints. Its zero value takes none by itself, but savepoints can be asked for.
type Config struct {
	// Interval between the starts of periodic checkpoints: 0 (none, the default) or at least 10 ms. A short one costs
	// throughput, a long one makes a restart repeat more. It is raised to MinPause.
	Interval time.Duration

	// BacklogInterval replaces Interval while a source works off its backlog: 0 (the default): as Interval; negative: no
	// periodic checkpoints meanwhile; else at least Interval.
	BacklogInterval time.Duration

	// FirstDelay is the delay from the first activation to the first periodic checkpoint. The driver draws it at random from
	// [MinPause, Interval], so that many jobs started at once do not checkpoint at once; machines have no random numbers.
	// Later activations wait MinPause.
	FirstDelay time.Duration

	// Timeout aborts a checkpoint or savepoint that is not sealed so long after its start: 0 (10 min, the default) or at
	// least 10 ms. Too short a one makes a slow job never complete a checkpoint.
	Timeout time.Duration

	// MinPause is the least time from the completion of a checkpoint to the start of the next periodic one; 0 (the default):
	// none. Where it is set, checkpoints come one at a time.
	MinPause time.Duration

	// MaxConcurrent is how many checkpoints may be pending at once: 1 (the default, also for 0) or more. More keep a short
	// interval through long alignments; one keeps them from disturbing each other. Unaligned allows 1 only.
	MaxConcurrent int

	// TolerableFailures is how many counted failures in a row the job survives; 0 (the default): none; -1: any number.
	TolerableFailures int

	// Retained is how many completed checkpoints are kept: 1 (the default, also for 0) or more.
	Retained int

	// Retention says which completed checkpoints are deleted when the job ends; the default keeps none.
	Retention Retention

	// Whole: every checkpoint has all its bytes itself. The default refers to files of older ones for what has not changed since.
	Whole bool

	// AtLeastOnce: barriers block nothing; records may be counted twice after a restart, never lost. The default is exactly
	// once.
	AtLeastOnce bool

	// Unaligned: barriers overtake records: fast under backpressure, with larger checkpoints. It needs exactly once.
	Unaligned bool

	// AlignedTimeout is how long an unaligned checkpoint tries to be aligned; 0 (the default): not at all.
	AlignedTimeout time.Duration

	// FinishAtEnd: tasks finish at the end of their data without waiting for a checkpoint, and no checkpoint is taken once one
	// has. The default waits for a final checkpoint, so that everything is committed. It is set where checkpointing is off.
	FinishAtEnd bool

	// FinalRetry is the delay before a failed final checkpoint is asked for again; 0: one second, the default.
	FinalRetry time.Duration

	// Hooks is the number of master hooks.
	Hooks int
}

// Retention says what becomes of completed checkpoints when the job ends.
type Retention uint8

const (
	// RetainNever deletes them whenever the job ends.
	RetainNever Retention = iota
	// RetainOnFailure keeps them only where the job FAILED (Flink's DELETE_ON_CANCELLATION).
	RetainOnFailure
	// RetainOnCancellation deletes them only where the job FINISHED.
	RetainOnCancellation
)

// keeps: checkpoints outlive a job that ended so.
func (r Retention) keeps(end JobEnd) bool {
	switch end {
	case JobFinished:
		return false
	case JobCanceled:
		return r == RetainOnCancellation
	case JobFailed:
		return r != RetainNever
	case JobSuspended: // the next master needs them
		return true
	default:
		panic(fmt.Sprintf("checkpoint: unknown end of a job %d", end))
	}
}

const (
	intervalMin       = 10 * time.Millisecond
	timeoutMin        = 10 * time.Millisecond
	timeoutDefault    = 10 * time.Minute
	finalRetryDefault = time.Second
)

// Validate reports everything that is wrong with c.
func (c *Config) Validate() error {
	var all []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			all = append(all, fmt.Errorf("checkpoint: "+format, args...))
		}
	}
	bad(c.Interval != 0 && c.Interval < intervalMin, "interval %v, want 0 (none) or at least %v", c.Interval, intervalMin)
	bad(c.BacklogInterval > 0 && c.BacklogInterval < max(c.Interval, intervalMin),
		"interval during backlog %v, want a negative one (none), 0 (as without backlog), or at least the interval %v",
		c.BacklogInterval, c.Interval)
	bad(c.FirstDelay < 0, "first delay %v, want none or a positive one", c.FirstDelay)
	bad(c.Timeout != 0 && c.Timeout < timeoutMin, "timeout %v, want at least %v", c.Timeout, timeoutMin)
	bad(c.MinPause < 0, "minimum pause %v, want none or a positive one", c.MinPause)
	bad(c.MaxConcurrent < 0, "%d concurrent checkpoints, want at least 1", c.MaxConcurrent)
	bad(c.Unaligned && c.MaxConcurrent > 1, "%d concurrent checkpoints with unaligned ones, want 1", c.MaxConcurrent)
	bad(c.TolerableFailures < -1, "%d tolerable failures, want -1 (any number), 0 or more", c.TolerableFailures)
	bad(c.Retained < 0, "%d retained checkpoints, want at least 1", c.Retained)
	bad(c.Retention > RetainOnCancellation, "unknown retention %d", c.Retention)
	bad(c.Unaligned && c.AtLeastOnce, "unaligned checkpoints need exactly once: choose one of unaligned and at least once")
	bad(c.AlignedTimeout < 0, "aligned timeout %v, want none or a positive one", c.AlignedTimeout)
	bad(c.FinalRetry < 0, "retry of the final checkpoint after %v, want a positive delay", c.FinalRetry)
	bad(c.Hooks < 0, "%d master hooks", c.Hooks)
	return errors.Join(all...)
}

// withDefaults is c with its zero fields filled in and its rules applied.
func (c Config) withDefaults() Config {
	if c.Interval > 0 {
		c.Interval = max(c.Interval, c.MinPause)
	}
	if c.Timeout == 0 {
		c.Timeout = timeoutDefault
	}
	if c.MaxConcurrent == 0 || c.MinPause > 0 {
		c.MaxConcurrent = 1
	}
	if c.Retained == 0 {
		c.Retained = 1
	}
	if c.FinalRetry == 0 {
		c.FinalRetry = finalRetryDefault
	}
	return c
}

// Recovered is what a job's directory says when a Coordinator starts.
type Recovered struct {
	// LastID is the largest id ever used.
	LastID base.CheckpointID
	// Completed are the checkpoints that exist, ascending by id; the last one is what the job is restored from, also when it
	// is a savepoint or somebody else's checkpoint (then with Keep, unless it was claimed).
	Completed []*Completed
}

// HandlerConfig is what a BarrierHandler must know of its subtask.
type HandlerConfig struct {
	// Channels is the number of input channels over all inputs; 0: a source.
	Channels int
	// Broadcast says of which channels no record may be in flight in a checkpoint; nil: of none.
	Broadcast []bool
	// AtLeastOnce and FinishAtEnd are as in Config.
	AtLeastOnce, FinishAtEnd bool
	// Restored is the checkpoint that the task was restored from; 0: none.
	Restored base.CheckpointID
	// Ended: the task was restored from a snapshot taken after its end, or had finished.
	Ended bool
}
