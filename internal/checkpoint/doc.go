// Package checkpoint is the checkpoint protocol as a library without I/O. It hides when a checkpoint begins, who takes part
// in it, how barriers pass a task, what makes a checkpoint complete or fail, and what every late, lost or doubled message
// means.
//
// # Nouns
//
// A Coordinator takes the checkpoints and savepoints of one job; it lives in the job's master. A BarrierHandler is the
// checkpoint half of one subtask; it lives in the subtask's loop. Both are machines: plain structs with
//
//	Step(now, event) []action    takes one event, says what is to be done, in this order
//	Deadline() (Time, bool)      when the next timer event is due
//	Status()                     a copy of what is of interest
//
// Events are past participles (TaskAcked), actions imperatives (WriteMetadata); each of the four sets is closed
// (protocol.go). A Barrier is what a task is triggered with and what flows between the records. A Completed is a checkpoint
// of which everything is known. States are opaque: what a task acknowledges comes out again in Completed.
//
// A checkpoint in a straight line, coordinator on the left and tasks on the right:
//
//	Requested, TimePassed, TaskEnded
//	  CreateLocation -> LocationCreated
//	  SnapshotOperator -> OperatorSnapped       from here on this operator coordinator's events wait
//	  SnapshotHook -> HookSnapped
//	  TriggerTasks, SendEvent ------------------> Triggered
//	                                                Snapshot (barrier to all outputs) -> SnapshotWritten
//	                                              BarrierArrived
//	                                                Block, ..., Snapshot, Unblock -> SnapshotWritten
//	  TaskAcked <-------------------------------    Ack
//	  WriteMetadata -> MetadataWritten          sealed: past the point of no return
//	  Store -> Stored
//	  NotifyComplete ---------------------------> CompleteNotified
//	  Discard -> Discarded                          Complete (commit), Finish
//
// # Invariants
//
//  1. No action follows from an event but through the state: after each event settle does what time and the new state
//     allow.
//  2. Ids never repeat: an id is durably used before anything else happens in its name.
//  3. NotifyComplete comes only from Stored; an id completes at most once.
//  4. From WriteMetadata to the last answer a checkpoint is sealed: nothing but an answer ends it, and Restore waits for
//     it.
//  5. A checkpoint has a part of every task that had not finished when it began, each of the attempt that was planned.
//  6. What an operator coordinator sends after its snapshot is delivered behind the trigger, on the same link.
//  7. Behind a savepoint by which the job stops nothing begins, and once it is complete nothing begins or is restored any
//     more.
//  8. Of a task and a checkpoint: at most one of barrier and cancel marker goes downstream, in the order of ids; at most
//     one of acknowledgement and decline goes to the coordinator.
//  9. Nothing is blocked but by an alignment under way, and every alignment ends: by its barriers, a marker, a newer
//     barrier, an abort, or the ends of its channels.
//  10. The parts are a consistent cut: of each channel, what its sender had sent is what its receiver had processed and
//     then what lies in the two parts in flight, each record once and in order. (At least once: the receiver may have
//     processed more.)
//
// sim_check_test.go checks these after every step of a simulated job; testdata/*.txt tells one story for each rule, and
// testdata/README.md lists which.
//
// # The driver's duties
//
//  1. Perform actions in order, all of them, and never call Step while performing: an event that comes up meanwhile (the
//     barrier of a Prioritize, an answer at once) is taken after them. The slice of actions is valid until the next Step;
//     slices inside are read-only.
//  2. Answer each action that carries a Token, and each Snapshot that is not dropped, exactly once and with certainty, also
//     when nobody seems to wait for it any more. "Unknown" is no answer: after a timeout of the storage read back until it
//     is known.
//  3. Give an enumerator's events and the answer of its snapshot to the machine in the order in which it made them: one
//     queue.
//  4. Keep two ordered links to each task whose messages are numbered: down (TriggerTasks, SendEvent, NotifyComplete,
//     NotifyAborted) and up (Ack, Decline, TaskEnded, finished). A gap fails the task. Heartbeats carry the last number
//     both ways, or the loss of a last message is never noticed.
//  5. Filter nothing. Messages of dead attempts, of another run, of tasks that do not exist any more: the machine drops
//     them. A message to an attempt that does not live is dropped by the driver, but for TriggerTasks, which becomes
//     TriggerRefused.
//  6. Hand a barrier with Priority over when it arrives, before any record that is queued on any channel; one without, when
//     it is the head of its channel. Announce an aligned barrier with a Timeout when it arrives, unless it is Forced.
//  7. Perform Snapshot in one step: on each unaligned output capture what is queued and put the barrier at its head; then
//     the synchronous part of the state. Send Barrier.Restored, with Forced set and aligned on broadcast edges if it is
//     unaligned or has a Timeout. A channel's records in flight are restored in the order: input part, output part, both
//     before anything new.
//  8. Arm one timer a machine, at its Deadline, read again after each Step. A late timer is harmless, an early one too.
//  9. TaskChanged says Finished only of a task that has processed everything and committed it; failed and cancelled ones
//     are Gone. RestoreAsked comes after the last affected task is Gone.
//  10. A task restored as ended, or as finished, is given HandlerConfig.Ended, sends its MAX watermark and end of data, and
//     reports TaskEnded. At the end of its data a task reports DataEnded to its handler first, then TaskEnded to the
//     coordinator.
//  11. After Closed go on answering until Status says Closed and Cleaning is 0.
//
// # Goroutines
//
// None. A machine is owned by one goroutine, its driver's; nothing here reads a clock, draws a random number, logs or
// waits.
package checkpoint
