package weir_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/storage"
)

// told notes what the engine tells a function.
type told struct {
	N *notes `weir:"shared"`
}

func (f *told) Open(ctx OpenContext) error {
	f.N.add("open, attempt %d, restored %v", ctx.Attempt, ctx.Restored)
	return nil
}
func (f *told) Process(_ *Context, v int64, out Out[int64]) error { out.Emit(v); return nil }
func (f *told) CheckpointCompleted(id int64) error                { f.N.add("completed %d", id); return nil }
func (f *told) CheckpointAborted(id int64) error                  { f.N.add("aborted %d", id); return nil }
func (f *told) EndOfInput(out Out[int64]) error                   { f.N.add("end of input"); out.Emit(-1); return nil }
func (f *told) Close() error                                      { f.N.add("close"); return nil }

// TestAFunctionIsTold of checkpoints that complete and that do not, and of the end.
func TestAFunctionIsTold(t *testing.T) {
	inLab(t, func(l *lab) {
		full := &storage.Rule{Op: storage.OpLink, Path: "_metadata", Skip: 1, Count: 1, Err: syscall.ENOSPC}
		l.disk = storage.Faulty(l.disk, full)
		source, n := newTape[int64](1), &notes{}
		env := l.env(1)
		env.Checkpoints().TolerableFailures = 3
		env.From(source).UID("tape").Process(&told{N: n}).UID("told").To(note[int64](n))
		r := l.start(env)
		source.write(0, 1)
		r.settle()
		r.checkpoint()
		if _, err := r.handle.TriggerCheckpoint(r.Context(), false); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got %v", err)
		}
		r.settle()
		r.checkpoint()
		expect(t, n.take(), "open, attempt 0, restored false", "1", "completed 1", "aborted 2", "completed 3")
		source.end()
		r.finish()
		expect(t, n.take(), "end of input", "-1", "completed 4", "close")
	})
}

// TestEndOfInputIsOnce: restored from a checkpoint that was taken after its end, an operator does not end again.
func TestEndOfInputIsOnce(t *testing.T) {
	inLab(t, func(l *lab) {
		ending, going, n := newTape[int64](1), newTape[int64](1), &notes{}
		run := func(env *Env) *running {
			env.From(ending).UID("ending").Process(&told{N: n}).UID("told").
				Union(env.From(going).UID("going")).Map(func(v int64) int64 { return v }).UID("map").To(note[int64](n)).UID("note")
			return l.start(env)
		}
		r := run(l.env(1))
		ending.write(0, 1)
		ending.end()
		r.settle()
		expect(t, n.takeSorted(), "-1", "1", "end of input", "open, attempt 0, restored false")
		r.checkpoint()
		r.settle()
		expect(t, n.take(), "completed 1", "close")
		r.checkpoint() // the ending task has finished
		going.write(0, 2)
		r.settle()
		r.kill()
		expect(t, n.take(), "2")
		r = run(l.resumed(1, "latest"))
		expect(t, n.takeSorted(), "2", "open, attempt 0, restored true")
		going.end()
		r.finish()
		expect(t, n.take(), "completed 3", "close")
	})
}

// TestADrainedSavepointIsAnEnd: restored, the job commits what is left and is FINISHED.
func TestADrainedSavepointIsAnEnd(t *testing.T) {
	inLab(t, func(l *lab) {
		source, n := newTape[int64](1), &notes{}
		sink := &ledgerSink{n: n}
		run := func(env *Env) *running {
			env.From(source).UID("tape").Process(&told{N: n}).UID("told").To(Committing[int64, string](sink)).UID("ledger")
			return l.start(env)
		}
		r := run(l.env(1))
		source.write(0, 1)
		r.settle()
		at := r.savepoint(checkpoint.Drain)
		expect(t, n.take(), "open, attempt 0, restored false", "end of input", "prepare 1: [[1 -1]]", "completed 1", "commit [1 -1], try 1", "close")
		source.write(0, 2)
		r = run(l.resumed(1, at))
		r.finish()
		got := n.take()
		if len(got) < 3 || got[0] != "commit [1 -1], try 1" || strings.Contains(strings.Join(got, ","), "end of input") {
			t.Errorf("got %q", got)
		}
	})
}

// brittle is a tape whose enumerator fails when it is told to.
type brittle struct {
	*tape[int64]
	fail func(what string) error
}

type brittleEnumerator struct {
	Enumerator[Strip]
	fail func(what string) error
}

func (s brittle) Enumerator(ctx EnumeratorContext[Strip], state []byte) (Enumerator[Strip], error) {
	if err := s.fail("new"); err != nil {
		return nil, err
	}
	e, err := s.tape.Enumerator(ctx, state)
	return brittleEnumerator{e, s.fail}, err
}

func (e brittleEnumerator) Start() error { return errors.Join(e.fail("start"), e.Enumerator.Start()) }
func (e brittleEnumerator) Added(i int) error {
	return errors.Join(e.fail("added"), e.Enumerator.Added(i))
}
func (e brittleEnumerator) Snapshot(id int64) ([]byte, error) {
	if err := e.fail("snapshot"); err != nil {
		return nil, err
	}
	return e.Enumerator.Snapshot(id)
}

// TestAnEnumeratorThatFails restarts its job, with a message, and the job then goes on exactly.
func TestAnEnumeratorThatFails(t *testing.T) {
	for _, what := range []string{"new", "start", "added", "snapshot"} {
		for _, how := range []string{"error", "panic"} {
			t.Run(what+" "+how, func(t *testing.T) {
				inLab(t, func(l *lab) {
					source, n, armed := newTape[int64](2), &notes{}, true
					failing := brittle{source, func(at string) error {
						if at != what || !armed {
							return nil
						}
						armed = false
						if how == "panic" {
							panic("planted")
						}
						return errors.New("planted")
					}}
					env := l.env(2)
					env.Checkpoints().TolerableFailures = 3
					env.From[int64, Strip](failing).UID("brittle").Name("brittle").KeyBy(func(int64) int64 { return 0 }).Process(&counting{}).UID("counting").To(note[string](n)).Parallelism(1)
					r := l.start(env)
					source.write(0, 1)
					r.settle()
					if what == "snapshot" {
						began := time.Now()
						_, err := r.handle.TriggerCheckpoint(r.Context(), false)
						l.mustSay(err, "brittle", "planted")
						if d := time.Since(began); d > time.Second {
							t.Errorf("it failed after %v", d)
						}
					}
					r.pass(time.Minute)
					source.write(1, 2)
					r.settle()
					got := n.take()
					if len(got) == 0 || got[len(got)-1] != "2 is number 2 of key 0" {
						t.Errorf("got %q", got)
					}
					r.checkpoint()
					if w := strings.Join(l.log.take(), "\n"); !strings.Contains(w, "planted") {
						t.Errorf("the log does not tell: %q", w)
					}
				})
			})
		}
	}
}

// TestAnEnumeratorThatSendsToNobody is told so.
func TestAnEnumeratorThatSendsToNobody(t *testing.T) {
	inLab(t, func(l *lab) {
		env := l.env(1).Set("restart-strategy.type", "none")
		env.From(wrongAddress{newTape[int64](1)}).UID("tape").Name("wrong address").To(Discard[int64]())
		l.fails(env, `"wrong address"`, "reader of subtask 7, which is not there")
	})
}

type wrongAddress struct{ *tape[int64] }

func (s wrongAddress) Enumerator(ctx EnumeratorContext[Strip], _ []byte) (Enumerator[Strip], error) {
	return wrongAddressEnumerator{&tapeEnumerator{ctx: ctx}}, nil
}

type wrongAddressEnumerator struct{ *tapeEnumerator }

func (e wrongAddressEnumerator) Added(int) error { e.ctx.Assign(7, Strip{}); return nil }

// counter is a master hook.
type counter struct {
	N    *notes
	fail error
}

func (h *counter) ID() string { return "counter" }
func (h *counter) Trigger(_ context.Context, id int64, at time.Time) ([]byte, error) {
	h.N.add("trigger %d", id)
	return json.RawMessage(fmt.Sprint(id)), h.fail
}
func (h *counter) Restore(_ context.Context, id int64, state []byte) error {
	h.N.add("restore %d: %q", id, state)
	return nil
}

// TestMasterHooks take part in checkpoints and get back what they have put in.
func TestMasterHooks(t *testing.T) {
	inLab(t, func(l *lab) {
		source, hook := newTape[int64](1), &counter{N: &notes{}}
		run := func(env *Env) *running {
			env.Checkpoints().TolerableFailures = 3
			env.Hook(hook).From(source).UID("tape").To(note[int64](hook.N)).UID("note")
			return l.start(env)
		}
		r := run(l.env(1))
		r.checkpoint()
		expect(t, hook.N.take(), "restore 0: \"\"", "trigger 1")
		hook.fail = errors.New("the other side is away")
		_, err := r.handle.TriggerCheckpoint(r.Context(), false)
		l.mustSay(err, "the other side is away", "counter")
		hook.fail = nil
		r.checkpoint()
		source.write(0, 5)
		r.settle()
		r.kill()
		hook.N.take()
		run(l.resumed(1, "latest"))
		expect(t, hook.N.take(), `restore 3: "3"`, "5")
	})
}

// failing fails for the record 13, again and again.
func failing(l *lab, env *Env, n *notes) *Env {
	env.From(FromSlice([]int64{13})).UID("numbers").Name("numbers").Map(func(v int64) int64 {
		n.add("%v", time.Now().Sub(l.born).Round(time.Second/10))
		panic("planted")
	}).Name("thirteen").To(Discard[int64]())
	return env
}

// TestRestartStrategies: how often, and how long after the failure.
func TestRestartStrategies(t *testing.T) {
	tests := []struct {
		name     string
		settings map[string]any
		want     []string // when it ran
		last     string   // in the error
	}{
		{"none", map[string]any{"restart-strategy.type": "none"}, []string{"0s"}, "the restart strategy is none (restart-strategy.type)"},
		{"fixed delay", map[string]any{"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": 3, "restart-strategy.fixed-delay.delay": "10 s"},
			[]string{"0s", "10s", "20s", "30s"}, "after 3 of them"},
		{"failure rate", map[string]any{"restart-strategy.type": "failure-rate", "restart-strategy.failure-rate.max-failures-per-interval": 2,
			"restart-strategy.failure-rate.failure-rate-interval": "1 min", "restart-strategy.failure-rate.delay": "5 s"}, []string{"0s", "5s", "10s"}, "after 2 of them"},
		{"exponential delay", map[string]any{"restart-strategy.type": "exponential-delay", "restart-strategy.exponential-delay.initial-backoff": "1 s",
			"restart-strategy.exponential-delay.backoff-multiplier": 2.0, "restart-strategy.exponential-delay.max-backoff": "5 s",
			"restart-strategy.exponential-delay.jitter-factor": 0.0, "restart-strategy.exponential-delay.attempts-before-reset-backoff": 4,
			"restart-strategy.exponential-delay.reset-backoff-threshold": "1 h"}, []string{"0s", "1s", "3s", "7s", "12s"}, "after 4 of them"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				n := &notes{}
				env := failing(l, l.env(1), n)
				for k, v := range test.settings {
					env.Set(k, v)
				}
				got := l.fails(env, `operator "thirteen", subtask 1 of 1: panic: planted`, "life_semantics_test.go:", test.last)
				if strings.Contains(got, "/internal/") || strings.Contains(got, "weir.apply") {
					t.Errorf("the message has the engine's stack:\n%s", got)
				}
				expect(t, n.take(), test.want...)
			})
		})
	}
}

// TestWithCheckpointsTheDefaultIsToRestartForEver, after 100 ms at first, with one message for each restart.
func TestWithCheckpointsTheDefaultIsToRestartForEver(t *testing.T) {
	inLab(t, func(l *lab) {
		n := &notes{}
		r := l.start(failing(l, l.env(1), n))
		r.pass(24 * time.Hour)
		ran := n.take()
		if len(ran) < 100 || ran[1] != "100ms" {
			t.Errorf("it ran %d times: %v", len(ran), ran[:min(len(ran), 5)])
		}
		warnings := l.warnings()
		if len(warnings) != len(ran) {
			t.Errorf("%d messages for %d failures: %s", len(warnings), len(ran), strings.Join(warnings[:min(len(warnings), 4)], "\n"))
		}
		for _, w := range warnings[:min(3, len(warnings))] {
			if !strings.Contains(w, `operator "thirteen", subtask 1 of 1: panic: planted`) {
				t.Errorf("message: %s", w)
			}
		}
	})
}

func TestWithoutCheckpointsTheDefaultIsToFail(t *testing.T) {
	inLab(t, func(l *lab) {
		n := &notes{}
		l.fails(failing(l, NewTestEnv(), n), "planted")
		expect(t, n.take(), "0s")
	})
}

// TestTolerableFailures: more failed checkpoints in a row restart the job; one that completes forgives the others.
func TestTolerableFailures(t *testing.T) {
	inLab(t, func(l *lab) {
		bad := &storage.Rule{Op: storage.OpLink, Path: "_metadata", Err: syscall.EIO}
		disk := storage.Faulty(l.disk, bad)
		l.disk = disk
		source, n := newTape[int64](1), &notes{}
		env := NewTestEnv()
		c := env.EnableCheckpointing(time.Second, ExactlyOnce)
		c.Storage, c.TolerableFailures = "/checkpoints", 2
		env.From(source).UID("tape").Process(&told{N: n}).UID("told").To(Discard[int64]())
		r := l.start(env)
		attempts := func(rules ...*storage.Rule) (opened int) {
			disk.SetRules(rules...)
			n.take()
			r.pass(2 * time.Second)
			for _, line := range n.take() {
				if strings.HasPrefix(line, "open") {
					opened++
				}
			}
			return opened
		}
		for range 5 {
			if attempts(bad)+attempts() > 0 {
				t.Fatal("two failures in a row restarted the job")
			}
		}
		disk.SetRules(bad)
		r.pass(4 * time.Second)
		if got := r.handle.Status().Restarts; got == 0 {
			t.Errorf("three failures in a row did not restart the job")
		}
		disk.SetRules()
		source.end()
		r.finish()
	})
}
