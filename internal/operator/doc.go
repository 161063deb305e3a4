// Package operator is the typed half of the runtime: batches of records, the operators of a chain and what joins them, and
// the two ends of an edge between tasks. Its edges towards the rest are untyped: an Operator, a Wire, a Writer, a Reader.
//
//	Reader.Push -> In[T].Push -> (user function) -> Emitter[U].Emit -> In[U].Push -> ... -> writer -> exchange
//
// Nouns: a Batch is a run of records; In is where an operator takes batches, Emitter where it makes them; an Edge knows the
// type of the records that it joins two operators by, within a task (Chain) or between tasks (Writer and Reader); a Part is
// what an operator puts into a checkpoint; a Share says which of the records in flight, that a Reader writes and reads back as bytes,
// fall to a subtask.
//
// # Invariants
//
//  1. A lent batch is neither changed nor kept. A given batch is never changed again (Batch).
//  2. When Push returns, all that the batch caused has passed the whole chain; only writers hold records, in batches that are
//     not yet full. So between two slices a task can snapshot at once, after it has flushed its writers.
//  3. Control follows the records in their order, on the same path.
//  4. The hash of a record's key is computed once, by the writer, and travels with the record.
//
// The package starts no goroutine.
package operator
