package checkpoint

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weirstream/weir/internal/base"
)

// This file drives a BarrierHandler: a task that takes items from its channels, and performs its actions.

// record is what flows. Of one origin, path and key each number is there once.
type record struct {
	origin int // the node that made it: a source, or a counter
	path   int // over which edges it came from there
	key, n int
	rule   bool
}

type itemKind uint8

const (
	aRecord itemKind = iota
	aBarrier
	aCancel
	endOfData
	endOfChannel
)

// item is what lies in a queue.
type item struct {
	kind    itemKind
	record  record
	number  int  // of a record in its channel: a ghost that only checkers look at
	stop    bool // end of data: by a suspend
	barrier Barrier
	id      base.CheckpointID // of a cancel marker
}

func (it *item) isBarrier(id base.CheckpointID) bool {
	return it.kind == aBarrier && it.barrier.ID == id
}

// simTask is one attempt of a subtask.
type simTask struct {
	exec    base.Exec
	node    int
	role    role
	index   int
	handler *BarrierHandler
	ins     []*simChannel
	outs    []*simChannel
	edges   [][]*simChannel // outs by edge
	link    []any           // from the master, in order
	gap     bool            // a message was lost

	inbox      []HandlerEvent
	performing bool
	deadline   Time
	uploads    []*simSnapshot
	told       map[base.CheckpointID]told
	lastSent   base.CheckpointID // barrier or cancel marker

	offsets      map[int]int // by split; of rules by 0
	noMore       bool
	counts       map[int]int
	rules        map[int]bool
	current      []record // of the open transaction
	transactions []transaction

	ends  int  // ends of data received
	stop  bool // by a suspend
	ended bool // sends nothing more
	done  bool
	dead  bool
}

func (t *simTask) lives() bool { return !t.done && !t.dead }

// told is what has been said about a checkpoint.
type told uint8

const (
	toldMaster told = 1 << iota // acknowledged or declined
	toldDownstream
)

// transaction is what a sink has written between two snapshots.
type transaction struct {
	id      int
	sink    int // the node
	by      base.CheckpointID
	records []record
}

// simSnapshot is a task's part of a checkpoint.
type simSnapshot struct {
	exec         base.Exec
	barrier      Barrier
	offsets      map[int]int
	counts       map[int]int
	rules        map[int]bool
	transactions []transaction
	in, out      []channelPart // by slot
	recorded     bool          // the inputs' in-flight data is complete
	deleted      bool
}

// channelPart is where a task was in a channel, and what of it lies in its part of the checkpoint.
type channelPart struct {
	passed int // records sent, or received
	flight []item
}

func (w *world) newSimTask(x base.Exec, n, index int) *simTask {
	return &simTask{
		exec: x, node: n, role: w.topo.nodes[n].role, index: index, told: map[base.CheckpointID]told{}, deadline: Never,
		offsets: map[int]int{}, counts: map[int]int{}, rules: map[int]bool{},
	}
}

// tellTask gives a task's handler an event and performs what it answers. An event that comes up meanwhile waits.
func (w *world) tellTask(t *simTask, e HandlerEvent) {
	t.inbox = append(t.inbox, e)
	if t.performing {
		return
	}
	t.performing = true
	for len(t.inbox) > 0 {
		e := t.inbox[0]
		t.inbox = t.inbox[1:]
		if w.verbose {
			w.logf("  task %d: %T%+v", t.exec.Task, e, e)
		}
		w.tally.machineSteps++
		w.markHandler(t, e)
		for _, a := range w.faultyTaskStep(t, e) {
			if w.verbose {
				w.logf("      %T%+v", a, a)
			}
			w.performTask(t, a)
		}
	}
	t.inbox, t.performing = t.inbox[:0], false
	t.deadline = Never
	if d, ok := t.handler.Deadline(); ok {
		t.deadline = d
	}
	w.checkBlocked(t)
}

func (w *world) performTask(t *simTask, a HandlerAction) {
	switch a := a.(type) {
	case Block:
		if w.fault != blockIgnored {
			t.ins[a.Channel].gate = blocked
		}
	case Unblock:
		if w.fault != blockNotLifted || a.Channel != 1 {
			t.ins[a.Channel].gate = open
		}
	case Seal:
		w.marks.hit("channel sealed")
		if ch := t.ins[a.Channel]; w.fault != sealIgnored {
			ch.gate, ch.before = sealed, len(ch.in)
		}
	case Prioritize:
		w.prioritize(t, a)
	case EndSource:
		w.endSource(t, a)
	case Snapshot:
		w.snapshot(t, a)
	case StopRecording:
		w.stopRecording(t, a.ID)
	case ConvertOutput:
		w.convertOutput(t, a.ID)
	case DropSnapshot:
		w.marks.hit("snapshot dropped")
		w.dropSnapshot(t, a.ID)
	case ForwardCancel:
		w.checkOnce(t, a.ID, toldDownstream)
		w.broadcast(t, item{kind: aCancel, id: a.ID})
	case Ack:
		w.checkOnce(t, a.ID, toldMaster)
		w.sendUp(TaskAcked{Exec: t.exec, ID: a.ID, State: a.State, Ended: a.Ended})
	case Decline:
		w.marks.hit("declined: " + a.Reason.String())
		w.checkOnce(t, a.ID, toldMaster)
		w.sendUp(TaskDeclined{t.exec, a.ID, a.Reason, a.Err})
	case Complete:
		w.commitAll(t, a.ID)
	case Abort:
	case Finish:
		t.done = true
		w.broadcast(t, item{kind: endOfChannel})
		w.up = append(w.up, TaskChanged{t.exec, TaskFinished})
	case FailTask:
		w.marks.hit("stop failed")
		w.failing = true
	default:
		panic(fmt.Sprintf("unknown action of a task %T", a))
	}
}

func (w *world) broadcast(t *simTask, it item) {
	for _, ch := range t.outs {
		ch.out = append(ch.out, it)
	}
}

// deliver gives a task the next message of its link.
func (w *world) deliver(t *simTask) bool {
	if len(t.link) == 0 || !t.lives() {
		return false
	}
	m := t.link[0]
	t.link = t.link[1:]
	switch m := m.(type) {
	case gap:
		w.failing = true
	case SendEvent:
		if split := m.Payload.(int); split == noMore {
			t.noMore = true
		} else {
			t.offsets[split] = 0
		}
	case HandlerEvent:
		w.tellTask(t, m)
	}
	return true
}

// work takes one item, or reads one record.
func (w *world) work(t *simTask) bool {
	switch {
	case !t.lives() || int(t.exec.Task) == w.slow && !w.calm && !w.oneIn(w.slowness):
		return false
	case t.role == splitsSource:
		return w.readSplit(t)
	case t.role == rulesSource:
		return w.readRule(t)
	}
	ch := t.ins[w.rng.IntN(len(t.ins))]
	if t.full() || !ch.ready() {
		return false
	}
	w.takeItem(t, ch, ch.takeHead())
	return true
}

func (w *world) takeItem(t *simTask, ch *simChannel, it item) {
	switch it.kind {
	case aRecord:
		ch.received++
		if it.number != ch.received {
			w.failf("a channel of task %d: record %d comes after %d", t.exec.Task, it.number, ch.received-1)
		}
		if t.ended {
			w.failf("task %d has ended, and gets %+v", t.exec.Task, it.record)
		}
		w.process(t, it.record)
	case aBarrier:
		ch.barrier = max(ch.barrier, it.barrier.ID)
		w.tellTask(t, BarrierArrived{Channel: ch.slotIn, Barrier: it.barrier})
	case aCancel:
		w.tellTask(t, CancelArrived{ch.slotIn, it.id})
	case endOfData:
		t.stop = t.stop || it.stop
		t.ends++
		if t.ends == len(t.ins) && !t.ended {
			w.end(t)
		}
	case endOfChannel:
		w.tellTask(t, ChannelEnded{ch.slotIn})
	}
}

func (w *world) process(t *simTask, r record) {
	switch {
	case r.rule && w.topo.nodes[t.node].rules:
		w.emit(t, r)
	case r.rule:
		if t.rules[r.n] && !w.cfg.AtLeastOnce {
			w.failf("task %d gets rule %d twice", t.exec.Task, r.n)
		}
		t.rules[r.n] = true
	case t.role == sink:
		t.current = append(t.current, r)
	case t.role == relay:
		w.emit(t, r)
	default:
		t.counts[r.key]++
		w.emit(t, record{origin: t.node, key: r.key, n: t.counts[r.key]})
	}
}

func (w *world) readSplit(t *simTask) bool {
	if t.ended || t.full() || t.stop {
		return false
	}
	length := w.lengths[t.node]
	for split := range w.splits {
		if offset, ok := t.offsets[split]; ok && offset < length {
			t.offsets[split]++
			w.emit(t, record{origin: t.node, key: keyOf(split, offset), n: split*length + offset})
			return true
		}
	}
	if t.noMore {
		w.end(t)
	}
	return t.noMore
}

// keyOf is the key of a source's record.
func keyOf(split, offset int) int {
	const keys = 6
	return (split*31 + offset) % keys
}

func (w *world) readRule(t *simTask) bool {
	switch {
	case t.ended || t.full() || t.stop:
		return false
	case t.offsets[0] < w.ruleCount:
		t.offsets[0]++
		w.emit(t, record{rule: true, origin: t.node, key: t.offsets[0], n: t.offsets[0]})
	default:
		w.end(t)
	}
	return true
}

// end is the end of a task's data.
func (w *world) end(t *simTask) {
	w.broadcast(t, item{kind: endOfData, stop: t.stop})
	t.ended = !t.stop
	w.tellTask(t, DataEnded{Drained: !t.stop})
	if t.ended {
		w.up = append(w.up, TaskEnded{t.exec})
	}
}

// endSource is the same by a stop with a savepoint, between Triggered and Snapshot.
func (w *world) endSource(t *simTask, a EndSource) {
	t.stop, t.ended = !a.Drain, a.Drain
	w.broadcast(t, item{kind: endOfData, stop: t.stop})
}

// snapshot broadcasts the barrier and takes the state, in one step.
func (w *world) snapshot(t *simTask, a Snapshot) {
	w.checkOnce(t, a.Barrier.ID, toldDownstream)
	w.tally.unaligned += boolInt(a.Barrier.Restored().Alignment == Unaligned)
	if t.role == sink {
		t.transactions = append(t.transactions, transaction{w.sink.newID(), t.node, a.Barrier.ID, t.current})
		t.current = nil
	}
	s := &simSnapshot{
		exec: t.exec, barrier: a.Barrier.Restored(), recorded: a.Record == nil,
		offsets: maps.Clone(t.offsets), counts: maps.Clone(t.counts), rules: maps.Clone(t.rules),
		transactions: slices.Clone(t.transactions), in: make([]channelPart, len(t.ins)), out: make([]channelPart, len(t.outs)),
	}
	for i, ch := range t.outs {
		s.out[i].passed = ch.sent
		s.out[i].flight = w.faultyOvertaken(ch.sendBarrier(s.barrier))
	}
	for i, ch := range t.ins {
		s.in[i].passed = ch.received
		if a.Record != nil && (a.Record[i] || w.fault == inOrderRecorded && ch.feed.edge != broadcast) {
			s.in[i].flight = ch.startRecording(a.Barrier.ID)
		}
	}
	if w.fault == recordingEndsEarly {
		s.recorded = true
	}
	t.uploads = append(t.uploads, s)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// uploading is the snapshot that is being written for a checkpoint; nil: none.
func (t *simTask) uploading(id base.CheckpointID) *simSnapshot {
	for _, s := range t.uploads {
		if s.barrier.ID == id {
			return s
		}
	}
	return nil
}

func (w *world) stopRecording(t *simTask, id base.CheckpointID) {
	for _, ch := range t.ins {
		if ch.recording == id {
			ch.recording = 0
		}
	}
	if s := t.uploading(id); s != nil {
		s.recorded = true
	}
}

func (w *world) dropSnapshot(t *simTask, id base.CheckpointID) {
	w.stopRecording(t, id)
	t.uploads = slices.DeleteFunc(t.uploads, func(s *simSnapshot) bool { return s.barrier.ID == id })
}

// convertOutput has a barrier overtake what is still before it in output queues.
func (w *world) convertOutput(t *simTask, id base.CheckpointID) {
	s := t.uploading(id)
	if s == nil {
		return
	}
	for i, ch := range t.outs {
		overtaken := ch.convert(id)
		if w.fault == convertedLost {
			overtaken = nil
		}
		w.marks.hitIf(len(overtaken) > 0, "output converted")
		s.out[i].flight = append(s.out[i].flight, overtaken...)
	}
}

// prioritize moves an announced barrier to the front; the handler hears of it after this step.
func (w *world) prioritize(t *simTask, a Prioritize) {
	ch := t.ins[a.Channel]
	i := slices.IndexFunc(ch.in, func(it item) bool { return it.isBarrier(a.ID) })
	if i < 0 {
		w.failf("task %d: no barrier of %d to prioritize", t.exec.Task, a.ID)
	}
	w.marks.hitIf(i > 0, "barrier prioritized")
	b := ch.in[i].barrier
	b.Alignment, b.Timeout = Unaligned, 0
	ch.in = slices.Delete(ch.in, i, i+1)
	ch.barrierSeen(b.ID)
	w.tellTask(t, BarrierArrived{a.Channel, b, true})
}

// upload ends the writing of one of a task's snapshots.
func (w *world) upload(t *simTask) bool {
	if len(t.uploads) == 0 || !t.lives() {
		return false
	}
	i := w.rng.IntN(len(t.uploads))
	s := t.uploads[i]
	switch {
	case w.troubled(80):
		w.marks.hitIf(!s.recorded, "snapshot failed while recording")
		w.dropSnapshot(t, s.barrier.ID)
		w.tellTask(t, SnapshotWritten{ID: s.barrier.ID, Err: errDisk})
	case s.recorded && !t.holdsTimed(s):
		t.uploads = slices.Delete(t.uploads, i, i+1)
		w.tellTask(t, SnapshotWritten{ID: s.barrier.ID, State: s})
	default:
		return false
	}
	return true
}

// holdsTimed: the barrier of s may yet turn unaligned in an output queue.
func (t *simTask) holdsTimed(s *simSnapshot) bool {
	return s.barrier.Timeout > 0 && slices.ContainsFunc(t.outs, func(ch *simChannel) bool {
		return slices.ContainsFunc(ch.out, func(it item) bool { return it.isBarrier(s.barrier.ID) && it.isTimed() })
	})
}

// commitAll commits the transactions of a checkpoint and of those before it.
func (w *world) commitAll(t *simTask, id base.CheckpointID) {
	t.transactions = slices.DeleteFunc(t.transactions, func(tx transaction) bool {
		if tx.by <= id {
			w.commit(tx)
		}
		return tx.by <= id
	})
}
