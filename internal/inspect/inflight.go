package inspect

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
)

// flightRecord is what stands with a record that was in flight.
type flightRecord struct {
	edge   string
	sender uint64
	at     base.EventTime
}

// inFlight are the records that a barrier overtook on their way to an operator, or from it.
func (s *Snapshot) inFlight(o *snapshot.Operator) iter.Seq2[*entry, error] {
	return func(yield func(*entry, error) bool) {
		for _, t := range o.Subtasks {
			for _, h := range t.InFlight {
				if !s.flight(t.Index, h, yield) {
					return
				}
			}
		}
	}
}

// flight calls yield with the records of a handle.
func (s *Snapshot) flight(subtask int, h snapshot.InFlightHandle, yield func(*entry, error) bool) (more bool) {
	e := &entry{subtask: subtask, flight: &flightRecord{edge: h.Edge.String()}}
	var err error
	if e.typed, err = codec.TypeOf(s.recordOf(h.Edge)); err != nil {
		yield(nil, err)
		return false
	}
	b, err := s.bytes(h.Handle)
	for n := int64(0); err == nil && len(b) > 0; {
		var batch flightBatch
		if batch, b, err = cutBatch(b); err == nil {
			more, err = batch.each(e, yield)
			n += int64(batch.count)
		}
		if err == nil && !more {
			return false
		}
		if err == nil && len(b) == 0 && n != h.Records {
			err = damaged("%d records on the edge %v, the metadata says %d", n, h.Edge, h.Records)
		}
	}
	if err != nil {
		yield(nil, err)
		return false
	}
	return true
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", snapshot.ErrDamaged, fmt.Sprintf(format, args...))
}

// flightBatch is records of one sender, as docs/format/checkpoint.md draws them.
type flightBatch struct {
	sender uint64
	count  int
	body   []byte // times, then values
}

var errFlight = damaged("records in flight that make no sense")

// cutBatch cuts the batch off that b begins with.
func cutBatch(b []byte) (f flightBatch, rest []byte, err error) {
	sender, n := binary.Uvarint(b)
	count, m := binary.Uvarint(b[max(n, 0):])
	if n <= 0 || m <= 0 || len(b) < n+m+8 {
		return f, nil, errFlight
	}
	length := binary.LittleEndian.Uint64(b[n+m:])
	b = b[n+m+8:]
	if length > uint64(len(b)) || count > length/8 {
		return f, nil, errFlight
	}
	return flightBatch{sender, int(count), b[:length]}, b[length:], nil
}

// each calls yield with the records of a batch.
func (f *flightBatch) each(e *entry, yield func(*entry, error) bool) (more bool, err error) {
	values := f.body[8*f.count:]
	for i := range f.count {
		rest, err := e.typed.Skip(values)
		if err != nil {
			return false, err
		}
		e.Row = state.Row{Value: values[:len(values)-len(rest)]}
		e.flight.sender, e.flight.at = f.sender, base.EventTime(binary.LittleEndian.Uint64(f.body[8*i:]))
		if !yield(e, nil) {
			return false, nil
		}
		values = rest
	}
	if len(values) > 0 {
		return false, errFlight
	}
	return true, nil
}
