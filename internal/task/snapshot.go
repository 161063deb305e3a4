package task

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
)

// handle gives an event to the barrier handler and performs its actions in order. What performing them raises is handled
// afterwards, in the order in which it was raised.
func (t *Task) handle(e checkpoint.HandlerEvent) error {
	t.events = append(t.events, e)
	if t.stepping {
		return nil
	}
	t.stepping = true
	defer func() { t.stepping = false }()
	t.look()
	for len(t.events) > 0 {
		e := t.events[0]
		t.events = t.events[1:]
		actions := t.handler.Step(t.now, e)
		t.maybeBegun()
		for _, a := range actions {
			if err := t.perform(a); err != nil {
				return err
			}
		}
	}
	t.events = nil
	t.maybeSayAligning()
	return nil
}

// perform does one action of the barrier handler.
func (t *Task) perform(a checkpoint.HandlerAction) error {
	x := t.spec.Exec
	switch a := a.(type) {
	case checkpoint.Block:
		t.spec.Gate.Block(a.Channel)
	case checkpoint.Unblock:
		t.spec.Gate.Unblock(a.Channel)
	case checkpoint.Snapshot:
		return t.snapshot(a)
	case checkpoint.Seal:
		t.spec.Gate.Seal(a.Channel)
	case checkpoint.Prioritize:
		return t.prioritize(a)
	case checkpoint.StopRecording:
		t.stopRecording(a.ID)
	case checkpoint.ConvertOutput: // an output's queue is its receiver's, who turns the barrier himself
	case checkpoint.DropSnapshot:
		t.dropRecording(a.ID)
		t.writing[a.ID].stop()
	case checkpoint.ForwardCancel:
		t.forwardCancel(a.ID)
	case checkpoint.Ack:
		t.spec.Up.Report(checkpoint.TaskAcked{Exec: x, ID: a.ID, State: a.State, Ended: a.Ended, Metrics: t.measured})
	case checkpoint.Decline:
		t.spec.Up.Report(checkpoint.TaskDeclined{Exec: x, ID: a.ID, Reason: a.Reason, Err: a.Err})
	case checkpoint.Complete:
		return t.each(func(op operator.Operator) error { return op.Complete(a.ID) })
	case checkpoint.Abort:
		return t.each(func(op operator.Operator) error { return op.Abort(a.ID) })
	case checkpoint.EndSource:
		return t.endSource(a.Drain)
	case checkpoint.Finish:
		t.finished = true
		return t.broadcast(exchange.Element{Kind: exchange.EndOfPartition})
	case checkpoint.FailTask:
		return a.Err
	default:
		panic(fmt.Sprintf("task: unknown action %T", a))
	}
	return nil
}

func (t *Task) each(call func(operator.Operator) error) error {
	for i, op := range t.chain.operators {
		if err := t.as(i, func() error { return call(op) }); err != nil {
			return err
		}
	}
	return nil
}

// forwardCancel sends a cancel marker, before half-filled batches: it divides no records, and must not wait for room.
func (t *Task) forwardCancel(id base.CheckpointID) {
	for _, w := range t.chain.writers {
		w.Partition().Broadcast(exchange.Element{Kind: exchange.CancelMarker, ID: id})
	}
}

// broadcast sends a control element to all outputs, behind everything that was emitted.
func (t *Task) broadcast(e exchange.Element) error {
	for _, w := range t.chain.writers {
		if err := w.Flush(); err != nil {
			return err
		}
		w.Partition().Broadcast(e)
	}
	return nil
}

// endSource stops reading: what was emitted is all there is.
func (t *Task) endSource(drain bool) error {
	if t.loop.over {
		return nil
	}
	t.loop.over = true
	t.doing = t.chain.nodes[0].Name
	if drain {
		if err := t.chain.head.Watermark(base.EndOfTime); err != nil {
			return err
		}
	}
	return t.chain.head.EndOfData(drain)
}

// upload is the asynchronous part of one snapshot.
type upload struct {
	ctx  context.Context
	stop context.CancelFunc

	recorded chan struct{} // closed when flights is complete; nil: there are none
	flights  []flight

	metrics checkpoint.AckMetrics // the task's goroutine's
}

// snapshot sends the barrier on and takes the synchronous part in one step, then starts the upload. An error here is one of
// an operator's own code and fails the task; an error of the upload only declines the checkpoint.
func (t *Task) snapshot(a checkpoint.Snapshot) error {
	b, begun := a.Barrier.Restored(), time.Now()
	m := t.waited(b, begun)
	for _, w := range t.chain.writers {
		if err := w.Barrier(b); err != nil {
			return err
		}
	}
	recording := slices.Contains(a.Record, true)
	if recording {
		if err := t.startRecording(b, a.Record); err != nil {
			return err
		}
	}
	parts := make([]operator.Part, len(t.chain.operators))
	for i, op := range t.chain.operators {
		err := t.as(i, func() (err error) { parts[i], err = op.Snapshot(t.cut(b)); return err })
		if err != nil {
			return fmt.Errorf("taking the snapshot for checkpoint %d: %w", b.ID, err)
		}
	}
	m.Sync = time.Since(begun)
	if synced := t.spec.Options.Synced; synced != nil {
		synced(t.spec.Exec, b.ID, m.Sync)
	}
	t.spec.Up.Note(t.spec.Exec, Writing{ID: b.ID, Metrics: m})
	t.startUpload(b, parts, m, a.Ended, recording)
	return nil
}

// cut is what operators hear of a barrier. Savepoints are their owner's, and no checkpoint refers to their files.
func (t *Task) cut(b checkpoint.Barrier) operator.Cut {
	return operator.Cut{ID: b.ID, Base: b.Base, Lasting: t.spec.Options.Incremental && !b.Kind.IsSavepoint()}
}

// startUpload starts the goroutine that writes parts; it ends by posting one mail.
func (t *Task) startUpload(b checkpoint.Barrier, parts []operator.Part, m checkpoint.AckMetrics, ended, recording bool) {
	u := &upload{metrics: m}
	if recording {
		u.recorded = make(chan struct{})
	}
	u.ctx, u.stop = context.WithCancel(t.ctx)
	t.writing[b.ID] = u
	t.uploads.Add(1)
	go t.runUpload(u, b, parts, ended)
}

func (t *Task) runUpload(u *upload, b checkpoint.Barrier, parts []operator.Part, ended bool) {
	defer t.uploads.Done()
	began, states := time.Now(), time.Duration(0)
	var state *snapshot.TaskState
	err := t.guardUpload(func() (err error) {
		state, err = t.write(u.ctx, b, parts, ended)
		if states = time.Since(began); err == nil && u.recorded != nil {
			err = t.writeRecorded(u, b, &state.Operators[0])
		}
		return err
	})
	took := time.Since(began)
	t.box.post(func() error {
		u.stop()
		delete(t.writing, b.ID)
		t.dropRecording(b.ID) // where the upload failed before it was over
		releaseAll(u.flights)
		for _, p := range parts {
			if p.Release != nil {
				p.Release()
			}
		}
		t.measured = u.metrics
		t.measured.Async, t.measured.States = took, states
		if err == nil {
			t.measured.Persisted = persisted(state)
		}
		return t.handle(checkpoint.SnapshotWritten{ID: b.ID, State: state, Err: err})
	})
}

// writeRecorded waits for the records in flight, and writes them.
func (t *Task) writeRecorded(u *upload, b checkpoint.Barrier, head *snapshot.OperatorPart) error {
	select {
	case <-u.recorded:
	case <-u.ctx.Done():
		return u.ctx.Err()
	}
	w := &stoppable{Writer: t.spec.Writer(b.Location), ctx: u.ctx, prefix: fmt.Sprintf("%d-%d", t.chain.nodes[0].ID, t.spec.Subtask)}
	return t.writeFlights(w, head, u.flights)
}

// guardUpload makes an error of a panic while state is encoded: user types may encode themselves.
func (t *Task) guardUpload(call func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic while writing a snapshot: %v", r)
		}
	}()
	return call()
}

// write writes the parts of all operators, on the upload's goroutine.
func (t *Task) write(ctx context.Context, b checkpoint.Barrier, parts []operator.Part, ended bool) (*snapshot.TaskState, error) {
	w := &stoppable{Writer: t.spec.Writer(b.Location), ctx: ctx}
	state := &snapshot.TaskState{}
	for i, p := range parts {
		n := t.chain.nodes[i]
		op := part(n, p, t.spec.Subtask, ended)
		if p.Write != nil {
			w.prefix = fmt.Sprintf("%d-%d", n.ID, t.spec.Subtask)
			if err := p.Write(w, formatOf(b), &op.Subtask); err != nil {
				return nil, fmt.Errorf("operator %q, subtask %d of %d: writing state for checkpoint %d: %w",
					n.Name, t.spec.Subtask+1, t.spec.Vertex.Parallelism, b.ID, err)
			}
		}
		state.Operators = append(state.Operators, op)
	}
	return state, nil
}

// formatOf is the format that the barrier asks for.
func formatOf(b checkpoint.Barrier) snapshot.Format {
	if b.Kind.IsSavepoint() && b.Format == checkpoint.Canonical {
		return snapshot.Canonical
	}
	return snapshot.Native
}
