package state

import (
	"fmt"

	"github.com/weirstream/weir/internal/avrofile"
)

// Rows are the lists and maps of the snapshot in the canonical format, also those without an element. A row is an element: of a
// map a key and its value. Their order is their number.
func (s *OperatorSnapshot) Rows() (all []*Rows) {
	for i, l := range s.lists {
		r := &Rows{schema: l.schema(), mode: l.mode()}
		r.columns = rowColumns(r.schema, 0)
		r.write = func(f *avrofile.Writer) error { return writeElements(f, s.frozen[i]) }
		all = append(all, r)
	}
	return all
}

func writeElements(f *avrofile.Writer, l frozen) (err error) {
	n := uint64(0)
	failed := l.encode(nil, func(element []byte) []byte {
		if err == nil {
			err = f.Add(append(f.Buffer(), element...), n)
			n++
		}
		return element[:0]
	})
	if failed != nil {
		return failed
	}
	return err
}

// RestoreRows adds the rows numbered from up to to, to itself not, of one file of a canonical savepoint. It is called for each file
// that falls to the subtask, in the order in which the elements shall stand.
func (o *Operator) RestoreRows(f *RowsFile, from, to int64) error {
	stored := f.schema
	l, err := o.matchOne(stored)
	if l == nil || err != nil {
		return err
	}
	if from < 0 || from > to || to > f.Rows() {
		return fmt.Errorf("state %q: there are no rows %d to %d among %d", stored.Name, from, to, f.Rows())
	}
	if err := restoreElements(l, f, uint64(from), uint64(to)); err != nil {
		return fmt.Errorf("state %q: %w", stored.Name, err)
	}
	return nil
}

func restoreElements(l operatorState, f *RowsFile, from, to uint64) error {
	for b, err := range f.Blocks(from) {
		if err != nil {
			return damaged(err)
		}
		src := b.Rows
		for n := b.First; n < b.First+uint64(b.Count); n++ {
			read := l.decode
			switch {
			case n >= to:
				return nil
			case n < from:
				read = l.skip
			}
			if src, err = read(src); err != nil {
				return err
			}
		}
		if len(src) > 0 {
			return corrupt("a block has %d bytes too many", len(src))
		}
	}
	return nil
}
