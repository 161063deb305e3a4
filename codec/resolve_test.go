package codec

import (
	"errors"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

// change is one row of the table of type changes: a value of the old type, and what it is as the new one; or why not.
type change struct {
	name    string
	run     func(t *testing.T) ([]Change, error, bool)
	changes string // each on a line; "": the same
	refused string // part of the message
}

// row makes a change from one type to another.
func row[Old, New any](name string, old Old, want New, changes string) change {
	return change{name: name, changes: changes, run: func(t *testing.T) ([]Change, error, bool) {
		from, to := codecFor[Old](t), codecFor[New](t)
		r, all, err := to.From(from.Schema())
		if err != nil {
			return nil, err, false
		}
		bytes, err := from.Append(nil, &old)
		if err != nil {
			t.Fatal(err)
		}
		var got New
		rest, err := r.Decode(append(bytes, 0xAA), &got)
		if err != nil || len(rest) != 1 {
			t.Errorf("%d bytes left, %v", len(rest), err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		for cut := range bytes { // an error, or less of it; never a panic
			_, _ = r.Decode(bytes[:cut], &got)
		}
		bySchema, err := Compare(from.Schema(), to.Schema())
		if err != nil || len(bySchema) != len(all) {
			t.Errorf("by schema alone: %v, %v", bySchema, err)
		}
		return all, nil, true
	}}
}

// refusal makes a change that is refused.
func refusal[Old, New any](name, message string) change {
	return change{name: name, refused: message, run: func(t *testing.T) ([]Change, error, bool) {
		from, to := codecFor[Old](t), codecFor[New](t)
		_, _, err := to.From(from.Schema())
		if _, byText := Compare(from.Schema(), to.Schema()); (byText == nil) != (err == nil) {
			t.Errorf("by schema alone: %v", byText)
		}
		return nil, err, false
	}}
}

func codecFor[T any](t *testing.T) *Codec[T] {
	t.Helper()
	c, err := For[T]()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type (
	v1 struct {
		ID   int32
		Name string
	}
	v2 struct { // a field added
		ID    int32
		Name  string
		Price float64
	}
	reordered struct {
		Name string
		ID   int32
	}
	renamed struct {
		Number int32 `weir:"was=ID"`
		Name   string
	}
	both struct { // the old name is taken again
		ID     int32
		Number int32 `weir:"was=ID"`
		Name   string
	}
	wide struct {
		ID   int64
		Name string
	}
	tree1 struct {
		V    int32
		Kids []tree1
	}
	tree2 struct {
		V    int64
		Kids []tree2
		Note string
	}
	list1 struct {
		V    int32
		Gone string
		Next *list1
	}
	list2 struct {
		Next *list2
		V    int64
	}
	house1 struct{ Rooms []room1 }
	room1  struct {
		N  int8
		Of house1
	}
	house2 struct{ Rooms []room2 }
	room2  struct {
		N    int8
		Of   house2
		Name string
	}
	other             struct{ Street, City string }
	meters            float64
	id                int32
	pairing[A, B any] struct {
		First  A
		Second B
	}
	inner1  struct{ A, B int32 }
	inner2  struct{ B, C int32 }
	embeds1 struct {
		inner1
		X int32
	}
	embeds2 struct {
		inner1
		X int64
	}
	hasMap1 struct{ M map[string]v1 }
	hasMap2 struct{ M map[string]v2 }
	text1   struct{ s string }
	text2   struct{ s string }
	none    struct{}
	keyA    struct {
		A int32
		B string
	}
	keyB struct {
		A int64
		B string
	}
	keyC struct {
		B string
		A int32
	}
	keyD struct {
		A int32
		B string
		C bool
	}
	keyE struct {
		One int32  `weir:"was=A"`
		Two string `weir:"was=B"`
	}
)

func (x text1) MarshalText() ([]byte, error)     { return []byte(x.s), nil }
func (x *text1) UnmarshalText(text []byte) error { x.s = string(text); return nil }
func (x text2) MarshalText() ([]byte, error)     { return []byte(x.s), nil }
func (x *text2) UnmarshalText(text []byte) error { x.s = string(text); return nil }

func TestTypeChanges(t *testing.T) {
	at := time.Unix(5, 7).UTC()
	five := int32(5)
	for _, c := range []change{
		row("the same", v1{1, "x"}, v1{1, "x"}, ""),
		row("another name of the type", v1{1, "x"}, struct {
			ID   int32
			Name string
		}{1, "x"}, ""),
		row("a named kind", int32(7), id(7), ""),
		row("a named float", 1.5, meters(1.5), ""),
		row("bool", true, true, ""),
		row("int8 to int16", int8(-3), int16(-3), ""),
		row("int32 to int8, where it fits", int32(-3), int8(-3), "narrowed from int to int8, as far as the values fit"),
		row("int64 to uint32, where it fits", int64(3), uint32(3), "narrowed from long to uint32, as far as the values fit"),
		row("int32 to uint32, where it fits", int32(3), uint32(3), "narrowed from int to uint32, as far as the values fit"),
		row("int32 to int", int32(-3), int(-3), "widened from int to long"),
		row("int8 to int64", int8(-3), int64(-3), "widened from int8 to long"),
		row("uint8 to int16", uint8(200), int16(200), ""),
		row("uint8 to int32", uint8(200), int32(200), ""),
		row("uint16 to int64", uint16(60000), int64(60000), "widened from uint16 to long"),
		row("uint8 to uint32", uint8(200), uint32(200), "widened from uint8 to uint32"),
		row("uint32 to int64", uint32(1<<31), int64(1<<31), ""),
		row("int64 to duration", int64(9), time.Duration(9), ""),
		row("uint to uint64", uint(9), uint64(9), ""),
		row("int32 to float64", int32(-3), float64(-3), "widened from int to double"),
		row("float32 to float64", float32(0.5), 0.5, "widened from float to double"),
		row("string to bytes", "ab", []byte("ab"), "changed from string to bytes"),
		row("bytes to string", []byte("ab"), "ab", "changed from bytes to string"),
		row("time", at, at, ""),
		row("time to nanoseconds", at, at.UnixNano(), "changed from time to long"),
		row("nanoseconds to time", at.UnixNano(), at, "changed from long to time"),
		row("bytes of a length", [3]byte{1, 2, 3}, [3]byte{1, 2, 3}, ""),
		row("an array to a slice", [2]int32{1, 2}, []int32{1, 2}, ""),
		row("a slice to an array of its length", []int32{1, 2}, [2]int32{1, 2}, "became an array of 2 int, as far as there are 2"),
		row("an array in an array", [2][1]int32{{1}, {2}}, [2][1]int64{{1}, {2}}, "[][] widened from int to long"),
		row("an array of none", [0]int32{}, [0]int64{}, "[] widened from int to long"),
		row("a map by arrays", map[[2]int32]bool{{1, 2}: true}, map[[2]int64]bool{{1, 2}: true}, "[key][] widened from int to long"),
		row("an opaque type's bytes", netip.MustParseAddr("1.2.3.4"), []byte{1, 2, 3, 4}, "changed from Addr in binary form to bytes"),
		row("bytes to an opaque type", []byte{1, 2, 3, 4}, netip.MustParseAddr("1.2.3.4"), "changed from bytes to Addr in binary form"),
		row("an opaque type's text", *big.NewInt(7), "7", "changed from Int in text form to string"),
		row("text to an opaque type", "7", *big.NewInt(7), "changed from string to Int in text form"),
		row("an opaque type of another name", text1{"a"}, text2{"a"}, "made by the methods of github_com.weirstream.weir.codec.text1, "+
			"read by those of github_com.weirstream.weir.codec.text2"),
		row("elements widened", []int32{1, 2}, []int64{1, 2}, "[] widened from int to long"),
		row("an array's elements widened", [2]float32{1, 2}, [2]float64{1, 2}, "[] widened from float to double"),
		row("an empty slice", []int32{}, []int64(nil), "[] widened from int to long"),
		row("slices in slices", [][]int32{{1}, nil}, [][]int64{{1}, nil}, "[][] widened from int to long"),
		row("a pointer", &five, &five, ""),
		row("a nil pointer", (*int32)(nil), (*int64)(nil), "widened from int to long"),
		row("a pointer's value widened", &five, ptr(int64(5)), "widened from int to long"),
		row("made optional", five, &five, "made optional"),
		row("made optional and widened", five, ptr(int64(5)), "made optional\nwidened from int to long"),
		row("a map", map[string]int32{"a": 1}, map[string]int64{"a": 1}, "[] widened from int to long"),
		row("a map's keys widened", map[int32]string{1: "a"}, map[int64]string{1: "a"}, "[key] widened from int to long"),
		row("a map of records", map[string]v1{"a": {1, "x"}}, map[string]v2{"a": {1, "x", 0}}, "[].Price added"),
		row("a map by records", map[keyA]bool{{1, "x"}: true}, map[keyB]bool{{1, "x"}: true}, "[key].A widened from int to long"),
		row("a map by renamed records", map[keyA]bool{{1, "x"}: true}, map[keyE]bool{{1, "x"}: true},
			"[key].One renamed from A\n[key].Two renamed from B"),
		row("a field added", v1{1, "x"}, v2{1, "x", 0}, "Price added"),
		row("a field removed", v2{1, "x", 2.5}, v1{1, "x"}, "Price removed"),
		row("fields in another order", v1{1, "x"}, reordered{"x", 1}, "has its fields in another order"),
		row("a field renamed", v1{1, "x"}, renamed{1, "x"}, "Number renamed from ID"),
		row("the tag, when it is renamed already", renamed{1, "x"}, renamed{1, "x"}, ""),
		row("a field by its name first", v1{1, "x"}, both{1, 0, "x"}, "Number added"),
		row("a field widened", v1{1, "x"}, wide{1, "x"}, "ID widened from int to long"),
		row("all at once", v2{1, "x", 2.5}, struct {
			Title string `weir:"was=Name"`
			Extra []int32
			ID    int64
		}{"x", nil, 1}, "ID widened from int to long\nTitle renamed from Name\nPrice removed\nExtra added\nhas its fields in another order"),
		row("a record in a record", struct{ R inner1 }{inner1{1, 2}}, struct{ R inner2 }{inner2{2, 0}}, "R.A removed\nR.C added"),
		row("a record behind a pointer", struct{ R *inner1 }{&inner1{1, 2}}, struct{ R *inner2 }{&inner2{2, 0}}, "R.A removed\nR.C added"),
		row("a record in a slice", []inner1{{1, 2}, {3, 4}}, []inner2{{2, 0}, {4, 0}}, "[].A removed\n[].C added"),
		row("a record in an array", [1]inner1{{1, 2}}, [1]inner2{{2, 0}}, "[].A removed\n[].C added"),
		row("an embedded struct", embeds1{inner1{1, 2}, 3}, embeds2{inner1{1, 2}, 3}, "X widened from int to long"),
		row("a map in a record", hasMap1{map[string]v1{"a": {1, "x"}}}, hasMap2{map[string]v2{"a": {1, "x", 0}}}, "M[].Price added"),
		row("a recursive type", tree1{1, []tree1{{2, nil}, {3, []tree1{{4, nil}}}}},
			tree2{1, []tree2{{2, nil, ""}, {3, []tree2{{4, nil, ""}}, ""}}, ""}, "V widened from int to long\nNote added"),
		row("a linked list", list1{1, "g", &list1{2, "h", nil}}, list2{&list2{nil, 2}, 1},
			"V widened from int to long\nGone removed\nhas its fields in another order"),
		row("types that contain each other", house1{[]room1{{}, {1, house1{[]room1{{}}}}}}, house2{[]room2{{}, {1, house2{[]room2{{}}}, ""}}}, "Rooms[].Name added"),
		row("a generic type", pairing[int32, string]{1, "x"}, pairing[int64, string]{1, "x"}, "First widened from int to long"),
		row("a generic type's other argument", pairing[v1, []v1]{v1{1, "x"}, []v1{{2, "y"}}}, pairing[v1, []v2]{v1{1, "x"}, []v2{{2, "y", 0}}},
			"Second[].Price added"),
		row("a large thing removed", struct {
			A []map[string]*v1
			B int32
		}{[]map[string]*v1{{"k": {1, "x"}, "n": nil}}, 3}, struct{ B int32 }{3}, "A removed"),
		row("every kind removed", struct {
			A bool
			B int8
			C uint64
			D float32
			E float64
			F string
			G []byte
			H [5]byte
			I time.Time
			J [2]int32
			K *string
			L map[string]bool
			M tree1
			Z int32
		}{true, 1, 2, 3, 4, "5", []byte("6"), [5]byte{7}, at, [2]int32{8, 9}, ptr("10"), map[string]bool{"11": true}, tree1{12, []tree1{{13, nil}}}, 14},
			struct{ Z int32 }{14}, "A removed\nB removed\nC removed\nD removed\nE removed\nF removed\nG removed\nH removed\nI removed\nJ removed\nK removed\nL removed\nM removed"),
		row("everything added", none{}, v1{}, "ID added\nName added"),
		row("everything removed", v1{1, "x"}, none{}, "ID removed\nName removed"),

		refusal[int64, int32]("long to int", "stored as long, declared as int: values would be cut"),
		refusal[float64, float32]("double to float", "values would be cut"),
		refusal[int64, float64]("long to double", "values would be cut"),
		refusal[int32, float32]("int to float", "values would be cut"),
		refusal[float64, int64]("double to long", "values would be cut"),
		refusal[int64, uint64]("signed to unsigned", "stored as long, declared as uint64"),
		refusal[uint64, int64]("unsigned to signed", "stored as uint64, declared as long"),
		refusal[int16, int8]("int16 to int8", "stored as int16, declared as int8: values would be cut"),
		refusal[uint16, int16]("uint16 to int16", "values would be cut"),
		refusal[int8, uint8]("int8 to uint8", "values would be cut"),
		refusal[int16, uint32]("int16 to uint32", "stored as int16, declared as uint32: values would be cut"),
		refusal[uint32, int32]("uint32 to int32", "stored as uint32, declared as int: values would be cut"),
		refusal[time.Time, uint32]("time to uint32", "stored as time, declared as uint32"),
		refusal[[3]int32, [2]int32]("a shorter array", "stored as array of 3 int, declared as array of 2 int: an array keeps its length; declare a slice"),
		refusal[[2]int32, [3]int32]("a longer array", "an array keeps its length"),
		refusal[struct{ A [][0]bool }, struct{ A [][1]bool }]("an array of none", "field A[]: stored as array of 0 boolean"),
		refusal[map[[2]int32]bool, map[[3]int32]bool]("a map's keys, a longer array", "field [key]: stored as array of 2 int"),
		refusal[netip.Addr, big.Int]("an opaque type to one of other methods", "stored as Addr in binary form, declared as Int in text form"),
		refusal[string, netip.Addr]("text to an opaque type of bytes", "stored as string, declared as Addr in binary form"),
		refusal[uint64, [8]byte]("uint64 to its bytes", "stored as uint64, declared as 8 bytes"),
		refusal[bool, int32]("bool to int", "stored as boolean"),
		refusal[string, int32]("string to int", "stored as string"),
		refusal[[3]byte, [4]byte]("a longer fixed", "stored as 3 bytes, declared as 4 bytes"),
		refusal[[3]byte, []byte]("a fixed to a slice", "stored as 3 bytes, declared as bytes"),
		refusal[*int32, int32]("a pointer to a value", "there may be none"),
		refusal[int32, []int32]("one to many", "stored as int, declared as list of int"),
		refusal[[]int32, int32]("many to one", "stored as list of int, declared as int"),
		refusal[map[string]int32, []int32]("a map to a slice", "stored as map of string to int"),
		refusal[[]keyA, map[int32]string]("a slice to a map", "declared as map of int to string"),
		refusal[map[int32]bool, map[string]bool]("a map's keys", "field [key]: stored as int, declared as string"),
		refusal[map[int64]bool, map[int32]bool]("a map's keys cut", "values would be cut"),
		refusal[map[keyA]bool, map[keyC]bool]("a map's keys in another order", "a key must keep its canonical bytes"),
		refusal[map[keyA]bool, map[keyD]bool]("a map's keys with more fields", "a key must keep its canonical bytes"),
		refusal[v1, other]("nothing in common", "they have no field in common"),
		refusal[struct{ R v1 }, struct{ R other }]("nothing in common, deeper", "field R: stored as v1{ID, Name}"),
		refusal[v1, int32]("a record to a number", "stored as v1, declared as int"),
		refusal[struct{ ID string }, v1]("a field of another type", "field ID: stored as string, declared as int"),
		refusal[[]none, []v1]("elements without bytes", "the one cannot become the other"),
	} {
		t.Run(c.name, func(t *testing.T) {
			changes, err, ok := c.run(t)
			if c.refused != "" {
				var refused *ResolveError
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("got %v, want a refusal with %q", err, c.refused)
				}
				return
			}
			if err != nil || !ok {
				t.Fatal(err)
			}
			var lines []string
			for _, c := range changes {
				lines = append(lines, c.String())
			}
			if got := strings.Join(lines, "\n"); got != c.changes {
				t.Errorf("the changes are\n%s\nwant\n%s", got, c.changes)
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

func TestKeyChanges(t *testing.T) {
	schema := func(text string, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	of := func(v any) string { return schema(SchemaOf(reflect.TypeOf(v))) }
	for _, c := range []struct {
		old, now any
		ok       bool
	}{
		{int32(0), int64(0), true}, {uint8(0), int64(0), true}, {float32(0), float64(0), true}, {"", "", true},
		{[2]int8{}, [2]uint32{}, false}, {int16(0), int8(0), false}, {[2]string{}, [3]string{}, false}, {int8(0), int16(0), true},
		{keyA{}, keyB{}, true}, {keyA{}, keyE{}, true}, {[2]int32{}, [2]int64{}, true}, {[4]byte{}, [4]byte{}, true},
		{int64(0), int32(0), false}, {"", int64(0), false}, {int32(0), float64(0), false}, {uint64(0), int64(0), false},
		{keyA{}, keyC{}, false}, {keyA{}, keyD{}, false}, {keyD{}, keyA{}, false}, {[4]byte{}, [5]byte{}, false}, {true, int32(0), false},
	} {
		_, err := CompareKeys(of(c.old), of(c.now))
		if (err == nil) != c.ok {
			t.Errorf("%T to %T: %v", c.old, c.now, err)
		}
	}
}

// TestSchemasThatAreNone gives errors.
func TestSchemasThatAreNone(t *testing.T) {
	for _, text := range []string{"", "{", `"nothing"`, `7`, `["int"]`, `["null","int","long"]`, `{"type":"fixed","name":"x"}`,
		`{"type":"array","items":"int","length":-1}`, `{"type":"array","items":"int","length":1.5}`, `{"type":"array","items":"int","length":"1"}`,
		`{"type":"record","name":"x","fields":[{"type":"int"}]}`, `{"type":"array"}`, `{"type":"record","name":"x","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}`,
		`{"type":"array","items":{"type":"record","name":"q","fields":[{"name":"a","type":"q"}]}}`,
		strings.Repeat(`{"type":`, 2000) + `"int"` + strings.Repeat(`}`, 2000)} {
		if _, _, err := codecFor[v1](t).From(text); err == nil {
			t.Errorf("%.50s is taken", text)
		}
	}
}
