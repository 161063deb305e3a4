package jobmaster

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/fit"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/task"
)

// restorable checks, before anything runs, that every part of a checkpoint finds its place in the job.
func (m *Master) restorable(p Point) error {
	report := fit.Check(p.Metadata, m.program, m.options.AllowNonRestored)
	if err := report.Err(); err != nil {
		return fmt.Errorf("the job cannot be restored from %s:\n%w", p.Location, err)
	}
	for _, change := range report.Changes() {
		m.log.Info("Restoring: " + change)
	}
	return nil
}

// redistribution is how the state of a checkpoint goes to the tasks of the job.
type redistribution struct {
	match *snapshot.Match
	nodes map[*graph.Node]*snapshot.Redistribution // of the operators that the checkpoint knows
}

// redistribute fails where some operator cannot be given out.
func redistribute(g *graph.Job, match *snapshot.Match) (*redistribution, error) {
	r := &redistribution{match: match, nodes: map[*graph.Node]*snapshot.Redistribution{}}
	for _, v := range g.Vertices {
		for _, n := range v.Nodes {
			o := match.Operators[n.StateID()]
			if o == nil {
				continue
			}
			var err error
			if r.nodes[n], err = o.Redistribute(v.Parallelism); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// assign is what one subtask of a vertex gets back: by node of its chain (nil: the checkpoint does not know the operator), and the records
// in flight to any of them.
func (r *redistribution) assign(v *graph.Vertex, subtask int) (parts []*snapshot.Restored, inFlight []snapshot.InFlightPart) {
	parts = make([]*snapshot.Restored, len(v.Nodes))
	for i, n := range v.Nodes {
		if d := r.nodes[n]; d != nil {
			part := d.Assign(subtask)
			parts[i] = &part
		}
	}
	for _, e := range r.match.Edges {
		if v.NodeByStateID(e.To) >= 0 {
			inFlight = append(inFlight, e.Assign(v.Parallelism, subtask)...)
		}
	}
	return parts, inFlight
}

// deploy starts executions, each with its part of the checkpoint.
func (m *Master) deploy(a job.DeployTasks) {
	specs := make([]task.Spec, 0, len(a.Tasks))
	restore, err := m.restoring(a.From)
	if restore != nil && err == nil {
		m.stats.Deployed(a.From, a.Tasks, time.Now())
		m.log.Info(fmt.Sprintf("Restoring the job from checkpoint %d.", a.From.ID), "kind", a.From.Kind.String(), "location", restore.point.Location)
		if dropped := restore.match.Lost(); len(dropped) > 0 {
			m.log.Warn("State that the program has no place for is dropped, as --allowNonRestoredState says.", "dropped", strings.Join(dropped, "; "))
		}
	}
	for _, x := range a.Tasks {
		m.links[x.Task] = &link{exec: x}
		m.lives.deployed(x)
		if err != nil {
			continue
		}
		specs = append(specs, m.spec(x, restore))
	}
	if err != nil {
		m.post(func() {
			for _, x := range a.Tasks {
				m.step(job.TaskReported{Exec: x, State: job.TaskFailed, Err: err, Permanent: true})
			}
		})
		return
	}
	m.options.Worker.Deploy(specs)
}

// restoration is a restore point, matched with the job.
type restoration struct {
	point Point
	*redistribution
}

// restoring is nil for an empty start.
func (m *Master) restoring(from *checkpoint.Completed) (*restoration, error) {
	if from == nil {
		return nil, nil
	}
	p, ok := m.points[from.ID]
	if !ok {
		return nil, fmt.Errorf("jobmaster: checkpoint %d is to be restored, but its metadata is not known", from.ID)
	}
	r, err := redistribute(m.options.Graph, m.program.Match(p.Metadata))
	if err != nil {
		return nil, err
	}
	return &restoration{point: p, redistribution: r}, nil
}

func (m *Master) spec(x base.Exec, r *restoration) task.Spec {
	v, subtask := m.options.Graph.Locate(x.Task)
	s := task.Spec{Job: m.options.Graph.Name, Exec: x, Vertex: v, Subtask: subtask, Options: m.options.Task,
		Writer: func(location string) storage.Writer {
			return m.options.Store.Writer(location, storage.WriterOptions{InlineMax: m.options.InlineMax})
		}}
	if r == nil {
		return s
	}
	parts, inFlight := r.assign(v, subtask)
	s.Restore = &task.Restore{ID: r.point.Metadata.ID, Base: m.baseOf(r.point), Operators: parts, InFlight: inFlight, AllowDropped: m.options.AllowNonRestored,
		Open:      func(h snapshot.Handle) (storage.Reader, error) { return m.options.Store.Open(r.point.Location, h) },
		OpenPages: func(h snapshot.Handle) (storage.Reader, error) { return m.options.Store.OpenPages(r.point.Location, h) }}
	return s
}

// baseOf is the id of a checkpoint, if later ones may refer to its files; else 0.
func (m *Master) baseOf(p Point) base.CheckpointID {
	if !m.options.Task.Incremental || p.Metadata.Kind.IsSavepoint() || p.Keep || m.isApart(p) {
		return 0
	}
	return p.Metadata.ID
}

// isApart reports that a checkpoint, or a file that it refers to, lies elsewhere than the job's own: it was claimed there, or the job's
// directory is the copy of another.
func (m *Master) isApart(p Point) (apart bool) {
	apart = !m.options.Store.Within(p.Location)
	_ = p.Metadata.Handles(func(_ snapshot.Owner, h *snapshot.Handle) error { // which never fails
		apart = apart || path.IsAbs(h.File) && !m.options.Store.Within(path.Dir(h.File))
		return nil
	})
	return apart
}

// reset is one ResetOperators under way: the hooks and the new operator coordinators of some vertices.
type reset struct {
	left atomic.Int64
	mu   sync.Mutex
	err  error // protected by mu; the first one
}

// reset replaces the operator coordinators and restores the hooks, all at once and none of it here: it is user code. The last
// one to be ready answers.
func (m *Master) reset(a job.ResetOperators) {
	restore, err := m.restoring(a.From)
	if err != nil {
		m.post(func() { m.step(job.OperatorsReset{Token: a.Token, Err: err, Permanent: true}) })
		return
	}
	r := &reset{}
	r.left.Store(int64(len(a.Vertices) + 1))
	ready := func(err error) {
		r.mu.Lock()
		r.err = errors.Join(r.err, err)
		err = r.err
		r.mu.Unlock()
		if r.left.Add(-1) == 0 {
			m.post(func() { m.step(job.OperatorsReset{Token: a.Token, Err: err, Permanent: permanent(err)}) })
		}
	}
	for _, v := range a.Vertices {
		m.replaceRunner(m.options.Graph.Vertices[v], restore, ready)
	}
	m.startHooks(restore, ready)
}

// startHooks starts the goroutine that restores the hooks.
func (m *Master) startHooks(r *restoration, ready func(error)) {
	m.others.Add(1)
	go m.runHooks(r, ready)
}

// runHooks restores the hooks, one after the other; the master owns the goroutine, which ends with the last hook.
func (m *Master) runHooks(r *restoration, ready func(error)) {
	defer m.others.Done()
	ready(m.restoreHooks(r))
}

func (m *Master) restoreHooks(r *restoration) error {
	for _, hook := range m.options.Hooks {
		var id base.CheckpointID
		var state []byte
		if r != nil {
			id = r.point.Metadata.ID
			if h := r.match.Hooks[hook.ID()]; h != nil {
				var err error
				if state, err = m.read(r.point.Location, h.State); err != nil {
					return fmt.Errorf("reading the state of master hook %q: %w", hook.ID(), err)
				}
			}
		}
		if err := m.callHook(hook, func() error { return hook.Restore(m.ctx, id, state) }); err != nil {
			return fmt.Errorf("restoring master hook %q: %w", hook.ID(), err)
		}
	}
	return nil
}

// read is all bytes of a handle.
func (m *Master) read(location string, h snapshot.Handle) ([]byte, error) {
	r, err := m.options.Store.Open(location, h)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	return b, errors.Join(err, r.Close())
}
