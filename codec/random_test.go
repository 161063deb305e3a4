package codec

import (
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"time"

	"pgregory.net/rapid"
)

// The types and values that property tests draw.

type (
	level   int8
	name    string
	digest  [4]byte
	weekday uint16
)

type tree struct {
	Value    int
	Children []tree
	Parent   *tree
	Named    map[name]tree
}

type list struct {
	Next *list
	V    any `weir:"-"`
}

type catalogue map[string]catalogue

type base struct{ ID uint32 }

type pair[A, B any] struct {
	First  A
	Second B
}

type kitchen struct {
	base
	Embedded pair[level, *pair[int16, []name]]
	Big      big.Int
	Addr     netip.Addr
	Addrs    []netip.Addr
	ByAddr   map[[2]int32]*big.Int
	Levels   [3]pair[big.Int, bool]
	When     time.Time
	Whens    []time.Time
	For      time.Duration
	Digest   digest
	Sets     map[digest]struct{}
	Empty    []struct{}
	Catalog  catalogue
	Tree     *tree
	_        int
	Cache    []int `weir:"-"`
}

// leafTypes are types without parts, or with types of Go's as parts.
var leafTypes = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](),
	reflect.TypeFor[int64](), reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](),
	reflect.TypeFor[uint64](), reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[string](), reflect.TypeFor[[]byte](),
	reflect.TypeFor[level](), reflect.TypeFor[name](), reflect.TypeFor[digest](), reflect.TypeFor[weekday](), reflect.TypeFor[[3]byte](),
	reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](), reflect.TypeFor[netip.Addr](), reflect.TypeFor[big.Int](),
	reflect.TypeFor[tree](), reflect.TypeFor[catalogue](), reflect.TypeFor[struct{}](), reflect.TypeFor[kitchen](),
}

var keyTypes = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](),
	reflect.TypeFor[int64](), reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](),
	reflect.TypeFor[uint64](), reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[string](),
	reflect.TypeFor[level](), reflect.TypeFor[name](), reflect.TypeFor[digest](), reflect.TypeFor[pair[string, string]](),
	reflect.TypeFor[pair[int8, [2]float32]](), reflect.TypeFor[[2]pair[bool, name]](),
}

// anyType draws a type with at most depth types in each other.
func anyType(t *rapid.T, depth int) reflect.Type {
	if depth == 0 {
		return rapid.SampledFrom(leafTypes).Draw(t, "leaf")
	}
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0:
		return reflect.SliceOf(anyType(t, depth-1))
	case 1:
		return reflect.ArrayOf(rapid.IntRange(0, 3).Draw(t, "length"), anyType(t, depth-1))
	case 2:
		return reflect.MapOf(keyType(t, 1), anyType(t, depth-1))
	case 3:
		if elem := anyType(t, depth-1); elem.Kind() != reflect.Pointer {
			return reflect.PointerTo(elem)
		}
	case 4, 5:
		return structOf(t, func() reflect.Type { return anyType(t, depth-1) })
	}
	return anyType(t, 0)
}

// keyType draws a type that can be a key.
func keyType(t *rapid.T, depth int) reflect.Type {
	if depth > 0 {
		switch rapid.IntRange(0, 3).Draw(t, "key kind") {
		case 0:
			return reflect.ArrayOf(rapid.IntRange(1, 3).Draw(t, "length"), keyType(t, depth-1))
		case 1:
			s := structOf(t, func() reflect.Type { return keyType(t, depth-1) })
			if s.NumField() > 0 {
				return s
			}
		}
	}
	return rapid.SampledFrom(keyTypes).Draw(t, "key leaf")
}

func structOf(t *rapid.T, fieldType func() reflect.Type) reflect.Type {
	fields := make([]reflect.StructField, rapid.IntRange(0, 5).Draw(t, "fields"))
	for i := range fields {
		fields[i] = reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: fieldType()}
	}
	return reflect.StructOf(fields)
}

// fill draws a value for v. It draws only values that come back equal: no empty slices, no nil maps, times in UTC.
func fill(t *rapid.T, v reflect.Value, depth int) {
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		if rapid.Bool().Draw(t, "zero time") {
			return
		}
		*p = time.Unix(0, rapid.Int64Min(math.MinInt64+1).Draw(t, "nanos")).UTC()
		return
	case *netip.Addr:
		*p = netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address")))
		return
	case *big.Int:
		p.SetInt64(rapid.Int64().Draw(t, "big"))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		bits := v.Type().Bits()
		v.SetInt(rapid.Int64Range(math.MinInt64>>(64-bits), math.MaxInt64>>(64-bits)).Draw(t, "int"))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(rapid.Uint64Range(0, math.MaxUint64>>(64-v.Type().Bits())).Draw(t, "uint"))
	case reflect.Float32:
		v.SetFloat(float64(rapid.Float32().Draw(t, "float")))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, "float"))
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "string"))
	default:
		fillParts(t, v, depth)
	}
}

func fillParts(t *rapid.T, v reflect.Value, depth int) {
	most := 3
	if depth > 6 {
		most = 0
	}
	switch v.Kind() {
	case reflect.Slice:
		if n := rapid.IntRange(0, most).Draw(t, "count"); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		for i := range v.Len() {
			fill(t, v.Index(i), depth+2)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), depth)
		}
	case reflect.Pointer:
		if most > 0 && rapid.Bool().Draw(t, "pointer") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rapid.IntRange(0, most).Draw(t, "entries") {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key, depth+2)
			fill(t, value, depth+2)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.Name == "_" || f.Tag.Get("weir") == "-" {
				continue
			}
			// What is embedded may have no name that can be set.
			fill(t, reflect.NewAt(f.Type, v.Field(i).Addr().UnsafePointer()).Elem(), depth)
		}
	}
}
