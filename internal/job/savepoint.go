package job

import (
	"fmt"

	"github.com/weirstream/weir/internal/checkpoint"
)

// askedFor is a savepoint whose completion changes the job's life.
type askedFor struct {
	stop   bool // the job stops with it
	cancel bool // the job is cancelled after it
}

// savepointAsked makes the checks that need no coordinator, and asks it.
func (m *Machine) savepointAsked(e SavepointAsked) {
	if err := m.refusal(); err != nil {
		m.do(Reply{Request: e.Request, Err: err})
		return
	}
	if !e.Kind.IsSavepoint() || e.Cancel && e.Kind.IsSynchronous() {
		m.do(Reply{Request: e.Request, Err: fmt.Errorf("job: a %v is no savepoint that can be asked for so", e.Kind)})
		return
	}
	target := e.Target
	if target == "" {
		target = m.config.SavepointDir
	}
	if target == "" {
		m.do(Reply{Request: e.Request, Err: errNoDirectory})
		return
	}
	stop := e.Kind.IsSynchronous()
	if stop || e.Cancel {
		m.requests[e.Request] = askedFor{stop: stop, cancel: e.Cancel}
	}
	m.tell(checkpoint.Requested{Request: e.Request, Kind: e.Kind, Format: e.Format, Target: target, StopScheduler: stop || e.Cancel})
}

func (m *Machine) checkpointAsked(e CheckpointAsked) {
	if err := m.refusal(); err != nil {
		m.do(Reply{Request: e.Request, Err: err})
		return
	}
	kind := checkpoint.Checkpoint
	if e.Full {
		kind = checkpoint.FullCheckpoint
	}
	m.tell(checkpoint.Requested{Request: e.Request, Kind: kind, Format: checkpoint.Native})
}

// refusal is why the job takes no checkpoint any more; nil: it does.
func (m *Machine) refusal() error {
	switch {
	case m.end == nil:
		return nil
	case m.end.told:
		return fmt.Errorf("job: job %q is %v: nothing can be saved any more", m.config.Name, m.status)
	default:
		return fmt.Errorf("job: job %q is about to be %v: nothing can be saved any more", m.config.Name, m.end.status)
	}
}

// replied takes the coordinator's answer to a request. That of a stop waits for the end of the job: the caller hears of
// success only where everything was committed.
func (m *Machine) replied(r checkpoint.Reply) {
	reply := Reply{Request: r.Request, ID: r.ID, Location: r.Location, Err: replyError(r)}
	asked, ok := m.requests[r.Request]
	delete(m.requests, r.Request)
	if !ok || reply.Err != nil {
		m.do(reply)
		return
	}
	m.replies = append(m.replies, reply)
	if asked.stop {
		m.stopped = &r
	}
	if asked.cancel {
		m.decide(ending{status: Canceled, how: checkpoint.JobCanceled, savepoint: r.Location})
	}
}
