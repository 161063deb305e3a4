package weir_test

import (
	"testing"

	. "github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
)

// A job without checkpoints commits at its end. What a savepoint had prepared before, which never commits by itself, is
// committed then too: once it kept everything behind it from being committed.
func TestASavepointOfAJobWithoutCheckpointsLosesNothing(t *testing.T) {
	inLab(t, func(l *lab) {
		var got []int64
		in := newTape[int64](1)
		env := NewTestEnv()
		env.Checkpoints().Savepoints = "/savepoints"
		env.From(in).UID("in").To(Collect(&got)).UID("out")
		r := l.start(env)
		in.write(0, 1, 2)
		r.settle()
		r.savepoint(checkpoint.Savepoint)
		in.write(0, 3)
		in.end()
		r.finish()
		if len(got) != 3 {
			t.Errorf("got %v, want 1, 2 and 3", got)
		}
	})
}
