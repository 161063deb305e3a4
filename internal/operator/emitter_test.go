package operator

import (
	"testing"

	"github.com/weirstream/weir/internal/base"
)

// TestPass: runs of any length come out in their order, among what is emitted, with their timestamps.
func TestPass(t *testing.T) {
	b := &Batch[int64]{}
	for i := range int64(300) {
		b.Values, b.Times = append(b.Values, i), append(b.Times, base.EventTime(1000+i))
	}
	var got []int64
	lent := 0
	e := &Emitter[int64]{}
	e.Init()
	e.To(pushing(func(p *Batch[int64]) error {
		if &p.Values[0] == &b.Values[p.Values[0]] {
			lent++
		}
		for i, v := range p.Values {
			if want := base.EventTime(1000 + v); p.Times[i] != want {
				t.Errorf("%d has the timestamp %d", v, p.Times[i])
			}
		}
		got = append(got, p.Values...)
		return nil
	}))
	from := 0
	for _, n := range []int{1, lendLeast - 1, lendLeast, 0, 2, 200, 3, 10, 0} {
		e.Pass(b, from, from+n)
		from += n
		e.EmitAt(int64(from), base.EventTime(1000+from))
		from++
	}
	if err := e.Flush(); err != nil {
		t.Error(err)
	}
	if lent != 2 || e.Sent() != from || len(got) != from {
		t.Errorf("%d runs were lent, %d records sent, %d arrived of %d", lent, e.Sent(), len(got), from)
	}
	for i, v := range got {
		if v != int64(i) {
			t.Fatalf("record %d is %d", i, v)
		}
	}
}
