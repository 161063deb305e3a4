package weir_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	. "github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/storage"
)

// One test, at least, for each sentence of docs/semantics.md that one process can show, in the order of the page.

// counting counts the records of each key.
type counting struct {
	N Value[int64] `state:"n"`
}

func (c *counting) Process(ctx *KeyedContext[int64], v int64, out Out[string]) error {
	c.N.Set(c.N.Get() + 1)
	out.Emit(fmt.Sprint(v, " is number ", c.N.Get(), " of key ", ctx.Key()))
	return nil
}

// byTens keys numbers by their tens.
func byTens(s Stream[int64]) KeyedStream[int64, int64] {
	return s.KeyBy(func(v int64) int64 { return v / 10 })
}

// TestEitherActedOrWillBeRead: after a failure each record acts once on the state that the checkpoint has, whatever is read
// again.
func TestEitherActedOrWillBeRead(t *testing.T) {
	inLab(t, func(l *lab) {
		source, n := newTape[int64](2), &notes{}
		broken := false
		env := l.env(2)
		byTens(env.From(source).UID("tape").Map(func(v int64) int64 {
			if broken {
				broken = false
				panic("planted")
			}
			return v
		})).Process(&counting{}).UID("counting").To(note[string](n)).Parallelism(1)
		r := l.start(env)
		source.write(0, 1, 2)
		source.write(1, 21)
		r.settle()
		r.checkpoint()
		source.write(0, 3)
		r.settle()
		expect(t, n.takeSorted(), "1 is number 1 of key 0", "2 is number 2 of key 0", "21 is number 1 of key 2", "3 is number 3 of key 0")
		broken = true
		source.write(1, 22)
		pass(time.Minute)
		r.settle()
		expect(t, n.takeSorted(), "22 is number 2 of key 2", "3 is number 3 of key 0")
		source.end()
		r.finish()
	})
}

// TestSplitsAreStoredAsTheyStood: a reader may go on changing what it returned from Snapshot, and spoil it in Close.
func TestSplitsAreStoredAsTheyStood(t *testing.T) {
	inLab(t, func(l *lab) {
		source, n := newTape[int64](1), &notes{}
		run := func(env *Env) *running {
			byTens(env.From(source).UID("tape")).Process(&counting{}).UID("counting").To(note[string](n))
			return l.start(env)
		}
		r := run(l.env(1))
		source.write(0, numbers(700)...)
		r.settle()
		at := r.savepoint(checkpoint.Suspend)
		n.take()
		r = run(l.resumed(1, at))
		source.write(0, 701, 702)
		source.end()
		r.finish()
		expect(t, n.take(), "701 is number 2 of key 70", "702 is number 3 of key 70")
	})
}

// TestAtLeastOnceLosesNothing runs two inputs of which one is ahead of its barrier, and fails.
func TestAtLeastOnceLosesNothing(t *testing.T) {
	const total = 2000
	for _, mode := range []Mode{ExactlyOnce, AtLeastOnce} {
		inLab(t, func(l *lab) {
			failures := 0
			env := NewTestEnv().Parallelism(2)
			env.EnableCheckpointing(20*time.Millisecond, mode)
			n := &notes{}
			slow := env.From(FromSlice(numbers(total)).Rate(1000)).UID("slow")
			fast := env.From(FromSlice(numbers(total)).Rate(3000)).UID("fast").Map(func(v int64) int64 {
				if v == total/2 {
					if failures++; failures <= 2 {
						panic("planted")
					}
				}
				return v
			})
			slow.Union(fast).KeyBy(func(v int64) int64 { return v % 7 }).
				Process(&counting{}).UID("count").To(note[string](n)).Parallelism(1)
			r := l.start(env)
			r.finish()
			if failures < 3 {
				t.Errorf("%d failures", failures)
			}
			want, sum := int64(2*total), int64(0)
			last := map[int64]int64{}
			for _, line := range n.take() {
				var v, count, key int64
				fmt.Sscanf(line, "%d is number %d of key %d", &v, &count, &key)
				last[key] = max(last[key], count)
			}
			for _, count := range last {
				sum += count
			}
			if sum < want || mode == ExactlyOnce && sum > want {
				t.Errorf("mode %v: %d records were counted, want %d", mode, sum, want)
			}
			t.Logf("mode %v: %d of %d", mode, sum, want)
		})
	}
}

// TestWithoutACheckpointItStartsFromTheBeginning: state, positions, and the enumerator's list of splits.
func TestWithoutACheckpointItStartsFromTheBeginning(t *testing.T) {
	inLab(t, func(l *lab) {
		source, n := newTape[int64](3), &notes{}
		broken := true
		env := l.env(2)
		byTens(env.From(source).UID("tape").Map(func(v int64) int64 {
			if v == 5 && broken {
				broken = false
				panic("planted")
			}
			return v
		})).Process(&counting{}).UID("counting").To(note[string](n)).Parallelism(1)
		r := l.start(env)
		for lane := range 3 {
			source.write(lane, int64(10*lane))
		}
		r.settle()
		n.take()
		source.write(0, 5)
		pass(time.Minute)
		r.settle()
		expect(t, n.takeSorted(), "0 is number 1 of key 0", "10 is number 1 of key 1", "20 is number 1 of key 2", "5 is number 2 of key 0")
	})
}

// ledgerSink is a two-phase sink that notes what it is asked to do.
type ledgerSink struct {
	n      *notes
	commit func(c *Commit[string])
}

type ledgerWriter struct{ values []int64 }

func (w *ledgerWriter) Write(v int64, _ time.Time) error { w.values = append(w.values, v); return nil }
func (w *ledgerWriter) Flush(bool) error                 { return nil }
func (w *ledgerWriter) Close() error                     { return nil }

func (s *ledgerSink) Writer(WriterContext) (Writer[int64], error) { return &ledgerWriter{}, nil }
func (s *ledgerSink) Restore(_ Writer[int64], states [][]byte) error {
	s.n.add("restore %q", states)
	return nil
}
func (s *ledgerSink) Prepare(w Writer[int64], id int64) ([]string, []byte, error) {
	lw := w.(*ledgerWriter)
	var cs []string
	if len(lw.values) > 0 {
		cs = append(cs, fmt.Sprint(lw.values))
	}
	lw.values = nil
	s.n.add("prepare %d: %v", id, cs)
	return cs, fmt.Append(nil, "state ", id), nil
}
func (s *ledgerSink) Commit(_ context.Context, cs []*Commit[string]) error {
	for _, c := range cs {
		s.n.add("commit %s, try %d", c.Value, c.Attempt)
		if s.commit != nil {
			s.commit(c)
		}
	}
	clear(cs) // a sink may do with the slice what it likes
	return nil
}
func (s *ledgerSink) Abort(_ context.Context, cs []string) error { s.n.add("abort %v", cs); return nil }

// TestTwoPhases: what belongs to a checkpoint is prepared with it and committed when it completes; what asks for it is tried
// again; a restore commits before the first record.
func TestTwoPhases(t *testing.T) {
	inLab(t, func(l *lab) {
		source, sink := newTape[int64](1), &ledgerSink{n: &notes{}}
		run := func(env *Env) *running {
			env.From(source).UID("tape").To(Committing[int64, string](sink)).UID("ledger")
			return l.start(env)
		}
		r := run(l.env(1))
		source.write(0, 1, 2)
		r.settle()
		expect(t, sink.n.take())
		r.checkpoint()
		expect(t, sink.n.take(), "prepare 1: [[1 2]]", "commit [1 2], try 1")
		source.write(0, 3)
		r.settle()
		sink.commit = func(c *Commit[string]) {
			if c.Attempt < 3 {
				c.Retry()
			}
		}
		r.checkpoint()
		pass(time.Second)
		r.settle()
		expect(t, sink.n.take(), "prepare 2: [[3]]", "commit [3], try 1", "commit [3], try 2", "commit [3], try 3")
		sink.commit = nil
		r.kill()
		r = run(l.resumed(1, "latest"))
		expect(t, sink.n.take(), "commit [3], try 1", `restore ["state 2"]`)
		source.write(0, 4)
		source.end()
		r.finish()
		expect(t, sink.n.take(), "prepare 3: [[4]]", "commit [4], try 1")
	})
}

// TestACommitThatFails fails the job, with the reason.
func TestACommitThatFails(t *testing.T) {
	inLab(t, func(l *lab) {
		sink := &ledgerSink{n: &notes{}, commit: func(c *Commit[string]) { c.Fail(errors.New("the ledger is closed")) }}
		env := l.env(1).Set("restart-strategy.type", "none")
		env.From(FromSlice(numbers(2))).UID("numbers").To(Committing[int64, string](sink)).UID("ledger")
		l.fails(env, `operator "Sink", subtask 1 of 1: committing: the ledger is closed`)
	})
}

// TestWhatAnAbortedCheckpointPrepared is committed with the next one that completes, because its records are not read again.
func TestWhatAnAbortedCheckpointPrepared(t *testing.T) {
	inLab(t, func(l *lab) {
		full := &storage.Rule{Op: storage.OpLink, Path: "_metadata", Count: 1, Err: syscall.ENOSPC}
		l.disk = storage.Faulty(l.disk, full)
		source, sink := newTape[int64](1), &ledgerSink{n: &notes{}}
		env := l.env(1)
		env.Checkpoints().TolerableFailures = 5
		env.From(source).UID("tape").To(Committing[int64, string](sink)).UID("ledger")
		r := l.start(env)
		source.write(0, 1)
		r.settle()
		if _, err := r.handle.TriggerCheckpoint(r.Context(), false); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got %v", err)
		}
		r.settle()
		source.write(0, 2)
		r.settle()
		r.checkpoint()
		expect(t, sink.n.take(), "prepare 1: [[1]]", "prepare 2: [[2]]", "commit [1], try 1", "commit [2], try 1")
	})
}

// TestWithoutCheckpointsTheEndCommits, once.
func TestWithoutCheckpointsTheEndCommits(t *testing.T) {
	inLab(t, func(l *lab) {
		sink := &ledgerSink{n: &notes{}}
		env := NewTestEnv()
		env.From(FromSlice(numbers(3))).UID("numbers").To(Committing[int64, string](sink)).UID("ledger")
		l.start(env).finish()
		expect(t, sink.n.take(), "prepare 0: [[1 2 3]]", "commit [1 2 3], try 1")
	})
}

func TestWithoutCheckpointsAnEndlessTwoPhaseSinkIsRefused(t *testing.T) {
	inLab(t, func(l *lab) {
		env := NewTestEnv()
		source := newTape[int64](1)
		source.endless = true
		env.From(source).UID("tape").To(Committing[int64, string](&ledgerSink{n: &notes{}})).UID("ledger")
		l.fails(env, "job \"lab\" cannot run", `sink "Sink" (uid "ledger")`, "semantics_test.go:", "EnableCheckpointing")
	})
}
