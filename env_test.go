package weir_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/cluster"
)

// The mode that a program passes to EnableCheckpointing wins over the file's, whichever it is: a job that asks for exactly
// once never gets less.
func TestTheModeOfTheProgramWinsOverTheFile(t *testing.T) {
	dir := t.TempDir()
	file := "execution.checkpointing.mode: AT_LEAST_ONCE\n"
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for name, c := range map[string]struct {
		set         func(*Env)
		atLeastOnce bool
	}{
		"exactly once": {func(e *Env) { e.EnableCheckpointing(time.Second, ExactlyOnce) }, false},
		"changed":      {func(e *Env) { e.EnableCheckpointing(time.Second, ExactlyOnce).Mode = AtLeastOnce }, true},
		"nothing":      {func(e *Env) { e.Checkpoints().Interval = time.Second }, true},
	} {
		env := NewTestEnv()
		c.set(env)
		env.From(FromSlice([]int{1})).UID("in").To(Discard[int]())
		var got bool
		ctx := cluster.WithTuning(t.Context(), func(j *cluster.Job) { got = j.Config.Checkpointing().AtLeastOnce })
		if err := env.Execute(ctx, "mode"); err != nil {
			t.Fatal(err)
		}
		if got != c.atLeastOnce {
			t.Errorf("%s: at least once: %v", name, got)
		}
	}
}

// since has a field of a type of plain values, though with a pointer inside.
type since struct {
	P
	Start time.Time
}

// A time.Time in a function is a value: that it points to its time zone is nobody's business.
func TestAFunctionMayHaveATime(t *testing.T) {
	env := NewTestEnv()
	plainWith(&since{Start: time.Now()})(env)
	if err := env.Execute(t.Context(), "since"); err != nil {
		t.Error(err)
	}
}

// Two hooks of one id could not both get their state back; every checkpoint would fail.
func TestHooksAreToldApart(t *testing.T) {
	inLab(t, func(l *lab) {
		env := l.env(1).Hook(&counter{N: &notes{}}).Hook(&counter{N: &notes{}}).Hook(nil)
		numbersOf(env).To(Discard[int64]())
		l.fails(env, `a hook of the ID "counter"`, "env_test.go:", "a nil hook")
	})
}

// lagger is a tape whose enumerator says that it works off a backlog.
type lagger struct{ *tape[int64] }

func (s lagger) Enumerator(ctx EnumeratorContext[Strip], state []byte) (Enumerator[Strip], error) {
	e, err := s.tape.Enumerator(ctx, state)
	ctx.Backlog(true)
	return e, err
}

// While a source works off a backlog, checkpoints come at their other interval.
func TestABacklogPutsCheckpointsOff(t *testing.T) {
	inLab(t, func(l *lab) {
		env := l.env(1).Set("execution.checkpointing.interval", "1s").Set("execution.checkpointing.interval-during-backlog", "1h")
		env.From(lagger{newTape[int64](1)}).UID("tape").To(Discard[int64]())
		r := l.start(env)
		r.pass(time.Minute)
		if next := r.checkpoint(); next > 2 { // one may have come before the backlog was known
			t.Errorf("there were %d checkpoints in a minute", next-1)
		}
	})
}
