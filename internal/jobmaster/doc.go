// Package jobmaster is the job's master: the actor that owns a job.Machine, performs its actions, and brings it what happens.
//
//	workers ---worker.Message---\                                  /--> links to the tasks
//	operator coordinators -------> inbox -> job.Machine.Step -> perform --> I/O goroutines: storage, hooks
//	users, timer, answers -------/     (one goroutine)              \--> runners: operator coordinators
//
// # Nouns
//
//   - Master is the actor of one job.
//   - A Coordinator is user code: the enumerator of a source. A runner is the goroutine that it lives on.
//   - A Hook is user code that takes part in checkpoints.
//   - A Point is a checkpoint that tasks can be restored from.
//
// # Invariants
//
//  1. Only the actor's goroutine touches the machine, the links and the list of runners. It never waits: not for storage, not
//     for user code, not for a worker.
//  2. Actions are performed in order, none is dropped; each one with a token is answered by exactly one event, with certainty:
//     a Publish of which the storage cannot say whether it happened is asked again until it can.
//  3. What a runner's coordinator sends, and the answer to its snapshot, reach the machine in the order in which it made them.
//  4. A runner that was replaced reaches the machine only with the answers it still owed.
//  5. A message of an execution that is not the current one is handed on: the machine knows what is late.
//
// # Goroutines
//
//	run        the actor; ends when the machine says End, after all others
//	runIO      one for each storage or hook call under way; ends with one answer in the inbox
//	runHooks   one for each reset; restores the hooks, and ends with the last
//	runner.run one for each operator coordinator; ends when it was stopped and the user's call has returned
//	runWork    one for each CoordinatorContext.Run; ends with one mail to its runner
//
// Errors and panics of user code are caught in one place (guard), and what an error means is decided in one place (permanent).
package jobmaster
