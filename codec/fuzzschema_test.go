package codec

import (
	"reflect"
	"runtime"
	"testing"
)

// FuzzSchema: any text is a schema or an error, and whatever was written with it is read as a type of today, or refused.
func FuzzSchema(f *testing.F) {
	declared := []reflect.Type{reflect.TypeFor[v2](), reflect.TypeFor[tree2](), reflect.TypeFor[map[keyB][]*wide](), reflect.TypeFor[[2]float64](),
		reflect.TypeFor[kitchen](), reflect.TypeFor[*string](), reflect.TypeFor[[]struct{}]()}
	readers := make([]*untyped, len(declared))
	for i, typ := range declared {
		readers[i] = untypedOf(f, typ)
	}
	for i, typ := range []reflect.Type{reflect.TypeFor[v1](), reflect.TypeFor[tree1](), reflect.TypeFor[map[keyA][]v1](), reflect.TypeFor[[2]float32](),
		reflect.TypeFor[kitchen](), reflect.TypeFor[[]byte](), reflect.TypeFor[[3]none]()} {
		u := untypedOf(f, typ)
		b, err := u.append(nil, reflect.New(typ).UnsafePointer())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(u.schema, uint8(i), b)
	}
	f.Add(`{"type":"array","length":2147483647,"items":{"type":"fixed","name":"x","size":2147483647}}`, uint8(3), []byte{4, 2, 2, 0})
	f.Add(`{"type":"record","name":"r","fields":[{"name":"a","type":"r"}]}`, uint8(0), []byte{0})
	f.Add(`{"type":"record","name":"r","fields":[{"name":"V","type":"int"},{"name":"Gone","type":{"type":"array","items":`+
		`{"type":"record","name":"q","fields":[{"name":"a","type":"q"}]}}}]}`, uint8(1), []byte{2, 2, 0, 0})
	f.Add(`{"type":"record","name":"r","fields":[{"name":"V","type":"int"},{"name":"a","type":{"type":"array","items":["null","r"]}}]}`, uint8(1), []byte{2, 2, 2, 2, 0, 0})
	f.Fuzz(func(t *testing.T, schema string, which uint8, b []byte) {
		u := readers[int(which)%len(readers)]
		_, _ = CompareKeys(schema, u.schema)
		w, err := parse(schema)
		if err != nil {
			return
		}
		r := &resolver{made: map[resolved]*program{}}
		p, err := r.program(w, nodeOf(u.shape, map[*shape]*node{}), "")
		if err != nil {
			return
		}
		v := reflect.New(u.shape.typ)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = p.decode(b, 0, v.UnsafePointer(), v.UnsafePointer(), 0)
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(1024*len(b)+4*firstBytes); got > most {
			t.Errorf("%d bytes took %d bytes of memory", len(b), got)
		}
	})
}
