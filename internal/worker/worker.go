package worker

import (
	"errors"
	"sync"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/task"
)

// Options are what a worker runs with.
type Options struct {
	// Send takes messages for the master. It does not wait, and any goroutine may call it.
	Send func(Message)
	// Carry brings messages to Send; nil: Direct.
	Carry Carrier
	// NewTask makes a task; nil: task.New.
	NewTask func(task.Spec) Task
	// Limits bound the channels between tasks.
	Limits exchange.Limits
	// BeatEvery is the interval of beats; 0: none are sent.
	BeatEvery time.Duration
	// CancelTimeout is how long a task may take to end after it was cancelled; 0: for ever.
	CancelTimeout time.Duration
	// Exit ends the process, of which the message tells why. It may return in tests.
	Exit func(message string)
}

// Worker hosts tasks. Any goroutine may call its methods.
type Worker struct {
	options Options
	tasks   sync.WaitGroup // running
	beats   sync.WaitGroup
	stop    chan struct{}

	mu     sync.Mutex
	hosted map[base.Task]*hosted // protected by mu; the last execution of each task, also when it has ended
	closed bool                  // protected by mu
}

// New makes a worker without tasks. Close ends it.
func New(o Options) *Worker {
	if o.Carry == nil {
		o.Carry = Direct
	}
	if o.NewTask == nil {
		o.NewTask = func(s task.Spec) Task { return task.New(s) }
	}
	w := &Worker{options: o, stop: make(chan struct{}), hosted: map[base.Task]*hosted{}}
	w.startBeats()
	return w
}

// errClosed is the end of tasks that are deployed on a worker that has been closed.
var errClosed = errors.New("worker: closed")

// Deploy starts the tasks of whole regions. Of each spec it fills in Gate, Outputs, Bell, Up and what the barrier handler
// must know of the channels. A failure is the task's own, which reports it.
func (w *Worker) Deploy(specs []task.Spec) {
	wire(specs, w.options.Limits)
	all := make([]*hosted, len(specs))
	for i := range specs {
		s := &specs[i]
		h := &hosted{exec: s.Exec, vertex: s.Vertex, subtask: s.Subtask, worker: w}
		s.Up = h
		h.task = w.options.NewTask(*s)
		all[i] = h
	}
	if !w.host(all) {
		for _, h := range all {
			h.Changed(h.exec, task.Failed, errClosed)
		}
		return
	}
	for _, h := range all {
		w.startTask(h)
	}
}

// host takes the executions in; false: the worker is closed.
func (w *Worker) host(all []*hosted) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	for _, h := range all {
		w.hosted[h.exec.Task] = h
	}
	w.tasks.Add(len(all))
	return true
}

// startTask starts the goroutine of one execution.
func (w *Worker) startTask(h *hosted) { go w.runTask(h) }

// runTask is the goroutine of one execution; it ends when the task has reported its last state.
func (w *Worker) runTask(h *hosted) {
	defer w.tasks.Done()
	h.task.Run()
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.watchdog != nil {
		h.watchdog.Stop()
	}
}

// Receive takes a message of the master's.
func (w *Worker) Receive(m Message) {
	if b, ok := m.Body.(Beat); ok {
		w.compare(b)
		return
	}
	h, arrival, lost := w.arrived(m)
	switch {
	case h == nil:
		w.refuse(m)
	case arrival == InOrder:
		w.hand(h, m)
	case arrival == Gap:
		h.broke(lost)
	case arrival == Broken:
		if _, ok := m.Body.(Cancel); ok {
			w.cancel(h)
		}
	}
}

// arrived finds the execution of a message, and checks its number. nil: it is not here, or has ended.
func (w *Worker) arrived(m Message) (*hosted, Arrival, error) {
	w.mu.Lock()
	h := w.hosted[m.Exec.Task]
	if h == nil || h.exec != m.Exec {
		w.mu.Unlock()
		return nil, InOrder, nil
	}
	arrival := h.down.Take(m.Number)
	lost := h.down.Lost(true, m.Number)
	w.mu.Unlock()
	if h.over() {
		return nil, InOrder, nil
	}
	return h, arrival, lost
}

// hand gives a message to the task.
func (w *Worker) hand(h *hosted, m Message) {
	switch b := m.Body.(type) {
	case Trigger:
		h.task.Trigger(b.Barrier)
	case Deliver:
		h.task.Event(b.Payload)
	case Complete:
		h.task.Complete(b.ID)
	case Abort:
		h.task.Abort(b.ID, b.Latest)
	case Cancel:
		w.cancel(h)
	}
}

// cancel ends a task, and watches that it does end.
func (w *Worker) cancel(h *hosted) {
	w.mu.Lock()
	if after := w.options.CancelTimeout; after > 0 && h.watchdog == nil {
		h.watchdog = time.AfterFunc(after, func() {
			if !h.over() {
				w.options.Exit(h.stuck(after))
			}
		})
	}
	w.mu.Unlock()
	h.task.Cancel()
}

// refuse answers a trigger for a task that is not here: the checkpoint must not wait for it.
func (w *Worker) refuse(m Message) {
	t, ok := m.Body.(Trigger)
	if !ok {
		return
	}
	e := checkpoint.TriggerRefused{Exec: m.Exec, ID: t.Barrier.ID, Reason: checkpoint.UnknownTask}
	w.options.Carry(Message{Exec: m.Exec, Body: Reported{Event: e}}, w.options.Send)
}

// compare ends the tasks to which the master has sent more than has arrived.
func (w *Worker) compare(b Beat) {
	for _, p := range b.Links {
		w.mu.Lock()
		h := w.hosted[p.Exec.Task]
		var lost error
		if h != nil && h.exec == p.Exec && h.down.Reached(p.Sent) == Gap {
			lost = h.down.Lost(true, p.Sent)
		}
		w.mu.Unlock()
		if lost != nil {
			h.broke(lost)
		}
	}
}

func (w *Worker) startBeats() {
	if w.options.BeatEvery <= 0 {
		return
	}
	w.beats.Add(1)
	go w.runBeats()
}

// runBeats sends beats until Close.
func (w *Worker) runBeats() {
	defer w.beats.Done()
	tick := time.NewTicker(w.options.BeatEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.options.Carry(Message{Body: w.beat()}, w.options.Send)
		case <-w.stop:
			return
		}
	}
}

func (w *Worker) beat() Beat {
	var b Beat
	for _, h := range w.all() {
		b.Links = append(b.Links, h.progress())
	}
	return b
}

func (w *Worker) all() []*hosted {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*hosted, 0, len(w.hosted))
	for _, h := range w.hosted {
		all = append(all, h)
	}
	return all
}

// Close cancels what runs, and waits until nothing does.
func (w *Worker) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	for _, h := range w.all() {
		if !h.over() {
			w.cancel(h)
		}
	}
	w.tasks.Wait()
	close(w.stop)
	w.beats.Wait()
}
