package weirtest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/cluster"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/jobmaster"
)

// Job is a job that runs in a test. It is cancelled at the test's end, at the latest.
type Job struct {
	t      testing.TB
	log    *journal
	cancel context.CancelFunc
	up     chan struct{} // closed when handle is there
	handle *cluster.Handle
	done   chan struct{} // closed when it has ended
	err    error         // how
}

// Run runs a job to its end, and fails the test unless it FINISHED. What the job logs is shown only where the test fails. It fails too
// where a record was changed after it was emitted: see the package's documentation.
func Run(t testing.TB, env *weir.Env) {
	t.Helper()
	j := Start(t, env)
	if err := j.Wait(); err != nil {
		t.Fatal(err)
	}
}

// Start starts a job. In a bubble of testing/synctest it runs in simulated time.
func Start(t testing.TB, env *weir.Env) *Job {
	j := &Job{t: t, log: &journal{}, up: make(chan struct{}), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	j.cancel = cancel
	ctx = cluster.WithTuning(ctx, func(c *cluster.Job) {
		c.Log = slog.New(j.log)
		c.Started = func(h *cluster.Handle) {
			j.handle = h
			close(j.up)
		}
		guard(c.Graph, func(err error) { t.Error(err) }, nil)
	})
	go func() { // ends with the job, for which close waits
		j.err = env.Execute(ctx, "test")
		close(j.done)
	}()
	t.Cleanup(j.close)
	return j
}

func (j *Job) close() {
	j.cancel()
	<-j.done
	if j.t.Failed() {
		j.t.Log("the last of the job's log:\n" + list(j.log.last(listMost)))
	}
}

// Wait waits for the job's end: nil where it FINISHED.
func (j *Job) Wait() error {
	<-j.done
	return j.err
}

// Cancel cancels the job, and waits for its end.
func (j *Job) Cancel() {
	j.cancel()
	<-j.done
}

// Checkpoint takes a checkpoint, and returns when it has completed. Sinks hear of that, and commit, afterwards: see Sink.Wait.
func (j *Job) Checkpoint() {
	j.t.Helper()
	if _, err := j.running().TriggerCheckpoint(j.t.Context(), false); err != nil {
		j.t.Fatal("weirtest: the checkpoint: ", err)
	}
}

// Savepoint takes a savepoint, and returns its path when it is complete. It lies below dir; "": where the environment's Checkpoints say.
func (j *Job) Savepoint(dir string) (path string) {
	j.t.Helper()
	return j.savepoint(checkpoint.Savepoint, dir)
}

// Stop stops the job with a savepoint, and returns its path when the job has ended.
func (j *Job) Stop(dir string) (path string) {
	j.t.Helper()
	path = j.savepoint(checkpoint.Suspend, dir)
	if err := j.Wait(); err != nil {
		j.t.Fatal(err)
	}
	return path
}

func (j *Job) savepoint(kind checkpoint.Kind, dir string) string {
	j.t.Helper()
	a, err := j.running().TriggerSavepoint(j.t.Context(), jobmaster.Savepoint{Kind: kind, Target: dir})
	if err != nil {
		j.t.Fatal("weirtest: the savepoint: ", err)
	}
	return a.Location
}

// running is the job once its status is RUNNING. It may be restarting just now: then it is waited for.
func (j *Job) running() *cluster.Handle {
	j.t.Helper()
	h := j.started()
	for {
		if s := h.Status(); s.Status == job.Running && s.Deploying == 0 {
			return h
		}
		select {
		case <-j.done:
			j.t.Fatal("weirtest: the job has ended: ", j.err)
		case <-time.After(time.Millisecond):
		}
	}
}

func (j *Job) started() *cluster.Handle {
	j.t.Helper()
	select {
	case <-j.up:
	case <-j.done:
		select {
		case <-j.up:
		default:
			j.t.Fatal("weirtest: the job did not start: ", j.err)
		}
	}
	return j.handle
}
