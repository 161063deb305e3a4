// Package task runs one subtask: a chain of operators, fed from a gate or by a source, on one goroutine.
//
//	Run -> chain (build, restore, open) -> loop: mails, clocks, one slice of input -> ... -> close
//
// Nouns: a Spec is all that a task needs to start; a mail is something to do on the task's goroutine between two slices; a
// valve combines the watermarks of the input channels; an upload is the asynchronous part of a snapshot; a recording gathers the
// records in flight, the flights, of an unaligned one.
//
// # A record and a barrier
//
//	record:  exchange.Gate.Next -> loop.take -> operator.Reader.Push -> In[T].Push -> ... -> writer -> exchange
//	barrier: exchange.Gate.Next -> loop.take -> handle(BarrierArrived) -> BarrierHandler.Step -> perform(Snapshot):
//	         barrier to all outputs, synchronous part, startUpload -> mail -> handle(SnapshotWritten) -> perform(Ack) -> Up.Report
//	unaligned: exchange.Gate.Urgent -> urgent -> handle(BarrierArrived) -> perform(Snapshot): startRecording ... the other barriers:
//	         perform(StopRecording) -> the upload writes the records in flight behind the state
//
// # Invariants
//
//  1. Everything that touches operators, state or the barrier handler happens on the task's goroutine. Others post mails.
//  2. Between two slices the chain is empty: only writers hold records. So a snapshot can be taken between any two.
//  3. A batch taken from the gate is the channel's in-flight data until its last slice is done: nothing else is taken from
//     any channel before.
//  4. While an operator lags behind a watermark (timers still fire) no input is taken.
//  5. Control elements are handed on in channel order, but for unaligned barriers; the handler decides about barriers, the loop about
//     nothing else.
//  6. A payload in flight is retained, not copied: by the recording, then by the upload, whose mail releases it. What is dropped on the
//     way is released there.
//  7. Restored records in flight are in front of everything in their channels before the task is RUNNING.
//
// # Goroutines
//
//	Run        the caller's; ends when the task has ended and its uploads are over
//	runUpload  one for each snapshot being written; ends with one mail
package task
