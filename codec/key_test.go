package codec

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Cases B127 and B128 of the catalogue: the hash depends on the value alone, in every process, and is frozen.

type point struct{ X, Y int32 }

type compound struct {
	Flag bool
	N    int8
	U    uint64
	F    float32
	S    string
	T    name
	B    [3]byte
	Ps   [2]pair[string, float64]
	_    int
}

func mustKey[K comparable](t testing.TB) *Key[K] {
	t.Helper()
	k, err := KeyFor[K]()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// vector is one line of the golden file: the type, the value, its canonical bytes, its hash.
func vector[K comparable](t *testing.T, values ...K) (lines []string) {
	k := mustKey[K](t)
	hashes := make([]uint64, len(values))
	k.HashAll(hashes, values)
	for i, v := range values {
		if one := k.Hash(v); one != hashes[i] {
			t.Errorf("%T %v: Hash gives %016x, HashAll %016x", v, v, one, hashes[i])
		}
		shown := strings.ReplaceAll(fmt.Sprintf("%T\t%#v", v, v), "codec.", "")
		lines = append(lines, fmt.Sprintf("%s\t%x\t%016x", shown, k.AppendCanonical(nil, v), hashes[i]))
	}
	return lines
}

// The golden vectors are never rewritten: the state of every job that was ever saved lies where these hashes put it.
func TestHashesAreFrozen(t *testing.T) {
	lines := []string{"type\tvalue\tcanonical bytes\thash"}
	add := func(more []string) { lines = append(lines, more...) }
	add(vector(t, false, true))
	add(vector(t, 0, 1, 2, -1, 42, 1_000_000, math.MaxInt, math.MinInt))
	add(vector[int8](t, 1, -1, math.MinInt8))
	add(vector[int16](t, 1, -1))
	add(vector[int32](t, 1, -1, 42, -2089875627, math.MinInt32, math.MaxInt32))
	add(vector[int64](t, 1, -1, 42))
	add(vector[uint8](t, 1, 255))
	add(vector[uint16](t, 1))
	add(vector[uint32](t, 1, math.MaxUint32))
	add(vector[uint64](t, 1, math.MaxUint64))
	add(vector[uint](t, 1))
	add(vector[level](t, 1, -1))
	add(vector(t, "", "a", "b", "abc", "key-1", "user-42", "é", "日本", "polygenelubricants", strings.Repeat("weir", 70)))
	add(vector[name](t, "abc"))
	add(vector(t, 0.0, math.Copysign(0, -1), 1, -1.5, math.Inf(1), math.MaxFloat64))
	add(vector[float32](t, 0, 1, -1.5))
	add(vector(t, digest{}, digest{1, 2, 3, 4}))
	add(vector(t, [2]int16{1, -1}))
	add(vector(t, [2]string{"a", "bc"}, [2]string{"ab", "c"}))
	add(vector(t, struct{}{}))
	add(vector(t, point{}, point{1, -1}))
	add(vector(t, pair[int64, string]{1, "abc"}))
	add(vector(t, compound{Flag: true, N: -2, U: 3, F: 0.5, S: "s", T: "t", B: [3]byte{1, 2, 3}, Ps: [2]pair[string, float64]{{"x", 1}, {"", 2}}}))
	for _, ns := range []uint64{0, 1, math.MaxUint64} {
		lines = append(lines, fmt.Sprintf("namespace\t%d\t%016x\t%016x", ns, finalise(1), Namespaced(finalise(1), ns)))
	}
	got := strings.Join(lines, "\n") + "\n"
	want, err := os.ReadFile("testdata/keys.tsv")
	if err != nil || got != string(want) {
		t.Errorf("the frozen hash of keys has changed (%v): it now gives\n%s", err, got)
	}
}

// A few values of the published algorithms, so that the frozen ones are those of MurmurHash3 and XXH3 and not of a mistake.
func TestHashesArePublishedOnes(t *testing.T) {
	if got := mustKey[int](t).Hash(1); got != 0xb456bcfc34c2cb2c {
		t.Errorf("fmix64(1) = %x", got)
	}
	text := mustKey[string](t)
	for s, want := range map[string]uint64{"": 0x2d06800538d394c2, "a": 0xe6c632b61e964e1f, "abc": 0x78af5f94892f3950} {
		if got := text.Hash(s); got != want {
			t.Errorf("XXH3-64 of %q is %x, want %x", s, got, want)
		}
	}
}

// An integer hashes by its value, whatever its size.
func TestSizeDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int8().Draw(t, "v")
		hashes := []uint64{
			mustKeyOf[int8](t).Hash(v), mustKeyOf[int16](t).Hash(int16(v)), mustKeyOf[int32](t).Hash(int32(v)),
			mustKeyOf[int64](t).Hash(int64(v)), mustKeyOf[int](t).Hash(int(v)), mustKeyOf[level](t).Hash(level(v)),
			mustKeyOf[uint64](t).Hash(uint64(int64(v))),
		}
		for _, h := range hashes {
			if h != hashes[0] {
				t.Fatalf("%d: %x", v, hashes)
			}
		}
	})
}

func mustKeyOf[K comparable](t *rapid.T) *Key[K] {
	k, err := KeyFor[K]()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Keys are equal exactly when their canonical bytes are, for any type of key.
func TestEqualKeysHaveEqualBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := keyType(t, 2)
		s, err := shapeOf(typ)
		if err != nil {
			t.Fatal(err)
		}
		if err := canonical(typ, s, "", "a key"); err != nil {
			t.Fatal(err)
		}
		p := keyProgramOf(s)
		a, b := reflect.New(typ), reflect.New(typ)
		fillKey(t, a.Elem())
		fillKey(t, b.Elem())
		ab, bb := p.append(nil, a.UnsafePointer()), p.append(nil, b.UnsafePointer())
		if same := a.Elem().Interface() == b.Elem().Interface(); same != bytes.Equal(ab, bb) {
			t.Fatalf("%v: %#v and %#v: == is %v, bytes %x and %x", typ, a.Elem(), b.Elem(), same, ab, bb)
		}
	})
}

// fillKey draws from few values, so that equal ones are common; two zeros among the floats.
func fillKey(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		v.SetFloat(rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, math.Inf(-1)}).Draw(t, "float"))
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"", "a", "aa", "\x01a", "\x00"}).Draw(t, "string"))
	case reflect.Array:
		for i := range v.Len() {
			fillKey(t, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fillKey(t, v.Field(i))
		}
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	default:
		if v.CanInt() {
			v.SetInt(rapid.Int64Range(-2, 2).Draw(t, "int"))
		} else {
			v.SetUint(rapid.Uint64Range(0, 2).Draw(t, "uint"))
		}
	}
}

// FuzzKey is the same invariant with the fuzzer's eyes.
func FuzzKey(f *testing.F) {
	f.Add(true, int8(1), uint64(2), float32(0), "a", "", math.Copysign(0, -1), true, int8(1), uint64(2), float32(0), "a", "", 0.0)
	f.Add(false, int8(-1), uint64(2), float32(1), "a", "bc", 1.0, false, int8(-1), uint64(2), float32(1), "ab", "c", 1.0)
	k := mustKey[compound](f)
	f.Fuzz(func(t *testing.T, f1 bool, n1 int8, u1 uint64, g1 float32, s1, t1 string, h1 float64, f2 bool, n2 int8, u2 uint64, g2 float32, s2, t2 string, h2 float64) {
		a := compound{Flag: f1, N: n1, U: u1, F: g1, S: s1, T: name(t1), Ps: [2]pair[string, float64]{{t1, h1}, {s1, 0}}}
		b := compound{Flag: f2, N: n2, U: u2, F: g2, S: s2, T: name(t2), Ps: [2]pair[string, float64]{{t2, h2}, {s2, 0}}}
		if k.Valid(a) != nil || k.Valid(b) != nil {
			return
		}
		if same := bytes.Equal(k.AppendCanonical(nil, a), k.AppendCanonical(nil, b)); same != (a == b) {
			t.Fatalf("%#v and %#v: == is %v, equal bytes %v", a, b, a == b, same)
		}
		if a == b && k.Hash(a) != k.Hash(b) {
			t.Fatalf("%#v and %#v are equal with different hashes", a, b)
		}
	})
}

func TestNaNIsNoKey(t *testing.T) {
	nan := math.NaN()
	k := mustKey[compound](t)
	if k.AlwaysValid() {
		t.Error("a key with floats is always valid")
	}
	err := k.Valid(compound{Ps: [2]pair[string, float64]{1: {Second: nan}}})
	if want := "codec: key codec.compound: Ps[1].Second: NaN is not equal to itself and cannot be a key: filter such records out before keying"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := k.Valid(compound{F: float32(nan)}); err == nil {
		t.Error("a NaN of 32 bits is valid")
	}
	if err := mustKey[float64](t).Valid(nan); err == nil {
		t.Error("NaN is valid")
	}
	if text := mustKey[string](t); !text.AlwaysValid() || text.Valid("x") != nil {
		t.Error("a string may be invalid")
	}
}

// Entries of a namespace stay in the key group of their key, and the namespace spreads them in it.
func TestNamespacedStaysInTheGroup(t *testing.T) {
	seen := make(map[uint64]bool)
	for ns := range uint64(10_000) {
		h := Namespaced(0xabcd_ef01_2345_6789, ns)
		if h>>49 != 0xabcd_ef01_2345_6789>>49 {
			t.Fatalf("namespace %d leaves the group: %x", ns, h)
		}
		seen[h] = true
	}
	if len(seen) != 10_000 {
		t.Errorf("%d hashes for 10,000 namespaces", len(seen))
	}
}

func TestHashingDoesNotAllocate(t *testing.T) {
	ints, texts, compounds, digests := mustKey[int32](t), mustKey[string](t), mustKey[compound](t), mustKey[digest](t)
	dst := make([]uint64, 2)
	keys := []compound{{S: "abc"}, {N: 1}}
	sum := uint64(0)
	if n := testing.AllocsPerRun(100, func() {
		sum += ints.Hash(1) + texts.Hash("abc") + compounds.Hash(compound{S: "x"}) + digests.Hash(digest{1})
		compounds.HashAll(dst, keys)
		if compounds.Valid(keys[0]) != nil {
			t.Error("not valid")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
