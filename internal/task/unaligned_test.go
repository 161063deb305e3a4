package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

func unaligned(id base.CheckpointID) checkpoint.Barrier {
	return checkpoint.Barrier{ID: id, Location: "memory:", Alignment: checkpoint.Unaligned}
}

func timed(id base.CheckpointID) checkpoint.Barrier {
	return checkpoint.Barrier{ID: id, Location: "memory:", Alignment: checkpoint.Aligned, Timeout: time.Second}
}

// sendBarrier sends a barrier as a task does.
func (f *feed) sendBarrier(b checkpoint.Barrier) {
	if err := f.writer.Barrier(b); err != nil {
		panic(err)
	}
}

// full is the end of a plan whose output takes one batch, so that the task then takes no more input.
func full(_ *op, p *plan) { p.limits = exchange.Limits{Batches: 1} }

// gathered is an operator that hands on what records in flight are pushed into it.
type gathered struct {
	op
	values []int64
}

func (g *gathered) Input(int) any { return operator.In[int64](g) }
func (g *gathered) Push(b *operator.Batch[int64]) error {
	g.values = append(g.values, b.Values...)
	return nil
}

// inFlight is what a snapshot has in flight, by edge, as "in0: 1 2".
func (r *rig) inFlight(id base.CheckpointID) string {
	r.Helper()
	r.settle()
	s := r.up.parts[id]
	if s == nil {
		r.Fatalf("checkpoint %d was not acknowledged: %v", id, r.take())
	}
	var all []string
	for i, h := range s.Operators[0].Subtask.InFlight {
		records := recordsOf(r.T, h)
		if schema := s.Operators[0].InFlight[i]; schema.Edge != h.Edge || schema.Record == "" || h.Output || int(h.Records) != len(records) {
			r.Fatalf("edge %+v has %d records, but the handle is %+v of %+v", h.Edge, len(records), h, schema)
		}
		all = append(all, fmt.Sprintf("%s: %s", h.Edge.From, strings.Trim(fmt.Sprint(records), "[]")))
	}
	return strings.Join(all, ", ")
}

func recordsOf(t *testing.T, h snapshot.InFlightHandle) []int64 {
	g := &gathered{}
	reader, err := edge.Reader(g, 0)
	if err != nil {
		t.Fatal(err)
	}
	schema, _ := edge.Record()
	err = reader.Restore(h.Handle.Inline, operator.Share{Record: schema, All: true}, func(_ int, p exchange.Payload) error {
		return reader.Push(p, 0, p.Len())
	})
	if err != nil {
		t.Fatal(err)
	}
	return g.values
}

func (r *rig) expectInFlight(id base.CheckpointID, want string) {
	r.Helper()
	if got := r.inFlight(id); got != want {
		r.Fatalf("in flight at checkpoint %d: %q, want %q", id, got, want)
	}
}

// TestAnUnalignedBarrier is taken at once, though the output is full; what it overtook is recorded, and of the channel whose barrier has
// not come what comes until then. Nothing is lost on the way itself.
func TestAnUnalignedBarrier(t *testing.T) {
	rigged(t, one(3, full), func(r *rig) {
		r.feeds[0].send(1)
		r.settle() // the output is full
		r.take()
		r.feeds[0].send(2, 3)
		r.feeds[1].send(11)
		r.feeds[2].send(21)
		r.feeds[0].sendBarrier(unaligned(1))
		r.expect("a: snapshot 1")
		r.feeds[0].send(4)
		r.feeds[1].send(12)
		r.feeds[2].sendBarrier(unaligned(1))
		r.feeds[1].sendBarrier(unaligned(1))
		r.feeds[1].send(13)
		r.feeds[2].send(22)
		r.expect("a: release 1", "ack 1")
		r.expectInFlight(1, "in0: 2 3, in1: 11 12, in2: 21")
		var sent []string
		for s := r.sent(); s != ""; s = r.sent() {
			sent = append(sent, s)
			r.settle()
		}
		if got, want := strings.Join(sent, " "), "barrier1! 1 2 3 11 21 4 12 22 13"; got != want {
			r.Errorf("sent %s, want %s", got, want)
		}
	})
}

// TestTheBarrierOvertakesTheOutput too.
func TestTheBarrierOvertakesTheOutput(t *testing.T) {
	rigged(t, one(1, full), func(r *rig) {
		r.feeds[0].send(1)
		r.settle()
		r.feeds[0].sendBarrier(unaligned(1))
		r.settle()
		all := r.out.Urgent()
		if len(all) != 1 || all[0].Announced || all[0].Barrier.ID != 1 || all[0].Barrier.Alignment != checkpoint.Unaligned {
			r.Fatalf("the successor hears of %+v", all)
		}
		r.out.Record(0, 1)
		r.expectSent("1")
		if got := r.out.Recorded(0); len(got) != 1 {
			r.Errorf("overtaken were %d batches", len(got))
		} else {
			got[0].Release()
		}
	})
}

// TestTheRestOfABatch is in flight, in front of what is queued behind it.
func TestTheRestOfABatch(t *testing.T) {
	slowly := func(a *op, _ *plan) {
		a.record = slow(func() context.Context { return a.Runtime.Context }, time.Millisecond)
		a.quiet = true
	}
	rigged(t, one(2, slowly), func(r *rig) {
		var all []int64
		for v := range int64(100) {
			all = append(all, v)
		}
		r.feeds[0].send(all...)
		r.feeds[1].send(1000)
		pass(50*time.Millisecond + time.Microsecond)
		r.feeds[0].sendBarrier(unaligned(1))
		r.feeds[0].send(2000)
		r.feeds[1].sendBarrier(unaligned(1))
		pass(10 * time.Millisecond)
		r.settle()
		got := r.up.parts[1].Operators[0].Subtask.InFlight
		if len(got) == 0 {
			r.Fatal("nothing is in flight")
		}
		records := recordsOf(r.T, got[0])
		if first := records[0]; first <= 16 || first%16 == 0 || len(records) != 100-int(first) || records[len(records)-1] != 99 {
			r.Errorf("in flight are %v", records)
		}
		pass(100 * time.Millisecond)
	})
}

// TestABroadcastInput holds the snapshot back until its barrier comes in its place. Of the others what had been overtaken goes on, what
// came behind the barrier waits, and what is left of the first kind is in flight.
func TestABroadcastInput(t *testing.T) {
	beside := func(_ *op, p *plan) { p.broadcast = []bool{false, true, false} }
	rigged(t, one(3, beside), func(r *rig) {
		r.take()
		r.feeds[0].sendBarrier(unaligned(1))
		r.feeds[0].send(2) // behind: it waits
		r.expect()
		r.feeds[1].send(10)
		r.expect("a: 10")
		r.feeds[2].send(20)
		r.expect("a: 20")
		r.feeds[1].sendBarrier(unaligned(1))
		r.feeds[1].send(11)
		r.feeds[2].send(21)
		r.settle()
		lines := r.take()
		if lines[0] != "a: snapshot 1" {
			r.Errorf("it happened: %v", lines)
		}
		r.feeds[2].sendBarrier(unaligned(1))
		r.feeds[2].send(22)
		r.expectInFlight(1, "in2: 21")
		if got := r.sent(); !strings.HasPrefix(got, "barrier1! 10 20 ") {
			r.Errorf("sent %s", got)
		}
	})
}

// TestSealed: of what had arrived on a channel before its barrier, some is processed until the broadcast barrier comes, and the rest is in
// flight; nothing of what came behind is processed before.
func TestSealed(t *testing.T) {
	beside := func(a *op, p *plan) {
		p.broadcast = []bool{false, true}
		a.record = slow(func() context.Context { return a.Runtime.Context }, 2*time.Millisecond)
	}
	rigged(t, one(2, beside), func(r *rig) {
		r.feeds[0].send(1)
		pass(time.Millisecond)
		r.feeds[0].send(2)
		r.feeds[0].send(3)
		r.feeds[0].sendBarrier(unaligned(1))
		r.feeds[0].send(4)
		pass(2 * time.Millisecond)
		r.feeds[1].sendBarrier(unaligned(1))
		pass(10 * time.Millisecond)
		r.expectInFlight(1, "in0: 3")
		lines := slices.DeleteFunc(r.take(), func(line string) bool { return line == "ack 1" || line == "a: release 1" })
		if got := strings.Join(lines[3:], ", "); got != "a: 1, a: 2, a: snapshot 1, a: 3, a: 4" {
			r.Errorf("it happened: %s", got)
		}
	})
}

// TestABarrierInItsPlace has left nothing behind to record, beside one that overtook.
func TestABarrierInItsPlace(t *testing.T) {
	rigged(t, one(2), func(r *rig) {
		r.take()
		r.feeds[0].send(1)
		r.feeds[0].sendBarrier(timed(1))
		r.feeds[0].send(2)
		r.expect("a: 1")
		r.feeds[1].sendBarrier(unaligned(1))
		r.settle()
		r.expectInFlight(1, "")
		lines := r.take()
		if lines[0] != "a: snapshot 1" || !slices.Contains(lines, "a: 2") {
			r.Errorf("it happened: %v", lines)
		}
	})
}

// TestTheTimeout turns an aligned barrier into an unaligned one: both the one that waits for others, and those that lie in queues behind
// which the task does not come for want of room.
func TestTheTimeout(t *testing.T) {
	rigged(t, one(2, full), func(r *rig) {
		r.feeds[0].send(1)
		r.settle() // the output is full
		r.take()
		r.feeds[0].send(2)
		r.feeds[1].send(11)
		r.feeds[0].sendBarrier(timed(1))
		r.feeds[0].send(3)
		pass(999 * time.Millisecond)
		r.expect()
		pass(2 * time.Millisecond)
		r.expect("a: snapshot 1")
		r.feeds[1].send(12)
		r.feeds[1].sendBarrier(timed(1)) // late: it need not come in its place
		r.feeds[1].send(13)
		r.expect("a: release 1", "ack 1")
		r.expectInFlight(1, "in0: 2, in1: 11 12")
		if all := r.out.Urgent(); len(all) != 1 || all[0].Announced || all[0].Barrier.Timeout != 0 {
			r.Errorf("the successor hears of %+v", all)
		}
	})
}

// TestTimelyBarriers are aligned: nothing is in flight.
func TestTimelyBarriers(t *testing.T) {
	rigged(t, one(2), func(r *rig) {
		r.feeds[0].sendBarrier(timed(1))
		r.feeds[0].send(1)
		pass(900 * time.Millisecond)
		r.feeds[1].send(11)
		r.feeds[1].sendBarrier(timed(1))
		r.settle()
		r.expectInFlight(1, "")
		if all := r.out.Urgent(); len(all) != 1 || !all[0].Announced || all[0].Barrier.Timeout != time.Second {
			r.Errorf("the successor hears of %+v", all)
		}
		r.expectSent("11 barrier1 1")
		pass(time.Second)
	})
}

// TestAnEndWhileRecording counts as the barrier that will not come.
func TestAnEndWhileRecording(t *testing.T) {
	rigged(t, one(2, full), func(r *rig) {
		r.feeds[0].send(1)
		r.settle() // the output is full
		r.take()
		r.feeds[1].send(11)
		r.feeds[0].sendBarrier(unaligned(1))
		r.expect("a: snapshot 1")
		r.feeds[1].send(12)
		r.feeds[1].end()
		r.expect()
		r.feeds[1].gone()
		r.expect("a: release 1", "ack 1")
		r.expectInFlight(1, "in1: 11 12")
	})
}

// TestAForcedBarrier is sent on as what it was.
func TestAForcedBarrier(t *testing.T) {
	for _, b := range []checkpoint.Barrier{unaligned(1), timed(1)} {
		rigged(t, one(1, func(_ *op, p *plan) { p.broadcast = []bool{true} }), func(r *rig) {
			r.feeds[0].sendBarrier(b)
			r.settle()
			if all := r.out.Urgent(); len(all) != 1 || *all[0].Barrier != b {
				r.Errorf("the successor hears of %+v, want %+v", all, b)
			}
		})
	}
}

// counted is a payload that counts its holders.
type counted struct {
	exchange.Payload
	refs *atomic.Int64 // of all
}

func (c counted) Retain(n int) { c.refs.Add(int64(n)); c.Payload.Retain(n) }
func (c counted) Release()     { c.refs.Add(-1); c.Payload.Release() }

// countedEdge takes counted payloads out of its channels.
type countedEdge struct{ *operator.Edge[int64] }

func (e countedEdge) Reader(to operator.Operator, input int) (operator.Reader, error) {
	r, err := e.Edge.Reader(to, input)
	return countedReader{r}, err
}

type countedReader struct{ operator.Reader }

func (r countedReader) Push(p exchange.Payload, from, to int) error {
	return r.Reader.Push(p.(counted).Payload, from, to)
}

func (r countedReader) Append(dst []byte, sender int, p exchange.Payload, from int) ([]byte, error) {
	return r.Reader.Append(dst, sender, p.(counted).Payload, from)
}

// put sends a counted batch.
func (r *rig) put(channel int, refs *atomic.Int64, vs ...int64) {
	gate := exchange.NewGate(1, exchange.NewBell())
	f := newFeed(r.T, gate.Channel(0), 0)
	f.send(vs...)
	_, e, _ := gate.Next()
	refs.Add(1)
	r.feeds[channel].writer.Partition().Put(0, counted{e.Payload, refs})
}

// TestEverythingIsReleased however a checkpoint ends, while it records or is written.
func TestEverythingIsReleased(t *testing.T) {
	recording := func(r *rig, refs *atomic.Int64) {
		r.put(0, refs, 1)
		r.settle() // the output is full
		r.put(0, refs, 2)
		r.put(1, refs, 11)
		r.feeds[0].sendBarrier(unaligned(1))
		r.settle()
		r.put(1, refs, 12)
		if got := refs.Load(); got != 6 { // of three batches in queues, all recorded
			r.Fatalf("%d holders", got)
		}
	}
	broken := errors.New("no space left")
	ends := map[string]struct {
		write error // of an operator's state
		end   func(r *rig)
	}{
		"completed":     {nil, func(r *rig) { r.feeds[1].sendBarrier(unaligned(1)) }},
		"aborted":       {nil, func(r *rig) { r.task.Abort(1, 0) }},
		"subsumed":      {nil, func(r *rig) { r.feeds[0].sendBarrier(unaligned(2)); r.settle(); r.task.Abort(2, 0) }},
		"cancelled":     {nil, func(r *rig) { r.feeds[1].control(exchange.Element{Kind: exchange.CancelMarker, ID: 1}) }},
		"failed before": {broken, func(*rig) {}},
		"failed since":  {broken, func(r *rig) { r.feeds[1].sendBarrier(unaligned(1)) }},
	}
	for name, test := range ends {
		t.Run(name, func(t *testing.T) {
			refs := &atomic.Int64{}
			failing := one(2, full, func(a *op, p *plan) {
				p.wire = countedEdge{edge}
				if test.write != nil {
					a.write = func(storage.Writer) error { pass(time.Millisecond); return test.write }
				}
			})
			rigged(t, failing, func(r *rig) {
				recording(r, refs)
				test.end(r)
				pass(2 * time.Millisecond)
				for r.settle(); r.sent() != ""; {
					r.settle()
				}
				if got := refs.Load(); got != 0 {
					r.Errorf("%d holders in the end", got)
				}
			})
		})
		t.Run(name+" with the task", func(t *testing.T) {
			refs := &atomic.Int64{}
			rigged(t, one(2, full, func(_ *op, p *plan) { p.wire = countedEdge{edge} }), func(r *rig) {
				recording(r, refs)
				test.end(r)
				r.task.Cancel()
			})
			if got := refs.Load(); got != 0 {
				t.Errorf("%d holders in the end", got)
			}
		})
	}
}

// restoredFrom is a plan that goes on from a snapshot.
func restoredFrom(s *snapshot.TaskState, id base.CheckpointID) *Restore {
	r := &Restore{ID: id, Open: func(h snapshot.Handle) (storage.Reader, error) { return inline(h.Inline), nil }}
	for _, o := range s.Operators {
		r.Operators = append(r.Operators, &snapshot.Restored{Watermark: o.Subtask.Watermark, PendingWatermark: o.Subtask.PendingWatermark})
		for i, h := range o.Subtask.InFlight {
			r.InFlight = append(r.InFlight, snapshot.InFlightPart{InFlightHandle: h, Record: o.InFlight[i].Record, All: true})
		}
	}
	return r
}

// inline is a storage.Reader of bytes.
type inline []byte

func (b inline) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
func (b inline) Size() int64  { return int64(len(b)) }
func (b inline) Close() error { return nil }

// TestRestoredRecords come first, then what the senders send; the task has sent its watermark before it runs.
func TestRestoredRecords(t *testing.T) {
	var s *snapshot.TaskState
	rigged(t, one(2, full), func(r *rig) {
		r.feeds[0].watermark(5)
		r.feeds[1].watermark(7)
		r.feeds[0].send(1)
		r.settle()
		r.feeds[0].send(2, 3)
		r.feeds[1].send(11)
		r.feeds[0].watermark(50) // overtaken, and not kept
		r.feeds[0].sendBarrier(unaligned(1))
		r.feeds[1].sendBarrier(unaligned(1))
		r.settle()
		s = r.up.parts[1]
	})
	rigged(t, one(2, func(_ *op, p *plan) { p.restore = restoredFrom(s, 1) }), func(r *rig) {
		r.feeds[0].send(4)
		r.feeds[1].watermark(8)
		r.expect("INITIALIZING", "a: restore", "a: open", "RUNNING", "a: 2", "a: 3", "a: 11", "a: 4")
		r.feeds[0].watermark(6)
		r.expect("a: watermark 6")
		r.expectSent("w5 2 3 11 4 w6")
	})
}

// TestRestoredIntoTheChain: records of an edge that has become part of the chain are pushed first, into the operator that they were for.
func TestRestoredIntoTheChain(t *testing.T) {
	part := snapshot.InFlightPart{All: true}
	rigged(t, two(1), func(r *rig) { // an edge of two operators is told by their names
		schema, _ := edge.Record()
		part.Edge, part.Record = snapshot.Edge{From: "a", To: "b"}, schema
		reader, err := edge.Reader(&gathered{}, 0)
		if err != nil {
			r.Fatal(err)
		}
		gate := exchange.NewGate(1, exchange.NewBell())
		newFeed(r.T, gate.Channel(0), 0).send(1, 2)
		_, e, _ := gate.Next()
		if part.Handle.Inline, err = reader.Append(nil, 0, e.Payload, 0); err != nil {
			r.Fatal(err)
		}
	})
	into := func(_, _ *op, p *plan) {
		mark := &snapshot.Restored{Watermark: 5, PendingWatermark: base.NoTime}
		p.restore = &Restore{ID: 1, Operators: []*snapshot.Restored{mark, mark}, InFlight: []snapshot.InFlightPart{part},
			Open: func(h snapshot.Handle) (storage.Reader, error) { return inline(h.Inline), nil }}
	}
	rigged(t, two(1, into), func(r *rig) {
		r.expect("INITIALIZING", "a: restore", "b: restore", "b: open", "a: open", "b: 1", "b: 2", "RUNNING")
		r.expectSent("1 2 w5")
	})
	damaged := func(_, _ *op, p *plan) {
		part.Handle.Inline = part.Handle.Inline[:len(part.Handle.Inline)-1]
		into(nil, nil, p)
	}
	rigged(t, two(1, damaged), func(r *rig) {
		r.settle()
		got := r.take()
		if last := got[len(got)-1]; !strings.HasPrefix(last, "FAILED: ") || !strings.Contains(last, "damaged records in flight") {
			r.Errorf("it ended so: %s", last)
		}
	})
}

// TestNothingIsLostNorDoubled over a snapshot and a restore, whatever comes in whatever order: before the snapshot, in flight, and behind the
// restore are together what was sent, in order.
func TestNothingIsLostNorDoubled(t *testing.T) {
	for seed := range uint64(60) {
		lossless(t, rand.New(rand.NewPCG(seed, 9)))
	}
}

func lossless(t *testing.T, random *rand.Rand) {
	n := 1 + random.IntN(3)
	sent := make([][]int64, n)      // by channel
	processed := make([][]int64, n) // before the snapshot
	before := make([]int, n)        // sent before the barrier
	turning := random.IntN(2) == 0
	var s *snapshot.TaskState
	taken := false
	running := func(a *op, p *plan) {
		a.quiet = true
		a.record = func(v int64) error {
			pass(time.Duration(v % 7 * int64(time.Millisecond)))
			if i := v / 1e6; !taken {
				processed[i] = append(processed[i], v)
			}
			return nil
		}
		a.frozen = func(base.CheckpointID) (operator.Part, error) {
			taken = true
			return operator.Part{State: snapshot.Subtask{Watermark: base.NoTime, PendingWatermark: base.NoTime}}, nil
		}
	}
	rigged(t, one(n, running), func(r *rig) {
		sending := func(i int) {
			for range random.IntN(60) {
				sent[i] = append(sent[i], int64(i)*1e6+int64(len(sent[i])))
				r.feeds[i].op.out.Emit(sent[i][len(sent[i])-1])
			}
			if r.feeds[i].op.out.Flush() != nil || random.IntN(2) == 0 && r.feeds[i].writer.Flush() != nil {
				r.Fatal("the channel takes nothing")
			}
		}
		for range 10 * n {
			sending(random.IntN(n))
			pass(time.Duration(random.IntN(20)) * time.Millisecond)
		}
		for _, i := range random.Perm(n) {
			sending(i)
			before[i] = len(sent[i])
			b := unaligned(1)
			if turning {
				b = timed(1)
				b.Timeout = time.Duration(1+random.IntN(100)) * time.Millisecond
			}
			r.feeds[i].sendBarrier(b)
			sending(i)
			pass(time.Duration(random.IntN(40)) * time.Millisecond)
		}
		pass(time.Minute)
		r.settle()
		if s = r.up.parts[1]; s == nil {
			r.Fatal("the checkpoint was not acknowledged")
		}
	})
	again := make([][]int64, n)
	resumed := func(a *op, p *plan) {
		p.restore = restoredFrom(s, 1)
		a.quiet = true
		a.record = func(v int64) error { again[v/1e6] = append(again[v/1e6], v); return nil }
	}
	rigged(t, one(n, resumed), func(r *rig) {
		for i, f := range r.feeds {
			f.send(sent[i][before[i]:]...)
		}
		r.settle()
	})
	for i := range n {
		if got := append(processed[i], again[i]...); !slices.Equal(got, sent[i]) {
			t.Fatalf("of channel %d %d records were processed before the snapshot and %d after the restore, in all or in order not those %d that were sent, %d before the barrier",
				i, len(processed[i]), len(again[i]), len(sent[i]), before[i])
		}
	}
}
