// Demo shows that nothing is lost and nothing is counted twice when the process of a job is killed:
//
//	go run ./examples/demo
//
// The input is what every machine with Go has: the source of Go's standard library, some twelve million words. The job counts
// them and writes, for each word that comes, how often it has come: "err 1", "err 2", "err 3" and so on. So of a record that
// is lost anywhere a number is missing, and of one that acts twice there is a number too many.
//
// The job runs as a process of its own. Twice that process is killed with kill -9, in the middle of its work, and started
// again from its latest checkpoint. Then its output must be this, to the last line: of each word the numbers from 1 to n, each
// once, where n is what a plain loop over the same files has counted. The last line is
//
//	exactly once: 12056554 words, 342886 distinct, 2 kills, 19 checkpoints, output equals the reference
//
// or else what differs, and then the status is 1.
//
// # Nouns
//
//	reference  what a plain loop counts; made first
//	job        the process that is killed: this program, called with "job" as its first argument
//	trial      runs the job, kills it, and watches what appears: checkpoints, and files of the output
//	ledger     ticks off each line of the output against the reference
//	display    one live line on a terminal; else a line a second
//
// # Goroutines
//
// One in the job's process tells how far it has read; one of the trial reads that, and ends with the process.
package main
