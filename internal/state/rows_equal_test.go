package state

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// A canonical savepoint and a native one of the same moment restore the same state, at any parallelism. Canonical bytes depend on
// nothing but the state: so two states are compared by the rows that they would write.

// shelf holds the files of a checkpoint by the names that handles have.
type shelf map[string][]byte

func (s shelf) put(b []byte) snapshot.Handle {
	name := strconv.Itoa(len(s))
	s[name] = b
	return snapshot.Handle{File: name, Size: int64(len(b))}
}

func (s shelf) rows(t testing.TB, p snapshot.RowsPart) *RowsFile {
	t.Helper()
	return rowsFile{file: s[p.File], index: s[p.Index.File]}.open(t)
}

// putRows puts files of rows on the shelf, as a subtask reports them.
func (s shelf) putRows(files []rowsFile, r base.KeyGroupRange) (handles []snapshot.RowsHandle) {
	for _, f := range files {
		h := f.RowsHandle
		h.Range, h.Handle, h.Index = r, s.put(f.file), s.put(f.index)
		handles = append(handles, h)
	}
	return handles
}

// oldOperator is what p subtasks report; report puts a subtask's state into a Subtask of each format.
func oldOperator(p int, format snapshot.Format, report func(i int, s *snapshot.Subtask)) *snapshot.Operator {
	o := &snapshot.Operator{UID: string(format), Parallelism: p}
	for i := range p {
		s := snapshot.Subtask{Index: i, Watermark: base.NoTime, PendingWatermark: base.NoTime}
		report(i, &s)
		o.Subtasks = append(o.Subtasks, s)
	}
	return o
}

// equalKeyed compares two states by their rows.
func equalKeyed[K comparable](t *testing.T, what string, native, canonical *Keyed[K]) {
	t.Helper()
	must(t, checkIndex(&canonical.index))
	for i := range canonical.timers {
		must(t, checkIndex(&canonical.timers[i].set))
	}
	want, got := rowsOf(t, native.Snapshot(0, 0).Rows()), rowsOf(t, canonical.Snapshot(0, 0).Rows())
	if len(want) != len(got) {
		t.Fatalf("%s: %v, natively %v", what, namesOf(got), namesOf(want))
	}
	for i := range want {
		if !bytes.Equal(want[i].file, got[i].file) || !bytes.Equal(want[i].index, got[i].index) {
			t.Fatalf("%s: state %q differs from its native restore: %d rows, natively %d", what, want[i].Name, got[i].Count, want[i].Count)
		}
	}
}

// equalRestores runs p old subtasks at random, and restores them at the parallelisms of to.
func equalRestores[K comparable](t *testing.T, seed uint64, p int, key func(uint64) K, to ...int) {
	files := shelf{}
	native, canonical := &snapshot.Operator{Parallelism: p}, &snapshot.Operator{Parallelism: p}
	now := int64(0)
	for i := range p {
		r := base.RangeOf(i, p)
		g := newRig(t, seed+uint64(i), r, nil, key, 40+int(seed%5)*150)
		for range 30 {
			g.slice()
		}
		for range 20 {
			k, h := g.pick()
			g.keyed.Seek(h, k)
			g.keyed.Timers(false).Register(base.EventTime(g.rnd.Int64N(1000)))
			g.keyed.Settle()
		}
		g.keyed.Leave()
		now = max(now, g.now)
		s := g.keyed.Snapshot(0, 0)
		n := snapshot.Subtask{Index: i, Keyed: []snapshot.KeyedHandle{{Range: r, Handle: files.put(fileOf(t, s))}}}
		native.Subtasks = append(native.Subtasks, n)
		canonical.Subtasks = append(canonical.Subtasks, snapshot.Subtask{Index: i, Rows: files.putRows(rowsOf(t, s.Rows()), r)})
	}
	for _, q := range to {
		for j := range q {
			open := func() *Keyed[K] {
				k := NewKeyed(mustKey[K](t), base.RangeOf(j, q))
				new(everyState).bindAll(t, k)
				k.Open(func() int64 { return now })
				return k
			}
			a, b := open(), open()
			r, err := snapshot.Assign(native, q, j)
			must(t, err)
			for _, h := range r.Keyed {
				must(t, a.Restore(inMemory(files[h.File]), h.Range))
			}
			r, err = snapshot.Assign(canonical, q, j)
			must(t, err)
			var stored []string
			for _, h := range r.Rows {
				stored = append(stored, h.Name)
			}
			for _, h := range r.Rows {
				must(t, b.RestoreRows(files.rows(t, h), h.Range, stored))
			}
			equalKeyed(t, fmt.Sprintf("%T, %d -> %d, subtask %d", key(0), p, q, j), a, b)
		}
	}
}

func TestKeyedRowsRestoreAsNativeFiles(t *testing.T) {
	type place struct {
		Country string
		Zip     int32
	}
	for p := 1; p <= 5; p++ {
		seed := uint64(100 * p)
		equalRestores(t, seed, p, asInt, 1, 2, 3, 4, 5)
		equalRestores(t, seed+1, p, asText, p, p%5+1)
		equalRestores(t, seed+2, p, func(i uint64) float64 { return float64(i) / 3 }, (p+2)%5+1)
		equalRestores(t, seed+3, p, func(i uint64) [3]byte { return [3]byte{byte(i), byte(i >> 8), 7} }, (p+3)%5+1)
		equalRestores(t, seed+4, p, func(i uint64) place { return place{fmt.Sprint(i % 13), int32(i)} }, (p+4)%5+1)
		equalRestores(t, seed+5, p, func(i uint64) uint16 { return uint16(i) }, (p+5)%5+1)
	}
	equalRestores(t, 9, 1, func(i uint64) bool { return i%2 == 0 }, 1, 4)
}

// Lists are dealt by the numbers of rows as they are dealt by offsets.
func TestListsOfRowsRestoreAsNativeFiles(t *testing.T) {
	for p := 1; p <= 5; p++ {
		rnd := rand.New(rand.NewPCG(uint64(p), 2))
		files := shelf{}
		var olds []*OperatorSnapshot
		for range p {
			s := newOpState(t)
			for range 100 {
				s.change(rnd)
			}
			if rnd.IntN(2) == 0 {
				for i := range 20_000 { // several blocks
					s.list.Add(fmt.Sprint("element ", i))
				}
			}
			olds = append(olds, s.ops.Snapshot())
		}
		native := oldOperator(p, snapshot.Native, func(i int, s *snapshot.Subtask) {
			var b bytes.Buffer
			_, err := olds[i].WriteTo(&b)
			must(t, err)
			h := files.put(b.Bytes())
			for _, l := range olds[i].Lists() {
				l.Handle = h
				s.Lists = append(s.Lists, l)
			}
		})
		canonical := oldOperator(p, snapshot.Canonical, func(i int, s *snapshot.Subtask) {
			s.Rows = files.putRows(rowsOf(t, olds[i].Rows()), base.KeyGroupRange{})
		})
		for q := 1; q <= 5; q++ {
			for j := range q {
				want, got := newOpState(t), newOpState(t)
				r, err := snapshot.Assign(native, q, j)
				must(t, err)
				for _, l := range r.Lists {
					restoreOp(t, want, files[l.File], []snapshot.ListHandle{l})
				}
				r, err = snapshot.Assign(canonical, q, j)
				must(t, err)
				for _, l := range r.Rows {
					must(t, got.ops.RestoreRows(files.rows(t, l), l.From, l.To))
				}
				if want.show() != got.show() {
					t.Fatalf("%d -> %d, subtask %d:\n got %.1000s\nwant %.1000s", p, q, j, got.show(), want.show())
				}
			}
		}
	}
}
