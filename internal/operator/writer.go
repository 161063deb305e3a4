package operator

import (
	"fmt"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/graph"
)

// writer spreads the records of one output over the channels of a partition. It gathers a batch for each channel, 16
// records at first; a batch that filled up doubles the channel's next one, a batch that was flushed well before halves it:
// so low traffic gets low latency and high traffic large batches.
type writer[T any] struct {
	kind      graph.Partitioning
	partition *exchange.Partition
	send      Sending
	pool      *pool[T]
	most      int
	open      []channel[T]
	held      int // channels with a batch begun
	turn      int // of Rebalance and Rescale
	hash      func([]T, []uint64) error
	choose    func(T, int) int
	hashes    []uint64
	hurry     bool // in front of a barrier: nothing waits
}

// channel is the batch being gathered for one receiver.
type channel[T any] struct {
	batch *Batch[T]
	want  int // records at which it is sent
}

func newWriter[T any](e *Edge[T], s Sending) *writer[T] {
	w := &writer[T]{kind: s.Kind, partition: s.Partition, send: s, pool: &pool[T]{}, most: capacityOf[T](), choose: e.Choose}
	if s.BatchMost > 0 {
		w.most = min(w.most, s.BatchMost)
	}
	n := s.Partition.Len()
	if s.Kind == graph.Broadcast {
		n = 1
	}
	w.open = make([]channel[T], n)
	for i := range w.open {
		w.open[i].want = min(batchLeast, w.most)
	}
	w.turn = s.Subtask % max(1, n) // so that the senders do not all begin with receiver 0
	if e.Hasher != nil {
		w.hash, w.hashes = e.Hasher(), make([]uint64, batchMost)
	}
	return w
}

// Push implements In.
func (w *writer[T]) Push(b *Batch[T]) error {
	switch w.kind {
	case graph.Hash:
		return w.byKey(b)
	case graph.Rebalance, graph.Rescale:
		return w.inTurn(b)
	case graph.Custom:
		return w.byChoice(b)
	case graph.Forward, graph.Broadcast, graph.Global:
		return w.run(0, b.Values, b.Times, nil)
	}
	panic(fmt.Sprintf("operator: partitioning %v", w.kind))
}

// byKey sends each record to the owner of its key's group, with the hash.
func (w *writer[T]) byKey(b *Batch[T]) error {
	for from := 0; from < len(b.Values); from += len(w.hashes) {
		to := min(from+len(w.hashes), len(b.Values))
		values, times, hashes := b.Values[from:to], b.Times[from:to], w.hashes[:to-from]
		if err := w.hash(values, hashes); err != nil {
			return err
		}
		if len(w.open) == 1 {
			if err := w.run(0, values, times, hashes); err != nil {
				return err
			}
			continue
		}
		for j, h := range hashes {
			c := &w.open[base.OwnerOf(h, len(w.open))]
			w.begin(c)
			g := c.batch
			g.Hashes = append(g.Hashes, h)
			g.Values = append(g.Values, values[j])
			g.Times = append(g.Times, times[j])
			if len(g.Values) >= c.want {
				if err := w.full(base.OwnerOf(h, len(w.open))); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (w *writer[T]) inTurn(b *Batch[T]) error {
	for j, v := range b.Values {
		if err := w.one(w.turn, v, b.Times[j]); err != nil {
			return err
		}
		if w.turn++; w.turn == len(w.open) {
			w.turn = 0
		}
	}
	return nil
}

func (w *writer[T]) byChoice(b *Batch[T]) error {
	for j, v := range b.Values {
		to := w.choose(v, len(w.open))
		if to < 0 || to >= len(w.open) {
			return fmt.Errorf("partition function returned %d for %d receivers: it must return 0 to %d", to, len(w.open), len(w.open)-1)
		}
		if err := w.one(to, v, b.Times[j]); err != nil {
			return err
		}
	}
	return nil
}

// one appends a record to the batch of channel to.
func (w *writer[T]) one(to int, v T, t base.EventTime) error {
	c := &w.open[to]
	w.begin(c)
	c.batch.Values = append(c.batch.Values, v)
	c.batch.Times = append(c.batch.Times, t)
	if len(c.batch.Values) < c.want {
		return nil
	}
	return w.full(to)
}

// run appends records that all go to channel to. hashes: nil but for a hash edge.
func (w *writer[T]) run(to int, values []T, times []base.EventTime, hashes []uint64) error {
	c := &w.open[to]
	for len(values) > 0 {
		w.begin(c)
		g := c.batch
		n := min(len(values), max(1, c.want-len(g.Values)))
		g.Values = append(g.Values, values[:n]...)
		g.Times = append(g.Times, times[:n]...)
		if hashes != nil {
			g.Hashes = append(g.Hashes, hashes[:n]...)
			hashes = hashes[n:]
		}
		values, times = values[n:], times[n:]
		if len(g.Values) >= c.want {
			if err := w.full(to); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin makes sure that the channel has a batch.
func (w *writer[T]) begin(c *channel[T]) {
	if c.batch == nil {
		c.batch = w.pool.get(c.want, w.hash != nil)
		w.held++
	}
}

// full sends a batch that has filled up.
func (w *writer[T]) full(to int) error {
	c := &w.open[to]
	c.want = min(2*c.want, w.most)
	return w.seal(to)
}

// seal gives the batch of channel to away.
func (w *writer[T]) seal(to int) error {
	b := w.open[to].batch
	w.open[to].batch = nil
	w.held--
	if w.kind != graph.Broadcast {
		return w.give(to, b)
	}
	n := w.partition.Len()
	b.Retain(n - 1)
	for i := range n {
		if err := w.give(i, b); err != nil {
			for range n - 1 - i {
				b.Release()
			}
			return err
		}
	}
	return nil
}

// give gives a sealed batch to channel i.
func (w *writer[T]) give(i int, b *Batch[T]) error {
	if w.hurry {
		w.partition.Put(i, b)
		return nil
	}
	return w.partition.Send(w.send.Context, i, b)
}

// Barrier implements Writer. What a broadcast edge carries acts on all receivers alike, and cannot be given to another one at
// another parallelism: so there the barrier stays in its place, and says so.
func (w *writer[T]) Barrier(b checkpoint.Barrier) error {
	w.hurry = true
	err := w.Flush()
	w.hurry = false
	if err != nil {
		return err
	}
	if w.kind == graph.Broadcast && (b.Alignment == checkpoint.Unaligned || b.Timeout > 0) {
		b.Alignment, b.Forced = checkpoint.Aligned, true
	}
	if b.Alignment == checkpoint.Unaligned {
		w.partition.Overtake(&b)
	} else {
		w.partition.Broadcast(exchange.Element{Kind: exchange.Barrier, Barrier: &b})
	}
	return nil
}

// Held implements Writer.
func (w *writer[T]) Held() bool { return w.held > 0 }

// Flush implements Writer.
func (w *writer[T]) Flush() error {
	for i := range w.open {
		if err := w.flush(i); err != nil {
			return err
		}
	}
	return nil
}

// FlushRoom implements Writer.
func (w *writer[T]) FlushRoom() error {
	for i := range w.open {
		if w.held == 0 {
			return nil
		}
		if w.kind == graph.Broadcast && !w.partition.Room() || w.partition.Full(i) {
			continue
		}
		if err := w.flush(i); err != nil {
			return err
		}
	}
	return nil
}

// flush sends the batch of channel i, if one was begun.
func (w *writer[T]) flush(i int) error {
	c := &w.open[i]
	if c.batch == nil {
		return nil
	}
	if len(c.batch.Values) < c.want/4 {
		c.want = max(min(batchLeast, w.most), c.want/2)
	}
	return w.seal(i)
}

// Partition implements Writer.
func (w *writer[T]) Partition() *exchange.Partition { return w.partition }

// Watermark implements Control: what was gathered goes first.
func (w *writer[T]) Watermark(t base.EventTime) error {
	return w.behind(exchange.Element{Kind: exchange.Watermark, Time: t})
}

// Idle implements Control.
func (w *writer[T]) Idle(idle bool) error {
	return w.behind(exchange.Element{Kind: exchange.Status, Idle: idle})
}

// EndOfData implements Control.
func (w *writer[T]) EndOfData(drained bool) error {
	return w.behind(exchange.Element{Kind: exchange.EndOfData, Drain: drained})
}

func (w *writer[T]) behind(e exchange.Element) error {
	if err := w.Flush(); err != nil {
		return err
	}
	w.partition.Broadcast(e)
	return nil
}
