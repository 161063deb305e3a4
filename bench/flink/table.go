package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// marks are between which lines a table stands in a Markdown file.
type marks struct{ begin, end string }

func marksOf(name string) marks {
	return marks{"<!-- table of " + name + ": begin -->\n", "<!-- table of " + name + ": end -->\n"}
}

var costMarks, pressureMarks = marksOf("bench-flink"), marksOf("bench-flink -pressure")

// table is Markdown: a line about the conditions, a row for each contest, and the starts.
func table(ledgers []ledger, conditions string) string {
	flink, weir := shareStarts(ledgers)
	var b strings.Builder
	fmt.Fprintf(&b, "Flink 2.3.0 and Weir built by %s on %s/%s with %d CPUs, %s.\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), conditions)
	b.WriteString("| workload | p | records | CPU us/record: Flink | Weir | ratio | peak MB: Flink | Weir | ratio | records/s: Flink | Weir |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, l := range ledgers {
		b.WriteString(l.row())
	}
	if flink != nil {
		fmt.Fprintf(&b, "\nA run with %d records, in the median: Flink %.2f s of CPU and %.0f MB, Weir %.3f s and %.0f MB.\n", startRecords,
			median(flink, cost.cpuSeconds), median(flink, cost.peakMB), median(weir, cost.cpuSeconds), median(weir, cost.peakMB))
	}
	return b.String()
}

// row is the line of the table that is about l.
func (l ledger) row() string {
	rate := func(r runs) float64 { return float64(l.records) / median(r.whole, cost.wallSeconds) / 1e6 }
	flinkUs, weirUs := l.flink.perRecord(l.records), l.weir.perRecord(l.records)
	flinkMB, weirMB := median(l.flink.whole, cost.peakMB), median(l.weir.whole, cost.peakMB)
	return fmt.Sprintf("| %s | %d | %.3g M | %.3f | %.3f | **%.1f** | %.0f | %.0f | **%.1f** | %.2f M | %.2f M |\n",
		l.title, l.parallelism, float64(l.records)/1e6, flinkUs, weirUs, flinkUs/weirUs, flinkMB, weirMB, flinkMB/weirMB, rate(l.flink), rate(l.weir))
}

// replaceTable puts the table between the marks of a file.
func replaceTable(file string, m marks, table string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begun := strings.Cut(string(text), m.begin)
	_, after, ended := strings.Cut(rest, m.end)
	if !begun || !ended {
		return fmt.Errorf("%s: the table goes between two lines that are missing:\n%s%s", file, m.begin, m.end)
	}
	return os.WriteFile(file, []byte(before+m.begin+"\n"+table+"\n"+m.end+after), 0o644)
}
