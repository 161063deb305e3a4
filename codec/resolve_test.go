package codec

import (
	"errors"
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
		row("int16 to int8, where it fits", int16(-3), int8(-3), ""),
		row("int32 to int", int32(-3), int(-3), "widened from int to long"),
		row("int8 to int64", int8(-3), int64(-3), "widened from int to long"),
		row("uint8 to int32", uint8(200), int32(200), ""),
		row("uint16 to int64", uint16(60000), int64(60000), "widened from int to long"),
		row("uint8 to uint32", uint8(200), uint32(200), "widened from int to long"),
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
		row("a slice to an array of its length", []int32{1, 2}, [2]int32{1, 2}, ""),
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
		`{"type":"record","name":"x","fields":[{"type":"int"}]}`, `{"type":"array"}`, `{"type":"record","name":"x","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}`,
		strings.Repeat(`{"type":`, 2000) + `"int"` + strings.Repeat(`}`, 2000)} {
		if _, _, err := codecFor[v1](t).From(text); err == nil {
			t.Errorf("%.50s is taken", text)
		}
	}
}
