package jobmaster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/task"
	"github.com/weirstream/weir/internal/worker"
)

func TestTheLifeOfAnEnumerator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.wantNotes(`new ""`, "start", "added 0", "added 1")
		r.say(r.current(1), worker.Asked{Payload: "a split"})
		r.wantNotes("1 asks a split")
		r.end()
		r.wantNotes("close")
	})
}

// Questions of a reader that is still opening wait until it is there, or their answer would go to a reader that is not.
func TestEarlyQuestionsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.notes()
		runner := r.runners[0]
		delete(runner.readers, 1)
		runner.handle(1, "a split")
		runner.handle(1, "another")
		r.wantNotes()
		runner.added(1)
		r.wantNotes("added 1", "1 asks a split", "1 asks another")
		r.end()
	})
}

func TestEventsReachTheReaderInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *Options) {
			o.Graph.Vertices[0].Head().Coordinator.(*provider).do = func(e *enumerator, what string) error {
				if what == "1 asks for more" {
					e.Send(1, "split a")
					e.Send(1, "split b")
				}
				return nil
			}
		})
		r.notes()
		r.say(r.current(1), worker.Asked{Payload: "for more"})
		r.wantNotes("1 asks for more", "1 gets split a", "1 gets split b")
		r.end()
	})
}

// Design 4: an enumerator's event after its snapshot follows the trigger on the same link.
func TestEventsAfterTheSnapshotFollowTheTrigger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = newRig(t, func(o *Options) {
			o.Hooks = []Hook{&hook{id: "h", rig: &r}}
			o.Graph.Vertices[0].Head().Coordinator.(*provider).do = func(e *enumerator, what string) error {
				if what == "snapshot 1" {
					e.Send(0, "before")
					e.Run(func(context.Context) (any, error) { return nil, nil }, func(any, error) error {
						e.Send(0, "after")
						return nil
					})
				}
				return nil
			}
		})
		r.notes()
		r.mustCheckpoint()
		got := r.notes()
		i := func(what string) int { return slices.Index(got, what) }
		if !(i("snapshot 1") < i("0 gets before") && i("0 gets before") < i("0 triggered") && i("0 triggered") < i("0 gets after")) {
			t.Errorf("got %q", got)
		}
		r.end()
	})
}

// B010: an enumerator whose snapshot fails fails that checkpoint at once, with its text; the next one completes.
func TestASnapshotThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.mustCheckpoint()
		r.source.setDo(r, "snapshot 2", func() error { return errors.New("the bucket is gone") })
		start := time.Now()
		_, err := r.checkpoint()
		if err == nil || !strings.Contains(err.Error(), "the bucket is gone") || !strings.Contains(err.Error(), `"numbers"`) || time.Since(start) > time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		r.mustCheckpoint()
		if n := r.Status().Restarts; n != 0 {
			t.Errorf("%d restarts", n)
		}
		r.end()
	})
}

// B010, with a panic: the enumerator may be broken, so the job restarts with a new one.
func TestASnapshotThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.mustCheckpoint()
		r.source.setDo(r, "snapshot 2", func() error { panic("nil map") })
		_, err := r.checkpoint()
		if err == nil || !strings.Contains(err.Error(), "nil map") {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Second)
		r.mustCheckpoint()
		s := r.Status()
		if s.Restarts != 1 || !strings.Contains(s.Failures[0].Error(), "nil map") || !strings.Contains(s.Failures[0].Error(), `"numbers"`) {
			t.Errorf("%d restarts, %v", s.Restarts, s.Failures)
		}
		r.end()
	})
}

// B004: a checkpoint is aborted while the enumerator's snapshot is under way; the next one completes, and no event is held for ever.
func TestAnAbortOvertakesTheSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *Options) { o.Machine.Checkpoints.Timeout = time.Second })
		block := make(chan struct{})
		r.source.setDo(r, "snapshot 1", func() error { <-block; return nil })
		if _, err := r.checkpoint(); err == nil || !strings.Contains(err.Error(), "expired") {
			t.Errorf("got %v", err)
		}
		close(block)
		r.notes()
		r.source.setDo(r, "0 asks split", nil)
		r.runners[0].post(errand{do: func() error { r.runners[0].Send(0, "split"); return nil }, abandon: nothing})
		r.wantNotes("0 gets split")
		if a := r.mustCheckpoint(); a.ID != 2 {
			t.Errorf("checkpoint %d", a.ID)
		}
		r.end()
	})
}

// B013: a failure before the first checkpoint makes the enumerator anew, empty; after one, from its state.
func TestResetOfTheEnumerator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.notes()
		fail := func() {
			r.say(r.current(2), worker.Changed{State: task.Failed, Err: errors.New("boom")})
			time.Sleep(time.Second)
		}
		fail()
		r.wantNotes("close", `new ""`, "start", "added 0", "added 1")
		r.mustCheckpoint()
		r.notes()
		fail()
		r.wantNotes("close", `new "1"`, "start", "added 0", "added 1")
		if n := r.restored(); n != 1 {
			t.Errorf("restored from %d", n)
		}
		r.end()
	})
}

// What an enumerator that was replaced still sends reaches nobody: the splits are its successor's to give.
func TestAReplacedEnumeratorIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		old := r.runners[0]
		block := make(chan struct{})
		old.post(errand{abandon: nothing, do: func() error { <-block; old.Send(0, "stale"); return errors.New("stale") }})
		synctest.Wait()
		r.say(r.current(2), worker.Changed{State: task.Failed, Err: errors.New("boom")})
		time.Sleep(time.Second)
		r.notes() // the new one is not made before the old one has returned
		close(block)
		r.wantNotes("close", `new ""`, "start", "added 0", "added 1")
		if n := r.Status().Restarts; n != 1 {
			t.Errorf("%d restarts", n)
		}
		r.end()
	})
}

func TestAnEnumeratorThatFails(t *testing.T) {
	for _, what := range []string{`new ""`, "start", "added 1", "0 asks more"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failed := false
				r := newRig(t, func(o *Options) {
					o.Graph.Vertices[0].Head().Coordinator.(*provider).do = func(_ *enumerator, w string) error {
						if w == what && !failed {
							failed = true
							return errors.New("no such bucket")
						}
						return nil
					}
				})
				time.Sleep(time.Second)
				r.say(r.current(0), worker.Asked{Payload: "more"})
				time.Sleep(time.Second)
				s := r.Status()
				if s.Restarts != 1 || s.Status != job.Running || !strings.Contains(s.Failures[0].Error(), `the coordinator of source "numbers"`) {
					t.Errorf("%v after %d restarts: %v", s.Status, s.Restarts, s.Failures)
				}
				r.end()
			})
		})
	}
}

func TestSendToAReaderThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.runners[0].post(errand{abandon: nothing, do: func() error { r.runners[0].Send(7, "split"); return nil }})
		time.Sleep(time.Second)
		if s := r.Status(); s.Restarts != 1 || !strings.Contains(s.Failures[0].Error(), "subtask 7, which is not there: those that are there are [0 1]") {
			t.Errorf("%v", s.Failures)
		}
		r.end()
	})
}

func TestRunWorksElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		runner := r.runners[0]
		done := make(chan any, 2)
		runner.post(errand{abandon: nothing, do: func() error {
			runner.Run(func(context.Context) (any, error) { time.Sleep(time.Hour); return "found", nil },
				func(v any, err error) error { done <- v; return err })
			runner.Run(func(context.Context) (any, error) { panic("bad path") },
				func(_ any, err error) error { done <- err; return nil })
			return nil
		}})
		if err, _ := (<-done).(error); err == nil || !strings.Contains(err.Error(), "bad path") {
			t.Errorf("got %v", err)
		}
		r.mustCheckpoint() // the enumerator is not held up
		if v := <-done; v != "found" {
			t.Errorf("got %v", v)
		}
		r.end()
	})
}

func TestAnEnumeratorThatDoesNotReturnEndsTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *Options) { o.CancelTimeout = 3 * time.Minute })
		r.notes()
		block := make(chan struct{})
		r.runners[0].post(errand{abandon: nothing, do: func() error { <-block; return nil }})
		synctest.Wait()
		r.Cancel()
		time.Sleep(3 * time.Minute)
		if got := r.notes(); len(got) != 1 || !strings.Contains(got[0], `The coordinator of source "numbers" did not return 3m0s`) {
			t.Errorf("got %q", got)
		}
		close(block)
		<-r.Done()
	})
}
