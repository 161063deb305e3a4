package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/task"
)

// The program of these tests: numbers from splits, counted by their last digit, into a ledger that commits in two phases. A
// ledger is right when it has each digit's counts 1..n, each once.
//
//	numbers (2) --hash--> count (2) --hash--> ledger (1)

const (
	numbersTotal = 400
	numbersSplit = 25 // numbers in a split
)

// program is one job with the world outside of it.
type program struct {
	ledger *ledger
	// trouble is asked by each count for each number, and by the ledger for each commit; its error is theirs.
	trouble func(where string, v int64) error
	// endless: the numbers do not end.
	endless bool
}

func (p *program) graph(parallelism int) *graph.Job {
	factory := func(make func() operator.Operator) task.Factory { return make }
	hash := func() func([]int64, []uint64) error {
		return func(vs []int64, hs []uint64) error {
			for i, v := range vs {
				hs[i] = uint64(v%10) << 59
			}
			return nil
		}
	}
	state := func(name string) []snapshot.StateSchema {
		return []snapshot.StateSchema{{Name: name, Kind: "oplist", Value: `"bytes"`}}
	}
	l := graph.Logical{
		Nodes: []*graph.Node{
			{ID: 0, Kind: graph.Source, Name: "numbers", UID: "numbers", Parallelism: parallelism, Coordinator: provider{p}, Schemas: state("splits"),
				Factory: factory(func() operator.Operator { return &numbers{} })},
			{ID: 1, Kind: graph.Transform, Name: "count", UID: "count", Parallelism: parallelism, Schemas: state("counts"),
				Factory: factory(func() operator.Operator { return &count{program: p, counts: map[int64]int64{}} })},
			{ID: 2, Kind: graph.Sink, Name: "ledger", UID: "ledger", Parallelism: 1, TwoPhase: true, Schemas: state("sealed"),
				Factory: factory(func() operator.Operator { return &writer{program: p} })},
		},
		Edges: []*graph.Edge{
			{From: 0, To: 1, Partitioning: graph.Hash, Type: "int64", Wire: &operator.Edge[int64]{Hasher: hash}},
			{From: 1, To: 2, Partitioning: graph.Rebalance, Type: "string", Wire: &operator.Edge[string]{}},
		},
	}
	j, err := l.Build("numbers", graph.Options{Parallelism: 1, Chaining: true})
	if err != nil {
		panic(err)
	}
	return j
}

// ledger is the outside world: what it has is committed for good.
type ledger struct {
	mu           sync.Mutex
	transactions map[string][]string // protected by mu
}

func newLedger() *ledger { return &ledger{transactions: map[string][]string{}} }

func (l *ledger) commit(id string, lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.transactions[id] = lines
}

// clone is the ledger as it is now.
func (l *ledger) clone() *ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &ledger{transactions: maps.Clone(l.transactions)}
}

func (l *ledger) len() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lines := range l.transactions {
		n += len(lines)
	}
	return n
}

// check tells what is missing and what is there twice of the counts of the numbers 0 to total-1.
func (l *ledger) check(total int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := map[string]int{}
	for _, lines := range l.transactions {
		for _, line := range lines {
			seen[line]++
		}
	}
	var wrong []string
	for v := range total {
		line := fmt.Sprintf("%d: %d", v%10, v/10+1)
		if n := seen[line]; n != 1 {
			wrong = append(wrong, fmt.Sprintf("%q %d times", line, n))
		}
		delete(seen, line)
	}
	if len(wrong)+len(seen) > 0 {
		return fmt.Errorf("the ledger has %s; and %v", strings.Join(wrong, ", "), seen)
	}
	return nil
}

// split is some numbers: First to End-1.
type split struct{ First, End int64 }

// provider makes the enumerator of the splits.
type provider struct{ program *program }

// New implements jobmaster.CoordinatorProvider.
func (p provider) New(ctx jobmaster.CoordinatorContext, state []byte) (jobmaster.Coordinator, error) {
	e := &enumerator{ctx: ctx, endless: p.program.endless}
	if state != nil {
		return e, json.Unmarshal(state, &e.next)
	}
	return e, nil
}

type enumerator struct {
	ctx     jobmaster.CoordinatorContext
	next    int64
	endless bool
}

func (e *enumerator) Start() error    { return nil }
func (e *enumerator) Added(int) error { return nil }
func (e *enumerator) Close() error    { return nil }

func (e *enumerator) Handle(subtask int, _ any) error {
	if e.next >= numbersTotal && !e.endless {
		e.ctx.Send(subtask, nil)
		return nil
	}
	e.ctx.Send(subtask, split{e.next, e.next + numbersSplit})
	e.next += numbersSplit
	return nil
}

func (e *enumerator) Snapshot(base.CheckpointID) ([]byte, error) { return json.Marshal(e.next) }

// passing is an operator with an output, which passes control on.
type passing[T any] struct {
	operator.Base
	out operator.Emitter[T]
}

func (o *passing[T]) Setup(rt *operator.Runtime) error {
	o.out.Init()
	return o.Base.Setup(rt)
}
func (o *passing[T]) Output(string) any                { return &o.out }
func (o *passing[T]) Watermark(t base.EventTime) error { return o.out.Watermark(t) }
func (o *passing[T]) Idle(idle bool) error             { return o.out.Idle(idle) }
func (o *passing[T]) EndOfData(drained bool) error     { return o.out.EndOfData(drained) }

// part makes a part of a checkpoint of one list with one element.
func part(name string, v any) (operator.Part, error) {
	b, err := json.Marshal(v)
	l := snapshot.ListHandle{Name: name, Mode: snapshot.Split, Offsets: []int64{0}, Handle: snapshot.InlineHandle(b)}
	return operator.Part{State: snapshot.Subtask{Lists: []snapshot.ListHandle{l}, Watermark: base.NoTime, PendingWatermark: base.NoTime}}, err
}

// restore reads what part made.
func restore(r *operator.Restored, into func(decode func(any) error) error) error {
	for _, l := range r.Lists {
		if err := into(func(v any) error { return json.Unmarshal(l.Inline, v) }); err != nil {
			return err
		}
	}
	return nil
}

// numbers is the source: a number a millisecond.
type numbers struct {
	passing[int64]
	splits []split
	asked  bool
	over   bool
	due    bool
}

func (o *numbers) Input(int) any { return nil }

func (o *numbers) Open() error {
	o.due = true
	return nil
}

func (o *numbers) Event(payload any) error {
	if s, ok := payload.(split); ok {
		o.splits = append(o.splits, s)
	} else {
		o.over = true
	}
	o.asked = false
	return nil
}

func (o *numbers) Poll(int) (int, operator.Status, error) {
	if len(o.splits) == 0 {
		if o.over {
			return 0, operator.Ended, nil
		}
		if !o.asked {
			o.asked = true
			o.Runtime.Ask("a split")
		}
		return 0, operator.Waiting, nil
	}
	if !o.due {
		return 0, operator.Waiting, nil
	}
	o.due = false
	time.AfterFunc(time.Millisecond, func() {
		o.Runtime.Mail(func() error {
			o.due = true
			o.Runtime.Wake()
			return nil
		})
	})
	s := &o.splits[0]
	o.out.Emit(s.First)
	if s.First++; s.First == s.End {
		o.splits = o.splits[1:]
	}
	return 1, operator.Waiting, o.out.Flush()
}

func (o *numbers) Snapshot(operator.Cut) (operator.Part, error) { return part("splits", o.splits) }

func (o *numbers) Restore(r *operator.Restored) error {
	return restore(r, func(decode func(any) error) error { return decode(&o.splits) })
}

// count counts the numbers with each last digit.
type count struct {
	passing[string]
	program *program
	counts  map[int64]int64
}

func (o *count) Input(int) any { return o }

func (o *count) Push(b *operator.Batch[int64]) error {
	for _, v := range b.Values {
		if t := o.program.trouble; t != nil {
			if err := t("count", v); err != nil {
				return err
			}
		}
		o.counts[v%10]++
		o.out.Emit(fmt.Sprintf("%d: %d", v%10, o.counts[v%10]))
	}
	return o.out.Flush()
}

func (o *count) Snapshot(operator.Cut) (operator.Part, error) { return part("counts", o.counts) }

func (o *count) Restore(r *operator.Restored) error {
	return restore(r, func(decode func(any) error) error {
		var counts map[int64]int64
		err := decode(&counts)
		maps.Copy(o.counts, counts)
		return err
	})
}

// writer writes to the ledger in two phases.
type writer struct {
	operator.Base
	program *program
	open    []string
	sealed  []transaction
}

type transaction struct {
	ID    base.CheckpointID
	Name  string
	Lines []string
}

func (o *writer) Input(int) any                  { return o }
func (o *writer) Watermark(base.EventTime) error { return nil }
func (o *writer) Idle(bool) error                { return nil }
func (o *writer) EndOfData(bool) error           { return nil }

func (o *writer) Push(b *operator.Batch[string]) error {
	o.open = append(o.open, b.Values...)
	return nil
}

func (o *writer) Snapshot(c operator.Cut) (operator.Part, error) {
	o.sealed = append(o.sealed, transaction{c.ID, fmt.Sprintf("%d of %v", c.ID, o.Runtime.Exec), slices.Clone(o.open)})
	o.open = nil
	return part("sealed", o.sealed)
}

func (o *writer) Restore(r *operator.Restored) error {
	return restore(r, func(decode func(any) error) error {
		var sealed []transaction
		err := decode(&sealed)
		for _, t := range sealed {
			o.program.ledger.commit(t.Name, t.Lines)
		}
		return err
	})
}

func (o *writer) Complete(id base.CheckpointID) error {
	if t := o.program.trouble; t != nil {
		if err := t("commit", int64(id)); err != nil {
			return err
		}
	}
	for len(o.sealed) > 0 && o.sealed[0].ID <= id {
		o.program.ledger.commit(o.sealed[0].Name, o.sealed[0].Lines)
		o.sealed = o.sealed[1:]
	}
	return nil
}

// once makes an error the nth time that where is asked.
func once(where string, nth int, err error) func(string, int64) error {
	var mu sync.Mutex
	n := 0
	return func(w string, _ int64) error {
		mu.Lock()
		defer mu.Unlock()
		if w != where {
			return nil
		}
		if n++; n == nth {
			return err
		}
		return nil
	}
}

var errBoom = errors.New("boom")

var _ operator.Source = (*numbers)(nil)
