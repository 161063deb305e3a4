package base

import (
	"math"
	"time"
)

// EventTime is a record's timestamp or a watermark: nanoseconds since the Unix epoch.
type EventTime int64

const (
	// NoTime is the timestamp of a record without one, and the watermark before the first.
	NoTime EventTime = math.MinInt64
	// EndOfTime is the last watermark: no record follows.
	EndOfTime EventTime = math.MaxInt64
)

// TimeOf is t as an event time. Instants before 1678 and after 2261 become the first and the last that can be told.
func TimeOf(t time.Time) EventTime {
	switch s := t.Unix(); {
	case s < math.MinInt64/1_000_000_000+1:
		return NoTime + 1
	case s > math.MaxInt64/1_000_000_000-1:
		return EndOfTime
	}
	return EventTime(t.UnixNano())
}

// Time is t as Go's time, in UTC. NoTime is the zero Time.
func (t EventTime) Time() time.Time {
	if t == NoTime {
		return time.Time{}
	}
	return time.Unix(0, int64(t)).UTC()
}
