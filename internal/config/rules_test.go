package config

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

func TestRulesBetweenOptions(t *testing.T) {
	for _, test := range []struct {
		name string
		set  Layer
		want string // of the error; "": there is none
	}{
		{"unaligned alone", code("execution.checkpointing.unaligned.enabled", true), ""},
		{"unaligned and at least once",
			code("execution.checkpointing.unaligned.enabled", true, "execution.checkpointing.mode", "at_least_once"),
			"needs the mode EXACTLY_ONCE, but there is execution.checkpointing.mode = AT_LEAST_ONCE (job/main.go:1)"},
		{"unaligned and two at a time",
			code("execution.checkpointing.unaligned", true, "execution.checkpointing.max-concurrent-checkpoints", 2),
			"allows one checkpoint at a time, but there is execution.checkpointing.max-concurrent-checkpoints = 2 (job/main.go:1)"},
		{"backlog without interval", code("execution.checkpointing.interval-during-backlog", "1 min"),
			"needs checkpoints, but there is execution.checkpointing.interval (default: no periodic checkpoints)"},
		{"backlog off without interval", code("execution.checkpointing.interval-during-backlog", "0"), ""},
		{"backlog shorter",
			code("execution.checkpointing.interval", "1 min", "execution.checkpointing.interval-during-backlog", "59 s"),
			"= 59 s must be 0 or at least execution.checkpointing.interval = 1 min"},
		{"backlog off", code("execution.checkpointing.interval", "1 min", "execution.checkpointing.interval-during-backlog", "0"), ""},
		{"backlog equal", code("execution.checkpointing.interval", "1 min", "execution.checkpointing.interval-during-backlog", "1 min"), ""},
		{"filesystem without directory", code("execution.checkpointing.storage", "filesystem"),
			"execution.checkpointing.storage = filesystem needs a directory"},
		{"claim", code("execution.state-recovery.claim-mode", "claim"), ""},
		{"claim by its old key", code("execution.savepoint-restore-mode", "NO_CLAIM"), ""},
		{"legacy", code("execution.state-recovery.claim-mode", "LEGACY"),
			"must be NO_CLAIM or CLAIM (not LEGACY, by which a job refers to files of a snapshot that it does not own"},
		{"backoff", code("restart-strategy.exponential-delay.initial-backoff", "2 min"),
			"must not be longer than restart-strategy.exponential-delay.max-backoff (default: 1 min)"},
	} {
		_, err := Build(test.set)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}

func TestNoRuleForARefusedValue(t *testing.T) {
	_, err := Build(code("execution.checkpointing.interval", "5 ms", "execution.checkpointing.interval-during-backlog", "1 min"))
	if err == nil || strings.Contains(err.Error(), "needs checkpoints") {
		t.Errorf("got %v", err)
	}
}

func TestValuesWithoutEffectAreWarnings(t *testing.T) {
	for want, set := range map[string]Layer{
		"aligned-checkpoint-timeout has no effect without execution.checkpointing.unaligned.enabled": code("execution.checkpointing.aligned-checkpoint-timeout", "1 s"),
		"pause-until-first-checkpoint has no effect without execution.checkpointing.interval":        code("pipeline.sources.pause-until-first-checkpoint", true),
		"max-concurrent-checkpoints has no effect beside execution.checkpointing.min-pause = 1 s": code("execution.checkpointing.min-pause", "1 s",
			"execution.checkpointing.max-concurrent-checkpoints", 3),
		"dir has no effect beside execution.checkpointing.storage = jobmanager": code("execution.checkpointing.dir", "/d",
			"execution.checkpointing.storage", "jobmanager"),
	} {
		if w := mustBuild(t, set).Warnings(); len(w) != 1 || !strings.Contains(w[0], want) {
			t.Errorf("got %q, want %q", w, want)
		}
	}
}

func TestEffectiveCheckpointing(t *testing.T) {
	for _, test := range []struct {
		set  Layer
		want checkpoint.Config
	}{
		{nil, checkpoint.Config{
			Timeout: 10 * time.Minute, MaxConcurrent: 1, Retained: 1, Retention: checkpoint.RetainOnCancellation, FinishAtEnd: true,
		}},
		{code(
			"execution.checkpointing.interval", "1 s", "execution.checkpointing.interval-during-backlog", "0",
			"execution.checkpointing.min-pause", "400 d", "execution.checkpointing.mode", AtLeastOnce,
			"execution.checkpointing.externalized-checkpoint-retention", "delete_on_cancellation",
		), checkpoint.Config{
			Interval: time.Second, BacklogInterval: -1, Timeout: 10 * time.Minute, MinPause: 365 * day, MaxConcurrent: 1, Retained: 1,
			Retention: checkpoint.RetainOnFailure, AtLeastOnce: true,
		}},
		{code(
			"execution.checkpointing.interval", "1 s", "execution.checkpointing.interval-during-backlog", "1 min",
			"execution.checkpointing.unaligned", "true", "execution.checkpointing.aligned-checkpoint-timeout", "3 s",
			"execution.checkpointing.tolerable-failed-checkpoints", -1, "execution.checkpointing.num-retained", 3,
			"execution.checkpointing.externalized-checkpoint-retention", NoExternalized,
		), checkpoint.Config{
			Interval: time.Second, BacklogInterval: time.Minute, Timeout: 10 * time.Minute, MaxConcurrent: 1, Retained: 3,
			TolerableFailures: -1, Retention: checkpoint.RetainNever, Unaligned: true, AlignedTimeout: 3 * time.Second,
		}},
	} {
		got := mustBuild(t, test.set).Checkpointing()
		if err := got.Validate(); got != test.want || err != nil {
			t.Errorf("%v: got %+v %v", test.set, got, err)
		}
	}
}

func TestStorageFollowsTheDirectory(t *testing.T) {
	for want, set := range map[Storage]Layer{JobManagerStorage: nil, FilesystemStorage: code("execution.checkpointing.dir", "/d")} {
		if got := mustBuild(t, set).Storage(); got != want {
			t.Errorf("%v: got %s, want %s", set, got, want)
		}
	}
}

func TestRestartStrategyInForce(t *testing.T) {
	for _, test := range []struct {
		set  Layer
		want job.Strategy
	}{
		{nil, job.Strategy{Kind: job.None}},
		{code("restart-strategy.type", "off", "execution.checkpointing.interval", "1 s"), job.Strategy{Kind: job.None}},
		{code("restart-strategy", "Fixed-Delay"), job.Strategy{Kind: job.FixedDelay, Delay: time.Second, Attempts: 1}},
		{code("restart-strategy", "failure-rate"),
			job.Strategy{Kind: job.FailureRate, Delay: time.Second, Attempts: 1, Interval: time.Minute}},
	} {
		got := mustBuild(t, test.set).Restart()
		if err := got.Validate(); got != test.want || err != nil {
			t.Errorf("%v: got %+v %v, want %+v", test.set, got, err, test.want)
		}
	}
}

func TestTheDefaultStrategyIsTheMachines(t *testing.T) {
	want := job.DefaultStrategy()
	want.Attempts = math.MaxInt32
	if got := mustBuild(t, code("execution.checkpointing.interval", "1 s")).Restart(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestIntervalOrDefault(t *testing.T) {
	if IntervalOrDefault(0) != 500*time.Millisecond || IntervalOrDefault(time.Second) != time.Second {
		t.Error("not Flink's 500 ms")
	}
}
