package state

import (
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/snapshot"
)

// StoredList is one list, or one broadcast map, of one old subtask.
type StoredList struct {
	schema  snapshot.StateSchema
	mapKey  *codec.Type
	value   *codec.Type
	read    elementReader
	offsets []int64
}

// OpenList finds a list in a native file.
func OpenList(list snapshot.ListHandle, open func(snapshot.Handle) (io.ReaderAt, error)) (*StoredList, error) {
	r, err := open(list.Handle)
	if err != nil {
		return nil, err
	}
	end, err := readEnd(r, list.Size)
	if err != nil {
		return nil, err
	}
	l := &StoredList{offsets: slices.Clone(list.Offsets)}
	l.read.r = r
	if l.schema, l.read.blocks, err = findList(end.trailer, end.bodyEnd, list.Name); err != nil {
		return nil, err
	}
	if l.mapKey, l.value, err = typesOf(l.schema.MapKey, l.schema.Value); err != nil {
		return nil, fmt.Errorf("%w: state %q: %w", ErrCorrupt, list.Name, err)
	}
	return l, nil
}

// State is what the file says of the list.
func (l *StoredList) State() StoredState { return StoredState{Schema: l.schema} }

// Bytes is how many bytes its elements take.
func (l *StoredList) Bytes() (n int64) {
	for _, b := range l.read.blocks {
		n += int64(b.length)
	}
	return n
}

// Rows are the elements. An error is the last that comes.
func (l *StoredList) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for i, off := range l.offsets {
			r, err := l.row(off)
			if err != nil {
				yield(Row{}, fmt.Errorf("state %q, element %d: %w", l.schema.Name, i, err))
				return
			}
			if r.Index = int64(i); !yield(r, nil) {
				return
			}
		}
	}
}

func (l *StoredList) row(off int64) (r Row, err error) {
	src, err := l.read.element(off)
	if err != nil {
		return r, err
	}
	if l.mapKey != nil {
		if r.MapKey, src, err = cutValue(l.mapKey, src); err != nil {
			return r, err
		}
	}
	if r.Value, src, err = cutValue(l.value, src); err == nil && len(src) > 0 {
		err = corrupt("%d bytes too many", len(src))
	}
	return r, err
}
