package job

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
)

// Kind is a sort of restart strategy, by its name in the configuration.
type Kind string

const (
	// None: the first failure is the end.
	None Kind = "none"
	// FixedDelay restarts Attempts times, each after Delay.
	FixedDelay Kind = "fixed-delay"
	// FailureRate restarts after Delay, unless more than Attempts failures fall into Interval.
	FailureRate Kind = "failure-rate"
	// ExponentialDelay restarts after a delay that grows with each failure, and is small again after a quiet time.
	ExponentialDelay Kind = "exponential-delay"
)

// Strategy says whether and when a restart follows a failure. The zero value is none.
type Strategy struct {
	Kind Kind

	// Delay of FixedDelay and FailureRate, from the failure to the restart.
	Delay time.Duration
	// Attempts bounds the restarts: of FixedDelay altogether, of FailureRate within Interval, of ExponentialDelay without a
	// quiet time between them. For ExponentialDelay 0, the default, is no bound.
	Attempts int
	// Interval of FailureRate.
	Interval time.Duration

	// Initial and Max bound the delay of ExponentialDelay, which grows by Multiplier with each failure.
	Initial, Max time.Duration
	Multiplier   float64
	// Jitter is the part of the delay by which it is randomly made longer or shorter, 0 to 1: so that jobs that failed
	// together do not restart together.
	Jitter float64
	// ResetAfter is the quiet time after which ExponentialDelay begins anew.
	ResetAfter time.Duration
}

// DefaultStrategy is the strategy of jobs with checkpoints that name none: exponential delay, endless.
func DefaultStrategy() Strategy {
	return Strategy{Kind: ExponentialDelay, Initial: 100 * time.Millisecond, Max: time.Minute, Multiplier: 1.5, Jitter: 0.1, ResetAfter: time.Hour}
}

// Validate reports everything that is wrong with s.
func (s Strategy) Validate() error {
	var all []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			all = append(all, fmt.Errorf("job: restart strategy %s: "+format, append([]any{s.Kind}, args...)...))
		}
	}
	switch s.Kind {
	case None, "":
	case FixedDelay, FailureRate:
		bad(s.Delay < 0, "delay %v, want none or a positive one", s.Delay)
		bad(s.Attempts < 1, "%d attempts, want at least 1", s.Attempts)
		bad(s.Kind == FailureRate && s.Interval <= 0, "interval %v, want a positive one", s.Interval)
	case ExponentialDelay:
		bad(s.Initial <= 0 || s.Max < s.Initial, "delay of %v to %v, want a positive one to one at least as long", s.Initial, s.Max)
		bad(!(s.Multiplier >= 1), "multiplier %v, want at least 1", s.Multiplier)
		bad(!(s.Jitter >= 0 && s.Jitter <= 1), "jitter %v, want 0 to 1", s.Jitter)
		bad(s.ResetAfter < 0, "reset after %v, want none or a positive time", s.ResetAfter)
		bad(s.Attempts < 0, "%d attempts, want 0 (any number) or more", s.Attempts)
	default:
		bad(true, "there is no such strategy: use %s, %s, %s or %s", None, FixedDelay, FailureRate, ExponentialDelay)
	}
	return errors.Join(all...)
}

// history is what a Strategy must remember of the failures before. The zero value remembers none.
type history struct {
	failures []checkpoint.Time // the latest: of FailureRate at most Attempts+1
	attempts int               // restarts counted
	due      checkpoint.Time   // of the last restart
}

// next counts a failure, and says how long after it the restart follows; an error: it does not, and why. random is in [0, 1).
func (s Strategy) next(h *history, now checkpoint.Time, random float64) (time.Duration, error) {
	switch s.Kind {
	case FixedDelay:
		if h.attempts++; h.attempts > s.Attempts {
			return 0, fmt.Errorf("the restart strategy %s allows %d (restart-strategy.fixed-delay.attempts)", s.Kind, s.Attempts)
		}
		return s.Delay, nil
	case FailureRate:
		return s.nextAtRate(h, now)
	case ExponentialDelay:
		return s.nextBackoff(h, now, random)
	}
	return 0, errors.New("the restart strategy is none (restart-strategy.type)")
}

func (s Strategy) nextAtRate(h *history, now checkpoint.Time) (time.Duration, error) {
	h.failures = append(h.failures, now)
	if len(h.failures) > s.Attempts {
		oldest := h.failures[0]
		h.failures = h.failures[1:]
		if now.Sub(oldest) <= s.Interval {
			return 0, fmt.Errorf("the restart strategy %s allows %d failures in %v (restart-strategy.failure-rate.max-failures-per-interval)",
				s.Kind, s.Attempts, s.Interval)
		}
	}
	return s.Delay, nil
}

func (s Strategy) nextBackoff(h *history, now checkpoint.Time, random float64) (time.Duration, error) {
	if h.attempts > 0 && now >= h.due.Add(s.ResetAfter) {
		h.attempts = 0
	}
	if h.attempts++; s.Attempts > 0 && h.attempts > s.Attempts {
		return 0, fmt.Errorf("the restart strategy %s allows %d without %v of quiet between them "+
			"(restart-strategy.exponential-delay.attempts-before-reset-backoff)", s.Kind, s.Attempts, s.ResetAfter)
	}
	delay := float64(s.Initial) * math.Pow(s.Multiplier, float64(h.attempts-1))
	delay = min(delay, float64(s.Max)) * (1 + s.Jitter*(2*random-1))
	d := min(max(time.Duration(min(delay, float64(s.Max))), s.Initial), s.Max)
	h.due = now.Add(d)
	return d, nil
}
