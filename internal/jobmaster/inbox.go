package jobmaster

import "sync"

// inbox is a queue of things to do on one goroutine, in the order in which they were posted.
type inbox[T any] struct {
	bell chan struct{}

	mu     sync.Mutex
	queue  []T  // protected by mu
	closed bool // protected by mu
}

func newInbox[T any]() *inbox[T] { return &inbox[T]{bell: make(chan struct{}, 1)} }

// post appends; false: the inbox is closed, and the caller keeps what it has. Any goroutine may post.
func (b *inbox[T]) post(item T) bool {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return false
	}
	b.queue = append(b.queue, item)
	b.mu.Unlock()
	b.ring()
	return true
}

func (b *inbox[T]) ring() {
	select {
	case b.bell <- struct{}{}:
	default:
	}
}

// take is everything posted since the last take.
func (b *inbox[T]) take() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.queue
	b.queue = nil
	return all
}

// close lets nothing more in, and returns what was not taken.
func (b *inbox[T]) close() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.queue
	b.queue, b.closed = nil, true
	return all
}
