package codec

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/twmb/avro"
)

type item struct {
	Name  string
	Price float64
	Tags  map[string]int32
}

type order struct {
	ID    int64
	Small int8
	Big   uint64
	Count uint
	Raw   []byte
	Hash  [16]byte
	Items []item
	First *item
	When  time.Time
	For   time.Duration
	Three [3]int16
	Next  *order
	Anon  struct{ A, B int32 }
}

func TestRoundTrip(t *testing.T) {
	c, err := For[order]()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(c.Schema())
	v := order{ID: 7, Small: -3, Big: 1 << 63, Items: []item{{Name: "a", Tags: map[string]int32{"x": 1, "y": 2, "b": 3}}}, First: &item{}, When: time.Unix(3, 4).UTC(), Next: &order{}}
	b, err := c.Append(nil, &v)
	if err != nil {
		t.Fatal(err)
	}
	var got order
	rest, err := c.Decode(b, &got)
	if err != nil || len(rest) > 0 {
		t.Fatal(rest, err)
	}
	w := c.Clone(v)
	if !reflect.DeepEqual(w, v) {
		t.Errorf("clone %v", w)
	}
	again, _ := c.Append(nil, &got)
	if !bytes.Equal(b, again) {
		t.Errorf("%x\n%x", b, again)
	}
	if _, err := avro.Parse(c.Schema()); err != nil {
		t.Error(err)
	}
	for i := range b {
		_, err := c.Decode(b[:i], &got)
		if err == nil {
			t.Error(i)
		}
	}
}

func BenchmarkInt(b *testing.B) {
	c, _ := For[int64]()
	var buf []byte
	for i := range int64(b.N) {
		v := i
		buf, _ = c.Append(buf[:0], &v)
	}
}
func TestAllocs(t *testing.T) {
	c, _ := For[int64]()
	k, _ := KeyFor[struct {
		A int
		B string
	}]()
	var buf []byte
	if n := testing.AllocsPerRun(100, func() {
		v := int64(300)
		buf, _ = c.Append(buf[:0], &v)
		c.Decode(buf, &v)
		k.Hash(struct {
			A int
			B string
		}{1, "x"})
	}); n > 0 {
		t.Error(n)
	}
}
