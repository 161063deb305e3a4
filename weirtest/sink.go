package weirtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weirstream/weir"
)

// Sink collects what a job writes, exactly once: it is a two-phase sink into an outside world that the test looks at.
//
//	out := weirtest.NewSink[string]()
//	env.From(src).UID("src").To(out.Sink()).UID("out")
//	...
//	out.Expect(t, "a", "b", "c")
//
// Records are *pending* when they are written, and *committed* when their checkpoint has completed, or at the end of a job that takes
// none. What a failed attempt has written is aborted, and neither. Several jobs, and several goroutines, may use a Sink at
// once.
type Sink[T any] struct{ ledger *ledger[T] }

// NewSink is an empty sink.
func NewSink[T any]() *Sink[T] { return &Sink[T]{newLedger[T]()} }

// Sink is what a stream's To takes.
func (s *Sink[T]) Sink() weir.Sink[T] { return weir.Committing[T, sealed](collector[T]{s.ledger}) }

// Committed are the records that are visible, in the order in which they became so; those of one subtask are in their order.
func (s *Sink[T]) Committed() []T { return s.ledger.read(committed) }

// Pending are the records that were written but are not committed yet.
func (s *Sink[T]) Pending() []T { return s.ledger.read(pending) }

// By are the committed records of each key, in their order.
func (s *Sink[T]) By[K comparable](key func(T) K) map[K][]T {
	all := map[K][]T{}
	for _, v := range s.Committed() {
		all[key(v)] = append(all[key(v)], v)
	}
	return all
}

// Wait waits until at least n records are committed, and returns them. It fails where ctx is done before.
func (s *Sink[T]) Wait(ctx context.Context, n int) ([]T, error) {
	for {
		changed := s.ledger.watch()
		if got := s.Committed(); len(got) >= n {
			return got, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("weirtest: %d of %d records are committed, and %d pending: %w", len(s.Committed()), n, len(s.Pending()), context.Cause(ctx))
		}
	}
}

// Expect compares what is committed with want, in any order: each record as often as it is in want. It tells what is missing and what is
// too many.
func (s *Sink[T]) Expect(t testing.TB, want ...T) {
	t.Helper()
	expect(t, s.Committed(), want)
}

// ExpectInOrder is Expect, in that order.
func (s *Sink[T]) ExpectInOrder(t testing.TB, want ...T) {
	t.Helper()
	expectInOrder(t, "what is committed", s.Committed(), want)
}

// ---- the sink's two halves: what a process has, and the ledger outside

// collector is the two-phase sink into a ledger.
type collector[T any] struct{ ledger *ledger[T] }

// sealed is its committable.
type sealed struct{ Transaction string }

// collectWriter writes one transaction after the other.
type collectWriter[T any] struct {
	ledger   *ledger[T]
	producer string
	epoch    int
	number   int
	begun    bool
}

// Name is for people.
func (c collector[T]) Name() string { return "Collect" }

// Writer implements weir.TwoPhase.
func (c collector[T]) Writer(ctx weir.WriterContext) (weir.Writer[T], error) {
	subtask, of := ctx.Subtask()
	w := &collectWriter[T]{ledger: c.ledger, producer: producerOf(ctx.Job(), subtask)}
	w.epoch = c.ledger.register(ctx.Job(), subtask, of)
	return w, nil
}

func (w *collectWriter[T]) transaction() string {
	return fmt.Sprintf("%s epoch %d number %d", w.producer, w.epoch, w.number)
}

// begin is called before anything is written. A writer that was not restored begins anew: what those before it had sealed is of
// checkpoints that never completed.
func (w *collectWriter[T]) begin() {
	if !w.begun {
		w.begun = true
		w.ledger.abandon(w.producer, 0)
	}
}

// Write implements weir.Writer.
func (w *collectWriter[T]) Write(v T, _ time.Time) error {
	w.begin()
	return w.ledger.append(w.transaction(), w.producer, w.epoch, v)
}

// Flush implements weir.Writer.
func (w *collectWriter[T]) Flush(bool) error { return nil }

// Close implements weir.Writer.
func (w *collectWriter[T]) Close() error { return nil }

// Restore implements weir.TwoPhase: what was sealed for later checkpoints than the one that is restored will never be committed.
func (c collector[T]) Restore(w weir.Writer[T], states [][]byte) error {
	w.(*collectWriter[T]).begun = true
	for _, s := range states {
		var checkpoint int64
		var producer string
		if _, err := fmt.Sscanf(string(s), "%d %q", &checkpoint, &producer); err != nil {
			return weir.NonRecoverable(fmt.Errorf("weirtest: %q is not the state of a collecting sink: %w", s, err))
		}
		c.ledger.abandon(producer, checkpoint)
	}
	return nil
}

// Prepare implements weir.TwoPhase.
func (c collector[T]) Prepare(w weir.Writer[T], checkpoint int64) ([]sealed, []byte, error) {
	cw := w.(*collectWriter[T])
	cw.begin()
	state := fmt.Appendf(nil, "%d %q", checkpoint, cw.producer)
	id := cw.transaction()
	begun, err := c.ledger.seal(id, cw.producer, cw.epoch, checkpoint)
	if !begun || err != nil {
		return nil, state, err
	}
	cw.number++
	return []sealed{{id}}, state, nil
}

// Commit implements weir.TwoPhase.
func (c collector[T]) Commit(_ context.Context, cs []*weir.Commit[sealed]) error {
	for _, commit := range cs {
		if err := c.ledger.commit(commit.Value.Transaction); errors.Is(err, errLost) {
			commit.Fail(weir.NonRecoverable(err))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Abort implements weir.TwoPhase.
func (c collector[T]) Abort(_ context.Context, cs []sealed) error {
	for _, s := range cs {
		c.ledger.abort(s.Transaction)
	}
	return nil
}
