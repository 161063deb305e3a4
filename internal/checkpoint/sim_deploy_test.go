package checkpoint

import (
	"slices"

	"github.com/weirstream/weir/internal/base"
)

// This file deploys tasks and gives them the state of a checkpoint, at any parallelism.

// shape is what a checkpoint was taken in; it travels with it like the rest of its metadata.
type shape struct {
	parallel   []int
	nodeOf     []int // by task
	channels   []channelShape
	doneSplits [][]int       // of finished sources, by node
	read       []map[int]int // records by key, by all subtasks of a source
}

type channelShape struct {
	from, to        base.Task
	slotOut, slotIn int
	node, toIndex   int // of the receiver
	feed            feed
}

// deploy starts new attempts of all tasks from a checkpoint, or (nil) empty.
func (w *world) deploy(from *Completed) {
	w.down = false
	w.tasks, w.channels = nil, nil
	for n := range w.topo.nodes {
		for i := range w.parallel[n] {
			w.lastAttempt++
			w.tasks = append(w.tasks, w.newSimTask(base.Exec{Task: base.Task(len(w.tasks)), Attempt: w.lastAttempt}, n, i))
		}
	}
	w.connectAll()
	w.resetEnumerators()
	w.sink.expect(w)
	restored := base.CheckpointID(0)
	if from != nil {
		restored = from.ID
		w.restore(from)
	}
	for _, t := range w.tasks {
		t.handler = NewBarrierHandler(w.handlerConfig(t, restored))
	}
	for _, t := range w.tasks {
		w.tell(TaskChanged{t.exec, TaskDeploying})
	}
	for _, t := range w.tasks {
		w.tell(TaskChanged{t.exec, TaskRunning})
		if t.ended { // an ended task sends nothing but its end
			if w.fault != endNotSentAgain {
				w.broadcast(t, item{kind: endOfData})
			}
			w.up = append(w.up, TaskEnded{t.exec})
		}
	}
	w.tell(JobRunning{})
}

func (w *world) handlerConfig(t *simTask, restored base.CheckpointID) HandlerConfig {
	cfg := HandlerConfig{Channels: len(t.ins), AtLeastOnce: w.cfg.AtLeastOnce, Restored: restored, Ended: t.ended}
	for _, ch := range t.ins {
		cfg.Broadcast = append(cfg.Broadcast, ch.feed.edge == broadcast && w.fault != broadcastInFlight)
	}
	return cfg
}

func numbers(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// connectAll makes the channels, those of a sender's edge in the order of their receivers.
func (w *world) connectAll() {
	for n, node := range w.topo.nodes {
		for _, f := range node.feeds {
			edges := make([][]*simChannel, w.parallel[f.from]) // by sender
			for j := range w.parallel[n] {
				lo, hi := 0, w.parallel[f.from]
				if f.edge == pointwise {
					lo, hi = PointwiseSenders(w.parallel[f.from], w.parallel[n], j)
				}
				for i := lo; i < hi; i++ {
					edges[i] = append(edges[i], w.connect(w.taskOf(f.from, i), w.taskOf(n, j), f))
				}
			}
			for i, receivers := range edges {
				t := w.taskOf(f.from, i)
				t.edges = append(t.edges, receivers)
			}
		}
	}
}

func (w *world) connect(from, to *simTask, f feed) *simChannel {
	ch := &simChannel{from: from, to: to, slotOut: len(from.outs), slotIn: len(to.ins), feed: f}
	from.outs = append(from.outs, ch)
	to.ins = append(to.ins, ch)
	w.channels = append(w.channels, ch)
	return ch
}

// restore gives the state of a checkpoint to the tasks.
func (w *world) restore(from *Completed) {
	w.tally.restores++
	if from.Kind.IsSavepoint() {
		w.tally.resumes++
	}
	w.marks.hitIf(from.Kind != Checkpoint, "restored from "+from.Kind.String())
	sh := w.disk.shapes[from]
	w.tally.rescales += boolInt(!slices.Equal(sh.parallel, w.parallel))
	for n, node := range w.topo.nodes {
		if node.role == splitsSource {
			w.unassigned[n] = slices.Clone(from.Operators[n].([]int))
			w.doneSplits[n] = slices.Clone(sh.doneSplits[n])
		}
	}
	w.restoreEnded(from, sh)
	for old, part := range from.Tasks {
		if s, ok := part.(*simSnapshot); ok {
			w.restoreTask(s, sh.nodeOf[old])
		}
	}
	w.restoreInFlight(from, sh)
}

// restoreEnded has the subtasks of a node restored as ended if all its subtasks had ended or finished.
func (w *world) restoreEnded(from *Completed, sh *shape) {
	ended, some := make([]bool, len(w.topo.nodes)), make([]bool, len(w.topo.nodes))
	for n := range ended {
		ended[n] = true
	}
	for old := range from.Tasks {
		n := sh.nodeOf[old]
		if !from.Finished[old] && !from.Ended[old] || from.Finished[old] && w.fault == finishedRunAgain {
			ended[n] = false
		} else {
			some[n] = true
		}
	}
	for n, node := range w.topo.nodes {
		if node.role == splitsSource && ended[n] {
			w.sink.read[n] = sh.read[n] // nobody reads more, also after a drain
		}
		w.marks.hitIf(some[n] && !ended[n], "restored as partly ended")
		w.marks.hitIf(ended[n], "restored as ended")
	}
	if w.fault == endedRunAgain {
		ended = make([]bool, len(w.topo.nodes))
	}
	for _, t := range w.tasks {
		t.ended = ended[t.node]
	}
}

func (w *world) restoreTask(s *simSnapshot, n int) {
	p := w.parallel[n]
	switch w.topo.nodes[n].role {
	case splitsSource:
		for split, offset := range s.offsets {
			w.taskOf(n, split%p).offsets[split] = offset
		}
	case rulesSource:
		w.taskOf(n, 0).offsets[0] = s.offsets[0]
	case counter:
		for key, count := range s.counts {
			w.taskOf(n, key%p).counts[key] = count
		}
	case sink:
		for _, tx := range s.transactions {
			if w.fault != restoreDoesNotCommit {
				w.commit(tx)
			}
		}
	case relay:
	}
	for i := range p {
		for rule := range s.rules {
			w.taskOf(n, i).rules[rule] = true
		}
	}
}

// restoreInFlight puts records that were in flight into the queues of their receivers, before anything new.
func (w *world) restoreInFlight(from *Completed, sh *shape) {
	for _, old := range sh.channels {
		var items []item
		if s, ok := from.Tasks[old.to].(*simSnapshot); ok {
			items = append(items, s.in[old.slotIn].flight...)
		}
		if s, ok := from.Tasks[old.from].(*simSnapshot); ok && w.fault != outputNotRestored {
			items = append(items, s.out[old.slotOut].flight...)
		}
		rescaled := w.parallel[old.node] != sh.parallel[old.node]
		for i, it := range items {
			w.marks.hit("record in flight restored")
			w.marks.hitIf(rescaled, "record in flight restored at another parallelism: "+old.feed.edge.String())
			to := w.receiverOf(it.record, old, sh)
			w.place(it.record, old, to)
			if i == 0 && rescaled && w.fault == pointwiseDoubled && old.feed.edge == pointwise {
				w.place(it.record, old, to)
			}
		}
	}
}

// receiverOf is the subtask that a record in flight is for now.
func (w *world) receiverOf(r record, old channelShape, sh *shape) int {
	p := w.parallel[old.node]
	switch old.feed.edge {
	case hash:
		if w.fault == hashToOldOwner {
			return old.toIndex % p
		}
		return r.key % p
	case pointwise:
		return old.toIndex * p / sh.parallel[old.node]
	case rebalance:
		return w.rng.IntN(p)
	case global:
		return 0
	case broadcast:
		w.failf("a record in flight on a broadcast edge")
	}
	panic("no such edge")
}

// place puts a record into the queue of any channel of its edge, with a new number.
func (w *world) place(r record, old channelShape, i int) {
	var candidates []*simChannel
	for _, ch := range w.taskOf(old.node, i).ins {
		if ch.feed == old.feed {
			candidates = append(candidates, ch)
		}
	}
	ch := candidates[w.rng.IntN(len(candidates))]
	ch.sent++
	ch.in = append(ch.in, item{kind: aRecord, record: r, number: ch.sent})
}
