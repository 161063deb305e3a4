package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/rest"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/worker"
)

// ErrCanceled is how the error of a job begins that was cancelled.
var ErrCanceled = errors.New("the job was canceled")

// Handle is a running job, for who watches and steers it. Its methods may be called from any goroutine, also after the end.
type Handle struct {
	ID base.JobID
	*jobmaster.Master
}

// IDOf is the id of a job that is not given one: derived from its name, so that the same job finds its directory again.
func IDOf(name string) base.JobID {
	sum := sha256.Sum256([]byte("weir job " + name))
	return base.JobID(hex.EncodeToString(sum[:16]))
}

// running is a job with everything it runs on.
type running struct {
	job    Job
	id     base.JobID
	store  storage.Checkpoints
	worker *worker.Worker
	master *jobmaster.Master
	rest   *rest.Server // nil: none
	began  time.Time
}

// start opens the storage, decides what is restored, and starts the master. After an error nothing is left.
func start(j Job) (*running, error) {
	j = j.withDefaults()
	r := &running{job: j, id: j.id(), began: time.Now()}
	for _, w := range j.Config.Warnings() {
		j.Log.Warn(w)
	}
	var err error
	if r.store, err = openStore(j, r.id); err != nil {
		return nil, err
	}
	if err := r.startMaster(); err != nil {
		return nil, errors.Join(err, r.store.Close())
	}
	return r, nil
}

func (j Job) withDefaults() Job {
	if j.Log == nil {
		j.Log = slog.Default()
	}
	if j.FS == nil {
		j.FS = storage.Disk()
	}
	if j.Exit == nil {
		j.Exit = func(message string) {
			fmt.Fprintln(os.Stderr, message)
			os.Exit(1)
		}
	}
	return j
}

func (j Job) id() base.JobID {
	if j.ID != "" {
		return j.ID
	}
	if id, ok := j.Config.Lookup(config.JobID); ok {
		return base.JobID(id)
	}
	return IDOf(j.Graph.Name)
}

// openStore locks and opens where the job keeps its checkpoints.
func openStore(j Job, id base.JobID) (storage.Checkpoints, error) {
	if j.Config.Storage() == config.JobManagerStorage {
		return storage.OpenJobMemory(j.FS, id, int64(j.Config.Get(config.MemoryStateLimit))), nil
	}
	dir, err := storage.OpenJobDir(j.FS, j.Config.Get(config.CheckpointDir), id)
	if err != nil {
		return nil, err
	}
	dir.SetLog(j.Log)
	return dir, nil
}

func (r *running) startMaster() error {
	j := r.job
	from, err := restorePoints(j.FS, r.store, r.id, j.Config, j.Log)
	if err != nil {
		return err
	}
	options := taskOptions(j.Config)
	options.Log = j.Log
	if j.Tune != nil {
		j.Tune(&options)
	}
	timeout := j.Config.Get(config.CancellationTimeout)
	r.worker = worker.New(worker.Options{Send: func(m worker.Message) { r.master.Receive(m) }, Carry: j.Carry, Limits: limits(j.Config),
		BeatEvery: beatEvery, CancelTimeout: timeout, Exit: j.Exit})
	r.master, err = jobmaster.New(jobmaster.Options{
		ID: r.id, Graph: j.Graph, Machine: machineConfig(j.Graph.Name, j.Config), Store: r.store, InlineMax: inlineMax(j.Config),
		Recovered: from.points, AllowNonRestored: j.Config.Get(config.AllowNonRestored), Hooks: j.Hooks, Task: options,
		Worker: r.worker, Carry: j.Carry, BeatEvery: beatEvery, CancelTimeout: timeout, Exit: j.Exit, Log: j.Log,
		History: j.Config.Get(config.CheckpointHistory),
	})
	if err == nil {
		r.rest, err = r.listen()
	}
	if err == nil {
		err = from.record(r.store, r.id, j.Config, j.Log)
	}
	if err != nil {
		r.worker.Close()
		r.rest.Close()
		return err
	}
	r.master.Start()
	r.rest.Serve()
	if j.Started != nil {
		j.Started(&Handle{ID: r.id, Master: r.master})
	}
	return nil
}

// wait returns when the job has ended and nothing of it runs any more.
func (r *running) wait(ctx context.Context) (Result, error) {
	select {
	case <-r.master.Done():
	case <-ctx.Done():
		r.master.Cancel()
		<-r.master.Done()
	}
	r.worker.Close()
	if err := r.store.Close(); err != nil {
		r.job.Log.Warn("The job's directory could not be closed.", "error", err)
	}
	r.rest.Close()
	end := r.master.End()
	result := Result{ID: r.id, Status: end.Status.String(), Savepoint: end.Savepoint, Restarts: r.master.Status().Restarts,
		Duration: time.Since(r.began)}
	return result, r.outcome(ctx, end)
}

// outcome is the error that tells how the job ended; nil: it FINISHED.
func (r *running) outcome(ctx context.Context, end job.End) error {
	switch end.Status {
	case job.Finished:
		return nil
	case job.Canceled:
		err := ErrCanceled
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("%w: %w", ErrCanceled, cause)
		}
		return fmt.Errorf("job %q: %w", r.job.Graph.Name, err)
	case job.Failed:
		return fmt.Errorf("job %q FAILED: %w", r.job.Graph.Name, end.Err)
	}
	return fmt.Errorf("job %q is %v", r.job.Graph.Name, end.Status)
}
