package weir

import (
	"time"

	"github.com/weirstream/weir/internal/base"
)

// splitProgress is how far event time has come in each split of a reader. The source's watermark is the least of them, over
// all splits that the reader was given and has not finished: one that it has not begun yet holds the watermark back, else its
// first records would be late because another split is ahead, as after a restore. A split without records for as long as
// Watermarks.Idle holds back nothing until it has one.
//
// Readers that name no splits have the progress of the whole.
type splitProgress struct {
	current *splitTime
	whole   splitTime
	named   bool // the reader names splits
	spoken  bool // the reader has said something of time itself
	splits  map[string]*splitTime
	changed func() // hears at once of what the reader itself says of time
}

// splitTime is the progress of one split.
type splitTime struct {
	progress
	reached base.EventTime // as the reader has said
	before  base.EventTime // largest, when time last passed
	still   time.Duration  // since it had a record
	idle    bool
	told    bool // that it is idle, by the reader
}

var noTime = splitTime{progress: progress{largest: base.NoTime}, reached: base.NoTime, before: base.NoTime}

// watermark is the split's.
func (s *splitTime) watermark(late time.Duration) base.EventTime {
	return max(s.reached, s.progress.watermark(late))
}

func (p *splitProgress) init() {
	p.whole = noTime
	p.current = &p.whole
	p.splits = map[string]*splitTime{}
}

// expect says that the reader was given a split.
func (p *splitProgress) expect(id string) {
	if p.splits[id] == nil {
		s := noTime
		p.splits[id] = &s
	}
}

// enter says that the records that follow are of a split.
func (p *splitProgress) enter(id string) {
	p.named = true
	p.expect(id)
	s := p.splits[id]
	s.still, s.idle, s.told = 0, false, false
	p.current = s
}

// reach says that the split at hand has come to t.
func (p *splitProgress) reach(t base.EventTime) {
	p.current.reached = max(p.current.reached, t)
	p.spoken = true
	p.changed()
}

// rest says that the split at hand is idle.
func (p *splitProgress) rest() {
	p.current.told = true
	p.spoken = true
	p.changed()
}

// resting is true where the reader has said of all that it reads that it is idle.
func (p *splitProgress) resting() bool {
	if !p.named {
		return p.whole.told
	}
	for _, s := range p.splits {
		if !s.told {
			return false
		}
	}
	return len(p.splits) > 0
}

// finish takes a split out: it holds the watermark back no more.
func (p *splitProgress) finish(id string) {
	delete(p.splits, id)
	p.current = &p.whole
	if p.spoken {
		p.changed()
	}
}

// pass says that time has passed; splits without records in it come nearer to being idle. It is called only while the source
// is looked at, so that back-pressure makes nothing idle.
func (p *splitProgress) pass(d, idle time.Duration) {
	for _, s := range p.splits {
		if s.largest != s.before {
			s.before, s.still, s.idle = s.largest, 0, false
			continue
		}
		s.still += d
		s.idle = idle > 0 && s.still >= idle
	}
}

// watermark is the source's.
func (p *splitProgress) watermark(late time.Duration) base.EventTime {
	if !p.named {
		return p.whole.watermark(late)
	}
	least := base.EndOfTime
	for _, s := range p.splits {
		if !s.idle && !s.told {
			least = min(least, s.watermark(late))
		}
	}
	if least == base.EndOfTime { // nothing is being read: what was read says nothing about what comes
		return base.NoTime
	}
	return least
}
