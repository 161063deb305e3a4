package codec

import (
	"math"
	"reflect"
)

// A program appends and decodes the values of one shape. It is a flat list of operations on offsets from the start
// of the value: a struct within a struct, to any depth, is a run of operations of the outer one. Only what lies elsewhere
// in memory (behind a pointer, slice or map) or repeats (an array) has a program of its own, and a recursive type is a
// program that refers to itself.
//
// Why not a tree of closures: calling one per field costs as much as writing an int does; a switch over a small dense
// opcode is a jump. And the compiler sees through it: the value that a caller hands in stays on its stack.
type program struct {
	ops    []op
	paths  []string // of each operation, for errors
	opaque bool     // an operation of it, or of a program it refers to without a pointer between, is opOpaque
}

// op is one operation on the part of a value that lies offset bytes from its start.
type op struct {
	code   opcode
	offset uintptr
	more   *operand
}

// operand is what the operations with parts need.
type operand struct {
	elements          // of a slice, array or map (its values); what a pointer points to
	program  *program // of an element
	key      *program // of a map
	keyType  reflect.Type
	least    int // the fewest bytes an element, or an entry, takes
	length   int // of an array in elements, of a fixed in bytes
	pair     pairKind
	pairType reflect.Type // of an opaque
	skipped  *node
}

// opcode is what an op does. The order matters: integers first, then the other scalars.
type opcode uint8

const (
	opInt64 opcode = iota
	opInt32
	opInt16
	opInt8
	opUint32
	opUint16
	opUint8
	opBool
	opUint64
	opFloat64
	opFloat32
	opString
	opBytes
	opFixed
	opTime
	opOpaque
	opSlice
	opArray
	opPointer
	opMap
	// Only readers of other schemas have these.
	opIntDouble   // an int into a float64
	opFloatDouble // a float into a float64
	opPresent     // what is written without a pointer, into a pointer
	opSkip        // what is not declared any more
)

// integerNames names the operations up to opUint8 for errors.
var integerNames = [...]string{"int64", "int32", "int16", "int8", "uint32", "uint16", "uint8"}

// nestingMax is how deep values may lie in each other. Bytes that ask for more are damaged; a value that does is a cycle,
// or a list that should be a slice. Without the limit either would end the process: Go cannot recover from a stack that
// has grown too large.
const nestingMax = 10_000

// emptyMax is how many elements without bytes, such as struct{}, a collection may have: any number costs no bytes.
const emptyMax = math.MaxInt32

type compiler struct{ made map[*shape]*program }

// compile makes the program of s and all that it refers to.
func compile(s *shape) *program {
	return (&compiler{made: make(map[*shape]*program)}).program(s)
}

func (c *compiler) program(s *shape) *program {
	if p := c.made[s]; p != nil {
		return p
	}
	p := &program{}
	c.made[s] = p
	c.add(p, s, 0, "")
	return p
}

// add adds the operations of s, which lies offset bytes from the start of p's value.
func (c *compiler) add(p *program, s *shape, offset uintptr, path string) {
	if s.form == formRecord {
		for _, f := range s.fields {
			c.add(p, f.shape, offset+f.offset, joinPath(path, f.name))
		}
		return
	}
	o := op{code: codeOf(s), offset: offset}
	switch s.form {
	case formFixed:
		o.more = &operand{length: s.length}
	case formOpaque:
		o.more = &operand{pairType: s.typ, pair: s.pair}
		p.opaque = true
	case formSlice, formArray, formPointer:
		o.more = c.parts(s)
	case formMap:
		o.more = c.parts(s)
		o.more.keyType, o.more.key = s.key.typ, c.program(s.key)
		o.more.least += s.key.least()
	}
	p.opaque = p.opaque || s.form == formArray && o.more.program.opaque
	p.ops = append(p.ops, o)
	p.paths = append(p.paths, path)
}

func (c *compiler) parts(s *shape) *operand {
	return &operand{elements: elementsOf(s), program: c.program(s.elem), length: s.length, least: s.elem.least()}
}

// codeOf is the operation for what is no record.
func codeOf(s *shape) opcode {
	switch s.form {
	case formInt:
		return map[uintptr]opcode{1: opInt8, 2: opInt16, 4: opInt32, 8: opInt64}[s.typ.Size()]
	case formUint:
		return map[uintptr]opcode{1: opUint8, 2: opUint16, 4: opUint32}[s.typ.Size()]
	case formFloat:
		return map[uintptr]opcode{4: opFloat32, 8: opFloat64}[s.typ.Size()]
	}
	return map[form]opcode{
		formBool: opBool, formUint64: opUint64, formString: opString, formTime: opTime, formBytes: opBytes, formFixed: opFixed,
		formSlice: opSlice, formArray: opArray, formPointer: opPointer, formMap: opMap, formOpaque: opOpaque,
	}[s.form]
}
