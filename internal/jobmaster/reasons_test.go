package jobmaster

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/task"
	"github.com/weirstream/weir/internal/worker"
)

// Flink has 24 reasons why a checkpoint fails. Each that can occur in one process is produced here by what causes it, and told with its
// message; five are counted. The others:
//
//   - PERIODIC_SCHEDULER_SHUTDOWN: the coordinator takes its own requests out of the queue when it stops the schedule.
//   - BLOCKING_OUTPUT_EXIST: no edge is blocking.
//   - CHECKPOINT_DECLINED: an error of the synchronous part fails the task, and so the checkpoint (TASK_FAILURE), before it could decline.
//   - CHANNEL_STATE_SHARED_STREAM_EXCEPTION: subtasks share no file.
//   - TASK_CHECKPOINT_FAILURE, CHECKPOINT_DECLINED_TASK_NOT_READY: a worker has no step between taking a trigger and giving it to the
//     task, and a task takes it in any state.
//   - CHECKPOINT_DECLINED_SUBSUMED, _ON_CANCELLATION_BARRIER, _INPUT_END_OF_STREAM are the barrier handler's: they are produced in package
//     checkpoint, and come to the master as here CHECKPOINT_ASYNC_EXCEPTION does.

// impossible are those that cannot occur in one process.
var impossible = []checkpoint.Reason{checkpoint.PeriodicSchedulerShutdown, checkpoint.BlockingOutput, checkpoint.Declined,
	checkpoint.ChannelStateShared, checkpoint.TaskCheckpointFailure, checkpoint.DeclinedNotReady}

// reasonLog collects the reasons that the log tells.
type reasonLog struct {
	mu      sync.Mutex
	reasons []string // protected by mu
}

func (l *reasonLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *reasonLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *reasonLog) WithGroup(string) slog.Handler            { return l }

func (l *reasonLog) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "reason" {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.reasons = append(l.reasons, a.Value.String())
		}
		return true
	})
	return nil
}

func (l *reasonLog) has(message string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.reasons, message)
}

// ask asks for a checkpoint, and does not wait.
func (r *rig) askFor(s *Savepoint) {
	go func() {
		if s != nil {
			_, _ = r.TriggerSavepoint(r.t.Context(), *s)
			return
		}
		_, _ = r.checkpoint()
	}()
	synctest.Wait()
}

// sealed has a checkpoint that is being published until release is called: what is asked for meanwhile waits, whatever becomes of the tasks.
func (r *rig) sealed() (release func()) {
	publishing := make(chan struct{})
	r.store.onPublish(func() error { <-publishing; return nil })
	r.askFor(nil)
	return func() { close(publishing) }
}

// silent has the tasks not answer triggers.
func (r *rig) silent() {
	r.on(func(_ base.Exec, body any) bool { _, ok := body.(worker.Trigger); return ok })
}

func TestEveryReason(t *testing.T) {
	produced := slices.Clone(impossible)
	for _, c := range []struct {
		reason  checkpoint.Reason
		change  func(*Options)
		produce func(r *rig)
	}{
		{checkpoint.TooManyRequests, nil, func(r *rig) {
			r.silent()
			for range 1002 {
				go func() { _, _ = r.checkpoint() }()
			}
		}},
		{checkpoint.MinimumPause, func(o *Options) {
			o.Machine.Checkpoints.Interval, o.Machine.Checkpoints.MinPause = time.Second, time.Second
			o.Machine.Checkpoints.FirstDelay = time.Second
		}, func(r *rig) {
			time.Sleep(500 * time.Millisecond)
			r.mustCheckpoint()
			time.Sleep(time.Second)
		}},
		{checkpoint.NotAllTasksRunning, nil, func(r *rig) {
			r.on(func(x base.Exec, body any) bool { _, ok := body.(worker.Cancel); return ok && x.Task == 0 })
			r.say(r.current(2), worker.Changed{State: task.Failed, Err: errors.New("boom")})
			r.askFor(nil)
			r.on(nil)
			r.say(r.current(0), worker.Changed{State: task.Canceled})
		}},
		{checkpoint.IOFailure, nil, func(r *rig) {
			r.store.breakWith(errors.New("no space left on device"))
			r.askFor(nil)
		}},
		{checkpoint.AsyncFailure, nil, func(r *rig) {
			r.silent()
			r.askFor(nil)
			x := r.current(2)
			r.say(x, worker.Reported{Event: checkpoint.TaskDeclined{Exec: x, ID: 1, Reason: checkpoint.AsyncFailure, Err: errors.New("broken pipe")}})
		}},
		{checkpoint.Expired, func(o *Options) { o.Machine.Checkpoints.Timeout = time.Second }, func(r *rig) {
			r.silent()
			r.askFor(nil)
			time.Sleep(2 * time.Second)
		}},
		{checkpoint.Subsumed, func(o *Options) { o.Machine.Checkpoints.MaxConcurrent = 2 }, func(r *rig) {
			r.on(func(_ base.Exec, body any) bool { b, ok := body.(worker.Trigger); return ok && b.Barrier.ID == 1 })
			r.askFor(nil)
			r.mustCheckpoint()
		}},
		{checkpoint.DeclinedClosing, func(o *Options) { o.Graph.Vertices[0].Nodes[0].Union = true }, func(r *rig) {
			r.on(func(x base.Exec, body any) bool {
				b, ok := body.(worker.Trigger)
				if ok && x.Task == 1 { // it is at its end, the other one is not
					v, _ := r.options.Graph.Locate(x.Task)
					part := snapshot.OperatorPart{UID: v.Nodes[0].StateID(), Subtask: snapshot.Subtask{Index: 1, Ended: true}}
					state := &snapshot.TaskState{Operators: []snapshot.OperatorPart{part}}
					r.say(x, worker.Reported{Event: checkpoint.TaskAcked{Exec: x, ID: b.Barrier.ID, State: state, Ended: true}})
					return true
				}
				return false
			})
			r.askFor(nil)
		}},
		{checkpoint.DeclinedSubsumed, nil, declinedBy(checkpoint.DeclinedSubsumed)},
		{checkpoint.DeclinedOnCancel, nil, declinedBy(checkpoint.DeclinedOnCancel)},
		{checkpoint.DeclinedEndOfStream, nil, declinedBy(checkpoint.DeclinedEndOfStream)},
		{checkpoint.Shutdown, nil, func(r *rig) {
			defer r.sealed()()
			r.askFor(nil)
			r.Cancel()
			synctest.Wait()
		}},
		{checkpoint.Suspended, nil, func(r *rig) {
			r.silent()
			r.askFor(nil)
			r.askFor(&Savepoint{Kind: checkpoint.Savepoint, Cancel: true})
		}},
		{checkpoint.FailoverRegion, nil, func(r *rig) {
			defer r.sealed()()
			r.askFor(nil)
			r.say(r.current(2), worker.Changed{State: task.Failed, Err: errors.New("boom")})
			time.Sleep(time.Second)
		}},
		{checkpoint.TaskFailure, nil, func(r *rig) {
			r.silent()
			r.askFor(nil)
			r.say(r.current(0), worker.Changed{State: task.Finished})
		}},
		{checkpoint.UnknownTask, nil, func(r *rig) {
			r.on(func(x base.Exec, body any) bool {
				b, ok := body.(worker.Trigger)
				if ok && x.Task == 1 {
					e := checkpoint.TriggerRefused{Exec: x, ID: b.Barrier.ID, Reason: checkpoint.UnknownTask}
					r.Master.Receive(worker.Message{Exec: x, Body: worker.Reported{Event: e}})
					return true
				}
				return false
			})
			r.askFor(nil)
		}},
		{checkpoint.FinalizeFailure, nil, func(r *rig) {
			r.store.onPublish(func() error { return errors.New("no space left on device") })
			r.askFor(nil)
		}},
		{checkpoint.TriggerFailure, nil, func(r *rig) {
			r.source.setDo(r, "snapshot 1", func() error { return errors.New("no state today") })
			r.askFor(nil)
		}},
	} {
		produced = append(produced, c.reason)
		t.Run(c.reason.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &reasonLog{}
				r := newRig(t, func(o *Options) {
					o.Log = slog.New(log)
					o.Machine.Checkpoints.TolerableFailures = 10
					if c.change != nil {
						c.change(o)
					}
				})
				c.produce(r)
				synctest.Wait()
				if !log.has(c.reason.Message()) {
					t.Errorf("the log tells %.500q", log.reasons)
				}
				if counted := r.Status().Report.Checkpoints.Failures == 1; counted != c.reason.Counted() {
					t.Errorf("counted: %v", counted)
				}
				r.end()
			})
		})
	}
	for reason := checkpoint.NoReason + 1; reason.Message() != ""; reason++ {
		if !slices.Contains(produced, reason) {
			t.Errorf("nobody has produced %v", reason)
		}
	}
}

// declinedBy is a decline by a task's barrier handler.
func declinedBy(reason checkpoint.Reason) func(r *rig) {
	return func(r *rig) {
		r.silent()
		r.askFor(nil)
		x := r.current(2)
		r.say(x, worker.Reported{Event: checkpoint.TaskDeclined{Exec: x, ID: 1, Reason: reason}})
	}
}

// An I/O error of an enumerator or a hook is one of the checkpoint's: it is counted, whatever it is wrapped in. (Flink: any IOException
// in the chain.) A restart of the job repairs nothing else.
func TestIOErrorsOfEnumeratorsAndHooksAreCounted(t *testing.T) {
	for what, err := range map[string]error{
		"a path": fmt.Errorf("listing: %w", &iofs.PathError{Op: "open", Path: "/f", Err: iofs.ErrNotExist}), "a connection": syscall.ECONNREFUSED} {
		for _, who := range []string{"enumerator", "hook"} {
			synctest.Test(t, func(t *testing.T) {
				var r *rig
				h := &hook{id: "h", rig: &r}
				r = newRig(t, func(o *Options) { o.Hooks, o.Machine.Checkpoints.TolerableFailures = []Hook{h}, 10 })
				if who == "hook" {
					h.err = err
				} else {
					r.source.setDo(r, "snapshot 1", func() error { return err })
				}
				_, got := r.checkpoint()
				if d := (*checkpoint.DeclineError)(nil); !errors.As(got, &d) || d.Reason != checkpoint.IOFailure || !errors.Is(got, err) ||
					r.Status().Report.Checkpoints.Failures != 1 || strings.Count(got.Error(), "IO-problem") != 1 {
					t.Errorf("%s of the %s: %v", what, who, got)
				}
				r.end()
			})
		}
	}
}

// While a source works off a backlog, checkpoints come at the interval for that, or not at all; when it has done, the next one comes no
// later than the usual interval from then.
func TestTheIntervalDuringBacklog(t *testing.T) {
	for _, backlog := range []time.Duration{10 * time.Second, -1} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(o *Options) {
				o.Machine.Checkpoints.Interval, o.Machine.Checkpoints.BacklogInterval = time.Second, backlog
			})
			took := func(d time.Duration) int {
				before := r.Status().Checkpoints.Completed
				time.Sleep(d)
				synctest.Wait()
				return r.Status().Checkpoints.Completed - before
			}
			usual := took(10 * time.Second)
			r.runners[0].Backlog(true)
			synctest.Wait()
			took(2 * time.Second) // the one that was due already
			during := took(30 * time.Second)
			r.runners[0].Backlog(false)
			first, after := took(time.Second), took(9*time.Second)
			want := 3
			if backlog < 0 {
				want = 0
			}
			if usual != 10 || during != want || first != 1 || after != 9 {
				t.Errorf("%v: %d in 10 s, %d in 30 s of backlog, %d in the second after, %d in the nine behind", backlog, usual, during, first, after)
			}
			r.end()
		})
	}
}
