package state

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// BenchmarkRows writes a million counters in the canonical format.
//
//	go test ./internal/state -run xxx -bench 'WriteTo|Rows|Restore$' -benchtime 10x
func BenchmarkRows(b *testing.B) {
	c := newCounter(b)
	const n = 1_000_000
	c.run(0, n, 1<<62, false)
	s := c.keyed.Snapshot(0, 0)
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
	files := rowsOf(b, c.keyed.Snapshot(0, 0).Rows())
	b.ReportAllocs()
	for b.Loop() {
		restoreKeyedRows(b, newCounter(b).keyed, files, allGroups)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/entry")
}

// BenchmarkCanonicalSavepoint takes a canonical savepoint of a million counters to a directory, synced, and restores it, each checksum
// verified. Flink 2.3 took 0.52 s to take it.
//
//	go test ./internal/state -run xxx -bench CanonicalSavepoint -benchtime 10x
func BenchmarkCanonicalSavepoint(b *testing.B) {
	c := newCounter(b)
	for i := range int64(1_000_000) {
		c.keyed.Seek(c.keyed.Hash(i), i)
		c.count.Set(i % 100)
	}
	c.keyed.Leave()
	var taking, restoring time.Duration
	for n := 0; b.Loop(); n++ {
		dir := filepath.Join(b.TempDir(), strconv.Itoa(n))
		must(b, os.Mkdir(dir, 0o777))
		at := time.Now()
		rows, index := takeSavepoint(b, c.keyed, dir)
		taking += time.Since(at)
		at = time.Now()
		restoreSavepoint(b, newCounter(b).keyed, dir, rows, index)
		restoring += time.Since(at)
		must(b, os.RemoveAll(dir))
	}
	b.ReportMetric(taking.Seconds()/float64(b.N), "s-taking")
	b.ReportMetric(restoring.Seconds()/float64(b.N), "s-restoring")
}

func takeSavepoint(b *testing.B, k *Keyed[int64], dir string) (rows, index snapshot.Handle) {
	s := k.Snapshot(0, 0)
	defer s.Release()
	w := storage.NewWriter(storage.Disk(), dir, storage.WriterOptions{})
	for _, r := range s.Rows() {
		o, err := w.CreateFile("counts-count.avro")
		must(b, err)
		_, err = r.WriteTo(o)
		must(b, err)
		rows, err = o.Commit()
		must(b, err)
		o, err = w.CreateFile("counts-count.idx")
		must(b, err)
		_, err = o.Write(r.Index())
		must(b, err)
		index, err = o.Commit()
		must(b, err)
	}
	return rows, index
}

func restoreSavepoint(b *testing.B, k *Keyed[int64], dir string, rows, index snapshot.Handle) {
	r, err := storage.OpenHandle(storage.Disk(), dir, index)
	must(b, err)
	bytes, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	must(b, err)
	must(b, r.Close())
	r, err = storage.OpenHandle(storage.Disk(), dir, rows)
	must(b, err)
	f, err := OpenRows(r, r.Size(), bytes)
	must(b, err)
	must(b, k.RestoreRows(f, allGroups, []string{"count"}))
	must(b, r.Close())
}
