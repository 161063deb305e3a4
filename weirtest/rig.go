package weirtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/state"
	"github.com/weirstream/weir/internal/task"
)

// rig is what all harnesses share: the operators of a piece of a job, on some subtasks, and a clock. It does by hand, and at once, what a task
// does in its loop. Everything is called on the test's goroutine.
type rig struct {
	t        testing.TB
	plan     *plan
	settings settings
	wire     func(s *subtask) error                     // joins a new subtask's operators to what is around them
	begin    func(watermark base.EventTime, ended bool) // hears where event time begins
	around   surroundings

	now      int64 // processing time
	subtasks []*subtask
	attempt  int
	restored bool
	id       base.CheckpointID // the last one taken
	doing    string            // the operator whose code runs
	failure  error             // of a step: nothing goes on but a restore
	tried    *error            // where Try hears of it; nil: the test fails
	over     bool              // the data has ended
	closed   bool
	log      journal
	checks   []func() // of guards
	stored   *storedGuard
}

// env is the environment that a piece is built in.
func (s settings) env() *weir.Env {
	e := weir.NewTestEnv().Parallelism(s.parallelism)
	if !s.uncommitted {
		e.EnableCheckpointing(time.Hour, weir.ExactlyOnce)
	}
	return e
}

// surroundings are what a source has around it.
type surroundings interface {
	// opened is called when all subtasks are open; from: nil, or what they were restored from.
	opened(from *Snapshot) error
	// asked and woken are called by readers.
	asked(subtask int, payload any)
	woken()
	// settle does what is left to do, and says whether there was anything.
	settle() (bool, error)
	// snapshot comes before the readers'.
	snapshot(s *Snapshot) error
	close() error
}

// nothing is around what is no source.
type nothing struct{}

func (nothing) opened(*Snapshot) error   { return nil }
func (nothing) asked(int, any)           {}
func (nothing) woken()                   {}
func (nothing) settle() (bool, error)    { return false, nil }
func (nothing) snapshot(*Snapshot) error { return nil }
func (nothing) close() error             { return nil }

// settings are what options set.
type settings struct {
	parallelism  int
	start        time.Time
	from         *Snapshot
	allowDropped bool
	uncommitted  bool
}

// Option changes a harness.
type Option func(*settings)

// Parallelism is the number of subtasks that a harness runs; 1, where nothing is said.
func Parallelism(n int) Option { return func(s *settings) { s.parallelism = n } }

// StartAt is the processing time at which a harness begins; else it is the beginning of the year 2000, UTC.
func StartAt(t time.Time) Option { return func(s *settings) { s.start = t } }

// From has a harness begin from a snapshot, of another harness and maybe another version of the operator.
func From(snapshot *Snapshot) Option { return func(s *settings) { s.from = snapshot } }

// AllowDropped lets state of the snapshot go that the operator declares no more, as -n does.
func AllowDropped() Option { return func(s *settings) { s.allowDropped = true } }

// WithoutCheckpoints makes the harness one of a job that takes no checkpoints: a two-phase sink then commits at the end of the input.
func WithoutCheckpoints() Option { return func(s *settings) { s.uncommitted = true } }

func settingsOf(options []Option) settings {
	s := settings{parallelism: 1, start: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, set := range options {
		set(&s)
	}
	return s
}

// subtask is the operators of one subtask, wired.
type subtask struct {
	index  int
	ops    map[graph.NodeID]operator.Operator
	cancel context.CancelFunc
	mails  []func() error
}

func newRig(t testing.TB, p *plan, s settings) *rig {
	r := &rig{t: t, plan: p, settings: s, now: s.start.UnixNano(), attempt: -1, around: nothing{},
		begin: func(base.EventTime, bool) {}}
	t.Cleanup(r.end)
	return r
}

// start makes the subtasks anew, from a snapshot or nil.
func (r *rig) start(from *Snapshot, parallelism int) {
	r.t.Helper()
	r.attempt++
	r.failure, r.restored, r.checks, r.subtasks = nil, from != nil, nil, nil
	r.stored = newStoredGuard(r)
	r.step("start", func() error {
		parts, err := r.redistribute(from, parallelism)
		if err != nil {
			return err
		}
		watermark, ended := parts.beginning(r.plan)
		r.over = ended
		r.begin(watermark, ended)
		for i := range parallelism {
			if err := r.build(i, parallelism); err != nil {
				return err
			}
		}
		for i, s := range r.subtasks {
			if err := r.open(s, parts, i); err != nil {
				return err
			}
		}
		return r.around.opened(from)
	})
}

// build makes the operators of a subtask and joins them.
func (r *rig) build(index, parallelism int) error {
	ctx, cancel := context.WithCancel(context.Background())
	s := &subtask{index: index, ops: map[graph.NodeID]operator.Operator{}, cancel: cancel}
	r.subtasks = append(r.subtasks, s)
	for _, n := range r.plan.nodes {
		op := n.Factory.(task.Factory)()
		s.ops[n.ID] = op
		if err := r.as(n, func() error { return op.Setup(r.runtime(ctx, s, n, parallelism)) }); err != nil {
			return err
		}
	}
	for _, e := range r.plan.inner {
		r.watch(s.ops[e.From], e.Tag, r.node(e.From).Label())
		if err := e.Wire.(operator.Wire).Chain(s.ops[e.From], s.ops[e.To], e.Tag, e.Input); err != nil {
			return err
		}
	}
	return r.wire(s)
}

// watch has the test fail where a record is changed after it was emitted.
func (r *rig) watch(from operator.Operator, tag, label string) {
	if out, ok := from.Output(tag).(operator.Guarded); ok {
		r.checks = append(r.checks, out.Guard(func(err error) { r.t.Errorf("operator %s: %v", label, err) }))
	}
}

func (r *rig) node(id graph.NodeID) *graph.Node {
	return r.plan.nodes[slices.IndexFunc(r.plan.nodes, func(n *graph.Node) bool { return n.ID == id })]
}

func (r *rig) runtime(ctx context.Context, s *subtask, n *graph.Node, parallelism int) *operator.Runtime {
	return &operator.Runtime{
		Context: ctx, Job: "harness", UID: n.StateID(), Name: n.Name, Subtask: s.index, Parallelism: parallelism,
		Exec: base.Exec{Attempt: base.FirstAttempt(1, r.attempt)}, Restored: r.restored, Checkpointed: !r.settings.uncommitted,
		WatermarksEvery: r.plan.config.Get(config.WatermarkInterval), Now: func() int64 { return r.now },
		Mail: func(do func() error) { s.mails = append(s.mails, do) }, Wake: r.around.woken,
		Ask: func(payload any) { r.around.asked(s.index, payload) },
		Log: slog.New(&r.log), Doing: &r.doing,
	}
}

// open restores and opens the operators of a subtask, the last one first.
func (r *rig) open(s *subtask, parts restoredParts, index int) error {
	for _, n := range r.plan.nodes {
		if part := parts.of(n, index); part != nil {
			if err := r.as(n, func() error { return s.ops[n.ID].Restore(part) }); err != nil {
				return fmt.Errorf("restoring: %w", err)
			}
		}
	}
	for _, n := range slices.Backward(r.plan.nodes) {
		if err := r.as(n, s.ops[n.ID].Open); err != nil {
			return err
		}
	}
	return nil
}

// as runs a call of an operator under its name.
func (r *rig) as(n *graph.Node, call func() error) error {
	r.doing = n.Name
	return call()
}

// each calls all operators, upstream first, subtask by subtask.
func (r *rig) each(call func(s *subtask, n *graph.Node, op operator.Operator) error) error {
	for _, s := range r.subtasks {
		for _, n := range r.plan.nodes {
			if err := r.as(n, func() error { return call(s, n, s.ops[n.ID]) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// step is one thing that a test has a harness do. What it raises is done too: timers behind a watermark, mails. Where it fails,
// the test does, or Try hears of it.
func (r *rig) step(what string, do func() error) {
	r.t.Helper()
	switch {
	case r.closed:
		r.t.Fatalf("weirtest: %s: the harness is closed", what)
	case r.failure != nil:
		r.t.Fatalf("weirtest: %s: the operator has failed already (%v): an engine would go on from a snapshot, by Restore", what, r.failure)
	}
	err := r.guarded(func() error {
		if err := do(); err != nil {
			return err
		}
		return r.settle()
	})
	for _, check := range r.checks {
		check()
	}
	if err == nil {
		return
	}
	r.failure = fmt.Errorf("operator %q: %w", r.doing, err)
	if r.tried == nil {
		r.t.Fatalf("weirtest: %s: %v", what, r.failure)
	}
	*r.tried = r.failure
	panic(tried{})
}

// tried ends what Try does.
type tried struct{}

// Try does steps of the harness up to the first that fails, and returns its error: for functions that are to fail. After it only
// Restore goes on, as in a job.
func (r *rig) Try(steps func()) (err error) {
	r.tried = &err
	defer func() {
		r.tried = nil
		if p := recover(); p != nil && p != (any)(tried{}) {
			panic(p)
		}
	}()
	steps()
	return nil
}

// guarded makes an error of a panic of user code.
func (r *rig) guarded(call func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *state.UsageError:
			err = p
		default:
			err = fmt.Errorf("panic: %v\n%s", p, userStack(string(debug.Stack())))
		}
	}()
	return call()
}

// userStack is the part of a panic's stack trace between the panic and the harness.
func userStack(trace string) string {
	lines := strings.Split(strings.TrimSpace(trace), "\n")
	if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "panic(") }); i >= 0 {
		lines = lines[min(i+2, len(lines)):]
	}
	if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "github.com/weirstream/weir/weirtest.(*") }); i >= 0 {
		lines = lines[:i]
	}
	return strings.Join(lines, "\n")
}

// settle does what is left to do: the rest of the timers that a watermark has made due, mails, what a source and its readers have to say to
// each other.
func (r *rig) settle() error {
	for more := true; more; {
		err := r.each(func(s *subtask, _ *graph.Node, op operator.Operator) error { return s.settle(op) })
		if err != nil {
			return err
		}
		if more, err = r.around.settle(); err != nil {
			return err
		}
	}
	return nil
}

func (s *subtask) settle(op operator.Operator) error {
	for lagging, ok := op.(operator.Lagging); ok && lagging.Behind(); {
		if err := lagging.Continue(); err != nil {
			return err
		}
	}
	for len(s.mails) > 0 {
		do := s.mails[0]
		s.mails = s.mails[1:]
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// Now is the harness's processing time.
func (r *rig) Now() time.Time { return time.Unix(0, r.now).UTC() }

// Advance lets processing time pass: timers that become due fire, each at its time.
func (r *rig) Advance(d time.Duration) {
	r.t.Helper()
	r.AdvanceTo(r.Now().Add(d))
}

// AdvanceTo is Advance up to a time.
func (r *rig) AdvanceTo(t time.Time) {
	r.t.Helper()
	r.step("Advance", func() error {
		r.stored.before()
		defer r.stored.rebase()
		for to := t.UnixNano(); ; {
			due, ok := r.due(to)
			if !ok {
				r.now = max(r.now, to)
				return nil
			}
			r.now = max(r.now, due)
			if err := r.tick(); err != nil {
				return err
			}
		}
	})
}

// due is the earliest time up to one at which an operator has something to do.
func (r *rig) due(to int64) (at int64, ok bool) {
	_ = r.each(func(_ *subtask, _ *graph.Node, op operator.Operator) error {
		if c, clocked := op.(operator.Clocked); clocked {
			if d, has := c.Deadline(); has && d <= to && (!ok || d < at) {
				at, ok = d, true
			}
		}
		return nil
	})
	return at, ok
}

// tick has all operators do what is due.
func (r *rig) tick() error {
	return r.each(func(_ *subtask, _ *graph.Node, op operator.Operator) error {
		c, clocked := op.(operator.Clocked)
		if !clocked {
			return nil
		}
		if d, has := c.Deadline(); !has || d > r.now {
			return nil
		}
		return c.Tick(r.now)
	})
}

// control says something to all heads of the piece.
func (r *rig) control(say func(operator.Control) error) error {
	r.stored.before()
	defer r.stored.rebase()
	return r.each(func(_ *subtask, n *graph.Node, op operator.Operator) error {
		if !r.plan.head(n) {
			return nil
		}
		return say(op)
	})
}

// Close closes the operators, as a task does that is cancelled. The test's end does so by itself.
func (r *rig) Close() {
	r.t.Helper()
	if err := r.close(); err != nil && !r.t.Failed() {
		r.t.Error("weirtest: Close: ", err)
	}
}

func (r *rig) close() (err error) {
	if r.closed {
		return nil
	}
	if r.failure == nil {
		r.stored.before()
	}
	r.closed = true
	return r.kill()
}

// end is the test's end.
func (r *rig) end() {
	if err := r.close(); err != nil && !r.t.Failed() {
		r.t.Error("weirtest: Close: ", err)
	}
	if lines := r.log.last(listMost); r.t.Failed() && len(lines) > 0 {
		r.t.Log("the harness's log:\n" + list(lines))
	}
}

// abandon leaves everything as it is, as a process does that is killed. What it holds is released at the test's end.
func (r *rig) abandon() {
	left := r.subtasks
	r.closed, r.subtasks = true, nil
	r.t.Cleanup(func() { _ = r.closeAll(left) }) // its successors have what it would tell of
}

// kill ends the subtasks, whatever has become of them.
func (r *rig) kill() error {
	err := r.closeAll(r.subtasks)
	r.subtasks = nil
	return errors.Join(err, r.guarded(r.around.close))
}

func (r *rig) closeAll(subtasks []*subtask) error {
	var all []error
	for _, s := range subtasks {
		s.cancel()
		for _, n := range r.plan.nodes {
			if op := s.ops[n.ID]; op != nil {
				all = append(all, r.guarded(func() error { return r.as(n, op.Close) }))
			}
		}
	}
	return errors.Join(all...)
}
