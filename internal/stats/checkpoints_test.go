package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/snapshot"
)

// random makes milliseconds.
type random struct{ *rand.Rand }

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 1))} }

func (r random) ms(most int) time.Duration { return time.Duration(r.IntN(most)) }

// TestQuantity compares with an oracle that keeps everything: percentiles as the estimate of n+1 places over the last 10,000 values, the
// rest over all.
func TestQuantity(t *testing.T) {
	ps := []float64{0.5, 0.9, 0.95, 0.99, 0.999, 0, 1}
	for seed := range uint64(4) {
		r := newRandom(seed)
		var q Quantity
		var all []int64
		n := []int{1, 7, 12_000, 31_000}[seed]
		copies := map[int]Quantity{}
		for i := range n {
			v := r.Int64N(1000) - 10
			if q.add(v); v >= 0 {
				all = append(all, v)
			}
			if i%997 == 0 {
				copies[len(all)] = q
			}
		}
		copies[len(all)] = q
		for count, q := range copies {
			expectQuantity(t, q, all[:count], ps)
		}
	}
}

func expectQuantity(t *testing.T, q Quantity, all []int64, ps []float64) {
	t.Helper()
	if len(all) == 0 {
		if q.Count != 0 || q.Mean() != 0 || !math.IsNaN(q.Percentiles(0.5)[0]) {
			t.Errorf("of nothing: %+v", q)
		}
		return
	}
	sum := int64(0)
	for _, v := range all {
		sum += v
	}
	if q.Count != len(all) || q.Min != slices.Min(all) || q.Max != slices.Max(all) || q.Sum != sum || q.Mean() != sum/int64(len(all)) {
		t.Errorf("of %d values: %d, %d, %d, %d", len(all), q.Count, q.Min, q.Max, q.Sum)
	}
	last := slices.Clone(all[max(0, len(all)-10_000):])
	slices.Sort(last)
	for i, got := range q.Percentiles(ps...) {
		// Brute force: the share of values below, as n+1 places divide it; linear between two of them.
		place := ps[i] * float64(len(last)+1)
		low, high := last[0], last[len(last)-1]
		for k := range last {
			if float64(k+1) <= place {
				low = last[k]
			}
		}
		for k := len(last) - 1; k >= 0; k-- {
			if float64(k+1) > place {
				high = last[k]
			}
		}
		share := place - math.Floor(place)
		if place < 1 || place >= float64(len(last)) {
			share, high = 0, low
		}
		if want := float64(low) + share*float64(high-low); math.Abs(got-want) > 1e-6 {
			t.Errorf("of %d values, p%v is %v; want %v", len(all), ps[i], got, want)
		}
	}
}

// TestHistory: the last ten, oldest first; one under way stays though newer ones push; who has left is found while it is the latest of
// its kind.
func TestHistory(t *testing.T) {
	g, s := job(t), &Checkpoints{}
	nobody := func(base.Task) bool { return false }
	begin := func(id base.CheckpointID, kind checkpoint.Kind) checkpoint.Report {
		r := checkpoint.Report{ID: id, Kind: kind, Tasks: tasks, Wall: wall.UnixNano(), Exec: checkpoint.NoExec}
		s.Begun(r, tasks, nobody)
		return r
	}
	end := func(r checkpoint.Report, what checkpoint.Progress) {
		r.What = what
		s.Acknowledged(checkpoint.TaskAcked{ID: r.ID}, snapshot.Sizes{State: 100 * int64(r.ID), New: int64(r.ID)}, after(time.Duration(r.ID)))
		s.Closed(g, r, after(time.Duration(r.ID)))
	}
	slow := begin(1, checkpoint.Checkpoint)
	end(begin(2, checkpoint.Savepoint), checkpoint.Succeeded)
	end(begin(3, checkpoint.Checkpoint), checkpoint.Failed)
	for id := base.CheckpointID(4); id <= 30; id++ {
		end(begin(id, checkpoint.Checkpoint), checkpoint.Succeeded)
	}
	s.Closed(g, checkpoint.Report{What: checkpoint.Failed, Reason: checkpoint.NotAllTasksRunning}, after(1))
	s.Closed(g, checkpoint.Report{ID: 31, What: checkpoint.Failed, Reason: checkpoint.IOFailure}, after(1)) // it had no directory yet
	var ids []base.CheckpointID
	for _, c := range s.History {
		ids = append(ids, c.ID)
	}
	if want := []base.CheckpointID{1, 22, 23, 24, 25, 26, 27, 28, 29, 30}; !slices.Equal(ids, want) {
		t.Errorf("the history is %v, want %v", ids, want)
	}
	if s.Total() != 32 || s.Completed != 28 || s.Failed != 3 || s.InProgress != 1 {
		t.Errorf("%d in all, %d completed, %d failed, %d in progress", s.Total(), s.Completed, s.Failed, s.InProgress)
	}
	if s.LatestCompleted.ID != 30 || s.LatestSavepoint.ID != 2 || s.LatestFailed.ID != 3 || s.Find(2) == nil || s.Find(3) == nil || s.Find(4) != nil {
		t.Errorf("latest %v %v %v", s.LatestCompleted, s.LatestSavepoint, s.LatestFailed)
	}
	if q := s.Summary; q.New.Count != 28 || q.New.Min != 2 || q.State.Max != 3000 || q.Duration.Max != 30 {
		t.Errorf("summary %+v", q)
	}
	before := s.Clone(g, after(40))
	end(slow, checkpoint.Succeeded)
	s.Discarded(30)
	if before.Find(1).What != checkpoint.Begun || before.Find(1).Explanation == "" || before.LatestCompleted.Discarded || before.LatestCompleted.ID != 30 || s.LatestCompleted.ID != 1 {
		t.Error("a copy has changed")
	}
	s.Discarded(2)
	if !s.LatestSavepoint.Discarded {
		t.Error("a deleted savepoint is not known to be")
	}
}

// TestAnotherLengthOfHistory is what web.checkpoints.history asks for.
func TestAnotherLengthOfHistory(t *testing.T) {
	g, s := job(t), &Checkpoints{Kept: 2}
	for id := base.CheckpointID(1); id <= 5; id++ {
		s.Begun(checkpoint.Report{ID: id}, tasks, func(base.Task) bool { return false })
		s.Closed(g, checkpoint.Report{ID: id, What: checkpoint.Failed, Exec: checkpoint.NoExec}, wall)
	}
	if len(s.History) != 2 || s.History[0].ID != 4 {
		t.Errorf("kept are %+v", s.History)
	}
}

// TestLateNews: a task's stages only go on, nothing counts twice, and nothing after the end.
func TestLateNews(t *testing.T) {
	h := begun(t, rules).triggered(1)
	h.acked(count1, metrics(times{delay: 2}, false), 10, 0).acked(count1, metrics(times{delay: 3}, false), 10, 0)
	h.aligning(count1, 5).writing(count1, metrics(times{}, false)).acked(rules, checkpoint.AckMetrics{}, 5, 0)
	if c := &h.History[0]; c.Acked != 1 || c.Sizes.State != 10 || c.Parts[count1].Stage != Acked || c.Parts[rules].Stage != Exempt {
		t.Errorf("%+v", c)
	}
	h.failed(10, checkpoint.Expired, -1, nil)
	sentence := h.History[0].Explanation
	h.acked(count2, metrics(times{}, false), 10, 0).aligning(count3, 11).triggered(5)
	h.Asked(1, "somebody")
	h.Closed(h.graph, checkpoint.Report{ID: 7, What: checkpoint.Failed}, after(20))
	if c := &h.History[0]; c.Acked != 1 || c.Explanation != sentence || c.Parts[count3].Stage != Nothing || len(c.Asked) > 0 {
		t.Errorf("%+v", c)
	}
}

// TestEndToEnd is as Flink's: until the last acknowledgement, of a failed one until its failure; before the first one there is none.
func TestEndToEnd(t *testing.T) {
	h := begun(t).triggered(1)
	c := &h.History[0]
	if c.EndToEnd() >= 0 || !c.LastAck().IsZero() {
		t.Errorf("%v before anything", c.EndToEnd())
	}
	h.acked(count1, metrics(times{delay: 7}, true), 10, 0)
	if c.EndToEnd() != 7*ms || !c.Unaligned() {
		t.Errorf("%v", c.EndToEnd())
	}
	failed := *c
	failed.What, failed.Ended = checkpoint.Failed, after(50)
	if failed.EndToEnd() != 50*ms {
		t.Errorf("%v of a failed one", failed.EndToEnd())
	}
}

// TestStart: a restore ends with the last task; its sentence has the phases of this one.
func TestStart(t *testing.T) {
	g, s := job(t), &Checkpoints{}
	first, second := base.Exec{Task: count1, Attempt: 2}, base.Exec{Task: out, Attempt: 2}
	s.Deployed(&checkpoint.Completed{ID: 4}, []base.Exec{first, second}, wall)
	if got, want := s.Restored.Explain(g), "Restored 2 tasks from checkpoint 4 in 0 ms."; got != want {
		t.Errorf("before any runs: %s", got)
	}
	s.Initializing(first, after(10))
	s.Initializing(second, after(1))
	s.Phased(first, Phases{Read: 200 * ms, Restore: 50 * ms, InFlight: 2 * ms, Open: ms, Bytes: 30_000_000})
	if s.Running(second, after(2)) || s.Running(base.Exec{Task: count1, Attempt: 1}, after(2)) {
		t.Error("done before all run")
	}
	if !s.Running(first, after(270)) || s.Running(first, after(300)) {
		t.Error("not done, or twice")
	}
	s.Initializing(first, after(400)) // too late
	want := `Restored 2 tasks from checkpoint 4 in 270 ms; the last was subtask 1 of "count", 200 ms reading 30 MB, 50 ms restoring state.`
	if got := s.Restored.Explain(g); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	sum, most := s.Restored.Total()
	if sum.Wait != 11*ms || most.Wait != 10*ms || sum.Bytes != 30_000_000 || most.Read != 200*ms || s.Restores != 1 {
		t.Errorf("sum %+v, most %+v", sum, most)
	}
}
