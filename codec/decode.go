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
	var err error
	for i := range p.ops {
		o := &p.ops[i]
		to := unsafe.Add(v, o.offset)
		var n int64
		switch o.code {
		case opBool:
			at, err = decodeBool(src, at, (*byte)(to))
		case opInt8:
			n, at, err = long(src, at)
			*(*int8)(to) = int8(n)
			if n != int64(int8(n)) && err == nil {
				err = outOfRange(n, "int8")
			}
		case opInt16:
			n, at, err = long(src, at)
			*(*int16)(to) = int16(n)
			if n != int64(int16(n)) && err == nil {
				err = outOfRange(n, "int16")
			}
		case opInt32:
			n, at, err = long(src, at)
			*(*int32)(to) = int32(n)
			if n != int64(int32(n)) && err == nil {
				err = outOfRange(n, "int32")
			}
		case opInt64:
			*(*int64)(to), at, err = long(src, at)
		case opUint8:
			n, at, err = long(src, at)
			*(*uint8)(to) = uint8(n)
			if n != int64(uint8(n)) && err == nil {
				err = outOfRange(n, "uint8")
			}
		case opUint16:
			n, at, err = long(src, at)
			*(*uint16)(to) = uint16(n)
			if n != int64(uint16(n)) && err == nil {
				err = outOfRange(n, "uint16")
			}
		case opUint32:
			n, at, err = long(src, at)
			*(*uint32)(to) = uint32(n)
			if n != int64(uint32(n)) && err == nil {
				err = outOfRange(n, "uint32")
			}
		case opUint64:
			if len(src)-at < 8 {
				err = errShort
				break
			}
			*(*uint64)(to) = binary.BigEndian.Uint64(src[at:])
			at += 8
		case opFloat32:
			if len(src)-at < 4 {
				err = errShort
				break
			}
			*(*uint32)(to) = binary.LittleEndian.Uint32(src[at:])
			at += 4
		case opFloat64:
			if len(src)-at < 8 {
				err = errShort
				break
			}
			*(*uint64)(to) = binary.LittleEndian.Uint64(src[at:])
			at += 8
		case opString:
			var text []byte
			text, at, err = span(src, at)
			*(*string)(to) = string(text)
		default:
			at, err = o.decodeParts(src, at, to, part(heap, o.offset), depth)
		}
		if err != nil {
			return at, p.within(i, err)
		}
	}
	return at, nil
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
	case opCallPair:
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

func decodeBool(src []byte, at int, to *byte) (int, error) {
	if at >= len(src) {
		return at, errShort
	}
	if src[at] > 1 {
		return at, fmt.Errorf("a boolean of %d instead of 0 or 1", src[at])
	}
	*to = src[at]
	return at + 1, nil
}

func (m *operand) decodePointer(src []byte, at int, to *unsafe.Pointer, depth int) (int, error) {
	branch, at, err := long(src, at)
	if err != nil || branch == 0 {
		return at, err
	}
	if branch != 1 {
		return at, fmt.Errorf("branch %d of a union of two", branch)
	}
	*to = reflect.New(m.elemType).UnsafePointer()
	return m.elem.decode(src, at, *to, *to, depth)
}

func (m *operand) decodeOpaque(src []byte, at int, heap unsafe.Pointer) (int, error) {
	data, at, err := span(src, at)
	if err != nil {
		return at, err
	}
	if err := m.pair.unmarshal(reflect.NewAt(m.typ, heap), data); err != nil {
		return at, fmt.Errorf("%v does not unmarshal: %w", m.typ, err)
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

// long reads an Avro int or long.
func long(src []byte, at int) (int64, int, error) {
	if at < len(src) && src[at] < 0x80 {
		u := uint64(src[at])
		return int64(u>>1) ^ -int64(u&1), at + 1, nil
	}
	return longerLong(src, at)
}

func longerLong(src []byte, at int) (int64, int, error) {
	u, size := binary.Uvarint(src[at:])
	switch {
	case size == 0:
		return 0, at, errShort
	case size < 0:
		return 0, at, errLong
	}
	return int64(u>>1) ^ -int64(u&1), at + size, nil
}

func outOfRange(n int64, kind string) error {
	return fmt.Errorf("%d does not fit into %s", n, kind)
}
