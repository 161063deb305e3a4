package task

import (
	"testing"

	"github.com/weirstream/weir/internal/base"
)

// step is something that a channel says, and where the valve then stands.
type step struct {
	channel  int
	mark     base.EventTime // 0: a status
	idle     bool
	combined base.EventTime
	quiet    bool
}

const end = base.EndOfTime

// TestValve walks valves of two or three channels through the orders in which channels go idle, wake and end.
func TestValve(t *testing.T) {
	none := base.NoTime
	tests := []struct {
		name     string
		channels int
		from     base.EventTime
		steps    []step
	}{
		{"the least counts", 2, none, []step{{0, 5, false, none, false}, {1, 4, false, 4, false}, {1, 9, false, 5, false}, {0, 7, false, 7, false}}},
		{"it never goes back", 2, none, []step{{0, 5, false, none, false}, {1, 5, false, 5, false}, {1, 3, false, 5, false}}},
		{"the larger goes idle first", 2, none, []step{{0, 5, false, none, false}, {1, 4, false, 4, false}, {0, 0, true, 4, false}, {1, 0, true, 5, true}}},
		{"the larger goes idle last", 2, none, []step{{0, 5, false, none, false}, {1, 4, false, 4, false}, {1, 0, true, 5, false}, {0, 0, true, 5, true}}},
		{"one of two idle ones wakes behind", 2, none, []step{{0, 5, false, none, false}, {1, 4, false, 4, false}, {0, 0, true, 4, false}, {1, 0, true, 5, true},
			{0, 0, false, 5, false}, {0, 3, false, 5, false}, {0, 7, false, 7, false}}},
		{"idle from the start", 2, none, []step{{1, 0, true, none, false}, {0, 8, false, 8, false}}},
		{"all idle from the start", 2, none, []step{{0, 0, true, none, false}, {1, 0, true, none, true}}},
		{"an idle one that says something", 2, none, []step{{0, 5, false, none, false}, {1, 4, false, 4, false}, {1, 0, true, 5, false}, {1, 20, false, 5, false}, {0, 0, true, 20, true}}},
		{"all idle, and one says something", 2, none, []step{{0, 0, true, none, false}, {1, 0, true, none, true}, {1, 9, false, 9, true}}},
		{"one awake behind holds the other back", 2, none, []step{{0, 9, false, none, false}, {1, 0, true, 9, false}, {1, 0, false, 9, false}, {0, 20, false, 9, false}, {1, 15, false, 15, false}}},
		{"an ended one beside an active one", 2, none, []step{{0, end, false, none, false}, {1, 3, false, 3, false}, {1, end, false, end, false}}},
		{"an ended one does not speak for an idle one", 2, none, []step{{1, 3, false, none, false}, {0, end, false, 3, false}, {1, 0, true, 3, true}, {1, 0, false, 3, false}, {1, 6, false, 6, false}, {1, end, false, end, false}}},
		{"an idle one, then the other ends", 2, none, []step{{0, 2, false, none, false}, {1, 0, true, 2, false}, {0, end, false, 2, true}, {1, end, false, end, false}}},
		{"an idle one ends", 3, none, []step{{0, 2, false, none, false}, {1, 4, false, none, false}, {2, 0, true, 2, false}, {2, end, false, 2, false}, {0, end, false, 4, false}, {1, end, false, end, false}}},
		{"the last active one ends beside two idle", 3, none, []step{{0, 2, false, none, false}, {1, 4, false, none, false}, {2, 3, false, 2, false}, {0, 0, true, 3, false}, {1, 0, true, 3, false}, {2, end, false, 4, true}}},
		{"restored", 2, 10, []step{{0, 5, false, 10, false}, {0, 12, false, 10, false}, {1, 0, true, 12, false}}},
	}
	for _, test := range tests {
		v := newValve(test.channels, test.from)
		for i, s := range test.steps {
			if s.mark != 0 {
				v.watermark(s.channel, s.mark)
			} else {
				v.status(s.channel, s.idle)
			}
			if v.combined != s.combined || v.quiet != s.quiet {
				t.Errorf("%s: after step %d the valve is at %d, quiet %v; want %d, %v", test.name, i+1, v.combined, v.quiet, s.combined, s.quiet)
			}
		}
	}
}
