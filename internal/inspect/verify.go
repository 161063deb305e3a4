package inspect

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
	"github.com/weirstream/weir/internal/storage"
)

// Verdict is what Verify has found.
type Verdict struct {
	Files  int   `json:"files"`
	Bytes  int64 `json:"bytes"` // of the files
	Inline int   `json:"inline"`
	// Faults are what makes the snapshot unfit to be restored, or at least a part of it.
	Faults []Fault `json:"faults,omitempty"`
	// Strangers are files in the directory that nobody names. They harm nobody.
	Strangers []string `json:"strangers,omitempty"`
}

// Fault is something that is not as it was written.
type Fault struct {
	// Where is the file, or what lies inline; Owner whose it is.
	Where string `json:"where"`
	Owner string `json:"owner"`
	What  string `json:"what"`
}

func (f Fault) String() string { return fmt.Sprintf("%s (%s): %s", f.Where, f.Owner, f.What) }

// Verify reads all of the snapshot: each file against the checksum of the whole, then what is in it, by its own checksums and as what it
// should be. The error is one of looking, not of what is looked at.
func (s *Snapshot) Verify() (*Verdict, error) {
	v := &verifier{snapshot: s, seen: map[string]bool{}}
	if err := s.Handles(func(o snapshot.Owner, h *snapshot.Handle) error { v.handle(o, *h); return nil }); err != nil {
		return nil, err
	}
	for i := range s.Operators {
		v.operator(&s.Operators[i])
	}
	err := v.strangers()
	return &v.Verdict, err
}

type verifier struct {
	Verdict
	snapshot *Snapshot
	seen     map[string]bool // files, by name
}

func (v *verifier) fault(where, owner string, err error) {
	v.Faults = append(v.Faults, Fault{where, owner, err.Error()})
}

// handle verifies size and checksum of the bytes of a handle.
func (v *verifier) handle(owner snapshot.Owner, h snapshot.Handle) {
	where := "inline"
	if h.File == "" {
		v.Inline++
	} else {
		if v.seen[h.File] {
			return
		}
		v.seen[h.File] = true
		v.Files++
		v.Bytes += h.Size
		where = h.File
	}
	r, err := storage.OpenHandle(v.snapshot.fs, v.snapshot.Location, h)
	if err == nil {
		err = r.Close()
	}
	if err != nil {
		v.fault(where, owner.String(), err)
	}
}

// operator verifies what is in the files of an operator.
func (v *verifier) operator(o *snapshot.Operator) {
	for i := range o.Subtasks {
		t := &o.Subtasks[i]
		at := func(file string) (where, owner string) {
			if file == "" {
				file = "inline"
			}
			return file, fmt.Sprintf("%v, subtask %d", o, t.Index)
		}
		check := func(file string, err error) {
			if err != nil {
				where, owner := at(file)
				v.fault(where, owner, err)
			}
		}
		for _, h := range t.Keyed {
			check(h.File, v.keyed(o, h))
		}
		for _, h := range t.Lists {
			check(h.File, v.list(o, h))
		}
		for _, h := range t.Rows {
			check(h.File, v.rows(o, h))
		}
		for _, h := range t.InFlight {
			check(h.File, v.flight(t, h))
		}
	}
}

func (v *verifier) keyed(o *snapshot.Operator, h snapshot.KeyedHandle) error {
	f, err := state.OpenKeyed(state.RestoreFile{Handle: h, Open: v.snapshot.readerAt})
	if err != nil {
		return err
	}
	for _, st := range f.States() {
		if err := declared(o, st.Schema); err != nil {
			return err
		}
	}
	return f.Check()
}

// declared demands that a file says the same of a state as the metadata.
func declared(o *snapshot.Operator, s snapshot.StateSchema) error {
	if d := schemaOf(o, s.Name); d.Kind != s.Kind || d.Key != s.Key || d.MapKey != s.MapKey || d.Value != s.Value {
		return damaged("state %q is one of kind %s here, and of kind %q or another type in the metadata", s.Name, s.Kind, d.Kind)
	}
	return nil
}

func (v *verifier) list(o *snapshot.Operator, h snapshot.ListHandle) error {
	l, err := state.OpenList(h, v.snapshot.readerAt)
	if err != nil {
		return err
	}
	if err := declared(o, l.State().Schema); err != nil {
		return err
	}
	for _, err := range l.Rows() {
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) rows(o *snapshot.Operator, h snapshot.RowsHandle) error {
	p, err := v.snapshot.rowsPart(h)
	if err != nil {
		return err
	}
	if err := declared(o, p.Schema); err != nil {
		return err
	}
	n := int64(0)
	all := p.rows
	if h.Keyed { // also those that are out of the range, to tell them
		f, err := v.snapshot.openRows(h)
		if err != nil {
			return err
		}
		all = f.ScanKeyed
	}
	for row, err := range all(state.AllHashes) {
		if err != nil {
			return err
		}
		if group := base.KeyGroupOf(row.Hash); h.Keyed && (group < h.Range.First || group > h.Range.Last) {
			return damaged("a row of the key group %d, the file is of %d to %d", group, h.Range.First, h.Range.Last)
		}
		n++
	}
	if n != h.Count {
		return damaged("%d rows, the metadata says %d", n, h.Count)
	}
	return nil
}

func (v *verifier) flight(t *snapshot.Subtask, h snapshot.InFlightHandle) (err error) {
	v.snapshot.flight(t.Index, h, func(e *entry, failed error) bool {
		if err = failed; err == nil {
			_, err = e.append(nil)
		}
		return err == nil
	})
	return err
}

// strangers finds the files that nobody names.
func (v *verifier) strangers() error {
	s := v.snapshot
	entries, err := s.fs.List(s.Location)
	if err != nil {
		return errors.Join(errors.New("looking for files that nobody names"), err)
	}
	for _, e := range entries {
		named := v.seen[e.Name] || v.seen[path.Join(s.Location, e.Name)]
		if !named && !storage.IsOwnName(e.Name) {
			v.Strangers = append(v.Strangers, e.Name)
		}
	}
	slices.Sort(v.Strangers)
	return nil
}
