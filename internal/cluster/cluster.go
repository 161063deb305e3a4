package cluster

import (
	"context"
	"log/slog"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/task"
	"github.com/weirstream/weir/internal/worker"
)

// Job is what Run runs.
type Job struct {
	Graph *graph.Job
	// ID names the job's directory; "": the configured one, or one derived from the graph's name (IDOf).
	ID base.JobID
	// Config has everything that can be configured: checkpoints, restarts, the restore point, time-outs.
	Config *config.Config
	// Hooks take part in checkpoints.
	Hooks []jobmaster.Hook
	// Tune changes the options of the tasks, which were made from Config; nil: they stay.
	Tune func(*task.Options)

	// Log hears of everything that people should; nil: slog.Default().
	Log *slog.Logger
	// FS is the file system of the checkpoint and savepoint directories; nil: the machine's disk.
	FS storage.FS
	// Exit ends the process where user code did not return after it was cancelled; nil: it prints the message and exits
	// with code 1.
	Exit func(message string)
	// Started is called with the job as soon as it runs; nil: nobody wants to know.
	Started func(*Handle)

	// Instead is called in place of running the job, for who only wants to look at it; nil: it runs.
	Instead func(Job) error

	// Carry brings messages both ways between the master and the worker; nil: at once. Tests lose, double and hold back some.
	Carry worker.Carrier
}

// Result is how a job ended.
type Result struct {
	ID base.JobID
	// Status is FINISHED, CANCELED or FAILED.
	Status string
	// Savepoint is the location of the savepoint by which the job was stopped; "": it was not.
	Savepoint string
	Restarts  int
	Duration  time.Duration
}

// Run runs a job to its end, with all its parts in this process. Many jobs may run at once.
//
// The error is nil where the job FINISHED. A job that FAILED has its first cause in the error; a ctx that is done cancels
// the job, whose checkpoints stay as their retention has it, and the error wraps the cause of ctx.
func Run(ctx context.Context, j Job) (Result, error) {
	if j.Instead != nil {
		return Result{}, j.Instead(j)
	}
	r, err := start(j)
	if err != nil {
		return Result{}, err
	}
	return r.wait(ctx)
}
