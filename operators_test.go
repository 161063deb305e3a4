package weir

import (
	"testing"
	"time"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/task"
)

// firing registers a timer for each record, and counts what fires.
type firing struct {
	Fired *int `weir:"shared"`
}

func (f *firing) Process(ctx *KeyedContext[int64], v int64, _ Out[int64]) error {
	ctx.EventTimer(time.Unix(v, 0))
	return nil
}

func (f *firing) OnTimer(ctx *KeyedContext[int64], at Timer, out Out[int64]) error {
	*f.Fired++
	out.Emit(at.At.Unix())
	return nil
}

// behind is an In that notes records and watermarks.
type behind struct {
	records []int64
	mark    base.EventTime
}

func (b *behind) Push(batch *operator.Batch[int64]) error {
	b.records = append(b.records, batch.Values...)
	return nil
}
func (b *behind) Watermark(t base.EventTime) error { b.mark = t; return nil }
func (b *behind) Idle(bool) error                  { return nil }
func (b *behind) EndOfData(bool) error             { return nil }

// alone is a keyed operator outside of any task, and what lies behind it.
func alone(t *testing.T, fired *int, restored *operator.Restored) (operator.Operator, *behind) {
	t.Helper()
	env := NewTestEnv()
	env.From(FromSlice([]int64{})).KeyBy(func(v int64) int64 { return v }).Process(&firing{Fired: fired}).UID("firing")
	op := env.logical.Nodes[1].Factory.(task.Factory)()
	doing := ""
	rt := &operator.Runtime{Context: t.Context(), UID: "firing", Name: "firing", Parallelism: 1, Now: func() int64 { return 0 }, Doing: &doing}
	if err := op.Setup(rt); err != nil {
		t.Fatal(err)
	}
	after := &behind{mark: base.NoTime}
	op.Output("").(*operator.Emitter[int64]).To(after)
	if restored != nil {
		if err := op.Restore(restored); err != nil {
			t.Fatal(err)
		}
	}
	if err := op.Open(); err != nil {
		t.Fatal(err)
	}
	return op, after
}

// TestASnapshotBetweenTimers: timers fire in slices. A snapshot between two of them has the old watermark as the current one,
// and the new one as pending; what is restored goes on firing, and only then sends the watermark.
func TestASnapshotBetweenTimers(t *testing.T) {
	const timers = 300
	fired := 0
	op, after := alone(t, &fired, nil)
	keys, err := codec.KeyFor[int64]()
	if err != nil {
		t.Fatal(err)
	}
	b := &operator.Batch[int64]{}
	for v := range int64(timers) {
		b.Values, b.Times, b.Hashes = append(b.Values, v), append(b.Times, 0), append(b.Hashes, keys.Hash(v))
	}
	if err := op.Input(0).(operator.In[int64]).Push(b); err != nil {
		t.Fatal(err)
	}
	to := base.TimeOf(time.Unix(timers, 0))
	if err := op.Watermark(to); err != nil {
		t.Fatal(err)
	}
	lagging := op.(operator.Lagging)
	if fired != sliceMost || !lagging.Behind() || after.mark != base.NoTime || len(after.records) != sliceMost {
		t.Fatalf("after one slice %d timers have fired, behind %v, watermark %d", fired, lagging.Behind(), after.mark)
	}
	part, err := op.Snapshot(operator.Cut{ID: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := part.State
	if s.Watermark != base.NoTime || s.PendingWatermark != to {
		t.Errorf("the snapshot has the watermark %d, pending %d", s.Watermark, s.PendingWatermark)
	}
	for lagging.Behind() {
		if err := lagging.Continue(); err != nil {
			t.Fatal(err)
		}
	}
	if fired != timers || after.mark != to {
		t.Errorf("%d timers have fired, the watermark is %d", fired, after.mark)
	}

	w := storage.NewWriter(storage.Memory(), "memory:", storage.WriterOptions{})
	if err := part.Write(w, snapshot.Native, &s); err != nil {
		t.Fatal(err)
	}
	part.Release()
	again := 0
	op, after = alone(t, &again, &operator.Restored{
		Restored: snapshot.Restored{Keyed: s.Keyed, Watermark: s.Watermark, PendingWatermark: s.PendingWatermark},
		Open: func(h snapshot.Handle) (storage.Reader, error) {
			return storage.OpenHandle(storage.Memory(), "memory:", h)
		},
		OpenPages: func(h snapshot.Handle) (storage.Reader, error) {
			return storage.OpenPages(storage.Memory(), "memory:", h)
		},
	})
	lagging = op.(operator.Lagging)
	if !lagging.Behind() {
		t.Fatal("the restored operator does not know that it is behind")
	}
	for lagging.Behind() {
		if after.mark != base.NoTime {
			t.Fatal("the watermark was sent before the last timer")
		}
		if err := lagging.Continue(); err != nil {
			t.Fatal(err)
		}
	}
	if again != timers-sliceMost || after.mark != to || after.records[0] != sliceMost {
		t.Errorf("%d timers have fired again, the first at %d, watermark %d", again, after.records[0], after.mark)
	}
}

// TestARecordPathWithoutAllocations: emitters, keys, state and side outputs of a keyed operator.
func TestARecordPathWithoutAllocations(t *testing.T) {
	env := NewTestEnv()
	env.From(FromSlice([]int64{})).KeyBy(func(v int64) int64 { return v % 100 }).Scan("n", func(n, v int64) (int64, int64) { return n + 1, v })
	op := env.logical.Nodes[1].Factory.(task.Factory)()
	doing := ""
	if err := op.Setup(&operator.Runtime{Context: t.Context(), Parallelism: 1, Now: func() int64 { return 0 }, Doing: &doing}); err != nil {
		t.Fatal(err)
	}
	op.Output("").(*operator.Emitter[int64]).To(ignoring{})
	keys, err := codec.KeyFor[int64]()
	if err != nil {
		t.Fatal(err)
	}
	b := &operator.Batch[int64]{}
	for v := range int64(1000) {
		b.Values, b.Times, b.Hashes = append(b.Values, v), append(b.Times, 0), append(b.Hashes, keys.Hash(v%100))
	}
	in := op.Input(0).(operator.In[int64])
	push := func() {
		if err := in.Push(b); err != nil {
			t.Fatal(err)
		}
	}
	push()
	if got := testing.AllocsPerRun(20, push); got > 1 { // one for the method value, whatever the number of records
		t.Errorf("%v allocations for 1,000 records", got)
	}
}

type ignoring struct{}

func (ignoring) Push(*operator.Batch[int64]) error { return nil }
func (ignoring) Watermark(base.EventTime) error    { return nil }
func (ignoring) Idle(bool) error                   { return nil }
func (ignoring) EndOfData(bool) error              { return nil }
