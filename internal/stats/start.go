package stats

import (
	"fmt"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/graph"
)

// Start is what a restore took: from the deployment of the tasks until all of them ran.
type Start struct {
	ID       base.CheckpointID
	Kind     checkpoint.Kind
	Location string
	At       time.Time
	Took     time.Duration // 0: not all tasks run yet
	Tasks    []TaskStart   // that were deployed
}

// TaskStart is one task's part of a restore.
type TaskStart struct {
	Exec base.Exec
	Phases
	Took time.Duration // from the deployment; 0: it does not run yet
}

// Phases are what a task's restore was made of.
type Phases struct {
	Wait     time.Duration // from the deployment until the task began
	Read     time.Duration // reading Bytes of the checkpoint
	Restore  time.Duration // of operators, without reading
	InFlight time.Duration // of records in flight, without reading
	Open     time.Duration // of the operators' own Open
	Bytes    int64
}

// Deployed says that tasks were deployed, to go on from c.
func (s *Checkpoints) Deployed(c *checkpoint.Completed, tasks []base.Exec, now time.Time) {
	s.Restores++
	s.Restored = Start{ID: c.ID, Kind: c.Kind, Location: c.Location, At: now}
	for _, x := range tasks {
		s.Restored.Tasks = append(s.Restored.Tasks, TaskStart{Exec: x})
	}
}

// Initializing says that a task has begun.
func (s *Checkpoints) Initializing(x base.Exec, now time.Time) {
	if t := s.starting(x); t != nil {
		t.Wait = now.Sub(s.Restored.At)
	}
}

// Phased says what a task's restore was made of, but for Wait.
func (s *Checkpoints) Phased(x base.Exec, p Phases) {
	if t := s.starting(x); t != nil {
		p.Wait = t.Wait
		t.Phases = p
	}
}

// Running says that a task takes records. Done: it was the last one.
func (s *Checkpoints) Running(x base.Exec, now time.Time) (done bool) {
	t := s.starting(x)
	if t == nil {
		return false
	}
	t.Took = max(1, now.Sub(s.Restored.At))
	for i := range s.Restored.Tasks {
		if s.Restored.Tasks[i].Took == 0 {
			return false
		}
	}
	s.Restored.Took = t.Took
	return true
}

// starting is the start of an execution; nil: it was not restored, or runs already.
func (s *Checkpoints) starting(x base.Exec) *TaskStart {
	for i := range s.Restored.Tasks {
		if t := &s.Restored.Tasks[i]; t.Exec == x && t.Took == 0 {
			return t
		}
	}
	return nil
}

// Explain is one sentence about what a restore of a job's tasks took.
func (s *Start) Explain(g *graph.Job) string {
	text := fmt.Sprintf("Restored %d tasks from checkpoint %d in %s", len(s.Tasks), s.ID, FormatDuration(s.Took))
	t := s.Slowest()
	if t == nil {
		return text + "."
	}
	x := explainer{graph: g}
	text += fmt.Sprintf("; the last was %s", x.task(t.Exec.Task))
	for _, p := range []struct {
		took time.Duration
		what string
	}{{t.Wait, "waiting to begin"}, {t.Read, "reading " + FormatBytes(t.Bytes)}, {t.Restore, "restoring state"}, {t.InFlight, "restoring records in flight"},
		{t.Open, "opening"}} {
		if float64(p.took) >= leastShare*float64(t.Took) {
			text += fmt.Sprintf(", %s %s", FormatDuration(p.took), p.what)
		}
	}
	return text + "."
}

// Slowest is the task that came to run last; nil: none runs.
func (s *Start) Slowest() (slowest *TaskStart) {
	for i := range s.Tasks {
		if t := &s.Tasks[i]; t.Took > 0 && (slowest == nil || t.Took > slowest.Took) {
			slowest = t
		}
	}
	return slowest
}

// Total are the phases of all tasks together, and Most the longest of each.
func (s *Start) Total() (total, most Phases) {
	for i := range s.Tasks {
		p := s.Tasks[i].Phases
		for _, d := range []struct{ sum, most, one *time.Duration }{{&total.Wait, &most.Wait, &p.Wait}, {&total.Read, &most.Read, &p.Read},
			{&total.Restore, &most.Restore, &p.Restore}, {&total.InFlight, &most.InFlight, &p.InFlight}, {&total.Open, &most.Open, &p.Open}} {
			*d.sum += *d.one
			*d.most = max(*d.most, *d.one)
		}
		total.Bytes += p.Bytes
		most.Bytes = max(most.Bytes, p.Bytes)
	}
	return total, most
}
