package task

import "github.com/weirstream/weir/internal/base"

// valve combines the watermarks and the status of all input channels.
//
// The combined watermark is the least over the active channels, and never goes back. When all are idle it is the largest
// that any of them has reached, whichever went idle last. A channel at the end of time is out: it neither holds the others
// back nor speaks for those that are idle, else one finished source would end the time of all records that an idle one may
// still send. Only when all channels are at the end of time is the combined watermark there too.
type valve struct {
	marks    []base.EventTime
	idle     []bool
	combined base.EventTime
	quiet    bool // no channel is active, and some are not at their end
}

// newValve is a valve of n active channels, all at the watermark from.
func newValve(n int, from base.EventTime) *valve {
	v := &valve{marks: make([]base.EventTime, n), idle: make([]bool, n), combined: from}
	for i := range v.marks {
		v.marks[i] = from
	}
	return v
}

// watermark takes channel i's watermark.
func (v *valve) watermark(i int, t base.EventTime) {
	before := v.marks[i]
	if t <= before {
		return
	}
	v.marks[i] = t
	if before <= v.combined || t == base.EndOfTime { // else another channel holds the combined one back
		v.combine()
	}
}

// status takes channel i's status.
func (v *valve) status(i int, idle bool) {
	if v.idle[i] != idle {
		v.idle[i] = idle
		v.combine()
	}
}

func (v *valve) combine() {
	least, largest := base.EndOfTime, base.NoTime
	active, ended := 0, 0
	for i, t := range v.marks {
		switch {
		case t == base.EndOfTime:
			ended++
		case v.idle[i]:
			largest = max(largest, t)
		default:
			active++
			least = min(least, t)
			largest = max(largest, t)
		}
	}
	v.quiet = active == 0 && ended < len(v.marks)
	if v.quiet {
		least = largest
	}
	v.combined = max(v.combined, least)
}
