package weir

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
	"github.com/weirstream/weir/internal/storage"
)

// addWriter has a part write something more.
func addWriter(part *operator.Part, write func(storage.Writer, snapshot.Format, *snapshot.Subtask) error) {
	before := part.Write
	part.Write = func(w storage.Writer, f snapshot.Format, s *snapshot.Subtask) error {
		if before != nil {
			if err := before(w, f, s); err != nil {
				return err
			}
		}
		return write(w, f, s)
	}
}

// addKeyedState puts keyed state into a part. With a base only what has changed is written, and where it lasts, it lies where later
// checkpoints find it.
func addKeyedState(part *operator.Part, rt *operator.Runtime, keyed *state.KeyedSnapshot, lasting bool) {
	part.Release = keyed.Release
	if keyed.Empty() {
		return
	}
	r := rt.Range()
	addWriter(part, func(w storage.Writer, f snapshot.Format, s *snapshot.Subtask) error {
		if f == snapshot.Canonical {
			return writeRows(w, rt, s, keyed.Rows())
		}
		create := w.Create
		if lasting {
			create = w.CreateShared
		}
		h, err := writeTo(create, "keyed", func(o storage.Object) error { _, err := keyed.WriteTo(o); return err })
		if err != nil {
			return err
		}
		s.Keyed = append(s.Keyed, snapshot.KeyedHandle{Range: r, Handle: h, Refers: keyed.Refers()})
		keyed.Written(h)
		return nil
	})
}

// addOperatorState puts lists and broadcast maps into a part.
func addOperatorState(part *operator.Part, rt *operator.Runtime, ops *state.Operator) {
	lists := ops.Snapshot()
	if lists.Empty() {
		return
	}
	addWriter(part, func(w storage.Writer, f snapshot.Format, s *snapshot.Subtask) error {
		if f == snapshot.Canonical {
			return writeRows(w, rt, s, lists.Rows())
		}
		h, err := writeObject(w, "lists", func(o storage.Object) error { _, err := lists.WriteTo(o); return err })
		for _, l := range lists.Lists() {
			l.Handle = h
			s.Lists = append(s.Lists, l)
		}
		return err
	})
}

// writeRows writes states in the canonical format: of each a file of rows, named after operator and state, and its index.
func writeRows(w storage.Writer, rt *operator.Runtime, s *snapshot.Subtask, all []*state.Rows) error {
	for _, r := range all {
		name := cmp.Or(rt.UID, rt.Name) + "-" + r.Name()
		file, err := writeTo(w.CreateFile, name+".avro", func(o storage.Object) error { _, err := r.WriteTo(o); return err })
		if err != nil {
			return err
		}
		index, err := writeTo(w.CreateFile, name+".idx", func(o storage.Object) error { _, err := o.Write(r.Index()); return err })
		if err != nil {
			return err
		}
		h := r.Handle()
		h.Range, h.Handle, h.Index = rt.Range(), file, index
		if !h.Keyed {
			h.Range = base.KeyGroupRange{}
		}
		s.Rows = append(s.Rows, h)
	}
	return nil
}

// writeObject writes one object of a checkpoint: whole, or nothing is left of it.
func writeObject(w storage.Writer, name string, write func(storage.Object) error) (snapshot.Handle, error) {
	return writeTo(w.Create, name, write)
}

func writeTo(create func(string) (storage.Object, error), name string, write func(storage.Object) error) (snapshot.Handle, error) {
	o, err := create(name)
	if err != nil {
		return snapshot.Handle{}, err
	}
	if err := write(o); err != nil {
		return snapshot.Handle{}, errors.Join(err, o.Abort())
	}
	return o.Commit()
}

// stateSort is what an operator may have none of.
type stateSort int

const (
	keyedState stateSort = iota // values, lists, maps and timers by key
	listState                   // lists of the subtask, broadcast maps
)

// refuse refuses a checkpoint with state that the operator, which declares none of these sorts, cannot take: in silence it
// would be gone with the next checkpoint. nil: there is none, or it may be dropped.
func refuse(r *operator.Restored, sorts ...stateSort) error {
	for _, sort := range sorts {
		what := ""
		switch {
		case r.AllowDropped:
		case sort == keyedState && len(r.Keyed)+len(rowsOf(r, true)) > 0:
			what = "state or timers by key"
		case sort == listState && len(r.Lists) > 0:
			what = fmt.Sprintf("state %q", r.Lists[0].Name)
		case sort == listState && len(rowsOf(r, false)) > 0:
			what = fmt.Sprintf("state %q", rowsOf(r, false)[0].Name)
		}
		if what != "" {
			return NonRecoverable(fmt.Errorf("%s is stored, but the operator declares nothing that could take it; declare it "+
				"as before, or allow non-restored state (-n) to drop it", what))
		}
	}
	return nil
}

// restoreOperatorState reads the lists that fall to a subtask.
func restoreOperatorState(ops *state.Operator, r *operator.Restored) error {
	if r.AllowDropped {
		ops.AllowDropped()
	}
	ops.Stored(r.States)
	for _, l := range r.Lists {
		if err := restoreList(ops, r, l); err != nil {
			return err
		}
	}
	for _, p := range rowsOf(r, false) {
		if err := restoreRows(r, p, func(f *state.RowsFile) error { return ops.RestoreRows(f, p.From, p.To) }); err != nil {
			return err
		}
	}
	return nil
}

func restoreList(ops *state.Operator, r *operator.Restored, l snapshot.ListHandle) error {
	file, err := r.Open(l.Handle)
	if err != nil {
		return fmt.Errorf("state %q: %w", l.Name, err)
	}
	defer file.Close()
	return ops.Restore(file, file.Size(), l)
}

// restoreKeyedState reads the state by key that falls to a subtask.
func restoreKeyedState[K comparable](keyed *state.Keyed[K], r *operator.Restored) error {
	if r.AllowDropped {
		keyed.AllowDropped()
	}
	for _, h := range r.Keyed {
		if err := restoreKeyed(keyed, r, h); err != nil {
			return err
		}
	}
	for _, p := range rowsOf(r, true) {
		if err := restoreRows(r, p, func(f *state.RowsFile) error { return keyed.RestoreRows(f, p.Range, r.States) }); err != nil {
			return err
		}
	}
	return nil
}

func restoreKeyed[K comparable](keyed *state.Keyed[K], r *operator.Restored, h snapshot.KeyedHandle) error {
	var opened []io.Closer
	defer func() {
		for _, file := range opened {
			file.Close()
		}
	}()
	return keyed.Restore(state.RestoreFile{ID: r.Base, Handle: h, Open: func(h snapshot.Handle) (io.ReaderAt, error) {
		file, err := r.OpenPages(h)
		if err != nil {
			return nil, err
		}
		opened = append(opened, file)
		return file, nil
	}}, h.Range)
}

// rowsOf are the states by key of a canonical savepoint, or the lists.
func rowsOf(r *operator.Restored, keyed bool) (parts []snapshot.RowsPart) {
	for _, p := range r.Rows {
		if p.Keyed == keyed {
			parts = append(parts, p)
		}
	}
	return parts
}

// restoreRows opens a file of rows, its index read before it. Errors name the file.
func restoreRows(r *operator.Restored, p snapshot.RowsPart, restore func(*state.RowsFile) error) error {
	index, err := readAll(r, p.Index)
	if err != nil {
		return fmt.Errorf("the index of state %q: %w", p.Name, err)
	}
	file, err := r.Open(p.Handle)
	if err != nil {
		return fmt.Errorf("state %q: %w", p.Name, err)
	}
	defer file.Close()
	rows, err := state.OpenRows(file, file.Size(), index)
	if err == nil {
		err = restore(rows)
	}
	if err != nil {
		return fmt.Errorf("restoring %s by its index %s: %w", cmp.Or(p.File, "rows"), cmp.Or(p.Index.File, "in the metadata"), err)
	}
	return nil
}

// readAll is all bytes of a handle.
func readAll(r *operator.Restored, h snapshot.Handle) ([]byte, error) {
	file, err := r.Open(h)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.NewSectionReader(file, 0, file.Size()))
}
