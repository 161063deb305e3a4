package config

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// code is a layer of settings as a program makes them.
func code(pairs ...any) Layer {
	var l Layer
	for i := 0; i < len(pairs); i += 2 {
		l.Set(pairs[i].(string), pairs[i+1], "job/main.go:1")
	}
	return l
}

func mustBuild(t *testing.T, layers ...Layer) *Config {
	t.Helper()
	c, err := Build(layers...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaultsOfANilConfig(t *testing.T) {
	var c *Config
	if c.Get(CheckpointTimeout) != 10*time.Minute || c.Get(Parallelism) != 1 || c.Get(CheckpointMode) != ExactlyOnce {
		t.Error("not the defaults")
	}
	if _, set := c.Lookup(CheckpointDir); set || c.Origin(CheckpointDir.Key) != "" || c.Settings() != nil || c.Warnings() != nil {
		t.Error("something is set")
	}
}

func TestDefaultsKeepTheirOwnLimits(t *testing.T) {
	for _, s := range sections {
		for _, o := range s.options {
			if d := o.describe().Default; strings.HasPrefix(d, "`") && strings.Count(d, "`") == 2 {
				if _, err := o.decode(strings.Trim(d, "`")); err != nil {
					t.Errorf("%s: its default %s %v", o.key(), d, err)
				}
			}
		}
	}
}

func TestValuesFromGo(t *testing.T) {
	c := mustBuild(t, code(
		"execution.checkpointing.interval", 10*time.Second,
		"execution.checkpointing.timeout", "1 min",
		"execution.checkpointing.mode", AtLeastOnce,
		"execution.checkpointing.data-inline-threshold", 4096,
		"parallelism.default", uint8(7),
		"restart-strategy.exponential-delay.backoff-multiplier", 2,
		"restart-strategy.exponential-delay.jitter-factor", float32(0.5),
		"pipeline.operator-chaining.enabled", false,
		"weir.job-id", "0123456789ABCDEF0123456789abcdef",
	))
	if c.Get(CheckpointInterval) != 10*time.Second || c.Get(CheckpointTimeout) != time.Minute || c.Get(CheckpointMode) != AtLeastOnce ||
		c.Get(InlineThreshold) != 4096 || c.Get(Parallelism) != 7 || c.Get(BackoffMultiplier) != 2 || c.Get(BackoffJitter) != 0.5 ||
		c.Get(Chaining) || c.Get(JobID) != "0123456789abcdef0123456789abcdef" {
		t.Errorf("got %v", c.Settings())
	}
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		key   string
		value any
		want  string
	}{
		{"parallelism.default", 0, "job/main.go:1: parallelism.default = 0 must be between 1 and 32768"},
		{"parallelism.default", 32769, "must be between 1 and 32768"},
		{"parallelism.default", "four", "parallelism.default = four is not a whole number"},
		{"parallelism.default", "9999999999999999999", "is too large a number"},
		{"parallelism.default", uint64(math.MaxUint64), "is a Go uint64; the type is whole number, such as 4"},
		{"parallelism.default", 2.5, "is a Go float64"},
		{"parallelism.default", nil, "is a Go <nil>"},
		{"execution.checkpointing.interval", time.Duration(1), "execution.checkpointing.interval = 1ns must be 0 or at least 10 ms"},
		{"execution.checkpointing.interval", "9 ms", "must be 0 or at least 10 ms"},
		{"execution.checkpointing.interval", -time.Second, "must be 0 or at least 10 ms"},
		{"execution.checkpointing.interval", 10, `is a Go int; the type is duration, such as "10 s"`},
		{"execution.checkpointing.interval", "soon", "is not a duration"},
		{"execution.checkpointing.timeout", "9 ms", "must be at least 10 ms"},
		{"execution.checkpointing.min-pause", "-1s", "must be at least 0"},
		{"execution.checkpointing.max-concurrent-checkpoints", 0, "must be at least 1"},
		{"execution.checkpointing.tolerable-failed-checkpoints", -2, "must be at least -1"},
		{"execution.checkpointing.num-retained", 0, "must be at least 1"},
		{"execution.checkpointing.mode", "twice", "must be EXACTLY_ONCE or AT_LEAST_ONCE"},
		{"execution.checkpointing.mode", Mode("twice"), "must be EXACTLY_ONCE or AT_LEAST_ONCE"},
		{"execution.checkpointing.data-inline-threshold", "2 mb", "must be between 0 bytes and 1 mb"},
		{"execution.checkpointing.data-inline-threshold", "2 shovels", `has the unit "shovels"`},
		{"execution.checkpointing.dir", "", "must be non-empty"},
		{"restart-strategy.type", "never", "must be none, off, disable, fixed-delay, failure-rate or exponential-delay"},
		{"restart-strategy.exponential-delay.jitter-factor", math.NaN(), "must be between 0 and 1"},
		{"pipeline.operator-chaining.enabled", "yes", "is not true or false"},
		{"weir.job-id", "wordcount", "must be 32 hexadecimal digits"},
	} {
		_, err := Build(code(test.key, test.value))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s = %v: got %v, want %q", test.key, test.value, err, test.want)
		}
	}
}

func TestUnknownKeysNameTheNearest(t *testing.T) {
	for key, want := range map[string]string{
		"execution.checkpointing.intervall":          "do you mean execution.checkpointing.interval?",
		"execution.checkpointing.tiemout":            "do you mean execution.checkpointing.timeout?",
		"checkpointing.interval":                     "do you mean execution.checkpointing.interval?",
		"timeout":                                    "do you mean execution.checkpointing.timeout?",
		"paralelism.default":                         "do you mean parallelism.default?",
		"weir.exchange.queue":                        "do you mean weir.exchange.queue-batches?",
		"parallelism":                                "do you mean parallelism.default?",
		"foo":                                        "is not an option; docs/config.md lists them",
		"my.own.key":                                 "is not an option; docs/config.md lists them",
		"pipeline.max-parallelism":                   "is Flink's, and not an option here: any parallelism restores",
		"taskmanager.memory.process.size":            "is Flink's, and not an option here: there are no memory pools",
		"execution.checkpointing.unaligned.enabled2": "do you mean execution.checkpointing.unaligned.enabled?",
	} {
		_, err := Build(code(key, "1"))
		if err == nil || !strings.Contains(err.Error(), "job/main.go:1: "+key+" is ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", key, err, want)
		}
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	file := Layer{{"execution.checkpointing.timeout", "1 ms", "config.yaml:3:1"}}
	_, err := Build(file, code("unaligned", true, "parallelism.default", -1, "execution.checkpointing.timeout", time.Minute))
	var all *Error
	if !errors.As(err, &all) || len(all.Problems) != 3 {
		t.Fatalf("got %v", err)
	}
	want := "weir: configuration: 3 problems:\n  config.yaml:3:1: execution.checkpointing.timeout = 1 ms must be"
	if !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %s", err)
	}
}

func TestTheCommandLineWinsOverCodeOverTheFile(t *testing.T) {
	file := Layer{{"parallelism.default", "1", "f"}, {"pipeline.name", "file", "f"}, {"state.checkpoints.dir", "/file", "f"}}
	program := Layer{{"parallelism.default", 2, "c"}, {"pipeline.name", "code", "c"}}
	line := Layer{{"parallelism.default", "3", "-p"}, {"parallelism.default", "4", "-D"}}
	c := mustBuild(t, file, program, line)
	if c.Get(Parallelism) != 4 || c.Origin(Parallelism.Key) != "-D" {
		t.Errorf("parallelism %d by %s", c.Get(Parallelism), c.Origin(Parallelism.Key))
	}
	if c.Get(JobName) != "code" || c.Get(CheckpointDir) != "/file" {
		t.Errorf("got %v", c.Settings())
	}
	if w := c.Warnings(); len(w) != 1 || w[0] != "f: state.checkpoints.dir is the old name of execution.checkpointing.dir" {
		t.Errorf("warnings %q", w)
	}
}

func TestSettingsAreOrderedText(t *testing.T) {
	c := mustBuild(t, code("pipeline.name", "x", "execution.checkpointing.interval", 90*time.Second))
	got := c.Settings()
	if len(got) != 2 || got[0].Key != "execution.checkpointing.interval" || got[0].Value != "90 s" || got[1].Value != "x" {
		t.Errorf("got %v", got)
	}
}

func TestCallerNamesFileAndLine(t *testing.T) {
	if at := Caller(0); !strings.HasPrefix(string(at), "config/config_test.go:") {
		t.Errorf("got %s", at)
	}
}

func TestEveryOptionIsOnceInTheRegistry(t *testing.T) {
	seen := make(map[string]bool)
	for _, s := range sections {
		for _, o := range s.options {
			for _, k := range append([]string{o.key()}, o.aliases()...) {
				if seen[k] {
					t.Errorf("%s is there twice", k)
				}
				seen[k] = true
			}
			if d := o.describe(); d.Doc == "" || d.Type == "" || d.Default == "" {
				t.Errorf("%s is not documented: %+v", o.key(), d)
			}
		}
	}
	for _, declared := range declaredOptions(t) {
		if !seen[declared] {
			t.Errorf("options.go declares %s, but no section holds it", declared)
		}
	}
	for _, a := range absences {
		if seen[a.prefix] {
			t.Errorf("%s is both absent and an option", a.prefix)
		}
	}
}
