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
	current *progress
	whole   progress
	named   bool // the reader names splits
	splits  map[string]*splitTime
}

// splitTime is the progress of one split.
type splitTime struct {
	progress
	before base.EventTime // largest, when time last passed
	still  time.Duration  // since it had a record
	idle   bool
}

func (p *splitProgress) init() {
	p.whole.largest = base.NoTime
	p.current = &p.whole
	p.splits = map[string]*splitTime{}
}

// expect says that the reader was given a split.
func (p *splitProgress) expect(id string) {
	if p.splits[id] == nil {
		p.splits[id] = &splitTime{progress: progress{largest: base.NoTime}, before: base.NoTime}
	}
}

// enter says that the records that follow are of a split.
func (p *splitProgress) enter(id string) {
	p.named = true
	p.expect(id)
	s := p.splits[id]
	s.still, s.idle = 0, false
	p.current = &s.progress
}

// finish takes a split out: it holds the watermark back no more.
func (p *splitProgress) finish(id string) {
	delete(p.splits, id)
	p.current = &p.whole
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
		if !s.idle {
			least = min(least, s.watermark(late))
		}
	}
	if least == base.EndOfTime { // nothing is being read: what was read says nothing about what comes
		return base.NoTime
	}
	return least
}
