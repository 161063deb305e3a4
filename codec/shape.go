package codec

import (
	"fmt"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A shape is what the codec knows of a Go type: a graph with the same cycles as the type. Everything else is derived from
// it: the schema, the programs that append, decode and clone, and the canonical bytes of keys.
type shape struct {
	form   form
	typ    reflect.Type
	fields []field  // of a record: those that are encoded
	elem   *shape   // of a pointer, slice, array; the value of a map
	key    *shape   // of a map
	length int      // of an array, in elements; of a fixed, in bytes
	pair   pairKind // of an opaque
	skips  bool     // a record with a field that is not encoded
}

type field struct {
	name   string // as in Go
	was    string // an older name; "": none
	offset uintptr
	shape  *shape
}

// form is how a shape is encoded.
type form uint8

const (
	formBool    form = iota + 1
	formInt          // any signed integer, at its size: int or long
	formUint         // uint8, uint16, uint32: the int or long that holds them
	formUint64       // uint64 and uint: eight bytes, big-endian
	formFloat        // float32, float64
	formString       // string
	formTime         // time.Time: nanoseconds in a long
	formBytes        // a slice of bytes
	formFixed        // an array of bytes
	formSlice        // array
	formArray        // array of exactly length elements
	formPointer      // union of null and elem
	formMap          // array of records {key, value}
	formRecord       // record
	formOpaque       // bytes that the type's own methods make and read
)

var timeType = reflect.TypeFor[time.Time]()

// A deriver makes shapes. Its cache closes the cycles of recursive types: a type met again while it is being derived gives
// the same, still unfinished, shape.
//
// A type is taken by its structure wherever that can be seen whole, also if it has MarshalBinary or MarshalText: the
// structure loses nothing, can be a key, and can evolve. (It is also safe where methods were only inherited from an
// embedded field.) The pair is what makes a type with unexported fields, interfaces or functions encodable. So a failed
// structure is not the end, and the shapes made on the way to the failure must be forgotten: they may refer to it.
type deriver struct {
	root  reflect.Type
	made  map[reflect.Type]*shape
	order []reflect.Type // the keys of made, oldest first
	open  []reflect.Type // the types being derived, outermost first
}

// shapeOf derives the shape of t, or refuses with the path to what cannot be encoded.
func shapeOf(t reflect.Type) (*shape, error) {
	d := &deriver{root: t, made: make(map[reflect.Type]*shape)}
	s, err := d.derive(t, "")
	if err != nil {
		return nil, err // not the typed nil
	}
	return s, nil
}

func (d *deriver) refuse(t reflect.Type, path, reason, instead string) error {
	return &RefusedError{Root: d.root, Path: path, Type: t, Reason: reason, Instead: instead}
}

func (d *deriver) derive(t reflect.Type, path string) (*shape, error) {
	if s := d.made[t]; s != nil {
		return s, d.closes(t, path)
	}
	mark := len(d.order)
	s := &shape{typ: t}
	d.made[t] = s
	d.order = append(d.order, t)
	d.open = append(d.open, t)
	err := d.fill(s, path)
	d.open = d.open[:len(d.open)-1]
	if err == nil {
		return s, nil
	}
	d.forget(mark)
	if pair, why := pairOf(t); pair != noPair {
		*s = shape{form: formOpaque, typ: t, pair: pair}
		d.made[t] = s
		d.order = append(d.order, t)
		return s, nil
	} else if why != "" {
		return nil, d.refuse(t, path, why, "put it in a field with a name")
	}
	return nil, err
}

// forget takes back what was made since mark.
func (d *deriver) forget(mark int) {
	for _, t := range d.order[mark:] {
		delete(d.made, t)
	}
	d.order = d.order[:mark]
}

// closes refuses a type that contains itself with no record between: Avro names only records, so it could not be written.
func (d *deriver) closes(t reflect.Type, path string) error {
	for i := len(d.open) - 1; i >= 0; i-- {
		switch d.open[i].Kind() {
		case reflect.Struct, reflect.Map:
			return nil
		}
		if d.open[i] == t {
			return d.refuse(t, path, "it contains itself with no struct between", "put it in a field of a struct")
		}
	}
	return nil
}

func (d *deriver) fill(s *shape, path string) error {
	if s.typ == timeType {
		s.form = formTime
		return nil
	}
	switch k := s.typ.Kind(); k {
	case reflect.Bool:
		s.form = formBool
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		s.form = formInt
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		s.form = formUint
	case reflect.Uint64, reflect.Uint:
		s.form = formUint64
	case reflect.Float32, reflect.Float64:
		s.form = formFloat
	case reflect.String:
		s.form = formString
	case reflect.Slice:
		return d.fillSlice(s, path)
	case reflect.Array:
		return d.fillArray(s, path)
	case reflect.Pointer:
		return d.fillPointer(s, path)
	case reflect.Map:
		return d.fillMap(s, path)
	case reflect.Struct:
		return d.fillRecord(s, path)
	default:
		return d.refuseKind(s.typ, path)
	}
	return nil
}

// refuseKind refuses the kinds that have no encoding.
func (d *deriver) refuseKind(t reflect.Type, path string) error {
	switch t.Kind() {
	case reflect.Interface:
		return d.refuse(t, path, "an interface does not say what to decode", "use a concrete type, or a struct with a pointer for each possibility")
	case reflect.Func:
		return d.refuse(t, path, "a function has no bytes", `take it out, or tag the field weir:"-"`)
	case reflect.Chan:
		return d.refuse(t, path, "a channel has no bytes", `take it out, or tag the field weir:"-"`)
	case reflect.Complex64, reflect.Complex128:
		return d.refuse(t, path, "Avro has no complex numbers", "use a struct of two floats")
	}
	return d.refuse(t, path, "an address means nothing in another process", "use uint64 if it is a number, or tag the field weir:\"-\"")
}

func (d *deriver) fillSlice(s *shape, path string) (err error) {
	if s.typ.Elem().Kind() == reflect.Uint8 {
		s.form = formBytes
		return nil
	}
	s.form = formSlice
	if s.elem, err = d.derive(s.typ.Elem(), joinPath(path, "[]")); err != nil {
		return err
	}
	if !slices.Contains(d.open, s.elem.typ) && s.elem.least() == 0 && s.elem.typ.Size() > 0 {
		// Three bytes could ask for any number of elements. (A type still open contains this slice, which takes a byte.)
		return d.refuse(s.elem.typ, joinPath(path, "[]"), "none of its fields is encoded", "encode a field, or keep only the slice's length")
	}
	return nil
}

func (d *deriver) fillArray(s *shape, path string) (err error) {
	s.length = s.typ.Len()
	if s.typ.Elem().Kind() == reflect.Uint8 {
		s.form = formFixed
		return nil
	}
	s.form = formArray
	s.elem, err = d.derive(s.typ.Elem(), joinPath(path, "["+strconv.Itoa(s.length)+"]"))
	return err
}

func (d *deriver) fillPointer(s *shape, path string) (err error) {
	s.form = formPointer
	if s.typ.Elem().Kind() == reflect.Pointer {
		return d.refuse(s.typ, path, "Avro has no union in a union, so no pointer to a pointer", "use one pointer, or a struct between")
	}
	s.elem, err = d.derive(s.typ.Elem(), path)
	return err
}

func (d *deriver) fillMap(s *shape, path string) (err error) {
	s.form = formMap
	if s.key, err = d.derive(s.typ.Key(), joinPath(path, "[key]")); err != nil {
		return err
	}
	if err := canonical(d.root, s.key, joinPath(path, "[key]"), "a map's key"); err != nil {
		return err
	}
	if s.key.least() == 0 {
		return d.refuse(s.key.typ, joinPath(path, "[key]"), "a map whose key has no bytes holds at most one entry", "use a pointer to the value")
	}
	s.elem, err = d.derive(s.typ.Elem(), joinPath(path, "[]"))
	return err
}

func (d *deriver) fillRecord(s *shape, path string) error {
	t := s.typ
	if isLock(t) {
		return d.refuse(t, path, "a lock has no bytes", `take it out, or tag the field weir:"-"`)
	}
	s.form = formRecord
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" {
			continue // Go compares structs without it, too
		}
		fieldPath := joinPath(path, f.Name)
		switch tag, tagged := f.Tag.Lookup("weir"); {
		case tag == "-":
			s.skips = true
			continue
		case tagged && !wasTag(tag):
			return d.refuse(f.Type, fieldPath, fmt.Sprintf("the tag weir:%q is not known here", tag), `only weir:"-" and weir:"was=OldName" are`)
		case hidden(f):
			return d.refuse(f.Type, fieldPath, "it is unexported and would be lost",
				fmt.Sprintf(`export it, tag it weir:"-", or give %v the methods MarshalBinary and UnmarshalBinary`, t))
		}
		fs, err := d.derive(f.Type, fieldPath)
		if err != nil {
			return err
		}
		s.fields = append(s.fields, field{name: f.Name, was: strings.TrimPrefix(f.Tag.Get("weir"), "was="), offset: f.Offset, shape: fs})
	}
	return nil
}

// wasTag tells whether a tag says what a field was called in older versions.
func wasTag(tag string) bool {
	was, ok := strings.CutPrefix(tag, "was=")
	return ok && token.IsIdentifier(was)
}

// hidden tells whether f is for its own package only. An embedded struct without an exported name is not: its fields are
// fields of the outer struct.
func hidden(f reflect.StructField) bool {
	return !f.IsExported() && !(f.Anonymous && f.Type.Kind() == reflect.Struct)
}

// isLock tells as `go vet` does: what has Lock and Unlock by pointer must not be copied.
func isLock(t reflect.Type) bool {
	type locker interface {
		Lock()
		Unlock()
	}
	return reflect.PointerTo(t).Implements(reflect.TypeFor[locker]())
}

// least is the number of bytes that every value of s has at least. A decoder compares it with what is left before it makes
// room. Cycles pass through pointers, slices and maps, which end the walk.
func (s *shape) least() int {
	switch s.form {
	case formUint64:
		return 8
	case formFloat:
		return int(s.typ.Size())
	case formFixed:
		return s.length
	case formArray:
		return 1 + s.length*s.elem.least()
	case formRecord:
		sum := 0
		for _, f := range s.fields {
			sum += f.shape.least()
		}
		return sum
	}
	return 1
}
