package config

import (
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/base"
)

// section is a part of the documentation and its options, in the order in which a reader wants them.
type section struct {
	title   string
	intro   string
	options []option
}

// sections is the registry: every option stands in it once.
var sections = []section{
	{"Checkpoints", "", []option{
		CheckpointInterval, CheckpointMode, CheckpointTimeout, MinPause, MaxConcurrent, TolerableFailures, BacklogInterval,
		Unaligned, AlignedTimeout,
	}},
	{"Where checkpoints lie", "", []option{
		CheckpointStorage, CheckpointDir, SavepointDir, Retained, CheckpointRetention, Incremental, InlineThreshold, MemoryStateLimit,
	}},
	{"Starting from a snapshot", "", []option{SavepointPath, RestoreClaim, AllowNonRestored, PauseSources}},
	{"Restarts", "The options of a strategy count only where `restart-strategy.type` is that strategy.", []option{
		RestartStrategy,
		BackoffInitial, BackoffMax, BackoffMultiplier, BackoffReset, BackoffJitter, BackoffAttempts,
		FixedDelayAttempts, FixedDelay,
		FailureRateMax, FailureRateInterval, FailureRateDelay,
	}},
	{"The job", "", []option{JobName, JobID, Parallelism, Chaining, WatermarkInterval, CancellationTimeout}},
	{"The exchange between tasks", "", []option{BufferTimeout, BatchRecords, QueueBatches}},
	{"REST and the command line", "", []option{RestPort, RestBindAddress, RestAddress, ClientTimeout, CheckpointHistory}},
}

// absence is Flink's options of one key or prefix that Weir does not have, and why. A user of Flink who brings config.yaml
// along is told more than "unknown".
type absence struct{ prefix, why string }

var absences = []absence{
	{"pipeline.max-parallelism", "any parallelism restores from any other; there is no maximum to choose"},
	{"execution.checkpointing.checkpoints-after-tasks-finish", "checkpoints always go on when some tasks have finished"},
	{"execution.checkpointing.create-subdir", "checkpoints always lie in `<dir>/<job id>`"},
	{"execution.checkpointing.unaligned.forced", "there is nothing to force"},
	{"execution.runtime-mode", "every job is a streaming job"},
	{"execution.attached", "a job's program runs until the job ends"},
	{"pipeline.object-reuse", "records are never copied between chained operators"},
	{"pipeline.auto-generate-uids", "an operator with state always needs a UID"},
	{"pipeline.generic-types", "types are encoded by a schema derived from them"},
	{"pipeline.force-avro", "types are encoded by a schema derived from them"},
	{"pipeline.force-kryo", "types are encoded by a schema derived from them"},
	{"pipeline.serialization-config", "types are encoded by a schema derived from them"},
	{"pipeline.jars", "a job is one binary"},
	{"pipeline.classpaths", "a job is one binary"},
	{"task.cancellation.interval", "Go cannot interrupt code; a cancelled task is not interrupted again"},
	{"task.cancellation-interval", "Go cannot interrupt code; a cancelled task is not interrupted again"},
	{"taskmanager.memory.", "there are no memory pools to size; use the runtime's own GOMEMLIMIT"},
	{"jobmanager.memory.", "there are no memory pools to size; use the runtime's own GOMEMLIMIT"},
	{"taskmanager.network.", "see `weir.exchange.*`"},
	{"env.java.", "there is no JVM"},
}

// why is why Weir lacks an option of Flink; "": nothing is known of it.
func why(key string) string {
	for _, a := range absences {
		if key == a.prefix || strings.HasSuffix(a.prefix, ".") && strings.HasPrefix(key, a.prefix) {
			return a.why
		}
	}
	return ""
}

// find is the option of a key or of an alias; renamed: it was an alias.
func find(key string) (o option, renamed bool) {
	for _, s := range sections {
		for _, o := range s.options {
			if o.key() == key {
				return o, false
			}
			if slices.Contains(o.aliases(), key) {
				return o, true
			}
		}
	}
	return nil, false
}

// isPrefix is whether an option lies below this key, as in nested YAML.
func isPrefix(key string) bool {
	for _, s := range sections {
		for _, o := range s.options {
			for _, k := range append([]string{o.key()}, o.aliases()...) {
				if strings.HasPrefix(k, key+".") {
					return true
				}
			}
		}
	}
	return false
}

// nearest is the known key that someone who wrote key most likely meant; "" where half of it would have to be another. A key
// whose beginning or end was written in full is nearer than any misspelling: people leave the rest out.
func nearest(key string) string {
	best, least := "", len(key)/2+1
	for _, s := range sections {
		for _, o := range s.options {
			d := base.Distance(key, o.key())
			if strings.HasSuffix(o.key(), "."+key) || strings.HasPrefix(o.key(), key) {
				d = 1
			}
			if d < least {
				best, least = o.key(), d
			}
		}
	}
	return best
}
