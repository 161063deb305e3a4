package weir

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"
)

// Collect is a sink that gathers a job's output in memory, exactly once, for tests and small programs:
//
//	var got []int
//	env.From(weir.FromSlice([]int{1, 2, 3})).To(weir.Collect(&got)).UID("got")
//	err := env.Execute(ctx, "example") // got is 1, 2, 3
//
// Records are appended to *into when the checkpoint that they belong to completes, or at the job's end; those of one subtask
// keep their order. *into may be read when Execute has returned, not before. Every checkpoint has the records that were
// written since the last one, so T must be a type that package codec can encode.
//
// The slice is the memory of one process: where a job runs on a cluster, it stays empty in the program that submitted it, and
// a program that goes on from a checkpoint gets what that one had and what follows, not what was appended before.
func Collect[T any](into *[]T) Sink[T] {
	return Committing[T, collected[T]](&collector[T]{into: into, committed: map[string]bool{}})
}

// collected is what one writer took between two checkpoints. Part names it for ever, so that it is appended once.
type collected[T any] struct {
	Part   string
	Values []T
}

// collector is shared by the writers of a process.
type collector[T any] struct {
	mu        sync.Mutex
	into      *[]T            // protected by mu until Execute returns
	committed map[string]bool // protected by mu; by Part
}

// collectWriter holds back what no checkpoint has yet. Its name is random, so that a writer after a restart is another one.
type collectWriter[T any] struct {
	name   string
	parts  int
	values []T
}

// Name is for people.
func (c *collector[T]) Name() string { return "Collect" }

func (c *collector[T]) Writer(WriterContext) (Writer[T], error) {
	return &collectWriter[T]{name: rand.Text()}, nil
}

func (w *collectWriter[T]) Write(v T, _ time.Time) error {
	w.values = append(w.values, v)
	return nil
}

func (w *collectWriter[T]) Flush(bool) error { return nil }
func (w *collectWriter[T]) Close() error     { return nil }

// Restore has nothing to do: what old writers had not handed to a checkpoint is gone with them.
func (c *collector[T]) Restore(Writer[T], [][]byte) error { return nil }

func (c *collector[T]) Prepare(w Writer[T], _ int64) ([]collected[T], []byte, error) {
	cw := w.(*collectWriter[T])
	if len(cw.values) == 0 {
		return nil, nil, nil
	}
	cw.parts++
	part := collected[T]{Part: fmt.Sprint(cw.name, "-", cw.parts), Values: cw.values}
	cw.values = nil
	return []collected[T]{part}, nil, nil
}

func (c *collector[T]) Commit(_ context.Context, cs []*Commit[collected[T]]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, commit := range cs {
		if part := commit.Value; !c.committed[part.Part] {
			c.committed[part.Part] = true
			*c.into = append(*c.into, part.Values...)
		}
	}
	return nil
}

// Abort has nothing to do: what is never committed is never seen.
func (c *collector[T]) Abort(context.Context, []collected[T]) error { return nil }
