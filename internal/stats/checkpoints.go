package stats

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/snapshot"
)

// kept is how many checkpoints the history has, unless it is told.
const kept = 10

// Checkpoints is what a job remembers of its checkpoints, savepoints included. The zero value is that of a job without any.
type Checkpoints struct {
	// Kept is how many the History has, and those in progress beside; 0: 10.
	Kept int

	Completed, Failed int
	// InProgress have begun and not ended.
	InProgress int
	// History has the last ones, oldest first, and all that are in progress.
	History []Checkpoint
	// LatestCompleted, LatestSavepoint and LatestFailed may have left History; nil: there was none. The first is no savepoint.
	LatestCompleted, LatestSavepoint, LatestFailed *Checkpoint
	// Summary is over all that completed.
	Summary Summary
	// Restores counts them, and Restored tells of the last.
	Restores int
	Restored Start
}

// Summary sums up completed checkpoints: bytes, and milliseconds.
type Summary struct{ New, State, Duration, Processed, Persisted Quantity }

// Total is how many there were, those included that failed before they began.
func (s *Checkpoints) Total() int { return s.Completed + s.Failed + s.InProgress }

// Find is a checkpoint that is remembered; nil: it is not.
func (s *Checkpoints) Find(id base.CheckpointID) *Checkpoint {
	if c := s.entry(id); c != nil {
		return c
	}
	for _, c := range []*Checkpoint{s.LatestCompleted, s.LatestSavepoint, s.LatestFailed} {
		if c != nil && c.ID == id {
			return c
		}
	}
	return nil
}

func (s *Checkpoints) entry(id base.CheckpointID) *Checkpoint {
	for i := range s.History {
		if s.History[i].ID == id {
			return &s.History[i]
		}
	}
	return nil
}

// open is the checkpoint if it is under way; else nil.
func (s *Checkpoints) open(id base.CheckpointID) *Checkpoint {
	if c := s.entry(id); c != nil && c.What == checkpoint.Begun {
		return c
	}
	return nil
}

// Begun enters a checkpoint. Exempt are the tasks, of all, that have finished.
func (s *Checkpoints) Begun(r checkpoint.Report, tasks int, exempt func(base.Task) bool) {
	s.InProgress++
	c := Checkpoint{ID: r.ID, Kind: r.Kind, Format: r.Format, What: r.What, Location: r.Location, Wall: time.Unix(0, r.Wall), Tasks: r.Tasks,
		Parts: make([]Part, tasks), By: checkpoint.NoExec}
	for i := range c.Parts {
		if exempt(base.Task(i)) {
			c.Parts[i].Stage = Exempt
		}
	}
	s.History = append(s.History, c)
	if len(s.History) > cmp.Or(s.Kept, kept) {
		s.forget()
	}
}

// forget drops the oldest checkpoint that has ended. There are never many under way.
func (s *Checkpoints) forget() {
	if i := slices.IndexFunc(s.History, func(c Checkpoint) bool { return c.What != checkpoint.Begun }); i >= 0 {
		s.History = slices.Delete(slices.Clone(s.History), i, i+1)
	}
}

// Asked says that an operator coordinator or a hook is to take its snapshot, Answered that it has.
func (s *Checkpoints) Asked(id base.CheckpointID, who string) {
	if c := s.open(id); c != nil {
		c.Asked = append(slices.Clip(c.Asked), who)
	}
}

// Answered is the other half of Asked.
func (s *Checkpoints) Answered(id base.CheckpointID, who string) {
	if c := s.open(id); c != nil {
		c.Asked = slices.DeleteFunc(slices.Clone(c.Asked), func(w string) bool { return w == who })
	}
}

// Triggered says that the sources have been triggered.
func (s *Checkpoints) Triggered(id base.CheckpointID, now time.Time) {
	if c := s.open(id); c != nil {
		c.Triggered = max(1, now.Sub(c.Wall))
	}
}

// Aligning says that a task has its first barrier, and waits for others.
func (s *Checkpoints) Aligning(id base.CheckpointID, t base.Task, now time.Time) {
	if p := s.part(id, t, Aligning); p != nil {
		p.Stage, p.Since = Aligning, now
	}
}

// Writing says that a task has taken its snapshot.
func (s *Checkpoints) Writing(id base.CheckpointID, t base.Task, m checkpoint.AckMetrics, now time.Time) {
	if p := s.part(id, t, Writing); p != nil {
		p.Stage, p.Since, p.AckMetrics = Writing, now, m
	}
}

// Acknowledged says that a task's part is complete, and how large it is.
func (s *Checkpoints) Acknowledged(a checkpoint.TaskAcked, size snapshot.Sizes, now time.Time) {
	p := s.part(a.ID, a.Exec.Task, Acked)
	if p == nil {
		return
	}
	*p = Part{Stage: Acked, Since: now, Sizes: size, AckMetrics: a.Metrics}
	c := s.entry(a.ID)
	c.Acked++
	c.Sizes.State += size.State
	c.Sizes.New += size.New
}

// part is a task's part of a checkpoint under way, if it has not come to a stage yet; else nil.
func (s *Checkpoints) part(id base.CheckpointID, t base.Task, to Stage) *Part {
	c := s.open(id)
	if c == nil || c.Parts[t].Stage >= to {
		return nil
	}
	return &c.Parts[t]
}

// Sealed says how large the whole checkpoint is, the states of coordinators and hooks included.
func (s *Checkpoints) Sealed(id base.CheckpointID, size snapshot.Sizes) {
	if c := s.open(id); c != nil {
		c.Sizes = size
	}
}

// Closed ends a checkpoint of a job, and returns it with its explanation; nil: it had not begun.
func (s *Checkpoints) Closed(g *graph.Job, r checkpoint.Report, now time.Time) *Checkpoint {
	if r.What == checkpoint.Succeeded {
		s.Completed++
	} else {
		s.Failed++
	}
	c := s.open(r.ID)
	if c == nil { // it failed before it had a directory
		return nil
	}
	s.InProgress--
	c.What, c.Location, c.Ended, c.Duration, c.Finalize = r.What, r.Location, now, r.Duration, r.Finalize
	c.Reason, c.Err, c.By = r.Reason, r.Err, r.Exec
	c.Explanation = Explain(g, c, now)
	s.latest(c)
	return c
}

// latest remembers a checkpoint that has ended.
func (s *Checkpoints) latest(c *Checkpoint) {
	kept := *c
	switch {
	case c.What == checkpoint.Failed:
		s.LatestFailed = &kept
		return
	case c.Kind.IsSavepoint():
		s.LatestSavepoint = &kept
	default:
		s.LatestCompleted = &kept
	}
	all := &s.Summary
	all.New.add(c.Sizes.New)
	all.State.add(c.Sizes.State)
	all.Duration.add(c.EndToEnd().Milliseconds())
	all.Processed.add(c.Processed())
	all.Persisted.add(c.Persisted())
}

// Discarded says that the files of a checkpoint are deleted again.
func (s *Checkpoints) Discarded(id base.CheckpointID) {
	if c := s.entry(id); c != nil {
		c.Discarded = true
	}
	for _, latest := range []**Checkpoint{&s.LatestCompleted, &s.LatestSavepoint, &s.LatestFailed} {
		if c := *latest; c != nil && c.ID == id {
			gone := *c
			gone.Discarded = true
			*latest = &gone
		}
	}
}

// Clone is a copy that nobody changes, in which those under way are explained too.
func (s *Checkpoints) Clone(g *graph.Job, now time.Time) Checkpoints {
	c := *s
	c.History = slices.Clone(s.History)
	for i := range c.History {
		if e := &c.History[i]; e.What == checkpoint.Begun {
			e.Parts = slices.Clone(e.Parts)
			e.Explanation = Explain(g, e, now)
		}
	}
	c.Restored.Tasks = slices.Clone(s.Restored.Tasks)
	return c
}
