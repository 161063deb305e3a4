// Package rest serves what Flink's REST serves of a job: its paths, fields, status codes and form of errors, so that Flink's own
// command line and dashboards work with a job of Weir's; and it asks such a server, for Weir's command line.
//
//	weir, flink, a dashboard --HTTP--> Server --> Job (a *jobmaster.Master)
//	                                     |
//	                                     operations: what was triggered, and how it ended
//
// It hides HTTP, JSON and Java: nobody else knows how a failure looks to a client that deserialises it.
//
// # Nouns
//
//   - A Server serves one job, and lives as long as it.
//   - An operation is something that takes its time: a savepoint, a stop, a checkpoint, a disposal. It is triggered by one request,
//     and asked for by others, by the trigger id.
//   - A fault is an answer that is an error.
//   - A Client asks a Server, or Flink's.
//
// # Invariants
//
//  1. The same trigger id names the same operation: a client that repeats a request begins nothing twice.
//  2. An operation ends however its client behaves, and its end is known for storedFor.
//  3. Close waits a little for clients to fetch the ends of operations: the one that stopped the job hears where its savepoint lies.
//  4. A page in a browser can neither trigger anything (its origin is checked) nor reach a server on a loopback address by a name of
//     its own (its host is).
//
// # Goroutines
//
//	Server.runServe       one for each server; ends with Close (and net/http's own, one a connection)
//	operations.run        one for each operation; ends with the operation, at the latest when the job has ended
package rest
