package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sort"

	"github.com/weirstream/weir/internal/snapshot"
)

// Operator is the operator state of one subtask: lists and maps that belong to the subtask, not to a key. They are small
// beside keyed state, and a snapshot holds each by a header: lists only grow behind it, maps are copied on write.
//
// A snapshot ends an epoch. What was last written or cloned in an older one may be read by a snapshot: it is copied before
// it is written, and cloned before the user sees it. (Snapshots are few and soon written out, so nobody asks which of them
// are still read.)
//
// All methods are for the owner's goroutine.
type Operator struct {
	lists        []operatorState
	epoch        epoch
	allowDropped bool
	dropped      []string
	stored       []string // names in the snapshot
}

// operatorState is one declared list or map.
type operatorState interface {
	spec() Spec
	schema() snapshot.StateSchema
	mode() snapshot.Mode
	freeze() frozen
	readAs(stored snapshot.StateSchema) error   // says how elements were written that decode and skip will read
	decode(src []byte) (rest []byte, err error) // restores an element
	skip(src []byte) (rest []byte, err error)   // passes over one
}

// frozen is a list or map as a snapshot holds it.
type frozen interface {
	size() int
	// encode calls yield with each element, appended to the bytes that yield returned last.
	encode(dst []byte, yield func(element []byte) []byte) error
}

// NewOperator makes an operator state without lists; they are bound to it.
func NewOperator() *Operator { return &Operator{epoch: 1} }

var errUnbound = errors.New("the state belongs to no operator")

// add declares a list.
func (o *Operator) add(l operatorState) error {
	s := l.spec()
	switch {
	case s.Name == "":
		return fmt.Errorf("a state of kind %s has no name; give it one in its tag", l.schema().Kind)
	case s.TTL != 0:
		return fmt.Errorf("state %q: state of the operator does not expire; take ttl out of its tag", s.Name)
	}
	for _, other := range o.lists {
		if other.spec().Name == s.Name {
			return fmt.Errorf("state %q is declared twice, as %s and as %s; give one of them another name", s.Name,
				describe(other.schema()), describe(l.schema()))
		}
	}
	o.lists = append(o.lists, l)
	return nil
}

// Schemas are the declared states, in the order of their binding.
func (o *Operator) Schemas() (all []snapshot.StateSchema) {
	for _, l := range o.lists {
		s := l.schema()
		s.Was = l.spec().Was
		all = append(all, s)
	}
	return all
}

// OperatorSnapshot is operator state as it was at one moment. Any one goroutine may write it out; there is nothing to
// release.
type OperatorSnapshot struct {
	lists   []operatorState // of which only names, schemas and modes are used
	frozen  []frozen
	offsets [][]int64
}

// Snapshot is the synchronous part; it takes a few words per list.
func (o *Operator) Snapshot() *OperatorSnapshot {
	s := &OperatorSnapshot{lists: slices.Clone(o.lists), offsets: make([][]int64, len(o.lists))}
	for _, l := range o.lists {
		s.frozen = append(s.frozen, l.freeze())
	}
	o.epoch++
	return s
}

// Empty reports that no list has an element: nothing need be written.
func (s *OperatorSnapshot) Empty() bool {
	return !slices.ContainsFunc(s.frozen, func(f frozen) bool { return f.size() > 0 })
}

// Lists are, after WriteTo, the lists with the places of their elements. The handle is for the caller to fill in.
func (s *OperatorSnapshot) Lists() (all []snapshot.ListHandle) {
	for i, l := range s.lists {
		all = append(all, snapshot.ListHandle{Name: l.spec().Name, Mode: l.mode(), Offsets: s.offsets[i]})
	}
	return all
}

// WriteTo writes the snapshot as a state file.
func (s *OperatorSnapshot) WriteTo(w io.Writer) (n int64, err error) {
	f := &fileWriter{w: w}
	if err := f.begin(version1); err != nil {
		return f.off, err
	}
	trailer := binary.AppendUvarint([]byte{fileOperator}, uint64(len(s.lists)))
	for i, l := range s.lists {
		e := elementWriter{file: f}
		if err := e.write(s.frozen[i]); err != nil {
			return f.off, fmt.Errorf("state %q: %w", l.spec().Name, err)
		}
		s.offsets[i] = e.offsets
		trailer = append(appendSchema(trailer, l.schema()), byte(l.mode()))
		trailer = appendBlocks(trailer, e.blocks)
	}
	err = f.end(trailer)
	return f.off, err
}

// elementWriter writes the elements of one list, each behind its length, in blocks with checksums.
type elementWriter struct {
	file    *fileWriter
	offsets []int64
	blocks  []block
	count   int // elements in the open block
	err     error
}

func (e *elementWriter) write(l frozen) error {
	f := e.file
	f.buf = f.buf[:0]
	e.offsets = make([]int64, 0, l.size())
	var scratch []byte
	err := l.encode(nil, func(element []byte) []byte {
		scratch = element[:0]
		if e.err != nil {
			return scratch
		}
		e.offsets = append(e.offsets, f.off+int64(len(f.buf)))
		f.buf = append(binary.AppendUvarint(f.buf, uint64(len(element))), element...)
		e.count++
		if len(f.buf) >= blockBytes {
			e.err = e.flush()
		}
		return scratch
	})
	switch {
	case err != nil:
		return err
	case e.err == nil && e.count > 0:
		e.err = e.flush()
	}
	return e.err
}

func (e *elementWriter) flush() error {
	f := e.file
	e.blocks = append(e.blocks, block{
		off: f.off, length: len(f.buf), count: e.count, crc: crc32.Checksum(f.buf, castagnoli),
	})
	e.count = 0
	err := f.write(f.buf)
	f.buf = f.buf[:0]
	return err
}

// AllowDropped makes Restore pass over stored lists that are not declared any more, instead of refusing them.
func (o *Operator) AllowDropped() { o.allowDropped = true }

// Dropped are the names of the lists that Restore passed over.
func (o *Operator) Dropped() []string { return o.dropped }

// Stored says, before Restore, which states the snapshot has of the operator, in whichever subtask's part.
func (o *Operator) Stored(names []string) { o.stored = names }

// Restore adds the elements of a stored list that list.Offsets names. It is called for each handle that falls to the
// subtask, in the order in which the elements shall stand.
func (o *Operator) Restore(r io.ReaderAt, size int64, list snapshot.ListHandle) error {
	end, err := readEnd(r, size)
	if err != nil {
		return err
	}
	stored, blocks, err := findList(end.trailer, end.bodyEnd, list.Name)
	if err != nil {
		return err
	}
	l, err := o.matchOne(stored)
	if l == nil || err != nil {
		return err
	}
	e := elementReader{r: r, blocks: blocks}
	for _, off := range list.Offsets {
		src, err := e.element(off)
		if err != nil {
			return err
		}
		if src, err = l.decode(src); err != nil {
			return fmt.Errorf("state %q: %w", list.Name, err)
		}
		if len(src) > 0 {
			return corrupt("an element of state %q has %d bytes too many", list.Name, len(src))
		}
	}
	return nil
}

// matchOne finds the declared list of a stored one; nil: it is to be passed over.
func (o *Operator) matchOne(stored snapshot.StateSchema) (operatorState, error) {
	l := o.listFor(stored.Name)
	if l == nil {
		if !o.allowDropped {
			return nil, &SchemaError{State: stored.Name, Stored: stored.Kind}
		}
		if !slices.Contains(o.dropped, stored.Name) {
			o.dropped = append(o.dropped, stored.Name)
		}
		return nil, nil
	}
	return l, migrate(stored, l)
}

// listFor is the declared list that a stored name belongs to: the one of that name, else one that was called so and is not stored
// under its new name.
func (o *Operator) listFor(name string) operatorState {
	for _, l := range o.lists {
		if l.spec().Name == name {
			return l
		}
	}
	for _, l := range o.lists {
		if s := l.spec(); s.Was == name && name != "" && !slices.Contains(o.stored, s.Name) {
			return l
		}
	}
	return nil
}

// findList parses the trailer of a file of operator state up to its end, and returns what it says of one list.
func findList(p *parser, bodyEnd int64, name string) (s snapshot.StateSchema, blocks []block, err error) {
	if kind := p.byte(); p.err == nil && kind != fileOperator {
		return s, nil, corrupt("it is of kind %d, not operator state", kind)
	}
	found := false
	for range p.count() {
		schema := p.schema()
		p.byte() // the mode, which the metadata has too
		all := p.blocks(bodyEnd)
		if schema.Name == name {
			s, blocks, found = schema, all, true
		}
	}
	if err := p.done(); err != nil {
		return s, nil, err
	}
	if !found {
		return s, nil, corrupt("it has no list %q", name)
	}
	return s, blocks, nil
}

// elementReader reads elements by their offsets, a block at a time.
type elementReader struct {
	r      io.ReaderAt
	blocks []block // by offset
	open   block
	buf    []byte // the open block's bytes
}

// element is the bytes of the element at off.
func (e *elementReader) element(off int64) ([]byte, error) {
	if off < e.open.off || off >= e.open.off+int64(len(e.buf)) {
		if err := e.load(off); err != nil {
			return nil, err
		}
	}
	p := parser{b: e.buf[off-e.open.off:]}
	return p.bytes(p.count()), p.err
}

func (e *elementReader) load(off int64) error {
	i := sort.Search(len(e.blocks), func(i int) bool { return e.blocks[i].off > off }) - 1
	if i < 0 || off >= e.blocks[i].off+int64(e.blocks[i].length) {
		return corrupt("there is no element at %d", off)
	}
	e.open = e.blocks[i]
	e.buf = slices.Grow(e.buf[:0], e.open.length)[:e.open.length]
	if err := readFull(e.r, e.buf, e.open.off); err != nil {
		e.buf = e.buf[:0]
		return err
	}
	if crc32.Checksum(e.buf, castagnoli) != e.open.crc {
		e.buf = e.buf[:0]
		return corrupt("the checksum of the block at %d does not match", e.open.off)
	}
	return nil
}
