package weir_test

import (
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/storage"
)

// Sentences of docs/semantics.md about checkpoints and barriers. Those about unaligned ones are in unaligned_test.go, those about
// savepoints as users ask for them in package cluster.

// TestWhatIsBehindAnEarlyBarrierWaits: two inputs, one of which brings its barrier five minutes later, because its task is at
// work. Exactly once, what the other brings behind its own barrier is processed only then; at least once, at once.
func TestWhatIsBehindAnEarlyBarrierWaits(t *testing.T) {
	for mode, early := range map[Mode][]string{ExactlyOnce: nil, AtLeastOnce: {"2"}} {
		inLab(t, func(l *lab) {
			fast, slow, n := newTape[int64](1), newTape[int64](1), &notes{}
			env := l.env(1)
			env.Checkpoints().Mode = mode
			env.From(fast).UID("fast").
				Union(env.From(slow).UID("slow").Map(func(v int64) int64 { pass(5 * time.Minute); return v })).
				Map(func(v int64) int64 { return v }).To(note[int64](n)).UID("note")
			r := l.start(env)
			fast.write(0, 1)
			r.settle()
			expect(t, n.take(), "1")
			slow.write(0, 100)
			r.settle()
			done := r.startCheckpoint()
			r.settle()
			fast.write(0, 2)
			r.settle()
			expect(t, n.take(), early...)
			r.pass(10 * time.Minute)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			late := []string{"100", "2"}
			if mode == AtLeastOnce {
				late = []string{"100"}
			}
			expect(t, n.takeSorted(), late...)
		})
	}
}

// startCheckpoint asks for a checkpoint and does not wait for it.
func (r *running) startCheckpoint() <-chan error {
	done := make(chan error, 1)
	go func() { // ends with the checkpoint
		_, err := r.handle.TriggerCheckpoint(r.Context(), false)
		done <- err
	}()
	return done
}

// TestARecordStaysOnItsSide: a checkpoint is taken while records stand in half-filled batches in every channel. Restored at any
// parallelism, each key goes on with the number that follows, none twice and none left out.
func TestARecordStaysOnItsSide(t *testing.T) {
	inLab(t, func(l *lab) {
		source, n := newTape[int64](3), &notes{}
		run := func(env *Env) *running {
			byTens(env.From(source).UID("tape").Rebalance().Map(func(v int64) int64 { pass(time.Millisecond); return v })).
				Process(&counting{}).UID("counting").To(note[string](n)).Parallelism(1)
			return l.start(env)
		}
		r := run(l.env(2))
		write := func() {
			for lane := range 3 {
				source.write(lane, numbers(7)...) // all of key 0
			}
		}
		for _, parallelism := range []int{3, 1, 4} {
			write()
			done := r.startCheckpoint()
			write()
			r.pass(time.Second)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			r.kill()
			r = run(l.resumed(parallelism, "latest"))
			r.pass(time.Second)
		}
		n.take()
		source.write(0, 1)
		r.pass(time.Second)
		expect(t, n.take(), "1 is number 127 of key 0") // three times 42, and one
	})
}

// TestNobodyCommitsBeforeTheMetadataIsThere: while the metadata is being published nothing is told or committed; a process that
// dies then goes on from the checkpoint before.
func TestNobodyCommitsBeforeTheMetadataIsThere(t *testing.T) {
	inLab(t, func(l *lab) {
		var gate sync.WaitGroup
		slow := &storage.Rule{Op: storage.OpLink, Path: "_metadata", Skip: 1, Hook: func(storage.Op, string) { gate.Wait() }}
		disk := storage.Faulty(l.disk, slow)
		l.disk = disk
		source, sink := newTape[int64](1), &ledgerSink{n: &notes{}}
		env := l.env(1)
		env.From(source).UID("tape").Process(&told{N: sink.n}).UID("told").To(Committing[int64, string](sink)).UID("ledger")
		r := l.start(env)
		source.write(0, 1)
		r.settle()
		r.checkpoint()
		expect(t, sink.n.take(), "open, attempt 0, restored false", "prepare 1: [[1]]", "completed 1", "commit [1], try 1")
		gate.Add(1)
		source.write(0, 2)
		r.settle()
		done := r.startCheckpoint()
		r.pass(time.Minute)
		expect(t, sink.n.take(), "prepare 2: [[2]]")
		gate.Done()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		r.settle()
		expect(t, sink.n.take(), "completed 2", "commit [2], try 1")
	})
}

// TestAFailedCheckpointLeavesTheLastGoodOne: the job goes on from it, whatever failed behind it.
func TestAFailedCheckpointLeavesTheLastGoodOne(t *testing.T) {
	inLab(t, func(l *lab) {
		full := &storage.Rule{Op: storage.OpLink, Path: "_metadata", Skip: 1, Err: syscall.ENOSPC}
		l.disk = storage.Faulty(l.disk, full)
		source, n := newTape[int64](1), &notes{}
		broken := false
		env := l.env(1)
		env.Checkpoints().TolerableFailures = -1
		byTens(env.From(source).UID("tape").Map(func(v int64) int64 {
			if broken {
				broken = false
				panic("planted")
			}
			return v
		})).Process(&counting{}).UID("counting").To(note[string](n)).UID("note")
		r := l.start(env)
		source.write(0, 1)
		r.settle()
		r.checkpoint()
		for v := range int64(3) {
			source.write(0, v+2)
			r.settle()
			if _, err := r.handle.TriggerCheckpoint(r.Context(), false); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("got %v", err)
			}
		}
		n.take()
		broken = true
		source.write(0, 5)
		r.pass(time.Minute)
		expect(t, n.take(), "2 is number 2 of key 0", "3 is number 3 of key 0", "4 is number 4 of key 0", "5 is number 5 of key 0")
	})
}

// TestOnlyWhatIsConnectedRestarts: two pipelines that share nothing. One fails and restarts; the other does not notice.
func TestOnlyWhatIsConnectedRestarts(t *testing.T) {
	inLab(t, func(l *lab) {
		calm, wild, n := newTape[int64](1), newTape[int64](1), &notes{}
		broken := true
		env := l.env(1)
		env.From(calm).UID("calm").Process(&told{N: n}).UID("calm told").To(note[int64](n)).UID("calm note")
		env.From(wild).UID("wild").Process(&told{N: n}).UID("wild told").Map(func(v int64) int64 {
			if broken {
				broken = false
				panic("planted")
			}
			return v
		}).To(note[int64](n)).UID("wild note")
		r := l.start(env)
		calm.write(0, 1)
		r.settle()
		r.checkpoint()
		expect(t, n.take()[2:], "1", "completed 1", "completed 1")
		wild.write(0, 100)
		r.pass(time.Minute)
		calm.write(0, 2)
		r.settle()
		expect(t, n.take(), "close", "open, attempt 1, restored true", "100",
			"completed 2", "completed 2", // after a restart a periodic one comes at once
			"2")
	})
}

// TestAPlainSavepointCommitsNothing: it is the user's, and no restart begins from it; what it prepared is committed with the next
// checkpoint.
func TestAPlainSavepointCommitsNothing(t *testing.T) {
	inLab(t, func(l *lab) {
		source, sink := newTape[int64](1), &ledgerSink{n: &notes{}}
		broken := false
		env := l.env(1)
		env.From(source).UID("tape").Map(func(v int64) int64 {
			if broken {
				broken = false
				panic("planted")
			}
			return v
		}).To(Committing[int64, string](sink)).UID("ledger")
		r := l.start(env)
		source.write(0, 1)
		r.settle()
		r.savepoint(checkpoint.Savepoint)
		expect(t, sink.n.take(), "prepare 1: [[1]]")
		source.write(0, 2)
		r.settle()
		r.checkpoint()
		expect(t, sink.n.take(), "prepare 2: [[2]]", "commit [1], try 1", "commit [2], try 1")
		source.write(0, 3)
		r.settle()
		r.savepoint(checkpoint.Savepoint)
		broken = true
		source.write(0, 4)
		r.pass(time.Minute)
		expect(t, sink.n.take(), "prepare 3: [[3]]",
			"commit [1], try 1", "commit [2], try 1", `restore ["state 2"]`, // from checkpoint 2, not from savepoint 3
			"prepare 4: [[3 4]]", "commit [3 4], try 1") // after a restart a periodic one comes at once
	})
}

// TestSuspendIsNoEnd: the job commits and is FINISHED, but nothing has ended: no EndOfInput, no timer fires. Restored, it goes on.
func TestSuspendIsNoEnd(t *testing.T) {
	inLab(t, func(l *lab) {
		source, sink := newTape[int64](1), &ledgerSink{n: &notes{}}
		run := func(env *Env) *running {
			env.From(source).UID("tape").Process(&told{N: sink.n}).UID("told").To(Committing[int64, string](sink)).UID("ledger")
			return l.start(env)
		}
		r := run(l.env(1))
		source.write(0, 1)
		r.settle()
		at := r.savepoint(checkpoint.Suspend)
		expect(t, sink.n.take(), "open, attempt 0, restored false", "prepare 1: [[1]]", "completed 1", "commit [1], try 1", "close")
		source.write(0, 2)
		source.end()
		r = run(l.resumed(1, at))
		r.finish()
		expect(t, sink.n.take(), "commit [1], try 1", `restore ["state 1"]`, "open, attempt 0, restored true",
			"end of input", "prepare 2: [[2 -1]]", "completed 2", "commit [2 -1], try 1", "close")
	})
}

// TestTheEndTakesOneMoreCheckpoint, at once: the interval is a day, and the job ends in less than a minute.
func TestTheEndTakesOneMoreCheckpoint(t *testing.T) {
	inLab(t, func(l *lab) {
		source, sink := newTape[int64](2), &ledgerSink{n: &notes{}}
		env := l.env(1)
		env.From(source).UID("tape").Parallelism(2).To(Committing[int64, string](sink)).UID("ledger").Parallelism(1)
		r := l.start(env)
		source.write(0, 1)
		r.settle()
		begin := time.Now()
		source.end()
		r.finish()
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("the end took %v", took)
		}
		expect(t, sink.n.take(), "prepare 1: [[1]]", "commit [1], try 1")
	})
}

// TestCheckpointsGoOnAfterTasksHaveFinished, and a restart reads no input again whose tasks had.
func TestCheckpointsGoOnAfterTasksHaveFinished(t *testing.T) {
	inLab(t, func(l *lab) {
		short, long, n := newTape[int64](1), newTape[int64](1), &notes{}
		run := func(env *Env) *running {
			byTens(env.From(short).UID("short").Union(env.From(long).UID("long"))).
				Process(&counting{}).UID("counting").To(note[string](n)).Parallelism(1)
			return l.start(env)
		}
		r := run(l.env(2))
		short.write(0, 1)
		short.end()
		r.settle()
		r.checkpoint() // by it the tasks of the short source finish
		long.write(0, 2)
		r.settle()
		r.checkpoint()
		r.checkpoint()
		expect(t, n.take(), "1 is number 1 of key 0", "2 is number 2 of key 0")
		r.kill()
		r = run(l.resumed(3, "latest"))
		long.write(0, 3)
		r.settle()
		expect(t, n.take(), "3 is number 3 of key 0")
		r.checkpoint()
		long.end()
		r.finish()
	})
}

// TestIDsGoOn: an id is never used again, neither after a failure nor by the job that is started from a savepoint.
func TestIDsGoOn(t *testing.T) {
	inLab(t, func(l *lab) {
		source := newTape[int64](1)
		run := func(env *Env) *running {
			env.From(source).UID("tape").To(note[int64](&notes{})).UID("note")
			return l.start(env)
		}
		r := run(l.env(1))
		r.checkpoint()
		r.kill()
		r = run(l.resumed(1, "latest"))
		if id := r.checkpoint(); id != 2 {
			t.Errorf("checkpoint %d behind 1", id)
		}
		at := r.savepoint(checkpoint.Savepoint)
		r.kill()
		r = run(l.resumed(1, at))
		if id := r.checkpoint(); id <= 3 {
			t.Errorf("checkpoint %d behind savepoint 3", id)
		}
	})
}
