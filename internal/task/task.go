package task

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/state"
)

// Task is one execution of a subtask. New makes it, Run runs it; the other methods post mails and may be called by any
// goroutine at any time.
type Task struct {
	spec   Spec
	ctx    context.Context
	cancel context.CancelFunc
	box    *mailbox
	start  time.Time // where the handler's clock begins

	canceled atomic.Bool
	awake    atomic.Bool  // the source has something again
	records  atomic.Int64 // taken by the head
	uploads  sync.WaitGroup

	// Below, only the task's goroutine.
	chain    chain
	handler  *checkpoint.BarrierHandler
	valve    *valve
	now      checkpoint.Time // read once a turn of the loop, and for each event of the handler
	turned   checkpoint.Time // the turn began
	wall     int64
	doing    string // the operator whose code runs
	loop     loopState
	events   []checkpoint.HandlerEvent // raised while the handler's actions were being performed
	stepping bool
	writing  map[base.CheckpointID]*upload

	recording *recording // nil: none
	finished  bool

	gauge     gauge
	begun     begun
	unsaid    bool                  // of begun: whether it waits for barriers
	measured  checkpoint.AckMetrics // of the snapshot that is about to be acknowledged
	restoring restoring
}

// errCanceled ends the loop of a task that was told to end.
var errCanceled = errors.New("canceled")

// New makes a task. Nothing happens before Run.
func New(spec Spec) *Task {
	ctx, cancel := context.WithCancel(context.Background())
	t := &Task{spec: spec, ctx: ctx, cancel: cancel, box: &mailbox{bell: spec.Bell}, start: time.Now(), writing: map[base.CheckpointID]*upload{}}
	t.loop.slice = spec.Options.sliceMost()
	if r := spec.Restore; r != nil {
		measured := *r
		measured.Open, measured.OpenPages = t.restoring.opening(r.Open), t.restoring.opening(r.OpenPages)
		t.spec.Restore = &measured
	}
	t.tell()
	return t
}

// Run runs the task to its end, and reports each change of its state; the last one is terminal.
func (t *Task) Run() {
	t.report(Initializing, nil)
	err := t.guard(t.live)
	t.cancel()
	t.box.close()
	t.close(&err)
	t.uploads.Wait()
	for _, u := range t.writing { // their mails came too late
		releaseAll(u.flights)
	}
	switch {
	case t.canceled.Load():
		t.report(Canceled, nil)
	case err != nil:
		t.report(Failed, err)
	default:
		t.report(Finished, nil)
	}
}

func (t *Task) report(s State, err error) { t.spec.Up.Changed(t.spec.Exec, s, err) }

// live is the life of a task that is not canceled.
func (t *Task) live() error {
	if err := t.build(); err != nil {
		return err
	}
	if err := t.open(); err != nil {
		return err
	}
	options := t.spec.Options.Handler
	if r := t.spec.Restore; r != nil {
		options.Restored, options.Ended = r.ID, endedBefore(r)
	}
	t.handler = checkpoint.NewBarrierHandler(options)
	t.valve = newValve(len(t.chain.readers), t.restoredWatermark())
	if err := t.restoring.phase(&t.restoring.note.InFlight, t.restoreFlights); err != nil {
		return err
	}
	if err := t.resend(); err != nil {
		return err
	}
	t.sayRestored()
	t.report(Running, nil)
	if options.Ended {
		if err := t.endAgain(); err != nil {
			return err
		}
	}
	return t.run()
}

// restoredWatermark is where every channel starts from.
func (t *Task) restoredWatermark() base.EventTime {
	if r := t.spec.Restore; r != nil && r.Operators[0] != nil {
		return max(r.Operators[0].Watermark, r.Operators[0].PendingWatermark)
	}
	return base.NoTime
}

// close closes the operators, the first one first, and keeps the first error.
func (t *Task) close(err *error) {
	for i, op := range t.chain.operators {
		if e := t.guard(func() error { return t.as(i, op.Close) }); *err == nil {
			*err = e
		}
	}
	if r := t.recording; r != nil {
		t.dropRecording(r.barrier.ID)
	}
	if t.spec.Gate != nil {
		t.spec.Gate.Close()
	}
}

// guard is the one place where a panic of user code becomes an error. Errors and panics get the operator's name.
func (t *Task) guard(call func() error) (err error) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if misuse, ok := r.(*state.UsageError); ok {
			err = t.name(fmt.Errorf("%w%s", misuse, place(stack(debug.Stack()))))
			return
		}
		err = t.name(fmt.Errorf("panic: %v\n%s", r, stack(debug.Stack())))
	}()
	if err = call(); err != nil && !errors.Is(err, errCanceled) {
		err = t.name(err)
	}
	return err
}

func (t *Task) name(err error) error {
	return fmt.Errorf("operator %q, subtask %d of %d: %w", t.doing, t.spec.Subtask+1, t.spec.Vertex.Parallelism, err)
}

// stack is the part of a stack trace that a user can do something about: from the panic down to where the engine called the
// user's code. Where the engine itself panics, because of what it was given, its frames above the user's stay.
func stack(trace []byte) string {
	lines := strings.Split(strings.TrimSpace(string(trace)), "\n")
	first := 1 // below the line that names the goroutine
	for i, l := range lines {
		if strings.HasPrefix(l, "panic(") {
			first = i + 2 // a frame is two lines: the function and its place
		}
	}
	user := false
	for i := first; i < len(lines); i += 2 {
		switch engine := ofEngine(lines[i]); {
		case engine && user, strings.HasPrefix(lines[i], "created by "):
			lines = lines[:i]
		case !engine:
			user = true
		}
	}
	return strings.Join(lines[min(first, len(lines)):], "\n")
}

// place is the file and line of the first frame that is the user's, in parentheses; "": none is.
func place(stack string) string {
	lines := strings.Split(stack, "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		if !ofEngine(lines[i]) {
			at, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " +0x")
			return " (" + filepath.Base(at) + ")"
		}
	}
	return ""
}

// ofEngine is true of a frame that is not the user's.
func ofEngine(function string) bool {
	for _, prefix := range []string{"github.com/weirstream/weir.", "github.com/weirstream/weir/internal/", "runtime."} {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return false
}

// Records is the number of records that the head of the chain has taken. Any goroutine may call it.
func (t *Task) Records() int64 { return t.records.Load() }

// Trigger begins a checkpoint here.
func (t *Task) Trigger(b checkpoint.Barrier) {
	t.box.post(func() error {
		t.loop.paused = false
		return t.handle(checkpoint.Triggered{Barrier: b})
	})
}

// Event gives the source what its operator coordinator has sent.
func (t *Task) Event(payload any) {
	t.box.post(func() error { return t.as(0, func() error { return t.event(payload) }) })
}

func (t *Task) event(payload any) error {
	if t.chain.source == nil {
		return fmt.Errorf("an operator coordinator's event %T came to a task without a source", payload)
	}
	if t.loop.over {
		return nil
	}
	t.loop.idle = false
	return t.chain.source.Event(payload)
}

// Complete says that a checkpoint is stored.
func (t *Task) Complete(id base.CheckpointID) {
	t.box.post(func() error { return t.handle(checkpoint.CompleteNotified{ID: id}) })
}

// Abort says that a checkpoint will not complete, and which one was the latest that did.
func (t *Task) Abort(id, latest base.CheckpointID) {
	t.box.post(func() error { return t.handle(checkpoint.AbortNotified{ID: id, LatestComplete: latest}) })
}

// Cancel ends the task as soon as the user code that is running returns.
func (t *Task) Cancel() {
	t.canceled.Store(true)
	t.cancel()
	t.spec.Bell.Ring()
}
