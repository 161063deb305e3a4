package checkpoint

import (
	"slices"

	"github.com/weirstream/weir/internal/base"
)

// committed is what the outside world has seen.
type committed struct {
	lastID       int
	transactions map[int]transaction
	seen         map[seen]bool
	counts       map[seen]int  // how many of each sink and key, and of each counter and path
	read         []map[int]int // by source: how many records of each key there are, or will have been when all has ended
}

// seen is a record at a sink.
type seen struct {
	sink int
	record
}

func (c *committed) init() {
	c.transactions, c.seen, c.counts = map[int]transaction{}, map[seen]bool{}, map[seen]int{}
}

func (c *committed) newID() int {
	c.lastID++
	return c.lastID
}

// expect expects all that sources have.
func (c *committed) expect(w *world) {
	c.read = make([]map[int]int, len(w.topo.nodes))
	for n, node := range w.topo.nodes {
		if node.role != splitsSource {
			continue
		}
		c.read[n] = map[int]int{}
		for split := range w.splits {
			countKeys(c.read[n], split, w.lengths[n])
		}
	}
}

// countKeys counts the keys of what has been read of a split.
func countKeys(counts map[int]int, split, offset int) {
	for i := range offset {
		counts[keyOf(split, i)]++
	}
}

// goBackTo forgets what was committed with later checkpoints.
func (c *committed) goBackTo(id base.CheckpointID) {
	all := c.transactions
	c.init()
	for _, tx := range all {
		if tx.by <= id {
			c.transactions[tx.id] = tx
			for _, r := range tx.records {
				c.add(tx.sink, r)
			}
		}
	}
}

// add counts a record; false: it has been seen.
func (c *committed) add(sink int, r record) bool {
	at := seen{sink, r}
	if c.seen[at] {
		return false
	}
	c.seen[at] = true
	c.counts[seen{sink, record{origin: -1, key: r.key}}]++
	c.counts[seen{sink, record{origin: r.origin, path: r.path, key: r.key}}]++
	return true
}

// commit makes a transaction visible, once however often it is told to.
func (w *world) commit(tx transaction) {
	if _, ok := w.sink.transactions[tx.id]; ok {
		return
	}
	w.sink.transactions[tx.id] = tx
	for _, r := range tx.records {
		if !w.sink.add(tx.sink, r) && !w.cfg.AtLeastOnce {
			w.failf("%+v is committed twice by sink %d", r, tx.sink)
		}
	}
}

// checkOnce: of a checkpoint a task tells the master one thing, and sends one thing downstream, of older ones before newer
// ones.
func (w *world) checkOnce(t *simTask, id base.CheckpointID, what told) {
	if t.told[id]&what != 0 {
		name := "answer to the master"
		if what == toldDownstream {
			name = "barrier or cancel marker"
		}
		w.failf("task %d: a second %s for checkpoint %d", t.exec.Task, name, id)
	}
	t.told[id] |= what
	if what != toldDownstream {
		return
	}
	if id < t.lastSent {
		w.failf("task %d sends a barrier or cancel marker of %d after one of %d", t.exec.Task, id, t.lastSent)
	}
	t.lastSent = id
}

// checkBlocked: nothing is blocked but by an alignment.
func (w *world) checkBlocked(t *simTask) {
	s := t.handler.Status()
	if s.Aligning != 0 && !s.Recording && !w.cfg.AtLeastOnce {
		return
	}
	for _, ch := range t.ins {
		if ch.gate != open {
			w.failf("task %d: channel %d is blocked and nothing waits for a barrier", t.exec.Task, ch.slotIn)
		}
	}
	if s.Blocked > 0 {
		w.failf("task %d: the handler believes that %d channels are blocked", t.exec.Task, s.Blocked)
	}
}

// checkNotify: a checkpoint is committed once, and only after it is what a restart finds.
func (w *world) checkNotify(id base.CheckpointID) {
	switch {
	case w.disk.metadata[id] == nil || !w.disk.stored[id]:
		w.failf("tasks are told that %d is complete before it is stored", id)
	case w.disk.notified[id]:
		w.failf("checkpoint %d completes twice", id)
	}
	w.disk.notified[id] = true
}

// checkNotOvertaking: nothing begins behind a savepoint by which the job stops.
func (w *world) checkNotOvertaking(id base.CheckpointID) {
	for _, p := range w.master.pending {
		if p.stops() && p.id < id {
			w.failf("checkpoint %d overtakes %d, by which the job stops", id, p.id)
		}
	}
}

// checkNotPublished: what is given up is not there for a restart to find.
func (w *world) checkNotPublished(id base.CheckpointID) {
	if w.disk.metadata[id] != nil {
		w.failf("checkpoint %d is given up while its metadata is published", id)
	}
}

// checkLatest: a failover begins from what a restart would find.
func (w *world) checkLatest(from *Completed) {
	for id, d := range w.disk.metadata {
		if !d.Kind.IsSavepoint() && (from == nil || id > from.ID) {
			w.failf("a failover begins from %v, and checkpoint %d is published", from, id)
		}
	}
}

// checkUnclaimed: nothing that is published needs a file of somebody else's snapshot, and the first that completes after the
// job was started from one needs no earlier file at all.
func (w *world) checkUnclaimed(d *Completed) {
	from := w.disk.origin
	if from == nil || !w.disk.foreign {
		return
	}
	switch {
	case d.Base == from.ID:
		w.failf("checkpoint %d refers to files of %d, which belongs to somebody else", d.ID, from.ID)
	case !d.Kind.IsSavepoint() && !w.disk.full && d.Kind != FullCheckpoint:
		w.failf("checkpoint %d is the first after a start from somebody else's snapshot, and not full", d.ID)
	}
	w.disk.full = w.disk.full || !d.Kind.IsSavepoint()
}

// checkFiles: no file of a published checkpoint is deleted.
func (w *world) checkFiles() {
	for id, d := range w.disk.metadata {
		for _, part := range d.Tasks {
			if s, ok := part.(*simSnapshot); ok && s.deleted {
				w.failf("files of the completed checkpoint %d are deleted", id)
			}
		}
	}
}

// checkCut: the checkpoint that is about to be published is a consistent cut. Of each channel, what its sender had sent is
// what its receiver had got and then what is in flight, each record once and in order; and each split is owned once.
func (w *world) checkCut(d *Completed) {
	if len(w.tasks) == 0 {
		w.failf("the metadata of %d is written while no task lives", d.ID)
	}
	sh := &shape{parallel: w.parallel, doneSplits: make([][]int, len(w.topo.nodes)), read: make([]map[int]int, len(w.topo.nodes))}
	w.disk.shapes[d] = sh
	w.marks.hitIf(slices.Contains(d.Finished, true), "some tasks had finished")
	for _, t := range w.tasks {
		sh.nodeOf = append(sh.nodeOf, t.node)
		w.checkPart(d, t)
	}
	for _, ch := range w.channels {
		sh.channels = append(sh.channels, channelShape{
			ch.from.exec.Task, ch.to.exec.Task, ch.slotOut, ch.slotIn, ch.to.node, ch.to.index, ch.feed})
		w.checkChannel(d, ch)
	}
	for n, node := range w.topo.nodes {
		if node.role == splitsSource {
			w.checkSplits(d, sh, n)
		}
	}
	w.checkUnion(d)
}

// checkPart: of a task there is the state of its current attempt, or it has finished.
func (w *world) checkPart(d *Completed, t *simTask) {
	s, ok := d.Tasks[t.exec.Task].(*simSnapshot)
	switch {
	case ok && s.exec != t.exec:
		w.failf("checkpoint %d has the state of %v for %v", d.ID, s.exec, t.exec)
	case d.Finished[t.exec.Task] && !t.done:
		w.failf("checkpoint %d takes %v for finished", d.ID, t.exec)
	case !ok && !d.Finished[t.exec.Task]:
		w.failf("checkpoint %d lacks the state of %v", d.ID, t.exec)
	case ok && d.Finished[t.exec.Task]:
		w.failf("checkpoint %d has state of %v, which it says is finished", d.ID, t.exec)
	}
}

// checkUnion: of a node with union state all subtasks have ended, or none.
func (w *world) checkUnion(d *Completed) {
	if w.union < 0 {
		return
	}
	over := 0
	for i := range w.parallel[w.union] {
		t := w.taskOf(w.union, i).exec.Task
		over += boolInt(d.Finished[t] || d.Ended[t])
	}
	if over > 0 && over < w.parallel[w.union] {
		w.failf("checkpoint %d: %d of %d subtasks with union state have ended", d.ID, over, w.parallel[w.union])
	}
}

func (w *world) checkChannel(d *Completed, ch *simChannel) {
	sent, got := ch.sent, ch.sent // of a finished task, all
	var flight []item
	if to, ok := d.Tasks[ch.to.exec.Task].(*simSnapshot); ok {
		got = to.in[ch.slotIn].passed
		flight = append(flight, to.in[ch.slotIn].flight...)
	}
	if from, ok := d.Tasks[ch.from.exec.Task].(*simSnapshot); ok {
		sent = from.out[ch.slotOut].passed
		flight = append(flight, from.out[ch.slotOut].flight...)
	}
	if w.cfg.AtLeastOnce && got >= sent {
		return
	}
	if sent != got+len(flight) {
		w.failf("checkpoint %d, channel %d to %d: %d sent, %d received, %d in flight",
			d.ID, ch.from.exec.Task, ch.to.exec.Task, sent, got, len(flight))
	}
	for i, it := range flight {
		if it.number != got+i+1 {
			w.failf("checkpoint %d, channel %d to %d: in flight is record %d, want %d",
				d.ID, ch.from.exec.Task, ch.to.exec.Task, it.number, got+i+1)
		}
	}
	w.marks.hitIf(len(flight) > 0, "records in flight in a checkpoint")
}

// checkSplits: each split of a source belongs to the enumerator, to a subtask's state, or to one that has finished. It counts,
// too, how much has been read: after a drained savepoint nobody will read more.
func (w *world) checkSplits(d *Completed, sh *shape, n int) {
	owners := make([]int, w.splits)
	sh.read[n] = map[int]int{}
	own := func(split, offset int) {
		owners[split]++
		countKeys(sh.read[n], split, offset)
	}
	for _, split := range d.Operators[n].([]int) {
		own(split, 0)
	}
	for i := range w.parallel[n] {
		t := w.taskOf(n, i)
		if s, ok := d.Tasks[t.exec.Task].(*simSnapshot); ok {
			for split, offset := range s.offsets {
				own(split, offset)
			}
			continue
		}
		for split := range t.offsets {
			own(split, w.lengths[n])
			sh.doneSplits[n] = append(sh.doneSplits[n], split)
		}
	}
	for _, split := range w.doneSplits[n] {
		own(split, w.lengths[n])
		sh.doneSplits[n] = append(sh.doneSplits[n], split)
	}
	for split, owners := range owners {
		if owners != 1 {
			w.failf("checkpoint %d: split %d of source %d is owned %d times", d.ID, split, n, owners)
		}
	}
}

// checkClosed: a closed master has nothing left to do, and left nothing that is not to outlive the job.
func (w *world) checkClosed() {
	s := w.master.Status()
	if !s.Closed || s.Cleaning != 0 || len(s.Pending) > 0 || s.Queued > 0 {
		w.failf("a closed master has still something to do: %+v", s)
	}
	if len(w.requests) > 0 {
		w.failf("%d requests got no reply", len(w.requests))
	}
	for id, d := range w.disk.metadata {
		if !d.Kind.IsSavepoint() && w.tally.masters == 1 && d != w.disk.origin {
			w.failf("checkpoint %d outlives the job, which FINISHED", id)
		}
	}
}

// checkResults: each sink has seen of each key as many different records as the sources have, as often as paths lead to it; and of
// a counter's each count once: 1, 2, 3, ...
func (w *world) checkResults() {
	for n, node := range w.topo.nodes {
		if node.role == sink {
			w.checkSink(n)
		}
	}
	for at := range w.sink.seen {
		counted := w.sink.counts[seen{at.sink, record{origin: at.origin, path: at.path, key: at.key}}]
		if w.topo.nodes[at.origin].role == counter && at.n > counted && !w.cfg.AtLeastOnce {
			w.failf("sink %d has seen %+v, but only %d of them", at.sink, at.record, counted)
		}
	}
}

func (w *world) checkSink(sink int) {
	want := map[int]int{}
	for source, read := range w.sink.read {
		for key, count := range read {
			want[key] += count * w.topo.pathsFrom(source)[sink]
		}
	}
	for key, count := range want {
		got := w.sink.counts[seen{sink, record{origin: -1, key: key}}]
		if got < count || got > count && !w.cfg.AtLeastOnce {
			w.failf("sink %d has committed %d records of key %d, want %d", sink, got, key, count)
		}
	}
}
