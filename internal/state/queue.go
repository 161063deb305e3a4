package state

import "github.com/weirstream/weir/internal/base"

// queue is a heap of timers, the earliest first: four children a node, which makes it half as deep as one of two.
type queue[K comparable] []queued[K]

type queued[K comparable] struct {
	at   base.EventTime
	hash uint64 // of the key
	key  K
}

const children = 4

func (q *queued[K]) before(o *queued[K]) bool {
	return q.at < o.at || q.at == o.at && q.hash < o.hash
}

func (q *queue[K]) push(x queued[K]) {
	*q = append(*q, x)
	s := *q
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / children
		if !x.before(&s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = x
}

// pop takes the first out of a queue that is not empty.
func (q *queue[K]) pop() queued[K] {
	s := *q
	first, last := s[0], s[len(s)-1]
	s[len(s)-1] = queued[K]{}
	s = s[:len(s)-1]
	*q = s
	if len(s) > 0 {
		s.sink(0, last)
	}
	return first
}

// heapify orders what was appended anyhow.
func (q queue[K]) heapify() {
	for i := (len(q) - 2) / children; i >= 0 && len(q) > 1; i-- {
		q.sink(i, q[i])
	}
}

// sink puts x at i or below.
func (q queue[K]) sink(i int, x queued[K]) {
	for {
		first := children*i + 1
		if first >= len(q) {
			break
		}
		least := first
		for j := first + 1; j < min(first+children, len(q)); j++ {
			if q[j].before(&q[least]) {
				least = j
			}
		}
		if !q[least].before(&x) {
			break
		}
		q[i] = q[least]
		i = least
	}
	q[i] = x
}
