package checkpoint

import "slices"

// This file is the enumerators of the sources of splits: what they know, what they send, and their snapshots.

// noMore tells a reader that there are no more splits.
const noMore = -1

// resetEnumerators makes new ones: what the old ones sent is gone, their snapshots are still answered.
func (w *world) resetEnumerators() {
	w.unassigned, w.doneSplits = make([][]int, len(w.topo.nodes)), make([][]int, len(w.topo.nodes))
	for n, node := range w.topo.nodes {
		if node.role == splitsSource {
			w.unassigned[n] = numbers(w.splits)
		}
	}
	w.outbox = slices.DeleteFunc(w.outbox, func(e CoordinatorEvent) bool {
		_, sent := e.(OperatorSent)
		return sent && w.fault != eventsSurvive
	})
}

// snapshotEnumerator takes its state now; the answer follows what it has sent before.
func (w *world) snapshotEnumerator(a SnapshotOperator) {
	answer := OperatorSnapped{Token: a.Token, State: slices.Clone(w.unassigned[a.Vertex])}
	if w.troubled(60) {
		answer = OperatorSnapped{Token: a.Token, Err: errDisk}
	}
	w.outbox = append(w.outbox, answer)
}

// enumerate has an enumerator assign a split, or tell a reader that there are no more.
func (w *world) enumerate() bool {
	const ahead = 8 // it is not faster than its messages
	n := w.rng.IntN(2)
	if len(w.tasks) == 0 || w.topo.nodes[n].role != splitsSource || len(w.outbox) > ahead {
		return false
	}
	to := w.taskOf(n, w.rng.IntN(w.parallel[n]))
	if to.ended || len(to.link) > ahead {
		return false
	}
	split := noMore
	if len(w.unassigned[n]) > 0 {
		split = w.unassigned[n][0]
		w.unassigned[n] = w.unassigned[n][1:]
	}
	w.outbox = append(w.outbox, OperatorSent{Vertex: n, To: to.exec.Task, Payload: split})
	return true
}

// passOutbox gives the master what an enumerator said next.
func (w *world) passOutbox() bool {
	if len(w.outbox) == 0 {
		return false
	}
	e := w.outbox[0]
	w.outbox = w.outbox[1:]
	if late, ok := e.(OperatorSnapped); ok && w.fault == enumeratorSnappedLate && late.Err == nil {
		late.State = slices.Clone(w.unassigned[w.master.questions[late.Token].slot])
		e = late
	}
	if sent, ok := e.(OperatorSent); ok && w.fault == eventsNotHeld {
		if !w.down {
			w.send(w.tasks[sent.To].exec, SendEvent{w.tasks[sent.To].exec, sent.Payload})
		}
		return true
	}
	w.tell(e)
	return true
}

// taskOf is a subtask of a node.
func (w *world) taskOf(n, i int) *simTask { return w.tasks[int(w.graph.Vertices[n].First)+i] }
