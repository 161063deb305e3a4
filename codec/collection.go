package codec

import (
	"fmt"
	"reflect"
	"unsafe"
)

// firstBytes is how much memory a decoder gives to a collection before it has read any of it.
const firstBytes = 64 << 10

// block reads the head of a block of elements: their count, zero at the end. A negative count is followed by the size of
// the block in bytes, for readers that skip.
func (m *operand) block(src []byte, at int) (count, next int, err error) {
	n, at, err := long(src, at)
	if err != nil {
		return 0, at, err
	}
	if n < 0 {
		if _, at, err = long(src, at); err != nil {
			return 0, at, err
		}
		n = -n // the least long stays negative
	}
	if n < 0 || m.least == 0 && n > emptyMax || m.least > 0 && n > int64((len(src)-at)/m.least) {
		return 0, at, fmt.Errorf("a block of %d elements where %d bytes are left", n, len(src)-at)
	}
	return int(n), at, nil
}

// decodeSlice reads blocks of elements into a slice. Without elements it stays nil.
func (m *operand) decodeSlice(src []byte, at int, to *sliceHeader, depth int) (int, error) {
	for {
		count, next, err := m.block(src, at)
		if at = next; count == 0 || err != nil {
			return at, err
		}
		if m.least == 0 { // elements of no size at all, or the type would have been refused
			if count > emptyMax-to.length {
				return at, errEmpty
			}
			m.grow(to, count)
			to.length += count
			continue
		}
		for left := count; left > 0; left-- {
			if to.length == to.capacity {
				m.grow(to, left)
			}
			elem := m.at(to.data, to.length)
			if at, err = m.program.decode(src, at, elem, elem, depth); err != nil {
				return at, inElement(to.length, err)
			}
			to.length++
		}
	}
}

// grow makes room in a full slice for some of the elements that are announced: as many again as there are, at first few.
func (m *operand) grow(s *sliceHeader, announced int) {
	more := max(s.length, firstBytes/max(1, int(m.size)), 1)
	grown := m.make(s.length, s.length+min(announced, more))
	if s.length > 0 {
		m.copy(grown, *s)
	}
	*s = grown
}

// decodeArray reads blocks of together exactly as many elements as the array has.
func (m *operand) decodeArray(src []byte, at int, to, heap unsafe.Pointer, depth int) (int, error) {
	for have := 0; ; {
		count, next, err := m.block(src, at)
		if at = next; err != nil {
			return at, err
		}
		if count > m.length-have || count == 0 && have < m.length {
			return at, fmt.Errorf("%d elements for an array of %d", have+count, m.length)
		}
		if count == 0 {
			return at, nil
		}
		if m.least == 0 {
			have += count
			continue
		}
		for ; count > 0; count-- {
			if at, err = m.program.decode(src, at, m.at(to, have), part(heap, uintptr(have)*m.size), depth); err != nil {
				return at, inElement(have, err)
			}
			have++
		}
	}
}

// decodeMap reads blocks of entries. The map is made even without any, as programs write into maps they made; of two
// entries with one key the later wins.
func (m *operand) decodeMap(src []byte, at int, to *unsafe.Pointer, depth int) (int, error) {
	all := reflect.MakeMap(m.slice)
	*to = all.UnsafePointer()
	for {
		count, next, err := m.block(src, at)
		if at = next; count == 0 || err != nil {
			return at, err
		}
		key, value := reflect.New(m.keyType), reflect.New(m.elem)
		for ; count > 0; count-- {
			key.Elem().SetZero()
			value.Elem().SetZero()
			if at, err = m.key.decode(src, at, key.UnsafePointer(), key.UnsafePointer(), depth); err != nil {
				return at, inside("[key]", err)
			}
			if at, err = m.program.decode(src, at, value.UnsafePointer(), value.UnsafePointer(), depth); err != nil {
				return at, inEntry(key.Elem(), err)
			}
			all.SetMapIndex(key.Elem(), value.Elem())
		}
	}
}
