package cluster

import (
	"math/rand/v2"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/task"
)

// beatEvery is the interval of beats between master and worker (Flink's heartbeat.interval).
const beatEvery = 10 * time.Second

// machineConfig is what the configuration says about the job's life.
func machineConfig(name string, c *config.Config) job.Config {
	checkpoints := c.Checkpointing()
	checkpoints.FirstDelay = firstDelay(checkpoints, c.Get(config.PauseSources))
	return job.Config{Name: name, Restart: c.Restart(), Random: rand.Float64, SavepointDir: c.Get(config.SavepointDir), Checkpoints: checkpoints}
}

// firstDelay is random, so that many jobs started at once do not checkpoint at once. Sources that wait for the first checkpoint wait for
// an early one.
func firstDelay(c checkpoint.Config, awaited bool) time.Duration {
	most := c.Interval
	if awaited {
		most = 2 * c.MinPause
	}
	if most <= c.MinPause {
		return c.MinPause
	}
	return c.MinPause + rand.N(most-c.MinPause)
}

func taskOptions(c *config.Config) task.Options {
	e := c.Checkpointing()
	return task.Options{
		Handler:         checkpoint.HandlerConfig{AtLeastOnce: e.AtLeastOnce, FinishAtEnd: e.FinishAtEnd},
		FlushEvery:      c.Get(config.BufferTimeout),
		BatchMost:       c.Get(config.BatchRecords),
		WatermarksEvery: c.Get(config.WatermarkInterval),
		Checkpointed:    e.Interval > 0,
		Incremental:     !e.Whole && c.Storage() == config.FilesystemStorage,
		PauseSources:    e.Interval > 0 && c.Get(config.PauseSources),
	}
}

// inlineMax is the inline threshold as storage.WriterOptions has it, where 0 means the default.
func inlineMax(c *config.Config) int {
	if n := int(c.Get(config.InlineThreshold)); n > 0 {
		return n
	}
	return -1
}

// limits bound the channels. One slice of input may put as much again into a full one before its sender waits.
func limits(c *config.Config) exchange.Limits {
	n := c.Get(config.QueueBatches)
	return exchange.Limits{Batches: n, Overdraft: n}
}
