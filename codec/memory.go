package codec

import (
	"math/bits"
	"reflect"
	"unsafe"
)

// The programs take an int for eight bytes.
var _ = [1]struct{}{}[bits.UintSize-64]

// sliceHeader is a slice as the runtime lays it out.
type sliceHeader struct {
	data             unsafe.Pointer
	length, capacity int
}

// elements is what must be known of the elements of a slice to make memory for them.
type elements struct {
	slice reflect.Type // of the whole; also of arrays, pointers and maps, whose parts it describes
	elem  reflect.Type
	size  uintptr
	plain bool // elements hold no pointers
}

func elementsOf(s *shape) elements {
	t := s.elem.typ
	return elements{slice: s.typ, elem: t, size: t.Size(), plain: !hasPointers(t)}
}

// at is the i-th element behind first.
func (e *elements) at(first unsafe.Pointer, i int) unsafe.Pointer {
	return unsafe.Add(first, uintptr(i)*e.size)
}

// make makes a slice of zeros. What holds no pointers can lie in words of any type; reflect's way, which is open to all
// types, costs one more allocation, for the header.
func (e *elements) make(length, capacity int) sliceHeader {
	switch {
	case e.plain && e.size > 0:
		words := make([]uint64, (uintptr(capacity)*e.size+7)/8)
		return sliceHeader{unsafe.Pointer(unsafe.SliceData(words)), length, capacity}
	case e.elem.Kind() == reflect.String:
		texts := make([]string, capacity)
		return sliceHeader{unsafe.Pointer(unsafe.SliceData(texts)), length, capacity}
	}
	s := reflect.MakeSlice(e.slice, length, capacity)
	return sliceHeader{s.UnsafePointer(), length, capacity}
}

// copy copies the elements of from to the start of to, which has as many at least.
func (e *elements) copy(to, from sliceHeader) {
	if e.plain {
		size := uintptr(from.length) * e.size
		copy(unsafe.Slice((*byte)(to.data), size), unsafe.Slice((*byte)(from.data), size))
		return
	}
	reflect.Copy(e.reflect(to), e.reflect(from))
}

func (e *elements) reflect(s sliceHeader) reflect.Value {
	return reflect.NewAt(e.slice, unsafe.Pointer(&s)).Elem()
}

// hasPointers tells whether the collector must look into a t.
func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && hasPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.String, reflect.Slice, reflect.Pointer, reflect.Map, reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return true
	}
	return false
}
