package checkpoint

import (
	"slices"

	"github.com/weirstream/weir/internal/base"
)

// This file deploys tasks and gives them the state of a checkpoint, at any parallelism.

// shape is what a checkpoint was taken in; it travels with it like the rest of its metadata.
type shape struct {
	parallel   [roles]int
	roleOf     []role // by task
	channels   []channelShape
	doneSplits []int // of finished sources
	read       int   // records, by all sources
}

type channelShape struct {
	from, to        base.Task
	slotOut, slotIn int
	toIndex         int
	edge            edge
}

// deploy starts new attempts of all tasks from a checkpoint, or (nil) empty.
func (w *world) deploy(from *Completed) {
	w.down = false
	w.tasks, w.channels = nil, nil
	for ro := range roles {
		for i := range w.parallel[ro] {
			w.lastAttempt++
			w.tasks = append(w.tasks, newSimTask(base.Exec{Task: base.Task(len(w.tasks)), Attempt: w.lastAttempt}, ro, i))
		}
	}
	w.connectAll()
	restored := base.CheckpointID(0)
	if from == nil {
		w.doneSplits = nil
		w.resetEnumerator(numbers(w.splits))
	} else {
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
			w.broadcast(t, item{kind: endOfData})
			w.up = append(w.up, TaskEnded{t.exec})
		}
	}
	w.tell(JobRunning{})
}

func (w *world) handlerConfig(t *simTask, restored base.CheckpointID) HandlerConfig {
	cfg := HandlerConfig{Channels: len(t.ins), AtLeastOnce: w.cfg.AtLeastOnce, Restored: restored, Ended: t.ended}
	for _, ch := range t.ins {
		cfg.Broadcast = append(cfg.Broadcast, ch.edge == broadcast && w.fault != broadcastInFlight)
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

func (w *world) connectAll() {
	for j := range w.parallel[counter] {
		for i := range w.parallel[splitsSource] {
			w.connect(w.taskOf(splitsSource, i), w.taskOf(counter, j), hash)
		}
		for i := range w.parallel[rulesSource] {
			w.connect(w.taskOf(rulesSource, i), w.taskOf(counter, j), broadcast)
		}
	}
	for j := range w.parallel[sink] {
		lo, hi := 0, w.parallel[counter]
		if w.sinkEdge == pointwise {
			lo, hi = PointwiseSenders(w.parallel[counter], w.parallel[sink], j)
		}
		for i := lo; i < hi; i++ {
			w.connect(w.taskOf(counter, i), w.taskOf(sink, j), w.sinkEdge)
		}
	}
}

func (w *world) connect(from, to *simTask, e edge) {
	ch := &simChannel{from: from, to: to, slotOut: len(from.outs), slotIn: len(to.ins), edge: e}
	from.outs = append(from.outs, ch)
	to.ins = append(to.ins, ch)
	w.channels = append(w.channels, ch)
}

// restore gives the state of a checkpoint to the tasks.
func (w *world) restore(from *Completed) {
	w.tally.restores++
	if from.Kind.IsSynchronous() {
		w.tally.resumes++
		w.marks.hit("resumed from " + from.Kind.String())
	}
	sh := w.disk.shapes[from]
	w.doneSplits = slices.Clone(sh.doneSplits)
	w.resetEnumerator(from.Operators[0].([]int))
	w.restoreEnded(from, sh)
	for old, part := range from.Tasks {
		if s, ok := part.(*simSnapshot); ok {
			w.restoreTask(s, sh.roleOf[old])
		}
	}
	w.restoreInFlight(from, sh)
}

// restoreEnded has the subtasks of a vertex restored as ended if all its subtasks had ended or finished.
func (w *world) restoreEnded(from *Completed, sh *shape) {
	ended := [roles]bool{true, true, true, true}
	for old := range from.Tasks {
		if !from.Finished[old] && !from.Ended[old] || from.Finished[old] && w.fault == finishedRunAgain {
			ended[sh.roleOf[old]] = false
		}
	}
	if ended[splitsSource] {
		w.sink.expected = sh.read // nobody reads more, also after a drain
	}
	if w.fault == endedRunAgain {
		ended = [roles]bool{}
	}
	for _, t := range w.tasks {
		t.ended = ended[t.role]
		w.marks.hitIf(t.ended, "restored as ended")
	}
}

func (w *world) restoreTask(s *simSnapshot, ro role) {
	switch ro {
	case splitsSource:
		for split, offset := range s.offsets {
			w.taskOf(splitsSource, split%w.parallel[splitsSource]).offsets[split] = offset
		}
	case rulesSource:
		w.taskOf(rulesSource, 0).offsets[0] = s.offsets[0]
	case counter:
		for key, n := range s.counts {
			w.taskOf(counter, key%w.parallel[counter]).counts[key] = n
		}
		for j := range w.parallel[counter] {
			for rule := range s.rules {
				w.taskOf(counter, j).rules[rule] = true
			}
		}
	case sink:
		for _, tx := range s.transactions {
			w.commit(tx)
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
		if s, ok := from.Tasks[old.from].(*simSnapshot); ok {
			items = append(items, s.out[old.slotOut].flight...)
		}
		for i, it := range items {
			w.marks.hit("record in flight restored")
			switch old.edge {
			case hash:
				w.place(it.record, counter, it.record.key%w.parallel[counter])
			case broadcast:
				w.failf("a record in flight on a broadcast edge")
			case pointwise:
				j := old.toIndex * w.parallel[sink] / sh.parallel[sink]
				w.place(it.record, sink, j)
				if i == 0 && w.fault == pointwiseDoubled && w.parallel[sink] != sh.parallel[sink] {
					w.place(it.record, sink, j)
				}
			case rebalance:
				w.place(it.record, sink, w.rng.IntN(w.parallel[sink]))
			}
		}
	}
}

// place puts a record into the queue of a channel of its edge, with a new number.
func (w *world) place(r record, ro role, i int) {
	t := w.taskOf(ro, i)
	k := slices.IndexFunc(t.ins, func(ch *simChannel) bool { return (ch.edge == broadcast) == r.rule })
	ch := t.ins[k]
	ch.sent++
	ch.in = append(ch.in, item{kind: aRecord, record: r, number: ch.sent})
}
