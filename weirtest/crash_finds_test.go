package weirtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirstream/weir"
)

// forgetful counts in a field that is no state.
type forgetful struct{ counts map[int64]int64 }

func (f *forgetful) Open(weir.OpenContext) error { f.counts = map[int64]int64{}; return nil }
func (f *forgetful) Process(ctx *weir.KeyedContext[int64], v int64, out weir.Out[string]) error {
	f.counts[ctx.Key()]++
	out.Emit(fmt.Sprint(ctx.Key(), " has ", f.counts[ctx.Key()]))
	return nil
}

// TestCrashFinds: jobs that are wrong do not come through, and what is said of them can be read.
func TestCrashFinds(t *testing.T) {
	integers := func(env *weir.Env) weir.KeyedStream[int64, int64] {
		return env.From(weir.Generate(100, func(i int64) int64 { return i })).UID("integers").KeyBy(func(v int64) int64 { return v % 3 })
	}
	for name, c := range map[string]struct {
		crash Crash
		wants []string
	}{
		"no state": {Crash{Job: func(env *weir.Env, w *World) {
			integers(env).Process(&forgetful{}).UID("forgetful").To(w.Sink[string]("out")).UID("out")
		}}, []string{`sink "out":`, `"0 has 1"`, "The plan:", "life 1 at parallelism 1: ", "life 2 at parallelism 1, from ", "the job FINISHED",
			"Repeat it with: go test -run '^TestCrashFinds$' -weirtest.seed="}},
		"not deterministic": {Crash{Job: func(env *weir.Env, w *World) {
			integers(env).Process(weir.Keyed(func(ctx *weir.KeyedContext[int64], v int64, out weir.Out[string]) error {
				_, of := ctx.Subtask()
				out.Emit(fmt.Sprint("one of ", of))
				return nil
			})).UID("of").To(w.Sink[string]("out")).UID("out")
		}}, []string{"the job commits one thing at parallelism 1 and another at 2"}},
		"changed": {Crash{Job: func(env *weir.Env, w *World) {
			all := make([]int64, 1)
			integers(env).Process(weir.Keyed(func(_ *weir.KeyedContext[int64], v int64, out weir.Out[[]int64]) error {
				all[0] = v
				out.Emit(all)
				return nil
			})).UID("changing").To(w.Sink[[]int64]("out")).UID("out")
		}, Parallelism: []int{1}}, []string{`operator "KeyedProcess" (uid "changing"): a record was changed after it was emitted`}},
		"writes elsewhere": {Crash{Job: func(env *weir.Env, w *World) {
			integers(env).Process(&forgetful{}).UID("forgetful").To(weir.Discard[string]()).UID("out")
		}}, []string{"the job commits nothing to the sinks of its World"}},
		"refused by the oracle": {Crash{Job: func(env *weir.Env, w *World) {
			integers(env).Process(&forgetful{}).UID("forgetful").To(w.Sink[string]("out")).UID("out")
		}, Check: func(w *World) error {
			if n := len(w.Committed[string]("out")); n != 101 {
				return fmt.Errorf("there are %d lines", n)
			}
			return nil
		}}, []string{"there are 100 lines"}},
	} {
		t.Run(name, func(t *testing.T) {
			said := fails(t, c.crash)
			for _, want := range c.wants {
				if !strings.Contains(said, want) {
					t.Errorf("said\n%s\nwhich has no %q", said, want)
				}
			}
		})
	}
}

// fails is what is said of a job that does not come through.
func fails(t *testing.T, c Crash) string {
	t.Helper()
	r := c.defaults()
	if err := r.refer(t); err != nil {
		return err.Error()
	}
	for seed := range uint64(10) {
		if report := r.try(t, seed); report != "" {
			return report
		}
	}
	return ""
}
