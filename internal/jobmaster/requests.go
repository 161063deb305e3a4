package jobmaster

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// ErrEnded is the answer to whoever asks something of a job that has ended.
var ErrEnded = errors.New("jobmaster: the job has ended")

// Answer is how a request ended.
type Answer struct {
	ID       base.CheckpointID
	Location string
	Err      error
}

// Savepoint is a request for a savepoint.
type Savepoint struct {
	// Kind is checkpoint.Savepoint, or how the job stops with it: Suspend or Drain.
	Kind   checkpoint.Kind
	Format checkpoint.Format
	// Target is the directory; "": the configured one.
	Target string
	// Cancel cancels the job when the savepoint is complete.
	Cancel bool
}

// TriggerSavepoint takes a savepoint, and waits until it is complete; where the job stops with it, until the job has ended.
// When ctx is done it returns, but the savepoint goes on.
func (m *Master) TriggerSavepoint(ctx context.Context, s Savepoint) (Answer, error) {
	return m.ask(ctx, &request{what: s.what(), stops: s.Cancel || s.Kind.IsSynchronous()}, func(r checkpoint.Request) job.Event {
		return job.SavepointAsked{Request: r, Kind: s.Kind, Format: s.Format, Target: s.Target, Cancel: s.Cancel}
	})
}

// what is the savepoint as Flink's log names it.
func (s Savepoint) what() string {
	switch {
	case s.Cancel:
		return "cancel-with-savepoint"
	case s.Kind.IsSynchronous():
		return "stop-with-savepoint"
	}
	return "savepoint"
}

// TriggerCheckpoint takes a checkpoint, and waits until it is complete. Full: it refers to no older one's files.
func (m *Master) TriggerCheckpoint(ctx context.Context, full bool) (Answer, error) {
	what := "checkpoint"
	if full {
		what = "full checkpoint"
	}
	return m.ask(ctx, &request{what: what}, func(r checkpoint.Request) job.Event { return job.CheckpointAsked{Request: r, Full: full} })
}

// request is somebody who waits for an answer, or has ceased to.
type request struct {
	what    string
	stops   bool // no periodic checkpoints meanwhile
	stopped bool // the log says so
	answer  chan Answer
}

// ask posts a request and waits for its answer.
func (m *Master) ask(ctx context.Context, r *request, event func(checkpoint.Request) job.Event) (Answer, error) {
	r.answer = make(chan Answer, 1)
	m.post(func() { m.request(r, event) })
	select {
	case a := <-r.answer:
		return a, a.Err
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	case <-m.done:
	}
	select {
	case a := <-r.answer: // both were ready
		return a, a.Err
	default:
		return Answer{}, ErrEnded
	}
}

// request hands a request to the machine.
func (m *Master) request(r *request, event func(checkpoint.Request) job.Event) {
	m.asked++
	m.requests[m.asked] = r
	m.log.Info(fmt.Sprintf("Triggering %s for job %s.", r.what, m.options.ID))
	m.step(event(m.asked))
	if r.stopped = r.stops && m.requests[m.asked] == r; r.stopped { // it was not refused
		m.log.Info(fmt.Sprintf("Stopped the checkpoint scheduler of job %s for %s.", m.options.ID, r.what))
	}
}

// reply tells who asked.
func (m *Master) reply(a job.Reply) {
	r := m.requests[a.Request]
	if r == nil {
		return
	}
	delete(m.requests, a.Request)
	if a.Err != nil {
		m.log.Info(fmt.Sprintf("Failed to take the %s for job %s.", r.what, m.options.ID), "error", a.Err)
	}
	if r.stopped && a.Err != nil && a.Location == "" && !m.machine.Status().Ending {
		m.log.Info(fmt.Sprintf("Started the checkpoint scheduler of job %s again.", m.options.ID))
	}
	r.answer <- Answer{ID: a.ID, Location: a.Location, Err: a.Err}
}

// Cancel ends the job; it does not wait.
func (m *Master) Cancel() { m.post(func() { m.step(job.CancelAsked{}) }) }

// Suspend gives the job up to another master; it does not wait.
func (m *Master) Suspend() { m.post(func() { m.step(job.SuspendAsked{}) }) }
