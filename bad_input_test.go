package weir_test

import (
	"errors"
	"math"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/storage"
)

// What a person can do wrong. Each gets one message that says what is wrong, where, and what to do; nothing panics, nothing
// runs, and nothing is lost.

func numbersOf(env *Env) Stream[int64] { return env.From(FromSlice(numbers(3))).UID("numbers") }

func keyed(env *Env) KeyedStream[int64, int64] {
	return numbersOf(env).KeyBy(func(v int64) int64 { return v })
}

// keyedWith runs a keyed function; plainWith one without keys.
func keyedWith(f KeyedFunction[int64, int64, int64]) func(*Env) {
	return func(env *Env) { keyed(env).Process(f).UID("f").To(Discard[int64]()) }
}

func plainWith(f Function[int64, int64]) func(*Env) {
	return func(env *Env) { numbersOf(env).Process(f).UID("f").To(Discard[int64]()) }
}

// K and P are functions that do nothing, to embed.
type K struct{}

func (K) Process(*KeyedContext[int64], int64, Out[int64]) error { return nil }

type P struct{}

func (P) Process(*Context, int64, Out[int64]) error { return nil }

type (
	unnamed struct {
		K
		N Value[int64]
	}
	unexported struct {
		K
		n Value[int64] `state:"n"`
	}
	noName struct {
		K
		N Value[int64] `state:",ttl=1h"`
	}
	badTTL struct {
		K
		N Value[int64] `state:"n,ttl=soon"`
	}
	badOption struct {
		K
		N Value[int64] `state:"n,tll=1h"`
	}
	sliced struct {
		K
		N []Value[int64] `state:"n"`
	}
	mapped struct {
		K
		N map[string]*List[int64]
	}
	pointed struct {
		K
		N *Value[int64] `state:"n"`
	}
	arrayed struct {
		K
		N [2]Value[int64]
	}
	twice struct {
		K
		A Value[int64]       `state:"s"`
		B Map[string, int64] `state:"s"`
	}
	same struct {
		K
		A Value[int64] `state:"s"`
		B Value[int64] `state:"s"`
	}
	locked struct {
		K
		Mu sync.Mutex
	}
	nestedLock struct {
		K
		In struct{ Mu sync.RWMutex }
	}
	mapField struct {
		K
		M map[string]int
	}
	ptrField struct {
		K
		P *int
	}
	sliceField struct {
		K
		S []int
	}
	ifaceField struct {
		K
		A any
	}
	keyless struct {
		P
		N Value[int64] `state:"n"`
	}
	reducing struct {
		K
		R Reducing[int64] `state:"r"`
	}
	folding struct {
		K
		A Aggregating[int64, int64, int64] `state:"a"`
	}
	chanState struct {
		K
		C Value[chan int] `state:"c"`
	}
	anyState struct {
		K
		C Value[struct{ X any }] `state:"c"`
	}
	mapKey struct {
		K
		M Map[time.Time, int64] `state:"m"`
	}
	sideless struct {
		P
		S Side[int64]
	}
	twoSides struct {
		P
		A Side[int64]  `side:"s"`
		B Side[string] `side:"s"`
	}
	broadcasts struct {
		K
		B BroadcastMap[string, int64] `state:"b"`
	}
	fine struct {
		K
		N Value[int64] `state:"n"`
	}
)

type (
	badOpen      struct{ K }
	badClose     struct{ K }
	badCompleted struct{ K }
	badAborted   struct{ K }
	badEnd       struct{ K }
	badOnTimer   struct{ K }
	valueOpen    struct{ P }
)

func (badOpen) Open() error                                               { return nil }
func (badClose) Close()                                                   {}
func (badCompleted) CheckpointCompleted(int) error                        { return nil }
func (badAborted) CheckpointAborted(id int64, why string) error           { return nil }
func (badEnd) EndOfInput(Out[string]) error                               { return nil }
func (badOnTimer) OnTimer(*KeyedContext[string], Timer, Out[int64]) error { return nil }
func (*valueOpen) Open(OpenContext) error                                 { return nil }

type pointerKey struct{ P *int }

type halfTwoPhase struct{ noteSink[int64] }

func (halfTwoPhase) Commit() {}

func TestBadPrograms(t *testing.T) {
	one := 1
	tests := []struct {
		name  string
		build func(*Env)
		want  []string
	}{
		{"empty", func(*Env) {}, []string{"the job is empty: call From"}},
		{"no sink", func(env *Env) { numbersOf(env).Map(func(v int64) int64 { return v }).Name("double") }, []string{`nothing reads the output of "double"`, "To(sink)"}},
		{"nil sink", func(env *Env) { numbersOf(env).To(nil) }, []string{"To (at ", "nil sink"}},
		{"nil source", func(env *Env) { env.From[int64, Strip](nil).To(Discard[int64]()) }, []string{"From (at ", "nil source"}},
		{"nil function", keyedWith(nil), []string{"the function is nil"}},
		{"nil pointer", keyedWith((*fine)(nil)), []string{"the function is a nil *weir_test.fine"}},
		{"two watermarks", func(env *Env) {
			env.From(FromSlice(numbers(1)), Watermarks[int64]{}, Watermarks[int64]{}).UID("n").To(Discard[int64]())
		}, []string{"2 Watermarks: it takes one at most"}},
		{"half a two-phase sink", func(env *Env) { numbersOf(env).To(halfTwoPhase{}) }, []string{"weir_test.halfTwoPhase", "method Commit, which would never be called", "weir.Committing"}},

		{"no uid", func(env *Env) { keyed(env).Process(&fine{}).Name("My count").To(Discard[int64]()) }, []string{`operator "My count"`, "has state but no uid", `.UID("my-count")`}},
		{"no uid of a source", func(env *Env) { env.From(FromSlice(numbers(1))).To(Discard[int64]()) }, []string{"has state but no uid"}},
		{"one uid twice", func(env *Env) { numbersOf(env).To(Discard[int64]()).UID("numbers") }, []string{`two operators have the uid "numbers"`, "each needs its own"}},
		{"parallelism 0", func(env *Env) { numbersOf(env).Parallelism(0).To(Discard[int64]()) }, []string{"parallelism", "not in 1 to 32768"}},
		{"parallelism -3", func(env *Env) { numbersOf(env).To(Discard[int64]()).Parallelism(-3) }, []string{"parallelism -3 is not in 1 to 32768"}},
		{"parallelism of a job", func(env *Env) { env.Parallelism(100_000); numbersOf(env).To(Discard[int64]()) }, []string{"parallelism.default", "100000"}},

		{"wrong Open", keyedWith(badOpen{}), []string{"method Open of weir_test.badOpen is func() error, but would be called only as func(weir.OpenContext) error"}},
		{"wrong Close", keyedWith(badClose{}), []string{"method Close", "func() error"}},
		{"wrong CheckpointCompleted", keyedWith(badCompleted{}), []string{"method CheckpointCompleted", "func(int64) error"}},
		{"wrong CheckpointAborted", keyedWith(badAborted{}), []string{"method CheckpointAborted", "func(int64, string) error", "func(int64) error"}},
		{"wrong EndOfInput", keyedWith(badEnd{}), []string{"method EndOfInput", "func(weir.Out[string]) error", "func(weir.Out[int64]) error"}},
		{"wrong OnTimer", keyedWith(badOnTimer{}), []string{"method OnTimer", "func(*weir.KeyedContext[int64], weir.Timer, weir.Out[int64]) error"}},
		{"pointer receiver", plainWith(valueOpen{}), []string{"method Open of weir_test.valueOpen has a pointer receiver: pass &valueOpen{...}"}},

		{"state without a tag", keyedWith(&unnamed{}), []string{"state field N of *weir_test.unnamed has no name", "`state:\"n\"`"}},
		{"unexported state", keyedWith(&unexported{}), []string{"state field n", "not exported: write it with a capital letter"}},
		{"state without a name", keyedWith(&noName{}), []string{"state field N", "begins with no name"}},
		{"bad time to live", keyedWith(&badTTL{}), []string{"ttl=soon", "such as ttl=24h"}},
		{"unknown option", keyedWith(&badOption{}), []string{`option "tll=1h"`, "ttl=DURATION"}},
		{"state in a slice", keyedWith(&sliced{}), []string{"field N", "must be fields themselves"}},
		{"state in a map", keyedWith(&mapped{}), []string{"field N", "not in a slice, array or map"}},
		{"state behind a pointer", keyedWith(&pointed{}), []string{"field N", "nor behind a pointer"}},
		{"state in an array", keyedWith(&arrayed{}), []string{"field N", "must be fields themselves"}},
		{"two kinds of one name", keyedWith(&twice{}), []string{`"s"`, "value", "map"}},
		{"one name twice", keyedWith(&same{}), []string{`"s"`}},
		{"state by value", func(env *Env) { keyed(env).Process(fine{}).UID("f").To(Discard[int64]()) }, []string{"weir_test.fine declares state", "pass a pointer to it (&fine{...})"}},
		{"a lock", keyedWith(&locked{}), []string{"field Mu of *weir_test.locked is a lock (sync.Mutex)", "make it in Open", "`weir:\"shared\"`"}},
		{"a lock within", keyedWith(&nestedLock{}), []string{"field In.Mu", "is a lock"}},
		{"a map", keyedWith(&mapField{M: map[string]int{}}), []string{"field M", "all subtasks would share", "make it in Open"}},
		{"a pointer", keyedWith(&ptrField{P: &one}), []string{"field P", "all subtasks would share"}},
		{"a slice", keyedWith(&sliceField{S: []int{1}}), []string{"field S", "all subtasks would share"}},
		{"an interface", keyedWith(&ifaceField{A: &one}), []string{"field A", "all subtasks would share"}},
		{"keyed state without keys", plainWith(&keyless{}), []string{`state "n" is state by key, but the stream has no keys`, "call KeyBy"}},
		{"no Reduce", keyedWith(&reducing{}), []string{"field R", "Reduce is nil"}},
		{"no Fold", keyedWith(&folding{}), []string{"field A", "Fold or Result is nil"}},
		{"broadcast state without a broadcast", keyedWith(&broadcasts{}), []string{"field B", "ConnectBroadcast"}},

		{"channels as state", keyedWith(&chanState{}), []string{"field C", "chan int"}},
		{"interfaces as state", keyedWith(&anyState{}), []string{"field C", "X"}},
		{"times as map keys", keyedWith(&mapKey{}), []string{"field M", "time.Time"}},
		{"times as keys", func(env *Env) {
			numbersOf(env).KeyBy(func(v int64) time.Time { return time.Unix(v, 0) }).Reduce(func(a, b int64) int64 { return a }).UID("r").To(Discard[int64]())
		}, []string{"KeyBy (at ", "time.Time", "UnixNano"}},
		{"pointers in keys", func(env *Env) {
			numbersOf(env).KeyBy(func(v int64) pointerKey { return pointerKey{} }).Reduce(func(a, b int64) int64 { return a }).UID("r").To(Discard[int64]())
		}, []string{"KeyBy (at ", "P", "*int"}},
		{"channels as records", func(env *Env) {
			numbersOf(env).Map(func(v int64) chan int { return nil }).Name("opens").Rebalance().To(Discard[chan int]()).Name("closes")
		}, []string{"records of chan int", `opens"`, `"closes"`}},

		{"no side output", func(env *Env) {
			s := numbersOf(env).Process(&P{})
			s.To(Discard[int64]())
			s.SideOutput[string]("late").To(Discard[string]())
		}, []string{`no side output "late" of string`, "weir.Side[string]", "`side:\"late\"`"}},
		{"a side output without a name", plainWith(&sideless{}), []string{"side output S", "has no name", "`side:\"s\"`"}},
		{"two side outputs of one name", plainWith(&twoSides{}), []string{`two side outputs named "s"`}},
		{"uid of a union", func(env *Env) { s := numbersOf(env); s.Union(s).UID("u").To(Discard[int64]()) }, []string{"UID was called on a union", "bad_input_test.go:"}},

		{"unknown key", func(env *Env) { env.Set("restart-strategy.tpye", "none"); numbersOf(env).To(Discard[int64]()) }, []string{"restart-strategy.tpye", "restart-strategy.type", "bad_input_test.go:"}},
		{"bad value", func(env *Env) { env.Set("restart-strategy.type", "sometimes"); numbersOf(env).To(Discard[int64]()) }, []string{"restart-strategy.type", "sometimes", "exponential-delay"}},
		{"bad duration", func(env *Env) { env.Checkpoints().Timeout = -time.Second; numbersOf(env).To(Discard[int64]()) }, []string{"execution.checkpointing.timeout", "-1"}},
		{"too many retained", func(env *Env) { env.Checkpoints().Retained = -1; numbersOf(env).To(Discard[int64]()) }, []string{"num-retained", "-1"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				env := NewTestEnv()
				test.build(env)
				got := l.fails(env, append(test.want, `weir: job "lab" cannot run:`)...)
				if n := strings.Count(got, "\n"); n != 1 {
					t.Errorf("%d messages, want one:\n%s", n, got)
				}
				if w := l.log.take(); len(w) > 0 {
					t.Errorf("the log has %q", w)
				}
			})
		})
	}
}

// TestAllProblemsAtOnce: a program with many mistakes hears of all of them.
func TestAllProblemsAtOnce(t *testing.T) {
	inLab(t, func(l *lab) {
		env := NewTestEnv().Set("no.such.key", 1).Set("parallelism.default", "many")
		keyed(env).Process(&locked{}).To(Discard[int64]())
		l.fails(env, "no.such.key", "parallelism.default", "is a lock")
	})
}

// TestNaNKeyFailsTheRecord: it equals nothing, not even itself.
func TestNaNKeyFailsTheRecord(t *testing.T) {
	inLab(t, func(l *lab) {
		env := l.env(1).Set("restart-strategy.type", "none")
		numbersOf(env).Name("source").KeyBy(func(v int64) float64 { return math.NaN() }).Reduce(func(a, b int64) int64 { return a }).UID("r").To(Discard[int64]())
		l.fails(env, `operator "source"`, "NaN")
	})
}

// meddling changes broadcast state where it must not.
type meddling struct{ rules }

func (f *meddling) Process(_ *KeyedContext[int64], v int64, _ Out[string]) error {
	f.Rules.Put("mine", v)
	return nil
}

type meddling2 struct {
	Rules BroadcastMap[string, int64] `state:"rules"`
}

func (f *meddling2) Process1(_ *Context, v int64, _ Out[string]) error {
	f.Rules.Delete("mine")
	return nil
}

func (f *meddling2) Process2(_ *Context, v string, _ Out[string]) error {
	f.Rules.Put(v, 1)
	return nil
}

// TestBroadcastStateIsChangedByBroadcastRecordsOnly: else it would not be the same everywhere.
func TestBroadcastStateIsChangedByBroadcastRecordsOnly(t *testing.T) {
	for _, withKeys := range []bool{true, false} {
		inLab(t, func(l *lab) {
			env := l.env(1).Set("restart-strategy.type", "none")
			source, names := newTape[int64](1), newTape[string](1)
			cast := env.From(names).UID("names").Broadcast()
			if s := env.From(source).UID("tape"); withKeys {
				byTens(s).ConnectBroadcast(cast).Process(&meddling{}).UID("m").Name("meddling").To(Discard[string]())
			} else {
				s.ConnectBroadcast(cast).Process(&meddling2{}).UID("m").Name("meddling").To(Discard[string]())
			}
			r := l.start(env)
			names.write(0, "a", "b")
			r.settle()
			source.write(0, 1)
			<-r.ended
			l.mustSay(r.err, `operator "meddling"`, "BroadcastMap was changed", "where broadcast records are processed", "bad_input_test.go:")
		})
	}
}

// saved is a job that has stopped with a savepoint.
func saved(l *lab) string {
	source := newTape[int64](1)
	env := l.env(2)
	source.write(0, numbers(10)...)
	byTens(env.From(source).UID("tape")).Process(&counting{}).UID("counting").To(Discard[string]())
	return l.start(env).savepoint(checkpoint.Suspend)
}

type otherCounting struct {
	N Value[string] `state:"n"`
}

func (c *otherCounting) Process(*KeyedContext[int64], int64, Out[string]) error { return nil }

// TestBadRestores: what cannot be restored is refused before anything runs.
func TestBadRestores(t *testing.T) {
	build := func(env *Env) *Env {
		source := newTape[int64](1)
		source.end()
		byTens(env.From(source).UID("tape")).Process(&counting{}).UID("counting").To(Discard[string]())
		return env
	}
	inLab(t, func(l *lab) {
		l.start(build(l.resumed(1, "latest-or-start"))).finish()
		l.fails(build(l.resumed(1, "/nowhere/chk-7")), "/nowhere/chk-7", "-s")
		l.fails(build(l.resumed(1, "latest")), "has FINISHED", "start it without -s")
	})
	inLab(t, func(l *lab) {
		l.fails(build(l.resumed(1, "latest")), "-s latest", "nothing to go on from", "latest-or-start")
	})
	inLab(t, func(l *lab) {
		at := saved(l)
		if err := l.disk.Mkdir("/empty"); err != nil {
			t.Fatal(err)
		}
		l.fails(build(l.resumed(1, "/empty")), "/empty", "_metadata")

		renamed := l.resumed(1, at)
		source := newTape[int64](1)
		source.end()
		byTens(renamed.From(source).UID("tape")).Process(&counting{}).UID("renamed").To(Discard[string]())
		l.fails(renamed, "cannot be restored from "+at, `"counting"`, `value "n"`, "renamed", "--allowNonRestoredState")

		other := l.resumed(1, at)
		byTens(other.From(source).UID("tape")).Process(&otherCounting{}).UID("counting").To(Discard[string]())
		l.fails(other, `uid "counting"`, `state "n"`, "string", "long")
	})
}

// TestAllowNonRestored: state that nobody takes is dropped when that is allowed, with a warning that names it. Operators whose
// uid is new begin empty, and nothing panics because they are not what was restored.
func TestAllowNonRestored(t *testing.T) {
	inLab(t, func(l *lab) {
		at := saved(l)
		source, n := newTape[int64](1), &notes{}
		sink := &ledgerSink{n: n}
		env := l.resumed(3, at).Set("execution.state-recovery.ignore-unclaimed-state", true)
		s := byTens(env.From(source).UID("new tape")).Process(&counting{}).UID("new counting")
		s.To(note[string](n)).Parallelism(1)
		s.Map(func(s string) int64 { return int64(len(s)) }).Process(&lists{N: &notes{}, Mine: true}).UID("new lists").To(Committing[int64, string](sink)).UID("new ledger").Parallelism(1)
		source.write(0, 5)
		source.end()
		l.start(env).finish()
		if got := strings.Join(n.take(), "\n"); !strings.Contains(got, "5 is number 1 of key 0") {
			t.Errorf("got %s", got)
		}
		if w := strings.Join(l.warnings(), "\n"); !strings.Contains(w, "counting") || !strings.Contains(w, "tape") {
			t.Errorf("warnings: %s", w)
		}
	})
}

// TestADamagedCheckpointIsRefused, and no older one is taken in its place.
func TestADamagedCheckpointIsRefused(t *testing.T) {
	inLab(t, func(l *lab) {
		at := saved(l)
		path := at + "/_metadata"
		if i := strings.Index(path, "://"); i >= 0 {
			path = path[i+3:]
		}
		if err := l.disk.Remove(path); err != nil {
			t.Fatal(err)
		}
		f, err := l.disk.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		f.Write([]byte("not what it was"))
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
		env := l.resumed(1, "latest")
		numbersOf(env).To(Discard[int64]())
		l.fails(env, path)
	})
}

func TestUnwritableDirectories(t *testing.T) {
	inLab(t, func(l *lab) {
		l.disk = storage.Faulty(l.disk, &storage.Rule{Op: storage.OpMkdir, Err: syscall.EACCES})
		env := l.env(1)
		numbersOf(env).To(Discard[int64]())
		l.fails(env, "/checkpoints", "permission denied")
	})
}

// TestAFullDisk: the checkpoint fails and says why, the job goes on, the last good checkpoint stays and is restored.
func TestAFullDisk(t *testing.T) {
	for _, op := range []storage.Op{storage.OpCreate, storage.OpWrite, storage.OpSync, storage.OpLink, storage.OpClose, storage.OpMkdir} {
		t.Run(string(op), func(t *testing.T) {
			inLab(t, func(l *lab) {
				disk := storage.Faulty(l.disk)
				l.disk = disk
				source, n := newTape[int64](1), &notes{}
				run := func(env *Env) *running {
					env.Set("execution.checkpointing.data-inline-threshold", 0).Checkpoints().TolerableFailures = 10
					byTens(env.From(source).UID("tape")).Process(&counting{}).UID("counting").To(note[string](n)).Parallelism(1)
					return l.start(env)
				}
				r := run(l.env(2))
				source.write(0, numbers(100)...)
				r.settle()
				good := r.checkpoint()
				source.write(0, 8)
				r.settle()
				disk.SetRules(&storage.Rule{Op: op, Err: syscall.ENOSPC})
				for range 2 {
					if _, err := r.handle.TriggerCheckpoint(r.Context(), false); err == nil || !errors.Is(err, syscall.ENOSPC) && !strings.Contains(err.Error(), "no space left") {
						t.Errorf("the checkpoint's error is %v", err)
					}
					r.settle()
				}
				if w := strings.Join(l.warnings(), "\n"); !strings.Contains(w, "no space left on device") {
					t.Errorf("warnings: %s", w)
				}
				disk.SetRules()
				source.write(0, 9)
				r.settle()
				r.kill()
				got := n.take()
				if got[len(got)-1] != "9 is number 11 of key 0" {
					t.Errorf("the job did not go on: %s", got[len(got)-1])
				}
				r = run(l.resumed(3, "latest"))
				if restored := r.handle.Status().Checkpoints.Restored.ID; restored != good {
					t.Errorf("checkpoint %d was restored, want %d", restored, good)
				}
				expect(t, n.take(), "8 is number 10 of key 0", "9 is number 11 of key 0")
			})
		})
	}
}

// oddNames has states whose names could be taken for each other, or for something else.
type oddNames struct {
	A  Value[int64] `state:"a"`
	AB Value[int64] `state:"ab"`
	S  Value[int64] `state:"a/b"`
	E  Value[int64] `state:"é"`
	L  Value[int64] `state:"llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll"`
}

func (f *oddNames) Process(_ *KeyedContext[int64], v int64, out Out[[]int64]) error {
	all := []*Value[int64]{&f.A, &f.AB, &f.S, &f.E, &f.L}
	if v == 0 {
		var got []int64
		for _, s := range all {
			got = append(got, s.Get())
		}
		out.Emit(got)
		return nil
	}
	for i, s := range all {
		s.Set(v + int64(i))
	}
	return nil
}

// TestOddNamesOfStates go through a checkpoint, and none is taken for another.
func TestOddNamesOfStates(t *testing.T) {
	inLab(t, func(l *lab) {
		source, n := newTape[int64](1), &notes{}
		run := func(env *Env) *running {
			env.From(source).UID("a/b: tape é").KeyBy(func(int64) int64 { return 0 }).Process(&oddNames{}).UID("../odd \x00 names").To(note[[]int64](n))
			return l.start(env)
		}
		r := run(l.env(1))
		source.write(0, 5)
		r.settle()
		r = run(l.resumed(1, r.savepoint(checkpoint.Suspend)))
		source.write(0, 0)
		source.end()
		r.finish()
		expect(t, n.take(), "[5 6 7 8 9]")
	})
}
