package codec

import (
	"errors"
	"math/big"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/twmb/avro"
	"pgregory.net/rapid"
)

type (
	sliceOfItself []sliceOfItself
	pointerToOwn  *pointerToOwn
	halfPair      struct{ n int }
	inherits      struct {
		netip.Addr
		n int
	}
	holdsBroken struct{ B []broken }
	hasPair     struct {
		Next *hasPair
		n    int
	}
	twice struct {
		First struct{ hasPair }
		Again *hasPair
	}
	promoted struct {
		time.Time
		Name string
	}
)

func (halfPair) MarshalText() ([]byte, error)   { return nil, nil }
func (hasPair) MarshalBinary() ([]byte, error)  { return nil, nil }
func (*hasPair) UnmarshalBinary(_ []byte) error { return nil }

var _ = []any{halfPair{n: 1}, inherits{n: 1}, hasPair{n: 1}}

// A refusal names where, what, why, and what to do.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		typ  reflect.Type
		want string
	}{
		{reflect.TypeFor[any](), "codec: interface {}: an interface does not say what to decode; use a concrete type"},
		{reflect.TypeFor[[]error](), "codec: []error, field [] (error): an interface does not say"},
		{reflect.TypeFor[struct{ F func() }](), "field F (func()): a function has no bytes; take it out, or tag the field weir:\"-\""},
		{reflect.TypeFor[struct{ A struct{ C []chan int } }](), "field A.C[] (chan int): a channel has no bytes"},
		{reflect.TypeFor[complex64](), "codec: complex64: Avro has no complex numbers; use a struct of two floats"},
		{reflect.TypeFor[uintptr](), "codec: uintptr: an address means nothing in another process"},
		{reflect.TypeFor[unsafe.Pointer](), "codec: unsafe.Pointer: an address means nothing in another process"},
		{reflect.TypeFor[struct{ M sync.Mutex }](), "field M (sync.Mutex): a lock has no bytes"},
		{reflect.TypeFor[struct{ M *sync.RWMutex }](), "field M (sync.RWMutex): a lock has no bytes"},
		{reflect.TypeFor[struct{ N atomic.Int64 }](), "field N.v (int64): it is unexported and would be lost"},
		{reflect.TypeFor[halfPair](), "codec: codec.halfPair, field n (int): it is unexported and would be lost; export it, tag it weir:\"-\", or give codec.halfPair the methods MarshalBinary and UnmarshalBinary"},
		{reflect.TypeFor[[2]map[string]halfPair](), "codec: [2]map[string]codec.halfPair, field [2][].n (int): it is unexported"},
		{reflect.TypeFor[inherits](), "codec: codec.inherits: it embeds netip.Addr, whose marshalling methods it may have inherited; put it in a field with a name"},
		{reflect.TypeFor[struct {
			A int `weir:"name=b"`
		}](), `field A (int): the tag weir:"name=b" is not known here; only weir:"-" and weir:"was=OldName" are`},
		{reflect.TypeFor[sliceOfItself](), "it contains itself with no struct between; put it in a field of a struct"},
		{reflect.TypeFor[pointerToOwn](), "no pointer to a pointer"},
		{reflect.TypeFor[**int](), "codec: **int: Avro has no union in a union, so no pointer to a pointer; use one pointer, or a struct between"},
		{reflect.TypeFor[[]struct {
			A int `weir:"-"`
		}](), "none of its fields is encoded"},
		{reflect.TypeFor[map[struct{}]int](), "holds at most one entry"},
		{reflect.TypeFor[map[time.Time]int](), "field [key] (time.Time): a time, whose == also compares location and clock reading, cannot be a map's key; use its UnixNano"},
		{reflect.TypeFor[struct{ M map[netip.Addr]int }](), "field M[key] (netip.Addr): a type encoded by its own methods"},
		{reflect.TypeFor[map[any]int](), "field [key] (interface {}): an interface"},
	} {
		err := Check(c.typ)
		var refused *RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v:\ngot  %v\nwant %s", c.typ, err, c.want)
		}
		if _, err := SchemaOf(c.typ); err == nil {
			t.Errorf("%v has a schema", c.typ)
		}
	}
}

func TestWhatCannotBeAKey(t *testing.T) {
	refusal := func(err error, want string) {
		t.Helper()
		var refused *RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	_, err := KeyFor[time.Time]()
	refusal(err, "codec: time.Time: a time, whose == also compares location and clock reading, cannot be a key; use its UnixNano")
	_, err = KeyFor[*int]()
	refusal(err, "codec: *int: a pointer, an address of this process, cannot be a key; use what it points to")
	_, err = KeyFor[any]()
	refusal(err, "codec: interface {}: an interface does not say what to decode")
	_, err = KeyFor[chan int]()
	refusal(err, "a channel has no bytes")
	_, err = KeyFor[netip.Addr]()
	refusal(err, "codec: netip.Addr: a type encoded by its own methods, which may give equal values unequal bytes, cannot be a key; use its text or its parts")
	_, err = KeyFor[struct{ A [2]struct{ At time.Time } }]()
	refusal(err, "field A[2].At (time.Time): a time")
	_, err = KeyFor[struct {
		A int
		B int `weir:"-"`
	}]()
	refusal(err, `a struct with a field tagged weir:"-", which == compares and the bytes lack, cannot be a key; take the field out`)
	_, err = KeyFor[complex128]()
	refusal(err, "Avro has no complex numbers")
}

// A type is taken by its structure where that can be seen whole, and by its methods otherwise.
func TestStructureBeforeMethods(t *testing.T) {
	form := func(typ reflect.Type) form {
		s, err := shapeOf(typ)
		if err != nil {
			t.Fatal(err)
		}
		return s.form
	}
	if f := form(reflect.TypeFor[big.Int]()); f != formOpaque {
		t.Errorf("a big.Int has form %d", f)
	}
	// Methods inherited from the embedded time would lose the name.
	if f := form(reflect.TypeFor[promoted]()); f != formRecord {
		t.Errorf("a struct that embeds a time has form %d", f)
	}
	c := mustFor[promoted](t)
	v := promoted{time.Unix(5, 6).UTC(), "kept"}
	data, _ := c.Append(nil, &v)
	var got promoted
	if _, err := c.Decode(data, &got); err != nil || got != v {
		t.Errorf("got %v, %v", got, err)
	}
	if f := form(reflect.TypeFor[holdsBroken]()); f != formRecord {
		t.Errorf("a struct that holds opaque parts has form %d", f)
	}
}

// When a recursive type turns out to be opaque half-way, no shape made on the way survives.
func TestNothingRemainsOfAFailedStructure(t *testing.T) {
	s, err := shapeOf(reflect.TypeFor[twice]())
	if err != nil {
		t.Fatal(err)
	}
	again := s.fields[1].shape
	if again.form != formPointer || again.elem.form != formOpaque {
		t.Errorf("got form %d of form %d", again.form, again.elem.form)
	}
}

// goldenTypes are those whose schemas lie in testdata, a line each.
var goldenTypes = []reflect.Type{
	reflect.TypeFor[kitchen](), reflect.TypeFor[tree](), reflect.TypeFor[catalogue](), reflect.TypeFor[compound](), reflect.TypeFor[flatBid](),
	reflect.TypeFor[[]uint](), reflect.TypeFor[map[string]struct{ A, B map[int]struct{ Größe int } }](), reflect.TypeFor[*pair[tree, [3]byte]](),
}

// Schemas are stable: files written with them outlive the program. The golden ones are never rewritten.
func TestSchemasAreStable(t *testing.T) {
	var got strings.Builder
	for _, typ := range goldenTypes {
		schema, err := SchemaOf(typ)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := avro.Parse(schema); err != nil {
			t.Errorf("%v: %v", typ, err)
		}
		got.WriteString(schema + "\n")
	}
	if want, err := os.ReadFile("testdata/schemas2.txt"); err != nil || got.String() != string(want) {
		t.Errorf("schemas have changed (%v); now\n%s", err, got.String())
	}
}

// What was written with the schemas of the first version, which said neither the length of an array nor the size of an integer, is read.
func TestSchemasOfTheFirstVersionAreRead(t *testing.T) {
	old, err := os.ReadFile("testdata/schemas.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(old)), "\n")
	for i, typ := range goldenTypes {
		w, err := parse(lines[i])
		if err != nil {
			t.Fatal(err)
		}
		u := untypedOf(t, typ)
		r := &resolver{made: map[resolved]*program{}}
		read, err := r.program(w, nodeOf(u.shape, map[*shape]*node{}), "")
		if err != nil {
			t.Fatalf("%v: %v", typ, err)
		}
		rapid.Check(t, func(t *rapid.T) {
			v := reflect.New(typ)
			fill(t, v.Elem(), 0)
			bytes, err := u.append(nil, v.UnsafePointer())
			if err != nil {
				t.Fatal(err)
			}
			got := reflect.New(typ)
			if at, err := read.decode(bytes, 0, got.UnsafePointer(), got.UnsafePointer(), 0); at != len(bytes) || err != nil {
				t.Fatalf("%v: %d of %d bytes were read: %v", typ, at, len(bytes), err)
			}
			if again, err := u.append(nil, got.UnsafePointer()); err != nil || string(again) != string(bytes) {
				t.Fatalf("%v: %x became %x: %v", typ, bytes, again, err)
			}
		})
	}
}

// Types declared in functions share a name, and are told apart.
func TestTypesOfOneName(t *testing.T) {
	type both[A, B any] struct {
		A A
		B B
		C *A
	}
	type local struct{ A int }
	first := reflect.TypeFor[local]()
	{
		type local struct{ B string }
		schema, err := SchemaOf(reflect.TypeFor[both[local, struct{ F []reflectLocal }]]())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := avro.Parse(schema); err != nil {
			t.Errorf("%v: %s", err, schema)
		}
		mixed := reflect.StructOf([]reflect.StructField{{Name: "A", Type: first}, {Name: "B", Type: reflect.TypeFor[local]()}})
		if schema, err = SchemaOf(mixed); err != nil || !strings.Contains(schema, `"github_com.weirstream.weir.codec.local__2"`) {
			t.Errorf("%v: %s", err, schema)
		}
	}
}

type reflectLocal = pair[int, []string]
