// Package state holds what the subtasks of operators remember: keyed state and timers in a key index, and operator state
// in lists. It hides how entries lie in memory, how a snapshot is taken while records go on changing them, and what the
// files of native checkpoints look like.
//
// # Nouns
//
//   - Keyed is the keyed state of one subtask. A state field (Value, List, Map, Reducing, Aggregating) is bound to it and
//     is a column: every page of the index has an array for it.
//   - An entry is a key with the states it has; it goes with the last of them.
//   - Timers are sets of (key, time), and a queue in the order of time.
//   - A KeyedSnapshot is all that as it was at one moment. It is written to a state file, and restored from one: whole, or upon
//     a base.
//   - The base of a checkpoint is one that was completed before. What has not been written since is not written again: the new
//     file refers to it where it lies. In memory the base is a baseline: the epochs of its snapshot, and its manifest.
//   - A manifest says which page lies in which file, and where: a section for each segment of the root. A restore goes by it.
//   - Rows are one state of a snapshot in the canonical format: what a KeyedSnapshot or an OperatorSnapshot is written as for a
//     canonical savepoint, instead of its state file. A RowsFile is one to restore from.
//   - StoredKeyed, StoredList and RowsFile give what is stored as Rows without the types of the program, by the schemas in the files.
//   - Operator is the operator state of one subtask: OperatorList, UnionList, BroadcastMap.
//
// # Invariants
//
//  1. The order is that of hashes, everywhere: in the index, in snapshots, in files. A range of key groups is a range of
//     hashes, so rescaling reads ranges.
//  2. A page of the index, and whatever it refers to, is written only if no live snapshot may read it; see table and
//     declared.
//  3. A segment is never stamped with an older epoch than a page inside.
//  4. An entry has at least one state, except during a call.
//  5. At a free slot of a page everything is zero: tag, key, values, bits.
//  6. The top of a timer queue is in the timer set.
//  7. Bytes of a file lead to an error or to a state, never to a panic.
//  8. Whatever is written to a page stamps it with the current epoch, and the segments around it. A page keeps its content and
//     its range, and a segment of the root its pages, while its epoch is not newer than a snapshot's: so what a snapshot has of them
//     is what any later one has.
//  9. A manifest is not changed once it is published, and refers to no file that the checkpoint does not name.
//  10. At each checkpoint, of every file of earlier ones that it refers to at least half is alive, and there are filesMost at most.
//
// # Cost
//
// A count by key (Seek, Get, Set, Settle) allocates nothing and takes less than the same loop over a Go map: with the map's
// time as 1, 0.6 to 0.8 at 1,000 keys, 0.4 to 0.5 at 100,000 and at a million, with Touch (BenchmarkCount). Get and Set
// inline to one call of code that is not generic. The synchronous part of a snapshot is under 0.1 ms at ten million keys;
// writing one out is about 50 ns of another goroutine's time an entry (as rows two and a half times that), a restore 150 (of rows 250), of a timer 200 and 100 for the queue.
// A checkpoint upon a base costs what has changed: after one in a hundred of a million counts was written, a hundredth of a full
// one's bytes where they are neighbours, a quarter where they are anywhere (BenchmarkIncremental).
//
// # Goroutines
//
// The package starts none. A Keyed or an Operator belongs to the subtask's goroutine, with all fields bound to it: so
// there are no locks. Only a snapshot may be read, that is written out, by another goroutine, from when it is taken until
// the owner releases it. That goroutine also publishes where the pages are now, by one atomic store (see baseline). A state
// field used from a goroutine of the user's own is a data race; between calls it panics with a *UsageError, for no key is
// current.
package state
