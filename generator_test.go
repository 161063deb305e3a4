package weir

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/operator"
	"pgregory.net/rapid"
)

// laneMaster is an EnumeratorContext that hands lanes straight to readers.
type laneMaster struct {
	readers []*laneReader[int64] // nil: not registered yet
	err     error
}

func (m *laneMaster) Assign(subtask int, splits ...Lane) {
	if err := m.readers[subtask].AddSplits(splits); err != nil {
		m.err = err
	}
}
func (m *laneMaster) NoMoreSplits(subtask int)                                       { m.readers[subtask].NoMoreSplits() }
func (m *laneMaster) Parallelism() int                                               { return len(m.readers) }
func (m *laneMaster) Backlog(bool)                                                   {}
func (m *laneMaster) Run(func(context.Context) (any, error), func(any, error) error) {}
func (m *laneMaster) Readers() (there []int) {
	for i, r := range m.readers {
		if r != nil {
			there = append(there, i)
		}
	}
	return there
}

// laneTask is a ReaderContext.
type laneTask struct{ index, of int }

func (t laneTask) Subtask() (int, int) { return t.index, t.of }
func (t laneTask) RequestSplit()       {}
func (t laneTask) Wake()               {}

// gatherer receives what an Out emits.
type gatherer[T any] struct{ got []T }

func (g *gatherer[T]) Push(b *operator.Batch[T]) error {
	g.got = append(g.got, b.Values...)
	return nil
}
func (g *gatherer[T]) Watermark(base.EventTime) error { return nil }
func (g *gatherer[T]) Idle(bool) error                { return nil }
func (g *gatherer[T]) EndOfData(bool) error           { return nil }

func gathering[T any]() (Out[T], *gatherer[T]) {
	e, g := &operator.Emitter[T]{}, &gatherer[T]{}
	e.Init()
	e.To(g)
	return Out[T]{e: e}, g
}

// laneJob is one run of a generator: an enumerator and its readers.
type laneJob struct {
	source Generated[int64]
	master *laneMaster
	enum   Enumerator[Lane]
}

func startLanes(t rapid.TB, g Generated[int64], parallelism int, state []byte) *laneJob {
	j := &laneJob{source: g, master: &laneMaster{readers: make([]*laneReader[int64], parallelism)}}
	enum, err := g.Enumerator(j.master, state)
	if err != nil {
		t.Fatal(err)
	}
	j.enum = enum
	return j
}

// register brings up the reader of a subtask with the lanes it is restored with.
func (j *laneJob) register(t rapid.TB, subtask int, restored []Lane) {
	r, err := j.source.Reader(laneTask{subtask, len(j.master.readers)})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.AddSplits(restored); err != nil {
		t.Fatal(err)
	}
	j.master.readers[subtask] = r.(*laneReader[int64])
	if err := j.enum.Added(subtask); err != nil || j.master.err != nil {
		t.Fatal(err, j.master.err)
	}
}

// Whatever the parallelisms of a job's life, wherever it is stopped: each index comes exactly once, and ascending in a run.
func TestGenerateExactlyOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 60).Draw(t, "n")
		g := Generate(n, func(i int64) int64 { return i })
		var all []int64
		var state []byte
		var lanes []Lane
		for run := 0; ; run++ {
			p := rapid.IntRange(1, 5).Draw(t, "parallelism")
			j := startLanes(t, g, p, state)
			there := rapid.IntRange(0, p).Draw(t, "registered")
			if run == 5 {
				there = p
			}
			restored := make([][]Lane, p)
			for i, l := range lanes {
				restored[i%p] = append(restored[i%p], l)
			}
			lanes = nil
			for subtask := range restored {
				if subtask >= there {
					lanes = append(lanes, restored[subtask]...) // restored, but not read in this run
					continue
				}
				j.register(t, subtask, restored[subtask])
				out, sink := gathering[int64]()
				most := rapid.IntRange(0, 20).Draw(t, "most")
				if run == 5 {
					most = 1000
				}
				status := pollLanes(t, j.master.readers[subtask], out, most)
				if !slices.IsSorted(sink.got) {
					t.Fatalf("out of order: %v", sink.got)
				}
				all = append(all, sink.got...)
				left, _ := j.master.readers[subtask].Snapshot(1)
				if (status == Ended) != (len(left) == 0) {
					t.Fatalf("status %d with %d lanes left", status, len(left))
				}
				lanes = append(lanes, left...)
			}
			state, _ = j.enum.Snapshot(1)
			if run == 5 {
				break
			}
		}
		slices.Sort(all)
		for i := range n {
			if int64(len(all)) != n || all[i] != i {
				t.Fatalf("read %v", all)
			}
		}
	})
}

// pollLanes polls once.
func pollLanes[T any, S Split](t rapid.TB, r Reader[T, S], out Out[T], most int) Status {
	status, err := r.Poll(context.Background(), max(1, most), out)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.e.Flush(); err != nil {
		t.Fatal(err)
	}
	return status
}

func TestGenerateRefuses(t *testing.T) {
	five, seven := FromSlice(make([]int64, 5)), FromSlice(make([]int64, 7))
	r, _ := seven.Reader(laneTask{0, 1})
	err := r.AddSplits(lanes(five.n, 1))
	if err == nil || !strings.Contains(err.Error(), "of 5 records, and this one is of 7 records") {
		t.Errorf("another slice: %v", err)
	}
	for _, l := range []Lane{{}, {Index: 3, Of: 2, N: 7, Next: 3}, {Index: 1, Of: 3, N: 7, Next: 3}, {Of: 1, N: 7, Next: -1}} {
		if r.AddSplits([]Lane{l}) == nil {
			t.Errorf("%+v is a lane", l)
		}
	}
	for _, state := range []string{"", "{", `{"Version":2}`} {
		if _, err := seven.Enumerator(&laneMaster{}, []byte(state)); err == nil {
			t.Errorf("%q is a state", state)
		}
	}
}

func TestGenerateEndless(t *testing.T) {
	g := Generate(Endless, func(i int64) int64 { return i * i })
	if g.Bounded() || !Generate(3, func(i int64) int64 { return i }).Bounded() {
		t.Error("Bounded")
	}
	j := startLanes(t, g, 3, nil)
	j.register(t, 1, nil)
	out, sink := gathering[int64]()
	if s := pollLanes(t, j.master.readers[1], out, 3); s != More || !slices.Equal(sink.got, []int64{1, 16, 49}) {
		t.Errorf("status %d, read %v", s, sink.got)
	}
}

// The rate is the source's: subtasks have their lanes' part of it, also where some have two lanes and some none.
func TestGenerateRate(t *testing.T) {
	for _, p := range []int{1, 2, 3} {
		synctest.Test(t, func(t *testing.T) {
			g := Generate(Endless, func(i int64) int64 { return i }).Rate(100)
			j := startLanes(t, g, p, nil)
			j.enum.(*laneEnumerator).pending = lanes(Endless, 2) // as from a checkpoint at parallelism 2
			out, sink := gathering[int64]()
			for i := range p {
				j.register(t, i, nil)
			}
			for range 1000 {
				for _, r := range j.master.readers {
					pollLanes(t, r, out, 128)
				}
				time.Sleep(10 * time.Millisecond)
			}
			if n := len(sink.got); n < 990 || n > 1010 {
				t.Errorf("parallelism %d: %d records in 10 s at 100 a second", p, n)
			}
			for _, r := range j.master.readers {
				r.Close()
			}
		})
	}
}

func TestLaneID(t *testing.T) {
	if id := lanes(9, 4)[2].SplitID(); id != "2/4" {
		t.Error(id)
	}
	if n := len(lanes(2, 4)); n != 2 {
		t.Errorf("%d lanes for 2 indices", n)
	}
}

func BenchmarkGenerate(b *testing.B) {
	for _, held := range []int64{1, 4} {
		b.Run(fmt.Sprint("lanes=", held), func(b *testing.B) {
			r, _ := Generate(Endless, func(i int64) int64 { return i }).Reader(laneTask{0, 1})
			r.AddSplits(lanes(Endless, int(held)))
			out, sink := gathering[int64]()
			b.ReportAllocs()
			for i := 0; i < b.N; i += 128 {
				r.Poll(context.Background(), 128, out)
				out.e.Flush()
				sink.got = sink.got[:0]
			}
		})
	}
}
