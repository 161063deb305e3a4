package checkpoint

import "github.com/weirstream/weir/internal/base"

// committed is what the outside world has seen.
type committed struct {
	lastID       int
	transactions map[int]bool
	counts       map[int]map[int]bool // by key
	records      int
	expected     int // once all sources were restored as ended
}

func (c *committed) init(records int) {
	c.transactions, c.counts = map[int]bool{}, map[int]map[int]bool{}
	c.expected = records
}

func (c *committed) newID() int {
	c.lastID++
	return c.lastID
}

// commit makes a transaction visible, once however often it is told to.
func (w *world) commit(tx transaction) {
	if w.sink.transactions[tx.id] {
		return
	}
	w.sink.transactions[tx.id] = true
	for _, r := range tx.records {
		seen := w.sink.counts[r.key]
		if seen == nil {
			seen = map[int]bool{}
			w.sink.counts[r.key] = seen
		}
		if !seen[r.n] {
			w.sink.records++
		} else if !w.cfg.AtLeastOnce {
			w.failf("count %d of key %d is committed twice", r.n, r.key)
		}
		seen[r.n] = true
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
	sh := &shape{parallel: w.parallel}
	w.disk.shapes[d] = sh
	for _, t := range w.tasks {
		sh.roleOf = append(sh.roleOf, t.role)
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
	for _, ch := range w.channels {
		sh.channels = append(sh.channels, channelShape{ch.from.exec.Task, ch.to.exec.Task, ch.slotOut, ch.slotIn, ch.to.index, ch.edge})
		w.checkChannel(d, ch)
	}
	w.checkSplits(d, sh)
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

// checkSplits: each split belongs to the enumerator, to a source's state, or to one that has finished. It counts, too, how
// much a drained savepoint has read: nobody will read more.
func (w *world) checkSplits(d *Completed, sh *shape) {
	owners := make([]int, w.splits)
	read := 0
	own := func(split, offset int) {
		owners[split]++
		read += offset
	}
	for _, split := range d.Operators[w.vertexOf[splitsSource]].([]int) {
		own(split, 0)
	}
	for i := range w.parallel[splitsSource] {
		t := w.taskOf(splitsSource, i)
		if s, ok := d.Tasks[t.exec.Task].(*simSnapshot); ok {
			for split, offset := range s.offsets {
				own(split, offset)
			}
			continue
		}
		for split := range t.offsets {
			own(split, w.length)
			sh.doneSplits = append(sh.doneSplits, split)
		}
	}
	for _, split := range w.doneSplits {
		own(split, w.length)
		sh.doneSplits = append(sh.doneSplits, split)
	}
	for split, n := range owners {
		if n != 1 {
			w.failf("checkpoint %d: split %d is owned %d times", d.ID, split, n)
		}
	}
	sh.read = read
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
		if !d.Kind.IsSavepoint() && w.tally.masters == 1 {
			w.failf("checkpoint %d outlives the job, which FINISHED", id)
		}
	}
}

// checkResults: the outside world has seen each count of each key once: 1, 2, 3, ... up to the number of its records.
func (w *world) checkResults() {
	for key, seen := range w.sink.counts {
		for n := range len(seen) {
			if !seen[n+1] && !w.cfg.AtLeastOnce {
				w.failf("key %d has a gap in its counts at %d", key, n+1)
			}
		}
	}
	want := w.sink.expected
	if got := w.sink.records; got < want || got > want && !w.cfg.AtLeastOnce {
		w.failf("%d records are committed, want %d", got, want)
	}
}
