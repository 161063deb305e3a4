package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"
	"unsafe"
)

// append writes the value at v behind dst. heap is v again when the value is known to lie on the heap, as it must for
// opaque types, whose methods are the user's and may keep the pointer; that way v itself never escapes.
func (p *program) append(dst []byte, v, heap unsafe.Pointer, depth int) ([]byte, error) {
	ops := p.ops
	for i := range ops {
		o := &ops[i]
		at := unsafe.Add(v, o.offset)
		var n int64
		switch o.code {
		case opInt64:
			n = *(*int64)(at)
		case opInt32:
			n = int64(*(*int32)(at))
		case opInt16:
			n = int64(*(*int16)(at))
		case opInt8:
			n = int64(*(*int8)(at))
		case opUint32:
			n = int64(*(*uint32)(at))
		case opUint16:
			n = int64(*(*uint16)(at))
		case opUint8:
			n = int64(*(*uint8)(at))
		case opBool:
			dst = append(dst, *(*byte)(at))
			continue
		case opUint64:
			dst = binary.BigEndian.AppendUint64(dst, *(*uint64)(at))
			continue
		case opFloat64:
			dst = binary.LittleEndian.AppendUint64(dst, *(*uint64)(at))
			continue
		case opFloat32:
			dst = binary.LittleEndian.AppendUint32(dst, *(*uint32)(at))
			continue
		case opString:
			s := *(*string)(at)
			dst = append(appendLong(dst, int64(len(s))), s...)
			continue
		default:
			var err error
			if dst, err = o.appendParts(dst, at, part(heap, o.offset), depth); err != nil {
				return dst, p.within(i, err)
			}
			continue
		}
		if u := zigzag(n); u < 0x80 {
			dst = append(dst, byte(u))
		} else {
			dst = appendLonger(dst, u)
		}
	}
	return dst, nil
}

// appendParts is append for the operations that are rarer, or have parts.
func (o *op) appendParts(dst []byte, at, heap unsafe.Pointer, depth int) ([]byte, error) {
	switch o.code {
	case opBytes:
		s := *(*[]byte)(at)
		return append(appendLong(dst, int64(len(s))), s...), nil
	case opFixed:
		return append(dst, unsafe.Slice((*byte)(at), o.more.length)...), nil
	case opTime:
		return appendTime(dst, *(*time.Time)(at))
	case opOpaque:
		return o.more.appendOpaque(dst, heap)
	}
	if depth >= nestingMax {
		return dst, errNesting
	}
	switch o.code {
	case opSlice:
		s := *(*sliceHeader)(at)
		return o.more.appendElements(dst, s.data, s.data, s.length, depth+1)
	case opArray:
		return o.more.appendElements(dst, at, heap, o.more.length, depth+1)
	case opPointer:
		target := *(*unsafe.Pointer)(at)
		if target == nil {
			return append(dst, 0), nil
		}
		return o.more.program.append(append(dst, 2), target, target, depth+1)
	}
	return o.more.appendMap(dst, *(*unsafe.Pointer)(at), depth+1)
}

// appendElements writes one block with all elements, and the block of none that ends it.
func (m *operand) appendElements(dst []byte, elems, heap unsafe.Pointer, count, depth int) (_ []byte, err error) {
	if count == 0 {
		return append(dst, 0), nil
	}
	dst = appendLong(dst, int64(count))
	if m.least == 0 {
		if count > emptyMax {
			return dst, errEmpty
		}
		return append(dst, 0), nil
	}
	for i := range count {
		if dst, err = m.program.append(dst, m.at(elems, i), part(heap, uintptr(i)*m.size), depth); err != nil {
			return dst, inElement(i, err)
		}
	}
	return append(dst, 0), nil
}

// part is a pointer into the value at heap, where there is one.
func part(heap unsafe.Pointer, offset uintptr) unsafe.Pointer {
	if heap == nil {
		return nil
	}
	return unsafe.Add(heap, offset)
}

// appendMap writes the entries ordered by their bytes, so that equal maps have equal bytes. No key's bytes begin with
// another's, so this is the order of the keys' bytes.
func (m *operand) appendMap(dst []byte, entries unsafe.Pointer, depth int) (_ []byte, err error) {
	holder := new(unsafe.Pointer)
	*holder = entries
	all := reflect.NewAt(m.slice, unsafe.Pointer(holder)).Elem()
	if all.Len() == 0 {
		return append(dst, 0), nil
	}
	dst = appendLong(dst, int64(all.Len()))
	start := len(dst)
	ends := make([]int, 0, all.Len())
	key, value := reflect.New(m.keyType), reflect.New(m.elem)
	for iter := all.MapRange(); iter.Next(); {
		key.Elem().SetIterKey(iter)
		value.Elem().SetIterValue(iter)
		if dst, err = m.key.append(dst, key.UnsafePointer(), key.UnsafePointer(), depth); err != nil {
			return dst, inside("[key]", err)
		}
		if dst, err = m.program.append(dst, value.UnsafePointer(), value.UnsafePointer(), depth); err != nil {
			return dst, inEntry(key.Elem(), err)
		}
		ends = append(ends, len(dst))
	}
	sortEntries(dst, start, ends)
	return append(dst, 0), nil
}

// sortEntries orders the entries that lie in dst from start on, each up to its end.
func sortEntries(dst []byte, start int, ends []int) {
	if len(ends) < 2 {
		return
	}
	unordered := string(dst[start:])
	entries := make([]string, len(ends))
	from := 0
	for i, end := range ends {
		entries[i] = unordered[from : end-start]
		from = end - start
	}
	slices.Sort(entries)
	dst = dst[:start]
	for _, e := range entries {
		dst = append(dst, e...)
	}
}

func (m *operand) appendOpaque(dst []byte, heap unsafe.Pointer) ([]byte, error) {
	data, err := m.pair.marshal(reflect.NewAt(m.pairType, heap))
	if err != nil {
		return dst, fmt.Errorf("%v does not marshal: %w", m.pairType, err)
	}
	return append(appendLong(dst, int64(len(data))), data...), nil
}

// zeroTime stands for the zero Time; the instant it would be otherwise has no encoding.
const zeroTime = math.MinInt64

func appendTime(dst []byte, t time.Time) ([]byte, error) {
	if t.IsZero() {
		return appendLong(dst, zeroTime), nil
	}
	nanos := t.UnixNano() // of a time too far away: some other instant
	if nanos == zeroTime || !time.Unix(0, nanos).Equal(t) {
		return dst, fmt.Errorf("the time %v is outside of 1678 to 2262 and has no nanoseconds in 64 bits", t)
	}
	return appendLong(dst, nanos), nil
}
