package operator

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/weirstream/weir/internal/base"
)

// Batch is a run of records of one type, in order. Values and Times have equal length; Hashes too where the batch crosses an
// edge by key, else it is empty.
//
// Inside a chain a batch is lent: the receiver neither changes nor keeps it, nor its slices. Only the exchange gives a batch
// away: then it is sealed, read-only for good, and goes back to its pool when the last holder has released it.
type Batch[T any] struct {
	Values []T
	Times  []base.EventTime
	Hashes []uint64

	refs atomic.Int32
	pool *pool[T]
}

// Len is the number of records.
func (b *Batch[T]) Len() int { return len(b.Values) }

// Bytes is what the records take, without what they point to.
func (b *Batch[T]) Bytes() int {
	var v T
	return len(b.Values)*int(unsafe.Sizeof(v)) + 8*(len(b.Times)+len(b.Hashes))
}

// Retain adds n holders.
func (b *Batch[T]) Retain(n int) { b.refs.Add(int32(n)) }

// Release gives up one holder's share. The last one clears the batch, so that it keeps nothing alive, and pools it.
func (b *Batch[T]) Release() {
	if b.refs.Add(-1) == 0 {
		b.pool.put(b)
	}
}

const (
	batchLeast     = 16       // records in a channel's first batch
	batchMost      = 1024     // records in a batch, at most
	batchBytes     = 32 << 10 // bytes of values in a batch, about
	pooledAtMost   = 64       // batches that a pool keeps
	recordsAtLeast = 16       // however large they are
)

// capacityOf is the most records that a batch of T holds.
func capacityOf[T any]() int {
	var v T
	size := max(1, int(unsafe.Sizeof(v)))
	return min(batchMost, max(recordsAtLeast, batchBytes/size))
}

// pool keeps released batches of one writer for its next ones. A sync.Pool costs 75 ns and is emptied by every collection.
type pool[T any] struct {
	mu   sync.Mutex
	free []*Batch[T] // protected by mu
}

// get is an empty batch with one holder and room for at least n records.
func (p *pool[T]) get(n int, hashed bool) *Batch[T] {
	p.mu.Lock()
	var b *Batch[T]
	if last := len(p.free) - 1; last >= 0 {
		b, p.free[last] = p.free[last], nil
		p.free = p.free[:last]
	}
	p.mu.Unlock()
	if b == nil || cap(b.Values) < n {
		b = &Batch[T]{Values: make([]T, 0, n), Times: make([]base.EventTime, 0, n), pool: p}
		if hashed {
			b.Hashes = make([]uint64, 0, n)
		}
	}
	b.refs.Store(1)
	return b
}

func (p *pool[T]) put(b *Batch[T]) {
	clear(b.Values)
	b.Values, b.Times, b.Hashes = b.Values[:0], b.Times[:0], b.Hashes[:0]
	p.mu.Lock()
	if len(p.free) < pooledAtMost {
		p.free = append(p.free, b)
	}
	p.mu.Unlock()
}
