package main

import (
	"slices"
	"time"
)

// contest is a workload that both sides run.
type contest struct {
	title       string
	workload    string // as in golden-1M.txt; generator: the loop that only computes the events of q0 to q3
	parallelism int
	records     int64
	interval    time.Duration // between checkpoints; 0: none
	shuffle     bool          // an exchange between source and sink
}

// generator is the workload that has no engine in it.
const generator = "events"

// contests are all workloads, each some seconds long for the slower side.
var contests = []contest{
	{title: "keyed count, checkpoint each second", workload: "wordcount", parallelism: 1, records: 20_000_000, interval: time.Second},
	{title: "keyed count, checkpoint each second", workload: "wordcount", parallelism: 2, records: 20_000_000, interval: time.Second},
	{title: "Nexmark q0 with an exchange", workload: "q0", parallelism: 1, records: 10_000_000, shuffle: true},
	{title: "Nexmark q0, chained", workload: "q0", parallelism: 1, records: 40_000_000},
	{title: "Nexmark q1, chained", workload: "q1", parallelism: 1, records: 40_000_000},
	{title: "Nexmark q2, chained", workload: "q2", parallelism: 1, records: 40_000_000},
	{title: "Nexmark q3", workload: "q3", parallelism: 1, records: 40_000_000},
	{title: "Nexmark's generator in a loop, no engine", workload: generator, parallelism: 1, records: 40_000_000},
}

// cost is what one run took.
type cost struct {
	sum   int64
	cpu   float64 // seconds, user and system, of the whole process
	wall  float64 // seconds, of the job
	rssMB float64 // peak
}

// runs are the costs of one engine in one contest.
type runs struct {
	start []cost // with startRecords
	whole []cost
}

// startRecords is so few that a run with them costs what any run costs.
const startRecords = 1_000

// perRecord is CPU microseconds a record, without the start.
func (r runs) perRecord(records int64) float64 {
	return (median(r.whole, cost.cpuSeconds) - median(r.start, cost.cpuSeconds)) / float64(records) * 1e6
}

// ledger is what a contest cost both engines.
type ledger struct {
	contest
	flink, weir runs
}

// shareStarts gives every job the starts of all jobs: they differ by nothing but chance, which a median of many has less of.
// It returns them.
func shareStarts(ledgers []ledger) (flink, weir []cost) {
	for _, l := range ledgers {
		if l.workload != generator {
			flink, weir = append(flink, l.flink.start...), append(weir, l.weir.start...)
		}
	}
	for i := range ledgers {
		if l := &ledgers[i]; l.workload != generator {
			l.flink.start, l.weir.start = flink, weir
		}
	}
	return flink, weir
}

func (c cost) cpuSeconds() float64  { return c.cpu }
func (c cost) wallSeconds() float64 { return c.wall }
func (c cost) peakMB() float64      { return c.rssMB }

// median is that of one figure of all costs. There must be one.
func median(costs []cost, figure func(cost) float64) float64 {
	all := make([]float64, len(costs))
	for i, c := range costs {
		all[i] = figure(c)
	}
	slices.Sort(all)
	return all[len(all)/2]
}
