package operator

import (
	"fmt"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
	"github.com/zeebo/xxh3"
)

// Guarded is an output that tests can watch over: every *Emitter.
type Guarded interface {
	// Hear has f hear of each run of records that leaves, before those who receive it after this call. f may take its time, or fail.
	Hear(f func(records int) error)
	// Guard has report hear of records that were changed after they were emitted: by the operator itself, which had kept what they
	// refer to, or by one behind it in the same process. It looks whenever something more leaves, and when check is called. It is for
	// tests: each record is encoded several times.
	Guard(report func(error)) (check func())
}

// Hear implements Guarded.
func (e *Emitter[T]) Hear(f func(records int) error) { e.To(listener[T](f)) }

// listener is a receiver that only counts.
type listener[T any] func(records int) error

// Push implements In.
func (l listener[T]) Push(b *Batch[T]) error { return l(len(b.Values)) }

// Watermark implements Control.
func (listener[T]) Watermark(base.EventTime) error { return nil }

// Idle implements Control.
func (listener[T]) Idle(bool) error { return nil }

// EndOfData implements Control.
func (listener[T]) EndOfData(bool) error { return nil }

// guardMost is how many of the records that left last a guard still knows.
const guardMost = 64

// Guard implements Guarded. Records of a type that refers to nothing, or that has no codec, cannot be changed, or not watched.
func (e *Emitter[T]) Guard(report func(error)) (check func()) {
	c, err := codec.For[T]()
	if err != nil || c.Flat() {
		return func() {}
	}
	g := &guard[T]{codec: c, report: report}
	e.To(g)
	return g.check
}

// guard is a receiver that keeps the records that came last, as they were given, with the hashes of their bytes then; each time it
// is called it looks at some of them again. It is called behind the other receivers of a batch too, by the next batch.
type guard[T any] struct {
	codec  *codec.Codec[T]
	report func(error)
	kept   []kept[T] // a ring
	next   int
	bytes  []byte
}

type kept[T any] struct {
	value T
	hash  uint64
	text  string
}

// Push implements In.
func (g *guard[T]) Push(b *Batch[T]) error {
	g.check()
	for i := range b.Values {
		k := kept[T]{value: b.Values[i], hash: g.hash(&b.Values[i]), text: fmt.Sprintf("%+v", b.Values[i])}
		if len(g.kept) < guardMost {
			g.kept = append(g.kept, k)
			continue
		}
		g.kept[g.next] = k
		g.next = (g.next + 1) % guardMost
	}
	return nil
}

// check looks at all records again; of one that has changed it tells once.
func (g *guard[T]) check() {
	for i := range g.kept {
		k := &g.kept[i]
		if now := g.hash(&k.value); now != k.hash {
			g.report(fmt.Errorf("a record was changed after it was emitted: it was %s, and is now %+v; what a record refers to must not change "+
				"any more, so emit a copy, or change a copy of what you were given", k.text, k.value))
			k.hash, k.text = now, fmt.Sprintf("%+v", k.value)
		}
	}
}

// hash is that of a record's bytes; one that cannot be encoded fails elsewhere.
func (g *guard[T]) hash(v *T) uint64 {
	var err error
	if g.bytes, err = g.codec.Append(g.bytes[:0], v); err != nil {
		return 0
	}
	return xxh3.Hash(g.bytes)
}

// Watermark implements Control: what stands behind the records is a moment to look.
func (g *guard[T]) Watermark(base.EventTime) error { g.check(); return nil }

// Idle implements Control.
func (g *guard[T]) Idle(bool) error { g.check(); return nil }

// EndOfData implements Control.
func (g *guard[T]) EndOfData(bool) error { g.check(); return nil }
