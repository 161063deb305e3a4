package worker

import (
	"slices"
	"testing"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/task"
)

// diamond is a source that feeds a sink over two links, of a given kind and of hash.
func diamond(t *testing.T, kind graph.Partitioning, from, to int) *graph.Job {
	l := graph.Logical{
		Nodes: []*graph.Node{{ID: 0, Kind: graph.Source, Name: "source", Parallelism: from}, {ID: 1, Kind: graph.Sink, Name: "sink", Parallelism: to}},
		Edges: []*graph.Edge{{From: 0, To: 1, Partitioning: kind}, {From: 0, To: 1, Input: 1, Partitioning: graph.Hash}},
	}
	j, err := l.Build("diamond", graph.Options{Parallelism: 1})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// parcel is a payload that says who sent it.
type parcel int

func (parcel) Len() int   { return 1 }
func (parcel) Bytes() int { return 8 }
func (parcel) Retain(int) {}
func (parcel) Release()   {}

func specsOf(j *graph.Job) []task.Spec {
	var specs []task.Spec
	for i := range j.Subtasks() {
		v, subtask := j.Locate(base.Task(i))
		specs = append(specs, task.Spec{Exec: base.Exec{Task: base.Task(i)}, Vertex: v, Subtask: subtask})
	}
	return specs
}

// Every element that a sender puts into the channel of a receiver arrives there, in the channel of that sender.
func TestWiring(t *testing.T) {
	kinds := []graph.Partitioning{graph.Forward, graph.Hash, graph.Rebalance, graph.Rescale, graph.Broadcast, graph.Global}
	sizes := []int{1, 2, 3, 4, 6, 7}
	for _, kind := range kinds {
		for _, from := range sizes {
			for _, to := range sizes {
				specs := specsOf(diamond(t, kind, from, to))
				wire(specs, exchange.Limits{Batches: 1, Overdraft: 1})
				for s := range from {
					for link, l := range specs[s].Vertex.Outputs {
						checkChannels(t, specs, s, link, l)
					}
				}
			}
		}
	}
}

func checkChannels(t *testing.T, specs []task.Spec, sender, link int, l *graph.Link) {
	t.Helper()
	for i, receiver := range l.Receivers(sender) {
		to := &specs[l.From.Parallelism+receiver]
		if err := specs[sender].Outputs[link].Send(t.Context(), i, parcel(sender)); err != nil {
			t.Fatal(err)
		}
		channel, e, ok := to.Gate.Next()
		if !ok || e.Payload != parcel(sender) {
			t.Fatalf("%v %d to %d: subtask %d got %v, want what %d sent", l.Kind, l.From.Parallelism, l.To.Parallelism, receiver, e, sender)
		}
		want := slices.Index(l.Senders(receiver), sender)
		if link == 1 {
			want += len(l.To.Inputs[0].Senders(receiver))
		}
		if channel != want {
			t.Fatalf("%v %d to %d: link %d from %d to %d is channel %d, want %d", l.Kind, l.From.Parallelism, l.To.Parallelism, link, sender, receiver, channel, want)
		}
		if got, want := to.Options.Handler.Broadcast[channel], l.Kind == graph.Broadcast; got != want {
			t.Fatalf("channel %d of a %v link: broadcast %v", channel, l.Kind, got)
		}
		if to.Options.Handler.Channels != to.Gate.Len() {
			t.Fatalf("the handler hears of %d channels, but there are %d", to.Options.Handler.Channels, to.Gate.Len())
		}
	}
}
