package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

// Where the table stands in a Markdown file.
const (
	beginMark = "<!-- table of bench-flink: begin -->\n"
	endMark   = "<!-- table of bench-flink: end -->\n"
)

// table is Markdown: a line about the conditions, and a row for each contest.
func table(ledgers []ledger, conditions string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Flink 2.3.0 and Weir built by %s on %s/%s with %d CPUs, %s.\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), conditions)
	b.WriteString("| workload | p | records | CPU us/record: Flink | Weir | ratio | peak MB: Flink | Weir | ratio | records/s: Flink | Weir |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, l := range ledgers {
		b.WriteString(l.row())
	}
	b.WriteString(starts(ledgers))
	return b.String()
}

// row is the line of the table that is about l.
func (l ledger) row() string {
	rss := func(c cost) float64 { return c.rssMB }
	rate := func(r runs) float64 {
		return float64(l.records) / median(r.whole, func(c cost) float64 { return c.wall }) / 1e6
	}
	flinkUs, weirUs := l.flink.perRecord(l.records), l.weir.perRecord(l.records)
	flinkMB, weirMB := median(l.flink.whole, rss), median(l.weir.whole, rss)
	return fmt.Sprintf("| %s | %d | %.3g M | %.3f | %.3f | **%.1f** | %.0f | %.0f | **%.1f** | %.2f M | %.2f M |\n", l.title, l.parallelism, float64(l.records)/1e6,
		flinkUs, weirUs, flinkUs/weirUs, flinkMB, weirMB, flinkMB/weirMB, rate(l.flink), rate(l.weir))
}

// starts says what the runs with few records cost, which the table has subtracted.
func starts(ledgers []ledger) string {
	var flink, weir []cost
	for _, l := range ledgers {
		if l.workload != generator {
			flink, weir = append(flink, l.flink.start...), append(weir, l.weir.start...)
		}
	}
	if flink == nil {
		return ""
	}
	cpu, rss := func(c cost) float64 { return c.cpu }, func(c cost) float64 { return c.rssMB }
	return fmt.Sprintf("\nA run with %d records, in the median: Flink %.2f s of CPU and %.0f MB, Weir %.3f s and %.0f MB.\n",
		startRecords, median(flink, cpu), median(flink, rss), median(weir, cpu), median(weir, rss))
}

// median is that of one figure of all costs. There must be one.
func median(costs []cost, figure func(cost) float64) float64 {
	all := make([]float64, len(costs))
	for i, c := range costs {
		all[i] = figure(c)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// replaceTable puts the table between the marks of a file.
func replaceTable(file, table string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begun := strings.Cut(string(text), beginMark)
	_, after, ended := strings.Cut(rest, endMark)
	if !begun || !ended {
		return fmt.Errorf("%s: the table goes between two lines that are missing:\n%s%s", file, beginMark, endMark)
	}
	return os.WriteFile(file, []byte(before+beginMark+"\n"+table+"\n"+endMark+after), 0o644)
}
