package codec_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/codec"
)

// typeOf is the type that the schema of T describes.
func typeOf[T any](t testing.TB) (*codec.Codec[T], *codec.Type) {
	t.Helper()
	c, err := codec.For[T]()
	if err != nil {
		t.Fatal(err)
	}
	typ, err := codec.TypeOf(c.Schema())
	if err != nil {
		t.Fatal(err)
	}
	return c, typ
}

// shown is a value as a Type writes it.
func shown[T any](t testing.TB, v T) string {
	t.Helper()
	c, typ := typeOf[T](t)
	b, err := c.Append(nil, &v)
	if err != nil {
		t.Fatal(err)
	}
	behind := append(slices.Clone(b), "behind"...)
	text, rest, err := typ.AppendJSON([]byte("> "), behind)
	if err != nil || string(rest) != "behind" {
		t.Fatalf("%T: %q is left, %v", v, rest, err)
	}
	if rest, err := typ.Skip(behind); err != nil || string(rest) != "behind" {
		t.Errorf("%T: skipped up to %q, %v", v, rest, err)
	}
	if !json.Valid(text[2:]) {
		t.Errorf("%T: %s is no JSON", v, text)
	}
	return string(text[2:])
}

type (
	typeLine struct {
		SKU   string
		Count uint16
	}
	typeOrder struct {
		ID    int64
		Lines []typeLine
		Next  *typeOrder
	}
	typePoint struct {
		X, Y int32
		Name string
	}
)

func TestValuesAsJSON(t *testing.T) {
	one := int32(1)
	check := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	check(shown(t, true), `true`)
	check(shown(t, int8(-5)), `-5`)
	check(shown(t, int64(math.MinInt64)), `-9223372036854775808`)
	check(shown(t, uint32(math.MaxUint32)), `4294967295`)
	check(shown(t, uint64(math.MaxUint64)), `18446744073709551615`)
	check(shown(t, float32(0.1)), `0.1`)
	check(shown(t, []float64{0, 1e21, 1e-7, math.NaN(), math.Inf(1), math.Inf(-1)}), `[0,1e+21,1e-07,"NaN","Infinity","-Infinity"]`)
	check(shown(t, "a \"b\"\\\n\x01日本"), `"a \"b\"\\\u000a\u0001日本"`)
	check(shown(t, "\xff\xfe"), `{"base64":"//4="}`)
	check(shown(t, []byte("hello")), `"aGVsbG8="`)
	check(shown(t, [4]byte{0, 1, 254, 255}), `"0001feff"`)
	check(shown(t, [8]byte{7: 1}), `"0000000000000001"`)
	check(shown(t, time.Unix(1764495873, 5).UTC()), `"2025-11-30T09:44:33.000000005Z"`)
	check(shown(t, time.Time{}), `"0001-01-01T00:00:00Z"`)
	check(shown(t, 90*time.Second), `90000000000`)
	check(shown(t, (*int32)(nil)), `null`)
	check(shown(t, &one), `1`)
	check(shown(t, map[string]int64{"b": 2, "a": 1}), `{"a":1,"b":2}`)
	check(shown(t, map[string]int64(nil)), `{}`)
	check(shown(t, map[string]int64{"\xff": 2}), `[[{"base64":"/w=="},2]]`)
	check(shown(t, map[int32][]string{7: {"x"}}), `[[7,["x"]]]`)
	check(shown(t, [2]int16{1, 2}), `[1,2]`)
	check(shown(t, []struct{}{{}, {}}), `"2 elements of no bytes"`)
	check(shown(t, struct{}{}), `{}`)
	check(shown(t, netip.MustParseAddr("10.0.0.1")), `"CgAAAQ=="`)
	check(shown(t, typeOrder{ID: 7, Lines: []typeLine{{"pen", 2}}, Next: &typeOrder{ID: 8}}),
		`{"ID":7,"Lines":[{"SKU":"pen","Count":2}],"Next":{"ID":8,"Lines":[],"Next":null}}`)
}

func TestTypesForPeople(t *testing.T) {
	for _, c := range []struct {
		got  func() *codec.Type
		want string
	}{
		{func() *codec.Type { _, s := typeOf[int64](t); return s }, "long"},
		{func() *codec.Type { _, s := typeOf[uint64](t); return s }, "uint64"},
		{func() *codec.Type { _, s := typeOf[uint8](t); return s }, "uint8"},
		{func() *codec.Type { _, s := typeOf[[16]byte](t); return s }, "[16]byte"},
		{func() *codec.Type { _, s := typeOf[[3]*string](t); return s }, "[3]*string"},
		{func() *codec.Type { _, s := typeOf[time.Time](t); return s }, "time"},
		{func() *codec.Type { _, s := typeOf[netip.Addr](t); return s }, "Addr in binary form"},
		{func() *codec.Type { _, s := typeOf[map[string]typeOrder](t); return s },
			"map[string]typeOrder{ID long, Lines []typeLine{SKU string, Count uint16}, Next *typeOrder}"},
	} {
		if got := c.got().String(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// checkKey compares what a Type does with a key with what Key does, and reads its JSON back.
func checkKey[K comparable](t *testing.T, v K) {
	t.Helper()
	k, err := codec.KeyFor[K]()
	if err != nil {
		t.Fatal(err)
	}
	_, typ := typeOf[K](t)
	b, err := k.Codec().Append(nil, &v)
	if err != nil {
		t.Fatal(err)
	}
	behind := append(slices.Clone(b), 0x55)
	if h, rest, err := typ.Hash(behind); h != k.Hash(v) || len(rest) != 1 || err != nil {
		t.Errorf("%#v has the hash %x, not %x; %v", v, k.Hash(v), h, err)
	}
	canonical, rest, err := typ.AppendCanonical([]byte("x"), behind)
	if want := k.AppendCanonical([]byte("x"), v); string(canonical) != string(want) || len(rest) != 1 || err != nil {
		t.Errorf("%#v: canonical bytes %x, not %x; %v", v, want, canonical, err)
	}
	text, _, err := typ.AppendJSON(nil, b)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := typ.AppendKey(nil, string(text)); err != nil || string(again) != string(b) {
		t.Errorf("%#v is %s, which is read as %x, not %x; %v", v, text, again, b, err)
	}
}

func TestKeysByTheirSchema(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := r.Uint64() >> r.IntN(64)
		text := strings.Repeat("ä", r.IntN(100)) + string(rune('a'+r.IntN(26)))
		checkKey(t, n&1 == 0)
		checkKey(t, int8(n))
		checkKey(t, uint8(n))
		checkKey(t, int16(n))
		checkKey(t, uint16(n))
		checkKey(t, int32(n))
		checkKey(t, uint32(n))
		checkKey(t, -int64(n))
		checkKey(t, n)
		checkKey(t, time.Duration(n))
		checkKey(t, float32(n)/3)
		checkKey(t, -float64(n)/3)
		checkKey(t, text)
		checkKey(t, text[:len(text)/2]+"\xff")
		checkKey(t, [8]byte{byte(n), byte(n >> 8)})
		checkKey(t, [2]string{text, "b"})
		checkKey(t, [0]int32{})
		checkKey(t, typePoint{int32(n), -int32(n), text})
		checkKey(t, struct {
			A typePoint
			B [2]bool
			C uint64
		}{A: typePoint{Name: text}, C: n})
	}
	checkKey(t, math.Copysign(0, -1))
	checkKey(t, struct{}{})
}

func TestKeysThatAreNone(t *testing.T) {
	for schema, keys := range map[string][]string{
		`"int"`:  {"2147483648", "1.5", `"1"`, "x", "1 2", "", "null"},
		`"long"`: {"9223372036854775808"},
		`{"type":"fixed","name":"weir.uint64","size":8}`: {"-1", `"00"`},
		`{"type":"fixed","name":"a","size":2}`:           {`"00"`, `"xx00"`, "1"},
		`{"type":"array","length":2,"items":"int"}`:      {"[1]", "1", "[1,true]"},
		`"bytes"`:        {`"aa"`},
		`["null","int"]`: {"1"},
		`{"type":"record","name":"r","fields":[{"name":"A","type":"int"}]}`: {`{}`, `{"A":1,"B":2}`, `[1]`, `{"A":"x"}`},
	} {
		typ, err := codec.TypeOf(schema)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if b, err := typ.AppendKey(nil, key); err == nil {
				t.Errorf("%s is %x as a key of type %v", key, b, typ)
			}
		}
	}
	_, typ := typeOf[string](t)
	for text, want := range map[string]string{"user-42": "user-42", `"quoted"`: "quoted", "42": "42", `{"a":1}`: `{"a":1}`} {
		if b, err := typ.AppendKey(nil, text); err != nil || string(b[1:]) != want {
			t.Errorf("%s is read as %q, %v", text, b, err)
		}
	}
}

// TestSchemasWithoutEnd: they are refused, and not walked for ever.
func TestSchemasWithoutEnd(t *testing.T) {
	many := `"int"`
	for i := range 40 {
		name := "r" + strings.Repeat("x", i)
		first := `{"type":"record","name":"` + name + `","fields":[{"name":"a","type":` + many + `},`
		many = first + `{"name":"b","type":"` + strings.TrimSuffix(name, "x") + `"}]}`
		if i == 0 {
			many = first + `{"name":"b","type":"int"}]}`
		}
	}
	for _, schema := range []string{
		`{"type":"record","name":"r","fields":[{"name":"a","type":"r"}]}`,
		`{"type":"array","items":{"type":"record","name":"r","fields":[{"name":"a","type":"r"}]}}`,
		many,
	} {
		if typ, err := codec.TypeOf(schema); err == nil {
			t.Errorf("%.200v is a type", typ)
		}
	}
	if _, err := codec.TypeOf(`{"type":"record","name":"r","fields":[{"name":"a","type":["null","r"]},{"name":"b","type":{"type":"array","items":"r"}}]}`); err != nil {
		t.Error(err)
	}
}

// FuzzType: any bytes of any schema lead to an error, or to JSON.
func FuzzType(f *testing.F) {
	_, typ := typeOf[typeOrder](f)
	_ = typ
	c, err := codec.For[map[string]typeOrder]()
	if err != nil {
		f.Fatal(err)
	}
	b, err := c.Append(nil, &map[string]typeOrder{"a": {ID: 7, Lines: []typeLine{{"pen", 2}}, Next: &typeOrder{ID: 8}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(c.Schema(), b)
	f.Add(`{"type":"array","items":"bytes"}`, []byte{4, 2, 1, 2, 1, 0})
	f.Add(`{"type":"array","items":["null","double"]}`, []byte{4, 2, 1, 2, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, schema string, b []byte) {
		typ, err := codec.TypeOf(schema)
		if err != nil {
			return
		}
		_ = typ.String()
		_, _, _ = typ.Hash(b)
		_, _ = typ.AppendKey(nil, string(b))
		text, rest, err := typ.AppendJSON(nil, b)
		if err != nil {
			return
		}
		if !json.Valid(text) {
			t.Errorf("%q is no JSON", text)
		}
		skipped, err := typ.Skip(b)
		if err != nil || len(skipped) != len(rest) {
			t.Errorf("%d bytes are left, Skip leaves %d: %v", len(rest), len(skipped), err)
		}
	})
}
