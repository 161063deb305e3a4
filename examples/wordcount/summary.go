package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"
)

// topMost is how many words the summary shows.
const topMost = 10

// printSummary prints the words that came most often, and how many there were.
func printSummary(w io.Writer, counts []Count, took time.Duration) {
	var total int64
	for _, c := range counts {
		total += c.N
	}
	slices.SortFunc(counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Word, b.Word))
	})
	for _, c := range counts[:min(topMost, len(counts))] {
		fmt.Fprintf(w, "%10d  %s\n", c.N, c.Word)
	}
	fmt.Fprintf(w, "%d words, %d distinct, in %.1f s\n", total, len(counts), took.Seconds())
}
