package operator

import (
	"encoding/binary"
	"fmt"
	"reflect"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/graph"
)

// Records in flight as bytes: batches one after another, those of one sender in the order in which they were sent. Hashes are
// not written: whoever reads them may have another key, or other parallelism.
//
//	batch = sender:uvarint count:uvarint length:u64 { time:u64 }*count { value }*count      length: of times and values, in bytes
//
// docs/format/checkpoint.md draws them too.

// Share says which records in flight fall to a subtask.
type Share struct {
	// Record is the schema that they were written with.
	Record string
	// All: all of them. Else the partitioning of the edge chooses.
	All  bool
	Kind graph.Partitioning
	// Turn, of Of, is whose turn it is: of records dealt in turn, counted from 0, those whose number divided by Of leaves Turn.
	Turn, Of int
	// Subtask and Parallelism are the receiver's.
	Subtask, Parallelism int
	// Old would have been the receiver, of OldParallelism; where that is not 0, hashes must agree.
	Old, OldParallelism int
}

const batchHead = 8 // bytes of length

// Append implements Reader.
func (r *reader[T]) Append(dst []byte, sender int, p exchange.Payload, from int) ([]byte, error) {
	c, err := r.edge.bytes()
	if err != nil {
		return dst, err
	}
	b := p.(*Batch[T])
	values, times := b.Values[from:], b.Times[from:]
	dst = binary.AppendUvarint(dst, uint64(sender))
	dst = binary.AppendUvarint(dst, uint64(len(values)))
	dst = append(dst, make([]byte, batchHead)...)
	start := len(dst)
	for _, t := range times {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(t))
	}
	for i := range values {
		if dst, err = c.Append(dst, &values[i]); err != nil {
			return dst, err
		}
	}
	binary.LittleEndian.PutUint64(dst[start-batchHead:], uint64(len(dst)-start))
	return dst, nil
}

// lastingError is one of the records in flight themselves: to restore them again repairs nothing.
type lastingError string

func (e lastingError) Error() string { return string(e) }

// NonRecoverable is what the job master looks for.
func (lastingError) NonRecoverable() bool { return true }

// errInFlight is the error of bytes that Append cannot have written.
const errInFlight = lastingError("damaged records in flight")

// Restore implements Reader.
func (r *reader[T]) Restore(records []byte, s Share, hand func(sender int, p exchange.Payload) error) error {
	c, err := r.edge.bytes()
	if err != nil {
		return err
	}
	read, _, err := c.From(s.Record)
	if err != nil {
		return err
	}
	pick := &picker[T]{edge: r.edge, share: s}
	if s.Kind == graph.Hash {
		pick.hash = r.edge.Hasher()
	}
	for len(records) > 0 {
		sender, body, count, rest, err := cutBatch(records)
		if err != nil {
			return err
		}
		b, err := decodeBatch(read, body, count)
		if err != nil {
			return err
		}
		if err := pick.keep(b); err != nil {
			return err
		}
		if len(b.Values) > 0 {
			if err := hand(sender, b); err != nil {
				return err
			}
		}
		records = rest
	}
	return nil
}

// cutBatch cuts one batch off.
func cutBatch(records []byte) (sender int, body []byte, count int, rest []byte, err error) {
	s, n := binary.Uvarint(records)
	if n <= 0 || s > base.KeyGroups {
		return 0, nil, 0, nil, errInFlight
	}
	k, m := binary.Uvarint(records[n:])
	if m <= 0 || len(records) < n+m+batchHead {
		return 0, nil, 0, nil, errInFlight
	}
	rest = records[n+m+batchHead:]
	length := binary.LittleEndian.Uint64(records[n+m:])
	if length > uint64(len(rest)) || k > length/8 {
		return 0, nil, 0, nil, errInFlight
	}
	return int(s), rest[:length], int(k), rest[length:], nil
}

func decodeBatch[T any](c *codec.Reader[T], body []byte, count int) (*Batch[T], error) {
	b := &Batch[T]{Values: make([]T, count), Times: make([]base.EventTime, count), pool: &pool[T]{}}
	b.refs.Store(1)
	for i := range count {
		b.Times[i] = base.EventTime(binary.LittleEndian.Uint64(body[8*i:]))
	}
	body = body[8*count:]
	var err error
	for i := range b.Values {
		if body, err = c.Decode(body, &b.Values[i]); err != nil {
			return nil, fmt.Errorf("%w of type %v: %w", errInFlight, reflect.TypeFor[T](), err)
		}
	}
	if len(body) > 0 {
		return nil, errInFlight
	}
	return b, nil
}

// picker keeps of restored batches what falls to its subtask.
type picker[T any] struct {
	edge  *Edge[T]
	share Share
	hash  func([]T, []uint64) error
	turn  int
}

func (p *picker[T]) keep(b *Batch[T]) error {
	if p.hash != nil {
		b.Hashes = make([]uint64, len(b.Values))
		if err := p.hash(b.Values, b.Hashes); err != nil {
			return err
		}
	}
	if p.share.All && p.hash == nil {
		return nil
	}
	kept := 0
	for i, v := range b.Values {
		switch mine, err := p.mine(b, i, v); {
		case err != nil:
			return err
		case !mine:
			continue
		}
		b.Values[kept], b.Times[kept] = v, b.Times[i]
		if p.hash != nil {
			b.Hashes[kept] = b.Hashes[i]
		}
		kept++
	}
	clear(b.Values[kept:])
	b.Values, b.Times = b.Values[:kept], b.Times[:kept]
	if p.hash != nil {
		b.Hashes = b.Hashes[:kept]
	}
	return nil
}

// errRekeyed is an error, and not another reader's record: whoever reads by key groups would not have read this one.
const errRekeyed = lastingError("records in flight belong to other subtasks than those that they were sent to: the key of the edge has changed; " +
	"restore from a savepoint, which has no records in flight, or with the old key")

func (p *picker[T]) mine(b *Batch[T], i int, v T) (bool, error) {
	s := p.share
	if s.All {
		return true, nil
	}
	switch s.Kind {
	case graph.Hash:
		if s.OldParallelism > 0 && base.OwnerOf(b.Hashes[i], s.OldParallelism) != s.Old {
			return false, errRekeyed
		}
		return base.OwnerOf(b.Hashes[i], s.Parallelism) == s.Subtask, nil
	case graph.Custom:
		return p.edge.Choose(v, s.Parallelism) == s.Subtask, nil
	case graph.Rebalance, graph.Rescale, graph.Forward, graph.Global, graph.Broadcast:
		p.turn++
		return (p.turn-1)%s.Of == s.Turn, nil
	}
	panic(fmt.Sprintf("operator: partitioning %v", s.Kind))
}
