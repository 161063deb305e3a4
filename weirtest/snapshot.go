package weirtest

import (
	"fmt"
	"path"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/fit"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// Snapshot is what a harness's operators had at one moment: the files that a checkpoint would have of them, on a disk in memory. Any
// number of harnesses may be restored from it.
type Snapshot struct {
	// ID is the checkpoint's.
	ID int64

	disk       storage.FS
	location   string
	metadata   *snapshot.Metadata
	enumerator []byte // a source's
}

// Snapshot takes a snapshot, as for a checkpoint: what a two-phase sink has written is prepared by it, and committed by Complete.
func (r *rig) Snapshot() *Snapshot {
	r.t.Helper()
	return r.snapshot(snapshot.Native)
}

// Savepoint takes a snapshot in the format of canonical savepoints.
func (r *rig) Savepoint() *Snapshot {
	r.t.Helper()
	return r.snapshot(snapshot.Canonical)
}

// Checkpoint is Snapshot, and then Complete.
func (r *rig) Checkpoint() *Snapshot {
	r.t.Helper()
	s := r.Snapshot()
	r.Complete(s)
	return s
}

// Complete says that the checkpoint of a snapshot has completed: two-phase sinks commit.
func (r *rig) Complete(s *Snapshot) {
	r.t.Helper()
	r.step("Complete", func() error {
		return r.each(func(_ *subtask, _ *graph.Node, op operator.Operator) error {
			return op.Complete(base.CheckpointID(s.ID))
		})
	})
}

// Abort says that the checkpoint of a snapshot will never complete.
func (r *rig) Abort(s *Snapshot) {
	r.t.Helper()
	r.step("Abort", func() error {
		return r.each(func(_ *subtask, _ *graph.Node, op operator.Operator) error { return op.Abort(base.CheckpointID(s.ID)) })
	})
}

func (r *rig) snapshot(format snapshot.Format) *Snapshot {
	r.t.Helper()
	r.id++
	s := &Snapshot{ID: int64(r.id), disk: storage.Memory(), location: path.Join("/snapshots", fmt.Sprint("chk-", r.id))}
	r.step("Snapshot", func() (err error) {
		r.stored.before()
		if err := storage.MkdirAll(s.disk, s.location); err != nil {
			return err
		}
		if err := r.around.snapshot(s); err != nil {
			return fmt.Errorf("the enumerator's snapshot: %w", err)
		}
		s.metadata, err = r.collect(s, format)
		r.stored.rebase()
		return err
	})
	return s
}

// collect takes the parts of all operators and puts them together, as a job's master does.
func (r *rig) collect(s *Snapshot, format snapshot.Format) (*snapshot.Metadata, error) {
	var operators []snapshot.Operator
	for _, n := range r.plan.nodes {
		operators = append(operators, snapshot.Operator{UID: n.StateID(), Name: n.Name, Parallelism: len(r.subtasks), EndOfInput: n.EndsInput})
	}
	collection := snapshot.Collect(operators)
	writer := storage.NewWriter(s.disk, s.location, storage.WriterOptions{})
	err := r.each(func(sub *subtask, n *graph.Node, op operator.Operator) error {
		part, err := op.Snapshot(operator.Cut{ID: r.id})
		if err != nil {
			return fmt.Errorf("taking a snapshot: %w", err)
		}
		acked := snapshot.OperatorPart{UID: n.StateID(), EndOfInput: n.EndsInput, Schemas: n.Schemas, Subtask: part.State}
		acked.Index, acked.Ended = sub.index, r.over
		if part.Write != nil {
			if err := part.Write(prefixed{writer, fmt.Sprintf("%d-%d-", n.ID, sub.index)}, format, &acked.Subtask); err != nil {
				return fmt.Errorf("writing a snapshot: %w", err)
			}
		}
		if part.Release != nil {
			part.Release()
		}
		return collection.Add(&snapshot.TaskState{Operators: []snapshot.OperatorPart{acked}})
	})
	if err != nil {
		return nil, err
	}
	m := &snapshot.Metadata{ID: r.id, JobName: "harness", Kind: snapshot.Savepoint, Format: format, Run: 1}
	m.Operators, err = collection.Operators()
	return m, err
}

// prefixed keeps the names of one operator's files apart from the others'.
type prefixed struct {
	storage.Writer
	prefix string
}

func (w prefixed) Create(name string) (storage.Object, error) {
	return w.Writer.Create(w.prefix + name)
}
func (w prefixed) CreateFile(name string) (storage.Object, error) {
	return w.Writer.CreateFile(w.prefix + name)
}
func (w prefixed) CreateShared(name string) (storage.Object, error) {
	return w.Writer.CreateShared(w.prefix + name)
}

// Restore has the operators fail, and begins anew from a snapshot, at the same parallelism.
func (r *rig) Restore(s *Snapshot) {
	r.t.Helper()
	r.RestoreAt(s, r.settings.parallelism)
}

// RestoreAt is Restore at another parallelism: the snapshot's state is split or merged.
func (r *rig) RestoreAt(s *Snapshot, parallelism int) {
	r.t.Helper()
	if r.closed {
		r.t.Fatal("weirtest: Restore: the harness is closed; make a new one, with From")
	}
	if err := r.kill(); err != nil && r.failure == nil {
		r.t.Fatal("weirtest: Restore: closing what was there before: ", err)
	}
	r.settings.parallelism = parallelism
	r.start(s, parallelism)
}

// restoredParts are what the operators get back; nil: nothing.
type restoredParts map[*graph.Node][]*operator.Restored

func (p restoredParts) of(n *graph.Node, subtask int) *operator.Restored {
	if all := p[n]; all != nil {
		return all[subtask]
	}
	return nil
}

// beginning is where event time begins: at the least watermark of all that records enter by; ended: it is over.
func (p restoredParts) beginning(of *plan) (watermark base.EventTime, ended bool) {
	watermark, ended = base.EndOfTime, len(p) > 0
	for n, all := range p {
		for _, part := range all {
			ended = ended && part.Ended
			if of.head(n) {
				watermark = min(watermark, max(part.Watermark, part.PendingWatermark))
			}
		}
	}
	if watermark == base.EndOfTime && !ended {
		watermark = base.NoTime
	}
	return watermark, ended
}

// redistribute finds the new subtasks' parts of a snapshot, and refuses, as a job does, what does not fit.
func (r *rig) redistribute(s *Snapshot, parallelism int) (restoredParts, error) {
	if s == nil {
		return nil, nil
	}
	r.id = max(r.id, base.CheckpointID(s.ID))
	parts := restoredParts{}
	for i := range s.metadata.Operators {
		o := &s.metadata.Operators[i]
		n := r.nodeOf(o.UID)
		if n == nil {
			if len(o.Schemas) > 0 && !r.settings.allowDropped {
				return nil, fmt.Errorf("the snapshot has state of the operator %q, which is not here: give it its uid back, or say AllowDropped", o.UID)
			}
			continue
		}
		r.doing = n.Name
		if err := fit.States(o, n.Schemas, r.settings.allowDropped); err != nil {
			return nil, err
		}
		d, err := o.Redistribute(parallelism)
		if err != nil {
			return nil, err
		}
		for subtask := range parallelism {
			parts[n] = append(parts[n], &operator.Restored{Restored: d.Assign(subtask), ID: base.CheckpointID(s.ID), AllowDropped: r.settings.allowDropped,
				Open:      func(h snapshot.Handle) (storage.Reader, error) { return storage.OpenHandle(s.disk, s.location, h) },
				OpenPages: func(h snapshot.Handle) (storage.Reader, error) { return storage.OpenPages(s.disk, s.location, h) }})
		}
	}
	return parts, nil
}

func (r *rig) nodeOf(uid string) *graph.Node {
	for _, n := range r.plan.nodes {
		if n.StateID() == uid {
			return n
		}
	}
	return nil
}
