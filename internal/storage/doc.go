// Package storage keeps checkpoints: the file systems they lie on, and the directory of a job.
package storage
