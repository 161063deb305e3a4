package jobmaster

import (
	"context"
	"errors"

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
	return m.ask(ctx, func(r checkpoint.Request) job.Event {
		return job.SavepointAsked{Request: r, Kind: s.Kind, Format: s.Format, Target: s.Target, Cancel: s.Cancel}
	})
}

// TriggerCheckpoint takes a checkpoint, and waits until it is complete. Full: it refers to no older one's files.
func (m *Master) TriggerCheckpoint(ctx context.Context, full bool) (Answer, error) {
	return m.ask(ctx, func(r checkpoint.Request) job.Event { return job.CheckpointAsked{Request: r, Full: full} })
}

// ask posts a request and waits for its answer.
func (m *Master) ask(ctx context.Context, event func(checkpoint.Request) job.Event) (Answer, error) {
	answer := make(chan Answer, 1)
	m.post(func() {
		m.asked++
		m.requests[m.asked] = answer
		m.step(event(m.asked))
	})
	select {
	case a := <-answer:
		return a, a.Err
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	case <-m.done:
	}
	select {
	case a := <-answer: // both were ready
		return a, a.Err
	default:
		return Answer{}, ErrEnded
	}
}

// reply tells who asked.
func (m *Master) reply(a job.Reply) {
	if answer := m.requests[a.Request]; answer != nil {
		delete(m.requests, a.Request)
		answer <- Answer{ID: a.ID, Location: a.Location, Err: a.Err}
	}
}

// Cancel ends the job; it does not wait.
func (m *Master) Cancel() { m.post(func() { m.step(job.CancelAsked{}) }) }

// Suspend gives the job up to another master; it does not wait.
func (m *Master) Suspend() { m.post(func() { m.step(job.SuspendAsked{}) }) }
