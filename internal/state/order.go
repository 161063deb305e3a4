package state

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"unsafe"
)

// order compares map keys: numbers by size, strings by bytes, false before true, arrays and structs by their elements and
// fields from the first on. It is derived from the type; compound keys are a list of leaves, so that a comparison calls
// nothing that could make its arguments escape.
type order[K comparable] []leaf

// leaf is one part of a key that cannot be divided.
type leaf struct {
	off  uintptr
	kind reflect.Kind // Uint8 with size > 1: that many bytes
	size uintptr
}

func orderOf[K comparable]() (order[K], error) {
	return leavesOf(nil, reflect.TypeFor[K](), 0)
}

func leavesOf(to []leaf, t reflect.Type, off uintptr) (_ []leaf, err error) {
	switch k := t.Kind(); {
	case k == reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if to, err = leavesOf(to, f.Type, off+f.Offset); err != nil {
				return nil, err
			}
		}
		return to, nil
	case k == reflect.Array && t.Elem().Kind() == reflect.Uint8:
		return append(to, leaf{off, reflect.Uint8, t.Size()}), nil
	case k == reflect.Array:
		for i := range t.Len() {
			if to, err = leavesOf(to, t.Elem(), off+uintptr(i)*t.Elem().Size()); err != nil {
				return nil, err
			}
		}
		return to, nil
	case k >= reflect.Bool && k <= reflect.Float64, k == reflect.String:
		return append(to, leaf{off, k, t.Size()}), nil
	}
	return nil, fmt.Errorf("%v is no map key; use integers, strings, booleans, floats, or arrays and structs of these", t)
}

// less reports whether a comes before b.
func (o order[K]) less(a, b K) bool {
	pa, pb := unsafe.Pointer(&a), unsafe.Pointer(&b)
	for i := range o {
		if c := o[i].compare(unsafe.Add(pa, o[i].off), unsafe.Add(pb, o[i].off)); c != 0 {
			return c < 0
		}
	}
	return false
}

func (l *leaf) compare(a, b unsafe.Pointer) int {
	switch l.kind {
	case reflect.String:
		return compareAs[string](a, b)
	case reflect.Int, reflect.Int64:
		return compareAs[int64](a, b)
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return compareAs[uint64](a, b)
	case reflect.Int32:
		return compareAs[int32](a, b)
	case reflect.Uint32:
		return compareAs[uint32](a, b)
	case reflect.Int16:
		return compareAs[int16](a, b)
	case reflect.Uint16:
		return compareAs[uint16](a, b)
	case reflect.Int8:
		return compareAs[int8](a, b)
	case reflect.Float64:
		return compareAs[float64](a, b)
	case reflect.Float32:
		return compareAs[float32](a, b)
	default: // booleans and bytes
		return bytes.Compare(unsafe.Slice((*byte)(a), l.size), unsafe.Slice((*byte)(b), l.size))
	}
}

func compareAs[T cmp.Ordered](a, b unsafe.Pointer) int { return cmp.Compare(*(*T)(a), *(*T)(b)) }
