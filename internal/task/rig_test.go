package task

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal is what happened, in order. Everything around a task writes into it.
type journal struct {
	mu    sync.Mutex
	lines []string // protected by mu
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

// take is everything since the last take.
func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := j.lines
	j.lines = nil
	return lines
}

// op is an operator of int64s that writes all that it is told into the journal, and hands it on. A test plants what it does
// beside; nil: nothing.
type op struct {
	operator.Base
	*journal
	name string
	out  operator.Emitter[int64]
	mark base.EventTime

	record  func(v int64) error
	opened  func() error
	closed  func() error
	restore func(r *operator.Restored) error
	frozen  func(id base.CheckpointID) (operator.Part, error)
	write   func(w storage.Writer) error
	quiet   bool // records are not written into the journal
}

func (o *op) Setup(rt *operator.Runtime) error {
	o.mark = base.NoTime
	o.out.Init()
	return o.Base.Setup(rt)
}

func (o *op) Input(int) any     { return operator.In[int64](o) }
func (o *op) Output(string) any { return &o.out }

func (o *op) Open() error {
	o.add("%s: open", o.name)
	return call(o.opened)
}

func (o *op) Close() error {
	o.add("%s: close", o.name)
	return call(o.closed)
}

func call(f func() error) error {
	if f == nil {
		return nil
	}
	return f()
}

func (o *op) Push(b *operator.Batch[int64]) error {
	before := o.Enter()
	for i, v := range b.Values {
		if !o.quiet {
			o.add("%s: %d", o.name, v)
		}
		if o.record != nil {
			if err := o.record(v); err != nil {
				return err
			}
		}
		o.out.EmitAt(v, b.Times[i])
	}
	err := o.out.Flush()
	if err == nil {
		o.Leave(before)
	}
	return err
}

func (o *op) Watermark(t base.EventTime) error {
	o.add("%s: watermark %s", o.name, timeName(t))
	o.mark = t
	return o.out.Watermark(t)
}

func timeName(t base.EventTime) string {
	if t == base.EndOfTime {
		return "end"
	}
	return fmt.Sprint(int64(t))
}

func (o *op) Idle(idle bool) error {
	o.add("%s: idle %v", o.name, idle)
	return o.out.Idle(idle)
}

func (o *op) EndOfData(drained bool) error {
	o.add("%s: end of data, drained %v", o.name, drained)
	return o.out.EndOfData(drained)
}

func (o *op) Restore(r *operator.Restored) error {
	o.add("%s: restore", o.name)
	o.mark = r.Watermark
	if o.restore != nil {
		return o.restore(r)
	}
	return nil
}

func (o *op) Snapshot(c operator.Cut) (operator.Part, error) {
	id := c.ID
	o.add("%s: snapshot %d", o.name, id)
	if o.frozen != nil {
		return o.frozen(id)
	}
	part := operator.Part{State: snapshot.Subtask{Watermark: o.mark, PendingWatermark: base.NoTime}, Release: func() { o.add("%s: release %d", o.name, id) }}
	if o.write != nil {
		part.Write = func(w storage.Writer, _ snapshot.Format, _ *snapshot.Subtask) error { return o.write(w) }
	}
	return part, nil
}

func (o *op) Complete(id base.CheckpointID) error { o.add("%s: complete %d", o.name, id); return nil }
func (o *op) Abort(id base.CheckpointID) error    { o.add("%s: abort %d", o.name, id); return nil }

// reading is a source: an op that polls.
type reading struct {
	*op
	poll  func(most int) (int, operator.Status, error)
	event func(payload any)
}

func (s reading) Poll(most int) (int, operator.Status, error) {
	n, status, err := s.poll(most)
	if err == nil {
		err = s.out.Flush()
	}
	return n, status, err
}

func (s reading) Event(payload any) error { s.event(payload); return nil }

// upward is a master that writes what it is told into the journal, and keeps the parts of checkpoints.
type upward struct {
	*journal
	parts   map[base.CheckpointID]*snapshot.TaskState // read when the task stands still
	metrics map[base.CheckpointID]checkpoint.AckMetrics
	notes   []Note // protected by mu
	err     error
}

func (u *upward) Changed(_ base.Exec, s State, err error) {
	if u.err = err; err != nil {
		u.add("%v: %v", s, err)
	} else {
		u.add("%v", s)
	}
}

func (u *upward) Report(e checkpoint.CoordinatorEvent) {
	switch e := e.(type) {
	case checkpoint.TaskAcked:
		u.parts[e.ID], u.metrics[e.ID] = e.State.(*snapshot.TaskState), e.Metrics
		ended := ""
		if e.Ended {
			ended = ", ended"
		}
		u.add("ack %d%s", e.ID, ended)
	case checkpoint.TaskDeclined:
		u.add("decline %d: %v, %v", e.ID, e.Reason, e.Err)
	case checkpoint.TaskEnded:
		u.add("ended")
	default:
		u.add("%T", e)
	}
}

// Note keeps what the task says of itself.
func (u *upward) Note(_ base.Exec, n Note) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.notes = append(u.notes, n)
}

func (u *upward) Ask(_ base.Exec, payload any) { u.add("ask %v", payload) }

// feed is a predecessor of the task under test: the other end of one of its channels.
type feed struct {
	op     op
	writer operator.Writer
}

func (f *feed) send(vs ...int64) {
	for _, v := range vs {
		f.op.out.Emit(v)
	}
	if f.op.out.Flush() != nil || f.writer.Flush() != nil {
		panic("the channel takes nothing")
	}
}

func (f *feed) control(e exchange.Element) { f.writer.Partition().Broadcast(e) }

func (f *feed) barrier(id base.CheckpointID) {
	b := aligned(id)
	f.control(exchange.Element{Kind: exchange.Barrier, Barrier: &b})
}

func (f *feed) watermark(t base.EventTime) {
	f.control(exchange.Element{Kind: exchange.Watermark, Time: t})
}

func (f *feed) idle(idle bool) { f.control(exchange.Element{Kind: exchange.Status, Idle: idle}) }

// end is the end of a channel whose sender has processed everything.
func (f *feed) end() {
	f.watermark(base.EndOfTime)
	f.control(exchange.Element{Kind: exchange.EndOfData, Drain: true})
}

func (f *feed) gone() { f.control(exchange.Element{Kind: exchange.EndOfPartition}) }

func aligned(id base.CheckpointID) checkpoint.Barrier {
	return checkpoint.Barrier{ID: id, Location: "memory:", Alignment: checkpoint.Aligned}
}

// plan is what a rig is made with.
type plan struct {
	inputs    int                   // channels; 0: the head is a source
	broadcast []bool                // which of them are of broadcast edges; nil: none
	wire      operator.Wire         // nil: edge
	chain     []operator.Operator   // the head first
	options   Options               //
	limits    exchange.Limits       // of the output
	restore   *Restore              //
	journal   *journal              // of chain
	writer    func() storage.Writer // nil: memory
}

// rig is a task with everything around it, in a synctest bubble: settle waits until the task has nothing left to do.
type rig struct {
	*testing.T
	*journal
	task  *Task
	feeds []*feed
	out   *exchange.Gate
	up    *upward
}

var edge = &operator.Edge[int64]{}

// vertex is the chain of p between its predecessors and a successor.
func (p plan) vertex() *graph.Vertex {
	l := &graph.Logical{}
	node := func(kind graph.Kind, name string, op operator.Operator) *graph.Node {
		n := &graph.Node{ID: graph.NodeID(len(l.Nodes)), Kind: kind, Name: name, UID: name, NewChain: true, Factory: Factory(func() operator.Operator { return op })}
		l.Nodes = append(l.Nodes, n)
		return n
	}
	wire := p.wire
	if wire == nil {
		wire = edge
	}
	join := func(from, to *graph.Node) {
		l.Edges = append(l.Edges, &graph.Edge{From: from.ID, To: to.ID, Wire: wire, Type: "int64"})
	}
	var before []*graph.Node
	for i := range p.inputs {
		before = append(before, node(graph.Source, fmt.Sprint("in", i), nil))
	}
	var last *graph.Node
	for i, o := range p.chain {
		kind := graph.Transform
		if p.inputs == 0 && i == 0 {
			kind = graph.Source
		}
		n := node(kind, string(rune('a'+i)), o)
		for _, b := range before {
			join(b, n)
		}
		if last != nil {
			join(last, n)
			n.NewChain = false
		}
		last, before = n, nil
	}
	join(last, node(graph.Sink, "out", nil))
	job, err := l.Build("rig", graph.Options{Parallelism: 1, Chaining: true})
	if err != nil {
		panic(err)
	}
	return job.Vertices[p.inputs]
}

// newRig makes the task and what is around it; nothing runs.
func newRig(t *testing.T, p plan) *rig {
	r := &rig{T: t, journal: p.journal}
	r.up = &upward{journal: r.journal, parts: map[base.CheckpointID]*snapshot.TaskState{}, metrics: map[base.CheckpointID]checkpoint.AckMetrics{}}
	bell := exchange.NewBell()
	spec := Spec{Job: "rig", Exec: base.Exec{Task: 3, Attempt: 1}, Vertex: p.vertex(), Restore: p.restore, Options: p.options, Bell: bell, Up: r.up}
	spec.Options.Handler.Channels = p.inputs
	spec.Options.Handler.Broadcast = append(p.broadcast, make([]bool, p.inputs-len(p.broadcast))...)
	spec.Writer = func(location string) storage.Writer {
		if p.writer != nil {
			return p.writer()
		}
		return storage.NewWriter(storage.Memory(), location, storage.WriterOptions{})
	}
	if p.inputs > 0 {
		spec.Gate = exchange.NewGate(p.inputs, bell)
		for i := range p.inputs {
			kind := graph.Forward
			if spec.Options.Handler.Broadcast[i] {
				kind = graph.Broadcast
			}
			r.feeds = append(r.feeds, newFeed(t, spec.Gate.Channel(i), kind))
		}
	}
	if p.limits.Batches == 0 {
		p.limits = exchange.Limits{Batches: 1 << 20}
	}
	r.out = exchange.NewGate(1, exchange.NewBell())
	spec.Outputs = []*exchange.Partition{exchange.NewPartition([]*exchange.Channel{r.out.Channel(0)}, p.limits, bell)}
	r.task = New(spec)
	return r
}

func newFeed(t *testing.T, c *exchange.Channel, kind graph.Partitioning) *feed {
	f := &feed{}
	f.op.out.Init()
	part := exchange.NewPartition([]*exchange.Channel{c}, exchange.Limits{Batches: 1 << 20}, exchange.NewBell())
	w, err := edge.Writer(&f.op, "", operator.Sending{Kind: kind, Receivers: 1, Partition: part, Context: t.Context()})
	if err != nil {
		t.Fatal(err)
	}
	f.writer = w
	return f
}

// rigged runs a test in a bubble: test finds the task RUNNING, and the task has ended when rigged returns.
func rigged(t *testing.T, p func(j *journal) plan, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		made := p(j)
		made.journal = j
		r := newRig(t, made)
		done := make(chan struct{})
		go func() { r.task.Run(); close(done) }()
		defer func() { r.task.Cancel(); <-done }()
		r.settle()
		test(r)
	})
}

// settle waits until the task waits, and for no clock.
func (r *rig) settle() { synctest.Wait() }

// expect compares what happened since the last call.
func (r *rig) expect(want ...string) {
	r.Helper()
	r.settle()
	got := r.journal.take()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		r.Fatalf("it happened:\n\t%s\nwanted:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// sent is what has come out since the last call; a barrier that has overtaken is the first, with an exclamation mark.
func (r *rig) sent() string {
	all := r.overtook()
	for {
		_, e, ok := r.out.Next()
		if !ok {
			return strings.Join(all, " ")
		}
		all = append(all, elementName(e))
	}
}

// overtook are the barriers that have come out and overtaken.
func (r *rig) overtook() (all []string) {
	for _, u := range r.out.Urgent() {
		if !u.Announced {
			all = append(all, fmt.Sprint("barrier", u.Barrier.ID, "!"))
		}
	}
	return all
}

// sentOne is the next element that has come out, but for barriers that have overtaken.
func (r *rig) sentOne() string {
	r.overtook()
	_, e, ok := r.out.Next()
	if !ok {
		return ""
	}
	return elementName(e)
}

// elementName describes an element, and releases it.
func elementName(e exchange.Element) string {
	switch e.Kind {
	case exchange.Data:
		defer e.Payload.Release()
		return strings.Trim(fmt.Sprint(e.Payload.(*operator.Batch[int64]).Values), "[]")
	case exchange.Watermark:
		return "w" + timeName(e.Time)
	case exchange.Status:
		return fmt.Sprint("idle:", e.Idle)
	case exchange.Barrier:
		return fmt.Sprint("barrier", e.Barrier.ID)
	case exchange.CancelMarker:
		return fmt.Sprint("cancel", e.ID)
	case exchange.EndOfData:
		return fmt.Sprint("end:", e.Drain)
	}
	return "gone"
}

func (r *rig) expectSent(want string) {
	r.Helper()
	r.settle()
	if got := r.sent(); got != want {
		r.Fatalf("sent %q, want %q", got, want)
	}
}

// one is a plan of a chain of one op on n channels.
func one(n int, change ...func(*op, *plan)) func(*journal) plan {
	return func(j *journal) plan {
		a := &op{journal: j, name: "a"}
		p := plan{inputs: n, chain: []operator.Operator{a}}
		for _, c := range change {
			c(a, &p)
		}
		return p
	}
}

// two is a plan of a chain of two ops on n channels.
func two(n int, change ...func(a, b *op, p *plan)) func(*journal) plan {
	return func(j *journal) plan {
		a, b := &op{journal: j, name: "a"}, &op{journal: j, name: "b"}
		p := plan{inputs: n, chain: []operator.Operator{a, b}}
		for _, c := range change {
			c(a, b, &p)
		}
		return p
	}
}

// slow takes d for each record, unless ctx is done before.
func slow(ctx func() context.Context, d time.Duration) func(int64) error {
	return func(int64) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx().Done():
			return ctx().Err()
		}
	}
}

// pass lets the bubble's clock go on: it is how user code is slow, and how a test waits for a clock.
func pass(d time.Duration) { time.Sleep(d) }
