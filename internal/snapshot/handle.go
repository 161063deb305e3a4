package snapshot

import "hash/crc32"

// castagnoli is the polynomial of every checksum in a checkpoint: processors compute it in hardware.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum continues the CRC-32C crc (0 at the start) over b.
func Checksum(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli, b) }

// Handle says where bytes are: in Inline, or in File. The zero Handle is no bytes at all.
type Handle struct {
	Inline []byte
	// File is relative to the directory of the metadata, so that the directory may be moved; a file shared by checkpoints
	// is named absolutely.
	File string
	Size int64
	// CRC is the CRC-32C (Castagnoli) of the bytes, computed while they were written.
	CRC uint32
}

// InlineHandle is a handle that holds b itself, without copying it.
func InlineHandle(b []byte) Handle {
	return Handle{Inline: b, Size: int64(len(b)), CRC: Checksum(0, b)}
}

// Owner says whose a handle is.
type Owner struct {
	operator *Operator
	subtask  int // -1: of the operator as a whole
	what     string
	name     string
	refers   bool
}

// Refers reports that the handle is of a file that an older checkpoint wrote, of which this one may need a part only.
func (o Owner) Refers() bool { return o.refers }

func (o Owner) String() string {
	what := o.what
	if o.name != "" {
		what += " " + quote(o.name)
	}
	switch {
	case o.operator == nil:
		return what
	case o.subtask < 0:
		return o.operator.String() + ", " + what
	}
	return o.operator.part(o.subtask) + ", " + what
}

// Handles calls visit for every handle of the checkpoint, until visit returns an error.
func (m *Metadata) Handles(visit func(Owner, *Handle) error) error {
	for i := range m.Operators {
		if err := m.Operators[i].handles(visit); err != nil {
			return err
		}
	}
	for i := range m.Hooks {
		if err := visit(Owner{what: "hook", name: m.Hooks[i].ID}, &m.Hooks[i].State); err != nil {
			return err
		}
	}
	return nil
}

func (o *Operator) handles(visit func(Owner, *Handle) error) error {
	if o.Coordinator != nil {
		if err := visit(Owner{operator: o, subtask: -1, what: "coordinator"}, o.Coordinator); err != nil {
			return err
		}
	}
	for i := range o.Subtasks {
		if err := o.subtaskHandles(&o.Subtasks[i], visit); err != nil {
			return err
		}
	}
	return nil
}

func (o *Operator) subtaskHandles(s *Subtask, visit func(Owner, *Handle) error) error {
	for i := range s.Keyed {
		k := &s.Keyed[i]
		if err := visit(Owner{operator: o, subtask: s.Index, what: "keyed state"}, &k.Handle); err != nil {
			return err
		}
		for j := range k.Refers {
			if err := visit(Owner{operator: o, subtask: s.Index, what: "keyed state of older checkpoints", refers: true}, &k.Refers[j]); err != nil {
				return err
			}
		}
	}
	for i := range s.Lists {
		l := &s.Lists[i]
		if err := visit(Owner{operator: o, subtask: s.Index, what: "list", name: l.Name}, &l.Handle); err != nil {
			return err
		}
	}
	for i := range s.Rows {
		r := &s.Rows[i]
		if err := visit(Owner{operator: o, subtask: s.Index, what: "rows", name: r.Name}, &r.Handle); err != nil {
			return err
		}
		if err := visit(Owner{operator: o, subtask: s.Index, what: "index of rows", name: r.Name}, &r.Index); err != nil {
			return err
		}
	}
	for i := range s.InFlight {
		h := &s.InFlight[i]
		if err := visit(Owner{operator: o, subtask: s.Index, what: "records in flight", name: h.Edge.String()}, &h.Handle); err != nil {
			return err
		}
	}
	return nil
}
