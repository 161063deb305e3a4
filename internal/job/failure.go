package job

import (
	"errors"
	"fmt"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
)

// Failure is what went wrong, and where.
type Failure struct {
	// Where names the operator and subtask to a person; "": the whole job.
	Where string
	// Exec is the execution that failed; checkpoint.NoExec: none.
	Exec base.Exec
	Err  error
	// Permanent: no restart can repair it.
	Permanent bool
}

func (f Failure) Error() string {
	if f.Where == "" {
		return f.Err.Error()
	}
	return fmt.Sprintf("%s failed: %v", f.Where, f.Err)
}

func (f Failure) Unwrap() error { return f.Err }

// String tells a person what failed, what happens now, and how to have it otherwise.
func (r ReportRestart) String() string {
	return fmt.Sprintf("%v; restart %d follows in %v (%s; to stop at a failure instead: restart-strategy.type: none)",
		r.Failure, r.Number, r.Delay, r.Strategy)
}

// StoppedError says that a job failed between the savepoint by which it stops and its end.
type StoppedError struct {
	Job      string
	Location string
	Err      error
}

func (e *StoppedError) Error() string {
	return fmt.Sprintf("A savepoint has been created at: %s, but the corresponding job %s failed during stopping. The savepoint is "+
		"consistent, but might have uncommitted transactions. If you want to commit the transaction please restart a job from this "+
		"savepoint. (%v)", e.Location, e.Job, e.Err)
}

func (e *StoppedError) Unwrap() error { return e.Err }

// errNoDirectory is Flink's message, in the words of Weir's command line.
var errNoDirectory = errors.New("No savepoint directory configured. You can either specify a directory via configure a cluster-wide " +
	"default via key 'execution.checkpointing.savepoint-dir' or specify a directory in the command line, like -s :targetDirectory for " +
	"cancelling, -p or --savepointPath :targetDirectory for stopping or :targetDirectory for purely taking savepoint.")

// label names a task to a person.
func (m *Machine) label(t base.Task) string {
	v, i := m.graph.Locate(t)
	return fmt.Sprintf("task %q (%d/%d)", v.Name, i+1, v.Parallelism)
}

// failureOf is a failure of one execution.
func (m *Machine) failureOf(x base.Exec, err error, permanent bool) Failure {
	if err == nil {
		err = errors.New("it gave no reason")
	}
	return Failure{Where: m.label(x.Task), Exec: x, Err: err, Permanent: permanent}
}

// replyError is the error of a refused or aborted checkpoint.
func replyError(r checkpoint.Reply) error {
	if r.Reason == checkpoint.NoReason {
		return r.Err
	}
	if d, ok := r.Err.(*checkpoint.DeclineError); ok && d.Reason == r.Reason { // it says so already
		return d
	}
	return &checkpoint.DeclineError{Reason: r.Reason, Err: r.Err}
}
