package codec

import (
	"fmt"
	"strings"
)

// Type is a type that is known by its schema alone: it reads stored values where the program that declared them is not there. It may
// be used from any number of goroutines at once.
//
// A schema says a little less than Go did: a time.Duration is a long of nanoseconds, and what a type's own methods have made is bytes.
type Type struct{ node *node }

// TypeOf is the type that a schema describes.
func TypeOf(schema string) (*Type, error) {
	n, err := parse(schema)
	if err != nil {
		return nil, err
	}
	return &Type{n}, nil
}

// String is the type for people, in the words of Go as far as the schema has them: map[string]Order{ID long, Lines []Line{...}}. A
// record is spelt out where it comes first.
func (t *Type) String() string {
	s := speller{spelt: map[*node]bool{}}
	s.spell(t.node)
	return s.text.String()
}

// Skip passes over the value that src begins with.
func (t *Type) Skip(src []byte) (rest []byte, err error) {
	at, err := t.node.skip(src, 0, 0)
	if err != nil {
		return nil, t.fail(err, at, src)
	}
	return src[at:], nil
}

func (t *Type) fail(err error, at int, src []byte) error {
	return fmt.Errorf("codec: decoding %v, byte %d of %d: %w", t.node, at, len(src), err)
}

// Weightless reports that every value is written as no bytes at all.
func (t *Type) Weightless() bool { return t.node.least() == 0 }

// uint64Name is the name by which a fixed is known to be a uint64.
const uint64Name = "weir.uint64"

// isUint64 tells whether n is a uint64, and not an array of eight bytes.
func (n *node) isUint64() bool { return n.kind == nodeFixed && n.name == uint64Name && n.size == 8 }

// speller writes types as text.
type speller struct {
	text  strings.Builder
	spelt map[*node]bool
}

func (s *speller) spell(n *node) {
	switch {
	case n.kind == nodeRecord:
		s.record(n)
	case n.kind == nodeUnion:
		s.text.WriteByte('*')
		s.spell(n.elem)
	case n.isMap():
		s.text.WriteString("map[")
		s.spell(n.elem.fields[0].node)
		s.text.WriteByte(']')
		s.spell(n.elem.fields[1].node)
	case n.kind == nodeArray && n.length != anyLength:
		fmt.Fprintf(&s.text, "[%d]", n.length)
		s.spell(n.elem)
	case n.kind == nodeArray:
		s.text.WriteString("[]")
		s.spell(n.elem)
	case n.kind == nodeFixed && !n.isUint64():
		fmt.Fprintf(&s.text, "[%d]byte", n.size)
	default:
		s.text.WriteString(n.String())
	}
}

func (s *speller) record(n *node) {
	s.text.WriteString(n.String())
	if s.spelt[n] {
		return
	}
	s.spelt[n] = true
	s.text.WriteByte('{')
	for i, f := range n.fields {
		if i > 0 {
			s.text.WriteString(", ")
		}
		s.text.WriteString(f.name + " ")
		s.spell(f.node)
	}
	s.text.WriteByte('}')
}

// sizer refuses schemas that no type of Go has, and that would keep a reader busy for ever: records that contain themselves with nothing
// between, and records of records of records that amount to fields without number.
type sizer struct {
	weights map[*node]int
	behind  []*node // lists and pointers: they may lead back to what is being weighed, so they come later
}

const (
	weightMax = 1 << 16 // fields, those of inner records included
	unweighed = -1      // it is being weighed
)

func (s *sizer) check(n *node) error {
	for s.behind = []*node{n}; len(s.behind) > 0; {
		last := len(s.behind) - 1
		n, s.behind = s.behind[last], s.behind[:last]
		if _, err := s.weigh(n); err != nil {
			return err
		}
	}
	return nil
}

// weigh counts the fields that a value of n has in any case.
func (s *sizer) weigh(n *node) (weight int, err error) {
	switch w, seen := s.weights[n]; {
	case seen && w == unweighed:
		return 0, fmt.Errorf("the record %q contains itself with no list or pointer between", n.name)
	case seen:
		return w, nil
	}
	s.weights[n] = unweighed
	weight = 1
	for _, f := range n.fields {
		w, err := s.weigh(f.node)
		if err != nil {
			return 0, err
		}
		if weight += w; weight > weightMax {
			return 0, fmt.Errorf("the record %q has more than %d fields in all", n.name, weightMax)
		}
	}
	s.weights[n] = weight
	if n.elem != nil {
		s.behind = append(s.behind, n.elem)
	}
	return weight, nil
}
