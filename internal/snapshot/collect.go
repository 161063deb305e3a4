package snapshot

import (
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/base"
)

// Collection gathers what the tasks of a checkpoint acknowledge. Who takes part is fixed when it is made: Operators is
// refused until every subtask of every operator has said something, so nothing that was never waited for can be missing.
type Collection struct {
	operators []Operator
	index     map[string]int // by UID
	left      []int          // subtasks still missing, by operator
}

// Collect begins a collection for operators of which UID, Name, Parallelism and EndOfInput are known.
func Collect(operators []Operator) *Collection {
	c := &Collection{operators: slices.Clone(operators), index: map[string]int{}, left: make([]int, len(operators))}
	for i := range c.operators {
		o := &c.operators[i]
		c.index[o.UID] = i
		c.left[i] = o.Parallelism
		o.Subtasks = make([]Subtask, o.Parallelism)
		for s := range o.Subtasks {
			o.Subtasks[s].Index = missing
		}
	}
	return c
}

// missing is the index of a subtask that has not said anything.
const missing = -1

// Add takes one task's acknowledgement in. An operator that is not there, a subtask that is not there or comes twice, and a
// schema that differs from another subtask's are errors.
func (c *Collection) Add(t *TaskState) error {
	for i := range t.Operators {
		if err := c.add(&t.Operators[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Collection) add(p *OperatorPart) error {
	if err := c.put(p.UID, p.Subtask); err != nil {
		return err
	}
	o := &c.operators[c.index[p.UID]]
	o.EndOfInput = o.EndOfInput || p.EndOfInput
	if o.Schemas == nil {
		o.Schemas = p.Schemas
	}
	if err := o.addTypes(p.InFlight); err != nil {
		return err
	}
	if !slices.Equal(o.Schemas, p.Schemas) {
		return fmt.Errorf("snapshot: %s declares other states than another subtask: %v, not %v", o.part(p.Index), p.Schemas, o.Schemas)
	}
	return nil
}

// addTypes takes in the types of the records that were in flight to one subtask.
func (o *Operator) addTypes(types []EdgeSchema) error {
	for _, t := range types {
		i := slices.IndexFunc(o.InFlight, func(known EdgeSchema) bool { return known.Edge == t.Edge })
		switch {
		case i < 0:
			o.InFlight = append(o.InFlight, t)
		case o.InFlight[i].Record != t.Record:
			return fmt.Errorf("snapshot: the records of the edge %v are of one type in one subtask and of another in the next", t.Edge)
		}
	}
	return nil
}

// AddFinished takes in a subtask whose task had finished before the checkpoint began.
func (c *Collection) AddFinished(uid string, subtask int) error {
	return c.put(uid, Subtask{Index: subtask, Ended: true, Finished: true, Watermark: base.EndOfTime, PendingWatermark: base.NoTime})
}

func (c *Collection) put(uid string, s Subtask) error {
	i, known := c.index[uid]
	if !known {
		return fmt.Errorf("snapshot: operator %q does not take part in this checkpoint", uid)
	}
	o := &c.operators[i]
	if s.Index < 0 || s.Index >= o.Parallelism {
		return fmt.Errorf("snapshot: %v of parallelism %d has no subtask %d", o, o.Parallelism, s.Index)
	}
	if o.Subtasks[s.Index].Index != missing {
		return fmt.Errorf("snapshot: %s is there twice", o.part(s.Index))
	}
	o.Subtasks[s.Index] = s
	c.left[i]--
	return nil
}

// Operators are the operators with all their subtasks. One whose subtasks had all finished has no state and no coordinator.
func (c *Collection) Operators() ([]Operator, error) {
	for i := range c.operators {
		o := &c.operators[i]
		if c.left[i] > 0 {
			return nil, fmt.Errorf("snapshot: %d of the %d subtasks of %v are missing", c.left[i], o.Parallelism, o)
		}
		if !slices.ContainsFunc(o.Subtasks, func(s Subtask) bool { return !s.Finished }) {
			o.Finished, o.Subtasks, o.Coordinator = true, nil, nil
		}
	}
	return c.operators, nil
}
