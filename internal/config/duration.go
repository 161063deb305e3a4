package config

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Durations are read in the three spellings that users of Flink and of Go know:
//
//	10 s, 500ms, 1 min, 2 days    Flink's: a whole number and a unit; without a unit it is milliseconds
//	PT10S, P1DT2H                 ISO 8601, as Flink's own documentation prints defaults
//	1h30m, 1.5s                   Go's
//
// They never contradict each other: "1m" is a minute in both of the first and the last.

const day = 24 * time.Hour

var durationUnits = []struct {
	name  string
	nanos time.Duration
}{{"d", day}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}, {"us", time.Microsecond}, {"ns", 1}}

var durationUnitOf = map[string]time.Duration{
	"":  time.Millisecond,
	"d": day, "day": day, "days": day,
	"h": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"s": time.Second, "sec": time.Second, "second": time.Second, "seconds": time.Second,
	"ms": time.Millisecond, "milli": time.Millisecond, "millis": time.Millisecond,
	"millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"us": time.Microsecond, "µs": time.Microsecond, "μs": time.Microsecond, "micro": time.Microsecond, "micros": time.Microsecond,
	"microsecond": time.Microsecond, "microseconds": time.Microsecond,
	"ns": 1, "nano": 1, "nanos": 1, "nanosecond": 1, "nanoseconds": 1,
}

var errDuration = errors.New(`is not a duration, such as "10 s", "500ms" or "PT10M"`)

func parseDuration(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if digits, unit, ok := splitUnit(text); ok {
		if nanos, known := durationUnitOf[unit]; known {
			n, err := scaled(digits, int64(nanos))
			return time.Duration(n), err
		}
	}
	if iso := strings.ToUpper(text); strings.HasPrefix(iso, "P") {
		return parseISO(iso)
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errDuration
	}
	return d, nil
}

// parseISO reads PnDTnHnMnS, where only the seconds may have a fraction.
func parseISO(text string) (time.Duration, error) {
	days, clock, timed := strings.Cut(text[1:], "T")
	var sum time.Duration
	if days != "" {
		count, ok := strings.CutSuffix(days, "D")
		digits, unit, digital := splitUnit(count)
		if !ok || !digital || unit != "" {
			return 0, errDuration
		}
		n, err := scaled(digits, int64(day))
		if err != nil {
			return 0, err
		}
		sum = time.Duration(n)
	}
	if timed == (clock == "") || days == "" && !timed {
		return 0, errDuration
	}
	if timed {
		// What is left has Go's form, in capitals.
		d, err := time.ParseDuration(strings.ToLower(clock))
		if err != nil || d < 0 || strings.ContainsAny(clock, "NU") || strings.Contains(clock, "MS") {
			return 0, errDuration
		}
		sum += d
	}
	if sum < 0 {
		return 0, errors.New("is too large")
	}
	return sum, nil
}

// formatDuration writes d in the largest unit of which it is a whole number: "10 min", "1500 ms".
func formatDuration(d time.Duration) string {
	for _, u := range durationUnits {
		if d != 0 && d%u.nanos == 0 {
			return fmt.Sprintf("%d %s", d/u.nanos, u.name)
		}
	}
	return "0"
}
