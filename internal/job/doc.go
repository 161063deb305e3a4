// Package job is a job's life as a library without I/O: the Machine decides when tasks are deployed and cancelled, what
// follows a failure, from which checkpoint a restart goes on, and when the job has ended. It contains the job's
// checkpoint.Coordinator.
//
//	                      all tasks gone, delay over,
//	          failure     restore point, operators reset
//	       .-----------> RESTARTING -------------.
//	       |                  |                  |
//	CREATED -> RUNNING <------|------------------'
//	             |  |         |  no restart, or an error that no restart repairs
//	             |  |         '------------> FAILING ----> FAILED
//	             |  |  cancel, also from RESTARTING
//	             |  '----------------------> CANCELLING -> CANCELED
//	             '-------------------------> FINISHED                 all tasks finished
//	               (any, when another master takes over)  -> SUSPENDED
//
// # Nouns
//
//   - An execution is one attempt of a task; attempts of one task never repeat, over all runs of the job.
//   - A region is a connected part of the graph: its tasks fail and restart together.
//   - A restart is everything from a failure to the next deployment. What fails meanwhile joins it. The first deployment is
//     the restart that no failure began.
//   - A Strategy says whether and when a restart follows a failure.
//
// # Invariants
//
//  1. A task is deployed only after its last execution is gone. (Else two would write to one sink.)
//  2. At most one restart is under way; from its failure to its deployment it is counted, announced and delayed once.
//  3. A deployment follows exactly one Restore of the coordinator and one successful reset of the operators, both after the
//     last affected task was gone. (Restoring twice, the second time over a half-started job, lost data elsewhere.)
//  4. Messages of executions that are not the current one change nothing.
//  5. Once the savepoint by which the job stops is complete, no failure restarts the job: it has committed, and going on from
//     it is its user's decision.
//  6. FINISHED only when all tasks have finished; a task that was told to end never counts as finished.
//  7. The job ends once, and not before the coordinator is closed: what is sealed is waited for.
//
// # Driver
//
// Who owns a Machine performs its actions in order, drops none, and never calls Step while performing. Relay hands on an
// action of the coordinator, for which package checkpoint has the duties; its answers come back as Relayed. ResetOperators is
// answered by exactly one OperatorsReset. One timer rings at Deadline. Messages of dead attempts may be passed on.
//
// The package is pure: it starts no goroutine and reads no clock; Config.Random is the driver's.
package job
