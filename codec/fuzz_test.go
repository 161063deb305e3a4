package codec

import (
	"bytes"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// fuzzed are types that together use every operation.
var fuzzed = []reflect.Type{
	reflect.TypeFor[kitchen](), reflect.TypeFor[tree](), reflect.TypeFor[list](), reflect.TypeFor[catalogue](),
	reflect.TypeFor[flatBid](), reflect.TypeFor[compound](), reflect.TypeFor[[]map[string][]*string](), reflect.TypeFor[[]struct{}](),
	reflect.TypeFor[[3][]uint8](), reflect.TypeFor[map[name][]list](), reflect.TypeFor[[5]struct{}](),
}

// Any bytes give a value or an error; a value that was read can be written and read again, equal.
func FuzzDecode(f *testing.F) {
	plans := make([]*untyped, len(fuzzed))
	for i, typ := range fuzzed {
		s, err := shapeOf(typ)
		if err != nil {
			f.Fatal(err)
		}
		plans[i] = &untyped{shape: s, program: compile(s)}
		empty, err := plans[i].append(nil, reflect.New(typ).UnsafePointer())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), empty)
		f.Add(uint8(i), bytes.Repeat([]byte{2}, 40))
		f.Add(uint8(i), bytes.Repeat([]byte{0xff}, 20))
		f.Add(uint8(i), []byte{3, 4, 1, 1, 1, 0}) // a block with its size
	}
	f.Fuzz(func(t *testing.T, which uint8, src []byte) {
		u := plans[int(which)%len(plans)]
		v, _, err := u.decode(src)
		if err != nil {
			return
		}
		data, err := u.append(nil, v.UnsafePointer())
		if err != nil {
			t.Fatalf("%v: what was read cannot be written: %v", u.shape.typ, err)
		}
		again, rest, err := u.decode(data)
		if err != nil || len(rest) > 0 {
			t.Fatalf("%v: what was written cannot be read: %v, %d left", u.shape.typ, err, len(rest))
		}
		// The bytes, not the values: NaN is not equal to itself.
		if final, _ := u.append(nil, again.UnsafePointer()); !bytes.Equal(final, data) {
			t.Fatalf("%v: %x became %x", u.shape.typ, data, final)
		}
	})
}

// A few bytes that ask for a lot get little.
func TestHostileBytes(t *testing.T) {
	huge := appendLong(nil, 1<<40)
	million := appendLong(nil, 1<<20)
	for _, c := range []struct {
		name string
		typ  reflect.Type
		src  []byte
		want string
	}{
		{"a string", reflect.TypeFor[string](), huge, "a length of 1099511627776 bytes where 0 are left"},
		{"a negative length", reflect.TypeFor[[]byte](), appendLong(nil, -1), "a length of -1 bytes"},
		{"a slice", reflect.TypeFor[[]int](), huge, "a block of 1099511627776 elements where 0 bytes are left"},
		{"a slice with some bytes", reflect.TypeFor[[]uint64](), append(million, make([]byte, 1<<20)...), "a block of 1048576 elements"},
		{"the least count", reflect.TypeFor[[]int](), append(appendLong(nil, -1<<63), 0), "a block of -9223372036854775808 elements"},
		{"elements without bytes", reflect.TypeFor[[]struct{}](), huge, "a block of 1099511627776 elements"},
		{"many blocks of them", reflect.TypeFor[[]struct{}](), bytes.Repeat(appendLong(nil, emptyMax), 3), "more than 2147483647 elements that have no bytes"},
		{"a map", reflect.TypeFor[map[string]int](), huge, "a block of 1099511627776 elements"},
		{"a long array", reflect.TypeFor[[2]int](), []byte{6, 2, 2, 2, 0}, "3 elements for an array of 2"},
		{"a short array", reflect.TypeFor[[2]int](), []byte{2, 2, 0}, "1 elements for an array of 2"},
		{"an array of nothing", reflect.TypeFor[[5]struct{}](), []byte{8, 0}, "4 elements for an array of 5"},
		{"a union", reflect.TypeFor[*int](), []byte{4}, "branch 2 of a union of two"},
		{"a boolean", reflect.TypeFor[bool](), []byte{2}, "a boolean of 2 instead of 0 or 1"},
		{"an endless integer", reflect.TypeFor[int](), bytes.Repeat([]byte{0x80}, 20), "an integer that is longer than ten bytes"},
		{"depth", reflect.TypeFor[list](), bytes.Repeat([]byte{2}, 1<<20), "nested more than 10000 deep"},
		{"depth of slices", reflect.TypeFor[tree](), bytes.Repeat([]byte{2}, 1<<20), "nested more than 10000 deep"},
		{"an opaque type", reflect.TypeFor[kitchen](), []byte{0, 0, 0, 4, 'x', 'y'}, "Big: big.Int does not unmarshal"},
		{"an end", reflect.TypeFor[flatBid](), []byte{2}, "Price: the bytes end in the middle of it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := untypedOf(t, c.typ)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err := u.decode(c.src)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(64*len(c.src)+2*firstBytes); got > limit {
				t.Errorf("%d bytes took %d bytes of memory", len(c.src), got)
			}
		})
	}
}

// Every part of a value that is cut off is an error that says where.
func TestCutValues(t *testing.T) {
	c := mustFor[kitchen](t)
	v := kitchen{Tree: &tree{Children: []tree{{Value: 5}}}, Sets: map[digest]struct{}{{1}: {}}}
	data, err := c.Append(nil, &v)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		var got kitchen
		if _, err := c.Decode(data[:i], &got); err == nil {
			t.Errorf("%d of %d bytes were enough", i, len(data))
		}
	}
}

// Case B047: values of all sizes around a buffer's, one after the other, come back equal; rest tells where each ends.
func TestValuesOfAllSizes(t *testing.T) {
	c := mustFor[pair[string, []int16]](t)
	var stream []byte
	var want []pair[string, []int16]
	for _, n := range []int{0, 1, 63, 64, 32<<10 - 1, 32 << 10, 32<<10 + 1, 3 << 20} {
		v := pair[string, []int16]{strings.Repeat("x", n), nil}
		for i := range n / 16 {
			v.Second = append(v.Second, int16(i))
		}
		var err error
		if stream, err = c.Append(stream, &v); err != nil {
			t.Fatal(err)
		}
		want = append(want, v)
	}
	for _, v := range want {
		var got pair[string, []int16]
		var err error
		if stream, err = c.Decode(stream, &got); err != nil || !reflect.DeepEqual(got, v) {
			t.Fatalf("a value of %d bytes came back with %d, %v", len(v.First), len(got.First), err)
		}
	}
	if len(stream) > 0 {
		t.Errorf("%d bytes are left", len(stream))
	}
}
