// J1 is a job whose right output is known to the last record, whatever happens to it:
//
//	go run ./examples/j1 -dir /tmp/j1 -expect
//
// It emits the integers 1 to N in two partitions, keys them by their last digit, and writes for each one how many have come
// with its key and what their sum is. Exactly one record of the output must come of each integer, and of each key the counts
// 1, 2, 3 and so on, with the sums that belong to them: a record that is lost, doubled, or acts on a state that it had acted
// on before shows. Kill it where you like, and go on:
//
//	go run ./examples/j1 -dir /tmp/j1 -rate 200 -D execution.checkpointing.interval=100ms     # kill -9
//	go run ./examples/j1 -dir /tmp/j1 -s latest -expect
//
// The job fails on purpose, once, where -fail-at or -panic-at says; that it has, a file tells, which outlives the process.
//
// # What it hides
//
// [count] is the job's one function, [fault] what fails it, [Line] a record of the output, and [ledger] what compares the
// output with the integers.
package main
