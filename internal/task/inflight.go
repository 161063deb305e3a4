package task

import (
	"fmt"
	"io"
	"slices"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// Records in flight. An unaligned barrier overtakes what is queued in the channels, and what is left of the batch at hand: these
// go into the checkpoint. They are not copied but retained, from the snapshot on until the barrier has come on every channel,
// and then written by the upload, which waits for them.

// channel is where an input channel comes from.
type channel struct {
	link   int // index into Vertex.Inputs
	sender int // subtask
}

// flight is records of one channel that belong into a checkpoint.
type flight struct {
	channel int
	payload exchange.Payload
	from    int // the records before are processed
}

// recording is what the task gathers for one checkpoint.
type recording struct {
	barrier checkpoint.Barrier
	flights []flight // the rest of the batch at hand, or nothing; then, when it is over, all
	record  []bool   // by channel
}

// urgent tells the handler of barriers that come before everything that is queued.
func (t *Task) urgent() error {
	if t.spec.Gate == nil {
		return nil
	}
	for _, u := range t.spec.Gate.Urgent() {
		var e checkpoint.HandlerEvent
		switch {
		case u.Announced:
			e = checkpoint.BarrierAnnounced{Channel: u.Channel, Barrier: *u.Barrier}
		case !u.Ended:
			e = checkpoint.BarrierArrived{Channel: u.Channel, Barrier: *u.Barrier, Priority: true}
		case t.recording != nil:
			e = checkpoint.BarrierArrived{Channel: u.Channel, Barrier: t.recording.barrier, Priority: true}
		default: // given up meanwhile
			continue
		}
		if err := t.handle(e); err != nil {
			return err
		}
	}
	return nil
}

// prioritize lets an announced barrier overtake.
func (t *Task) prioritize(a checkpoint.Prioritize) error {
	b := t.spec.Gate.Prioritize(a.Channel, a.ID)
	if b == nil {
		return nil
	}
	return t.handle(checkpoint.BarrierArrived{Channel: a.Channel, Barrier: *b, Priority: true})
}

// startRecording begins to gather what is in flight in the channels of record. On a channel whose sender has ended no barrier will
// come; its end, which lies behind all records, counts as one, and overtakes as one.
func (t *Task) startRecording(b checkpoint.Barrier, record []bool) error {
	r := &recording{barrier: b, record: record}
	if rest := t.loop.batch; rest != nil && record[t.loop.channel] {
		rest.Retain(1)
		r.flights = append(r.flights, flight{t.loop.channel, rest, t.loop.offset})
	}
	t.recording = r
	for i, yes := range record {
		if !yes || !t.spec.Gate.Record(i, b.ID) {
			continue
		}
		if err := t.handle(checkpoint.BarrierArrived{Channel: i, Barrier: b, Priority: true}); err != nil {
			return err
		}
	}
	return nil
}

// stopRecording gives what was gathered to the upload.
func (t *Task) stopRecording(id base.CheckpointID) {
	r := t.endRecording(id)
	u := t.writing[id]
	if r == nil || u == nil {
		release(r)
		return
	}
	u.flights = r.flights
	if at, ok := t.handler.Timing(id); ok {
		t.aligned(&u.metrics, at)
	}
	close(u.recorded)
}

// dropRecording forgets what was gathered.
func (t *Task) dropRecording(id base.CheckpointID) { release(t.endRecording(id)) }

func (t *Task) endRecording(id base.CheckpointID) *recording {
	r := t.recording
	if r == nil || r.barrier.ID != id {
		return nil
	}
	t.recording = nil
	for i, yes := range r.record {
		if !yes {
			continue
		}
		for _, p := range t.spec.Gate.Recorded(i) {
			r.flights = append(r.flights, flight{channel: i, payload: p})
		}
	}
	return r
}

func release(r *recording) {
	if r != nil {
		releaseAll(r.flights)
	}
}

func releaseAll(flights []flight) {
	for _, f := range flights {
		f.payload.Release()
	}
}

// writeFlights writes the records in flight, a file for each edge, on the upload's goroutine.
func (t *Task) writeFlights(w storage.Writer, part *snapshot.OperatorPart, flights []flight) error {
	for i, l := range t.spec.Vertex.Inputs {
		of := slices.DeleteFunc(slices.Clone(flights), func(f flight) bool { return t.chain.channels[f.channel].link != i || f.from == f.payload.Len() })
		if len(of) == 0 {
			continue
		}
		h, err := t.writeEdge(w, i, of)
		if err != nil {
			return fmt.Errorf("records in flight: %w", err)
		}
		record, err := l.Edge.Wire.(operator.Wire).Record()
		if err != nil {
			return err
		}
		h.Edge = l.Edge.ID(l.From, l.To)
		part.Subtask.InFlight = append(part.Subtask.InFlight, h)
		part.InFlight = append(part.InFlight, snapshot.EdgeSchema{Edge: h.Edge, Record: record})
	}
	return nil
}

func (t *Task) writeEdge(w storage.Writer, link int, flights []flight) (h snapshot.InFlightHandle, err error) {
	o, err := w.Create(fmt.Sprintf("inflight-%d", link))
	if err != nil {
		return h, err
	}
	var buf []byte
	for _, f := range flights {
		c := t.chain.channels[f.channel]
		if buf, err = t.chain.readers[f.channel].Append(buf[:0], c.sender, f.payload, f.from); err == nil {
			_, err = o.Write(buf)
		}
		if err != nil {
			_ = o.Abort() // the first error counts
			return h, err
		}
		h.Records += int64(f.payload.Len() - f.from)
	}
	h.Handle, err = o.Commit()
	return h, err
}

// restoreFlights puts the records that were in flight in front of everything in their channels, where they are like any others.
// Those of an edge that has become part of the chain are pushed at once.
func (t *Task) restoreFlights() error {
	if t.spec.Restore == nil {
		return nil
	}
	queued := make([][]exchange.Payload, len(t.chain.readers))
	for _, p := range t.spec.Restore.InFlight {
		if err := t.restoreFlight(p, queued); err != nil {
			return fmt.Errorf("restoring records in flight on the edge %v from checkpoint %d: %w", p.Edge, t.spec.Restore.ID, err)
		}
	}
	for i, all := range queued {
		if len(all) > 0 {
			t.spec.Gate.Preload(i, all)
		}
	}
	return nil
}

func (t *Task) restoreFlight(p snapshot.InFlightPart, queued [][]exchange.Payload) error {
	records, err := t.readFlight(p.Handle)
	if err != nil {
		return err
	}
	v := t.spec.Vertex
	share := operator.Share{Record: p.Record, All: p.All, Turn: p.Turn, Of: p.Of, Subtask: t.spec.Subtask, Parallelism: v.Parallelism,
		Old: p.Old, OldParallelism: p.OldParallelism}
	for i, l := range v.Inputs {
		if l.Edge.ID(l.From, l.To) == p.Edge {
			share.Kind = l.Kind
			first := slices.IndexFunc(t.chain.channels, func(c channel) bool { return c.link == i })
			senders := l.Senders(t.spec.Subtask)
			return t.chain.readers[first].Restore(records, share, func(sender int, b exchange.Payload) error {
				to := first + channelOf(senders, sender)
				queued[to] = append(queued[to], b)
				return nil
			})
		}
	}
	for _, e := range v.Inner {
		if e.ID(v, v) == p.Edge {
			return t.pushFlight(e, records, share)
		}
	}
	return fmt.Errorf("the task has no such edge")
}

// channelOf is the channel, counted from the first of its link, for the records of a sender: his own, behind which his new ones will come;
// of one who sends here no more any, but one, so that his stay in order.
func channelOf(senders []int, sender int) int {
	if i := slices.Index(senders, sender); i >= 0 {
		return i
	}
	return sender % len(senders)
}

// pushFlight pushes records into the middle of the chain.
func (t *Task) pushFlight(e *graph.Edge, records []byte, share operator.Share) error {
	at := slices.IndexFunc(t.chain.nodes, func(n *graph.Node) bool { return n.ID == e.To })
	r, err := e.Wire.(operator.Wire).Reader(t.chain.operators[at], e.Input)
	if err != nil {
		return err
	}
	return r.Restore(records, share, func(_ int, b exchange.Payload) error {
		return t.as(at, func() error { return r.Push(b, 0, b.Len()) })
	})
}

func (t *Task) readFlight(h snapshot.Handle) ([]byte, error) {
	r, err := t.spec.Restore.Open(h)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
}

// resend sends again, behind what was restored, what the outputs had last heard of time: it may have been overtaken, and such elements are
// not kept. That an input was idle is not told again: it will be, when it has been so long enough.
func (t *Task) resend() error {
	r := t.spec.Restore
	if r == nil {
		return nil
	}
	for i, l := range t.spec.Vertex.Outputs {
		at := slices.IndexFunc(t.chain.nodes, func(n *graph.Node) bool { return n.ID == l.Edge.From })
		p := r.Operators[at]
		if p == nil || p.Watermark == base.NoTime {
			continue
		}
		w := t.chain.writers[i]
		if err := w.Flush(); err != nil {
			return err
		}
		w.Partition().Broadcast(exchange.Element{Kind: exchange.Watermark, Time: p.Watermark})
	}
	return nil
}
