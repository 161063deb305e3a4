package snapshot

import (
	"fmt"
	"testing"

	"github.com/weirstream/weir/internal/base"
)

// largest is an operator at a large parallelism: state by key, and three elements of a list, on each subtask.
func largest(parallelism int) *Operator {
	o := &Operator{UID: "op", Parallelism: parallelism, Schemas: []StateSchema{{Name: "v", Key: `"int"`}}}
	for i := range parallelism {
		o.Subtasks = append(o.Subtasks, Subtask{Index: i, Watermark: base.EventTime(i),
			Keyed: []KeyedHandle{{Range: base.RangeOf(i, parallelism), Handle: file("k", i)}}, Lists: []ListHandle{list("split", Split, i, 3)}})
	}
	return o
}

// TestRedistributionAtLargeParallelisms: as invariant 4 says at the largest too.
func TestRedistributionAtLargeParallelisms(t *testing.T) {
	for _, c := range [][2]int{{base.KeyGroups, 1}, {base.KeyGroups, 3}, {1, base.KeyGroups}, {7, base.KeyGroups}, {1000, 1001}, {base.KeyGroups, base.KeyGroups - 1}} {
		old, parallelism := c[0], c[1]
		t.Run(fmt.Sprintf("%d to %d", old, parallelism), func(t *testing.T) {
			o := largest(old)
			restored := mustAssign(t, o, parallelism)
			checkKeyed(t, o, restored)
			checkElements(t, o, restored)
		})
	}
}
