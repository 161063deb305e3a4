package config

import (
	"math"
	"strings"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/job"
)

// Mode is how checkpoints treat barriers.
type Mode string

// The modes of checkpointing.
const (
	ExactlyOnce Mode = "EXACTLY_ONCE"
	AtLeastOnce Mode = "AT_LEAST_ONCE"
)

// Storage is where checkpoints are kept.
type Storage string

// The storages of checkpoints.
const (
	// JobManagerStorage keeps checkpoints in the memory of the job's master: they end with its process.
	JobManagerStorage Storage = "jobmanager"
	// FilesystemStorage keeps checkpoints in the directory CheckpointDir.
	FilesystemStorage Storage = "filesystem"
)

// Retention is which ends of a job its checkpoints outlive.
type Retention string

// The retentions, in Flink's words.
const (
	DeleteOnCancellation Retention = "DELETE_ON_CANCELLATION"
	RetainOnCancellation Retention = "RETAIN_ON_CANCELLATION"
	NoExternalized       Retention = "NO_EXTERNALIZED_CHECKPOINTS"
)

// ClaimMode is whose the snapshot is that a job starts from.
type ClaimMode string

// The claim modes, in Flink's words.
const (
	// NoClaim leaves the snapshot to its owner.
	NoClaim ClaimMode = "NO_CLAIM"
	// Claim makes the snapshot the job's own.
	Claim ClaimMode = "CLAIM"
)

// Values of SavepointPath that are not paths.
const (
	// Latest is the newest completed checkpoint or terminal savepoint of the job; none is an error.
	Latest = "latest"
	// LatestOrStart is Latest, or an empty start where no run of the job ever was.
	LatestOrStart = "latest-or-start"
)

const (
	// PeriodLeast is the least period and timeout of checkpoints.
	PeriodLeast = 10 * time.Millisecond
	minPauseMax = 365 * day
	inlineMax   = 1 << 20
)

// ---- execution.checkpointing

// CheckpointInterval is the period of checkpoints; 0: there are none.
var CheckpointInterval = &Option[time.Duration]{
	Key:   "execution.checkpointing.interval",
	Unset: "no periodic checkpoints",
	Doc: "How often a checkpoint begins, at a fixed rate. The first one comes after a random part of the interval. " +
		"`0` means that there are no periodic checkpoints, as without a value; savepoints are still possible. " +
		"Raised to `execution.checkpointing.min-pause` where that is longer.",
	Differs: "Flink refuses `0`; here it switches off what the file or the program switched on.",
	kind:    durations,
	limit:   offOr(PeriodLeast),
}

// BacklogInterval is the period of checkpoints while a source reports that it is catching up.
var BacklogInterval = &Option[time.Duration]{
	Key:   "execution.checkpointing.interval-during-backlog",
	Unset: "the interval",
	Doc: "The interval while any source reports that it works through a backlog; `0` means no periodic checkpoints meanwhile. " +
		"It must not be shorter than `execution.checkpointing.interval`.",
	kind:  durations,
	limit: offOr(PeriodLeast),
}

// CheckpointMode is whether barriers are aligned.
var CheckpointMode = &Option[Mode]{
	Key:     "execution.checkpointing.mode",
	Default: ExactlyOnce,
	Doc: "`EXACTLY_ONCE`: a restored job's state has every record once. `AT_LEAST_ONCE`: inputs do not wait for each other's " +
		"barriers, so after a restore some records count twice.",
	kind:  enums(ExactlyOnce, AtLeastOnce),
	limit: oneOf(ExactlyOnce, AtLeastOnce),
}

// CheckpointStorage is where checkpoints are kept.
var CheckpointStorage = &Option[Storage]{
	Key:     "execution.checkpointing.storage",
	Aliases: []string{"state.checkpoint-storage"},
	Unset:   "`filesystem` where `execution.checkpointing.dir` is set, else `jobmanager`",
	Doc: "`filesystem` keeps checkpoints in `execution.checkpointing.dir`. `jobmanager` keeps them in the memory of the job's " +
		"master: a task's failure is repaired, but when the master's process ends, the job ends with it.",
	Differs: "No other storage can be named by a class.",
	kind:    enums(JobManagerStorage, FilesystemStorage),
	limit:   oneOf(JobManagerStorage, FilesystemStorage),
}

// CheckpointDir is the directory of checkpoints.
var CheckpointDir = &Option[string]{
	Key:     "execution.checkpointing.dir",
	Aliases: []string{"state.checkpoints.dir", "state.backend.fs.checkpointdir"},
	Unset:   "none",
	Doc: "The directory of checkpoints. A job writes to `<dir>/<job id>/chk-<n>/`. Setting it selects the storage " +
		"`filesystem`. All processes of a job must see the same directory.",
	kind:  strs,
	limit: notEmpty,
}

// SavepointDir is where savepoints go that name no directory.
var SavepointDir = &Option[string]{
	Key:     "execution.checkpointing.savepoint-dir",
	Aliases: []string{"state.savepoints.dir", "savepoints.state.backend.fs.dir"},
	Unset:   "none: each savepoint must name its directory",
	Doc:     "The directory of savepoints that are asked for without one.",
	kind:    strs,
	limit:   notEmpty,
}

// CheckpointTimeout is how long a checkpoint may take.
var CheckpointTimeout = &Option[time.Duration]{
	Key:     "execution.checkpointing.timeout",
	Default: 10 * time.Minute,
	Doc:     "A checkpoint that is not complete after this time is aborted.",
	kind:    durations,
	limit:   atLeast(durations, PeriodLeast),
}

// MinPause is the least time between the end of a checkpoint and the next periodic one.
var MinPause = &Option[time.Duration]{
	Key: "execution.checkpointing.min-pause",
	Doc: "The least time between the completion of a checkpoint and the beginning of the next periodic one. More than `0` means " +
		"one checkpoint at a time. Manual checkpoints and savepoints do not wait for it. More than 365 days count as 365.",
	Differs: "Flink's documentation says one at a time; Weir does so.",
	kind:    durations,
	limit:   atLeast(durations, 0),
}

// MaxConcurrent is how many checkpoints may be under way.
var MaxConcurrent = &Option[int]{
	Key:     "execution.checkpointing.max-concurrent-checkpoints",
	Default: 1,
	Doc:     "How many checkpoints may be under way at a time. More than 1 is refused with unaligned checkpoints.",
	kind:    ints,
	limit:   atLeast(ints, 1),
}

// Retained is how many completed checkpoints are kept.
var Retained = &Option[int]{
	Key:     "execution.checkpointing.num-retained",
	Aliases: []string{"state.checkpoints.num-retained"},
	Default: 1,
	Doc:     "How many completed checkpoints are kept.",
	kind:    ints,
	limit:   atLeast(ints, 1),
}

// TolerableFailures is how many checkpoints in a row may fail before the job restarts.
var TolerableFailures = &Option[int]{
	Key:     "execution.checkpointing.tolerable-failed-checkpoints",
	Default: 0,
	Doc:     "How many checkpoints in a row may fail before the job itself fails and restarts; `-1`: any number.",
	Differs: "Flink has no `-1`.",
	kind:    ints,
	limit:   atLeast(ints, -1),
}

// CheckpointRetention is which ends of a job its checkpoints outlive.
var CheckpointRetention = &Option[Retention]{
	Key:     "execution.checkpointing.externalized-checkpoint-retention",
	Default: RetainOnCancellation,
	Doc: "What becomes of the checkpoints when a job ends. `RETAIN_ON_CANCELLATION`: deleted only when the job FINISHED. " +
		"`DELETE_ON_CANCELLATION`: kept only when it FAILED. `NO_EXTERNALIZED_CHECKPOINTS`: always deleted. Without meaning for " +
		"the storage `jobmanager`.",
	Differs: "Flink's default is `NO_EXTERNALIZED_CHECKPOINTS`: a cancelled or failed job loses its state.",
	kind:    enums(RetainOnCancellation, DeleteOnCancellation, NoExternalized),
	limit:   oneOf(RetainOnCancellation, DeleteOnCancellation, NoExternalized),
}

// Unaligned is whether barriers may overtake records.
var Unaligned = &Option[bool]{
	Key:     "execution.checkpointing.unaligned.enabled",
	Aliases: []string{"execution.checkpointing.unaligned"},
	Default: false,
	Doc: "Whether barriers may overtake records in flight, which then are part of the checkpoint: checkpoints stay fast under " +
		"back-pressure. Needs `EXACTLY_ONCE` and one checkpoint at a time.",
	Differs: "With `AT_LEAST_ONCE` it is refused; Flink is silently aligned.",
	kind:    bools,
}

// AlignedTimeout is how long an unaligned checkpoint first tries to be aligned.
var AlignedTimeout = &Option[time.Duration]{
	Key:     "execution.checkpointing.aligned-checkpoint-timeout",
	Aliases: []string{"execution.checkpointing.alignment-timeout"},
	Doc: "With unaligned checkpoints: how long a task waits for the barriers of its inputs before they may overtake records; " +
		"`0`: at once.",
	Differs: "Counted from the first barrier that this task sees, not from another host's clock.",
	kind:    durations,
	limit:   atLeast(durations, 0),
}

// Incremental is whether checkpoints refer to files of older ones.
var Incremental = &Option[bool]{
	Key:     "execution.checkpointing.incremental",
	Aliases: []string{"state.backend.incremental"},
	Default: true,
	Doc: "A checkpoint writes only the keyed state that has changed since the last completed one, and refers to files of older ones in " +
		"`<dir>/<job id>/shared/` for the rest. `false`: each checkpoint has all its bytes itself, in its own directory. Savepoints always do.",
	Differs: "Flink's default is `false`, and only its RocksDB backend knows it.",
	kind:    bools,
}

// InlineThreshold is the size up to which state lies in the metadata file.
var InlineThreshold = &Option[MemorySize]{
	Key:     "execution.checkpointing.data-inline-threshold",
	Aliases: []string{"state.storage.fs.memory-threshold", "state.backend.fs.memory-threshold"},
	Default: 20 << 10,
	Doc:     "State up to this size lies inside `_metadata` instead of in a file of its own.",
	kind:    memories,
	limit:   between(memories, 0, inlineMax),
}

// MemoryStateLimit is the largest state that memory storage takes.
var MemoryStateLimit = &Option[MemorySize]{
	Key:     "weir.checkpointing.jobmanager.max-state-size",
	Default: 5 << 20,
	Doc:     "The largest single state that the storage `jobmanager` takes; a larger one fails its checkpoint.",
	Differs: "In Flink an argument of JobManagerCheckpointStorage, with the same default.",
	kind:    memories,
	limit:   atLeast(memories, 1),
}

// ---- execution.state-recovery

// SavepointPath is the snapshot that a job starts from: a path, Latest or LatestOrStart.
var SavepointPath = &Option[string]{
	Key:     "execution.state-recovery.path",
	Aliases: []string{"execution.savepoint.path"},
	Unset:   "the job starts empty",
	Doc: "The savepoint or checkpoint that the job starts from: the path of its directory or of its `_metadata`. `latest`: the " +
		"newest one of this job; it is an error if there is none. `latest-or-start`: the same, but a job that never completed one starts " +
		"empty. The command line's `-s`.",
	Differs: "Flink has neither `latest` nor `latest-or-start`.",
	kind:    strs,
	limit:   notEmpty,
}

// RestoreClaim is whose the snapshot is that SavepointPath names by its path.
var RestoreClaim = &Option[ClaimMode]{
	Key:     "execution.state-recovery.claim-mode",
	Aliases: []string{"execution.savepoint-restore-mode"},
	Default: NoClaim,
	Doc: "Whose the snapshot is that the job starts from by its path. `NO_CLAIM`: its owner's; the job never deletes it, and its first checkpoint " +
		"refers to none of its files. `CLAIM`: the job's, which deletes it when it needs it no more, as it does its own checkpoints. " +
		"With `latest` the job goes on with what is its own anyway.",
	Differs: "A second job cannot claim the same snapshot. There is no `LEGACY`: a job that may refer to files of a snapshot for ever, which it does " +
		"not own, breaks when these are deleted.",
	kind:  enums(NoClaim, Claim),
	limit: claimModes,
}

// AllowNonRestored is whether state may be left behind.
var AllowNonRestored = &Option[bool]{
	Key:     "execution.state-recovery.ignore-unclaimed-state",
	Aliases: []string{"execution.savepoint.ignore-unclaimed-state"},
	Doc:     "Whether state of the snapshot that no operator of the job takes is left behind. The command line's `-n`.",
	kind:    bools,
}

// PauseSources is whether sources wait for a checkpoint after a restore.
var PauseSources = &Option[bool]{
	Key:     "pipeline.sources.pause-until-first-checkpoint",
	Default: false,
	Doc: "Whether the sources of a restored job read nothing until a first checkpoint or savepoint is triggered, so that what was in flight is " +
		"safe again before more comes. The first checkpoint then comes early: after `execution.checkpointing.min-pause` and a random part of the same " +
		"again. A job that starts empty does not wait.",
	kind: bools,
}

// ---- restart-strategy

// RestartStrategy is what follows a failure.
var RestartStrategy = &Option[job.Kind]{
	Key:     "restart-strategy.type",
	Aliases: []string{"restart-strategy"},
	Unset:   "`exponential-delay` with periodic checkpoints, else `none`",
	Doc: "What follows a failure of the job. `none` (also `off` and `disable`): it is FAILED. `fixed-delay`: it restarts so many " +
		"times. `failure-rate`: it restarts unless too many failures fall in an interval. `exponential-delay`: it restarts after a " +
		"delay that grows while failures follow each other.",
	kind:  enums(restartKinds...),
	limit: oneOf(restartKinds...),
}

// restartKinds are all spellings of strategies; "off" and "disable" are Flink's other words for none.
var restartKinds = []job.Kind{job.None, "off", "disable", job.FixedDelay, job.FailureRate, job.ExponentialDelay}

// FixedDelayAttempts is how often fixed-delay restarts.
var FixedDelayAttempts = &Option[int]{
	Key:     "restart-strategy.fixed-delay.attempts",
	Default: 1,
	Doc:     "How many times the job restarts before it is FAILED.",
	kind:    ints,
	limit:   atLeast(ints, 1),
}

// FixedDelay is the delay of fixed-delay.
var FixedDelay = &Option[time.Duration]{
	Key:     "restart-strategy.fixed-delay.delay",
	Default: time.Second,
	Doc:     "The delay between a failure and the restart.",
	kind:    durations,
	limit:   atLeast(durations, 0),
}

// FailureRateMax is how many failures failure-rate takes in an interval.
var FailureRateMax = &Option[int]{
	Key:     "restart-strategy.failure-rate.max-failures-per-interval",
	Default: 1,
	Doc:     "How many failures in one interval are followed by a restart.",
	kind:    ints,
	limit:   atLeast(ints, 1),
}

// FailureRateInterval is the interval in which failure-rate counts.
var FailureRateInterval = &Option[time.Duration]{
	Key:     "restart-strategy.failure-rate.failure-rate-interval",
	Default: time.Minute,
	Doc:     "The interval in which failures are counted.",
	kind:    durations,
	limit:   atLeast(durations, time.Millisecond),
}

// FailureRateDelay is the delay of failure-rate.
var FailureRateDelay = &Option[time.Duration]{
	Key:     "restart-strategy.failure-rate.delay",
	Default: time.Second,
	Doc:     "The delay between a failure and the restart.",
	kind:    durations,
	limit:   atLeast(durations, 0),
}

// BackoffInitial is the first delay of exponential-delay.
var BackoffInitial = &Option[time.Duration]{
	Key:     "restart-strategy.exponential-delay.initial-backoff",
	Default: 100 * time.Millisecond,
	Doc:     "The delay after the first failure, and after a quiet time.",
	Differs: "Flink's default is 1 s; nothing is rescheduled here, so the first restart need not wait so long.",
	kind:    durations,
	limit:   atLeast(durations, time.Millisecond),
}

// BackoffMax is the longest delay of exponential-delay.
var BackoffMax = &Option[time.Duration]{
	Key:     "restart-strategy.exponential-delay.max-backoff",
	Default: time.Minute,
	Doc:     "The longest delay.",
	kind:    durations,
	limit:   atLeast(durations, time.Millisecond),
}

// BackoffMultiplier is how the delay of exponential-delay grows.
var BackoffMultiplier = &Option[float64]{
	Key:     "restart-strategy.exponential-delay.backoff-multiplier",
	Default: 1.5,
	Doc:     "What each failure multiplies the delay by.",
	kind:    floats,
	limit:   between(floats, 1, 1000),
}

// BackoffReset is the quiet time after which exponential-delay begins anew.
var BackoffReset = &Option[time.Duration]{
	Key:     "restart-strategy.exponential-delay.reset-backoff-threshold",
	Default: time.Hour,
	Doc:     "After running so long without a failure the delay is the initial one again.",
	kind:    durations,
	limit:   atLeast(durations, time.Millisecond),
}

// BackoffJitter is the random part of the delay.
var BackoffJitter = &Option[float64]{
	Key:     "restart-strategy.exponential-delay.jitter-factor",
	Default: 0.1,
	Doc:     "The part of the delay by which it is randomly made longer or shorter, so that jobs that failed together do not restart together.",
	kind:    floats,
	limit:   between(floats, 0, 1),
}

// BackoffAttempts is how many failures exponential-delay takes before a quiet time.
var BackoffAttempts = &Option[int]{
	Key:     "restart-strategy.exponential-delay.attempts-before-reset-backoff",
	Default: math.MaxInt32,
	Doc:     "How many failures may follow each other without a quiet time before the job is FAILED. The default is endless.",
	kind:    ints,
	limit:   between(ints, 1, math.MaxInt32),
}

// ---- the job

// JobName is the job's name.
var JobName = &Option[string]{
	Key:     "pipeline.name",
	Unset:   "what the program passes to Execute",
	Doc:     "The job's name. Where it is set, it wins over the name that the program passes to Execute.",
	Differs: "In Flink the name passed to execute wins.",
	kind:    strs,
	limit:   notEmpty,
}

// JobID is the job's id.
var JobID = &Option[string]{
	Key:     "weir.job-id",
	Unset:   "derived from the job's name",
	Doc:     "The job's id: 32 hexadecimal digits. It names the job's directory, so it must stay the same from run to run, and two jobs that run at a time must not share it.",
	Differs: "Flink draws a new one at every submission.",
	kind:    hexes,
	limit:   jobIDs,
}

// Parallelism is the parallelism of operators that set none.
var Parallelism = &Option[int]{
	Key:     "parallelism.default",
	Default: 1,
	Doc:     "The parallelism of operators that set none of their own. The command line's `-p`.",
	Differs: "There is no maximum parallelism to choose: any parallelism restores from any other.",
	kind:    ints,
	limit:   between(ints, 1, base.KeyGroups),
}

// Chaining is whether operators are chained.
var Chaining = &Option[bool]{
	Key:     "pipeline.operator-chaining.enabled",
	Aliases: []string{"pipeline.operator-chaining"},
	Default: true,
	Doc:     "Whether operators that follow each other one to one run in one task.",
	kind:    bools,
}

// WatermarkInterval is the period of watermarks.
var WatermarkInterval = &Option[time.Duration]{
	Key:     "pipeline.auto-watermark-interval",
	Default: 200 * time.Millisecond,
	Doc:     "How often sources and watermark generators emit a watermark; `0`: never periodically.",
	kind:    durations,
	limit:   atLeast(durations, 0),
}

// CancellationTimeout is how long a cancelled task may take.
var CancellationTimeout = &Option[time.Duration]{
	Key:     "task.cancellation.timeout",
	Default: 3 * time.Minute,
	Doc: "How long a task may take to return after its context was cancelled. Then the process exits, naming the operator and its " +
		"stack: Go cannot interrupt code. `0`: it waits for ever.",
	kind:  durations,
	limit: atLeast(durations, 0),
}

// ---- the exchange

// BufferTimeout is how long a record may wait for its batch to fill.
var BufferTimeout = &Option[time.Duration]{
	Key:     "execution.buffer-timeout.interval",
	Aliases: []string{"execution.buffer-timeout"},
	Default: 100 * time.Millisecond,
	Doc: "How long a record may wait for its batch to fill before the batch is sent; `0`: until the task has worked off the slice " +
		"of its input at hand, at most 128 records.",
	Differs: "A task without more input sends at once, whatever the interval.",
	kind:    durations,
	limit:   atLeast(durations, 0),
}

// BatchRecords is how large batches grow.
var BatchRecords = &Option[int]{
	Key:     "weir.exchange.batch-records",
	Default: 1024,
	Doc: "How many records a batch between tasks holds at most; large records make fewer, about 32 KiB of them. Batches start " +
		"small and grow with the traffic.",
	Differs: "Flink counts bytes: taskmanager.memory.segment-size.",
	kind:    ints,
	limit:   between(ints, 1, 1024),
}

// QueueBatches is how many batches a channel holds.
var QueueBatches = &Option[int]{
	Key:     "weir.exchange.queue-batches",
	Default: 8,
	Doc:     "How many batches a channel between two tasks holds before its sender waits.",
	Differs: "Flink has taskmanager.network.memory.buffers-per-channel and floating buffers.",
	kind:    ints,
	limit:   between(ints, 1, 1<<16),
}

// ---- kinds and limits of a single use

var claimModes = limit[ClaimMode]{
	ok: func(m ClaimMode) bool { return m == NoClaim || m == Claim },
	text: "NO_CLAIM or CLAIM (not LEGACY, by which a job refers to files of a snapshot that it does not own: with NO_CLAIM nothing is deleted either, " +
		"and the job depends on nobody's files)",
}

var notEmpty = limit[string]{ok: func(v string) bool { return v != "" }, text: "non-empty"}

var hexes = kind[string]{
	name: "32 hexadecimal digits", example: `"0123456789abcdef0123456789abcdef"`,
	parse:  func(text string) (string, error) { return strings.ToLower(text), nil },
	format: func(v string) string { return v },
}

var jobIDs = limit[string]{ok: isJobID, text: "32 hexadecimal digits in lower case"}

func isJobID(id string) bool {
	return len(id) == 32 && strings.Trim(id, "0123456789abcdef") == ""
}
