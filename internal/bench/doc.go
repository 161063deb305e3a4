// Command bench measures Weir beside what a person would write by hand, in one run: `make bench-quick` and `make bench`.
//
// Each measurement is a process of its own (this binary, with -child), so that its CPU time, as the kernel counts it, is that
// of everything the measured program did: records, checkpoint files, and the collector. Sides that are compared alternate,
// and each figure is the median of its rounds. A line is `NAME VALUE UNIT`; lines that begin with # are remarks.
//
// The figures and the commands that made them are in docs/benchmarks.md.
package main
