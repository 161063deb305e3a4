package task

import (
	"fmt"
	"log/slog"

	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
)

// Factory makes the operator of one subtask: what graph.Node.Factory holds.
type Factory func() operator.Operator

// chain is the operators of a task, wired.
type chain struct {
	nodes     []*graph.Node
	operators []operator.Operator // in chain order
	head      operator.Operator
	source    operator.Source  // the head, where it reads from outside; else nil
	lagging   operator.Lagging // the head, where it may lag; else nil
	clocked   []operator.Clocked
	readers   []operator.Reader // by input channel
	channels  []channel
	writers   []operator.Writer
}

// build makes the operators of the vertex and wires them to each other and to the exchange.
func (t *Task) build() error {
	c := &t.chain
	c.nodes = t.spec.Vertex.Nodes
	at := map[graph.NodeID]operator.Operator{}
	for i, n := range c.nodes {
		op := n.Factory.(Factory)()
		if err := t.as(i, func() error { return op.Setup(t.runtime(i)) }); err != nil {
			return err
		}
		at[n.ID] = op
		c.operators = append(c.operators, op)
		if k, ok := op.(operator.Clocked); ok {
			c.clocked = append(c.clocked, k)
		}
	}
	c.head = c.operators[0]
	c.source, _ = c.head.(operator.Source)
	c.lagging, _ = c.head.(operator.Lagging)
	for _, e := range t.spec.Vertex.Inner {
		if err := e.Wire.(operator.Wire).Chain(at[e.From], at[e.To], e.Tag, e.Input); err != nil {
			return err
		}
	}
	if err := t.buildReaders(); err != nil {
		return err
	}
	for i, l := range t.spec.Vertex.Outputs {
		w, err := l.Edge.Wire.(operator.Wire).Writer(at[l.Edge.From], l.Edge.Tag, t.sending(l, t.spec.Outputs[i]))
		if err != nil {
			return err
		}
		c.writers = append(c.writers, w)
	}
	return nil
}

func (t *Task) sending(l *graph.Link, p *exchange.Partition) operator.Sending {
	return operator.Sending{Kind: l.Kind, Subtask: t.spec.Subtask, Receivers: l.To.Parallelism, Partition: p,
		Context: t.ctx, BatchMost: t.spec.Options.BatchMost}
}

// buildReaders makes a reader for each channel of the gate: the links in order, and of each link its senders.
func (t *Task) buildReaders() error {
	for i, l := range t.spec.Vertex.Inputs {
		r, err := l.Edge.Wire.(operator.Wire).Reader(t.chain.head, l.Edge.Input)
		if err != nil {
			return err
		}
		for _, s := range l.Senders(t.spec.Subtask) {
			t.chain.readers = append(t.chain.readers, r)
			t.chain.channels = append(t.chain.channels, channel{link: i, sender: s})
		}
	}
	return nil
}

// open restores the operators and opens them, the last one first.
func (t *Task) open() error {
	if err := t.restoring.phase(&t.restoring.note.Restore, t.restore); err != nil {
		return err
	}
	return t.restoring.phase(&t.restoring.note.Open, t.openAll)
}

func (t *Task) openAll() error {
	for i := len(t.chain.operators) - 1; i >= 0; i-- {
		if err := t.as(i, t.chain.operators[i].Open); err != nil {
			return err
		}
	}
	return nil
}

// as runs a call of the operator numbered i under its name.
func (t *Task) as(i int, call func() error) error {
	t.doing = t.chain.nodes[i].Name
	return call()
}

func (t *Task) runtime(i int) *operator.Runtime {
	n := t.chain.nodes[i]
	return &operator.Runtime{
		Context: t.ctx, Job: t.spec.Job, UID: n.StateID(), Name: n.Name, Subtask: t.spec.Subtask, Parallelism: t.spec.Vertex.Parallelism,
		Exec: t.spec.Exec, Restored: t.spec.Restore != nil, Checkpointed: t.spec.Options.Checkpointed,
		WatermarksEvery: t.spec.Options.WatermarksEvery, Now: func() int64 { return t.wall },
		Mail: func(do func() error) { t.box.post(do) }, Wake: t.wake,
		Ask:   func(payload any) { t.spec.Up.Ask(t.spec.Exec, payload) },
		Doing: &t.doing, Log: t.log(),
	}
}

// log is where people are told; never nil.
func (t *Task) log() *slog.Logger {
	if l := t.spec.Options.Log; l != nil {
		return l
	}
	return slog.New(slog.DiscardHandler)
}

// wake says that the source has something again. Any goroutine may call it.
func (t *Task) wake() {
	t.awake.Store(true)
	t.spec.Bell.Ring()
}

// restore hands each operator its part of the checkpoint.
func (t *Task) restore() error {
	r := t.spec.Restore
	if r == nil {
		return nil
	}
	for i, part := range r.Operators {
		if part == nil {
			continue
		}
		restored := &operator.Restored{Restored: *part, ID: r.ID, Base: r.Base, Open: r.Open, OpenPages: r.OpenPages, AllowDropped: r.AllowDropped}
		if err := t.as(i, func() error { return t.chain.operators[i].Restore(restored) }); err != nil {
			return fmt.Errorf("restoring uid %q from checkpoint %d: %w", t.chain.nodes[i].StateID(), r.ID, err)
		}
	}
	return nil
}

// endedBefore is true where the checkpoint was taken after the task's end: it has nothing left to do but to commit.
func endedBefore(r *Restore) bool {
	if r == nil {
		return false
	}
	ended := false
	for _, part := range r.Operators {
		if part != nil && !part.Ended {
			return false
		}
		ended = ended || part != nil
	}
	return ended
}

// part is the snapshot part that every operator has, whatever its own.
func part(n *graph.Node, p operator.Part, subtask int, ended bool) snapshot.OperatorPart {
	s := p.State
	s.Index, s.Ended = subtask, ended
	return snapshot.OperatorPart{UID: n.StateID(), EndOfInput: n.EndsInput, Schemas: n.Schemas, Subtask: s}
}
