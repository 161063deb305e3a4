package job

import (
	"testing"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
)

// delays counts failures, each so long after the restart before it, and returns the delays; a negative one: no restart.
func delays(s Strategy, random float64, quiet ...time.Duration) (all []time.Duration) {
	var h history
	now := checkpoint.Time(0)
	for _, q := range quiet {
		now = now.Add(q)
		d, err := s.next(&h, now, random)
		if err != nil {
			return append(all, -1)
		}
		all = append(all, d)
		now = now.Add(d)
	}
	return all
}

func TestStrategies(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	backoff := Strategy{Kind: ExponentialDelay, Initial: 100 * ms, Max: s, Multiplier: 2, ResetAfter: time.Minute}
	bounded := backoff
	bounded.Attempts = 2
	jittered := backoff
	jittered.Jitter = 0.5
	tests := []struct {
		name     string
		strategy Strategy
		random   float64
		quiet    []time.Duration
		want     []time.Duration
	}{
		{"none", Strategy{}, 0, []time.Duration{0}, []time.Duration{-1}},
		{"fixed delay, so many times", Strategy{Kind: FixedDelay, Attempts: 2, Delay: s}, 0, []time.Duration{0, time.Hour, time.Hour}, []time.Duration{s, s, -1}},
		{"the rate's failures within its interval", Strategy{Kind: FailureRate, Attempts: 2, Interval: time.Minute, Delay: s}, 0,
			[]time.Duration{0, s, s}, []time.Duration{s, s, -1}},
		{"the rate's failures spread out", Strategy{Kind: FailureRate, Attempts: 2, Interval: time.Minute, Delay: s}, 0,
			[]time.Duration{0, 31 * s, 31 * s, 31 * s}, []time.Duration{s, s, s, s}},
		{"the delay grows up to its bound", backoff, 0, []time.Duration{0, 0, 0, 0, 0, 0}, []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, s, s}},
		{"the delay is small again after a quiet time", backoff, 0, []time.Duration{0, 0, time.Minute, 0}, []time.Duration{100 * ms, 200 * ms, 100 * ms, 200 * ms}},
		{"bounded attempts without a quiet time", bounded, 0, []time.Duration{0, 0, 0}, []time.Duration{100 * ms, 200 * ms, -1}},
		{"bounded attempts with a quiet time", bounded, 0, []time.Duration{0, 0, time.Minute}, []time.Duration{100 * ms, 200 * ms, 100 * ms}},
		{"jitter makes it longer", jittered, 1, []time.Duration{0, 0}, []time.Duration{150 * ms, 300 * ms}},
		{"jitter makes it shorter, not below the least", jittered, 0, []time.Duration{0, 0, 0}, []time.Duration{100 * ms, 100 * ms, 200 * ms}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := test.strategy.Validate(); err != nil {
				t.Fatal(err)
			}
			got := delays(test.strategy, test.random, test.quiet...)
			if len(got) != len(test.want) {
				t.Fatalf("got %v, want %v", got, test.want)
			}
			for i := range got {
				if got[i] != test.want[i] {
					t.Fatalf("got %v, want %v", got, test.want)
				}
			}
		})
	}
}

func TestEndlessBackoffNeverOverflows(t *testing.T) {
	s := DefaultStrategy()
	h := history{attempts: 1 << 30}
	if d, err := s.next(&h, 0, 1); err != nil || d != s.Max {
		t.Errorf("got %v %v", d, err)
	}
}

func TestValidateReportsEverything(t *testing.T) {
	for _, s := range []Strategy{
		{Kind: "sometimes"},
		{Kind: FixedDelay, Delay: -1, Attempts: 1},
		{Kind: FixedDelay},
		{Kind: FailureRate, Attempts: 1},
		{Kind: ExponentialDelay},
		{Kind: ExponentialDelay, Initial: 2, Max: 1, Multiplier: 1},
		{Kind: ExponentialDelay, Initial: 1, Max: 1, Multiplier: 0.5},
		{Kind: ExponentialDelay, Initial: 1, Max: 1, Multiplier: 1, Jitter: 2},
	} {
		if s.Validate() == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
}
