package jobmaster

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// Status is what a job's master tells of the job.
type Status struct {
	job.Report
	Checkpoints Statistics
}

// Statistics are counts and the last entries of the history of checkpoints, savepoints included.
type Statistics struct {
	Triggered, Completed, Failed int
	// InProgress have begun and not ended.
	InProgress int
	// History is the last ones, oldest first.
	History []CheckpointStats
	// Restored is the checkpoint of the last restore; 0: there was none.
	Restored base.CheckpointID
}

// CheckpointStats is one entry of the history.
type CheckpointStats struct {
	ID       base.CheckpointID
	Kind     checkpoint.Kind
	What     checkpoint.Progress
	Location string
	Wall     time.Time     // when it was triggered
	Duration time.Duration // until its end
	Bytes    int64         // of all states
	Reason   checkpoint.Reason
	Err      error
}

// historyKept is Flink's web.checkpoints.history.
const historyKept = 10

// begun, wrote and ended follow one checkpoint through the history.
func (s *Statistics) begun(r checkpoint.Report) {
	s.Triggered++
	s.InProgress++
	s.History = append(s.History, CheckpointStats{ID: r.ID, Kind: r.Kind, What: r.What})
	if len(s.History) > historyKept {
		s.History = slices.Delete(s.History, 0, 1)
	}
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
	if e := s.entry(r.ID); e != nil {
		e.What, e.Location, e.Wall, e.Duration, e.Reason, e.Err = r.What, r.Location, time.Unix(0, r.Wall), r.Duration, r.Reason, r.Err
	}
}

func (s *Statistics) entry(id base.CheckpointID) *CheckpointStats {
	for i := range s.History {
		if s.History[i].ID == id {
			return &s.History[i]
		}
	}
	return nil
}

// report logs and counts what the checkpoint coordinator tells.
func (m *Master) report(r checkpoint.Report) {
	switch r.What {
	case checkpoint.Begun:
		m.stats.begun(r)
		m.log.Debug(fmt.Sprintf("Triggering checkpoint %d.", r.ID), "kind", r.Kind.String())
	case checkpoint.Succeeded:
		m.stats.ended(r)
		m.log.Info(fmt.Sprintf("Completed checkpoint %d.", r.ID), "kind", r.Kind.String(), "location", r.Location, "bytes", m.bytes(r.ID),
			"duration", r.Duration, "finalization", r.Finalize)
		m.sweep()
	case checkpoint.Failed:
		m.stats.ended(r)
		m.reportFailed(r)
	}
}

func (m *Master) bytes(id base.CheckpointID) int64 {
	if e := m.stats.entry(id); e != nil {
		return e.Bytes
	}
	return 0
}

func (m *Master) reportFailed(r checkpoint.Report) {
	what := "A checkpoint could not be triggered."
	if r.ID != 0 {
		what = fmt.Sprintf("Checkpoint %d failed.", r.ID)
	}
	args := []any{"reason", r.Reason.Message(), "failures in a row", r.Consecutive}
	if r.Err != nil {
		args = append(args, "error", r.Err)
	}
	switch {
	case r.Reason.Counted():
		m.log.Warn(what, args...)
	case r.Err != nil: // somebody's code failed, and no restart will tell of it
		m.log.Info(what, args...)
	default:
		m.log.Debug(what, args...)
	}
}

// reportStatus logs a change of the job's status.
func (m *Master) reportStatus(a job.ReportStatus) {
	switch {
	case a.Status == job.Failed:
		m.log.Error("The job is FAILED.", "error", a.Err)
	case a.Status == job.Restarting || a.Status == job.Failing: // ReportRestart says it, or FAILED will
	case a.Err != nil:
		m.log.Info(fmt.Sprintf("The job is %v.", a.Status), "error", a.Err)
	default:
		m.log.Info(fmt.Sprintf("The job is %v.", a.Status))
	}
}

// Status is how the job is. Any goroutine may call it, also after the end.
func (m *Master) Status() Status {
	answer := make(chan Status, 1)
	m.post(func() { answer <- m.status() })
	select {
	case s := <-answer:
		return s
	case <-m.done:
		return m.last
	}
}

func (m *Master) status() Status {
	s := Status{Report: m.machine.Status(), Checkpoints: m.stats}
	s.Checkpoints.History = slices.Clone(m.stats.History)
	return s
}
