// Package cluster runs a job with all its parts in one process: the job's master, a worker that hosts the tasks, and the
// checkpoint storage between them.
//
//	Run --> storage (memory, or a locked directory) --> restore point --> jobmaster.Master <--messages--> worker.Worker
//	                                                                            |
//	                                                                       rest.Server
//
// # Invariants
//
//  1. The job's directory is locked before anything in it is read, and until nothing of the job runs any more.
//  2. What is restored is decided before anything runs; what cannot be restored is refused, and nothing older is taken for it.
//  3. When Run returns, no goroutine of the job is left.
//
// The package starts no goroutine of its own; those of packages rest, jobmaster, worker and task end before Run returns.
package cluster
