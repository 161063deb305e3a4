// Package stats is what a job remembers of its checkpoints: how many there were, what the last ones came to, and where their
// time went.
//
// It hides which of the many numbers of a checkpoint says why it was slow. A person gets one sentence (Explain); who wants the
// numbers finds them beside it.
//
// # Nouns
//
//   - A Checkpoint is one entry of the history, a savepoint too; a Part is one task's share of it, with the times that the
//     task measured of itself (checkpoint.AckMetrics).
//   - A Stage is how far a task has come with its part.
//   - A Quantity sums up one number over the completed checkpoints: least, largest and mean of all, percentiles of the last.
//   - A Start is what the last restore took, task by task.
//   - Checkpoints is all of it together, and its History the last ones. Its methods with past participles follow the checkpoints.
//
// # Invariants
//
//  1. A Checkpoint that has ended never changes, but for Discarded. So a Clone shares them.
//  2. Total is Completed, Failed and InProgress together. A failure without an id, of which nothing had begun, counts too.
//  3. An acknowledgement counts once, and none after the end.
//  4. Explain is a pure function of a Checkpoint and the graph of its job.
//
// The package is pure: whoever calls reads the clock. It starts no goroutine.
package stats
