package state

import (
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// counts is a keyed count with its checkpoints, one after the other, each upon the one before.
type counts struct {
	t      testing.TB
	keyed  *Keyed[int64]
	count  Value[int64]
	keys   []int64 // in the order of their hashes
	model  map[int64]int64
	store  *fileStore
	id     base.CheckpointID
	handle snapshot.KeyedHandle
	next   int // of keys, where the next change begins
}

func newCounts(t testing.TB, keys int) *counts {
	c := &counts{t: t, model: map[int64]int64{}, store: &fileStore{files: map[string][]byte{}}}
	var now int64
	c.keyed = newKeyed[int64](t, allGroups, &now, map[string]binder{"count": &c.count}, Spec{Name: "count"})
	for k := range int64(keys) {
		c.keys = append(c.keys, k)
		c.set(k, k)
	}
	slices.SortFunc(c.keys, func(a, b int64) int {
		if c.keyed.Hash(a) < c.keyed.Hash(b) {
			return -1
		}
		return 1
	})
	return c
}

func (c *counts) set(k, v int64) {
	c.keyed.Seek(c.keyed.Hash(k), k)
	c.count.Set(v)
	c.model[k] = v
}

// change writes n keys that are neighbours in the order of hashes.
func (c *counts) change(n int, by int64) {
	for range n {
		k := c.keys[c.next%len(c.keys)]
		c.next++
		c.set(k, c.model[k]+by)
	}
}

// checkpoint takes one upon the last, and deletes what it does not name.
func (c *counts) checkpoint() { c.checkpointUpon(c.id) }

func (c *counts) checkpointUpon(upon base.CheckpointID) {
	c.id++
	c.handle = checkpointOf(c.t, c.keyed, c.store, c.id, upon)
	c.store.keepOnly([]snapshot.KeyedHandle{c.handle})
}

// bytes is what is kept for the last checkpoint.
func (c *counts) bytes() (n int64) {
	for _, b := range c.store.files {
		n += int64(len(b))
	}
	return n
}

// full is the size of a snapshot of everything.
func (c *counts) full() int64 { return int64(len(fileOf(c.t, c.keyed.Snapshot(0, 0)))) }

// metered counts what is read.
type metered struct {
	io.ReaderAt
	reads, bytes *int64
}

func (m metered) ReadAt(b []byte, off int64) (int, error) {
	*m.reads++
	*m.bytes += int64(len(b))
	return m.ReaderAt.ReadAt(b, off)
}

// checkRestore restores the last checkpoint, and compares it with the model. It returns what that took.
func (c *counts) checkRestore() (opens, reads, read int64) {
	c.t.Helper()
	var now int64
	var count Value[int64]
	k := newKeyed[int64](c.t, allGroups, &now, map[string]binder{"count": &count}, Spec{Name: "count"})
	must(c.t, k.Restore(RestoreFile{ID: c.id, Handle: c.handle, Open: func(h snapshot.Handle) (io.ReaderAt, error) {
		opens++
		r, err := c.store.open(h)
		return metered{r, &reads, &read}, err
	}}, allGroups))
	if k.Len() != len(c.model) {
		c.t.Fatalf("checkpoint %d has %d keys, want %d", c.id, k.Len(), len(c.model))
	}
	for key, want := range c.model {
		if seek(k, key); count.Get() != want {
			c.t.Fatalf("checkpoint %d: key %d is %d, want %d", c.id, key, count.Get(), want)
		}
	}
	return opens, reads, read
}

// However many checkpoints there were, one takes bounded room, in a bounded number of files, and as long to restore as the first.
func TestTenThousandIncrementalCheckpointsStayBounded(t *testing.T) {
	for _, width := range []struct {
		name string
		of   func(i int) int // keys that change
	}{
		{"one key", func(int) int { return 1 }},
		{"mixed", func(i int) int { return 1 + i*i%311 }},
	} {
		t.Run(width.name, func(t *testing.T) {
			c := newCounts(t, 8000)
			c.checkpoint()
			const slack = 8 << 10 // trailers
			full := c.full()
			var files, reads, most, written int64
			for i := range 10_000 {
				if i%100 == 99 { // far away
					c.next += len(c.keys) / 3
				}
				c.change(width.of(i), 1)
				c.checkpoint()
				written += c.handle.Size
				files, most = max(files, int64(len(c.store.files))), max(most, c.bytes())
				if n := int64(len(c.handle.Refers)) + 1; n != int64(len(c.store.files)) || n > filesMost+1 {
					t.Fatalf("checkpoint %d has %d files, stored are %d", c.id, n, len(c.store.files))
				}
				if c.bytes() > 2*full+c.handle.Size+slack {
					t.Fatalf("checkpoint %d keeps %d bytes, a full one has %d", c.id, c.bytes(), full)
				}
				if i%1000 == 999 {
					opens, n, read := c.checkRestore()
					if reads = max(reads, n); opens > filesMost+1 || read > 2*c.bytes()+int64(len(c.store.files))*windowBytes {
						t.Fatalf("restoring checkpoint %d opened %d files and read %d bytes of %d", c.id, opens, read, c.bytes())
					}
				}
			}
			t.Logf("at most %d files, %d bytes where a full one has %d; %d bytes written at a time; %d reads to restore", files, most, full, written/10_000, reads)
		})
	}
}

// BenchmarkIncremental tells what a checkpoint costs after 1 % of a million keys was changed, against one of everything.
//
//	go test ./internal/state -run xxx -bench Incremental -benchtime 20x
func BenchmarkIncremental(b *testing.B) {
	const n = 1_000_000
	c := newCounts(b, n)
	for _, way := range []struct {
		name   string
		change func()
		upon   base.CheckpointID // 0: nothing, else the last
	}{
		{"full", func() { c.change(n/100, 1) }, 0},
		{"clustered", func() { c.change(n/100, 1) }, 1},
		{"uniform", func() { c.spread(n / 100) }, 1},
		{"unchanged", func() {}, 1},
	} {
		b.Run(fmt.Sprintf("1%%-%s", way.name), func(b *testing.B) {
			var bytes int64
			for b.Loop() {
				b.StopTimer()
				c.checkpointUpon(0) // a full one to begin with
				way.change()
				b.StartTimer()
				c.checkpointUpon(c.id * way.upon)
				bytes += c.handle.Size
			}
			b.ReportMetric(float64(bytes)/float64(b.N), "bytes")
		})
	}
}

// spread changes n keys, anywhere.
func (c *counts) spread(n int) {
	for range n {
		c.next++
		k := spread(uint64(c.next), uint64(len(c.keys)))
		c.set(k, c.model[k]+1)
	}
}
