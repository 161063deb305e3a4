package base

import "fmt"

// JobID names a job for its whole life, over all its runs: 32 hexadecimal digits, as Flink's.
type JobID string

// CheckpointID numbers the checkpoints and savepoints of a job, from 1; an id is never used twice.
type CheckpointID int64

// Task is the index of a subtask over all vertices of a job graph.
type Task int

// Attempt numbers the executions of a job's tasks: run<<32 | n. The run is raised each time a process takes the job's
// directory over, so an attempt of a dead process is never taken for a living one.
type Attempt int64

// FirstAttempt is the attempt numbered n of a run.
func FirstAttempt(run int64, n int) Attempt { return Attempt(run<<32 | int64(n)) }

// Run is the run that made a.
func (a Attempt) Run() int64 { return int64(a) >> 32 }

// Number counts the attempts of one run.
func (a Attempt) Number() int { return int(a & (1<<32 - 1)) }

func (a Attempt) String() string { return fmt.Sprintf("%d.%d", a.Run(), a.Number()) }

// Exec is one execution of a task.
type Exec struct {
	Task    Task
	Attempt Attempt
}

func (x Exec) String() string { return fmt.Sprintf("task %d attempt %v", x.Task, x.Attempt) }
