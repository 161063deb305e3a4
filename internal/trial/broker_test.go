package trial

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirstream/weir"
)

// broker is an outside system with transactions, as Kafka is one. A producer is named by its job and subtask; whoever
// registers under that name fences those before it, whose open transaction is aborted.
//
//	begin --> open --seal--> sealed --commit--> committed
//	            \---------------\----abort----> aborted
type broker struct {
	// delay is slept by every operation; nil: none. fault may fail it before it acts, or after (an answer that is lost).
	delay func()
	fault func(op string) (before, after error)

	mu     sync.Mutex
	epochs map[string]int          // protected by mu; by producer
	txns   map[string]*transaction // protected by mu; by id
	order  []string                // protected by mu; ids of those committed
}

type transaction struct {
	Producer string
	Epoch    int
	Sealed   int64 // the checkpoint; -1: open
	State    txnState
	Lines    []string
}

type txnState int

const (
	pending txnState = iota
	committed
	aborted
)

var (
	errFenced  = errors.New("broker: the producer is fenced: another one has registered under its name")
	errAborted = errors.New("broker: the transaction was aborted: its records are lost")
	errUnknown = errors.New("broker: the transaction is not known (any more): its records may be lost")
)

func newBroker() *broker {
	return &broker{epochs: map[string]int{}, txns: map[string]*transaction{}}
}

// clone is the broker as it is now, without faults.
func (b *broker) clone() *broker {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := newBroker()
	c.epochs, c.order = maps.Clone(b.epochs), slices.Clone(b.order)
	for id, t := range b.txns {
		copied := *t
		copied.Lines = slices.Clone(t.Lines)
		c.txns[id] = &copied
	}
	return c
}

// do is one operation: it takes its time and may fail.
func (b *broker) do(op string, act func() error) error {
	if b.delay != nil {
		b.delay()
	}
	var before, after error
	if b.fault != nil {
		before, after = b.fault(op)
	}
	if before != nil {
		return before
	}
	b.mu.Lock()
	err := act()
	b.mu.Unlock()
	return errors.Join(err, after)
}

func producerName(job string, subtask int) string { return fmt.Sprintf("%s/%d", job, subtask) }

// register fences the producer of a subtask, and those of subtasks that are no more: number i takes care of every one that is
// i modulo the parallelism. Their open transactions are aborted (B110); no other job's are, however alike the names.
func (b *broker) register(job string, subtask, of int) (epoch int, err error) {
	err = b.do("register", func() error {
		heirs := map[string]bool{producerName(job, subtask): true}
		for name := range b.epochs {
			var old int
			if rest, ok := strings.CutPrefix(name, job+"/"); ok {
				if _, err := fmt.Sscanf(rest, "%d", &old); err == nil && old >= of && old%of == subtask {
					heirs[name] = true
				}
			}
		}
		for name := range heirs {
			b.epochs[name]++
			b.abortLocked(name, func(t *transaction) bool { return t.Sealed < 0 })
		}
		epoch = b.epochs[producerName(job, subtask)]
		return nil
	})
	return epoch, err
}

// abortLocked aborts pending transactions of a producer.
func (b *broker) abortLocked(producer string, which func(*transaction) bool) {
	for _, t := range b.txns {
		if t.Producer == producer && t.State == pending && which(t) {
			t.State = aborted
		}
	}
}

// abandon aborts what a producer has sealed for checkpoints after c, which never completed.
func (b *broker) abandon(producer string, c int64) error {
	return b.do("abandon", func() error {
		b.abortLocked(producer, func(t *transaction) bool { return t.Sealed > c })
		return nil
	})
}

// send appends to a transaction, and begins it where it is new.
func (b *broker) send(id, producer string, epoch int, lines []string) error {
	return b.do("send", func() error {
		if b.epochs[producer] != epoch {
			return errFenced
		}
		t := b.txns[id]
		if t == nil {
			t = &transaction{Producer: producer, Epoch: epoch, Sealed: -1}
			b.txns[id] = t
		}
		if t.State != pending || t.Sealed >= 0 {
			return fmt.Errorf("broker: transaction %s takes no more records: %+v", id, t)
		}
		t.Lines = append(t.Lines, lines...)
		return nil
	})
}

// seal ends a transaction; it can then be committed by anybody who knows its id.
func (b *broker) seal(id, producer string, epoch int, checkpoint int64) error {
	return b.do("seal", func() error {
		if b.epochs[producer] != epoch {
			return errFenced
		}
		b.txns[id].Sealed = checkpoint
		return nil
	})
}

// commit makes a transaction's records visible, once.
func (b *broker) commit(id string) error {
	return b.do("commit", func() error {
		t := b.txns[id]
		switch {
		case t == nil:
			return fmt.Errorf("%w: %s", errUnknown, id)
		case t.State == aborted:
			return fmt.Errorf("%w: %s with %d records", errAborted, id, len(t.Lines))
		case t.Sealed < 0:
			return fmt.Errorf("broker: transaction %s is committed but was never sealed", id)
		case t.State == committed:
			return nil
		}
		t.State = committed
		b.order = append(b.order, id)
		return nil
	})
}

// read is what a reader sees that reads committed records only, in the order of the commits.
func (b *broker) read() (lines []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range b.order {
		lines = append(lines, b.txns[id].Lines...)
	}
	return lines
}

// left are the transactions that are neither committed nor aborted.
func (b *broker) left() (ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, t := range b.txns {
		if t.State == pending {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// topic is a two-phase sink into a broker.
type topic struct {
	broker *broker
	faults *faults
}

// sealed is its committable.
type sealed struct{ Txn string }

func (k topic) sink() weir.Sink[string] { return weir.Committing[string, sealed](k) }

type topicWriter struct {
	topic
	producer string
	epoch    int
	number   int
	lines    []string
}

// Writer implements weir.TwoPhase.
func (k topic) Writer(ctx weir.WriterContext) (weir.Writer[string], error) {
	if err := k.faults.meet("sink.open"); err != nil {
		return nil, err
	}
	subtask, of := ctx.Subtask()
	epoch, err := k.broker.register(ctx.Job(), subtask, of)
	return &topicWriter{topic: k, producer: producerName(ctx.Job(), subtask), epoch: epoch}, err
}

func (w *topicWriter) txn() string {
	return fmt.Sprintf("%s epoch %d number %d", w.producer, w.epoch, w.number)
}

// sendMost is how many lines a writer keeps to itself.
const sendMost = 50

// Write implements weir.Writer.
func (w *topicWriter) Write(line string, _ time.Time) error {
	if err := w.faults.meet("sink.write"); err != nil {
		return err
	}
	w.lines = append(w.lines, line)
	if len(w.lines) < sendMost {
		return nil
	}
	return w.Flush(false)
}

// Flush implements weir.Writer.
func (w *topicWriter) Flush(bool) error {
	if len(w.lines) == 0 {
		return nil
	}
	err := w.broker.send(w.txn(), w.producer, w.epoch, w.lines)
	w.lines = nil
	return err
}

// Close implements weir.Writer.
func (w *topicWriter) Close() error { return nil }

// Prepare implements weir.TwoPhase. No transaction is sealed that has no records (B112).
func (k topic) Prepare(w weir.Writer[string], checkpoint int64) ([]sealed, []byte, error) {
	tw := w.(*topicWriter)
	state := fmt.Appendf(nil, "%s %d", tw.producer, checkpoint)
	if err := k.faults.meet("sink.prepare"); err != nil {
		return nil, nil, err
	}
	if err := tw.Flush(false); err != nil {
		return nil, nil, err
	}
	id := tw.txn()
	k.broker.mu.Lock()
	begun := k.broker.txns[id] != nil
	k.broker.mu.Unlock()
	if !begun {
		return nil, state, nil
	}
	tw.number++
	return []sealed{{id}}, state, k.broker.seal(id, tw.producer, tw.epoch, checkpoint)
}

// Restore implements weir.TwoPhase.
func (k topic) Restore(_ weir.Writer[string], states [][]byte) error {
	for _, s := range states {
		var producer string
		var checkpoint int64
		if _, err := fmt.Sscanf(string(s), "%s %d", &producer, &checkpoint); err != nil {
			return fmt.Errorf("a writer's state %q: %w", s, err)
		}
		if err := k.broker.abandon(producer, checkpoint); err != nil {
			return err
		}
	}
	return k.faults.meet("sink.restore")
}

// Commit implements weir.TwoPhase. Of an answer that did not come it assumes nothing: the commit is asked for again (B113).
func (k topic) Commit(_ context.Context, cs []*weir.Commit[sealed]) error {
	if err := k.faults.meet("sink.commit"); err != nil {
		return err
	}
	for _, c := range cs {
		switch err := k.broker.commit(c.Value.Txn); {
		case errors.Is(err, errAborted) || errors.Is(err, errUnknown):
			c.Fail(weir.NonRecoverable(err))
		case err != nil:
			c.Retry()
		}
	}
	return nil
}

// Abort implements weir.TwoPhase.
func (k topic) Abort(context.Context, []sealed) error { return nil }

// TestBroker: the mock itself tells apart what it must.
func TestBroker(t *testing.T) {
	b := newBroker()
	epoch, _ := b.register("job1", 0, 1)
	other, _ := b.register("job10", 0, 1)
	for _, err := range []error{
		b.send("a", "job1/0", epoch, []string{"1"}), b.seal("a", "job1/0", epoch, 1), b.send("b", "job1/0", epoch, []string{"2"}),
		b.send("z", "job10/0", other, []string{"9"}), b.commit("a"), b.commit("a"),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if _, err := b.register("job1", 0, 1); err != nil {
		t.Error(err)
	}
	if err := b.send("b", "job1/0", epoch, nil); !errors.Is(err, errFenced) {
		t.Error("an old producer:", err)
	}
	if err := b.commit("b"); !errors.Is(err, errAborted) {
		t.Error("an aborted transaction:", err)
	}
	if err := b.commit("c"); !errors.Is(err, errUnknown) {
		t.Error("an unknown transaction:", err)
	}
	if got := b.left(); !slices.Equal(got, []string{"z"}) {
		t.Error("left:", got)
	}
	if got := b.read(); !slices.Equal(got, []string{"1"}) {
		t.Error("read:", got)
	}
}
