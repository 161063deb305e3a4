package operator

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/graph"
)

// Wire makes the two ends of an edge. It is what a graph.Edge carries: the one value that knows the type of the records
// where everything around it does not.
type Wire interface {
	// Check tells why records cannot travel between processes; nil: they can.
	Check() error
	// Record is the schema of the records.
	Record() (string, error)
	// Chain makes an edge within a task: from's output tag pushes into to's input.
	Chain(from, to Operator, tag string, input int) error
	// Writer makes the sending end: from's output tag goes to the partition.
	Writer(from Operator, tag string, w Sending) (Writer, error)
	// Reader makes the receiving end: batches are pushed into to's input.
	Reader(to Operator, input int) (Reader, error)
}

// Sending is what a writer sends with.
type Sending struct {
	Kind      graph.Partitioning
	Subtask   int // of the sender
	Receivers int // parallelism of the receiver
	Partition *exchange.Partition
	Context   context.Context
	BatchMost int // records in a batch, at most; 0: by their size
}

// Writer is the sending end of an edge between tasks.
type Writer interface {
	// Flush sends the batches that are not full.
	Flush() error
	// FlushRoom sends those for which there is room: a receiver whose channel is full does not wait for one more.
	FlushRoom() error
	// Barrier sends a barrier behind everything that was pushed, without waiting for room.
	Barrier(b checkpoint.Barrier) error
	// Held is true where Flush has something to send.
	Held() bool
	// Partition is where the writer sends.
	Partition() *exchange.Partition
}

// Reader is the receiving end of an edge between tasks.
type Reader interface {
	// Push lends the records [from, to) of a batch to the chain.
	Push(p exchange.Payload, from, to int) error
	// Append writes the records from on of a batch behind dst, in the format of records in flight.
	Append(dst []byte, sender int, p exchange.Payload, from int) ([]byte, error)
	// Restore reads records in flight, and hands on those that are mine, by sender. What is handed on is one batch after another.
	Restore(records []byte, s Share, hand func(sender int, p exchange.Payload) error) error
	Control
}

// Edge is the Wire of records of type T.
type Edge[T any] struct {
	// Hasher makes a function that computes the hashes of the records' keys (one function a subtask: it may keep scratch
	// space); nil but for Hash edges.
	Hasher func() func(values []T, hashes []uint64) error
	// Choose picks the receiver, of n; nil but for Custom edges.
	Choose func(v T, n int) int

	once  sync.Once
	codec *codec.Codec[T] // after once
	err   error
}

// bytes is the codec of the records, derived at first use.
func (e *Edge[T]) bytes() (*codec.Codec[T], error) {
	e.once.Do(func() { e.codec, e.err = codec.For[T]() })
	return e.codec, e.err
}

// Record implements Wire.
func (*Edge[T]) Record() (string, error) { return codec.SchemaOf(reflect.TypeFor[T]()) }

// Check implements Wire.
func (*Edge[T]) Check() error { return codec.Check(reflect.TypeFor[T]()) }

// Chain implements Wire.
func (*Edge[T]) Chain(from, to Operator, tag string, input int) error {
	out, in, err := ends[T](from, to, tag, input)
	if err == nil {
		out.To(in)
	}
	return err
}

// ends are the output and the input that an edge within a task joins.
func ends[T any](from, to Operator, tag string, input int) (*Emitter[T], In[T], error) {
	out, err := outputOf[T](from, tag)
	if err != nil {
		return nil, nil, err
	}
	in, err := inputOf[T](to, input)
	return out, in, err
}

func outputOf[T any](from Operator, tag string) (*Emitter[T], error) {
	out, ok := from.Output(tag).(*Emitter[T])
	if !ok {
		return nil, fmt.Errorf("operator: output %q carries %T, not %T", tag, from.Output(tag), out)
	}
	return out, nil
}

func inputOf[T any](to Operator, input int) (In[T], error) {
	in, ok := to.Input(input).(In[T])
	if !ok {
		return nil, fmt.Errorf("operator: input %d takes %T, not batches of %T", input, to.Input(input), *new(T))
	}
	return in, nil
}

// Writer implements Wire.
func (e *Edge[T]) Writer(from Operator, tag string, s Sending) (Writer, error) {
	out, err := outputOf[T](from, tag)
	if err != nil {
		return nil, err
	}
	w := newWriter(e, s)
	out.To(w)
	return w, nil
}

// Reader implements Wire.
func (e *Edge[T]) Reader(to Operator, input int) (Reader, error) {
	in, err := inputOf[T](to, input)
	if err != nil {
		return nil, err
	}
	return &reader[T]{In: in, edge: e}, nil
}

// reader lends the batches of an edge to a chain, slice by slice.
type reader[T any] struct {
	In[T]
	edge *Edge[T]
	view Batch[T]
}

// Push implements Reader.
func (r *reader[T]) Push(p exchange.Payload, from, to int) error {
	b := p.(*Batch[T])
	r.view.Values, r.view.Times = b.Values[from:to], b.Times[from:to]
	if len(b.Hashes) > 0 {
		r.view.Hashes = b.Hashes[from:to]
	} else {
		r.view.Hashes = nil
	}
	return r.In.Push(&r.view)
}
