package config

import (
	"strings"
	"testing"
	"time"
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
	e := mustBuild(t, code(
		"execution.checkpointing.interval", "1 s", "execution.checkpointing.min-pause", "5 s",
		"execution.checkpointing.max-concurrent-checkpoints", 3, "execution.checkpointing.dir", "/d",
	)).Checkpointing()
	if e.Interval != 5*time.Second || e.BacklogInterval != 5*time.Second || e.MaxConcurrent != 1 || e.Storage != FilesystemStorage ||
		e.Retention != RetainOnCancellation {
		t.Errorf("got %+v", e)
	}
	e = mustBuild(t, code("execution.checkpointing.min-pause", "5 s")).Checkpointing()
	if e.Interval != 0 || e.BacklogInterval != 0 || e.Storage != JobManagerStorage {
		t.Errorf("got %+v", e)
	}
	if e = mustBuild(t, code("execution.checkpointing.min-pause", "400 d")).Checkpointing(); e.MinPause != 365*day {
		t.Errorf("got %+v", e)
	}
	e = mustBuild(t, code("execution.checkpointing.interval", "1 s", "execution.checkpointing.interval-during-backlog", "0")).Checkpointing()
	if e.Interval != time.Second || e.BacklogInterval != 0 {
		t.Errorf("got %+v", e)
	}
}

func TestRestartStrategyInForce(t *testing.T) {
	for want, set := range map[Restart]Layer{
		RestartNone:             nil,
		RestartExponentialDelay: code("execution.checkpointing.interval", "1 s"),
		RestartFixedDelay:       code("restart-strategy", "Fixed-Delay"),
	} {
		if got := mustBuild(t, set).Restart(); got != want {
			t.Errorf("%v: got %s, want %s", set, got, want)
		}
	}
	off := code("restart-strategy.type", "off", "execution.checkpointing.interval", "1 s")
	if got := mustBuild(t, off).Restart(); got != RestartNone {
		t.Errorf("off is %s", got)
	}
}

func TestIntervalOrDefault(t *testing.T) {
	if IntervalOrDefault(0) != 500*time.Millisecond || IntervalOrDefault(time.Second) != time.Second {
		t.Error("not Flink's 500 ms")
	}
}
