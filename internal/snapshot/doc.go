// Package snapshot says what a checkpoint is: which operators it holds, where the bytes of their state lie, and who gets
// which part of them when a job comes back, at the same parallelism or another. It knows nothing of files: package storage
// keeps the bytes, package state gives them meaning.
//
// # Nouns
//
//   - Metadata is a whole checkpoint or savepoint: its _metadata file. Encode and Decode are its bytes, drawn in
//     docs/format/checkpoint.md.
//   - Operator is one operator's share of it, found again by its UID; Subtask is one old subtask's share of an operator.
//   - Handle says where some bytes are: within the metadata itself, or in a file of a given size and checksum.
//   - TaskState is what one task acknowledges; a Collection gathers those into operators.
//   - Match says which operators, edges and hooks of a program take which state back.
//   - Restored is what one new subtask gets back of an operator's state; a Redistribution computes it.
//   - InFlightPart is what it gets back of the records in flight to it; a MatchedEdge computes that.
//
// # Invariants
//
//  1. Encode is deterministic, and Decode accepts only what Encode writes: equal metadata, equal bytes.
//  2. Decode returns an error for any other bytes, naming the section and the offset. It never panics, and never allocates
//     more than a small multiple of what it was given.
//  3. Metadata that Validate refuses is neither written nor read.
//  4. Redistribution loses nothing and doubles nothing: over all new subtasks every key group of every keyed handle and
//     every element of every split list is given out exactly once, in either format, and so is every record in flight.
//  5. A key group's state lies only in handles of the subtask that owned the group.
//
// The package is pure: it does no I/O, starts no goroutine and reads no clock.
package snapshot
