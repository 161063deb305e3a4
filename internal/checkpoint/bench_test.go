package checkpoint

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/base"
)

// BenchmarkCoordinator takes whole checkpoints of a chain of four vertices. The bar is 20 ms for 10,000 subtasks.
func BenchmarkCoordinator(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("subtasks=%d", n), func(b *testing.B) {
			c := chainOf(n)
			b.ReportAllocs()
			for b.Loop() {
				takeCheckpoint(c, n)
			}
		})
	}
}

func chainOf(n int) *Coordinator {
	var g Graph
	const depth = 4
	for v := range depth {
		vertex := Vertex{Name: fmt.Sprint(v), First: base.Task(v * n / depth), Parallelism: n / depth}
		if v > 0 {
			vertex.Inputs = []Edge{{From: v - 1}}
		}
		g.Vertices = append(g.Vertices, vertex)
	}
	c, err := NewCoordinator(Config{}, g, Recovered{})
	if err != nil {
		panic(err)
	}
	for t := range n {
		c.Step(0, TaskChanged{base.Exec{Task: base.Task(t), Attempt: 1}, TaskRunning})
	}
	c.Step(0, JobRunning{})
	return c
}

// takeCheckpoint drives one checkpoint from its request to its end, and panics if it does not come to it.
func takeCheckpoint(c *Coordinator, n int) {
	before := c.lastID
	queue := []CoordinatorEvent{Requested{}}
	done := false
	for len(queue) > 0 {
		e := queue[0]
		queue = queue[1:]
		for _, a := range c.Step(0, e) {
			switch a := a.(type) {
			case CreateLocation:
				queue = append(queue, LocationCreated{Token: a.Token, Location: "chk"})
			case TriggerTasks:
				for t := range n {
					queue = append(queue, TaskAcked{Exec: base.Exec{Task: base.Task(t), Attempt: 1}, ID: a.Barrier.ID})
				}
			case WriteMetadata:
				queue = append(queue, MetadataWritten{Token: a.Token})
			case Store:
				queue = append(queue, Stored{Token: a.Token})
			case Discard:
				queue = append(queue, Discarded{a.Token})
			case NotifyComplete:
				done = a.ID == before+1
			default:
			}
		}
	}
	if !done {
		panic("the checkpoint did not complete")
	}
}

// TestCoordinatorIsFastEnough is far above the benchmark's time, so that only another order of magnitude fails it.
func TestCoordinatorIsFastEnough(t *testing.T) {
	const n, bar = 10_000, 20 * time.Millisecond
	c := chainOf(n)
	best := time.Hour
	for range 5 {
		start := time.Now()
		takeCheckpoint(c, n)
		best = min(best, time.Since(start))
	}
	t.Logf("a checkpoint of %d subtasks takes %v", n, best)
	if best > 10*bar {
		t.Errorf("a checkpoint of %d subtasks takes %v, want about a tenth of %v", n, best, bar)
	}
}

// BenchmarkHandler aligns, acknowledges and completes checkpoints.
func BenchmarkHandler(b *testing.B) {
	for _, n := range []int{4, 128} {
		b.Run(fmt.Sprintf("channels=%d", n), func(b *testing.B) {
			h := NewBarrierHandler(HandlerConfig{Channels: n})
			id := base.CheckpointID(0)
			b.ReportAllocs()
			for b.Loop() {
				id++
				for ch := range n {
					h.Step(0, BarrierArrived{Channel: ch, Barrier: Barrier{ID: id, Alignment: Aligned}})
				}
				h.Step(0, SnapshotWritten{ID: id})
				h.Step(0, CompleteNotified{id})
			}
		})
	}
}
