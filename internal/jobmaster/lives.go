package jobmaster

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/task"
)

// TaskState is where an execution of a task is in its life, in Flink's words.
type TaskState uint8

// The states of a task.
const (
	TaskCreated TaskState = iota
	TaskDeploying
	TaskInitializing
	TaskRunning
	TaskCanceling
	TaskFinished
	TaskCanceled
	TaskFailed
	taskStates int = iota
)

func (s TaskState) String() string {
	return [...]string{"CREATED", "DEPLOYING", "INITIALIZING", "RUNNING", "CANCELING", "FINISHED", "CANCELED", "FAILED"}[s]
}

// Terminal is true where no other state follows.
func (s TaskState) Terminal() bool { return s >= TaskFinished }

// TaskStatus is how the current execution of a task is.
type TaskStatus struct {
	Attempt base.Attempt
	State   TaskState
	// Since is when it came into each state; zero: it did not.
	Since [taskStates]time.Time
	// Counters are as the task has last told: at each checkpoint, with each beat, and at its end.
	Counters task.Counters
}

// Ended is when the execution came to its end; zero: it did not.
func (s *TaskStatus) Ended() time.Time {
	if !s.State.Terminal() {
		return time.Time{}
	}
	return s.Since[s.State]
}

func (s *TaskStatus) enter(state TaskState) {
	if !s.State.Terminal() {
		s.State, s.Since[state] = state, time.Now()
	}
}

// Exception is a failure of the job, and when it was.
type Exception struct {
	job.Failure
	At time.Time
}

// exceptionsKept is Flink's web.exception-history-size.
const exceptionsKept = 16

// lives are what a job and its tasks have come through, for who watches.
type lives struct {
	tasks      []TaskStatus                 // by base.Task
	job        [job.Suspended + 1]time.Time // when the job came into each status
	exceptions []Exception                  // the last ones, oldest first
}

func newLives(tasks int) lives {
	l := lives{tasks: make([]TaskStatus, tasks)}
	l.job[job.Created] = time.Now()
	for i := range l.tasks {
		l.tasks[i].enter(TaskCreated)
	}
	return l
}

func (l *lives) deployed(x base.Exec) {
	l.tasks[x.Task] = TaskStatus{Attempt: x.Attempt, Since: [taskStates]time.Time{TaskCreated: time.Now()}}
	l.tasks[x.Task].enter(TaskDeploying)
}

func (l *lives) canceling(x base.Exec) {
	if t := &l.tasks[x.Task]; t.Attempt == x.Attempt {
		t.enter(TaskCanceling)
	}
}

func (l *lives) reported(r job.TaskReported) {
	if t := &l.tasks[r.Exec.Task]; t.Attempt == r.Exec.Attempt {
		t.enter(taskStateOf(r.State))
	}
}

func (l *lives) counted(x base.Exec, c task.Counters) {
	if t := &l.tasks[x.Task]; t.Attempt == x.Attempt {
		t.Counters = c
	}
}

func (l *lives) failed(f job.Failure) {
	l.exceptions = append(l.exceptions, Exception{Failure: f, At: time.Now()})
	if len(l.exceptions) > exceptionsKept {
		l.exceptions = l.exceptions[1:]
	}
}

// failureOf is the failure in an error.
func failureOf(err error) job.Failure {
	if f, ok := errors.AsType[job.Failure](err); ok {
		return f
	}
	return job.Failure{Err: err}
}

func taskStateOf(s job.TaskState) TaskState {
	switch s {
	case job.TaskInitializing:
		return TaskInitializing
	case job.TaskRunning:
		return TaskRunning
	case job.TaskFinished:
		return TaskFinished
	case job.TaskFailed:
		return TaskFailed
	case job.TaskCanceled:
		return TaskCanceled
	}
	panic(fmt.Sprintf("jobmaster: unknown state %v of a task", s))
}
