package checkpoint

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weirstream/weir/internal/base"
)

// This file drives the Coordinator: it performs its actions on a disk in memory, deploys its tasks, and kills it.

// disk is what survives every process.
type disk struct {
	lastID   base.CheckpointID                // the largest id used
	metadata map[base.CheckpointID]*Completed // published
	stored   map[base.CheckpointID]bool
	shapes   map[*Completed]*shape
	notified map[base.CheckpointID]bool
	ended    map[base.CheckpointID]bool // reported as succeeded or failed
	origin   *Completed                 // the snapshot that the job was started from, by a person; nil: none
	foreign  bool                       // it was not claimed
	full     bool                       // a checkpoint has been published that needs none of it
}

func (d *disk) init() {
	d.metadata = map[base.CheckpointID]*Completed{}
	d.stored = map[base.CheckpointID]bool{}
	d.shapes = map[*Completed]*shape{}
	d.notified = map[base.CheckpointID]bool{}
	d.ended = map[base.CheckpointID]bool{}
}

// io is an action that waits for its answer; do makes it happen.
type io struct {
	action CoordinatorAction
	do     func() CoordinatorEvent
}

var errDisk = errors.New("disk")

// tell gives the master an event and performs what it answers. An event that comes up meanwhile waits.
func (w *world) tell(e CoordinatorEvent) {
	w.inbox = append(w.inbox, e)
	if w.performing {
		return
	}
	w.performing = true
	for len(w.inbox) > 0 && !w.stopped {
		e := w.inbox[0]
		w.inbox = w.inbox[1:]
		if w.verbose {
			w.logf("%T%+v", e, e)
		}
		w.tally.machineSteps++
		w.markBefore(e)
		for _, a := range w.faultyActions(w.faultyStep(e)) {
			if w.verbose {
				w.logf("    %T%+v", a, a)
			}
			w.perform(a)
		}
		w.markAfter()
	}
	w.inbox, w.performing = w.inbox[:0], false
	w.deadline = Never
	if d, ok := w.master.Deadline(); ok {
		w.deadline = d
	}
}

func (w *world) perform(a CoordinatorAction) {
	switch a := a.(type) {
	case CreateLocation:
		w.createLocation(a)
	case SnapshotOperator:
		w.snapshotEnumerator(a)
	case SnapshotHook:
		w.ask(a, func() CoordinatorEvent {
			if w.troubled(60) {
				return HookSnapped{Token: a.Token, Err: errDisk}
			}
			return HookSnapped{Token: a.Token, State: "hook"}
		})
	case TriggerTasks:
		w.checkNotOvertaking(a.Barrier.ID)
		for _, x := range a.Tasks {
			w.marks.hitIf(int(x.Task) < len(w.tasks) && len(w.tasks[x.Task].ins) > 0, "task behind finished ones triggered")
			w.send(x, Triggered{a.Barrier})
		}
	case SendEvent:
		w.send(a.Exec, a)
	case WriteMetadata:
		w.writeMetadata(a)
	case Store:
		w.ask(a, func() CoordinatorEvent { return w.store(a) })
	case NotifyComplete:
		w.notifyComplete(a)
	case NotifyAborted:
		w.tally.aborts++
		w.checkNotPublished(a.ID)
		for _, x := range a.Tasks {
			w.send(x, AbortNotified{a.ID, a.LatestComplete})
		}
	case Discard:
		w.ask(a, func() CoordinatorEvent { return w.discard(a) })
	case Reply:
		w.reply(a)
	case Restore:
		if !w.down {
			w.failf("a restore that nobody asked for")
		}
		w.checkLatest(a.From)
		w.deploy(a.From)
	case FailJob:
		w.marks.hitIf(a.Terminal, "terminal failure")
		w.marks.hitIf(!a.Terminal && a.Exec == NoExec, "tolerable failures exceeded")
		w.stopped, w.failing = a.Terminal, true
	case Report:
		w.report(a)
	default:
		panic(fmt.Sprintf("unknown action %T", a))
	}
}

// ask has an action answered some time.
func (w *world) ask(a CoordinatorAction, do func() CoordinatorEvent) {
	w.questions = append(w.questions, io{a, do})
}

// answer answers one of the open questions, in any order.
func (w *world) answer() bool {
	if len(w.questions) == 0 {
		return false
	}
	i := w.rng.IntN(len(w.questions))
	q := w.questions[i]
	w.questions = slices.Delete(w.questions, i, i+1)
	w.tell(q.do())
	return true
}

func (w *world) createLocation(a CreateLocation) {
	if a.ID <= w.disk.lastID {
		w.failf("id %d is used again: %d has been", a.ID, w.disk.lastID)
	}
	w.ask(a, func() CoordinatorEvent {
		w.disk.lastID = max(w.disk.lastID, a.ID)
		if w.troubled(40) {
			return LocationCreated{Token: a.Token, Err: errDisk}
		}
		return LocationCreated{Token: a.Token, Location: fmt.Sprint("chk-", a.ID), Wall: int64(w.now)}
	})
}

func (w *world) writeMetadata(a WriteMetadata) {
	w.checkCut(a.Completed)
	if w.fault == notifyBeforeStored {
		w.notifyComplete(NotifyComplete{ID: a.Completed.ID})
	}
	w.ask(a, func() CoordinatorEvent {
		if w.troubled(30) {
			return MetadataWritten{Token: a.Token, Err: errDisk}
		}
		w.publish(a.Completed)
		return MetadataWritten{Token: a.Token, Bytes: 100}
	})
}

func (w *world) publish(d *Completed) {
	if w.disk.metadata[d.ID] != nil {
		w.failf("the metadata of %d is published twice", d.ID)
	}
	for _, part := range d.Tasks {
		if s, ok := part.(*simSnapshot); ok && s.deleted {
			w.failf("the metadata of %d is published after its files were deleted", d.ID)
		}
	}
	if d.Base != 0 {
		w.marks.hit("incremental")
		if w.disk.metadata[d.Base] == nil {
			w.failf("checkpoint %d refers to files of %d, which is gone", d.ID, d.Base)
		}
	}
	w.checkUnclaimed(d)
	w.disk.metadata[d.ID] = d
}

func (w *world) store(a Store) CoordinatorEvent {
	if w.troubled(20) {
		return Stored{Token: a.Token, Err: errDisk}
	}
	w.disk.stored[a.Completed.ID] = true
	return Stored{Token: a.Token}
}

func (w *world) notifyComplete(a NotifyComplete) {
	w.checkNotify(a.ID)
	if l := w.master.latest(); l != nil {
		w.marks.hitIf(l.ID > a.ID, "older completes after newer")
	}
	w.tally.checkpoints++
	w.failing = w.failing || w.ending() && w.troubled(8) // what has ended in it, and what not?
	for _, x := range a.Tasks {
		w.send(x, CompleteNotified{a.ID})
	}
}

func (w *world) discard(a Discard) CoordinatorEvent {
	if a.Completed != nil {
		if a.Completed == w.disk.origin && w.disk.foreign {
			w.failf("snapshot %d is deleted, which belongs to somebody else", a.ID)
		}
		if l := w.master.latest(); l != nil && l.ID == a.ID {
			w.failf("the latest checkpoint %d is deleted", a.ID)
		}
		delete(w.disk.metadata, a.ID)
		for _, part := range a.Completed.Tasks {
			if s, ok := part.(*simSnapshot); ok {
				s.deleted = true
			}
		}
		delete(w.disk.shapes, a.Completed)
	}
	if s, ok := a.State.(*simSnapshot); ok {
		w.marks.hit("late acknowledgement deleted")
		s.deleted = true
	}
	w.checkFiles()
	return Discarded{a.Token}
}

func (w *world) reply(a Reply) {
	if !w.requests[a.Request] {
		w.failf("a second reply to request %d", a.Request)
	}
	delete(w.requests, a.Request)
	if a.Reason != NoReason {
		return
	}
	w.tally.savepoints++
	if d := w.disk.metadata[a.ID]; w.fault == savepointCommits && d != nil && !d.Kind.IsSynchronous() {
		for _, t := range w.tasks {
			w.send(t.exec, CompleteNotified{a.ID})
		}
	}
	if w.disk.metadata[a.ID] == nil {
		w.failf("the reply says that %d is complete, but it has no metadata", a.ID)
	}
}

func (w *world) report(a Report) {
	if a.What == Begun || a.ID == 0 {
		w.marks.hitIf(a.What == Failed, a.Reason.String())
		return
	}
	if w.disk.ended[a.ID] {
		w.failf("checkpoint %d ends twice", a.ID)
	}
	w.disk.ended[a.ID] = true
	w.marks.hitIf(a.What == Failed, a.Reason.String())
}

// send puts a message on the link of an execution, or loses it. Messages are numbered: the next one shows the gap.
func (w *world) send(x base.Exec, m any) {
	if int(x.Task) < len(w.tasks) {
		t := w.tasks[x.Task]
		if t.exec == x && t.lives() {
			if w.troubled(300) {
				w.marks.hit("message to a task lost")
				t.gap = true
				return
			}
			if t.gap {
				m = gap{}
			}
			t.link = append(t.link, m)
			return
		}
	}
	if m, ok := m.(Triggered); ok {
		w.up = append(w.up, TriggerRefused{x, m.Barrier.ID, UnknownTask, errors.New("no such task")})
	}
}

// gap is any message behind a lost one.
type gap struct{}

// deliverUp gives the master a message of a task. Acknowledgements overtake, are lost and doubled; the rest is in order.
func (w *world) deliverUp() bool {
	if len(w.up) == 0 {
		return false
	}
	i := w.rng.IntN(len(w.up))
	if _, ok := w.up[i].(TaskAcked); !ok {
		i = 0
	}
	e := w.up[i]
	w.up = slices.Delete(w.up, i, i+1)
	w.tell(e)
	return true
}

// sendUp sends an answer of a task to the master.
func (w *world) sendUp(e CoordinatorEvent) {
	switch {
	case w.troubled(60):
		return
	case w.troubled(60):
		w.up = append(w.up, e)
	}
	w.up = append(w.up, e)
}

// failOver has a task die, and then, while the others go on, one after the other. Some time the job's status changes. In
// the end the master is asked what to restore from.
func (w *world) failOver() {
	if w.down || len(w.tasks) == 0 {
		return
	}
	w.down = true
	w.deathRate = [...]int{8, 8, 8, 300}[w.rng.IntN(4)]
	w.dying = slices.Clone(w.tasks)
	w.rng.Shuffle(len(w.dying), func(i, j int) { w.dying[i], w.dying[j] = w.dying[j], w.dying[i] })
	w.killNext()
}

func (w *world) killNext() {
	t := w.dying[0]
	w.dying = w.dying[1:]
	t.dead = true
	w.tell(TaskChanged{t.exec, TaskGone})
	if w.oneIn(3) || len(w.dying) == 0 {
		w.tell(JobNotRunning{})
	}
	if len(w.dying) == 0 && !w.stopped {
		w.tasks, w.channels = nil, nil
		w.tell(RestoreAsked{})
	}
}

// crashMaster kills the master. What it had begun to write may or may not have happened.
func (w *world) crashMaster() {
	for _, q := range w.questions {
		switch a := q.action.(type) {
		case WriteMetadata:
			if w.oneIn(2) {
				w.marks.hit("metadata published by a dead master")
				w.publish(a.Completed)
			}
		case Store:
			if w.oneIn(2) {
				w.disk.stored[a.Completed.ID] = true
			}
		default:
		}
	}
	w.startMaster()
}

// startMaster starts the job from the latest that the disk has, at another parallelism.
func (w *world) startMaster() {
	w.tally.masters++
	w.parallel = w.topo.randomParallelism(w.rng)
	w.graph = w.topo.graph(w.parallel, w.union)
	completed := w.recovered()
	last := w.disk.lastID
	if w.fault == idUsedAgain {
		last = 0
	}
	var err error
	w.master, err = NewCoordinator(w.cfg, w.graph, Recovered{LastID: last, Completed: completed})
	if err != nil {
		panic(err)
	}
	if w.fault == unclaimedTaken && w.disk.foreign {
		w.master.forceFull = true
	}
	w.questions, w.outbox, w.inbox = nil, nil, nil
	maps.DeleteFunc(w.disk.ended, func(id base.CheckpointID, _ bool) bool { return id > w.disk.lastID }) // never really used
	clear(w.requests)
	w.stopped, w.performing, w.dying = false, false, nil
	w.deploy(w.master.latest())
}

// recovered lists what a restart finds: what the job was started from, checkpoints with metadata, and the newest savepoint
// that the job stopped with.
func (w *world) recovered() []*Completed {
	var all []*Completed
	for _, d := range w.disk.metadata {
		terminal := d.Kind.IsSynchronous() && w.disk.stored[d.ID] && w.fault != terminalIgnored
		if !d.Kind.IsSavepoint() || terminal || d == w.disk.origin {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b *Completed) int { return int(a.ID - b.ID) })
	return all
}

// startFromSnapshot is a person who ends the job and starts it anew, in another directory, from one of its savepoints or
// checkpoints, claimed or not. What has been written since is somebody else's world: time goes back to the snapshot.
func (w *world) startFromSnapshot() bool {
	ids := slices.Sorted(maps.Keys(w.disk.metadata))
	if len(ids) == 0 {
		return false
	}
	old := w.disk.metadata[ids[w.rng.IntN(len(ids))]]
	from := *old
	w.disk.foreign = w.oneIn(2)
	from.Keep = w.disk.foreign && w.fault != unclaimedTaken
	w.marks.hitIf(from.Keep && !from.Kind.IsSavepoint(), "started from an unclaimed checkpoint")
	w.marks.hitIf(from.Keep && from.Kind.IsSavepoint(), "started from an unclaimed savepoint")
	w.marks.hitIf(!from.Keep && !from.Kind.IsSavepoint(), "started from a claimed checkpoint")
	w.marks.hitIf(!from.Keep && from.Kind.IsSavepoint(), "started from a claimed savepoint")
	w.disk.shapes[&from] = w.disk.shapes[old]
	w.disk.metadata = map[base.CheckpointID]*Completed{from.ID: &from}
	w.disk.origin, w.disk.full = &from, false
	w.sink.goBackTo(from.ID)
	w.startMaster()
	return true
}
