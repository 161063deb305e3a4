package codec_test

import (
	"testing"

	"github.com/twmb/avro"
	"github.com/weirstream/weir/codec"
)

type bid struct {
	Auction int64
	Bidder  int64
	Price   int64
	At      int64
	Open    bool
}

type sale struct {
	ID     int64
	User   string
	Amount float64
	Count  int32
	Done   bool
}

type basket struct {
	ID    int64
	Items []sale
	Tags  []string
}

var (
	aBid    = bid{Auction: 1007, Bidder: 20031, Price: 99_95, At: 1_700_000_000_000_000_000, Open: true}
	aSale   = sale{ID: 42, User: "user-42", Amount: 9.95, Count: 3, Done: true}
	aBasket = basket{ID: 7, Items: []sale{aSale, aSale, aSale, aSale}, Tags: []string{"new", "gift"}}
)

// BenchmarkCodec sets ours beside twmb/avro on the same schema.
func BenchmarkCodec(b *testing.B) {
	b.Run("int64", func(b *testing.B) { benchmarkCodec(b, int64(1_700_000_000)) })
	b.Run("bid", func(b *testing.B) { benchmarkCodec(b, aBid) })
	b.Run("sale", func(b *testing.B) { benchmarkCodec(b, aSale) })
	b.Run("basket", func(b *testing.B) { benchmarkCodec(b, aBasket) })
}

func benchmarkCodec[T any](b *testing.B, v T) {
	c, err := codec.For[T]()
	if err != nil {
		b.Fatal(err)
	}
	library, err := avro.Parse(c.Schema())
	if err != nil {
		b.Fatal(err)
	}
	data, err := c.Append(nil, &v)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("append/weir", func(b *testing.B) {
		b.ReportAllocs()
		buf := make([]byte, 0, 2*len(data))
		for b.Loop() {
			buf, _ = c.Append(buf[:0], &v)
		}
	})
	b.Run("append/twmb", func(b *testing.B) {
		b.ReportAllocs()
		buf := make([]byte, 0, 2*len(data))
		for b.Loop() {
			buf, _ = library.AppendEncode(buf[:0], &v)
		}
	})
	b.Run("decode/weir", func(b *testing.B) {
		b.ReportAllocs()
		var got T
		for b.Loop() {
			c.Decode(data, &got)
		}
	})
	b.Run("decode/twmb", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var got T
			library.Decode(data, &got)
		}
	})
}

// BenchmarkHashAll is the cost of a key's hash in a batch.
func BenchmarkHashAll(b *testing.B) {
	b.Run("int64", func(b *testing.B) { benchmarkHashAll(b, func(i int) int64 { return int64(i) }) })
	b.Run("int16", func(b *testing.B) { benchmarkHashAll(b, func(i int) int16 { return int16(i) }) })
	b.Run("string", func(b *testing.B) {
		benchmarkHashAll(b, func(i int) string { return "user-" + string(rune('a'+i%26)) })
	})
	type pair struct {
		A int64
		B string
	}
	b.Run("struct", func(b *testing.B) { benchmarkHashAll(b, func(i int) pair { return pair{int64(i), "user"} }) })
}

func benchmarkHashAll[K comparable](b *testing.B, key func(int) K) {
	k, err := codec.KeyFor[K]()
	if err != nil {
		b.Fatal(err)
	}
	keys, hashes := make([]K, 128), make([]uint64, 128)
	for i := range keys {
		keys[i] = key(i)
	}
	b.ReportAllocs()
	for b.Loop() {
		k.HashAll(hashes, keys)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/128, "ns/key")
}
