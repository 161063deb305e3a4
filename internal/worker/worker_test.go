package worker

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/task"
)

// fakeTask is a task that does nothing but remember.
type fakeTask struct {
	spec task.Spec
	stop chan struct{}
	once sync.Once
	hang chan struct{} // nil: it ends when it is cancelled; else when this is closed

	mu  sync.Mutex
	got []string // protected by mu
}

func (f *fakeTask) Run() {
	f.spec.Up.Changed(f.spec.Exec, task.Running, nil)
	<-f.stop
	if f.hang != nil {
		<-f.hang
	}
	f.spec.Up.Changed(f.spec.Exec, task.Canceled, nil)
}

func (f *fakeTask) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got = append(f.got, fmt.Sprintf(format, args...))
}

func (f *fakeTask) Trigger(b checkpoint.Barrier)       { f.note("trigger %d", b.ID) }
func (f *fakeTask) Event(payload any)                  { f.note("event %v", payload) }
func (f *fakeTask) Complete(id base.CheckpointID)      { f.note("complete %d", id) }
func (f *fakeTask) Abort(id, latest base.CheckpointID) { f.note("abort %d %d", id, latest) }
func (f *fakeTask) Cancel()                            { f.once.Do(func() { close(f.stop) }) }
func (f *fakeTask) Counters() task.Counters            { return task.Counters{ReadRecords: 7} }

func (f *fakeTask) notes() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.got, ", ")
}

// fixture is a worker with one deployed fake task.
type fixture struct {
	*Worker
	task *fakeTask
	exec base.Exec

	mu  sync.Mutex
	got []Message // protected by mu
}

func (f *fixture) send(m Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got = append(f.got, m)
}

// last is the body of the last message that the master got.
func (f *fixture) last() any {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.got[len(f.got)-1].Body
}

func newFixture(o Options, hang chan struct{}) *fixture {
	f := &fixture{exec: base.Exec{Task: 0, Attempt: base.FirstAttempt(1, 0)}}
	o.Send, o.Limits = f.send, exchange.Limits{Batches: 1, Overdraft: 1}
	o.NewTask = func(s task.Spec) Task {
		f.task = &fakeTask{spec: s, stop: make(chan struct{}), hang: hang}
		return f.task
	}
	f.Worker = New(o)
	f.Deploy([]task.Spec{{Exec: f.exec, Vertex: &graph.Vertex{Name: "total", Parallelism: 1}}})
	synctest.Wait()
	return f
}

func (f *fixture) down(number uint64, body any) {
	f.Receive(Message{Exec: f.exec, Number: number, Body: body})
	synctest.Wait()
}

func TestMessagesReachTheTaskInOrderAndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(Options{}, nil)
		defer f.Close()
		f.down(1, Deliver{"split"})
		f.down(2, Trigger{checkpoint.Barrier{ID: 7}})
		f.down(2, Trigger{checkpoint.Barrier{ID: 7}})
		f.down(1, Deliver{"split"})
		f.down(3, Complete{7})
		f.down(4, Abort{8, 7})
		if got, want := f.task.notes(), "event split, trigger 7, complete 7, abort 8 7"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// B011: an event lost before a trigger must not let the checkpoint complete as if it had arrived.
func TestAGapFailsTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(Options{}, nil)
		defer f.Close()
		f.down(2, Trigger{checkpoint.Barrier{ID: 7}})
		c, ok := f.last().(Changed)
		var gap *GapError
		if !ok || c.State != task.Failed || !errors.As(c.Err, &gap) || !gap.Down || f.task.notes() != "" {
			t.Errorf("got %v, and the task has seen %q", c, f.task.notes())
		}
	})
}

func TestABeatShowsTheLossOfTheLastMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(Options{}, nil)
		defer f.Close()
		f.down(1, Deliver{"split"})
		f.down(0, Beat{Links: []Progress{{Exec: f.exec, Sent: 1}}})
		if c := f.last().(Changed); c.State != task.Running {
			t.Fatalf("the task is %v although nothing is lost", c.State)
		}
		f.down(0, Beat{Links: []Progress{{Exec: f.exec, Sent: 2}}})
		if c := f.last().(Changed); c.State != task.Failed {
			t.Errorf("the task is %v", c.State)
		}
	})
}

func TestCancelReachesATaskWhoseLinkBroke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		f := newFixture(Options{}, hang)
		defer f.Close()
		f.down(5, Complete{1})
		f.down(6, Cancel{})
		close(hang)
		synctest.Wait()
		if c := f.last().(Changed); c.State != task.Failed {
			t.Errorf("the task is %v", c.State)
		}
	})
}

// B017: a trigger for a task that has ended, or never was here, is answered at once.
func TestATriggerForNobodyIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(Options{}, nil)
		defer f.Close()
		f.down(1, Cancel{})
		for i, x := range []base.Exec{f.exec, {Task: 0, Attempt: 9}, {Task: 5}} {
			f.Receive(Message{Exec: x, Number: uint64(2 + i), Body: Trigger{checkpoint.Barrier{ID: 7}}})
			want := Reported{checkpoint.TriggerRefused{Exec: x, ID: 7, Reason: checkpoint.UnknownTask}}
			if got := f.last(); !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		}
	})
}

func TestBeatsSayHowFarTheLinksAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(Options{BeatEvery: time.Second}, nil)
		defer f.Close()
		f.task.spec.Up.Ask(f.exec, "split, please")
		time.Sleep(time.Second)
		synctest.Wait()
		want := Beat{Links: []Progress{{Exec: f.exec, Sent: 2, State: task.Running, Counters: task.Counters{ReadRecords: 7}}}}
		if got := f.last(); !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestATaskThatDoesNotReturnEndsTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		exited := make(chan string, 1)
		f := newFixture(Options{CancelTimeout: 3 * time.Minute, Exit: func(m string) { exited <- m }}, hang)
		defer f.Close()
		f.down(1, Cancel{})
		start := time.Now()
		message := <-exited
		if waited := time.Since(start); waited != 3*time.Minute {
			t.Errorf("after %v", waited)
		}
		for _, part := range []string{`"total" (1/1)`, "3m0s", "task.cancellation.timeout", "fakeTask"} {
			if !strings.Contains(message, part) {
				t.Errorf("the message does not say %q:\n%s", part, message)
			}
		}
		close(hang)
	})
}

func TestATaskThatReturnsInTimeDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(Options{CancelTimeout: time.Minute, Exit: func(m string) { t.Error(m) }}, nil)
		f.down(1, Cancel{})
		time.Sleep(time.Hour)
		f.Close()
		f.Deploy([]task.Spec{{Exec: base.Exec{Task: 0, Attempt: 9}, Vertex: &graph.Vertex{Parallelism: 1}}})
		if c := f.last().(Changed); c.State != task.Failed {
			t.Errorf("a task deployed on a closed worker is %v", c.State)
		}
	})
}

// The seam of the tests of others: messages up can be lost, doubled and held back.
func TestCarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carry := func(m Message, deliver func(Message)) {
			if _, ok := m.Body.(Asked); ok {
				return
			}
			deliver(m)
			deliver(m)
		}
		f := newFixture(Options{Carry: carry}, nil)
		f.task.spec.Up.Ask(f.exec, "lost")
		f.task.spec.Up.Report(checkpoint.TaskEnded{Exec: f.exec})
		f.Close()
		var numbers []uint64
		for _, m := range f.got {
			numbers = append(numbers, m.Number)
		}
		if want := []uint64{1, 1, 3, 3, 4, 4}; !reflect.DeepEqual(numbers, want) {
			t.Errorf("got %v, want %v", numbers, want)
		}
	})
}

func TestSequence(t *testing.T) {
	var s Sequence
	steps := []struct {
		number uint64
		want   Arrival
	}{{1, InOrder}, {2, InOrder}, {2, Again}, {1, Again}, {3, InOrder}, {5, Gap}, {4, Broken}, {6, Broken}}
	for _, step := range steps {
		if got := s.Take(step.number); got != step.want {
			t.Errorf("%d: got %v, want %v", step.number, got, step.want)
		}
	}
	if s.Reached(3) != Broken {
		t.Error("a broken link is whole again")
	}
}
