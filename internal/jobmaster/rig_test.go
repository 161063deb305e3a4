package jobmaster

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/task"
	"github.com/weirstream/weir/internal/worker"
)

const jobID base.JobID = "0123456789abcdef0123456789abcdef"

// rig is a master with a scripted worker, whose tasks run, acknowledge and end at once unless the test intercepts.
type rig struct {
	*Master
	t      *testing.T
	source *provider
	store  *faultyStore
	log    []string // of enumerators and hooks, protected by mu
	mu     sync.Mutex

	tasks map[base.Exec]*scripted // protected by mu
	now   []base.Exec             // the current ones, protected by mu
	// intercept hears of each message to a task; true: the rig does nothing with it. Protected by mu.
	intercept func(x base.Exec, body any) bool
	deployed  []task.Spec // of the last deployment, protected by mu
}

// scripted is one execution of the scripted worker.
type scripted struct {
	sent uint64
	over bool
}

// newRig makes and starts a master of "source (2) -> sink (1)" in a synctest bubble.
func newRig(t *testing.T, change func(*Options)) *rig {
	r := &rig{t: t, source: &provider{}, tasks: map[base.Exec]*scripted{}}
	r.source.rig = r
	r.store = &faultyStore{Checkpoints: storage.OpenJobMemory(storage.Memory(), jobID, 0)}
	o := Options{ID: jobID, Graph: r.graph(), Store: r.store, Worker: r, Log: slog.New(slog.DiscardHandler),
		Exit: func(m string) { r.note("exit: %s", m) }}
	o.Machine.Name, o.Machine.SavepointDir = "test", "/savepoints"
	o.Machine.Restart = job.Strategy{Kind: job.FixedDelay, Attempts: 100, Delay: 100 * time.Millisecond}
	o.Machine.Checkpoints.TolerableFailures = -1
	if change != nil {
		change(&o)
	}
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.Master = m
	m.Start()
	synctest.Wait()
	return r
}

func (r *rig) graph() *graph.Job {
	l := graph.Logical{
		Nodes: []*graph.Node{{ID: 0, Kind: graph.Source, Name: "numbers", UID: "numbers", Parallelism: 2, Coordinator: r.source},
			{ID: 1, Kind: graph.Sink, Name: "out", UID: "out", Parallelism: 1}},
		Edges: []*graph.Edge{{From: 0, To: 1, Partitioning: graph.Hash}},
	}
	j, err := l.Build("test", graph.Options{Parallelism: 1})
	if err != nil {
		r.t.Fatal(err)
	}
	return j
}

// end cancels the job and waits for its end.
func (r *rig) end() {
	r.Cancel()
	<-r.Done()
}

func (r *rig) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

// notes are what was noted since the last call.
func (r *rig) notes() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.log
	r.log = nil
	return all
}

func (r *rig) wantNotes(want ...string) {
	r.t.Helper()
	if got := r.notes(); !slices.Equal(got, want) {
		r.t.Errorf("got  %q\nwant %q", got, want)
	}
}

// on sets what intercepts messages to tasks.
func (r *rig) on(intercept func(x base.Exec, body any) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.intercept = intercept
}

// restored is the checkpoint that the last deployment was restored from; 0: none.
func (r *rig) restored() base.CheckpointID {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if restore := r.deployed[0].Restore; restore != nil {
		return restore.ID
	}
	return 0
}

// checkpoint takes one, and returns its error.
func (r *rig) checkpoint() (Answer, error) { return r.TriggerCheckpoint(r.t.Context(), false) }

func (r *rig) mustCheckpoint() Answer {
	r.t.Helper()
	a, err := r.checkpoint()
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// Deploy implements Worker.
func (r *rig) Deploy(specs []task.Spec) {
	r.mu.Lock()
	r.deployed, r.now = specs, nil
	for _, s := range specs {
		r.tasks[s.Exec] = &scripted{}
		r.now = append(r.now, s.Exec)
	}
	r.mu.Unlock()
	for _, s := range specs {
		r.say(s.Exec, worker.Changed{State: task.Initializing})
		r.say(s.Exec, worker.Changed{State: task.Running})
	}
}

// say sends a message of a task's.
func (r *rig) say(x base.Exec, body any) {
	r.mu.Lock()
	s := r.tasks[x]
	if c, ok := body.(worker.Changed); ok {
		s.over = c.State.Terminal()
	}
	s.sent++
	n := s.sent
	r.mu.Unlock()
	r.Master.Receive(worker.Message{Exec: x, Number: n, Body: body})
}

// lose has a message of a task's get lost.
func (r *rig) lose(x base.Exec) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks[x].sent++
}

// current is the current execution of a task.
func (r *rig) current(t base.Task) base.Exec {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.now {
		if x.Task == t {
			return x
		}
	}
	return base.Exec{Task: t}
}

// Receive implements Worker.
func (r *rig) Receive(m worker.Message) {
	r.mu.Lock()
	intercept := r.intercept
	r.mu.Unlock()
	if intercept != nil && intercept(m.Exec, m.Body) {
		return
	}
	r.mu.Lock()
	s := r.tasks[m.Exec]
	over := s == nil || s.over
	r.mu.Unlock()
	switch b := m.Body.(type) {
	case worker.Deliver:
		r.note("%d gets %v", m.Exec.Task, b.Payload)
	case worker.Trigger:
		r.note("%d triggered", m.Exec.Task)
		r.ack(m.Exec, b.Barrier)
		if m.Exec.Task == 0 {
			r.ack(r.current(2), b.Barrier)
		}
	case worker.Cancel:
		if !over {
			r.say(m.Exec, worker.Changed{State: task.Canceled})
		}
	}
}

// ack acknowledges a checkpoint with a state of eight bytes for each operator.
func (r *rig) ack(x base.Exec, b checkpoint.Barrier) {
	v, subtask := r.options.Graph.Locate(x.Task)
	state := &snapshot.TaskState{}
	for _, n := range v.Nodes {
		part := snapshot.OperatorPart{UID: n.StateID(), Subtask: snapshot.Subtask{Index: subtask, Watermark: base.NoTime, PendingWatermark: base.NoTime}}
		state.Operators = append(state.Operators, part)
	}
	r.say(x, worker.Reported{Event: checkpoint.TaskAcked{Exec: x, ID: b.ID, State: state}})
}

// provider makes enumerators that note what happens to them.
type provider struct {
	rig *rig
	// do is called by each method, under its name; its error is the method's.
	do func(e *enumerator, what string) error
}

type enumerator struct {
	CoordinatorContext
	rig *rig
	do  func(e *enumerator, what string) error
	n   int // snapshots taken, in its state
}

// New implements CoordinatorProvider.
func (p *provider) New(ctx CoordinatorContext, state []byte) (Coordinator, error) {
	e := &enumerator{CoordinatorContext: ctx, rig: p.rig, do: p.do}
	if state != nil {
		_, _ = fmt.Sscan(string(state), &e.n)
	}
	return e, e.call("new %q", state)
}

func (e *enumerator) call(format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	e.rig.note("%s", what)
	if e.do != nil {
		return e.do(e, what)
	}
	return nil
}

func (e *enumerator) Start() error      { return e.call("start") }
func (e *enumerator) Added(s int) error { return e.call("added %d", s) }
func (e *enumerator) Close() error      { return e.call("close") }
func (e *enumerator) Handle(s int, payload any) error {
	return e.call("%d asks %v", s, payload)
}
func (e *enumerator) Snapshot(id base.CheckpointID) ([]byte, error) {
	e.n++
	return fmt.Append(nil, e.n), e.call("snapshot %d", id)
}

// faultyStore is storage with faults.
type faultyStore struct {
	storage.Checkpoints
	mu        sync.Mutex
	fail      error        // of all writes; protected by mu
	publish   func() error // before a publication; protected by mu
	discarded []string     // protected by mu
}

func (s *faultyStore) broken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fail
}

func (s *faultyStore) breakWith(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

func (s *faultyStore) gone() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.discarded)
}

func (s *faultyStore) onPublish(hook func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publish = hook
}

func (s *faultyStore) CreateLocation(id base.CheckpointID, kind snapshot.Kind, target string) (string, error) {
	if err := s.broken(); err != nil {
		return "", err
	}
	return s.Checkpoints.CreateLocation(id, kind, target)
}

func (s *faultyStore) Publish(location string, m *snapshot.Metadata) (int64, error) {
	if err := s.broken(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	hook := s.publish
	s.mu.Unlock()
	if hook != nil {
		if err := hook(); err != nil {
			return 0, err
		}
	}
	return s.Checkpoints.Publish(location, m)
}

func (s *faultyStore) Discard(location string) error {
	s.mu.Lock()
	s.discarded = append(s.discarded, location)
	s.mu.Unlock()
	return s.Checkpoints.Discard(location)
}

// hook is a master hook that notes what happens to it.
type hook struct {
	id  string
	rig **rig
	err error
	// block holds a trigger up until it is closed; nil: nothing does.
	block chan struct{}
}

func (h *hook) ID() string { return h.id }

func (h *hook) Trigger(_ context.Context, id base.CheckpointID, _ int64) ([]byte, error) {
	(*h.rig).note("hook %s triggered %d", h.id, id)
	if h.block != nil {
		<-h.block
	}
	return []byte(h.id + "'s state"), h.err
}

func (h *hook) Restore(_ context.Context, id base.CheckpointID, state []byte) error {
	if *h.rig != nil { // not for the first start
		(*h.rig).note("hook %s restored %d %q", h.id, id, state)
	}
	return nil
}

// setDo has the current enumerator do something at a call.
func (p *provider) setDo(r *rig, at string, do func() error) {
	synctest.Wait()
	e := r.runners[0].coordinator.(*enumerator)
	e.do = func(_ *enumerator, what string) error {
		if what == at && do != nil {
			return do()
		}
		return nil
	}
}
