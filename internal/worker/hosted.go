package worker

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/task"
)

// Task is what a worker needs of a task.Task.
type Task interface {
	Run()
	Trigger(b checkpoint.Barrier)
	Event(payload any)
	Complete(id base.CheckpointID)
	Abort(id, latest base.CheckpointID)
	Cancel()
	Counters() task.Counters
}

// hosted is one execution on a worker, with its two links.
//
// The link up numbers and sends under one mutex, or a question of the reader's and a state of the task's could change places
// between number and wire. What is called under it only puts the message into a queue.
type hosted struct {
	exec    base.Exec
	vertex  *graph.Vertex
	subtask int
	task    Task
	worker  *Worker

	down     Sequence // protected by worker.mu
	watchdog *time.Timer

	mu    sync.Mutex
	sent  uint64     // protected by mu
	state task.State // protected by mu
	lost  error      // protected by mu; the link down broke
}

// Changed implements task.Up. The last state of a task that was ended because its link broke is that it failed.
func (h *hosted) Changed(_ base.Exec, s task.State, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost != nil && s == task.Canceled {
		s, err = task.Failed, h.lost
	}
	h.state = s
	h.sendLocked(Changed{State: s, Err: err, Counters: h.counters()})
}

// Report implements task.Up.
func (h *hosted) Report(e checkpoint.CoordinatorEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sendLocked(Reported{Event: e})
}

// Ask implements task.Up.
func (h *hosted) Ask(_ base.Exec, payload any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sendLocked(Asked{Payload: payload})
}

// Note implements task.Up.
func (h *hosted) Note(_ base.Exec, n task.Note) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sendLocked(Noted{Note: n, Counters: h.counters()})
}

func (h *hosted) sendLocked(body any) {
	h.sent++
	h.worker.options.Carry(Message{Exec: h.exec, Number: h.sent, Body: body}, h.worker.options.Send)
}

// counters are the task's; of one that was refused before it was hosted there are none.
func (h *hosted) counters() (c task.Counters) {
	if h.task != nil {
		c = h.task.Counters()
	}
	return c
}

func (h *hosted) progress() Progress {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Progress{Exec: h.exec, Sent: h.sent, State: h.state, Counters: h.counters()}
}

// over is true after the last state.
func (h *hosted) over() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state.Terminal()
}

// broke ends a task of which a message was lost.
func (h *hosted) broke(err error) {
	h.mu.Lock()
	h.lost = err
	h.mu.Unlock()
	h.worker.cancel(h)
}

// stuck is the message about a task that does not end.
func (h *hosted) stuck(after time.Duration) string {
	return fmt.Sprintf("Task %q (%d/%d) did not return %v after it was cancelled (task.cancellation.timeout). Go cannot interrupt code, "+
		"so the process ends. User code must return when its context is done. The goroutines of the tasks:\n\n%s",
		h.vertex.Name, h.subtask+1, h.vertex.Parallelism, after, taskStacks())
}

// taskStacks are the stacks of the goroutines that run tasks.
func taskStacks() string {
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	var tasks []string
	for _, g := range strings.Split(string(all), "\n\n") {
		if strings.Contains(g, "worker.(*Worker).runTask(") {
			tasks = append(tasks, g)
		}
	}
	return strings.Join(tasks, "\n\n")
}
