package operator

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/graph"
)

// readerOf is the reading end of an edge, of which only the bytes matter.
func readerOf[T any](t *testing.T, e *Edge[T]) *reader[T] {
	t.Helper()
	return &reader[T]{edge: e}
}

func batchOf[T any](values ...T) *Batch[T] {
	b := &Batch[T]{Values: values, pool: &pool[T]{}}
	for i := range values {
		b.Times = append(b.Times, base.EventTime(i)-1)
	}
	return b
}

// restored is what a share of records is, as "sender: values@times".
func restored[T any](t *testing.T, r *reader[T], records []byte, s Share) (all []string, err error) {
	t.Helper()
	if s.Record == "" {
		s.Record, _ = codec.SchemaOf(reflect.TypeFor[T]())
	}
	err = r.Restore(records, s, func(sender int, p exchange.Payload) error {
		b := p.(*Batch[T])
		if len(b.Values) != len(b.Times) || s.Kind == graph.Hash && len(b.Values) != len(b.Hashes) || b.Len() == 0 {
			t.Fatalf("%d values, %d times, %d hashes", len(b.Values), len(b.Times), len(b.Hashes))
		}
		all = append(all, fmt.Sprint(sender, ": ", b.Values, "@", b.Times))
		b.Release()
		return nil
	})
	return all, err
}

// TestRecordsInFlight go into bytes and back, from where the batch at hand stands.
func TestRecordsInFlight(t *testing.T) {
	r := readerOf(t, &Edge[string]{})
	records, err := r.Append([]byte("before"), 300, batchOf("a", "b", strings.Repeat("c", 100<<10), ""), 1)
	if err == nil {
		records, err = r.Append(records, 0, batchOf("d"), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := restored(t, r, records[len("before"):], Share{All: true})
	want := []string{"300: [b " + strings.Repeat("c", 100<<10) + " ]@[0 1 2]", "0: [d]@[-1]"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %.100v, %v", got, err)
	}
	stop := errors.New("stop")
	if err := r.Restore(records[len("before"):], Share{All: true, Record: `"string"`}, func(int, exchange.Payload) error { return stop }); err != stop {
		t.Errorf("got %v", err)
	}
}

// TestSharesOfRecordsInFlight: over all new subtasks each record is there once, and where it would be sent now.
func TestSharesOfRecordsInFlight(t *testing.T) {
	byValue := byItself(t)
	choosing := &Edge[int64]{Choose: func(v int64, n int) int { return int(v*7) % n }}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var values []int64
		old, parallelism := 1+random.IntN(4), 1+random.IntN(6)
		tests := []struct {
			edge *Edge[int64]
			kind graph.Partitioning
			turn bool
		}{{byValue, graph.Hash, false}, {choosing, graph.Custom, false}, {&Edge[int64]{}, graph.Rebalance, true}}
		test := tests[random.IntN(len(tests))]
		hash := byValue.Hasher()
		parts := make([][]byte, old) // of the old receivers
		r := readerOf(t, test.edge)
		for v := range int64(random.IntN(300)) {
			var h [1]uint64
			if err := hash([]int64{v}, h[:]); err != nil {
				t.Fatal(err)
			}
			to := base.OwnerOf(h[0], old)
			if test.kind != graph.Hash {
				to = random.IntN(old)
			}
			values = append(values, v)
			var err error
			if parts[to], err = r.Append(parts[to], random.IntN(3), batchOf(v), 0); err != nil {
				t.Fatal(err)
			}
		}
		var got []int64
		for subtask := range parallelism {
			for i, records := range parts {
				s := Share{Kind: test.kind, Subtask: subtask, Parallelism: parallelism, Record: `"long"`}
				switch {
				case test.kind == graph.Hash:
					s.Old, s.OldParallelism = i, old
				case test.turn:
					s.Turn, s.Of = subtask, parallelism
				}
				err := r.Restore(records, s, func(_ int, p exchange.Payload) error {
					for i, v := range p.(*Batch[int64]).Values {
						if test.kind == graph.Hash && base.OwnerOf(p.(*Batch[int64]).Hashes[i], parallelism) != subtask || test.kind == graph.Custom && int(v*7)%parallelism != subtask {
							t.Fatalf("%v: %d came to subtask %d of %d", test.kind, v, subtask, parallelism)
						}
						got = append(got, v)
					}
					return nil
				})
				if err != nil && (test.kind != graph.Hash || !meets(i, old, subtask, parallelism)) {
					continue // a subtask whose key groups are none of the old receiver's reads nothing of it
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, values) {
			t.Fatalf("%v from %d to %d: %v of %d", test.kind, old, parallelism, got, len(values))
		}
	}
}

func meets(old, of, subtask, parallelism int) bool {
	a, b := base.RangeOf(old, of), base.RangeOf(subtask, parallelism)
	return a.First <= b.Last && b.First <= a.Last
}

// TestAnotherKey is noticed: records lie with other subtasks than those that now would read them.
func TestAnotherKey(t *testing.T) {
	r := readerOf(t, byItself(t))
	var records []byte
	for v := range int64(20) {
		records, _ = r.Append(records, 0, batchOf(v), 0)
	}
	if _, err := restored(t, r, records, Share{Kind: graph.Hash, Subtask: 0, Parallelism: 2, Old: 0, OldParallelism: 2}); err != errRekeyed {
		t.Errorf("got %v", err)
	}
}

// TestRecordsOfAnotherType are read as far as a schema can follow, and refused otherwise.
func TestRecordsOfAnotherType(t *testing.T) {
	type before struct{ Name string }
	type after struct {
		Name  string
		Count int64
	}
	records, err := readerOf(t, &Edge[before]{}).Append(nil, 0, batchOf(before{"a"}), 0)
	if err != nil {
		t.Fatal(err)
	}
	schema, _ := (&Edge[before]{}).Record()
	got, err := restored(t, readerOf(t, &Edge[after]{}), records, Share{All: true, Record: schema})
	if want := []string{"0: [{a 0}]@[-1]"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := restored(t, readerOf(t, &Edge[[]bool]{}), records, Share{All: true, Record: schema}); err == nil {
		t.Error("a struct was read as a list")
	}
	if _, err := readerOf(t, &Edge[chan int]{}).Append(nil, 0, batchOf(make(chan int)), 0); err == nil {
		t.Error("a channel has bytes")
	}
}

// FuzzRecordsInFlight: any bytes are records or an error.
func FuzzRecordsInFlight(f *testing.F) {
	r := &reader[[]string]{edge: &Edge[[]string]{}}
	records, _ := r.Append(nil, 1, batchOf([]string{"a", "b"}, nil, []string{"c"}), 0)
	records, _ = r.Append(records, 0, batchOf([]string{}), 0)
	schema, _ := r.edge.Record()
	f.Add(records)
	for i := range records {
		f.Add(records[:i])
		spoilt := slices.Clone(records)
		spoilt[i] ^= 0x81
		f.Add(spoilt)
	}
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, records []byte) {
		n := 0
		err := r.Restore(records, Share{All: true, Record: schema}, func(sender int, p exchange.Payload) error {
			n += p.Len()
			return nil
		})
		if err == nil && 8*n > len(records) {
			t.Errorf("%d bytes gave %d records", len(records), n)
		}
	})
}

// TestBarriersOfAWriter: half-filled batches go in front, however full the channels are; on broadcast edges an unaligned barrier keeps its place,
// and says so.
func TestBarriersOfAWriter(t *testing.T) {
	for kind, edge := range map[graph.Partitioning]*Edge[int64]{graph.Hash: byItself(t), graph.Rebalance: {}, graph.Broadcast: {}, graph.Global: {}} {
		for _, alignment := range []checkpoint.Alignment{checkpoint.Aligned, checkpoint.Unaligned} {
			r := newRig(t, 2, edge, kind, func(_ *Sending, l *exchange.Limits) { *l = exchange.Limits{Batches: 1} })
			for range 3 { // a full channel, and more than it holds
				for _, v := range upTo(5) {
					r.op.out.Emit(v)
				}
				if err := r.op.out.Flush(); err != nil {
					t.Fatal(err)
				}
				if err := r.writer.Barrier(checkpoint.Barrier{ID: 1, Alignment: alignment}); err != nil || r.writer.Held() {
					t.Fatalf("held %v, %v", r.writer.Held(), err)
				}
			}
			for _, g := range r.gates {
				overtook := g.Urgent()
				if forced := kind == graph.Broadcast || alignment == checkpoint.Aligned; forced != (len(overtook) == 0) {
					t.Fatalf("%v, %v: %d overtook", kind, alignment, len(overtook))
				}
				for {
					_, e, ok := g.Next()
					if !ok {
						break
					}
					if e.Kind == exchange.Data {
						e.Payload.Release()
					} else if e.Barrier.Forced != (alignment == checkpoint.Unaligned) || e.Barrier.Alignment != checkpoint.Aligned {
						t.Errorf("%v: sent was %+v", kind, e.Barrier)
					}
				}
			}
		}
	}
}
