package jobmaster

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/stats"
)

// Status is what a job's master tells of the job.
type Status struct {
	job.Report
	Checkpoints stats.Checkpoints
	// Tasks are the current executions, by base.Task.
	Tasks []TaskStatus
	// Since is when the job came into each status; zero: it did not.
	Since [job.Suspended + 1]time.Time
	// Exceptions are the last failures, oldest first.
	Exceptions []Exception
}

// report logs and counts what the checkpoint coordinator tells, in Flink's words.
func (m *Master) report(r checkpoint.Report) {
	switch r.What {
	case checkpoint.Begun:
		m.stats.Begun(r, m.options.Graph.Subtasks(), m.finished)
		m.log.Info(fmt.Sprintf("Triggering checkpoint %d (type=%s) @ %d for job %s.", r.ID, typeOf(r), r.Wall/int64(time.Millisecond), m.options.ID))
	case checkpoint.Succeeded:
		var bytes int64
		args := []any{"kind", r.Kind.String(), "location", r.Location}
		if c := m.stats.Closed(m.options.Graph, r, time.Now()); c != nil {
			bytes = c.Sizes.New
			args = append(args, "stateBytes", c.Sizes.State, "explanation", c.Explanation)
		}
		m.log.Info(fmt.Sprintf("Completed checkpoint %d for job %s (%d bytes, checkpointDuration=%d ms, finalizationTime=%d ms).", r.ID, m.options.ID,
			bytes, r.Duration.Milliseconds(), r.Finalize.Milliseconds()), args...)
		m.sweep()
	case checkpoint.Failed:
		m.reportFailed(r, m.stats.Closed(m.options.Graph, r, time.Now()))
	}
}

// typeOf is the kind of a checkpoint, with the format of a savepoint.
func typeOf(r checkpoint.Report) string {
	if r.Kind.IsSavepoint() {
		return r.Kind.String() + ", " + r.Format.String()
	}
	return r.Kind.String()
}

// reportFailed logs a failure: counted ones as warnings; as a line that a person wants those in which somebody's code failed, and
// what a user has asked for; others are of the engine's own making, a pause or a restart.
func (m *Master) reportFailed(r checkpoint.Report, c *stats.Checkpoint) {
	args := []any{"reason", r.Reason.Message()}
	if r.Err != nil {
		args = append(args, "error", r.Err)
	}
	if c != nil {
		args = append(args, "explanation", c.Explanation)
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
	m.lives.job[a.Status] = time.Now()
	if a.Status == job.Failed {
		m.lives.failed(failureOf(a.Err))
	}
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
	return Status{Report: m.machine.Status(), Checkpoints: m.stats.Clone(m.options.Graph, time.Now()), Tasks: slices.Clone(m.lives.tasks), Since: m.lives.job,
		Exceptions: slices.Clone(m.lives.exceptions)}
}
