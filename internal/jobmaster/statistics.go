package jobmaster

import (
	"slices"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/snapshot"
)

// Statistics are counts and the last entries of the history of checkpoints, savepoints included.
type Statistics struct {
	Triggered, Completed, Failed int
	// InProgress have begun and not ended.
	InProgress int
	// History is the last ones, oldest first.
	History []CheckpointStats
	// LatestCompleted, LatestSavepoint and LatestFailed may have left the history; nil: there was none. The first is no savepoint.
	LatestCompleted, LatestSavepoint, LatestFailed *CheckpointStats
	// Restored tells of the last restore.
	Restored RestoredStats
	// Sizes are of the last completed ones, oldest first.
	Sizes []SizeStats
}

// CheckpointStats is one entry of the history.
type CheckpointStats struct {
	ID       base.CheckpointID
	Kind     checkpoint.Kind
	Format   checkpoint.Format
	What     checkpoint.Progress
	Location string
	Wall     time.Time     // when it was triggered
	Duration time.Duration // until its end
	Bytes    int64         // of all states
	InFlight int64         // of them, bytes of records that the barriers overtook
	Reason   checkpoint.Reason
	Err      error
	// Tasks is how many were to acknowledge, and Acked how many did. Acks has their parts, by base.Task; of one that did not, At is zero.
	Tasks, Acked int
	Acks         []AckStats
	// Discarded: its files are deleted again, whether it was complete or given up.
	Discarded bool
}

// AckStats is one task's part of a checkpoint.
type AckStats struct {
	At              time.Time
	Bytes, InFlight int64
}

// LastAck is when the last task acknowledged; zero: none did.
func (c *CheckpointStats) LastAck() (last time.Time) {
	for i := range c.Acks {
		if at := c.Acks[i].At; at.After(last) {
			last = at
		}
	}
	return last
}

// SizeStats is what one completed checkpoint came to.
type SizeStats struct {
	Bytes, InFlight int64
	Duration        time.Duration
}

// RestoredStats is what a restore took.
type RestoredStats struct {
	Count    int // of restores; 0: there was none, and nothing else is set
	ID       base.CheckpointID
	Kind     checkpoint.Kind
	Location string
	At       time.Time
}

const (
	// historyKept is Flink's web.checkpoints.history.
	historyKept = 10
	// sizesKept is how many checkpoints Flink's percentiles are taken over.
	sizesKept = 10_000
)

// begun, acked, wrote, ended and discarded follow one checkpoint through the history.
func (s *Statistics) begun(r checkpoint.Report, tasks int) {
	s.Triggered++
	s.InProgress++
	s.History = append(s.History, CheckpointStats{ID: r.ID, Kind: r.Kind, Format: r.Format, What: r.What, Location: r.Location,
		Wall: time.Unix(0, r.Wall), Tasks: r.Tasks, Acks: make([]AckStats, tasks)})
	if len(s.History) > historyKept {
		s.History = slices.Delete(s.History, 0, 1)
	}
}

func (s *Statistics) acked(a checkpoint.TaskAcked) {
	e := s.entry(a.ID)
	if e == nil || e.What != checkpoint.Begun || !e.Acks[a.Exec.Task].At.IsZero() {
		return
	}
	ack := AckStats{At: time.Now()}
	if t, ok := a.State.(*snapshot.TaskState); ok {
		ack.Bytes, ack.InFlight = bytesOf(t)
	}
	e.Acks[a.Exec.Task] = ack
	e.Acked++
	e.InFlight += ack.InFlight
}

func (s *Statistics) wrote(id base.CheckpointID, bytes int64) {
	if e := s.entry(id); e != nil {
		e.Bytes = bytes
	}
}

func (s *Statistics) ended(r checkpoint.Report) {
	if r.What == checkpoint.Succeeded {
		s.Completed++
	} else {
		s.Failed++
	}
	if r.ID == 0 {
		return
	}
	s.InProgress--
	e := s.entry(r.ID)
	if e == nil {
		return
	}
	e.What, e.Location, e.Wall, e.Duration, e.Reason, e.Err = r.What, r.Location, time.Unix(0, r.Wall), r.Duration, r.Reason, r.Err
	latest := *e
	switch {
	case r.What == checkpoint.Failed:
		s.LatestFailed = &latest
		return
	case r.Kind.IsSavepoint():
		s.LatestSavepoint = &latest
	default:
		s.LatestCompleted = &latest
	}
	s.sized(SizeStats{Bytes: e.Bytes, InFlight: e.InFlight, Duration: e.Duration})
}

// sized adds to the sizes. Copies share them: entries are never changed, and the first ones are left behind, not moved over.
func (s *Statistics) sized(size SizeStats) {
	s.Sizes = append(s.Sizes, size)
	if len(s.Sizes) > sizesKept {
		s.Sizes = s.Sizes[1:]
	}
}

func (s *Statistics) discarded(id base.CheckpointID) {
	if e := s.entry(id); e != nil {
		e.Discarded = true
	}
}

func (s *Statistics) restored(c *checkpoint.Completed) {
	s.Restored = RestoredStats{Count: s.Restored.Count + 1, ID: c.ID, Kind: c.Kind, Location: c.Location, At: time.Now()}
}

func (s *Statistics) entry(id base.CheckpointID) *CheckpointStats {
	for i := range s.History {
		if s.History[i].ID == id {
			return &s.History[i]
		}
	}
	return nil
}

// clone is a copy that nobody changes. What is complete nobody changes anyway.
func (s *Statistics) clone() Statistics {
	c := *s
	c.History = slices.Clone(s.History)
	for i := range c.History {
		if e := &c.History[i]; e.What == checkpoint.Begun {
			e.Acks = slices.Clone(e.Acks)
		}
	}
	return c
}

// bytesOf is the size of what a task acknowledged, and of the records in flight in it.
func bytesOf(t *snapshot.TaskState) (all, inFlight int64) {
	for i := range t.Operators {
		s := &t.Operators[i].Subtask
		for _, h := range s.Keyed {
			all += h.Size
		}
		for _, h := range s.Lists {
			all += h.Size
		}
		for _, h := range s.Rows {
			all += h.Size + h.Index.Size
		}
		for _, h := range s.InFlight {
			inFlight += h.Size
		}
	}
	return all + inFlight, inFlight
}
