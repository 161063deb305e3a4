package state

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weirstream/weir/internal/snapshot"
)

// opState is an operator with a list of each kind, some of values that must be cloned.
type opState struct {
	ops    *Operator
	list   OperatorList[string]
	nested OperatorList[[]int64]
	union  UnionList[int64]
	m      BroadcastMap[int64, string]
	mm     BroadcastMap[string, []int64]
}

func newOpState(t testing.TB) *opState {
	s := &opState{ops: NewOperator()}
	must(t, s.list.Bind(s.ops, Spec{Name: "list"}))
	must(t, s.nested.Bind(s.ops, Spec{Name: "nested"}))
	must(t, s.union.Bind(s.ops, Spec{Name: "union"}))
	must(t, s.m.Bind(s.ops, Spec{Name: "m"}))
	must(t, s.mm.Bind(s.ops, Spec{Name: "mm"}))
	return s
}

func (s *opState) show() string {
	return fmt.Sprint(slices.Collect(s.list.All()), slices.Collect(s.nested.All()), slices.Collect(s.union.All()),
		maps.Collect(s.m.All()), maps.Collect(s.mm.All()), s.list.Len(), s.nested.Len(), s.union.Len(), s.m.Len(), s.mm.Len())
}

// change does something at random, also in place.
func (s *opState) change(rnd *rand.Rand) {
	v := rnd.Int64N(20)
	switch rnd.IntN(14) {
	case 0, 1:
		s.list.Add(fmt.Sprint(v), "x")
	case 2, 3:
		s.nested.Add([]int64{v}, []int64{})
	case 4:
		for got := range s.nested.All() {
			if len(got) > 0 {
				got[0]++
			}
		}
	case 5:
		s.union.Add(v)
	case 6, 7:
		s.m.Put(v, fmt.Sprint(v))
	case 8:
		s.mm.Put(fmt.Sprint(v), []int64{v})
	case 9:
		if got, ok := s.mm.Get(fmt.Sprint(v)); ok {
			got[0]++
		}
	case 10:
		for _, got := range s.mm.All() {
			got[0]++
		}
	case 11:
		for k := range s.m.All() { // deleting in a loop
			if k%2 == 0 {
				s.m.Delete(k)
			}
		}
	case 12:
		s.union.Update([]int64{v})
	case 13:
		if rnd.IntN(10) == 0 {
			s.list.Clear()
			s.nested.Clear()
			s.union.Clear()
			s.m.Clear()
			s.mm.Clear()
		}
	}
}

// restoreOp restores handles of one file as they are.
func restoreOp(t testing.TB, s *opState, file []byte, lists []snapshot.ListHandle) {
	t.Helper()
	for _, l := range lists {
		must(t, s.ops.Restore(bytes.NewReader(file), int64(len(file)), l))
	}
}

// A snapshot of operator state is the state at its moment, however long writing it takes and whatever happens meanwhile.
func TestOperatorSnapshotsAreOfTheirMoment(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	s := newOpState(t)
	var wg sync.WaitGroup
	for range 60 {
		for range rnd.IntN(60) {
			s.change(rnd)
		}
		snap, want := s.ops.Snapshot(), s.show()
		wg.Go(func() { // ends with the comparison
			var b bytes.Buffer
			if _, err := snap.WriteTo(&b); err != nil {
				t.Error(err)
				return
			}
			r := newOpState(t)
			restoreOp(t, r, b.Bytes(), snap.Lists())
			if got := r.show(); got != want {
				t.Errorf("restored\n%s, want\n%s", got, want)
			}
		})
	}
	wg.Wait()
}

func TestOperatorListsAreDealtByOffsets(t *testing.T) {
	s := newOpState(t)
	const n = 60_000 // several blocks
	for i := range n {
		s.list.Add(fmt.Sprint(i))
	}
	snap := s.ops.Snapshot()
	var b bytes.Buffer
	_, err := snap.WriteTo(&b)
	must(t, err)
	lists := snap.Lists()
	if len(lists) != 5 || lists[0].Name != "list" || lists[0].Mode != snapshot.Split || lists[2].Mode != snapshot.Union || lists[3].Mode != snapshot.Broadcast {
		t.Fatalf("lists %v", lists)
	}
	var got []string
	for i := range 3 {
		l := lists[0]
		l.Offsets = l.Offsets[i*n/3 : (i+1)*n/3]
		r := newOpState(t)
		restoreOp(t, r, b.Bytes(), []snapshot.ListHandle{l})
		got = slices.AppendSeq(got, r.list.All())
	}
	if len(got) != n || got[n-1] != fmt.Sprint(n-1) || !slices.Equal(got, slices.Collect(s.list.All())) {
		t.Errorf("%d elements", len(got))
	}
}

func TestOperatorRestoreRefuses(t *testing.T) {
	s := newOpState(t)
	s.list.Add("a")
	snap := s.ops.Snapshot()
	var b bytes.Buffer
	_, err := snap.WriteTo(&b)
	must(t, err)
	file, l := b.Bytes(), snap.Lists()[0]
	restore := func(ops *Operator, l snapshot.ListHandle) error {
		return ops.Restore(bytes.NewReader(file), int64(len(file)), l)
	}

	var union UnionList[string]
	ops := NewOperator()
	must(t, union.Bind(ops, Spec{Name: "list"}))
	var e *SchemaError
	if err := restore(ops, l); !errors.As(err, &e) || e.State != "list" {
		t.Errorf("another mode: %v", err)
	}
	none := NewOperator()
	if err := restore(none, l); !errors.As(err, &e) || e.Declared != "" {
		t.Errorf("not declared: %v", err)
	}
	none.AllowDropped()
	must(t, restore(none, l))
	if !slices.Equal(none.Dropped(), []string{"list"}) {
		t.Errorf("dropped %v", none.Dropped())
	}
	renamed := NewOperator()
	var list OperatorList[string]
	must(t, list.Bind(renamed, Spec{Name: "new", Was: "list"}))
	must(t, restore(renamed, l))
	if list.Len() != 1 {
		t.Error("the renamed list is empty")
	}
	for _, off := range []int64{-1, 0, int64(len(file)), 1 << 60} {
		l.Offsets = []int64{off}
		if err := restore(newOpState(t).ops, l); !errors.Is(err, ErrCorrupt) {
			t.Errorf("offset %d: %v", off, err)
		}
	}
	if err := new(OperatorList[int]).Bind(ops, Spec{Name: "ttl", TTL: 1}); err == nil || !strings.Contains(err.Error(), "does not expire") {
		t.Errorf("time to live: %v", err)
	}
	if err := new(OperatorList[int]).Bind(ops, Spec{Name: "list"}); err == nil || !strings.Contains(err.Error(), "declared twice") {
		t.Errorf("twice: %v", err)
	}
}
