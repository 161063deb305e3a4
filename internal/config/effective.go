package config

import (
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// Checkpointing is what the options of checkpoints come to together. The number of hooks and the random delay of the first
// checkpoint are left to who runs the job.
func (c *Config) Checkpointing() checkpoint.Config {
	e := checkpoint.Config{
		Interval:          c.Get(CheckpointInterval),
		BacklogInterval:   c.Get(BacklogInterval),
		Timeout:           c.Get(CheckpointTimeout),
		MinPause:          min(c.Get(MinPause), minPauseMax),
		MaxConcurrent:     c.Get(MaxConcurrent),
		TolerableFailures: c.Get(TolerableFailures),
		Retained:          c.Get(Retained),
		Retention:         retentions[c.Get(CheckpointRetention)],
		Whole:             !c.Get(Incremental),
		AtLeastOnce:       c.Get(CheckpointMode) == AtLeastOnce,
		Unaligned:         c.Get(Unaligned),
		AlignedTimeout:    c.Get(AlignedTimeout),
		FinishAtEnd:       c.Get(CheckpointInterval) == 0,
	}
	if _, set := c.Lookup(BacklogInterval); set && e.BacklogInterval == 0 {
		e.BacklogInterval = -1 // none, which the machine tells from "as without backlog"
	}
	return e
}

var retentions = map[Retention]checkpoint.Retention{
	RetainOnCancellation: checkpoint.RetainOnCancellation,
	DeleteOnCancellation: checkpoint.RetainOnFailure,
	NoExternalized:       checkpoint.RetainNever,
}

// Storage is where checkpoints are kept: as configured, else in the directory if there is one. The filesystem's directory,
// CheckpointDir, is never empty.
func (c *Config) Storage() Storage {
	if s, set := c.Lookup(CheckpointStorage); set {
		return s
	}
	if c.Get(CheckpointDir) != "" {
		return FilesystemStorage
	}
	return JobManagerStorage
}

// Restart is the restart strategy in force.
func (c *Config) Restart() job.Strategy {
	switch kind := c.restartKind(); kind {
	case job.FixedDelay:
		return job.Strategy{Kind: kind, Delay: c.Get(FixedDelay), Attempts: c.Get(FixedDelayAttempts)}
	case job.FailureRate:
		return job.Strategy{
			Kind: kind, Delay: c.Get(FailureRateDelay), Attempts: c.Get(FailureRateMax), Interval: c.Get(FailureRateInterval),
		}
	case job.ExponentialDelay:
		return job.Strategy{
			Kind: kind, Attempts: c.Get(BackoffAttempts), Initial: c.Get(BackoffInitial), Max: c.Get(BackoffMax),
			Multiplier: c.Get(BackoffMultiplier), Jitter: c.Get(BackoffJitter), ResetAfter: c.Get(BackoffReset),
		}
	}
	return job.Strategy{Kind: job.None}
}

func (c *Config) restartKind() job.Kind {
	kind, set := c.Lookup(RestartStrategy)
	if !set && c.Get(CheckpointInterval) > 0 {
		return job.ExponentialDelay
	}
	return kind
}

// IntervalOrDefault is the interval that enabling checkpoints with every means: 0 is Flink's default of 500 ms.
func IntervalOrDefault(every time.Duration) time.Duration {
	if every == 0 {
		return 500 * time.Millisecond
	}
	return every
}
