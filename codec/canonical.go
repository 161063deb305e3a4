package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"unsafe"
)

// canonical refuses a shape that cannot be a key: == on its values must mean equal bytes. use is what it was to be.
func canonical(root reflect.Type, s *shape, path, use string) error {
	refuse := func(reason, instead string) error {
		return &RefusedError{Root: root, Path: path, Type: s.typ, Reason: reason + " cannot be " + use, Instead: instead}
	}
	switch s.form {
	case formTime:
		return refuse("a time, whose == also compares location and clock reading,", "use its UnixNano")
	case formPointer:
		return refuse("a pointer, an address of this process,", "use what it points to")
	case formOpaque:
		return refuse("a type encoded by its own methods, which may give equal values unequal bytes,", "use its text or its parts: a string, integers, an array of bytes")
	case formArray:
		return canonical(root, s.elem, joinPath(path, "["+strconv.Itoa(s.length)+"]"), use)
	case formRecord:
		if s.skips {
			return refuse(`a struct with a field tagged weir:"-", which == compares and the bytes lack,`, "take the field out")
		}
		for _, f := range s.fields {
			if err := canonical(root, f.shape, joinPath(path, f.name), use); err != nil {
				return err
			}
		}
	case formBytes, formSlice, formMap:
		return refuse("a type that has no ==", "use a string or an array")
	}
	return nil
}

// A keyProgram writes the canonical bytes of keys, and finds NaN. Like a program it is flat; an array that is not of bytes
// has one for its elements.
//
//	integer, bool   8 bytes, little-endian, of the value as int64 or uint64: whatever its size
//	float           8 bytes, little-endian, of the float64; -0 is 0
//	string          its length as an unsigned varint, its bytes; alone: its bytes
//	array of bytes  its bytes
//	array, struct   its elements or fields in order, without any mark
type keyProgram struct{ ops []keyOp }

type keyOp struct {
	code   opcode // opBool to opString, opFixed, opArray
	offset uintptr
	length int
	elem   *keyProgram
	stride uintptr
	path   string
}

func keyProgramOf(s *shape) *keyProgram {
	p := &keyProgram{}
	p.add(s, 0, "")
	return p
}

func (p *keyProgram) add(s *shape, offset uintptr, path string) {
	switch s.form {
	case formRecord:
		for _, f := range s.fields {
			p.add(f.shape, offset+f.offset, joinPath(path, f.name))
		}
	case formArray:
		elem := keyProgramOf(s.elem)
		p.ops = append(p.ops, keyOp{code: opArray, offset: offset, length: s.length, elem: elem, stride: s.elem.typ.Size(), path: path})
	default:
		p.ops = append(p.ops, keyOp{code: codeOf(s), offset: offset, length: s.length, path: path})
	}
}

func (p *keyProgram) append(dst []byte, key unsafe.Pointer) []byte {
	for i := range p.ops {
		o := &p.ops[i]
		at := unsafe.Add(key, o.offset)
		switch o.code {
		case opString:
			s := *(*string)(at)
			dst = append(binary.AppendUvarint(dst, uint64(len(s))), s...)
		case opFixed:
			dst = append(dst, unsafe.Slice((*byte)(at), o.length)...)
		case opFloat32:
			dst = appendFloat(dst, float64(*(*float32)(at)))
		case opFloat64:
			dst = appendFloat(dst, *(*float64)(at))
		case opArray:
			for i := range o.length {
				dst = o.elem.append(dst, unsafe.Add(at, uintptr(i)*o.stride))
			}
		default:
			dst = binary.LittleEndian.AppendUint64(dst, integerAt(o.code, at))
		}
	}
	return dst
}

func appendFloat(dst []byte, f float64) []byte {
	if f == 0 {
		f = 0 // not -0
	}
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
}

// integerAt is an integer or boolean as 64 bits, its sign extended.
func integerAt(code opcode, at unsafe.Pointer) uint64 {
	switch code {
	case opInt8:
		return uint64(*(*int8)(at))
	case opInt16:
		return uint64(*(*int16)(at))
	case opInt32:
		return uint64(*(*int32)(at))
	case opBool, opUint8:
		return uint64(*(*uint8)(at))
	case opUint16:
		return uint64(*(*uint16)(at))
	case opUint32:
		return uint64(*(*uint32)(at))
	}
	return *(*uint64)(at)
}

// hasFloats tells whether a key can hold a NaN.
func (p *keyProgram) hasFloats() bool {
	for _, o := range p.ops {
		if o.code == opFloat32 || o.code == opFloat64 || o.code == opArray && o.elem.hasFloats() {
			return true
		}
	}
	return false
}

// valid refuses a NaN: it is not equal to itself, so its state could never be found again.
func (p *keyProgram) valid(key unsafe.Pointer) error {
	for i := range p.ops {
		o := &p.ops[i]
		at := unsafe.Add(key, o.offset)
		switch o.code {
		case opFloat32:
			if f := *(*float32)(at); f != f {
				return inside(o.path, errNaN)
			}
		case opFloat64:
			if f := *(*float64)(at); f != f {
				return inside(o.path, errNaN)
			}
		case opArray:
			for i := range o.length {
				if err := o.elem.valid(unsafe.Add(at, uintptr(i)*o.stride)); err != nil {
					return inside(o.path, inElement(i, err))
				}
			}
		}
	}
	return nil
}

var errNaN = fmt.Errorf("NaN is not equal to itself and cannot be a key: filter such records out before keying")
