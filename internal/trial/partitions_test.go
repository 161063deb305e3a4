package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weirstream/weir"
)

// partitions is an outside system of logs, as Kafka is one: they grow, new ones come, old records go, and every list of them
// is in another order.
type partitions struct {
	mu        sync.Mutex
	rng       *rand.Rand       // protected by mu
	logs      map[string]*plog // protected by mu; by partition
	wake      []func()         // protected by mu
	committed map[string]int64 // protected by mu; for monitoring only
	refuse    bool             // protected by mu; the commits of offsets
	refused   int              // protected by mu
	readers   map[string][]int // protected by mu; the subtasks that were given each partition
}

type plog struct {
	oldest  int64
	records []string // from 0 on
}

func newPartitions(names ...string) *partitions {
	ps := &partitions{rng: rand.New(rand.NewPCG(1, 9)), logs: map[string]*plog{}, committed: map[string]int64{}, readers: map[string][]int{}}
	for _, name := range names {
		ps.logs[name] = &plog{}
	}
	return ps
}

// write appends n records to a partition, which is made if need be. Each says where it stands.
func (ps *partitions) write(name string, n int) {
	ps.mu.Lock()
	l := ps.logs[name]
	if l == nil {
		l = &plog{}
		ps.logs[name] = l
	}
	for range n {
		l.records = append(l.records, fmt.Sprint(name, " ", len(l.records)))
	}
	wake := ps.wake
	ps.mu.Unlock()
	for _, w := range wake {
		w()
	}
}

// retain drops what is older than an offset.
func (ps *partitions) retain(name string, oldest int64) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.logs[name].oldest = oldest
}

func (ps *partitions) setRefuse(refuse bool) (refused int) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.refuse = refuse
	return ps.refused
}

// list is the partitions, shuffled.
func (ps *partitions) list() []Position {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	var all []Position
	for name, l := range ps.logs {
		all = append(all, Position{Partition: name, Next: l.oldest, End: int64(len(l.records))})
	}
	ps.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// Position is the split: a partition and its next offset; End is its end when it was found.
type Position struct {
	Partition string
	Next, End int64
}

// SplitID implements weir.Split.
func (p Position) SplitID() string { return p.Partition }

// partitionSource reads partitions.
type partitionSource struct {
	*partitions
	discover time.Duration // 0: bounded: what is there at the start
	latest   bool          // partitions that are there at the first start are read from their ends
	faults   *faults
}

func (s partitionSource) Bounded() bool { return s.discover == 0 }

// discovery is the enumerator's state. Which partitions are known is part of it, not only which are unassigned (B125): those that are
// found later are read from their beginning, whatever the start option (B119).
type discovery struct {
	Started bool
	Known   map[string]bool
	Pending []Position
}

func (s partitionSource) Enumerator(ctx weir.EnumeratorContext[Position], state []byte) (weir.Enumerator[Position], error) {
	e := &partitionEnumerator{source: s, ctx: ctx, discovery: discovery{Known: map[string]bool{}}}
	if state != nil {
		return e, json.Unmarshal(state, &e.discovery)
	}
	return e, nil
}

type partitionEnumerator struct {
	source partitionSource
	ctx    weir.EnumeratorContext[Position]
	discovery
	told map[int]bool // that no splits follow
}

func (e *partitionEnumerator) Start() error {
	e.told = map[int]bool{}
	if e.source.Bounded() && e.Started {
		return nil
	}
	e.look(0)
	return nil
}

// look asks for the partitions after a while, again and again.
func (e *partitionEnumerator) look(after time.Duration) {
	e.ctx.Run(func(ctx context.Context) (any, error) {
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-timer.C:
			return e.source.list(), e.source.faults.meet("enumerator.list")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, func(found any, err error) error {
		if err != nil {
			return err
		}
		e.found(found.([]Position))
		if !e.source.Bounded() {
			e.look(e.source.discover)
		}
		return nil
	})
}

func (e *partitionEnumerator) found(all []Position) {
	for _, p := range all {
		if e.Known[p.Partition] {
			continue
		}
		e.Known[p.Partition] = true
		if e.source.latest && !e.Started {
			p.Next = p.End
		}
		e.Pending = append(e.Pending, p)
	}
	e.Started = true
	for _, subtask := range e.ctx.Readers() {
		e.assign(subtask)
	}
}

func (e *partitionEnumerator) owner(p Position) int {
	h := fnv.New32a()
	h.Write([]byte(p.Partition))
	return int(h.Sum32()) % e.ctx.Parallelism()
}

func (e *partitionEnumerator) assign(subtask int) {
	e.Pending = slices.DeleteFunc(e.Pending, func(p Position) bool {
		if e.owner(p) != subtask {
			return false
		}
		e.ctx.Assign(subtask, p)
		return true
	})
	if e.source.Bounded() && e.Started && !e.told[subtask] {
		e.told[subtask] = true
		e.ctx.NoMoreSplits(subtask)
	}
}

func (e *partitionEnumerator) Added(subtask int) error {
	delete(e.told, subtask)
	e.assign(subtask)
	return nil
}
func (e *partitionEnumerator) SplitRequested(int) error       { return nil }
func (e *partitionEnumerator) Snapshot(int64) ([]byte, error) { return json.Marshal(e.discovery) }
func (e *partitionEnumerator) Close() error                   { return nil }

func (s partitionSource) Reader(ctx weir.ReaderContext) (weir.Reader[string, Position], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = append(s.wake, ctx.Wake)
	subtask, _ := ctx.Subtask()
	return &partitionReader{source: s, subtask: subtask, snaps: map[int64][]Position{}}, nil
}

type partitionReader struct {
	source  partitionSource
	subtask int
	splits  []Position
	last    bool
	snaps   map[int64][]Position
}

func (r *partitionReader) AddSplits(splits []Position) error {
	r.splits = append(r.splits, splits...)
	r.source.mu.Lock()
	defer r.source.mu.Unlock()
	for _, p := range splits {
		r.source.readers[p.Partition] = append(r.source.readers[p.Partition], r.subtask)
	}
	return nil
}

func (r *partitionReader) NoMoreSplits() { r.last = true }

func (r *partitionReader) Poll(_ context.Context, most int, out weir.Out[string]) (weir.Status, error) {
	if err := r.source.faults.meet("source.poll"); err != nil {
		return 0, err
	}
	r.source.mu.Lock()
	defer r.source.mu.Unlock()
	n := 0
	for i := range r.splits {
		p := &r.splits[i]
		l := r.source.logs[p.Partition]
		if p.Next < l.oldest { // B122: neither spin nor go on somewhere else
			return 0, weir.NonRecoverable(fmt.Errorf("partition %s: the next offset is %d, but the oldest record left is %d", p.Partition, p.Next, l.oldest))
		}
		for end := r.end(p, l); n < most && p.Next < end; n++ {
			out.Emit(l.records[p.Next])
			p.Next++
		}
	}
	if r.source.Bounded() {
		r.splits = slices.DeleteFunc(r.splits, func(p Position) bool { return p.Next >= p.End })
	}
	switch {
	case n > 0:
		return weir.More, nil
	case r.last && len(r.splits) == 0:
		return weir.Ended, nil
	}
	return weir.Waiting, nil
}

func (r *partitionReader) end(p *Position, l *plog) int64 {
	if r.source.Bounded() {
		return p.End
	}
	return int64(len(l.records))
}

func (r *partitionReader) Snapshot(id int64) ([]Position, error) {
	r.snaps[id] = slices.Clone(r.splits)
	return r.splits, nil
}

// CheckpointCompleted implements weir.NotifyingReader: offsets are committed for monitoring; that it fails is no reason to fail (B121).
func (r *partitionReader) CheckpointCompleted(id int64) error {
	r.source.mu.Lock()
	defer r.source.mu.Unlock()
	maps.DeleteFunc(r.snaps, func(other int64, _ []Position) bool { return other < id })
	if r.source.refuse {
		r.source.refused++
		return nil
	}
	for _, p := range r.snaps[id] {
		r.source.committed[p.Partition] = p.Next
	}
	return nil
}

// Close spoils the positions (B022): what a checkpoint has must be taken before.
func (r *partitionReader) Close() error {
	for i := range r.splits {
		r.splits[i].Next = 0
	}
	r.last = false
	return nil
}
