package weir_test

import (
	"testing"

	. "github.com/weirstream/weir"
)

// tally is a record that refers to something.
type tally struct{ N map[string]int }

// Reduce's function may change the older tally in place: neither what was emitted before nor the records that came in, which
// another operator reads too, change with it.
func TestReduceInPlace(t *testing.T) {
	const n = 1000
	var sums, ones []int
	env := NewTestEnv()
	tallies := env.From(Generate(n, func(int64) tally { return tally{map[string]int{"n": 1}} })).UID("in")
	read := func(v tally) int { return v.N["n"] }
	tallies.Map(read).NewChain().To(Collect(&ones)).UID("ones")
	tallies.KeyBy(func(tally) int { return 0 }).
		Reduce(func(a, b tally) tally { a.N["n"] += b.N["n"]; return a }).UID("sum").
		Map(read).NewChain().To(Collect(&sums)).UID("sums")
	if err := env.Execute(t.Context(), t.Name()); err != nil {
		t.Fatal(err)
	}
	if len(sums) != n || len(ones) != n {
		t.Fatalf("%d sums, %d ones", len(sums), len(ones))
	}
	for i := range n {
		if sums[i] != i+1 || ones[i] != 1 {
			t.Fatalf("record %d: sum %d, one %d", i, sums[i], ones[i])
		}
	}
}
