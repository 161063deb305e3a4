// Package storage keeps checkpoints: it hides file systems from those who take and restore checkpoints, and says in which order
// things are written, synced and removed so that a crash at any moment leaves something right.
//
// # Nouns
//
//   - FS is a file system: Disk, Memory (which can crash) or Faulty (on which scripted things go wrong).
//   - Checkpoints is where a job keeps its checkpoints, as its master sees it: a JobDir, or a JobMemory.
//   - A location is one checkpoint's place, absolute; it travels in barriers. Writer makes the files there.
//   - OpenHandle and ReadMetadata read what was written.
//
// # Invariants
//
//  1. A checkpoint is completed exactly when its _metadata is there: published last, at once, exclusively, and synced.
//  2. At every moment, what a crash would leave has a readable _metadata only where all files that it names are there whole.
//  3. No checkpoint id is used twice, and no run number.
//  4. A damaged checkpoint is an error that names its path. Nothing older is silently taken in its place.
//  5. Every file is synced and closed, and its directory synced, with all errors checked, before its handle is given out.
//  6. What is already gone counts as deleted.
//  7. A completed checkpoint that is not there any more, though no engine has deleted it, is an error too.
//  8. What a job was started from by its path is its latest until a checkpoint of its own completes. It deletes what it has claimed,
//     nothing else of others, and nothing that it has left behind.
//
// The package starts no goroutine. Errors that say ErrDamaged or snapshot.ErrVersion will come again; others may be tried again.
// The byte formats are drawn in docs/format/checkpoint.md.
package storage
