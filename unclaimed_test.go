package weir_test

import (
	"testing"

	. "github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
)

// rememberer has state by key, lister of the subtask.
type rememberer struct {
	K
	Last Value[int64] `state:"last"`
}

func (f *rememberer) Process(_ *KeyedContext[int64], v int64, _ Out[int64]) error {
	f.Last.Set(v)
	return nil
}

// lister has state of the subtask.
type lister struct {
	Seen OperatorList[int64] `state:"seen"`
}

func (f *lister) Process(_ *Context, v int64, _ Out[int64]) error {
	f.Seen.Add(v)
	return nil
}

// waker has nothing but timers.
type waker struct{ K }

func (waker) Process(ctx *KeyedContext[int64], _ int64, _ Out[int64]) error {
	ctx.EventTimer(EndOfTime())
	return nil
}

func (waker) OnTimer(*KeyedContext[int64], Timer, Out[int64]) error { return nil }

// State under a uid that is still there, but belongs to an operator that cannot take it, is refused like state under one that
// is gone: in silence it would be lost with the next checkpoint.
func TestStateThatItsOperatorDoesNotTake(t *testing.T) {
	byKey := func(v int64) int64 { return v }
	withValue := func(s Stream[int64]) { s.KeyBy(byKey).Process(&rememberer{}).UID("op").To(Discard[int64]()) }
	withList := func(s Stream[int64]) { s.Process(&lister{}).UID("op").To(Discard[int64]()) }
	withTimers := func(s Stream[int64]) { s.KeyBy(byKey).Process(waker{}).UID("op").To(Discard[int64]()) }
	plain := func(s Stream[int64]) { s.Map(func(v int64) int64 { return v }).UID("op").To(Discard[int64]()) }
	keyless := func(s Stream[int64]) { s.KeyBy(byKey).Process(K{}).UID("op").To(Discard[int64]()) }
	twoPhase := func(s Stream[int64]) { s.To(Collect(new([]int64))).UID("op") }
	onePhase := func(s Stream[int64]) { s.To(Discard[int64]()).UID("op") }
	for name, c := range map[string]struct{ before, after func(Stream[int64]) }{
		"keyed, then a map":              {withValue, plain},
		"keyed, then state of a subtask": {withValue, withList},
		"keyed, then a two-phase sink":   {withValue, twoPhase},
		"timers, then none":              {withTimers, keyless},
		"a list, then a map":             {withList, plain},
		"two-phase, then a plain sink":   {twoPhase, onePhase},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				in := newTape[int64](1)
				env := l.env(1)
				c.before(env.From(in).UID("in"))
				r := l.start(env)
				in.write(0, 1, 2, 3)
				r.settle()
				from := r.savepoint(checkpoint.Savepoint)
				r.kill()

				again := func() *Env {
					in := newTape[int64](1)
					in.end()
					env := l.resumed(1, from)
					c.after(env.From(in).UID("in"))
					return env
				}
				l.fails(again(), `"op"`, "non-restored state")
				l.start(again().Set("execution.state-recovery.ignore-unclaimed-state", true)).finish()
			})
		})
	}
}
