package codec

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/twmb/avro"
	"pgregory.net/rapid"
)

// untyped is a Codec of a type that is known only at run time.
type untyped struct {
	shape   *shape
	schema  string
	program *program
}

func untypedOf(t rapid.TB, typ reflect.Type) *untyped {
	s, err := shapeOf(typ)
	if err != nil {
		t.Fatal(err)
	}
	return &untyped{s, schemaOf(s), compile(s)}
}

func (u *untyped) append(dst []byte, v unsafe.Pointer) ([]byte, error) {
	return u.program.append(dst, v, v, 0)
}

func (u *untyped) decode(src []byte) (reflect.Value, []byte, error) {
	v := reflect.New(u.shape.typ)
	at, err := u.program.decode(src, 0, v.UnsafePointer(), v.UnsafePointer(), 0)
	return v, src[at:], err
}

// The library reads what we write, and we read what the library writes, byte for byte, for any type.
func TestBytesAreThoseOfTheLibrary(t *testing.T) {
	for _, typ := range leafTypes {
		t.Run(typ.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { compareWithLibrary(t, typ) })
		})
	}
	t.Run("any", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { compareWithLibrary(t, anyType(t, 3)) })
	})
}

func compareWithLibrary(t *rapid.T, typ reflect.Type) {
	u := untypedOf(t, typ)
	// Without logical types the library gives plain longs.
	library, err := avro.Parse(strings.ReplaceAll(u.schema, `,"logicalType":"timestamp-nanos"`, ""))
	if err != nil {
		t.Fatalf("%v: %v: %s", typ, err, u.schema)
	}
	v := reflect.New(typ)
	fill(t, v.Elem(), 0)
	ours, err := u.append(nil, v.UnsafePointer())
	if err != nil {
		t.Fatal(err)
	}
	var read any
	if rest, err := library.Decode(ours, &read); err != nil || len(rest) > 0 {
		t.Fatalf("%v: the library leaves %d bytes: %v", typ, len(rest), err)
	}
	theirs, err := library.Encode(read)
	if err != nil || !bytes.Equal(ours, theirs) {
		t.Fatalf("%v: ours\n%x, the library's\n%x, %v", typ, ours, theirs, err)
	}
	if want := generic(u.shape, v.Elem()); !reflect.DeepEqual(ordered(read), ordered(want)) {
		t.Fatalf("%v: the library reads\n%#v of\n%#v", typ, read, want)
	}
	back, rest, err := u.decode(append(theirs, 1, 2, 3))
	if err != nil || len(rest) != 3 {
		t.Fatalf("%v: we leave %d bytes: %v", typ, len(rest), err)
	}
	if !reflect.DeepEqual(back.Interface(), v.Interface()) {
		t.Fatalf("%v: read\n%+v of\n%+v", typ, back.Elem(), v.Elem())
	}
}

// generic is v as the library shows a value of no particular Go type.
func generic(s *shape, v reflect.Value) any {
	switch s.form {
	case formBool:
		return v.Bool()
	case formInt, formUint:
		n := int64(0)
		if s.form == formInt {
			n = v.Int()
		} else {
			n = int64(v.Uint())
		}
		if integerOf(s.typ) == "int" {
			return int32(n)
		}
		return n
	case formUint64:
		n := v.Uint()
		return []byte{byte(n >> 56), byte(n >> 48), byte(n >> 40), byte(n >> 32), byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
	case formFloat:
		if s.typ.Size() == 4 {
			return float32(v.Float())
		}
		return v.Float()
	case formString:
		return v.String()
	case formBytes:
		return append([]byte{}, v.Bytes()...)
	case formFixed:
		return append([]byte{}, v.Bytes()...)
	case formTime:
		if t := v.Interface().(time.Time); !t.IsZero() {
			return t.UnixNano()
		}
		return int64(zeroTime)
	case formOpaque:
		data, _ := s.pair.marshal(v.Addr())
		return append([]byte{}, data...)
	}
	return genericParts(s, v)
}

func genericParts(s *shape, v reflect.Value) any {
	switch s.form {
	case formSlice, formArray:
		all := []any{}
		for i := range v.Len() {
			all = append(all, generic(s.elem, v.Index(i)))
		}
		return all
	case formPointer:
		if v.IsNil() {
			return nil
		}
		return generic(s.elem, v.Elem())
	case formMap:
		all := []any{}
		for iter := v.MapRange(); iter.Next(); {
			key, value := reflect.New(s.key.typ).Elem(), reflect.New(s.elem.typ).Elem()
			key.Set(iter.Key())
			value.Set(iter.Value())
			all = append(all, map[string]any{"key": generic(s.key, key), "value": generic(s.elem, value)})
		}
		return all
	}
	all := map[string]any{}
	for _, f := range s.fields {
		part := reflect.NewAt(f.shape.typ, unsafe.Add(v.Addr().UnsafePointer(), f.offset)).Elem()
		all[f.name] = generic(f.shape, part)
	}
	return all
}

// ordered puts arrays that look like maps in one order, in place.
func ordered(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = ordered(v[i])
		}
		if len(v) > 1 {
			if m, ok := v[0].(map[string]any); ok && len(m) == 2 && m["key"] != nil {
				slices.SortFunc(v, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			}
		}
	case map[string]any:
		for k := range v {
			v[k] = ordered(v[k])
		}
	}
	return v
}

// Read by a library that knows the logical type, a time is the same instant.
func TestTimesAreTimesForTheLibrary(t *testing.T) {
	c, err := For[time.Time]()
	if err != nil {
		t.Fatal(err)
	}
	want := time.Date(2026, 11, 30, 1, 2, 3, 456, time.FixedZone("somewhere", 3600))
	data, err := c.Append(nil, &want)
	if err != nil {
		t.Fatal(err)
	}
	var got time.Time
	if _, err := avro.MustParse(c.Schema()).Decode(data, &got); err != nil || !got.Equal(want) {
		t.Errorf("got %v, want %v: %v", got, want, err)
	}
}
