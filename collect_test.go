package weir

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/weirstream/weir/codec"
)

// Only what was committed is seen, once, however often a commit comes again.
func TestCollect(t *testing.T) {
	var got []int
	c := Collect(&got).(committing[int, collected[int]]).TwoPhase
	w, _ := c.Writer(writerTask{0, 1})
	write := func(vs ...int) (cs []*Commit[collected[int]]) {
		for _, v := range vs {
			w.Write(v, time.Time{})
		}
		parts, _, err := c.Prepare(w, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			cs = append(cs, &Commit[collected[int]]{Value: p})
		}
		return cs
	}
	first, second := write(1, 2), write(3)
	if len(got) != 0 {
		t.Errorf("%v before the commit", got)
	}
	if empty := write(); empty != nil {
		t.Errorf("nothing written, %d committables", len(empty))
	}
	for range 2 {
		c.Commit(context.Background(), append(first, second...))
	}
	w, _ = c.Writer(writerTask{0, 1}) // the restart's
	c.Commit(context.Background(), first)
	c.Commit(context.Background(), write(4))
	if !slices.Equal(got, []int{1, 2, 3, 4}) {
		t.Errorf("collected %v", got)
	}
}

func TestCollectedIsEncodable(t *testing.T) {
	if _, err := codec.For[collected[string]](); err != nil {
		t.Error(err)
	}
}
