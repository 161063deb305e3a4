// Package worker hosts the tasks of one process: it joins them by channels, runs each on a goroutine of its own, and keeps
// the two links that join each task with the job's master.
//
//	jobmaster --Message{Exec, Number, Body}--> Worker.Receive -> task mailbox
//	jobmaster <-----------Options.Send <------ link <- task (states, acknowledgements, questions)
//
// # Nouns
//
//   - A Message belongs to one execution. Each execution has two links, down and up; a link numbers its messages from 1.
//   - A Sequence checks the numbers at the receiving end.
//   - A Beat says how far each link has come: so the loss of a last message is noticed too.
//   - A Carrier brings messages from one end to the other; tests put in ones that drop, double and delay.
//
// # Invariants
//
//  1. A link delivers in order and nothing twice, or it breaks: a gap in the numbers fails the task. (Triggers and an
//     enumerator's events share the link down: what was sent before a trigger arrives before its barrier. A lost event that
//     nobody noticed would be a split that nobody reads.)
//  2. The tasks of a region are deployed at once, so that every channel has both its ends from the beginning.
//  3. Each execution reports one last state, after which nothing of it runs any more.
//
// # Goroutines
//
//	runTask   one for each execution; ends when the task's Run returns; user code runs on it
//	runBeats  one; ends with Close
//
// Close waits for all of them. A task whose user code does not return after it was cancelled cannot be ended (Go cannot
// interrupt code): after Options.CancelTimeout the process is, through Options.Exit.
package worker
