package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/fit"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/task"
	"github.com/weirstream/weir/internal/worker"
)

func TestACheckpointHasEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = newRig(t, func(o *Options) { o.Hooks = []Hook{&hook{id: "h", rig: &r}} })
		a := r.mustCheckpoint()
		m, location, err := r.store.Latest()
		if err != nil || location != a.Location || m.ID != a.ID || m.Job != jobID || m.JobName != "test" || m.Kind != snapshot.Checkpoint {
			t.Fatalf("%+v at %s: %v", m, location, err)
		}
		if len(m.Operators) != 2 || len(m.Operators[0].Subtasks) != 2 || string(m.Operators[0].Coordinator.Inline) != "1" {
			t.Errorf("%+v", m.Operators)
		}
		if len(m.Hooks) != 1 || string(m.Hooks[0].State.Inline) != "h's state" {
			t.Errorf("%+v", m.Hooks)
		}
		r.end()
	})
}

func TestHooksTakePart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = newRig(t, func(o *Options) { o.Hooks = []Hook{&hook{id: "h", rig: &r}} })
		r.notes()
		r.mustCheckpoint()
		r.wantNotes("snapshot 1", "hook h triggered 1", "0 triggered", "1 triggered")
		r.say(r.current(2), worker.Changed{State: task.Failed, Err: errors.New("boom")})
		time.Sleep(time.Second)
		got := fmt.Sprint(r.notes())
		if !strings.Contains(got, `hook h restored 1 "h's state"`) {
			t.Errorf("got %v", got)
		}
		r.end()
	})
}

func TestAHookThatFailsFailsTheCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = newRig(t, func(o *Options) { o.Hooks = []Hook{&hook{id: "h", rig: &r, err: errors.New("no connection")}} })
		if _, err := r.checkpoint(); err == nil || !strings.Contains(err.Error(), `master hook "h": no connection`) {
			t.Errorf("got %v", err)
		}
		r.end()
	})
}

func TestAHookThatDoesNotReturnEndsTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		block := make(chan struct{})
		r = newRig(t, func(o *Options) {
			o.CancelTimeout = time.Minute
			o.Hooks = []Hook{&hook{id: "h", rig: &r, block: block}}
		})
		go func() { _, _ = r.checkpoint() }()
		synctest.Wait()
		r.notes()
		r.Cancel()
		time.Sleep(time.Minute)
		if got := r.notes(); !strings.Contains(fmt.Sprint(got), `Master hook "h" did not return 1m0s`) {
			t.Errorf("got %q", got)
		}
		close(block)
		<-r.Done()
	})
}

// B080: while the storage is broken checkpoints fail and are counted, and the job goes on; then they complete again.
func TestStorageFailsForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *Options) { o.Machine.Checkpoints.Interval = time.Second })
		time.Sleep(5 * time.Second)
		before := r.Status().Checkpoints
		r.store.breakWith(errors.New("input/output error"))
		time.Sleep(30 * time.Second)
		broken := r.Status()
		r.store.breakWith(nil)
		time.Sleep(5 * time.Second)
		after := r.Status()
		if before.Completed < 4 || broken.Checkpoints.Failed < 29 || after.Checkpoints.Completed < before.Completed+4 {
			t.Errorf("%d completed before, %d failed, %d completed after", before.Completed, broken.Checkpoints.Failed, after.Checkpoints.Completed)
		}
		if after.Restarts != 0 || after.Status != job.Running {
			t.Errorf("%v after %d restarts", after.Status, after.Restarts)
		}
		r.end()
	})
}

// A storage that cannot say whether it has published is asked until it can.
func TestUncertainPublication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		n := 0
		r.store.onPublish(func() error {
			if n++; n < 4 {
				return fmt.Errorf("time-out: %w", storage.ErrUncertain)
			}
			return nil
		})
		start := time.Now()
		r.mustCheckpoint()
		if n != 4 || time.Since(start) != 3*uncertainPause {
			t.Errorf("%d attempts in %v", n, time.Since(start))
		}
		r.end()
	})
}

// B062: the participants of a checkpoint are fixed before it begins. A crash before all have acknowledged leaves none.
func TestACrashBeforeAllHaveAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.on(func(x base.Exec, body any) bool {
			_, ok := body.(worker.Trigger)
			return ok && x.Task == 1
		})
		go func() {
			time.Sleep(time.Second)
			r.say(r.current(1), worker.Changed{State: task.Failed, Err: errors.New("boom")})
		}()
		if _, err := r.checkpoint(); err == nil {
			t.Error("the checkpoint completes")
		}
		time.Sleep(time.Second)
		if n := r.restored(); n != 0 {
			t.Errorf("restored from %d", n)
		}
		if len(r.store.gone()) != 1 {
			t.Errorf("discarded %q", r.store.gone())
		}
		r.end()
	})
}

// B017: the task ends between plan and trigger. The trigger is refused, and the checkpoint fails at once, not after its time-out.
func TestATriggerIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.on(func(x base.Exec, body any) bool {
			b, ok := body.(worker.Trigger)
			if ok && x.Task == 1 {
				e := checkpoint.TriggerRefused{Exec: x, ID: b.Barrier.ID, Reason: checkpoint.UnknownTask}
				r.Master.Receive(worker.Message{Exec: x, Body: worker.Reported{Event: e}})
			}
			return ok && x.Task == 1
		})
		start := time.Now()
		if _, err := r.checkpoint(); err == nil || time.Since(start) > time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		r.on(nil)
		r.mustCheckpoint()
		r.end()
	})
}

// The files of an acknowledgement that comes when its checkpoint was given up are deleted with the checkpoint, once more.
func TestALateAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *Options) { o.Machine.Checkpoints.Timeout = time.Second })
		var barrier checkpoint.Barrier
		r.on(func(x base.Exec, body any) bool {
			b, ok := body.(worker.Trigger)
			if ok && x.Task == 1 {
				barrier = b.Barrier
			}
			return ok && x.Task == 1
		})
		if _, err := r.checkpoint(); err == nil {
			t.Error("the checkpoint completes")
		}
		synctest.Wait()
		if len(r.store.gone()) != 1 {
			t.Fatalf("discarded %q", r.store.gone())
		}
		r.ack(r.current(1), barrier)
		synctest.Wait()
		if len(r.store.gone()) != 2 || r.store.gone()[0] != r.store.gone()[1] {
			t.Errorf("discarded %q", r.store.gone())
		}
		r.end()
	})
}

// A message of a task's that is lost fails the task at the next one, or at the next beat.
func TestALostMessage(t *testing.T) {
	ways := map[string]func(r *rig, x base.Exec){
		"shown by the next": func(r *rig, x base.Exec) { r.say(x, worker.Asked{Payload: "more"}) },
		"shown by a beat": func(r *rig, x base.Exec) {
			r.Master.Receive(worker.Message{Body: worker.Beat{Links: []worker.Progress{{Exec: x, Sent: 3, State: task.Running}}}})
		},
		"which was its last": func(r *rig, x base.Exec) {
			r.tasks[x].over = true
			r.Master.Receive(worker.Message{Body: worker.Beat{Links: []worker.Progress{{Exec: x, Sent: 3, State: task.Finished}}}})
		},
	}
	for name, show := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil)
				x := r.current(0)
				r.lose(x)
				show(r, x)
				time.Sleep(time.Second)
				var gap *worker.GapError
				if s := r.Status(); s.Restarts != 1 || s.Running != 3 || !errors.As(s.Failures[0].Err, &gap) {
					t.Errorf("%d restarts, %d running, %v", s.Restarts, s.Running, s.Failures)
				}
				r.end()
			})
		})
	}
}

// After a gap only the last word of a task counts.
func TestTheLastWordAfterALostMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		x := r.current(0)
		r.on(func(y base.Exec, body any) bool { return y == x }) // it does not hear that it is to end
		r.lose(x)
		r.say(x, worker.Asked{Payload: "more"})
		time.Sleep(time.Minute)
		if s := r.Status(); s.Status != job.Restarting {
			t.Errorf("the job is %v while the task is there", s.Status)
		}
		r.say(x, worker.Changed{State: task.Finished})
		time.Sleep(time.Second)
		if s := r.Status(); s.Status != job.Running || s.Restarts != 1 {
			t.Errorf("the job is %v", s.Status)
		}
		r.end()
	})
}

// B016: a decline of the attempt before, brought late, fails nothing.
func TestALateDecline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *Options) { o.Machine.Checkpoints.TolerableFailures = 0 })
		old := r.current(2)
		r.say(old, worker.Changed{State: task.Failed, Err: errors.New("boom")})
		time.Sleep(time.Second)
		r.say(old, worker.Reported{Event: checkpoint.TaskDeclined{Exec: old, ID: 1, Reason: checkpoint.Declined}})
		time.Sleep(time.Second)
		if s := r.Status(); s.Restarts != 1 || s.Status != job.Running {
			t.Errorf("%v after %d restarts", s.Status, s.Restarts)
		}
		r.end()
	})
}

func TestSavepointByWhichTheJobStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.on(func(x base.Exec, body any) bool {
			if _, ok := body.(worker.Complete); ok {
				r.say(x, worker.Changed{State: task.Finished})
			}
			return false
		})
		a, err := r.TriggerSavepoint(t.Context(), Savepoint{Kind: checkpoint.Suspend})
		<-r.Done()
		if err != nil || a.Location == "" || r.End().Status != job.Finished || r.End().Savepoint != a.Location {
			t.Errorf("%+v, %v; the job: %+v", a, err, r.End())
		}
		m, location, err := r.store.Latest()
		if err != nil || location != a.Location || m.Kind != snapshot.Suspend {
			t.Errorf("the latest is %v at %s, %v", m, location, err)
		}
		if state, _ := r.store.EndState(); state != "FINISHED" {
			t.Errorf("end state %q", state)
		}
		if _, err := r.TriggerSavepoint(t.Context(), Savepoint{}); !errors.Is(err, ErrEnded) {
			t.Errorf("after the end: %v", err)
		}
		if s := r.Status(); s.Status != job.Finished || s.Finished != 3 {
			t.Errorf("after the end: %+v", s.Report)
		}
	})
}

func TestWhoAskedDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.on(func(_ base.Exec, body any) bool { _, ok := body.(worker.Trigger); return ok })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.TriggerSavepoint(ctx, Savepoint{Kind: checkpoint.Savepoint}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		answer := make(chan error, 1)
		go func() { _, err := r.checkpoint(); answer <- err }()
		synctest.Wait()
		r.end()
		if err := <-answer; err == nil {
			t.Error("a checkpoint of a job that was cancelled completes")
		}
	})
}

func TestARestorePointThatDoesNotFitIsRefused(t *testing.T) {
	r := &rig{t: t, source: &provider{}}
	store := storage.OpenJobMemory(storage.Memory(), jobID, 0)
	m := &snapshot.Metadata{ID: 5, Job: jobID, Kind: snapshot.Savepoint, Operators: []snapshot.Operator{
		{UID: "gone", Name: "gone", Parallelism: 1, Coordinator: &snapshot.Handle{Inline: []byte("1"), Size: 1}, Subtasks: []snapshot.Subtask{{}}}}}
	o := Options{ID: jobID, Graph: r.graph(), Store: store, Worker: r, Recovered: []Point{{Metadata: m, Location: "/s", Keep: true}}}
	_, err := New(o)
	var unmatched *fit.UnmatchedError
	if !errors.As(err, &unmatched) || !strings.Contains(err.Error(), "/s") {
		t.Errorf("got %v", err)
	}
	o.AllowNonRestored = true
	if _, err := New(o); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestErrorsThatNoRestartRepairs(t *testing.T) {
	for err, want := range map[error]bool{
		errors.New("boom"): false,
		fmt.Errorf("reading: %w", storage.ErrDamaged):    true,
		fmt.Errorf("restoring: %w", state.ErrCorrupt):    true,
		fmt.Errorf("in: %w", nonRecoverable{}):           true,
		panicked("boom"):                                 false,
		panicked(fmt.Errorf("in: %w", nonRecoverable{})): true,
	} {
		if got := permanent(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.say(r.current(2), worker.Changed{State: task.Failed, Err: nonRecoverable{}})
		<-r.Done()
		if e := r.End(); e.Status != job.Failed || !errors.Is(e.Err, nonRecoverable{}) || !strings.Contains(e.Err.Error(), `"out" (1/1)`) {
			t.Errorf("%+v", e)
		}
	})
}

type nonRecoverable struct{}

func (nonRecoverable) Error() string        { return "the state was declared differently" }
func (nonRecoverable) NonRecoverable() bool { return true }
