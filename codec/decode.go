package codec

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"time"
	"unsafe"
)

// decode reads src from position at into the value at v, which is zero, and gives the position behind. heap is as in append.
//
// Nothing is made larger than the bytes that are there can fill: a length is compared with what is left before there is
// room made for it, and a long collection grows as its elements arrive.
func (p *program) decode(src []byte, at int, v, heap unsafe.Pointer, depth int) (int, error) {
	ops := p.ops
	for i := range ops {
		o := &ops[i]
		to := unsafe.Add(v, o.offset)
		var err error
		switch {
		case o.code <= opUint8:
			var n int64
			if at < len(src) && src[at] < 0x80 {
				n = unzigzag(uint64(src[at]))
				at++
			} else if n, at, err = longer(src, at); err != nil {
				break
			}
			if !store(o.code, to, n) {
				err = fmt.Errorf("%d does not fit into %s", n, integerNames[o.code])
			}
		case o.code == opString:
			var text []byte
			text, at, err = span(src, at)
			*(*string)(to) = string(text)
		case o.code <= opFloat32:
			at, err = decodeScalar(o.code, src, at, to)
		case o.code > opMap:
			at, err = o.decodeChanged(src, at, to, depth)
		default:
			at, err = o.decodeParts(src, at, to, part(heap, o.offset), depth)
		}
		if err != nil {
			return at, p.within(i, err)
		}
	}
	return at, nil
}

// store puts an integer in its place, if it fits.
func store(code opcode, to unsafe.Pointer, n int64) bool {
	switch code {
	case opInt64:
		*(*int64)(to) = n
		return true
	case opInt32:
		*(*int32)(to) = int32(n)
		return n == int64(int32(n))
	case opInt16:
		*(*int16)(to) = int16(n)
		return n == int64(int16(n))
	case opInt8:
		*(*int8)(to) = int8(n)
		return n == int64(int8(n))
	case opUint32:
		*(*uint32)(to) = uint32(n)
		return n == int64(uint32(n))
	case opUint16:
		*(*uint16)(to) = uint16(n)
		return n == int64(uint16(n))
	}
	*(*uint8)(to) = uint8(n)
	return n == int64(uint8(n))
}

// decodeScalar reads what has the same number of bytes whatever its value.
func decodeScalar(code opcode, src []byte, at int, to unsafe.Pointer) (int, error) {
	switch left := src[at:]; {
	case code == opBool && len(left) >= 1:
		if left[0] > 1 {
			return at, fmt.Errorf("a boolean of %d instead of 0 or 1", left[0])
		}
		*(*byte)(to) = left[0]
		return at + 1, nil
	case code == opUint64 && len(left) >= 8:
		*(*uint64)(to) = binary.BigEndian.Uint64(left)
		return at + 8, nil
	case code == opFloat64 && len(left) >= 8:
		*(*uint64)(to) = binary.LittleEndian.Uint64(left)
		return at + 8, nil
	case code == opFloat32 && len(left) >= 4:
		*(*uint32)(to) = binary.LittleEndian.Uint32(left)
		return at + 4, nil
	}
	return at, errShort
}

// decodeParts is decode for the operations that are rarer, or have parts.
func (o *op) decodeParts(src []byte, at int, to, heap unsafe.Pointer, depth int) (int, error) {
	switch o.code {
	case opTime:
		n, at, err := long(src, at)
		if n != zeroTime && err == nil {
			*(*time.Time)(to) = time.Unix(0, n).UTC()
		}
		return at, err
	case opBytes:
		bytes, at, err := span(src, at)
		if len(bytes) > 0 {
			*(*[]byte)(to) = append([]byte(nil), bytes...)
		}
		return at, err
	case opFixed:
		if len(src)-at < o.more.length {
			return at, errShort
		}
		return at + copy(unsafe.Slice((*byte)(to), o.more.length), src[at:]), nil
	case opOpaque:
		return o.more.decodeOpaque(src, at, heap)
	}
	if depth >= nestingMax {
		return at, errNesting
	}
	switch o.code {
	case opSlice:
		return o.more.decodeSlice(src, at, (*sliceHeader)(to), depth+1)
	case opArray:
		return o.more.decodeArray(src, at, to, heap, depth+1)
	case opPointer:
		return o.more.decodePointer(src, at, (*unsafe.Pointer)(to), depth+1)
	}
	return o.more.decodeMap(src, at, (*unsafe.Pointer)(to), depth+1)
}

func (m *operand) decodePointer(src []byte, at int, to *unsafe.Pointer, depth int) (int, error) {
	branch, at, err := long(src, at)
	if err != nil || branch == 0 {
		return at, err
	}
	if branch != 1 {
		return at, fmt.Errorf("branch %d of a union of two", branch)
	}
	*to = reflect.New(m.elem).UnsafePointer()
	return m.program.decode(src, at, *to, *to, depth)
}

func (m *operand) decodeOpaque(src []byte, at int, heap unsafe.Pointer) (int, error) {
	data, at, err := span(src, at)
	if err != nil {
		return at, err
	}
	if err := m.pair.unmarshal(reflect.NewAt(m.pairType, heap), data); err != nil {
		return at, fmt.Errorf("%v does not unmarshal: %w", m.pairType, err)
	}
	return at, nil
}

// span reads a length and gives the bytes it counts, which still belong to src.
func span(src []byte, at int) ([]byte, int, error) {
	n, at, err := long(src, at)
	if err != nil {
		return nil, at, err
	}
	if n < 0 || n > int64(len(src)-at) {
		return nil, at, fmt.Errorf("a length of %d bytes where %d are left", n, len(src)-at)
	}
	end := at + int(n)
	return src[at:end:end], end, nil
}
