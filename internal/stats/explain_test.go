package stats

import (
	"errors"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/snapshot"
)

// job is lines (2) -> count (4) -> out (1), and rules (1), broadcast to count: tasks 0 and 1, 2, 3 to 6, 7.
//
//	channel of count   1        2        3
//	comes from         lines 1  lines 2  rules
func job(t *testing.T) *graph.Job {
	l := graph.Logical{
		Nodes: []*graph.Node{{ID: 0, Kind: graph.Source, Name: "lines", Parallelism: 2}, {ID: 1, Kind: graph.Source, Name: "rules", Parallelism: 1},
			{ID: 2, Kind: graph.Transform, Name: "count", Parallelism: 4}, {ID: 3, Kind: graph.Sink, Name: "out", Parallelism: 1}},
		Edges: []*graph.Edge{{From: 0, To: 2, Partitioning: graph.Hash}, {From: 1, To: 2, Input: 1, Partitioning: graph.Broadcast},
			{From: 2, To: 3, Partitioning: graph.Global}},
	}
	g, err := l.Build("test", graph.Options{Parallelism: 1})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

const (
	lines1 base.Task = iota
	lines2
	rules
	count1
	count2
	count3
	count4
	out
	tasks int = iota
)

var wall = time.Unix(1_800_000_000, 0)

const ms = time.Millisecond

// history is a checkpoint that is told as a story: each method is what happened, so many milliseconds after its begin.
type history struct {
	*Checkpoints
	graph *graph.Job
}

func begun(t *testing.T, exempt ...base.Task) history {
	h := history{&Checkpoints{}, job(t)}
	h.Begun(checkpoint.Report{ID: 1, Tasks: tasks - len(exempt), Wall: wall.UnixNano()}, tasks, func(t base.Task) bool {
		for _, x := range exempt {
			if x == t {
				return true
			}
		}
		return false
	})
	return h
}

func after(d time.Duration) time.Time { return wall.Add(d * ms) }

func (h history) triggered(at time.Duration) history { h.Triggered(1, after(at)); return h }

func (h history) aligning(t base.Task, at time.Duration) history {
	h.Aligning(1, t, after(at))
	return h
}

// times are those of AckMetrics, in milliseconds.
type times struct{ delay, align, sync, async, held time.Duration }

func metrics(d times, unaligned bool, channels ...int) checkpoint.AckMetrics {
	m := checkpoint.AckMetrics{StartDelay: d.delay * ms, Alignment: d.align * ms, Held: d.align * ms, Sync: d.sync * ms, Async: d.async * ms,
		Unaligned: unaligned}
	if unaligned {
		m.Held = d.held * ms
	}
	if len(channels) > 0 {
		m.First, m.Last = channels[0], channels[len(channels)-1]
	}
	return m
}

func (h history) writing(t base.Task, m checkpoint.AckMetrics) history {
	h.Writing(1, t, m, wall.Add(m.StartDelay+m.Held+m.Sync))
	return h
}

// acked acknowledges a part of so many bytes as soon as it is written, and some milliseconds later.
func (h history) acked(t base.Task, m checkpoint.AckMetrics, bytes int64, late time.Duration) history {
	h.Acknowledged(checkpoint.TaskAcked{Exec: base.Exec{Task: t}, ID: 1, Metrics: m}, snapshot.Sizes{State: bytes, New: bytes},
		wall.Add(m.StartDelay+m.Held+m.Sync+m.Async+late*ms))
	return h
}

// quick acknowledges all tasks but some, each within a millisecond or two.
func (h history) quick(but ...base.Task) history {
	for t := range base.Task(tasks) {
		skip := false
		for _, b := range but {
			skip = skip || b == t
		}
		if skip || h.History[0].Parts[t].Stage == Exempt {
			continue
		}
		m := metrics(times{delay: 1 + time.Duration(t/3), async: 1}, false)
		if t >= count1 {
			m.First, m.Last = 1, 1
		}
		h.acked(t, m, 100, 0)
	}
	return h
}

// completed ends it so long after its begin; a checkpoint of d began d before, as its directory took no time.
func (h history) completed(at, finalize time.Duration) string {
	c := h.Closed(h.graph, checkpoint.Report{ID: 1, What: checkpoint.Succeeded, Duration: at * ms, Finalize: finalize * ms, Exec: checkpoint.NoExec}, after(at))
	return c.Explanation
}

func (h history) failed(at time.Duration, r checkpoint.Reason, by base.Task, err error) string {
	x := checkpoint.NoExec
	if by >= 0 {
		x = base.Exec{Task: by}
	}
	return h.Closed(h.graph, checkpoint.Report{ID: 1, What: checkpoint.Failed, Reason: r, Err: err, Exec: x, Duration: at * ms}, after(at)).Explanation
}

func (h history) now(at time.Duration) string { return Explain(h.graph, &h.History[0], after(at)) }

// TestExplain tells a checkpoint as a story, and wants to hear who was to blame, and nobody who only waited.
func TestExplain(t *testing.T) {
	full := errors.New("write /checkpoints/x: no space left on device")
	for _, c := range []struct {
		name string
		got  func(t *testing.T) string
		want string
	}{
		{"back-pressure before a keyed operator", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(count3, out)
			h.acked(count3, metrics(times{delay: 10, align: 1790, sync: 1, async: 200}, false, 3, 2), 12_000_000, 0)
			h.acked(out, metrics(times{delay: 1, align: 1801, async: 1}, false, 1, 3), 10, 0)
			return h.completed(2010, 9)
		}, `1.8 s of 2.0 s: subtask 3 of "count" waited for barriers on lines -> count (back-pressure); 200 ms writing 12 MB.`},
		{"back-pressure from behind", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(count3)
			m := metrics(times{delay: 900, async: 10}, false, 2)
			m.Pressed, m.Busy = 800*ms, 90*ms
			h.acked(count3, m, 10, 0)
			return h.completed(912, 2)
		}, `912 ms: subtask 3 of "count" waited for barriers on lines -> count (back-pressure: its own output was full).`},
		{"writing", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(count1)
			h.acked(count1, metrics(times{delay: 2, sync: 40, async: 1940}, false, 1, 3), 2_345_000_000, 0)
			return h.completed(1990, 8)
		}, `2.0 s: subtask 1 of "count" writing 2.3 GB.`},
		{"the synchronous part", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(count1)
			h.acked(count1, metrics(times{delay: 2, sync: 400, async: 98}, false, 1, 3), 0, 0)
			return h.completed(510, 10)
		}, `400 ms of 510 ms: subtask 1 of "count" taking the snapshot (synchronous part); 98 ms writing 0 bytes.`},
		{"a sink behind a slow one", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(count2, out)
			h.acked(count2, metrics(times{delay: 900, async: 10}, false, 1, 1), 10, 0)
			h.acked(out, metrics(times{delay: 2, align: 1100, async: 10}, false, 1, 2), 10, 0)
			return h.completed(1112, 0)
		}, `899 ms of 1.1 s: subtask 2 of "count" waited for barriers on lines -> count (back-pressure); 202 ms "out" waited for barriers on count -> out (back-pressure).`},
		{"a busy source, whose barrier everybody waits for", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(lines2, count1, count2, count3, count4, out)
			h.acked(lines2, metrics(times{delay: 3001, async: 1}, false), 10, 0)
			for _, c := range []base.Task{count1, count2, count3, count4} {
				h.acked(c, metrics(times{delay: 2, align: 3000, async: 1}, false, 1, 2), 10, 0)
			}
			h.acked(out, metrics(times{delay: 3002, align: 1, async: 1}, false, 1, 2), 10, 0)
			return h.completed(3010, 5)
		}, `3.0 s: subtask 2 of "lines" was busy before it took its trigger (its code had not returned).`},
		{"a late acknowledgement", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(out)
			h.acked(out, metrics(times{delay: 3, async: 1}, false, 1, 1), 10, 700)
			return h.completed(705, 1)
		}, `705 ms: "out" was busy before it could acknowledge (its code had not returned).`},
		{"metadata", func(t *testing.T) string { return begun(t).triggered(1).quick().completed(300, 295) }, `300 ms: publishing the metadata.`},
		{"operator coordinators", func(t *testing.T) string {
			h := begun(t).triggered(250)
			for i := range base.Task(tasks) {
				m := metrics(times{delay: 251, async: 1}, false)
				if i >= count1 {
					m.First, m.Last = 1, 1
				}
				h.acked(i, m, 1, 0)
			}
			return h.completed(253, 1)
		}, `253 ms: asking operator coordinators and hooks.`},
		{"the directory", func(t *testing.T) string {
			h := begun(t).triggered(1).quick()
			return h.Closed(h.graph, checkpoint.Report{ID: 1, What: checkpoint.Succeeded, Duration: 900 * ms, Finalize: ms}, after(6)).Explanation
		}, `900 ms: making the directory.`},
		{"unaligned, writing", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(count1)
			m := metrics(times{delay: 2, held: 0, align: 3, sync: 1, async: 200}, true, 1, 3)
			m.Persisted = 3_000_000
			h.acked(count1, m, 4_000_000, 0)
			return h.completed(205, 1)
		}, `205 ms: subtask 1 of "count" writing 4.0 MB, 3.0 MB of it records in flight.`},
		{"unaligned, a sender whose code does not return", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(lines2, count1)
			h.acked(lines2, metrics(times{delay: 800, sync: 1, async: 1}, true), 10, 0)
			h.acked(count1, metrics(times{delay: 2, align: 799, sync: 1, async: 810}, true, 1, 2), 1000, 0)
			return h.completed(815, 2)
		}, `815 ms: subtask 2 of "lines" was busy before it took its trigger (its code had not returned).`},
		{"unaligned, and a late barrier that nobody would have needed earlier", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(lines2, count1)
			h.acked(lines2, metrics(times{delay: 800, sync: 1, async: 1}, true), 10, 0)
			m := metrics(times{delay: 2, align: 799, sync: 1, async: 900}, true, 1, 2)
			m.States = 895 * ms
			h.acked(count1, m, 1000, 0)
			return h.completed(905, 2)
		}, `905 ms: subtask 1 of "count" writing 1.0 KB.`},
		{"unaligned after a time-out", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(count1)
			h.acked(count1, metrics(times{delay: 2, held: 500, align: 501, sync: 1, async: 20}, true, 1, 3), 1000, 0)
			return h.completed(525, 1)
		}, `525 ms: subtask 1 of "count" waited for aligned barriers, until the time-out that lets them overtake.`},
		{"a finished source", func(t *testing.T) string {
			h := begun(t, lines2).triggered(1).quick(count1)
			h.acked(count1, metrics(times{delay: 2, align: 700, async: 1}, false, 1, 2), 1, 0)
			return h.completed(705, 1)
		}, `705 ms: subtask 1 of "count" waited for barriers on lines -> count (back-pressure).`},
		{"a broadcast edge", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(count4)
			h.acked(count4, metrics(times{delay: 2, align: 90, async: 1}, false, 1, 3), 1, 0)
			return h.completed(95, 1)
		}, `95 ms: subtask 4 of "count" waited for the barrier on rules -> count (back-pressure).`},
		{"clocks that disagree", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(count4)
			h.acked(count4, metrics(times{delay: 5000, async: 1}, false, 1, 1), 1, -4990)
			return h.completed(15, 1)
		}, `13 ms of 15 ms: subtask 4 of "count" waited for barriers on lines -> count (back-pressure); 1 ms publishing the metadata; 1 ms asking operator coordinators and hooks.`},
		{"scripted tasks that measure nothing", func(t *testing.T) string {
			h := begun(t)
			for i := range base.Task(tasks) {
				h.acked(i, checkpoint.AckMetrics{}, 0, 0)
			}
			return h.completed(0, 0)
		}, `0 ms: no task had anything to do.`},

		{"expired: behind records", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(count1, count2, count3, count4, out)
			return h.failed(10_000, checkpoint.Expired, -1, nil)
		}, `After 10.0 s 3 of 8 tasks had acknowledged; subtask 1 of "count" had no barrier yet, though all on lines -> count and rules -> count were sent ` +
			`10.0 s before: they were behind records (back-pressure); subtask 2 of "count" had no barrier yet, though all on lines -> count and rules -> count ` +
			`were sent 10.0 s before: they were behind records (back-pressure); subtask 3 of "count" had no barrier yet, though all on lines -> count and ` +
			`rules -> count were sent 10.0 s before: they were behind records (back-pressure); and so had 1 more; 1 waits for barriers of these.`},
		{"expired: a slow sink", func(t *testing.T) string {
			return begun(t).triggered(1).quick(out).failed(10_000, checkpoint.Expired, -1, nil)
		}, `After 10.0 s 7 of 8 tasks had acknowledged; "out" had no barrier yet, though all on count -> out were sent 10.0 s before: they were behind records (back-pressure).`},
		{"expired: aligning", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(count1, out).aligning(count1, 4)
			return h.failed(10_000, checkpoint.Expired, -1, nil)
		}, `After 10.0 s 6 of 8 tasks had acknowledged; subtask 1 of "count" had been aligning for 10.0 s: some barriers on lines -> count and rules -> count ` +
			`were still behind records (back-pressure); 1 waits for barriers of these.`},
		{"expired: aligning, and a source is to blame", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(lines2, count1, count2, count3, count4, out).aligning(count1, 4).aligning(count2, 4)
			return h.failed(10_000, checkpoint.Expired, -1, nil)
		}, `After 10.0 s 2 of 8 tasks had acknowledged; subtask 2 of "lines" had not come to its trigger: its code had not returned; 5 wait for barriers of these.`},
		{"expired: writing", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(count3).writing(count3, metrics(times{delay: 2, align: 3, sync: 5}, false, 1, 3))
			return h.failed(10_010, checkpoint.Expired, -1, nil)
		}, `After 10.0 s 7 of 8 tasks had acknowledged; subtask 3 of "count" had been writing for 10.0 s.`},
		{"expired: recording, unaligned", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(lines1, count3, out).writing(count3, metrics(times{delay: 2, sync: 5}, true, 2, 3))
			return h.failed(10_010, checkpoint.Expired, -1, nil)
		}, `After 10.0 s 5 of 8 tasks had acknowledged; subtask 1 of "lines" had not come to its trigger: its code had not returned; "out" had no barrier yet, ` +
			`though all on count -> out were sent 10.0 s before: they were behind records (back-pressure); 1 waits for barriers of these.`},
		{"expired: a coordinator", func(t *testing.T) string {
			h := begun(t)
			h.Asked(1, `the operator coordinator of "lines"`)
			h.Asked(1, `master hook "h"`)
			h.Answered(1, `master hook "h"`)
			return h.failed(3000, checkpoint.Expired, -1, nil)
		}, `After 3.0 s the operator coordinator of "lines" had not answered.`},
		{"failed before its sources were triggered", func(t *testing.T) string {
			return begun(t).failed(3000, checkpoint.TriggerFailure, -1, nil)
		}, `After 3.0 s the sources had not been triggered.`},
		{"expired: publishing", func(t *testing.T) string {
			return begun(t).triggered(1).quick().failed(3000, checkpoint.FinalizeFailure, -1, full)
		}, `After 3.0 s all tasks had acknowledged; the metadata had not been published.`},
		{"a full disk", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(count3).writing(count3, metrics(times{delay: 2, align: 3, sync: 5}, false, 1, 3))
			return h.failed(310, checkpoint.AsyncFailure, count3, full)
		}, `After 310 ms 7 of 8 tasks had acknowledged; subtask 3 of "count" failed after writing for 300 ms: write /checkpoints/x: no space left on device.`},
		{"declined: cancelled", func(t *testing.T) string {
			h := begun(t).triggered(1).quick(out).aligning(out, 5)
			return h.failed(25, checkpoint.DeclinedOnCancel, out, nil)
		}, `After 25 ms 7 of 8 tasks had acknowledged; "out" gave up after aligning for 20 ms: Task received cancellation from one of its inputs.`},
		{"declined at once", func(t *testing.T) string {
			return begun(t).triggered(1).failed(5, checkpoint.DeclinedNotReady, rules, nil)
		}, `After 5 ms 0 of 8 tasks had acknowledged; "rules" gave up: Checkpoint was declined (tasks not ready).`},
		{"under way", func(t *testing.T) string {
			return begun(t).triggered(1).quick(out).aligning(out, 5).now(1005)
		}, `After 1.0 s 7 of 8 tasks have acknowledged; "out" has been aligning for 1.0 s: some barriers on count -> out are still behind records (back-pressure).`},
		{"under way: two coordinators", func(t *testing.T) string {
			h := begun(t)
			h.Asked(1, "one")
			h.Asked(1, "two")
			return h.now(1000)
		}, `After 1.0 s one and two have not answered.`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.got(t); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestExplainAnything: whatever was measured, there is a sentence, and its pieces are not longer than the whole.
func TestExplainAnything(t *testing.T) {
	for seed := range uint64(3000) {
		h, r := begun(t), newRandom(seed)
		h.triggered(r.ms(5))
		for i := range base.Task(tasks) {
			m := metrics(times{delay: r.ms(3000), align: r.ms(1000), sync: r.ms(100), async: r.ms(1000), held: r.ms(1000)}, r.IntN(2) == 0, r.IntN(5), r.IntN(5))
			switch r.IntN(4) {
			case 0:
				h.aligning(i, r.ms(1000))
			case 1:
				h.writing(i, m)
			case 2:
				h.acked(i, m, 1, r.ms(5)-2)
			}
		}
		x := explainer{graph: h.graph, c: &h.History[0]}
		x.c.Ended, x.c.Duration, x.c.Finalize = after(4000), 4000*ms, r.ms(10)*ms
		x.path()
		sum := time.Duration(0)
		for _, s := range x.steps {
			sum += s.took
			if s.took < 0 {
				t.Fatalf("seed %d: %+v", seed, x.steps)
			}
		}
		if sum > x.c.Duration {
			t.Fatalf("seed %d: the steps take %v of %v: %+v", seed, sum, x.c.Duration, x.steps)
		}
		if h.now(5000) == "" || h.failed(5000, checkpoint.Expired, base.Task(r.IntN(10)-1), nil) == "" {
			t.Fatalf("seed %d: no sentence", seed)
		}
	}
}

func TestUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0 ms", 340 * time.Microsecond: "0.3 ms", 9960 * time.Microsecond: "10 ms", 12 * ms: "12 ms", 1840 * ms: "1.8 s", 90 * time.Second: "1m30s"} {
		if got := FormatDuration(d); got != want {
			t.Errorf("%v is %s; want %s", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 bytes", 999: "999 bytes", 1000: "1.0 KB", 12_345: "12 KB", 12_345_678: "12 MB", 5e15: "5000 TB"} {
		if got := FormatBytes(n); got != want {
			t.Errorf("%d is %s; want %s", n, got, want)
		}
	}
}
