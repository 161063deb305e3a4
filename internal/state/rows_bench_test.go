package state

import (
	"io"
	"testing"
)

// BenchmarkRows writes a million counters in the canonical format.
//
//	go test ./internal/state -run xxx -bench 'WriteTo|Rows|Restore$' -benchtime 10x
func BenchmarkRows(b *testing.B) {
	c := newCounter(b)
	const n = 1_000_000
	c.run(0, n, 1<<62, false)
	s := c.keyed.Snapshot()
	b.ReportAllocs()
	for b.Loop() {
		for _, r := range s.Rows() {
			if _, err := r.WriteTo(io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/entry")
}

func BenchmarkRestoreRows(b *testing.B) {
	c := newCounter(b)
	const n = 1_000_000
	c.run(0, n, 1<<62, false)
	files := rowsOf(b, c.keyed.Snapshot().Rows())
	b.ReportAllocs()
	for b.Loop() {
		restoreKeyedRows(b, newCounter(b).keyed, files, allGroups)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/entry")
}
