package config

import "time"

// Checkpointing is what the options of checkpoints come to together.
type Checkpointing struct {
	// Interval is the period of checkpoints, never less than MinPause; 0: there are none.
	Interval time.Duration
	// BacklogInterval is the period while a source works through a backlog; 0: there are none meanwhile.
	BacklogInterval time.Duration
	Timeout         time.Duration
	MinPause        time.Duration
	// MaxConcurrent is 1 where MinPause is more than 0, as Flink's documentation has it.
	MaxConcurrent int
	// TolerableFailures is -1 for any number.
	TolerableFailures int
	Mode              Mode
	Unaligned         bool
	AlignedTimeout    time.Duration
	// Storage is never empty.
	Storage   Storage
	Dir       string
	Retained  int
	Retention Retention
}

// Checkpointing is the effective configuration of checkpoints.
func (c *Config) Checkpointing() Checkpointing {
	e := Checkpointing{
		Interval:          c.Get(CheckpointInterval),
		Timeout:           c.Get(CheckpointTimeout),
		MinPause:          min(c.Get(MinPause), minPauseMax),
		MaxConcurrent:     c.Get(MaxConcurrent),
		TolerableFailures: c.Get(TolerableFailures),
		Mode:              c.Get(CheckpointMode),
		Unaligned:         c.Get(Unaligned),
		AlignedTimeout:    c.Get(AlignedTimeout),
		Storage:           c.storage(),
		Dir:               c.Get(CheckpointDir),
		Retained:          c.Get(Retained),
		Retention:         c.Get(CheckpointRetention),
	}
	if e.Interval > 0 {
		e.Interval = max(e.Interval, e.MinPause)
	}
	e.BacklogInterval = e.Interval
	if backlog, set := c.Lookup(BacklogInterval); set && backlog == 0 {
		e.BacklogInterval = 0
	} else if set {
		e.BacklogInterval = max(backlog, e.MinPause)
	}
	if e.MinPause > 0 {
		e.MaxConcurrent = 1
	}
	return e
}

// Restart is the restart strategy in force: none, fixed-delay, failure-rate or exponential-delay.
func (c *Config) Restart() Restart {
	switch s, set := c.Lookup(RestartStrategy); {
	case !set && c.Get(CheckpointInterval) > 0:
		return RestartExponentialDelay
	case !set, s == RestartOff, s == RestartDisable:
		return RestartNone
	default:
		return s
	}
}

// IntervalOrDefault is the interval that enabling checkpoints with every means: 0 is Flink's default of 500 ms.
func IntervalOrDefault(every time.Duration) time.Duration {
	if every == 0 {
		return 500 * time.Millisecond
	}
	return every
}

func (c *Config) storage() Storage {
	if s, set := c.Lookup(CheckpointStorage); set {
		return s
	}
	if c.Get(CheckpointDir) != "" {
		return FilesystemStorage
	}
	return JobManagerStorage
}
