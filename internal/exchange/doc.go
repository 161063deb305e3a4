// Package exchange carries batches and control elements between subtasks, in order, with back-pressure.
//
// It sees a batch as "length, retain, release": what is inside is the business of package operator. A Channel is the queue
// from one sender subtask to one receiver subtask; the sender's channels of one output are a Partition, the receiver's
// channels of all inputs a Gate. A Bell wakes the one goroutine that owns an end.
//
//	operator.Writer -> Partition.Send -> Channel -> Gate.Next -> operator.Reader
//
// # Invariants
//
//  1. A channel is first in, first out: no element overtakes another, but an unaligned barrier all that is queued. It leaves
//     a mark there, and what is before the mark is processed before the receiver's snapshot, or recorded into it. So a
//     record never changes sides of a barrier.
//  2. A payload in a channel is owned by the channel: it is released exactly once, by whoever takes it, or by Close.
//  3. Control elements are never refused; batches are sent while the sender saw Room, and Send waits beyond the overdraft.
//  4. A blocked channel keeps what it has; it is offered again after Unblock.
//  5. Nothing is taken while something Urgent has not been heard of: a barrier that overtook, one that stands in a queue and may.
//
// The package starts no goroutine. One mutex per gate guards the queues of all its channels; it is held for a few
// instructions, never across user code, and no function takes two.
package exchange
