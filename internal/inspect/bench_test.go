package inspect

import (
	"fmt"
	"iter"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
	"github.com/weirstream/weir/internal/storage"
)

// big is a savepoint of one state by key, of any size: a value of about a hundred bytes for each key.
type big struct {
	tasks int
	keys  int // of each subtask
}

type bigValue struct {
	Count, Sum int64
	Text       [88]byte
}

// keyOf is the key that has a hash: the hash of an integer is a permutation.
func keyOf(h uint64) int64 {
	for _, inverse := range []uint64{0x9cb4b2f8129337db, 0x4f74430c22a54005} {
		h ^= h >> 33
		h *= inverse
	}
	return int64(h ^ h>>33)
}

// hashes are those of the keys of a subtask.
func (b big) hashes(i int) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		least, most := base.RangeOf(i, b.tasks).Hashes()
		step := (most - least) / uint64(b.keys)
		for n := range uint64(b.keys) {
			if !yield(least + n*step) {
				return
			}
		}
	}
}

// write writes the savepoint to a directory.
func (b big) write(t testing.TB, dir string, f snapshot.Format) *Snapshot {
	t.Helper()
	location, err := storage.MakeSnapshot(storage.Disk(), dir)
	must(t, err)
	w := storage.NewWriter(storage.Disk(), location, storage.WriterOptions{InlineMax: -1})
	o := snapshot.Operator{UID: "big", Parallelism: b.tasks}
	for i := range b.tasks {
		sub := snapshot.Subtask{Index: i, Watermark: base.NoTime, PendingWatermark: base.NoTime}
		if f == snapshot.Native {
			o.Schemas = b.writeNative(t, w, &sub)
		} else {
			o.Schemas = b.writeRows(t, w, &sub)
		}
		o.Subtasks = append(o.Subtasks, sub)
	}
	m := &snapshot.Metadata{ID: 1, Job: "0123456789abcdef0123456789abcdef", Kind: snapshot.Savepoint, Format: f, Operators: []snapshot.Operator{o}}
	must(t, storage.PublishSnapshot(storage.Disk(), location, m))
	s, err := Open(storage.Disk(), location)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func (b big) writeNative(t testing.TB, w storage.Writer, to *snapshot.Subtask) []snapshot.StateSchema {
	t.Helper()
	key, err := codec.KeyFor[int64]()
	must(t, err)
	within := base.RangeOf(to.Index, b.tasks)
	k := state.NewKeyed(key, within)
	var value state.Value[bigValue]
	must(t, value.Bind(k, state.Spec{Name: "value"}))
	k.Open(func() int64 { return 0 })
	for h := range b.hashes(to.Index) {
		k.Seek(h, keyOf(h))
		value.Set(bigValue{Count: int64(h)})
		k.Settle()
	}
	taken := k.Snapshot(0, 0)
	o, err := w.Create(fmt.Sprint(to.Index, "-keyed"))
	must(t, err)
	_, err = taken.WriteTo(o)
	must(t, err)
	h, err := o.Commit()
	must(t, err)
	to.Keyed = append(to.Keyed, snapshot.KeyedHandle{Range: within, Handle: h})
	return k.Schemas()
}

func (b big) writeRows(t testing.TB, w storage.Writer, to *snapshot.Subtask) []snapshot.StateSchema {
	t.Helper()
	c, err := codec.For[bigValue]()
	must(t, err)
	schema := snapshot.StateSchema{Name: "value", Kind: state.KindValue, Key: `"long"`, Value: c.Schema()}
	keys, err := codec.For[int64]()
	must(t, err)
	rows := state.CopyRows(state.StoredState{Schema: schema}, 0, func(yield func(state.Row, error) bool) {
		var r state.Row
		for r.Hash = range b.hashes(to.Index) {
			key := keyOf(r.Hash)
			r.Key, _ = keys.Append(r.Key[:0], &key)
			r.Value, _ = c.Append(r.Value[:0], &bigValue{Count: int64(r.Hash)})
			if !yield(r, nil) {
				return
			}
		}
	})
	o, err := w.CreateFile(fmt.Sprint(to.Index, "-value.avro"))
	must(t, err)
	_, err = rows.WriteTo(o)
	must(t, err)
	h := rows.Handle()
	h.Range = base.RangeOf(to.Index, b.tasks)
	h.Handle, err = o.Commit()
	must(t, err)
	h.Index = put(t, w, fmt.Sprint(to.Index, "-value.idx"), rows.Index())
	to.Rows = append(to.Rows, h)
	return []snapshot.StateSchema{schema}
}

// BenchmarkInspect looks at savepoints of 1 GB. Their pages were written a moment ago, and are not read.
func BenchmarkInspect(b *testing.B) {
	for _, f := range []snapshot.Format{snapshot.Canonical, snapshot.Native} {
		b.Run(string(f), func(b *testing.B) {
			s := big{tasks: 8, keys: 1_100_000}.write(b, filepath.Join(b.TempDir(), "sp"), f)
			for b.Loop() {
				again, err := Open(storage.Disk(), s.Location)
				must(b, err)
				if sum := again.Summary(); *sum.Operators[0].States[0].Entries != 8*1_100_000 || len(sum.Problems) > 0 {
					b.Fatalf("%+v", sum)
				}
				must(b, again.Close())
			}
			b.ReportMetric(float64(s.Sizes().State)/1e9, "GB")
		})
	}
}

// gauge is a writer that looks at the heap now and then.
type gauge struct {
	most    uint64
	written int
}

func (g *gauge) Write(b []byte) (int, error) {
	if before := g.written >> 20; before != (g.written+len(b))>>20 {
		g.most = max(g.most, heap())
	}
	g.written += len(b)
	return len(b), nil
}

// heap is what lives in the heap.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// The entries of a large state, all or those of one key, and a canonical savepoint of it, take no more memory than those of a small one.
func TestMemoryIsBounded(t *testing.T) {
	const most = 4 << 20
	for _, f := range []snapshot.Format{snapshot.Canonical, snapshot.Native} {
		s := big{tasks: 2, keys: 100_000}.write(t, filepath.Join(t.TempDir(), "sp"), f)
		before := heap()
		g := &gauge{}
		must(t, s.WriteEntries(g, Query{Operator: "big", State: "value"}))
		if g.written < 20<<20 || g.most > before+most {
			t.Errorf("%s: %d MB of lines took %d KB", f, g.written>>20, (g.most-before)>>10)
		}
		one := &gauge{}
		for h := range (big{tasks: 2, keys: 100}).hashes(1) {
			must(t, s.WriteEntries(one, Query{Operator: "big", State: "value", Keys: []string{fmt.Sprint(keyOf(h))}}))
			break
		}
		if one.written == 0 {
			t.Errorf("%s: nothing is found by its key", f)
		}
	}
}

// An entry that is found by its key costs a block or a page, and not the file.
func TestKeysAreFoundWithoutReadingAll(t *testing.T) {
	for _, f := range []snapshot.Format{snapshot.Canonical, snapshot.Native} {
		s := big{tasks: 2, keys: 50_000}.write(t, filepath.Join(t.TempDir(), "sp"), f)
		read := 0
		s.fs = storage.Faulty(s.fs, &storage.Rule{Op: storage.OpRead, Hook: func(storage.Op, string) { read++ }})
		must(t, s.WriteEntries(new(gauge), Query{Operator: "big", State: "value", Keys: []string{"5"}}))
		if read > 40 {
			t.Errorf("%s: %d reads for one key", f, read)
		}
	}
}
