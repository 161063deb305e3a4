package operator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/graph"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stub is an operator with one output, and with whatever input a test gives it.
type stub struct {
	Base
	Control
	out *Emitter[int64]
	in  In[int64]
}

func newStub() *stub {
	s := &stub{out: &Emitter[int64]{}}
	s.out.Init()
	return s
}

func (s *stub) Input(int) any         { return s.in }
func (s *stub) Output(tag string) any { return s.out }

// seen is an In that notes what it is told.
type seen struct {
	lines []string
	fail  error
}

func (s *seen) add(format string, args ...any) error {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
	return s.fail
}

func (s *seen) Push(b *Batch[int64]) error       { return s.add("%v@%v", b.Values, times(b.Times)) }
func (s *seen) Watermark(t base.EventTime) error { return s.add("w%d", t) }
func (s *seen) Idle(idle bool) error             { return s.add("idle %v", idle) }
func (s *seen) EndOfData(drained bool) error     { return s.add("end %v", drained) }
func (s *seen) take() string                     { defer func() { s.lines = nil }(); return strings.Join(s.lines, " ") }
func times(ts []base.EventTime) (all []string) {
	for _, t := range ts {
		all = append(all, tell(t))
	}
	return all
}
func tell(t base.EventTime) string {
	if t == base.NoTime {
		return "-"
	}
	return fmt.Sprint(int64(t))
}

// rig is a writer with the receivers of its partition.
type rig struct {
	*testing.T
	op     *stub
	writer Writer
	gates  []*exchange.Gate
}

var wide = exchange.Limits{Batches: 1 << 20}

func newRig(t *testing.T, receivers int, e *Edge[int64], kind graph.Partitioning, change ...func(*Sending, *exchange.Limits)) *rig {
	t.Helper()
	r := &rig{T: t, op: newStub()}
	limits := wide
	s := Sending{Kind: kind, Receivers: receivers, Context: t.Context()}
	for _, c := range change {
		c(&s, &limits)
	}
	var cs []*exchange.Channel
	for range receivers {
		g := exchange.NewGate(1, exchange.NewBell())
		r.gates = append(r.gates, g)
		cs = append(cs, g.Channel(0))
	}
	s.Partition = exchange.NewPartition(cs, limits, exchange.NewBell())
	w, err := e.Writer(r.op, "", s)
	if err != nil {
		t.Fatal(err)
	}
	r.writer = w
	return r
}

// send emits values, each with itself as its timestamp, and flushes the chain, not the writer.
func (r *rig) send(values ...int64) error {
	for _, v := range values {
		r.op.out.EmitAt(v, base.EventTime(v))
	}
	return r.op.out.Flush()
}

func (r *rig) mustSend(values ...int64) {
	r.Helper()
	if err := r.send(values...); err != nil {
		r.Fatal(err)
	}
}

// batches are the batches that receiver i has got since the last call; control elements are nil.
func (r *rig) batches(i int) (all []*Batch[int64]) {
	for {
		_, e, ok := r.gates[i].Next()
		if !ok {
			return all
		}
		b, _ := e.Payload.(*Batch[int64])
		all = append(all, b)
	}
}

// values are the records that receiver i has got since the last call.
func (r *rig) values(i int) (all []int64) {
	r.Helper()
	for _, b := range r.batches(i) {
		if b == nil {
			continue
		}
		for j, v := range b.Values {
			if b.Times[j] != base.EventTime(v) {
				r.Errorf("record %d has the timestamp %d", v, b.Times[j])
			}
		}
		all = append(all, b.Values...)
		b.Release()
	}
	return all
}

func (r *rig) flush() {
	r.Helper()
	if err := r.writer.Flush(); err != nil {
		r.Fatal(err)
	}
	if r.writer.Held() {
		r.Error("it holds records after a flush")
	}
}

func upTo(n int) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = int64(i + 1)
	}
	return all
}

// byItself keys each record by its value.
func byItself(t *testing.T) *Edge[int64] {
	t.Helper()
	keys, err := codec.KeyFor[int64]()
	if err != nil {
		t.Fatal(err)
	}
	return &Edge[int64]{Hasher: func() func([]int64, []uint64) error {
		return func(values []int64, hashes []uint64) error {
			if i := slices.Index(values, -1); i >= 0 {
				return errors.New("the key -1 has no hash")
			}
			keys.HashAll(hashes, values)
			return nil
		}
	}}
}

// TestHash: a record goes to the owner of its key's group, with its hash.
func TestHash(t *testing.T) {
	keys, _ := codec.KeyFor[int64]()
	for _, n := range []int{1, 2, 3, 7} {
		r := newRig(t, n, byItself(t), graph.Hash)
		r.mustSend(upTo(5000)...)
		r.flush()
		var all []int64
		for i := range n {
			for _, b := range r.batches(i) {
				for j, v := range b.Values {
					if h := keys.Hash(v); b.Hashes[j] != h || base.OwnerOf(h, n) != i || b.Times[j] != base.EventTime(v) {
						t.Fatalf("record %d, time %d, hash %x came to subtask %d of %d", v, b.Times[j], b.Hashes[j], i, n)
					}
				}
				if len(b.Hashes) != len(b.Values) || len(b.Times) != len(b.Values) {
					t.Fatalf("%d values, %d times, %d hashes", len(b.Values), len(b.Times), len(b.Hashes))
				}
				all = append(all, b.Values...)
				b.Release()
			}
		}
		if slices.Sort(all); !slices.Equal(all, upTo(5000)) {
			t.Errorf("%d receivers got %d records", n, len(all))
		}
		if err := r.send(7, -1); err == nil || err.Error() != "the key -1 has no hash" {
			t.Errorf("got %v", err)
		}
	}
}

// TestRebalance: everyone gets as many, and the senders do not all begin with receiver 0.
func TestRebalance(t *testing.T) {
	for _, kind := range []graph.Partitioning{graph.Rebalance, graph.Rescale} {
		for subtask := range 5 {
			r := newRig(t, 3, &Edge[int64]{}, kind, func(s *Sending, _ *exchange.Limits) { s.Subtask = subtask })
			r.mustSend(1)
			r.flush()
			for i := range 3 {
				if got, want := len(r.values(i)), 0; (i == subtask%3) != (got == 1) {
					t.Errorf("%v: receiver %d got %d, want %d", kind, i, got, want)
				}
			}
			r.mustSend(upTo(3000)...)
			r.flush()
			for i := range 3 {
				if got := len(r.values(i)); got != 1000 {
					t.Errorf("%v: receiver %d got %d of 3000", kind, i, got)
				}
			}
		}
	}
}

func TestGlobalAndForward(t *testing.T) {
	r := newRig(t, 3, &Edge[int64]{}, graph.Global)
	r.mustSend(upTo(100)...)
	r.flush()
	if a, b := r.values(0), append(r.values(1), r.values(2)...); !slices.Equal(a, upTo(100)) || len(b) > 0 {
		t.Errorf("receiver 0 got %v, the others %v", a, b)
	}
	r = newRig(t, 1, &Edge[int64]{}, graph.Forward)
	r.mustSend(upTo(100)...)
	r.flush()
	if got := r.values(0); !slices.Equal(got, upTo(100)) {
		t.Errorf("got %v", got)
	}
}

func TestCustom(t *testing.T) {
	r := newRig(t, 3, &Edge[int64]{Choose: func(v int64, n int) int { return int(v) % (n + 1) }}, graph.Custom)
	r.mustSend(1, 2, 4, 5, 6, 8)
	r.flush()
	for i, want := range [][]int64{{4, 8}, {1, 5}, {2, 6}} {
		if got := r.values(i); !slices.Equal(got, want) {
			t.Errorf("receiver %d got %v, want %v", i, got, want)
		}
	}
	if err := r.send(3); err == nil || err.Error() != "partition function returned 3 for 3 receivers: it must return 0 to 2" {
		t.Errorf("got %v", err)
	}
	r = newRig(t, 2, &Edge[int64]{Choose: func(int64, int) int { return -1 }}, graph.Custom)
	if err := r.send(3); err == nil || !strings.Contains(err.Error(), "returned -1 for 2 receivers") {
		t.Errorf("got %v", err)
	}
}

// TestBroadcast: everyone gets the same batch, which goes back to its pool when the last one has released it.
func TestBroadcast(t *testing.T) {
	r := newRig(t, 3, &Edge[int64]{}, graph.Broadcast)
	r.mustSend(1, 2, 3)
	r.flush()
	a, b, c := r.batches(0)[0], r.batches(1)[0], r.batches(2)[0]
	if a != b || b != c || !slices.Equal(a.Values, []int64{1, 2, 3}) {
		t.Fatalf("got %p %p %p", a, b, c)
	}
	a.Release()
	b.Release()
	if len(c.Values) != 3 {
		t.Error("it was cleared while it was held")
	}
	c.Release()
	if p := r.writer.(*writer[int64]).pool; len(p.free) != 1 || len(c.Values) != 0 || c.Values[:3][1] != 0 {
		t.Errorf("%d batches in the pool, values %v", len(p.free), c.Values[:3])
	}
}

// TestABroadcastThatIsCancelled gives up the shares of the receivers that it did not reach.
func TestABroadcastThatIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := newRig(t, 3, &Edge[int64]{}, graph.Broadcast, func(s *Sending, l *exchange.Limits) {
		s.Context, l.Batches, s.BatchMost = ctx, 1, 1
	})
	r.mustSend(1)
	r.gates[0].Close() // receiver 0 takes everything, receiver 1 nothing
	cancel()
	if err := r.send(2); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	for i := range 3 {
		for _, b := range r.batches(i) {
			b.Release()
		}
	}
	if p := r.writer.(*writer[int64]).pool; len(p.free) != 2 {
		t.Errorf("%d batches are back, want 2", len(p.free))
	}
}

// TestBatchesGrowAndShrink with the traffic.
func TestBatchesGrowAndShrink(t *testing.T) {
	r := newRig(t, 1, &Edge[int64]{}, graph.Forward)
	sizes := func() (all []int) {
		for _, b := range r.batches(0) {
			all = append(all, b.Len())
			b.Release()
		}
		return all
	}
	r.mustSend(upTo(4000)...)
	if got := sizes(); !slices.Equal(got, []int{16, 32, 64, 128, 256, 512, 1024, 1024}) {
		t.Errorf("batches of %v", got)
	}
	r.flush()
	if got := sizes(); !slices.Equal(got, []int{4000 - 3056}) {
		t.Errorf("flushed %v", got)
	}
	for range 10 {
		r.mustSend(1)
		r.flush()
	}
	sizes()
	r.mustSend(upTo(100)...)
	if got := sizes(); !slices.Equal(got, []int{16, 32}) {
		t.Errorf("after low traffic, batches of %v", got)
	}
}

func TestBatchMost(t *testing.T) {
	for _, most := range []int{1, 5, 100} {
		r := newRig(t, 1, &Edge[int64]{}, graph.Forward, func(s *Sending, _ *exchange.Limits) { s.BatchMost = most })
		r.mustSend(upTo(1000)...)
		for _, b := range r.batches(0) {
			if b.Len() > most {
				t.Errorf("a batch of %d, want %d at most", b.Len(), most)
			}
		}
	}
	if n := capacityOf[[4096]byte](); n != recordsAtLeast {
		t.Errorf("batches of %d large records", n)
	}
	if n := capacityOf[struct{}](); n != batchMost {
		t.Errorf("batches of %d empty records", n)
	}
	if n := capacityOf[[32]int64](); n != 128 {
		t.Errorf("batches of %d records of 256 bytes", n)
	}
}

// TestFlushRoom sends where there is room only.
func TestFlushRoom(t *testing.T) {
	r := newRig(t, 2, &Edge[int64]{}, graph.Rebalance, func(_ *Sending, l *exchange.Limits) { l.Batches = 1 })
	r.mustSend(1, 2)
	r.flush()
	first := r.batches(1) // receiver 1 takes, receiver 0 does not
	r.mustSend(3, 4)
	if err := r.writer.FlushRoom(); err != nil || !r.writer.Held() {
		t.Errorf("%v, held %v", err, r.writer.Held())
	}
	if got := r.values(1); len(first) != 1 || !slices.Equal(got, []int64{4}) {
		t.Errorf("receiver 1 got %v", got)
	}
	r.batches(0)
	if err := r.writer.FlushRoom(); err != nil || r.writer.Held() {
		t.Errorf("%v, held %v", err, r.writer.Held())
	}
	if got := r.values(0); !slices.Equal(got, []int64{3}) {
		t.Errorf("receiver 0 got %v", got)
	}
}

// TestControlGoesBehindRecords, and to every receiver.
func TestControlGoesBehindRecords(t *testing.T) {
	r := newRig(t, 2, &Edge[int64]{}, graph.Global)
	r.op.out.Emit(1)
	for _, err := range []error{r.op.out.Watermark(5), r.op.out.Idle(true), r.op.out.EndOfData(true)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"1 w5 idle end", "w5 idle end"} {
		var got []string
		for {
			_, e, ok := r.gates[i].Next()
			if !ok {
				break
			}
			switch e.Kind {
			case exchange.Data:
				got = append(got, fmt.Sprint(e.Payload.(*Batch[int64]).Values[0]))
			case exchange.Watermark:
				got = append(got, fmt.Sprint("w", int64(e.Time)))
			case exchange.Status:
				got = append(got, "idle")
			case exchange.EndOfData:
				got = append(got, "end")
			}
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("receiver %d got %s, want %s", i, g, want)
		}
	}
}

// TestEmitter: what is emitted has the timestamp at hand, or its own.
func TestEmitter(t *testing.T) {
	in := &seen{}
	e := &Emitter[int64]{}
	e.Init()
	e.To(in)
	e.Emit(1)
	e.At(10)
	e.Emit(2)
	e.EmitAt(3, 99)
	e.Emit(4)
	if !e.Pending() || e.Time() != 10 {
		t.Errorf("pending %v, time %d", e.Pending(), e.Time())
	}
	if err := e.Watermark(7); err != nil {
		t.Error(err)
	}
	if got, want := in.take(), "[1 2 3 4]@[- 10 99 10] w7"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for range emitterRecords - 1 {
		e.Emit(0)
	}
	if in.take() != "" {
		t.Error("it pushed before it was full")
	}
	e.EmitAt(5, 6)
	e.Emit(7)
	if len(in.lines) != 1 || !strings.HasSuffix(in.take(), "10 6]") || e.Sent() != 4+emitterRecords {
		t.Errorf("sent %d", e.Sent())
	}
	if err := e.Flush(); err != nil || in.take() != "[7]@[10]" {
		t.Errorf("%v", err)
	}
}

func TestStamp(t *testing.T) {
	in := &seen{}
	e := &Emitter[int64]{}
	e.Init()
	e.To(in)
	e.Stamp(func(b *Batch[int64]) error { b.Times[0] = 42; return nil })
	e.Emit(1)
	e.Push()
	if got := in.take(); got != "[1]@[42]" {
		t.Errorf("got %s", got)
	}
	e.Stamp(func(*Batch[int64]) error { return errors.New("no time") })
	e.Emit(2)
	if err := e.Flush(); err == nil || in.take() != "" {
		t.Errorf("got %v", err)
	}
}

// TestAnErrorStays until the operator asks for it, and for good.
func TestAnErrorStays(t *testing.T) {
	first, second := &seen{fail: errors.New("planted")}, &seen{}
	e := &Emitter[int64]{}
	e.Init()
	e.To(first)
	e.To(second)
	e.Emit(1)
	e.Push()
	e.Emit(2)
	if err := e.Flush(); err != first.fail {
		t.Errorf("got %v", err)
	}
	if err := e.Watermark(1); err != first.fail {
		t.Errorf("got %v", err)
	}
	if got := first.take() + second.take(); got != "[1]@[-]" {
		t.Errorf("after an error: %s", got)
	}
}

// TestReader lends a batch in slices, with the hashes that belong to them.
func TestReader(t *testing.T) {
	r := newRig(t, 1, byItself(t), graph.Hash)
	r.mustSend(upTo(16)...)
	b := r.batches(0)[0]
	to := newStub()
	var got []int64
	to.in = pushing(func(lent *Batch[int64]) error {
		for i, v := range lent.Values {
			if lent.Hashes[i] != b.Hashes[v-1] || lent.Times[i] != base.EventTime(v) {
				t.Errorf("record %d was lent with hash %x", v, lent.Hashes[i])
			}
		}
		got = append(got, lent.Values...)
		return nil
	})
	reader, err := (&Edge[int64]{}).Reader(to, 0)
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < 16; from += 5 {
		if err := reader.Push(b, from, min(16, from+5)); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, upTo(16)) {
		t.Errorf("got %v", got)
	}
}

type pushing func(*Batch[int64]) error

func (p pushing) Push(b *Batch[int64]) error   { return p(b) }
func (pushing) Watermark(base.EventTime) error { return nil }
func (pushing) Idle(bool) error                { return nil }
func (pushing) EndOfData(bool) error           { return nil }

func TestChain(t *testing.T) {
	from, to := newStub(), newStub()
	in := &seen{}
	to.in = in
	if err := (&Edge[int64]{}).Chain(from, to, "", 0); err != nil {
		t.Fatal(err)
	}
	from.out.Emit(1)
	if err := from.out.Flush(); err != nil || in.take() != "[1]@[-]" {
		t.Errorf("%v", err)
	}
	if err := (&Edge[string]{}).Chain(from, to, "", 0); err == nil {
		t.Error("strings were joined to int64s")
	}
	if _, err := (&Edge[string]{}).Reader(to, 0); err == nil {
		t.Error("an int64 input reads strings")
	}
}

func TestCheck(t *testing.T) {
	if err := (&Edge[chan int]{}).Check(); err == nil {
		t.Error("channels can travel")
	}
	if err := (&Edge[int64]{}).Check(); err != nil {
		t.Error(err)
	}
}

// TestReleasedBatchesAreUsedAgain, also by another goroutine's release, and never with what they held.
func TestReleasedBatchesAreUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool[*int]{}
		b := p.get(16, true)
		x := 1
		b.Values, b.Times, b.Hashes = append(b.Values, &x), append(b.Times, 1), append(b.Hashes, 1)
		b.Retain(1)
		go b.Release()
		synctest.Wait()
		if len(p.free) != 0 || len(b.Values) != 1 {
			t.Fatal("it was released by one of two holders")
		}
		b.Release()
		if b.Values[:1][0] != nil {
			t.Error("it keeps a value alive")
		}
		if again := p.get(8, true); again != b || again.Len() != 0 || again.refs.Load() != 1 {
			t.Error("it was not used again")
		}
		b.Release()
		if larger := p.get(32, true); larger == b || cap(larger.Values) < 32 || cap(larger.Hashes) < 32 {
			t.Error("a batch that is too small was used again")
		}
	})
}

// TestNoAllocations counts those of a record's way: emitter, writer, channel, reader, and back to the pool.
func TestNoAllocations(t *testing.T) {
	for _, test := range []struct {
		name string
		kind graph.Partitioning
		edge *Edge[int64]
	}{{"forward", graph.Forward, &Edge[int64]{}}, {"hash", graph.Hash, byItself(t)}, {"rebalance", graph.Rebalance, &Edge[int64]{}}, {"broadcast", graph.Broadcast, &Edge[int64]{}}} {
		n := 3
		if test.kind == graph.Forward {
			n = 1
		}
		r := newRig(t, n, test.edge, test.kind)
		to := newStub()
		sum := int64(0)
		to.in = pushing(func(b *Batch[int64]) error {
			for _, v := range b.Values {
				sum += v
			}
			return nil
		})
		reader, err := (&Edge[int64]{}).Reader(to, 0)
		if err != nil {
			t.Fatal(err)
		}
		round := func() {
			for v := range int64(10_000) {
				r.op.out.Emit(v)
			}
			if r.op.out.Flush() != nil || r.writer.Flush() != nil {
				t.Fatal("it was not sent")
			}
			for _, g := range r.gates {
				for {
					_, e, ok := g.Next()
					if !ok {
						break
					}
					if reader.Push(e.Payload, 0, e.Payload.Len()) != nil {
						t.Fatal("it was not taken")
					}
					e.Payload.Release()
				}
			}
		}
		round() // the batches grow
		round()
		if got := testing.AllocsPerRun(5, round); got > 0 {
			t.Errorf("%s: %v allocations for 10,000 records", test.name, got)
		}
		if sum == math.MaxInt64 {
			t.Fatal(sum)
		}
	}
}
