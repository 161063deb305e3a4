package weir_test

import (
	"strings"
	"testing"

	. "github.com/weirstream/weir"
)

// mute is refused for its state, which has no name.
type mute struct {
	S Value[int64]
	L Side[string] `side:"late"`
}

func (*mute) Process(_ *KeyedContext[int64], _ int64, _ Out[int64]) error { return nil }

// What is wrong with a side output is said once, and not of an operator whose function was refused: nothing is known of it.
func TestSideOutputMessages(t *testing.T) {
	for name, c := range map[string]struct {
		build     func(*Env)
		want, not string
	}{
		"refused": {func(env *Env) {
			keyed := numbersOf(env).KeyBy(func(v int64) int64 { return v })
			keyed.Process(&mute{}).UID("m").SideOutput[string]("late").To(Discard[string]())
		}, "has no name", "side output"},
		"another type": {func(env *Env) {
			numbersOf(env).Process(&P{}).SideOutput[string]("late").To(Discard[string]())
			numbersOf(env).Process(&chatty{}).SideOutput[int64]("late").To(Discard[int64]())
		}, `is of string, but asked for as one of int64 (at `, `+"`},
	} {
		t.Run(name, func(t *testing.T) {
			env := NewTestEnv()
			c.build(env)
			err := env.Execute(t.Context(), "side")
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), c.not) {
				t.Errorf("want %q and not %q in: %v", c.want, c.not, err)
			}
		})
	}
}

type chatty struct {
	L Side[string] `side:"late"`
}

func (*chatty) Process(_ *Context, _ int64, _ Out[int64]) error { return nil }
