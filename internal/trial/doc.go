// Package trial puts whole jobs on trial: it runs them through failures of every kind that it can make, drawn by seed, and
// compares what they have committed with a reference that plain loops compute. Nothing of it is in any program: all but this
// file are tests.
//
//	plan (seed) --> program x world x faults --> runs of the job, until one is FINISHED --> verdict against the reference
//
// # Nouns
//
//   - A program is a job and its reference. Its output is lines of text, in no order; one of each, where the job is exactly
//     once.
//   - A world is what outlives a process: the disk with the checkpoints, and the broker that the output goes to.
//   - A broker holds transactions, fences producers, and tells "committed already" from "aborted" and "never heard of".
//   - A plan is all that a trial varies: the program, its parallelisms, batches, queues, storage, and faults.
//   - A life is one run of the job's process. It ends with the job, by a stop with a savepoint, by a cancellation, or in a crash,
//     which takes with it what was not synced. The next one goes on from what it left, at another parallelism.
//   - A fork goes on from a plain savepoint, in a copy of the world in which nothing has happened since.
//
// # Two kinds of trials
//
// In a bubble (testing/synctest) time is simulated, so a trial takes some ten milliseconds, and a crash may come between any
// two operations of the disk and the broker, which take some time each. Errors and panics of user code, failing and slow
// storage, and lost, doubled and late messages are all there.
//
// With processes the program is this test binary, run anew; it is killed with -9, or stopped, and goes on from its
// files.
//
// A trial that fails prints the command that repeats it. The plan is the same then; the interleaving of goroutines is not, so
// it may take several attempts (-count).
package trial
