package jobmaster

import (
	"fmt"
	"log/slog"
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

// report logs and counts what the checkpoint coordinator tells, in Flink's words.
func (m *Master) report(r checkpoint.Report) {
	switch r.What {
	case checkpoint.Begun:
		m.stats.begun(r)
		m.log.Info(fmt.Sprintf("Triggering checkpoint %d (type=%s) @ %d for job %s.", r.ID, typeOf(r), r.Wall/int64(time.Millisecond), m.options.ID))
	case checkpoint.Succeeded:
		m.stats.ended(r)
		m.log.Info(fmt.Sprintf("Completed checkpoint %d for job %s (%d bytes, checkpointDuration=%d ms, finalizationTime=%d ms).", r.ID, m.options.ID,
			m.bytes(r.ID), r.Duration.Milliseconds(), r.Finalize.Milliseconds()), "kind", r.Kind.String(), "location", r.Location)
		m.sweep()
	case checkpoint.Failed:
		m.stats.ended(r)
		m.reportFailed(r)
	}
}

// typeOf is the kind of a checkpoint, with the format of a savepoint.
func typeOf(r checkpoint.Report) string {
	if r.Kind.IsSavepoint() {
		return r.Kind.String() + ", " + r.Format.String()
	}
	return r.Kind.String()
}

func (m *Master) bytes(id base.CheckpointID) int64 {
	if e := m.stats.entry(id); e != nil {
		return e.Bytes
	}
	return 0
}

// reportFailed logs a failure: counted ones as warnings; as a line that a person wants those in which somebody's code failed, and
// what a user has asked for; others are of the engine's own making, a pause or a restart.
func (m *Master) reportFailed(r checkpoint.Report) {
	args := []any{"reason", r.Reason.Message()}
	if r.Err != nil {
		args = append(args, "error", r.Err)
	}
	level := slog.LevelDebug
	switch {
	case r.Reason.Counted():
		level = slog.LevelWarn
	case r.Err != nil || !r.Periodic && r.ID != 0:
		level = slog.LevelInfo
	}
	m.log.Log(m.ctx, level, m.failedText(r), args...)
}

func (m *Master) failedText(r checkpoint.Report) string {
	job := m.options.ID
	switch {
	case r.Reason == checkpoint.Expired:
		return fmt.Sprintf("Checkpoint %d of job %s expired before completing. (%d consecutive failed attempts so far)", r.ID, job, r.Consecutive)
	case r.ID == 0:
		return fmt.Sprintf("Failed to trigger checkpoint for job %s since %s", job, r.Reason.Message())
	}
	return fmt.Sprintf("Failed to trigger or complete checkpoint %d for job %s. (%d consecutive failed attempts so far)", r.ID, job, r.Consecutive)
}

// reportStatus logs a change of the job's status.
func (m *Master) reportStatus(a job.ReportStatus) {
	switch {
	case a.Status == job.Failed:
		m.log.Error("The job is FAILED.", "error", a.Err)
	case a.Status == job.Restarting || a.Status == job.Failing: // ReportRestart says it, or FAILED will
	case a.Savepoint != "":
		m.log.Info(fmt.Sprintf("Savepoint stored in %s. Now cancelling %s.", a.Savepoint, m.options.ID))
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
