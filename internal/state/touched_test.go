package state

import (
	"math/rand/v2"
	"testing"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
)

// TestSeekTouched works as an operator does on a table beyond the cache: a slice is touched, then its keys are sought through
// the pages that were found, while the slice itself inserts, clears, splits, merges, and copies what live snapshots read.
func TestSeekTouched(t *testing.T) {
	keys, err := codec.KeyFor[int64]()
	if err != nil {
		t.Fatal(err)
	}
	k := NewKeyed(keys, base.RangeOf(0, 1))
	var count Value[int64]
	if err := count.Bind(k, Spec{Name: "count"}); err != nil {
		t.Fatal(err)
	}
	k.Open(func() int64 { return 0 })
	rng := rand.New(rand.NewPCG(1, 2))
	model := map[int64]int64{}
	var live []*KeyedSnapshot
	for round := range 3000 {
		distinct := int64(200 + 20_000*(round/500%2)) // grows, then shrinks
		clears := round/500%2 == 0
		ks, hs := make([]int64, TouchMost), make([]uint64, TouchMost)
		for i := range ks {
			ks[i] = rng.Int64N(distinct)
			if clears {
				ks[i] = rng.Int64N(20_200)
			}
			hs[i] = k.Hash(ks[i])
		}
		k.touch(hs)
		for i, key := range ks {
			k.SeekTouched(i, hs[i], key)
			if got := count.Get(); got != model[key] {
				t.Fatalf("round %d: key %d has %d, want %d", round, key, got, model[key])
			}
			if clears && rng.IntN(4) > 0 {
				count.Clear()
				delete(model, key)
			} else {
				model[key]++
				count.Set(model[key])
			}
			k.Settle()
		}
		k.Leave()
		if rng.IntN(10) == 0 {
			live = append(live, k.Snapshot(0, 0))
		}
		if len(live) > 2 {
			live[0].Release()
			live = live[1:]
		}
	}
	if k.stats.copies == 0 || k.stats.splits == 0 || k.stats.merges == 0 {
		t.Errorf("the rare things did not happen: %+v", k.stats)
	}
	if k.Len() != len(model) {
		t.Errorf("%d keys, want %d", k.Len(), len(model))
	}
}
