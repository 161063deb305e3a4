package task

import (
	"sync"

	"github.com/weirstream/weir/internal/exchange"
)

// mail is something to do on the task's goroutine, between two slices.
type mail func() error

// mailbox is the queue of a task's mails, in the order in which they were posted.
type mailbox struct {
	bell exchange.Bell

	mu     sync.Mutex
	queue  []mail // protected by mu
	closed bool   // protected by mu
	spare  []mail // of the reader: the array of the batch before
}

// post appends a mail; after close it is dropped. Any goroutine may post.
func (m *mailbox) post(do mail) {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return
	}
	m.queue = append(m.queue, do)
	m.mu.Unlock()
	m.bell.Ring()
}

// take is everything posted since the last take. The slice is valid until the next one.
func (m *mailbox) take() []mail {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) == 0 {
		return nil
	}
	all := m.queue
	clear(m.spare)
	m.queue, m.spare = m.spare[:0], all
	return all
}

// close drops what is queued and whatever is posted later.
func (m *mailbox) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.queue = true, nil
}
