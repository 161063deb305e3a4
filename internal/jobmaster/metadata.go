package jobmaster

import (
	"fmt"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// metadata makes of everything that was acknowledged what is published.
func (m *Master) metadata(c *checkpoint.Completed) (*snapshot.Metadata, error) {
	w := m.options.Store.Writer(c.Location, storage.WriterOptions{InlineMax: m.options.InlineMax})
	operators, err := m.operators(c, w)
	if err != nil {
		return nil, err
	}
	collection := snapshot.Collect(operators)
	for t := range c.Tasks {
		if err := m.collect(collection, c, base.Task(t)); err != nil {
			return nil, err
		}
	}
	md := &snapshot.Metadata{ID: c.ID, Job: m.options.ID, JobName: m.options.Graph.Name, Kind: kindOf(c.Kind), Format: formatOf(c.Format),
		Run: m.options.Store.Run(), Wall: c.Wall}
	if md.Operators, err = collection.Operators(); err != nil {
		return nil, err
	}
	md.Hooks, err = m.hooks(c, w)
	return md, err
}

// operators are the operators of the job, with the states of their coordinators.
func (m *Master) operators(c *checkpoint.Completed, w storage.Writer) ([]snapshot.Operator, error) {
	var all []snapshot.Operator
	for _, v := range m.options.Graph.Vertices {
		for i, n := range v.Nodes {
			o := snapshot.Operator{UID: n.StateID(), Name: n.Name, Parallelism: v.Parallelism, EndOfInput: n.EndsInput}
			if state, ok := c.Operators[v.Index].([]byte); ok && i == 0 {
				h, err := write(w, fmt.Sprintf("coordinator-%d", v.Index), state)
				if err != nil {
					return nil, fmt.Errorf("writing the state of the coordinator of source %s: %w", n.Label(), err)
				}
				o.Coordinator = &h
			}
			all = append(all, o)
		}
	}
	return all, nil
}

// collect adds what one task acknowledged.
func (m *Master) collect(collection *snapshot.Collection, c *checkpoint.Completed, t base.Task) error {
	if !c.Finished[t] {
		return collection.Add(c.Tasks[t].(*snapshot.TaskState))
	}
	v, subtask := m.options.Graph.Locate(t)
	for _, n := range v.Nodes {
		if err := collection.AddFinished(n.StateID(), subtask); err != nil {
			return err
		}
	}
	return nil
}

func (m *Master) hooks(c *checkpoint.Completed, w storage.Writer) ([]snapshot.Hook, error) {
	var all []snapshot.Hook
	for i, hook := range m.options.Hooks {
		state, ok := c.Hooks[i].([]byte)
		if !ok || state == nil {
			continue
		}
		h, err := write(w, fmt.Sprintf("hook-%d", i), state)
		if err != nil {
			return nil, fmt.Errorf("writing the state of master hook %q: %w", hook.ID(), err)
		}
		all = append(all, snapshot.Hook{ID: hook.ID(), State: h})
	}
	return all, nil
}

// write writes a state of the master's own.
func write(w storage.Writer, name string, state []byte) (snapshot.Handle, error) {
	o, err := w.Create(name)
	if err != nil {
		return snapshot.Handle{}, err
	}
	if _, err := o.Write(state); err != nil {
		_ = o.Abort() // the first error counts
		return snapshot.Handle{}, err
	}
	return o.Commit()
}

// completedOf is what the coordinator must know of a checkpoint that it has not taken.
func completedOf(p Point) *checkpoint.Completed {
	c := &checkpoint.Completed{ID: p.Metadata.ID, Location: p.Location, Wall: p.Metadata.Wall, Keep: p.Keep, Format: checkpoint.Native}
	switch p.Metadata.Kind {
	case snapshot.Checkpoint:
		c.Kind = checkpoint.Checkpoint
	case snapshot.FullCheckpoint:
		c.Kind = checkpoint.FullCheckpoint
	case snapshot.Savepoint:
		c.Kind = checkpoint.Savepoint
	case snapshot.Suspend:
		c.Kind = checkpoint.Suspend
	case snapshot.Drain:
		c.Kind = checkpoint.Drain
	}
	if p.Metadata.Format == snapshot.Canonical {
		c.Format = checkpoint.Canonical
	}
	return c
}

func kindOf(k checkpoint.Kind) snapshot.Kind {
	switch k {
	case checkpoint.Checkpoint:
		return snapshot.Checkpoint
	case checkpoint.FullCheckpoint:
		return snapshot.FullCheckpoint
	case checkpoint.Savepoint:
		return snapshot.Savepoint
	case checkpoint.Suspend:
		return snapshot.Suspend
	case checkpoint.Drain:
		return snapshot.Drain
	}
	panic(fmt.Sprintf("jobmaster: unknown kind %d of checkpoint", k))
}

func formatOf(f checkpoint.Format) snapshot.Format {
	if f == checkpoint.Canonical {
		return snapshot.Canonical
	}
	return snapshot.Native
}
