package trial

import (
	"testing"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/task"
)

// reading is what a job told at one time.
type reading struct {
	jobmaster.Status
}

// follows compares with the one before: nothing goes down, but where an attempt is a new one.
func (s reading) follows(t *testing.T, before reading) {
	t.Helper()
	a, b := before.Checkpoints, s.Checkpoints
	if b.Completed < a.Completed || b.Failed < a.Failed || b.Total() < a.Total() || b.InProgress < 0 || b.Restores < a.Restores || s.Restarts < before.Restarts {
		t.Errorf("counts went from %d, %d, %d to %d, %d, %d with %d in progress", a.Completed, a.Failed, a.Restores, b.Completed, b.Failed, b.Restores, b.InProgress)
	}
	if q := b.Summary.Duration; q.Count != b.Completed || q.Min < 0 || q.Count < a.Summary.Duration.Count {
		t.Errorf("%d durations of %d checkpoints", q.Count, b.Completed)
	}
	for i := range s.Tasks {
		s.taskFollows(t, base.Task(i), before.Tasks[i])
	}
}

func (s reading) taskFollows(t *testing.T, number base.Task, before jobmaster.TaskStatus) {
	t.Helper()
	now := s.Tasks[number]
	a, b := before.Counters, now.Counters
	if now.Attempt != before.Attempt {
		a = task.Counters{}
	}
	if now.Attempt < before.Attempt || b.ReadRecords < a.ReadRecords || b.ReadBytes < a.ReadBytes || b.WriteRecords < a.WriteRecords || b.WriteBytes < a.WriteBytes ||
		b.Busy < a.Busy || b.Idle < a.Idle || b.Backpressured < a.Backpressured || b.Busy < 0 || b.Idle < 0 || b.Backpressured < 0 {
		t.Errorf("task %d, attempt %v: %+v after attempt %v: %+v", number, now.Attempt, b, before.Attempt, a)
	}
}

// B149: through three failovers and many checkpoints of a job with a transactional sink, sampled every 100 ms, no counter of an attempt goes
// down, none is negative, an attempt begins with nothing, and each gets new values.
func TestCountersNeverGoDown(t *testing.T) {
	onStand(t, func(s *stand) {
		env := s.env(2, 200*time.Millisecond)
		programOf("totals").build(env, s.stage(20_000, 2000))
		for i := range 3 {
			s.faults.left = append(s.faults.left, fault{Where: "process", Nth: 3000 * (i + 1), Panic: i == 1})
		}
		r := s.start(env)
		last := reading{r.handle.Status()}
		attempts := map[base.Exec]task.Counters{}
		for last.Status.Status != job.Finished {
			select {
			case <-r.done:
			case <-time.After(100 * time.Millisecond):
			}
			now := reading{r.handle.Status()}
			now.follows(s.T, last)
			for i, x := range now.Tasks {
				attempts[base.Exec{Task: base.Task(i), Attempt: x.Attempt}] = x.Counters
			}
			last = now
		}
		r.finish()
		if last.Restarts != 3 || last.Checkpoints.Completed < 20 || last.Checkpoints.Restores != 3 {
			s.Errorf("%d restarts, %d checkpoints, %d restores", last.Restarts, last.Checkpoints.Completed, last.Checkpoints.Restores)
		}
		for x, c := range attempts {
			if c.ReadRecords+c.WriteRecords == 0 || c.Busy+c.Idle == 0 {
				s.Errorf("task %d, attempt %v has counted nothing: %+v", x.Task, x.Attempt, c)
			}
		}
	})
}
