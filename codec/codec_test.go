package codec

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func mustFor[T any](t testing.TB) *Codec[T] {
	t.Helper()
	c, err := For[T]()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type flatBid struct {
	Auction, Price int64
	Count          int32
	Open           bool
	At             time.Time
	Hash           [16]byte
	Ratio          [2]float32
}

func TestFlatTypesDoNotAllocate(t *testing.T) {
	c, text := mustFor[flatBid](t), mustFor[pair[int, string]](t)
	data := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() {
		v := flatBid{Auction: 1 << 40, Price: -3, Open: true, At: time.Unix(1, 2)}
		data, _ = c.Append(data[:0], &v)
		if _, err := c.Decode(data, &v); err != nil {
			t.Error(err)
		}
		v = c.Clone(v)
		p := pair[int, string]{1, "a string is copied, not shared"}
		data, _ = text.Append(data[:0], &p)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// What an earlier value left behind does not shine through.
func TestDecodeOverwritesAll(t *testing.T) {
	c := mustFor[kitchen](t)
	data, err := c.Append(nil, &kitchen{})
	if err != nil {
		t.Fatal(err)
	}
	dirty := kitchen{Whens: []time.Time{{}}, Tree: &tree{}, Cache: []int{1}, For: 3, When: time.Unix(1, 1), Empty: make([]struct{}, 3)}
	dirty.Big.SetInt64(7)
	if _, err := c.Decode(data, &dirty); err != nil {
		t.Fatal(err)
	}
	clean := kitchen{ByAddr: map[[2]int32]*big.Int{}, Sets: map[digest]struct{}{}, Catalog: catalogue{}}
	if !reflect.DeepEqual(dirty, clean) {
		t.Errorf("got %+v", dirty)
	}
}

// A nil slice and an empty one are both nil after a journey, a nil map and an empty one both empty: programs append to
// nil slices without a thought, but write only into maps that they made.
func TestNilAndEmpty(t *testing.T) {
	type both struct {
		S []int
		B []byte
		M map[int]int
	}
	c := mustFor[both](t)
	for _, v := range []both{{}, {S: []int{}, B: []byte{}, M: map[int]int{}}} {
		data, err := c.Append(nil, &v)
		if err != nil {
			t.Fatal(err)
		}
		var got both
		if _, err := c.Decode(data, &got); err != nil || got.S != nil || got.B != nil || got.M == nil || len(got.M) > 0 {
			t.Errorf("%#v came back as %#v, %v", v, got, err)
		}
	}
}

func TestEqualMapsHaveEqualBytes(t *testing.T) {
	c := mustFor[map[string]map[int8]bool](t)
	var first []byte
	for i := range 20 {
		m := map[string]map[int8]bool{}
		for j := range 10 {
			m[strings.Repeat("x", (i+j)%10)] = map[int8]bool{0: true, -1: false, int8((i + j) % 10): true}
		}
		data, err := c.Append(nil, &m)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = data
		}
		if !bytes.Equal(data, first) {
			t.Fatalf("got %x and %x", first, data)
		}
	}
}

// The bounds of time: what has nanoseconds in 64 bits, but for the one that stands for the zero Time. Errors name the field.
func TestTimesOutOfRange(t *testing.T) {
	type visit struct{ Seen []struct{ At time.Time } }
	c := mustFor[visit](t)
	far := []time.Time{time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, math.MaxInt64).Add(1), time.Unix(0, math.MinInt64)}
	for _, at := range far {
		_, err := c.Append(nil, &visit{Seen: []struct{ At time.Time }{{}, {at}}})
		if err == nil || !strings.Contains(err.Error(), "codec: encoding codec.visit: Seen[1].At: the time "+at.String()+" is outside of 1678 to 2262") {
			t.Errorf("%v: %v", at, err)
		}
	}
	near := []time.Time{{}, time.Unix(0, math.MaxInt64).UTC(), time.Unix(0, math.MinInt64+1).UTC(), time.Unix(0, 0).UTC()}
	for _, at := range near {
		v := visit{Seen: []struct{ At time.Time }{{at}}}
		data, err := c.Append(nil, &v)
		if err != nil {
			t.Fatal(err)
		}
		var got visit
		if _, err := c.Decode(data, &got); err != nil || !reflect.DeepEqual(got, v) {
			t.Errorf("%v came back as %v, %v", v, got, err)
		}
	}
	if !mustFor[time.Time](t).Flat() {
		t.Error("a time is not flat")
	}
}

// Location and clock reading are dropped: one instant has one encoding.
func TestOneInstantHasOneEncoding(t *testing.T) {
	c := mustFor[time.Time](t)
	now := time.Now()
	a, _ := c.Append(nil, &now)
	elsewhere := now.In(time.FixedZone("x", 7200))
	b, _ := c.Append(nil, &elsewhere)
	if !bytes.Equal(a, b) {
		t.Errorf("%x and %x", a, b)
	}
}

// A value that contains itself gives an error: Go could not recover from the stack it would fill.
func TestCycles(t *testing.T) {
	c := mustFor[list](t)
	loop := &list{}
	loop.Next = &list{Next: loop}
	if _, err := c.Append(nil, loop); !errors.Is(err, errNesting) || len(err.Error()) > 500 {
		t.Errorf("got %v", err)
	}
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, errNesting) {
			t.Errorf("cloning a cycle: %v", err)
		}
	}()
	c.Clone(*loop)
}

func TestLongListsRoundTrip(t *testing.T) {
	c := mustFor[list](t)
	var v list
	for range nestingMax - 1 {
		next := v
		v = list{Next: &next}
	}
	data, err := c.Append(nil, &v)
	if err != nil {
		t.Fatal(err)
	}
	var got list
	if rest, err := c.Decode(data, &got); err != nil || len(rest) > 0 {
		t.Fatal(err)
	}
	if again, _ := c.Append(nil, &got); !bytes.Equal(again, data) {
		t.Error("the list changed")
	}
}

// A clone equals its original, shares nothing with it that can be changed, and keeps nil.
func TestClone(t *testing.T) {
	c := mustFor[kitchen](t)
	if c.Flat() {
		t.Fatal("the kitchen is flat")
	}
	rapid.Check(t, func(t *rapid.T) {
		var v kitchen
		fill(t, reflect.ValueOf(&v).Elem(), 0)
		if rapid.Bool().Draw(t, "nil map") {
			v.Sets, v.Catalog = nil, nil
		}
		before, err := c.Append(nil, &v)
		if err != nil {
			t.Fatal(err)
		}
		clone := c.Clone(v)
		if !reflect.DeepEqual(clone, v) {
			t.Fatalf("%+v cloned as %+v", v, clone)
		}
		scribble(reflect.ValueOf(&clone).Elem())
		if after, _ := c.Append(nil, &v); !bytes.Equal(before, after) {
			t.Fatalf("writing into the clone changed the original to %+v", v)
		}
	})
}

// scribble changes all that can be reached and changed in place.
func scribble(v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *netip.Addr, *time.Time:
		return
	case *big.Int:
		for _, w := range [][]big.Word{x.Bits()} {
			for i := range w {
				w[i]++
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			scribble(v.Index(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			scribble(v.Elem())
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(k))
			scribble(value)
			v.SetMapIndex(k, value)
			v.SetMapIndex(reflect.Zero(k.Type()), reflect.Zero(value.Type()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				scribble(v.Field(i))
			}
		}
	case reflect.String:
		v.SetString(v.String() + "!")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	default:
		if v.CanInt() {
			v.SetInt(v.Int() ^ 1)
		} else if v.CanUint() {
			v.SetUint(v.Uint() ^ 1)
		}
	}
}

func TestFlatMeansThatAssignmentCopies(t *testing.T) {
	for _, flat := range []bool{
		mustFor[int](t).Flat(), mustFor[string](t).Flat(), mustFor[flatBid](t).Flat(), mustFor[[2]pair[int, string]](t).Flat(),
		mustFor[struct{}](t).Flat(), mustFor[[0][]int](t).Flat(),
	} {
		if !flat {
			t.Error("not flat")
		}
	}
	for _, flat := range []bool{
		mustFor[[]byte](t).Flat(), mustFor[*int](t).Flat(), mustFor[map[int]int](t).Flat(), mustFor[[1][]int](t).Flat(), mustFor[big.Int](t).Flat(),
	} {
		if flat {
			t.Error("flat")
		}
	}
}

// Case B077: what was written as a wide integer and does not fit in a narrow one is an error, never another number.
func TestIntegersDoNotWrapAround(t *testing.T) {
	wide, narrow := mustFor[[]int64](t), mustFor[[]int8](t)
	data, _ := wide.Append(nil, &[]int64{1, 300})
	var got []int8
	_, err := narrow.Decode(data, &got)
	if want := "codec: decoding []int8, byte 4 of 5: [1]: 300 does not fit into int8"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

type broken struct{ secret int }

var errBroken = errors.New("out of order")

func (b broken) MarshalText() ([]byte, error)     { return []byte{byte(b.secret)}, b.fail() }
func (b *broken) UnmarshalText(data []byte) error { b.secret = int(data[0]); return b.fail() }
func (b broken) fail() error {
	if b.secret < 0 {
		return errBroken
	}
	return nil
}

func TestErrorsOfOpaqueTypes(t *testing.T) {
	c := mustFor[[2]broken](t)
	_, err := c.Append(nil, &[2]broken{{1}, {-1}})
	if !errors.Is(err, errBroken) || err.Error() != "codec: encoding [2]codec.broken: [1]: codec.broken does not marshal: out of order" {
		t.Errorf("got %v", err)
	}
}

func TestFingerprints(t *testing.T) {
	type other kitchen
	first, again := mustFor[kitchen](t), mustFor[kitchen](t)
	if first.Fingerprint() != again.Fingerprint() {
		t.Error("a fingerprint changes")
	}
	if mustFor[kitchen](t).Fingerprint() == mustFor[other](t).Fingerprint() || mustFor[int](t).Fingerprint() == mustFor[int64](t).Fingerprint() {
		t.Error("two types share a fingerprint")
	}
}

// The example of docs/format/codec.md.
func TestBytesOfTheDocument(t *testing.T) {
	type order struct {
		ID    int64
		Items map[string]int
	}
	got, err := mustFor[order](t).Append(nil, &order{7, map[string]int{"pen": 2, "ink": 1}})
	if want := "\x0e\x04\x06ink\x02\x06pen\x04\x00"; err != nil || string(got) != want {
		t.Errorf("got %x, want %x, %v", got, want, err)
	}
}

// Errors show where, also in maps, and not more of a key than helps.
func TestErrorsInMaps(t *testing.T) {
	far := time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)
	byText := mustFor[map[string]time.Time](t)
	_, err := byText.Append(nil, &map[string]time.Time{strings.Repeat("long ", 1000): far})
	if err == nil || !strings.HasPrefix(err.Error(), `codec: encoding map[string]time.Time: ["long long long long long long long long "]: the time 2300`) {
		t.Errorf("got %v", err)
	}
	byPair := mustFor[map[pair[int, int]][]*time.Time](t)
	_, err = byPair.Append(nil, &map[pair[int, int]][]*time.Time{{1, 2}: {nil, &far}})
	if err == nil || !strings.Contains(err.Error(), ": [{1 2}][1]: the time 2300") {
		t.Errorf("got %v", err)
	}
}

// A clone whose methods fail panics with their error, as it has no other way to tell.
func TestCloneOfWhatDoesNotMarshal(t *testing.T) {
	type holder struct{ B []*big.Int }
	c := mustFor[holder](t)
	v := holder{[]*big.Int{nil, big.NewInt(5)}}
	if clone := c.Clone(v); clone.B[0] != nil || clone.B[1] == v.B[1] || clone.B[1].Cmp(v.B[1]) != 0 {
		t.Errorf("got %v", clone.B)
	}
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, errBroken) {
			t.Errorf("got %v", err)
		}
	}()
	mustFor[pointing](t).Clone(pointing{n: -1})
}

type pointing struct {
	n int
	p *int
}

func (p pointing) MarshalText() ([]byte, error)  { return nil, broken{p.n}.fail() }
func (p *pointing) UnmarshalText(_ []byte) error { p.p = &p.n; return nil }
