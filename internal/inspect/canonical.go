package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
	"github.com/weirstream/weir/internal/storage"
)

// WriteCanonical writes a canonical savepoint with all that the snapshot has to a directory that is empty, or not there, and gives its path.
// It is published last: until then, and after an error, there is no snapshot. One with records in flight is refused, for a savepoint has
// none.
func (s *Snapshot) WriteCanonical(dir string) (location string, err error) {
	if flights := s.flights(); len(flights) > 0 {
		return "", fmt.Errorf("%s is of an unaligned checkpoint: %d records are in flight on the edge %s, and a canonical savepoint cannot have "+
			"any; start the job from it, and take a savepoint", s.Location, flights[0].Records, flights[0].Edge)
	}
	if location, err = storage.MakeSnapshot(s.fs, dir); err != nil {
		return "", err
	}
	c := converter{from: s, to: storage.NewWriter(s.fs, location, storage.WriterOptions{})}
	m, err := c.metadata()
	if err == nil {
		err = storage.PublishSnapshot(s.fs, location, m)
	}
	if err != nil && !errors.Is(err, storage.ErrUncertain) {
		err = errors.Join(err, storage.DropSnapshot(s.fs, location))
	}
	return location, err
}

// converter writes the files of a canonical savepoint.
type converter struct {
	from *Snapshot
	to   storage.Writer
}

// metadata writes all files, and gives the metadata that names them.
func (c *converter) metadata() (*snapshot.Metadata, error) {
	m := *c.from.Metadata
	m.Format = snapshot.Canonical
	if !m.Kind.IsSavepoint() {
		m.Kind = snapshot.Savepoint
	}
	m.Operators, m.Hooks = nil, nil
	for i := range c.from.Operators {
		o, err := c.operator(i)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", &c.from.Operators[i], err)
		}
		m.Operators = append(m.Operators, o)
	}
	for i, h := range c.from.Hooks {
		state, err := c.copy(fmt.Sprintf("hook-%d", i), h.State)
		if err != nil {
			return nil, fmt.Errorf("hook %q: %w", h.ID, err)
		}
		m.Hooks = append(m.Hooks, snapshot.Hook{ID: h.ID, State: state})
	}
	return &m, nil
}

func (c *converter) operator(i int) (o snapshot.Operator, err error) {
	o = c.from.Operators[i]
	o.InFlight, o.Subtasks = nil, nil
	if o.Coordinator != nil {
		h, err := c.copy(fmt.Sprintf("coordinator-%d", i), *o.Coordinator)
		if err != nil {
			return o, err
		}
		o.Coordinator = &h
	}
	for _, t := range c.from.Operators[i].Subtasks {
		parts, err := c.from.parts(&t)
		if err != nil {
			return o, err
		}
		t.Keyed, t.Lists, t.Rows = nil, nil, nil
		prefix := fmt.Sprintf("%d-%d-%s-", i, t.Index, cmp.Or(o.UID, o.Name))
		for _, p := range joined(parts) {
			h, err := c.rows(prefix+p.Schema.Name, &p)
			if err != nil {
				return o, err
			}
			if h.Keyed {
				h.Range = base.RangeOf(t.Index, o.Parallelism)
			}
			t.Rows = append(t.Rows, h)
		}
		o.Subtasks = append(o.Subtasks, t)
	}
	return o, nil
}

// joined puts the parts of a subtask together that are of one state: by key it may lie in several files, each of a range of its own.
func joined(parts []part) (all []part) {
	at := map[string]int{}
	for _, p := range parts {
		i, ok := at[p.Schema.Name]
		if !ok {
			at[p.Schema.Name] = len(all)
			all = append(all, p)
			continue
		}
		first, second := all[i].rows, p.rows
		all[i].rows = func(within state.Hashes) iter.Seq2[state.Row, error] {
			return func(yield func(state.Row, error) bool) {
				for _, rows := range []iter.Seq2[state.Row, error]{first(within), second(within)} {
					for r, err := range rows {
						if !yield(r, err) {
							return
						}
					}
				}
			}
		}
	}
	return all
}

// unknownTTL is the time to live that rows get of which the file does not say it. What a restore takes from them is when they were written,
// which is right for any.
const unknownTTL = time.Nanosecond

// rows writes one state of one subtask: a file of rows, and its index.
func (c *converter) rows(name string, p *part) (h snapshot.RowsHandle, err error) {
	st := p.StoredState
	if st.Stamped && st.TTL == 0 {
		st.TTL = unknownTTL
	}
	rows := state.CopyRows(st, p.mode, p.rows(state.AllHashes))
	file, err := c.write(c.to.CreateFile, name+".avro", func(o storage.Object) error { _, err := rows.WriteTo(o); return err })
	if err != nil {
		return h, err
	}
	index, err := c.write(c.to.CreateFile, name+".idx", func(o storage.Object) error { _, err := o.Write(rows.Index()); return err })
	if err != nil {
		return h, err
	}
	h = rows.Handle()
	h.Handle, h.Index = file, index
	return h, nil
}

// copy copies bytes as they are.
func (c *converter) copy(name string, h snapshot.Handle) (snapshot.Handle, error) {
	b, err := c.from.bytes(h)
	if err != nil {
		return snapshot.Handle{}, err
	}
	return c.write(c.to.Create, name, func(o storage.Object) error { _, err := o.Write(b); return err })
}

// write writes one object: whole, or nothing is left of it.
func (c *converter) write(create func(string) (storage.Object, error), name string, write func(storage.Object) error) (snapshot.Handle, error) {
	o, err := create(name)
	if err != nil {
		return snapshot.Handle{}, err
	}
	if err := write(o); err != nil {
		return snapshot.Handle{}, errors.Join(err, o.Abort())
	}
	return o.Commit()
}
