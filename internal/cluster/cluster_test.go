package cluster

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// job is a job of the program on a file system, with settings given as "key=value".
func (p *program) job(t *testing.T, fs storage.FS, settings ...string) Job {
	t.Helper()
	layer := config.Layer{}
	layer.Set(config.CheckpointInterval.Key, 20*time.Millisecond, "test")
	layer.Set(config.CheckpointDir.Key, "/checkpoints", "test")
	layer.Set(config.SavepointDir.Key, "/savepoints", "test")
	layer.Set(config.BackoffJitter.Key, 0.0, "test")
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		layer.Set(key, value, "test")
	}
	c, err := config.Build(layer)
	if err != nil {
		t.Fatal(err)
	}
	return Job{Graph: p.graph(2), Config: c, FS: fs, Log: slog.New(slog.DiscardHandler), Exit: func(m string) { t.Error(m) }}
}

const latestSetting = "execution.state-recovery.path=latest"

func wantDone(t *testing.T, p *program, r Result, err error) {
	t.Helper()
	if err == nil {
		err = p.ledger.check(numbersTotal)
	}
	if err != nil || r.Status != "FINISHED" {
		t.Fatalf("%+v, %v", r, err)
	}
}

func TestAJobRunsToItsEnd(t *testing.T) {
	for name, settings := range map[string][]string{
		"directory":           nil,
		"memory":              {"execution.checkpointing.storage=jobmanager"},
		"without checkpoints": {"execution.checkpointing.interval=0"},
		"at least once":       {"execution.checkpointing.mode=AT_LEAST_ONCE"},
		"two at a time":       {"execution.checkpointing.max-concurrent-checkpoints=2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &program{ledger: newLedger()}
				r, err := Run(t.Context(), p.job(t, storage.Memory(), settings...))
				if name == "without checkpoints" { // nothing commits the writer's transactions but checkpoints
					if err != nil || r.Status != "FINISHED" {
						t.Fatalf("%+v, %v", r, err)
					}
					return
				}
				wantDone(t, p, r, err)
			})
		})
	}
}

func TestAFailureLeavesNoTrace(t *testing.T) {
	for _, where := range []string{"count", "commit"} {
		for _, nth := range []int{1, 3, 100, 300} {
			synctest.Test(t, func(t *testing.T) {
				p := &program{ledger: newLedger(), trouble: once(where, nth, errBoom)}
				r, err := Run(t.Context(), p.job(t, storage.Memory()))
				wantDone(t, p, r, err)
				if want := 1; r.Restarts != want && !(where == "commit" && nth > 3) {
					t.Errorf("%s %d: %d restarts", where, nth, r.Restarts)
				}
			})
		}
	}
}

func TestAJobThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{ledger: newLedger(), trouble: once("count", 50, errBoom)}
		r, err := Run(t.Context(), p.job(t, storage.Memory(), "restart-strategy.type=none"))
		if !errors.Is(err, errBoom) || r.Status != "FAILED" {
			t.Fatalf("%+v, %v", r, err)
		}
		for _, part := range []string{`"numbers"`, `"count"`, "restart-strategy.type"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the error does not say %q: %v", part, err)
			}
		}
	})
}

// A job whose context ends is cancelled; its checkpoints stay, and -s latest goes on from them.
func TestCancelAndGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fs := &program{ledger: newLedger()}, storage.Memory()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("out of patience"))
		defer cancel()
		r, err := Run(ctx, p.job(t, fs))
		if r.Status != "CANCELED" || !errors.Is(err, ErrCanceled) || !strings.Contains(err.Error(), "out of patience") {
			t.Fatalf("%+v, %v", r, err)
		}
		if n := p.ledger.len(); n == 0 || n == numbersTotal {
			t.Fatalf("%d numbers are committed", n)
		}
		r, err = Run(t.Context(), p.job(t, fs, latestSetting))
		wantDone(t, p, r, err)
		_, err = Run(t.Context(), p.job(t, fs, latestSetting))
		if !errors.Is(err, storage.ErrNone) || !strings.Contains(err.Error(), "has FINISHED in its run 2") {
			t.Errorf("latest of a finished job: %v", err)
		}
	})
}

// B035: a bounded job does not wait for the next period: its final checkpoint comes when its data ends.
func TestTheFinalCheckpointDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{ledger: newLedger()}
		r, err := Run(t.Context(), p.job(t, storage.Memory(), "execution.checkpointing.interval=10min"))
		wantDone(t, p, r, err)
		if r.Duration > 5*time.Second {
			t.Errorf("it took %v", r.Duration)
		}
	})
}

func TestRetentionOnCancel(t *testing.T) {
	for retention, kept := range map[string]bool{"RETAIN_ON_CANCELLATION": true, "DELETE_ON_CANCELLATION": false, "NO_EXTERNALIZED_CHECKPOINTS": false} {
		synctest.Test(t, func(t *testing.T) {
			p, fs := &program{ledger: newLedger()}, storage.Memory()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			j := p.job(t, fs, "execution.checkpointing.externalized-checkpoint-retention="+retention)
			if _, err := Run(ctx, j); !errors.Is(err, ErrCanceled) {
				t.Error(err)
			}
			_, err := Run(ctx, p.job(t, fs, latestSetting))
			if none := errors.Is(err, storage.ErrNone); none == kept {
				t.Errorf("%s: %v", retention, err)
			}
		})
	}
}

func TestWhereTheJobStartsFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, done := storage.Memory(), context.WithoutCancel(t.Context())
		p := &program{ledger: newLedger()}
		if _, err := Run(done, p.job(t, fs, latestSetting)); !errors.Is(err, storage.ErrNone) || !strings.Contains(err.Error(), "latest-or-start") {
			t.Errorf("latest of a job that never ran: %v", err)
		}
		canceled, cancel := context.WithCancel(done)
		cancel()
		orStart := "execution.state-recovery.path=latest-or-start"
		if _, err := Run(canceled, p.job(t, storage.Memory(), orStart)); !errors.Is(err, ErrCanceled) {
			t.Errorf("latest-or-start of a job that never ran: %v", err)
		}
		if _, err := Run(canceled, p.job(t, fs, orStart)); !errors.Is(err, ErrCanceled) {
			t.Errorf("latest-or-start of a job that was refused once: %v", err)
		}
		if _, err := Run(done, p.job(t, fs, "execution.state-recovery.path=/nowhere")); err == nil || !strings.Contains(err.Error(), "/nowhere") {
			t.Errorf("a path that is not there: %v", err)
		}
	})
}

func TestOneOwnerOfADirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fs := &program{ledger: newLedger(), endless: true}, storage.Memory()
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { _, err := Run(ctx, p.job(t, fs)); first <- err }()
		time.Sleep(50 * time.Millisecond)
		var locked *storage.LockedError
		if _, err := Run(t.Context(), p.job(t, fs)); !errors.As(err, &locked) {
			t.Errorf("got %v", err)
		}
		other := p.job(t, fs)
		other.ID = base.JobID(strings.Repeat("a", 32))
		go func() { time.Sleep(100 * time.Millisecond); cancel() }()
		if r, err := Run(ctx, other); !errors.Is(err, ErrCanceled) || r.ID != other.ID {
			t.Errorf("two jobs at once: %+v, %v", r, err)
		}
		if err := <-first; !errors.Is(err, ErrCanceled) {
			t.Error(err)
		}
	})
}

// stopped runs the program, and stops it after 100 ms with a savepoint.
func stopped(t *testing.T, p *program, fs storage.FS, s jobmaster.Savepoint, settings ...string) (Result, jobmaster.Answer, error) {
	t.Helper()
	j := p.job(t, fs, settings...)
	answer := make(chan jobmaster.Answer, 1)
	j.Started = func(h *Handle) {
		go func() {
			time.Sleep(100 * time.Millisecond)
			a, err := h.TriggerSavepoint(t.Context(), s)
			if err != nil {
				t.Error(err)
			}
			answer <- a
		}()
	}
	r, err := Run(t.Context(), j)
	return r, <-answer, err
}

// A2: the savepoint by which a job stops has committed, so the latest is it. B059: a failure before the first checkpoint of the
// new run goes back to it.
func TestStopAndGoOn(t *testing.T) {
	for name, path := range map[string]string{"by latest": "latest", "by path": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, fs := &program{ledger: newLedger()}, storage.Memory()
				r, a, err := stopped(t, p, fs, jobmaster.Savepoint{Kind: checkpoint.Suspend})
				if err != nil || r.Status != "FINISHED" || r.Savepoint != a.Location || !strings.HasPrefix(a.Location, "/savepoints/") {
					t.Fatalf("%+v, %+v, %v", r, a, err)
				}
				before := p.ledger.len()
				if path == "" {
					path = a.Location
				}
				p.trouble = once("count", 3, errBoom)
				r, err = Run(t.Context(), p.job(t, fs, "execution.state-recovery.path="+path, "execution.checkpointing.interval=1s"))
				wantDone(t, p, r, err)
				if r.Restarts != 1 || before == 0 || before == numbersTotal {
					t.Errorf("%d restarts; %d were committed by the savepoint", r.Restarts, before)
				}
			})
		})
	}
}

// A6: a drained savepoint is an ended job: restored, it is FINISHED at once.
func TestDrainIsTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fs := &program{ledger: newLedger(), endless: true}, storage.Memory()
		r, _, err := stopped(t, p, fs, jobmaster.Savepoint{Kind: checkpoint.Drain})
		if err != nil || r.Status != "FINISHED" {
			t.Fatalf("%+v, %v", r, err)
		}
		before := p.ledger.len()
		start := time.Now()
		r, err = Run(t.Context(), p.job(t, fs, latestSetting))
		if err != nil || r.Status != "FINISHED" || p.ledger.len() != before || time.Since(start) > time.Second {
			t.Errorf("%+v after %v, %v; %d were committed, now %d", r, time.Since(start), err, before, p.ledger.len())
		}
	})
}

func TestCancelWithSavepoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fs := &program{ledger: newLedger()}, storage.Memory()
		r, a, err := stopped(t, p, fs, jobmaster.Savepoint{Kind: checkpoint.Savepoint, Cancel: true})
		if r.Status != "CANCELED" || !errors.Is(err, ErrCanceled) {
			t.Fatalf("%+v, %v", r, err)
		}
		if m, _, err := storage.ReadMetadata(fs, a.Location); err != nil || m.ID != a.ID {
			t.Errorf("the savepoint: %v", err)
		}
	})
}

func TestUserCodeThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		p := &program{ledger: newLedger(), trouble: func(where string, v int64) error {
			if v == 60 {
				<-block
			}
			return nil
		}}
		exited := make(chan string, 1)
		j := p.job(t, storage.Memory(), "task.cancellation.timeout=1min")
		j.Exit = func(m string) { exited <- m; close(block) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := Run(ctx, j); !errors.Is(err, ErrCanceled) {
			t.Error(err)
		}
		if m := <-exited; !strings.Contains(m, `Task "count"`) || !strings.Contains(m, "TestUserCodeThatDoesNotReturn") {
			t.Errorf("the message names neither the task nor what it hangs in:\n%s", m)
		}
	})
}

// Every kind of message between master and tasks is lost, doubled or held back, some of each: B011, B016, B106, B147. The counts
// are exact all the same.
func TestMessagesAreLostDoubledAndLate(t *testing.T) {
	restarts := 0
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			p := &program{ledger: newLedger()}
			j := p.job(t, storage.Memory(), "restart-strategy.exponential-delay.max-backoff=200ms")
			faults := &faults{rng: rand.New(rand.NewPCG(seed, 7)), left: 12}
			j.Carry = faults.carry
			r, err := Run(t.Context(), j)
			if err != nil || r.Status != "FINISHED" {
				t.Fatalf("seed %d: %+v, %v", seed, r, err)
			}
			if err := p.ledger.check(numbersTotal); err != nil {
				t.Fatalf("seed %d, %d restarts: %v", seed, r.Restarts, err)
			}
			restarts += r.Restarts
		})
	}
	if restarts < 30 {
		t.Errorf("only %d restarts: nothing was lost", restarts)
	}
}

// faults is a Carrier that loses, doubles and holds back some messages.
type faults struct {
	mu   sync.Mutex
	rng  *rand.Rand // protected by mu
	left int        // protected by mu
}

func (f *faults) carry(m worker.Message, deliver func(worker.Message)) {
	if _, beat := m.Body.(worker.Beat); beat {
		deliver(m)
		return
	}
	f.mu.Lock()
	what := f.rng.IntN(100)
	if f.left == 0 {
		what = 100
	} else if what < 6 {
		f.left--
	}
	late := time.Duration(f.rng.IntN(300)) * time.Millisecond
	f.mu.Unlock()
	switch {
	case what < 2: // lost
	case what < 4:
		deliver(m)
		time.AfterFunc(late, func() { deliver(m) })
	case what < 6:
		time.AfterFunc(late, func() { deliver(m) })
	default:
		deliver(m)
	}
}

// The process dies, with what was not synced; the next one goes on. B106: also between a checkpoint's completion and its commits.
func TestCrashesOfTheProcess(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 9))
			fs, p := storage.Memory(), &program{ledger: newLedger()}
			for lives := 1; ; lives++ {
				crashed, after, err := p.liveUntilCrash(t, fs, rng, time.Duration(30+rng.IntN(60))*time.Millisecond)
				if err == nil {
					if err := p.ledger.check(numbersTotal); err != nil || lives < 3 {
						t.Fatalf("seed %d, %d lives: %v", seed, lives, err)
					}
					return
				}
				if !errors.Is(err, ErrCanceled) || lives > 50 {
					t.Fatalf("seed %d, life %d: %v", seed, lives, err)
				}
				fs, p = crashed, after
			}
		})
	}
}

// liveUntilCrash runs the program, and returns the world as a crash some time later leaves it. What it does after that is in a
// world of its own. A nil error: the job was FINISHED before.
func (p *program) liveUntilCrash(t *testing.T, fs *storage.MemFS, rng *rand.Rand, life time.Duration) (*storage.MemFS, *program, error) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := Run(ctx, p.job(t, fs, "execution.state-recovery.path=latest-or-start"))
		ended <- err
	}()
	select {
	case err := <-ended:
		return nil, nil, err
	case <-time.After(life):
	}
	after := &program{ledger: p.ledger.clone()}
	crashed := fs.CrashClone(rng)
	cancel()
	<-ended
	return crashed, after, ErrCanceled
}
