package codec

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/zeebo/xxh3"
)

// Codec turns values of T into bytes and back: Avro binary of a schema derived from T. It may be used from any number of
// goroutines at once.
type Codec[T any] struct {
	program     *program
	cloner      *cloner // nil: an assignment is a copy
	schema      string
	fingerprint uint64
}

// For derives the codec of T. Where T cannot be encoded the error is a *RefusedError.
func For[T any]() (*Codec[T], error) {
	s, err := shapeOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	return codecOf[T](s), nil
}

func codecOf[T any](s *shape) *Codec[T] {
	schema := schemaOf(s)
	return &Codec[T]{
		program:     compile(s),
		cloner:      clonerOf(s),
		schema:      schema,
		fingerprint: xxh3.HashString(fullName(s.typ) + "\x00" + schema),
	}
}

// SchemaOf is the Avro schema, as JSON, of a type that is known only at run time.
func SchemaOf(t reflect.Type) (string, error) {
	s, err := shapeOf(t)
	if err != nil {
		return "", err
	}
	return schemaOf(s), nil
}

// Check tells why values of t cannot be encoded (a *RefusedError); nil: they can.
func Check(t reflect.Type) error {
	_, err := shapeOf(t)
	return err
}

// Schema is the Avro schema as JSON. It depends on nothing but T.
func (c *Codec[T]) Schema() string { return c.schema }

// Fingerprint tells types and schemas apart: it covers the schema and the name of T with its package's path.
func (c *Codec[T]) Fingerprint() uint64 { return c.fingerprint }

// Append writes the bytes of *v behind dst and gives the longer slice. Some values have no encoding, such as a time outside
// of 1678 to 2262; the error names the field, and what was appended until then is of no use.
func (c *Codec[T]) Append(dst []byte, v *T) ([]byte, error) {
	var err error
	if c.program.opaque {
		kept := new(T)
		*kept = *v
		dst, err = c.program.append(dst, unsafe.Pointer(kept), unsafe.Pointer(kept), 0)
	} else {
		dst, err = c.program.append(dst, unsafe.Pointer(v), nil, 0)
	}
	if err != nil {
		return dst, fmt.Errorf("codec: encoding %v: %w", reflect.TypeFor[T](), err)
	}
	return dst, nil
}

// Decode reads one value from the start of src into *v, all of it anew, and gives the bytes behind it: a caller that knows
// where the value ends compares. Nothing in *v refers to src. Any bytes are read without a panic (as far as the user's own
// UnmarshalBinary and UnmarshalText do not), with no more memory than they justify; damaged ones give an error that names
// the field, and leave *v half read.
func (c *Codec[T]) Decode(src []byte, v *T) (rest []byte, err error) {
	var at int
	*v = *new(T)
	if c.program.opaque {
		kept := new(T)
		at, err = c.program.decode(src, 0, unsafe.Pointer(kept), unsafe.Pointer(kept), 0)
		*v = *kept
	} else {
		at, err = c.program.decode(src, 0, unsafe.Pointer(v), nil, 0)
	}
	if err != nil {
		return src, fmt.Errorf("codec: decoding %v, byte %d of %d: %w", reflect.TypeFor[T](), at, len(src), err)
	}
	return src[at:], nil
}

// Flat tells whether an assignment copies a T whole: nothing in it that can be changed is shared. Strings are; fields that
// are not encoded do not count.
func (c *Codec[T]) Flat() bool { return c.cloner == nil }

// Clone is a deep copy: slices, maps and what pointers point to are its own; nil stays nil. Strings, and what fields that
// are not encoded refer to, are shared. A T with an opaque type is copied by its methods, and Clone panics with their error
// where Append would return it.
func (c *Codec[T]) Clone(v T) T {
	if c.cloner == nil {
		return v
	}
	kept := new(T)
	*kept = v
	c.cloner.own(unsafe.Pointer(kept), 0)
	return *kept
}

// fullName is the name of a type with its package's path.
func fullName(t reflect.Type) string {
	if t.Name() == "" {
		return t.String()
	}
	return t.PkgPath() + "." + t.Name()
}
