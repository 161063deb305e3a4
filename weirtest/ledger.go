package weirtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// ledger is the outside world that a Sink writes to: a system with transactions, as a message broker is one. A producer is named by its job
// and subtask; whoever registers under that name fences those before it, whose open transaction is aborted.
//
//	open --seal--> sealed --commit--> committed
//	   \--------------\------abort--> aborted
type ledger[T any] struct {
	// step is called before each operation, where a crash may come between them; nil: nobody cares. It is set before the first one.
	step func(op string)

	mu           sync.Mutex
	changed      chan struct{}              // protected by mu; closed when something is committed
	epochs       map[string]int             // protected by mu; by producer
	transactions map[string]*transaction[T] // protected by mu; by id
	order        []string                   // protected by mu; ids, first as they were begun, then as they were committed
}

type transaction[T any] struct {
	producer string
	sealed   int64 // the checkpoint; -1: open
	fate     fate
	values   []T
}

type fate int

const (
	pending fate = iota
	committed
	aborted
)

var (
	errFenced = errors.New("weirtest: a newer writer has registered under this writer's name: two of them run at once")
	errLost   = errors.New("weirtest: output is lost: a committable is of a transaction that cannot be committed")
)

func newLedger[T any]() *ledger[T] {
	return &ledger[T]{changed: make(chan struct{}), epochs: map[string]int{}, transactions: map[string]*transaction[T]{}}
}

// clone is the ledger as it is now.
func (l *ledger[T]) clone() *ledger[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := newLedger[T]()
	c.epochs, c.order = maps.Clone(l.epochs), slices.Clone(l.order)
	for id, x := range l.transactions {
		copied := *x
		copied.values = slices.Clone(x.values)
		c.transactions[id] = &copied
	}
	return c
}

// enter begins an operation; the caller unlocks.
func (l *ledger[T]) enter(op string) {
	if l.step != nil {
		l.step(op)
	}
	l.mu.Lock()
}

func producerOf(job string, subtask int) string { return fmt.Sprintf("%s/%d", job, subtask) }

// register fences the producer of a subtask, and those of subtasks that are no more: number i takes care of every one that is
// i modulo the parallelism. Their open transactions are aborted.
func (l *ledger[T]) register(job string, subtask, of int) (epoch int) {
	l.enter("register")
	defer l.mu.Unlock()
	own := producerOf(job, subtask)
	heirs := map[string]bool{own: true}
	for name := range l.epochs {
		var old int
		if rest, ok := strings.CutPrefix(name, job+"/"); ok {
			if _, err := fmt.Sscanf(rest, "%d", &old); err == nil && old >= of && old%of == subtask {
				heirs[name] = true
			}
		}
	}
	for name := range heirs {
		l.epochs[name]++
		l.abortLocked(func(x *transaction[T]) bool { return x.producer == name && x.sealed < 0 })
	}
	return l.epochs[own]
}

func (l *ledger[T]) abortLocked(which func(*transaction[T]) bool) {
	for _, x := range l.transactions {
		if x.fate == pending && which(x) {
			x.fate = aborted
		}
	}
}

// abandon aborts what a producer has sealed for checkpoints after c.
func (l *ledger[T]) abandon(producer string, c int64) {
	l.enter("abandon")
	defer l.mu.Unlock()
	l.abortLocked(func(x *transaction[T]) bool { return x.producer == producer && x.sealed > c })
}

// append writes into a transaction, and begins it where it is new.
func (l *ledger[T]) append(id, producer string, epoch int, v T) error {
	l.enter("write")
	defer l.mu.Unlock()
	if l.epochs[producer] != epoch {
		return errFenced
	}
	x := l.transactions[id]
	if x == nil {
		x = &transaction[T]{producer: producer, sealed: -1}
		l.transactions[id] = x
		l.order = append(l.order, id)
	}
	if x.fate != pending || x.sealed >= 0 {
		return fmt.Errorf("weirtest: transaction %s takes no more records", id)
	}
	x.values = append(x.values, v)
	return nil
}

// seal ends a transaction; it can then be committed by anybody who knows its id. begun: there is one.
func (l *ledger[T]) seal(id, producer string, epoch int, checkpoint int64) (begun bool, err error) {
	l.enter("prepare")
	defer l.mu.Unlock()
	if l.epochs[producer] != epoch {
		return false, errFenced
	}
	x := l.transactions[id]
	if x != nil {
		x.sealed = checkpoint
	}
	return x != nil, nil
}

// commit makes a transaction's records visible, once.
func (l *ledger[T]) commit(id string) error {
	l.enter("commit")
	defer l.mu.Unlock()
	x := l.transactions[id]
	switch {
	case x == nil:
		return fmt.Errorf("%w: %s was never begun", errLost, id)
	case x.fate == aborted:
		return fmt.Errorf("%w: %s was aborted, with %d records", errLost, id, len(x.values))
	case x.sealed < 0:
		return fmt.Errorf("%w: %s was never prepared", errLost, id)
	case x.fate == committed:
		return nil
	}
	x.fate = committed
	l.order = append(slices.DeleteFunc(l.order, func(o string) bool { return o == id }), id)
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

// abort says that a transaction will never be committed.
func (l *ledger[T]) abort(id string) {
	l.enter("abort")
	defer l.mu.Unlock()
	if x := l.transactions[id]; x != nil && x.fate == pending {
		x.fate = aborted
	}
}

// read are the records of the transactions of one fate.
func (l *ledger[T]) read(f fate) (all []T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range l.order {
		if x := l.transactions[id]; x.fate == f {
			all = append(all, x.values...)
		}
	}
	return all
}

// watch is closed at the next commit.
func (l *ledger[T]) watch() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}
