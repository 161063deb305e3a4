package codec

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The words of eight bytes must do what the plain loop does, for every length and every neighbourhood.
func TestLongsAreThoseOfTheLoop(t *testing.T) {
	check := func(t rapid.TB, v int64, before, after []byte) {
		want := binary.AppendVarint(bytes.Clone(before), v)
		got := appendLong(bytes.Clone(before), v)
		if !bytes.Equal(got, want) {
			t.Fatalf("%d: got %x, want %x", v, got, want)
		}
		back, next, err := long(append(got, after...), len(before))
		if back != v || next != len(want) || err != nil {
			t.Fatalf("%d: read %d, to %d of %d, %v", v, back, next, len(want), err)
		}
		for cut := len(before); cut < len(want); cut++ {
			if _, _, err := long(got[:cut], len(before)); err != errShort {
				t.Fatalf("%d without its end: %v", v, err)
			}
		}
	}
	for shift := range 64 {
		for _, d := range []int64{-1, 0, 1} {
			check(t, 1<<shift+d, nil, nil)
			check(t, -(1<<shift + d), []byte{0xff}, []byte{0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0})
		}
	}
	check(t, math.MaxInt64, nil, nil)
	check(t, math.MinInt64, nil, nil)
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfN(rapid.Byte(), 0, 12)
		check(t, rapid.Int64().Draw(t, "v"), some.Draw(t, "before"), some.Draw(t, "after"))
	})
}

func TestAnyBytesAreReadAsTheLoopDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 0x7f, 0x80, 0x81, 0xff}), 0, 14).Draw(t, "src")
		v, next, err := long(src, 0)
		want, size := binary.Varint(src)
		if size <= 0 {
			if err == nil {
				t.Fatalf("%x: read %d where the loop reads nothing", src, v)
			}
			return
		}
		if v != want || next != size || err != nil {
			t.Fatalf("%x: got %d to %d (%v), want %d to %d", src, v, next, err, want, size)
		}
	})
}
