package worker

import (
	"fmt"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/task"
)

// Message is what travels between the master and a worker.
type Message struct {
	// Exec and Number are the link's that the message belongs to; Number 0: to none.
	Exec   base.Exec
	Number uint64
	// Body is one of the types below.
	Body any
}

// Bodies of messages to a task.
type (
	// Trigger begins a checkpoint.
	Trigger struct{ Barrier checkpoint.Barrier }
	// Deliver is an operator coordinator's event for the source.
	Deliver struct{ Payload any }
	// Complete says that a checkpoint is stored.
	Complete struct{ ID base.CheckpointID }
	// Abort says that a checkpoint will not complete, and which one was the latest that did; 0: none.
	Abort struct{ ID, Latest base.CheckpointID }
	// Cancel ends the task.
	Cancel struct{}
)

// Bodies of messages to the master.
type (
	// Changed is a new state of the task.
	Changed struct {
		State    task.State
		Err      error
		Counters task.Counters
	}
	// Reported is what a task, or the worker about one that it does not have, tells the checkpoint coordinator.
	Reported struct{ Event checkpoint.CoordinatorEvent }
	// Asked is a source reader's message to its operator coordinator.
	Asked struct{ Payload any }
	// Noted is something that a task tells of itself; nothing depends on it.
	Noted struct {
		Note     task.Note
		Counters task.Counters
	}
)

// Beat is the body of a message in either direction that belongs to no link: how far the sender's links have come.
type Beat struct{ Links []Progress }

// Progress is how far one link has come.
type Progress struct {
	Exec base.Exec
	Sent uint64 // the number of the last message
	// State is the task's last one, of links up: what a lost last message would have said.
	State task.State
	// Counters are the task's, of links up; nothing depends on them.
	Counters task.Counters
}

// Carrier brings m to the other end by calling deliver: at once, for one that loses, doubles and delays nothing. Messages of
// one link must be delivered in the order of the calls.
type Carrier func(m Message, deliver func(Message))

// Direct is the Carrier within a process.
func Direct(m Message, deliver func(Message)) { deliver(m) }

// Sequence checks the numbers of a link's messages at its receiving end. The zero value expects the first message.
type Sequence struct {
	last   uint64
	broken bool
}

// Arrival is what a Sequence says of a message.
type Arrival int

const (
	// InOrder: take it.
	InOrder Arrival = iota
	// Again: it was taken before; drop it.
	Again
	// Gap: a message before it is lost, and the link is broken from here on.
	Gap
	// Broken: the link had been broken before; drop it.
	Broken
)

// Take hears of a message's number.
func (s *Sequence) Take(number uint64) Arrival {
	switch {
	case s.broken:
		return Broken
	case number <= s.last:
		return Again
	case number > s.last+1:
		s.broken = true
		return Gap
	}
	s.last = number
	return InOrder
}

// Reached hears that the sender has sent a message of this number, and everything before it, earlier than what said so.
func (s *Sequence) Reached(number uint64) Arrival {
	switch {
	case s.broken:
		return Broken
	case number > s.last:
		s.broken = true
		return Gap
	}
	return InOrder
}

// GapError says that a link lost messages.
type GapError struct {
	Down   bool   // from the master to the task
	Before uint64 // the number of the message, or sent according to a beat, that showed it
	Last   uint64 // the last one that arrived in order
}

// Lost is the error of a link that broke at a message, or a beat, with that number.
func (s *Sequence) Lost(down bool, number uint64) *GapError {
	return &GapError{Down: down, Before: number, Last: s.last}
}

func (e *GapError) Error() string {
	link := "from the task to the job's master"
	if e.Down {
		link = "from the job's master to the task"
	}
	return fmt.Sprintf("messages %s were lost: number %d was sent, but %d is the last that arrived", link, e.Before, e.Last)
}
