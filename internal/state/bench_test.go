package state

import (
	"fmt"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/base"
)

// Benchmarks compare within one run, for machines are noisy:
//
//	go test ./internal/state -run xxx -bench Count -benchtime 3000000x

// spread is a sequence of pseudo-random numbers below n (splitmix64).
func spread(i, n uint64) int64 {
	x := i + 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return int64((x ^ x>>31) % n)
}

var sizes = []uint64{1_000, 100_000, 1_000_000}

// counter is a keyed count as an operator runs it: slices of records, hashed together, with or without the touching pass.
type counter struct {
	keyed *Keyed[int64]
	count Value[int64]
	keys  [TouchMost]int64
	hash  [TouchMost]uint64
	sum   int64
}

func newCounter(t testing.TB) *counter {
	c := &counter{}
	var now int64
	c.keyed = newKeyed[int64](t, allGroups, &now, map[string]binder{"count": &c.count}, Spec{Name: "count"})
	return c
}

func (c *counter) run(from, n, keys uint64, touch bool) {
	for ; n > 0; n -= min(n, TouchMost) {
		ks, hs := c.keys[:min(n, TouchMost)], c.hash[:min(n, TouchMost)]
		for j := range ks {
			ks[j] = spread(from, keys)
			from++
		}
		c.keyed.codec.HashAll(hs, ks)
		if touch {
			c.keyed.Touch(hs)
		}
		for j, k := range ks {
			c.keyed.Seek(hs[j], k)
			v := c.count.Get() + 1
			c.count.Set(v)
			c.sum += v
			c.keyed.Settle()
		}
	}
	c.keyed.Leave()
}

func BenchmarkCount(b *testing.B) {
	for _, keys := range sizes {
		b.Run(fmt.Sprintf("keys=%d/map", keys), func(b *testing.B) {
			m := map[int64]int64{}
			for i := range int64(keys) {
				m[i] = 1
			}
			var sum int64
			b.ResetTimer()
			for i := range uint64(b.N) {
				k := spread(i, keys)
				v := m[k] + 1
				m[k] = v
				sum += v
			}
		})
		for _, touch := range []bool{false, true} {
			b.Run(fmt.Sprintf("keys=%d/keyed-touch=%v", keys, touch), func(b *testing.B) {
				c := newCounter(b)
				for i := range int64(keys) {
					c.keyed.Seek(c.keyed.Hash(i), i)
					c.count.Set(1)
				}
				b.ReportAllocs()
				b.ResetTimer()
				c.run(0, uint64(b.N), keys, touch)
			})
		}
	}
}

func BenchmarkWriteTo(b *testing.B) {
	c := newCounter(b)
	const n = 1_000_000
	c.run(0, n, 1<<62, false)
	s := c.keyed.Snapshot(0, 0)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.WriteTo(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/entry")
}

func BenchmarkRestore(b *testing.B) {
	c := newCounter(b)
	const n = 1_000_000
	c.run(0, n, 1<<62, false)
	file := fileOf(b, c.keyed.Snapshot(0, 0))
	b.ReportAllocs()
	for b.Loop() {
		restoreFrom(b, newCounter(b).keyed, file)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/entry")
}

// BenchmarkSnapshot is the synchronous part, after slices of writes that let it copy again.
func BenchmarkSnapshot(b *testing.B) {
	for _, keys := range []uint64{1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			c := newCounter(b)
			c.run(0, keys, 1<<62, false)
			took := make([]time.Duration, 0, 1<<16)
			b.ResetTimer()
			for b.Loop() {
				at := time.Now()
				s := c.keyed.Snapshot(0, 0)
				took = append(took, time.Since(at))
				s.Release()
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
		})
	}
}

// BenchmarkTimerRestore restores timers and pops the first, which makes the queue.
func BenchmarkTimerRestore(b *testing.B) {
	k, ts := newTimers(b, allGroups)
	const n = 10_000_000
	for i := range uint64(n) {
		seek(k, int64(i%1_000_000))
		ts.Register(base.EventTime(spread(i, 1<<40)))
	}
	file := fileOf(b, k.Snapshot(0, 0))
	var reading, queueing time.Duration
	for b.Loop() {
		k, ts := newTimers(b, allGroups)
		at := time.Now()
		restoreFrom(b, k, file)
		reading += time.Since(at)
		at = time.Now()
		ts.Pop(math.MaxInt64)
		queueing += time.Since(at)
	}
	b.ReportMetric(reading.Seconds()/float64(b.N), "s-reading")
	b.ReportMetric(queueing.Seconds()/float64(b.N), "s-queueing")
}
