package weir

import (
	"errors"
	"fmt"

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

// addKeyedState puts keyed state into a part.
func addKeyedState(part *operator.Part, keyed *state.KeyedSnapshot, r base.KeyGroupRange) {
	part.Release = keyed.Release
	if keyed.Empty() {
		return
	}
	addWriter(part, func(w storage.Writer, f snapshot.Format, s *snapshot.Subtask) error {
		h, err := writeObject(w, "keyed", func(o storage.Object) error { _, err := keyed.WriteTo(o); return err })
		s.Keyed = append(s.Keyed, snapshot.KeyedHandle{Range: r, Handle: h})
		return err
	})
}

// addOperatorState puts lists and broadcast maps into a part.
func addOperatorState(part *operator.Part, ops *state.Operator) {
	lists := ops.Snapshot()
	if lists.Empty() {
		return
	}
	addWriter(part, func(w storage.Writer, f snapshot.Format, s *snapshot.Subtask) error {
		h, err := writeObject(w, "lists", func(o storage.Object) error { _, err := lists.WriteTo(o); return err })
		for _, l := range lists.Lists() {
			l.Handle = h
			s.Lists = append(s.Lists, l)
		}
		return err
	})
}

// writeObject writes one object of a checkpoint: whole, or nothing is left of it.
func writeObject(w storage.Writer, name string, write func(storage.Object) error) (snapshot.Handle, error) {
	o, err := w.Create(name)
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
		case sort == keyedState && len(r.Keyed) > 0:
			what = "state or timers by key"
		case sort == listState && len(r.Lists) > 0:
			what = fmt.Sprintf("state %q", r.Lists[0].Name)
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
	for _, l := range r.Lists {
		if err := restoreList(ops, r, l); err != nil {
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
