package config

import (
	"math"
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"10 s": 10 * time.Second, "500 ms": 500 * time.Millisecond, "1min": time.Minute, "2 Days": 48 * time.Hour, "1m": time.Minute,
		"123": 123 * time.Millisecond, "0": 0, " 7 micros ": 7 * time.Microsecond, "3 µs": 3 * time.Microsecond, "9ns": 9,
		"PT10S": 10 * time.Second, "PT0.1S": 100 * time.Millisecond, "P1DT2H": 26 * time.Hour, "pt10m": 10 * time.Minute, "P2D": 48 * time.Hour,
		"500ms": 500 * time.Millisecond, "1h30m": 90 * time.Minute, "1.5s": 1500 * time.Millisecond, "-1s": -time.Second,
	} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("%q: got %v %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "s", "10 parsecs", "P", "PT", "P1D2H", "PD", "P1.5D", "PT1NS", "PT-1S", "P1DT", "1 h 30 m", "300000 d",
		"99999999999999999999", "P106751DT24H", "P200000D"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestDurationsAreWrittenAsTheyAreRead(t *testing.T) {
	for _, d := range []time.Duration{0, 1, 1500 * time.Millisecond, time.Minute, 90 * time.Second, 365 * day, math.MaxInt64} {
		text := formatDuration(d)
		if got, err := parseDuration(text); err != nil || got != d {
			t.Errorf("%v is written %q and read as %v %v", d, text, got, err)
		}
	}
}

func TestMemorySizes(t *testing.T) {
	for text, want := range map[string]MemorySize{
		"5 mb": 5 << 20, "20kb": 20 << 10, "4096": 4096, "1 G": 1 << 30, "2 tebibytes": 2 << 40, "7 bytes": 7, "0": 0,
	} {
		got, err := parseMemory(text)
		if err != nil || got != want {
			t.Errorf("%q: got %v %v, want %v", text, got, err, want)
		}
		if again, err := parseMemory(got.String()); err != nil || again != got {
			t.Errorf("%q is written %q and read as %v %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "mb", "-1", "1.5 mb", "9 pb", "9000000000 gb"} {
		if got, err := parseMemory(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
