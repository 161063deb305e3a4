package weir

import (
	"testing"
	"time"

	"github.com/weirstream/weir/internal/base"
)

func TestTheSourcesWatermarkIsTheLeastOverItsSplits(t *testing.T) {
	var p splitProgress
	p.init()
	record := func(id string, at base.EventTime) {
		p.enter(id)
		p.current.largest = max(p.current.largest, at)
	}
	want := func(what string, w base.EventTime) {
		t.Helper()
		if got := p.watermark(0); got != w {
			t.Errorf("%s: the watermark is %d, want %d", what, got, w)
		}
	}
	p.expect("a")
	p.expect("b")
	record("a", 100)
	want("b was given, but not begun", base.NoTime)
	record("b", 50)
	want("b is behind", 49)
	record("b", 300)
	want("a is behind", 99)
	for range 4 {
		record("b", 300+p.splits["b"].largest)
		p.pass(time.Second, 3*time.Second)
	}
	want("a is idle", p.splits["b"].largest-1)
	record("a", 120)
	want("a is back", 119)
	p.finish("a")
	want("a is done", p.splits["b"].largest-1)
	p.finish("b")
	want("all are done", base.NoTime)

	var whole splitProgress
	whole.init()
	whole.expect("a")
	whole.current.largest = 7
	if got := whole.watermark(0); got != 6 {
		t.Errorf("a reader that names no splits: %d", got)
	}
}
