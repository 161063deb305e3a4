package worker

import (
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/task"
)

// wire joins the tasks of whole regions by channels: each spec gets its bell, its gate and its partitions, and its barrier
// handler hears of the channels.
//
// The channels of a gate are numbered by input link, then by sender:
//
//	inputs of the receiver   | link 0: sender 0, sender 1 | link 1: sender 4, 5, 6 |
//	channel                  |      0         1           |      2         3  4    |
func wire(specs []task.Spec, limits exchange.Limits) {
	gates := map[*graph.Vertex][]*exchange.Gate{}
	for i := range specs {
		s := &specs[i]
		s.Bell = exchange.NewBell()
		if gates[s.Vertex] == nil {
			gates[s.Vertex] = make([]*exchange.Gate, s.Vertex.Parallelism)
		}
		if len(s.Vertex.Inputs) > 0 {
			wireInputs(s)
			gates[s.Vertex][s.Subtask] = s.Gate
		}
	}
	for i := range specs {
		s := &specs[i]
		for _, l := range s.Vertex.Outputs {
			channels := make([]*exchange.Channel, 0, l.To.Parallelism)
			for _, r := range l.Receivers(s.Subtask) {
				channels = append(channels, gates[l.To][r].Channel(channelOf(l, s.Subtask, r)))
			}
			s.Outputs = append(s.Outputs, exchange.NewPartition(channels, limits, s.Bell))
		}
	}
}

// wireInputs makes the gate of one task.
func wireInputs(s *task.Spec) {
	handler := &s.Options.Handler
	for _, l := range s.Vertex.Inputs {
		first, end := senders(l, s.Subtask)
		for range end - first {
			handler.Broadcast = append(handler.Broadcast, l.Kind == graph.Broadcast)
		}
	}
	handler.Channels = len(handler.Broadcast)
	s.Gate = exchange.NewGate(handler.Channels, s.Bell)
}

// channelOf is the number, at subtask receiver, of the channel from subtask sender over l.
func channelOf(l *graph.Link, sender, receiver int) int {
	n := 0
	for _, before := range l.To.Inputs {
		first, end := senders(before, receiver)
		if before == l {
			return n + sender - first
		}
		n += end - first
	}
	panic("worker: a link that its receiver does not know")
}

// senders are the subtasks [first, end) that l joins with subtask receiver: what Link.Senders lists, without a list.
func senders(l *graph.Link, receiver int) (first, end int) {
	switch l.Kind {
	case graph.Forward:
		return receiver, receiver + 1
	case graph.Rescale:
		return checkpoint.PointwiseSenders(l.From.Parallelism, l.To.Parallelism, receiver)
	}
	return 0, l.From.Parallelism
}
