// Command flink measures Weir beside Apache Flink: `make bench-flink`, after bench/flink/install.sh.
//
// Both sides run the same jobs over the same generated records, and what a job emits is summed up: the sums are compared, for
// a million records also with golden-1M.txt. Every measurement is a process of its own that holds the whole engine, and
// its cost is the CPU time and the peak memory that the kernel has counted for that process. Sides alternate; figures are
// medians of the rounds. What a process costs with 1,000 records (a JVM start, for Flink) is subtracted from its CPU time.
//
// # What it hides
//
// A [contest] is a workload; an [engine] knows how to run one and what the output says; a [ledger] is what all runs of a
// contest have cost. jobs/ are Flink's programs; Weir's are examples/nexmark and internal/bench. No goroutines.
package main
