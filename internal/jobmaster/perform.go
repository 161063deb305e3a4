package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/worker"
)

// perform does one action of the machine.
func (m *Master) perform(a job.Action) {
	switch a := a.(type) {
	case job.CancelTasks:
		for _, x := range a.Tasks {
			m.lives.canceling(x)
			m.send(x, worker.Cancel{})
		}
	case job.ResetOperators:
		m.reset(a)
	case job.DeployTasks:
		m.deploy(a)
	case job.Relay:
		m.performCheckpoint(a.Action)
	case job.Reply:
		m.reply(a)
	case job.ReportStatus:
		m.reportStatus(a)
	case job.RecordEnd:
		m.recordEnd(a)
	case job.ReportRestart:
		m.lives.failed(a.Failure)
		m.log.Warn(a.String())
	case job.End:
		m.end = &a
	default:
		panic(fmt.Sprintf("jobmaster: unknown action %T", a))
	}
}

// performCheckpoint does one action of the checkpoint coordinator.
func (m *Master) performCheckpoint(a checkpoint.CoordinatorAction) {
	switch a := a.(type) {
	case checkpoint.CreateLocation:
		m.createLocation(a)
	case checkpoint.SnapshotOperator:
		m.asking(a.Token, a.ID, "the operator coordinator of "+m.options.Graph.Vertices[a.Vertex].Head().Label())
		m.runners[a.Vertex].snapshot(a.Token, a.ID)
	case checkpoint.SnapshotHook:
		m.asking(a.Token, a.ID, fmt.Sprintf("master hook %q", m.options.Hooks[a.Hook].ID()))
		m.snapshotHook(a)
	case checkpoint.TriggerTasks:
		m.stats.Triggered(a.Barrier.ID, time.Now())
		for _, x := range a.Tasks {
			m.send(x, worker.Trigger{Barrier: a.Barrier})
		}
	case checkpoint.SendEvent:
		m.send(a.Exec, worker.Deliver{Payload: a.Payload})
	case checkpoint.WriteMetadata:
		m.writeMetadata(a)
	case checkpoint.Store:
		m.store(a)
	case checkpoint.NotifyComplete:
		for _, x := range a.Tasks {
			m.send(x, worker.Complete{ID: a.ID})
		}
	case checkpoint.NotifyAborted:
		for _, x := range a.Tasks {
			m.send(x, worker.Abort{ID: a.ID, Latest: a.LatestComplete})
		}
	case checkpoint.Discard:
		m.discard(a)
	case checkpoint.Report:
		m.report(a)
	case checkpoint.Restore, checkpoint.FailJob, checkpoint.Reply:
		panic(fmt.Sprintf("jobmaster: %T is the machine's own", a))
	default:
		panic(fmt.Sprintf("jobmaster: unknown action %T of the checkpoint coordinator", a))
	}
}

// startIO calls do on a goroutine of its own, and has what it returns done on the actor's.
func (m *Master) startIO(do func() func()) {
	m.others.Add(1)
	go m.runIO(do)
}

func (m *Master) runIO(do func() func()) {
	defer m.others.Done()
	m.post(do())
}

// answer is what an I/O goroutine hands back: one event for the coordinator.
func (m *Master) answer(e checkpoint.CoordinatorEvent) func() {
	return func() { m.step(job.Relayed{Event: e}) }
}

// recordEnd has the storage remember how the job ends.
func (m *Master) recordEnd(a job.RecordEnd) {
	m.log.Info(fmt.Sprintf("Stopping checkpoint coordinator for job %s.", m.options.ID))
	m.startIO(func() func() {
		err := m.options.Store.SetEndState(a.Status.String())
		return func() {
			if err != nil {
				m.log.Error("The end state of the job could not be recorded; its checkpoints stay.", "state", a.Status.String(), "error", err)
			}
			m.step(job.EndRecorded{Err: err})
		}
	})
}

func (m *Master) createLocation(a checkpoint.CreateLocation) {
	m.startIO(func() func() {
		location, err := m.options.Store.CreateLocation(a.ID, kindOf(a.Kind), a.Target)
		return m.answer(checkpoint.LocationCreated{Token: a.Token, Location: location, Wall: time.Now().UnixNano(), Err: err})
	})
}

func (m *Master) snapshotHook(a checkpoint.SnapshotHook) {
	hook, wall := m.options.Hooks[a.Hook], time.Now().UnixNano()
	m.startIO(func() func() {
		var state []byte
		err := m.callHook(hook, func() (err error) { state, err = hook.Trigger(m.ctx, a.ID, wall); return err })
		if err != nil {
			err = fmt.Errorf("master hook %q: %w", hook.ID(), err)
		}
		return m.answer(checkpoint.HookSnapped{Token: a.Token, State: state, Err: triggerError(err)})
	})
}

// callHook calls a hook, and watches that it returns when the job ends.
func (m *Master) callHook(h Hook, call func() error) error {
	done := make(chan struct{})
	defer close(done)
	stop := context.AfterFunc(m.ctx, func() { m.watch(done, fmt.Sprintf("Master hook %q", h.ID())) })
	defer stop()
	return guard(call)
}

// uncertainPause is the time between two attempts to learn whether metadata is published.
const uncertainPause = time.Second

// writeMetadata publishes a checkpoint. The answer must be certain, so a storage that cannot say whether it has published is
// asked until it can: nothing else may decide, or the checkpoint would be given up here and be the latest there.
func (m *Master) writeMetadata(a checkpoint.WriteMetadata) {
	m.startIO(func() func() {
		metadata, err := m.metadata(a.Completed)
		var bytes int64
		for err == nil {
			bytes, err = m.options.Store.Publish(a.Completed.Location, metadata)
			if !errors.Is(err, storage.ErrUncertain) {
				break
			}
			m.log.Warn("It is uncertain whether the metadata of a checkpoint is published; asking again.", "checkpoint", a.Completed.ID, "error", err)
			time.Sleep(uncertainPause)
			err = nil
		}
		return func() {
			if err == nil && (a.Completed.Kind == checkpoint.Checkpoint || a.Completed.Kind == checkpoint.FullCheckpoint) {
				m.points[a.Completed.ID] = Point{Metadata: metadata, Location: a.Completed.Location}
			}
			if err == nil {
				m.stats.Sealed(a.Completed.ID, metadata.Sizes())
			}
			m.step(job.Relayed{Event: checkpoint.MetadataWritten{Token: a.Token, Bytes: bytes, Err: err}})
		}
	})
}

// store makes a checkpoint what a restart finds. A published checkpoint is that already; the savepoint by which the job stops
// lies elsewhere, and needs a pointer.
func (m *Master) store(a checkpoint.Store) {
	c := a.Completed
	if !c.Kind.IsSynchronous() {
		m.post(m.answer(checkpoint.Stored{Token: a.Token}))
		return
	}
	m.startIO(func() func() {
		err := m.options.Store.PointSavepoint(c.ID, c.Location)
		return m.answer(checkpoint.Stored{Token: a.Token, Err: err})
	})
}

// discard deletes a checkpoint that was given up or retired. Late files of one that was given up are deleted by deleting it
// again; those of one that is not (its ID is not among the discarded) are left to the sweep of orphans.
func (m *Master) discard(a checkpoint.Discard) {
	m.stats.Discarded(a.ID)
	location := a.Location
	if location == "" {
		location = m.discarded.get(a.ID)
	} else {
		m.discarded.put(a.ID, location)
		_, completed := m.points[a.ID]
		m.unswept = m.unswept || !completed // uploads of what was given up may come late
		delete(m.points, a.ID)
	}
	m.startIO(func() func() {
		left := location == ""
		if !left {
			if err := m.options.Store.Discard(location); err != nil {
				m.log.Warn("Files of a checkpoint could not be deleted; they are deleted later.", "checkpoint", a.ID, "location", location, "error", err)
				left = true
			}
		}
		return func() {
			m.unswept = m.unswept || left
			m.step(job.Relayed{Event: checkpoint.Discarded{Token: a.Token}})
		}
	})
}

// sweep deletes what crashes and failed deletions have left, once there is a newer checkpoint.
func (m *Master) sweep() {
	if !m.unswept {
		return
	}
	m.unswept = false
	m.startIO(func() func() {
		removed, err := m.options.Store.Sweep()
		if len(removed) > 0 {
			m.log.Info("Files that no checkpoint needs were deleted.", "removed", removed)
		}
		if err != nil {
			m.log.Warn("Files that no checkpoint needs could not be deleted; the next checkpoint tries again.", "error", err)
		}
		return func() { m.unswept = m.unswept || err != nil }
	})
}

// places remembers where the last discarded checkpoints lay, for acknowledgements that come later.
type places struct {
	ids   [placesKept]base.CheckpointID
	paths [placesKept]string
	next  int
}

// placesKept is as many as the coordinator remembers aborted checkpoints.
const placesKept = 256

func (p *places) put(id base.CheckpointID, path string) {
	p.ids[p.next], p.paths[p.next] = id, path
	p.next = (p.next + 1) % placesKept
}

// get is where the checkpoint lay; "": it was not discarded, or long ago.
func (p *places) get(id base.CheckpointID) string {
	for i, known := range p.ids {
		if known == id {
			return p.paths[i]
		}
	}
	return ""
}
