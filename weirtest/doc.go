// Package weirtest tests jobs, functions, sources and sinks, in plain `go test`: in simulated time, by seed, on the engine's own code. docs/testing.md
// is its guide.
//
// # From small to large
//
//   - A Harness drives one operator by hand: records, time, state, snapshots. NewSinkHarness and NewSourceHarness do the same with a
//     sink and a source.
//   - A Source plays a script, a Sink collects what a job commits, Run runs the job between them, and Start one that the test steers.
//   - A Crash runs a whole job through crashes, failures and changes of parallelism, and compares its output with that of a run
//     without any.
//   - CheckRestore tells whether a job could start from a savepoint that is kept in testdata.
//   - TestSource and TestSink are what every source and every two-phase sink must keep, for who writes one.
//
// A file system for checkpoints is nothing that a user can bring yet: what it must pass is in internal/storage/fstest.
//
// # Invariants
//
//  1. What runs is the engine's own: operators, state, snapshots, redistribution, storage, the job's master. Nothing is imitated but the
//     surroundings: who pushes records, and the outside world.
//  2. The same seed is the same plan. In a harness everything follows from the test alone. In a job goroutines run in an order of their own, so
//     what a plan meets may differ.
//  3. A test fails where a record is changed after it was emitted, by who emitted it or by who was given it: the engine does not copy records, so
//     it would be another record for others. A harness notices too where the state of a key is changed while it is another one's turn.
//     Both look at bytes, again and again: tests are slower for it.
//  4. State that is used outside of the calls that it belongs to fails the step or the job with a message that says so.
//
// # Goroutines
//
// A harness calls everything on the test's goroutine; an enumerator's Run has one, which ends with its work, at the latest with the harness. Run,
// Start and Crash have those of the job, and wait for them.
package weirtest
