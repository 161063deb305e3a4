package codec

import (
	"encoding"
	"fmt"
	"reflect"
)

// pairKind is which pair of methods makes and reads the bytes of an opaque type.
type pairKind uint8

const (
	noPair pairKind = iota
	binaryPair
	textPair
)

func (k pairKind) String() string { return [...]string{"no", "binary", "text"}[k] }

var pairInterfaces = [...]struct{ marshal, unmarshal reflect.Type }{
	binaryPair: {reflect.TypeFor[encoding.BinaryMarshaler](), reflect.TypeFor[encoding.BinaryUnmarshaler]()},
	textPair:   {reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()},
}

// has tells whether a *t has both methods of the pair.
func (k pairKind) has(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(pairInterfaces[k].marshal) && p.Implements(pairInterfaces[k].unmarshal)
}

// pairOf finds the pair of methods of t. A struct that may only have inherited them from an embedded field is refused with
// the reason: encoded by them it would lose its other fields without a word.
func pairOf(t reflect.Type) (pair pairKind, why string) {
	if k := t.Kind(); k == reflect.Interface || k == reflect.Pointer {
		return noPair, ""
	}
	for _, pair := range []pairKind{binaryPair, textPair} {
		if !pair.has(t) {
			continue
		}
		if t.Kind() == reflect.Struct {
			for i := range t.NumField() {
				if f := t.Field(i); f.Anonymous && pair.has(indirect(f.Type)) {
					return noPair, fmt.Sprintf("it embeds %v, whose marshalling methods it may have inherited", f.Type)
				}
			}
		}
		return pair, ""
	}
	return noPair, ""
}

func indirect(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// marshal is the bytes of the opaque value that ptr, a reflect.Value of kind Pointer, points to.
func (k pairKind) marshal(ptr reflect.Value) ([]byte, error) {
	if k == binaryPair {
		return ptr.Interface().(encoding.BinaryMarshaler).MarshalBinary()
	}
	return ptr.Interface().(encoding.TextMarshaler).MarshalText()
}

// unmarshal reads the value that ptr points to.
func (k pairKind) unmarshal(ptr reflect.Value, data []byte) error {
	if k == binaryPair {
		return ptr.Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(data)
	}
	return ptr.Interface().(encoding.TextUnmarshaler).UnmarshalText(data)
}
