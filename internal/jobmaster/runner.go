package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/job"
)

// runner is the goroutine that one operator coordinator lives on.
//
// When its tasks are restored it is not told to go back: it is stopped, and a new runner makes a new coordinator from the
// checkpoint, after the old one has returned from whatever it was doing and was closed. So user code never sees half of one
// life in another; and what the old one still posts finds that it is not the vertex's runner any more (fenced). Only answers
// to snapshots always get through, because each must be answered once.
type runner struct {
	master *Master
	vertex *graph.Vertex
	box    *inbox[errand]
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}

	watchdog atomic.Pointer[time.Timer] // after stop

	// Below, only the runner's goroutine.
	coordinator Coordinator
	readers     map[int]bool
	early       map[int][]any // what readers asked before they were added
	misuse      error         // of the context, by the call under way
}

// errand is something to do on a runner's goroutine; abandon is called instead where the runner has ended.
type errand struct {
	do      func() error
	abandon func()
}

// replaceRunner stops the vertex's operator coordinator and makes a new one; ready hears once how that went.
func (m *Master) replaceRunner(v *graph.Vertex, restore *restoration, ready func(error)) {
	r := &runner{master: m, vertex: v, box: newInbox[errand](), done: make(chan struct{}), readers: map[int]bool{}, early: map[int][]any{}}
	r.ctx, r.cancel = context.WithCancel(m.ctx)
	var before <-chan struct{}
	if old := m.runners[v.Index]; old != nil {
		old.stop()
		before = old.done
	}
	m.runners[v.Index] = r
	r.start(before, restore, ready)
}

// start starts the runner's goroutine, which the master owns.
func (r *runner) start(before <-chan struct{}, restore *restoration, ready func(error)) {
	r.master.others.Add(1)
	go r.run(before, restore, ready)
}

// run is the runner's goroutine: it ends after stop, when the user's call under way has returned.
func (r *runner) run(before <-chan struct{}, restore *restoration, ready func(error)) {
	defer r.master.others.Done()
	defer close(r.done)
	if before != nil {
		<-before
	}
	err := r.begin(restore)
	ready(err)
	for err == nil && r.ctx.Err() == nil {
		for _, e := range r.box.take() {
			if err != nil || r.ctx.Err() != nil {
				e.abandon()
			} else if err = r.call(e.do); err != nil {
				r.failed(err)
			}
		}
		if err == nil {
			r.await()
		}
	}
	for _, e := range r.box.close() {
		e.abandon()
	}
	r.close()
	if w := r.watchdog.Load(); w != nil {
		w.Stop() // else it would keep all this until it rings
	}
}

// begin makes the coordinator and starts it.
func (r *runner) begin(restore *restoration) error {
	state, err := r.state(restore)
	if err != nil {
		return err
	}
	provider := r.vertex.Head().Coordinator.(CoordinatorProvider)
	err = r.call(func() (err error) {
		if r.coordinator, err = provider.New(r, state); err != nil {
			return err
		}
		return r.coordinator.Start()
	})
	if err != nil {
		return r.name(err)
	}
	return nil
}

// state is what the checkpoint has of the coordinator; nil: nothing.
func (r *runner) state(restore *restoration) ([]byte, error) {
	if restore == nil {
		return nil, nil
	}
	o := restore.match.Operators[r.vertex.Head().StateID()]
	if o == nil || o.Coordinator == nil {
		return nil, nil
	}
	state, err := r.master.read(restore.point.Location, *o.Coordinator)
	if err != nil {
		return nil, r.name(fmt.Errorf("reading its state: %w", err))
	}
	return state, nil
}

func (r *runner) name(err error) error {
	return fmt.Errorf("the coordinator of source %s: %w", r.vertex.Head().Label(), err)
}

// call calls user code.
func (r *runner) call(do func() error) error {
	r.misuse = nil
	if err := guard(do); err != nil {
		return err
	}
	return r.misuse
}

// await waits for an errand or the end.
func (r *runner) await() {
	select {
	case <-r.box.bell:
	case <-r.ctx.Done():
	}
}

// failed tells the machine.
func (r *runner) failed(err error) {
	r.fenced(job.OperatorFailed{Vertex: r.vertex.Index, Err: err, Permanent: permanent(err)})
}

// fenced brings the machine an event, unless the runner has been replaced meanwhile.
func (r *runner) fenced(e job.Event) {
	r.master.post(func() {
		if r.master.runners[r.vertex.Index] == r {
			r.master.step(e)
		}
	})
}

func (r *runner) close() {
	r.cancel()
	if r.coordinator == nil {
		return
	}
	if err := r.call(r.coordinator.Close); err != nil {
		r.master.log.Warn("An operator coordinator could not be closed.", "source", r.vertex.Head().Name, "error", err)
	}
}

// stop ends the runner; it does not wait, but watches that it does end.
func (r *runner) stop() {
	r.cancel()
	r.watchdog.Store(r.master.watch(r.done, "The coordinator of source "+r.vertex.Head().Label()))
}

// Everything below is called on other goroutines and becomes an errand.

func nothing() {}

// post gives the runner an errand.
func (r *runner) post(e errand) {
	if !r.box.post(e) {
		e.abandon()
	}
}

// snapshot asks for the state; the answer comes, whatever happens.
func (r *runner) snapshot(token checkpoint.Token, id base.CheckpointID) {
	answer := func(state []byte, err error) {
		e := checkpoint.OperatorSnapped{Token: token, Err: triggerError(err)}
		if err == nil {
			e.State = state
		}
		r.master.post(r.master.answer(e))
	}
	r.post(errand{
		do: func() error {
			var state []byte
			err := guard(func() (err error) { state, err = r.coordinator.Snapshot(id); return err })
			if err != nil {
				err = r.name(err)
			}
			answer(state, err)
			if p := (*panicError)(nil); errors.As(err, &p) {
				return p // whatever it left half done, the next one begins anew
			}
			return nil
		},
		abandon: func() { answer(nil, r.name(fmt.Errorf("it was reset before its snapshot for checkpoint %d", id))) },
	})
}

// added says that a reader is there.
func (r *runner) added(subtask int) {
	r.post(errand{abandon: nothing, do: func() error {
		r.readers[subtask] = true
		if err := r.coordinator.Added(subtask); err != nil {
			return err
		}
		early := r.early[subtask]
		delete(r.early, subtask)
		for _, payload := range early {
			if err := r.coordinator.Handle(subtask, payload); err != nil {
				return err
			}
		}
		return nil
	}})
}

// handle brings what a reader asked; a question of one that is still opening waits until it is there.
func (r *runner) handle(subtask int, payload any) {
	r.post(errand{abandon: nothing, do: func() error {
		if !r.readers[subtask] {
			r.early[subtask] = append(r.early[subtask], payload)
			return nil
		}
		return r.coordinator.Handle(subtask, payload)
	}})
}

// The runner is its coordinator's CoordinatorContext.

// Context implements CoordinatorContext.
func (r *runner) Context() context.Context { return r.ctx }

// Operator implements CoordinatorContext.
func (r *runner) Operator() string { return r.vertex.Head().Name }

// Parallelism implements CoordinatorContext.
func (r *runner) Parallelism() int { return r.vertex.Parallelism }

// Readers implements CoordinatorContext.
func (r *runner) Readers() []int { return slices.Sorted(maps.Keys(r.readers)) }

// Send implements CoordinatorContext.
func (r *runner) Send(subtask int, payload any) {
	if !r.readers[subtask] {
		r.misuse = fmt.Errorf("it sent to the reader of subtask %d, which is not there: those that are there are %v", subtask, r.Readers())
		return
	}
	to := r.vertex.First + base.Task(subtask)
	r.fenced(job.Relayed{Event: checkpoint.OperatorSent{Vertex: r.vertex.Index, To: to, Payload: payload}})
}

// Backlog implements CoordinatorContext.
func (r *runner) Backlog(backlog bool) {
	r.fenced(job.Relayed{Event: checkpoint.BacklogChanged{Vertex: r.vertex.Index, Backlog: backlog}})
}

// Run implements CoordinatorContext.
func (r *runner) Run(work func(context.Context) (any, error), done func(any, error) error) {
	r.master.others.Add(1)
	go r.runWork(work, done)
}

// runWork is the goroutine of one Run; it ends with one errand.
func (r *runner) runWork(work func(context.Context) (any, error), done func(any, error) error) {
	defer r.master.others.Done()
	var result any
	err := guard(func() (err error) { result, err = work(r.ctx); return err })
	r.post(errand{abandon: nothing, do: func() error { return done(result, err) }})
}

// readerAdded tells a source's operator coordinator that a reader is there.
func (m *Master) readerAdded(x base.Exec) {
	v, subtask := m.options.Graph.Locate(x.Task)
	if r := m.runners[v.Index]; r != nil {
		r.added(subtask)
	}
}

// readerAsked brings a source's operator coordinator what a reader asked. What an old execution's reader asked is of no use to
// anybody: readers ask again when they start.
func (m *Master) readerAsked(x base.Exec, payload any) {
	if l := m.links[x.Task]; l == nil || l.exec != x {
		return
	}
	v, subtask := m.options.Graph.Locate(x.Task)
	if r := m.runners[v.Index]; r != nil {
		r.handle(subtask, payload)
	}
}
