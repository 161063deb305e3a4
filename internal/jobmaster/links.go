package jobmaster

import (
	"fmt"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/task"
	"github.com/weirstream/weir/internal/worker"
)

// link is the master's end of the two links with the current execution of a task.
type link struct {
	exec base.Exec
	sent uint64
	up   worker.Sequence
}

// send puts a message on the link of an execution. One that is not the current one needs none any more.
func (m *Master) send(x base.Exec, body any) {
	l := m.links[x.Task]
	if l == nil || l.exec != x {
		return
	}
	l.sent++
	m.options.Carry(worker.Message{Exec: x, Number: l.sent, Body: body}, m.options.Worker.Receive)
}

// beat tells the worker how far the links have come.
func (m *Master) beat() {
	var b worker.Beat
	for _, l := range m.links {
		b.Links = append(b.Links, worker.Progress{Exec: l.exec, Sent: l.sent})
	}
	m.options.Carry(worker.Message{Body: b}, m.options.Worker.Receive)
}

// Receive takes a message of the worker's. It does not wait; any goroutine may call it.
func (m *Master) Receive(msg worker.Message) { m.post(func() { m.received(msg) }) }

func (m *Master) received(msg worker.Message) {
	if b, ok := msg.Body.(worker.Beat); ok {
		m.compare(b)
		return
	}
	l := m.links[msg.Exec.Task]
	if msg.Number == 0 || l == nil || l.exec != msg.Exec {
		m.take(msg)
		return
	}
	switch l.up.Take(msg.Number) {
	case worker.InOrder:
		m.take(msg)
		if c, ok := msg.Body.(worker.Changed); ok && c.State == task.Running {
			m.readerAdded(msg.Exec)
		}
	case worker.Gap:
		m.broke(l, l.up.Lost(false, msg.Number), lastWord(msg))
	case worker.Broken:
		if s := lastWord(msg); s.Terminal() {
			m.step(job.TaskReported{Exec: msg.Exec, State: job.TaskFailed, Err: l.up.Lost(false, msg.Number)})
		}
	}
}

// lastWord is the state that a message tells of.
func lastWord(msg worker.Message) task.State {
	if c, ok := msg.Body.(worker.Changed); ok {
		return c.State
	}
	return task.Initializing
}

// broke fails an execution of which messages were lost. Where the lost ones, or the one that showed it, said that it has ended,
// there is nothing to wait for.
func (m *Master) broke(l *link, lost error, s task.State) {
	if s.Terminal() {
		m.step(job.TaskReported{Exec: l.exec, State: job.TaskFailed, Err: lost})
		return
	}
	m.step(job.LinkBroken{Exec: l.exec, Err: lost})
}

// compare looks for links up that have come further than what has arrived.
func (m *Master) compare(b worker.Beat) {
	for _, p := range b.Links {
		l := m.links[p.Exec.Task]
		if l == nil || l.exec != p.Exec {
			continue
		}
		m.lives.counted(p.Exec, p.Counters)
		switch l.up.Reached(p.Sent) {
		case worker.Gap:
			m.broke(l, l.up.Lost(false, p.Sent), p.State)
		case worker.Broken:
			if p.State.Terminal() {
				m.broke(l, l.up.Lost(false, p.Sent), p.State)
			}
		}
	}
}

// take takes a message in, of whichever execution.
func (m *Master) take(msg worker.Message) {
	switch b := msg.Body.(type) {
	case worker.Changed:
		m.lives.counted(msg.Exec, b.Counters)
		m.step(job.TaskReported{Exec: msg.Exec, State: stateOf(b.State), Err: b.Err, Permanent: permanent(b.Err)})
	case worker.Reported:
		m.step(job.Relayed{Event: b.Event})
	case worker.Asked:
		m.readerAsked(msg.Exec, b.Payload)
	case worker.Noted:
		m.noted(msg.Exec, b)
	default:
		panic(fmt.Sprintf("jobmaster: unknown message %T", msg.Body))
	}
}

func stateOf(s task.State) job.TaskState {
	switch s {
	case task.Initializing:
		return job.TaskInitializing
	case task.Running:
		return job.TaskRunning
	case task.Finished:
		return job.TaskFinished
	case task.Failed:
		return job.TaskFailed
	case task.Canceled:
		return job.TaskCanceled
	}
	panic(fmt.Sprintf("jobmaster: unknown task state %d", s))
}
