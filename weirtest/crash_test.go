package weirtest_test

import (
	"fmt"
	"testing"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/weirtest"
)

// totals is a job that counts and sums by key.
type totals struct {
	Count weir.Value[int64] `state:"count"`
	Sum   weir.Value[int64] `state:"sum"`
}

func (c *totals) Process(ctx *weir.KeyedContext[int64], v int64, out weir.Out[string]) error {
	c.Count.Set(c.Count.Get() + 1)
	c.Sum.Set(c.Sum.Get() + v)
	out.Emit(fmt.Sprint(ctx.Key(), " has ", c.Count.Get()))
	return nil
}

// TestCrash: a job that is right comes through.
func TestCrash(t *testing.T) {
	weirtest.Crash{
		Job: func(env *weir.Env, w *weirtest.World) {
			env.From(weir.Generate(300, func(i int64) int64 { return i })).UID("integers").
				KeyBy(func(v int64) int64 { return v % 7 }).
				Process(&totals{}).UID("totals").
				To(w.Sink[string]("out")).UID("out")
		},
		Seeds: 20,
	}.Run(t)
}
