// Package inspect reads savepoints and retained checkpoints without the program that wrote them: what is in one, how two differ, the
// entries of a state, whether every byte is what was written; and it makes a canonical savepoint of any of them. It hides in which of
// the formats a state lies.
//
// # Nouns
//
//   - A Snapshot is a checkpoint or savepoint that was opened.
//   - A part is what one old subtask has of one state. It gives rows (state.Row), in the order of a canonical savepoint, whatever its
//     files are. So a state is its parts, one after the other.
//   - A Summary is what metadata, trailers and indexes say. A number that only the entries themselves could tell is not in it.
//   - A Difference compares two snapshots by their operators and states. Their shape is the same where either could take the other's
//     place for a program: the same operators with the same states of the same types.
//   - A Fault is something in a snapshot that is not as it was written.
//
// # Invariants
//
//  1. Nothing is changed in what is looked at.
//  2. A Summary reads no entries, but the first of the splits of sources; Entries and WriteCanonical hold one page, or one block, at a
//     time, however large the state is.
//  3. No byte is used that was not checked; any bytes lead to an error or to a result.
//  4. What WriteCanonical publishes has the rows that the engine would have written at the same moment, byte for byte.
//
// There is no goroutine here. A Snapshot is for one goroutine at a time.
package inspect
