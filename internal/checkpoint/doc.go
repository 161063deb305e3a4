// Package checkpoint is the checkpoint protocol as a library without I/O: the Coordinator of a job and the BarrierHandler
// of a subtask.
package checkpoint
