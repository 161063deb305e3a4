package weirtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/storage"
)

// World is what outlives the process of a job that a Crash runs: its checkpoints, and what its sinks have written. In each life the job is built
// anew and finds the world as the crash has left it.
type World struct {
	disk *storage.MemFS
	gate *gate // of the life that is on, set before it begins; nil: none

	mu    sync.Mutex
	sinks map[string]outside // protected by mu
}

// outside is a ledger without its type.
type outside interface {
	copied(step func(op string)) outside
	compared(want outside) (wrong []string, excess bool)
	size() int
}

func newWorld() *World { return &World{disk: storage.Memory(), sinks: map[string]outside{}} }

// Sink is a two-phase sink into the world. The name is for the test: it tells the sinks of a job apart.
func (w *World) Sink[T any](name string) weir.Sink[T] { return (&Sink[T]{w.ledger[T](name)}).Sink() }

// Committed are the records that the sink of that name has made visible, in the order of the commits.
func (w *World) Committed[T any](name string) []T { return (&Sink[T]{w.ledger[T](name)}).Committed() }

// ledger is that of a sink, made at first use.
func (w *World) ledger[T any](name string) *ledger[T] {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sinks[name] == nil {
		l := newLedger[T]()
		l.step = w.step
		w.sinks[name] = l
	}
	l, is := w.sinks[name].(*ledger[T])
	if !is {
		panic(fmt.Sprintf("weirtest: the sink %q has records of another type than %T: it is a %T", name, *new(T), w.sinks[name]))
	}
	return l
}

// step is called by each operation of a sink.
func (w *World) step(op string) { w.gate.sink(op) }

// left is the world that a crash leaves. What was not synced is there or not, as rng says.
func (w *World) left(rng *rand.Rand) *World {
	next := &World{disk: w.disk.CrashClone(rng)}
	next.sinks = w.copies(next.step)
	return next
}

func (w *World) copies(step func(op string)) map[string]outside {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]outside{}
	for name, s := range w.sinks {
		all[name] = s.copied(step)
	}
	return all
}

// records is how many are committed.
func (w *World) records() (n int) {
	for _, s := range w.copies(nil) {
		n += s.size()
	}
	return n
}

// differs tells what is committed otherwise than in another world, by sink; excess: some of it is too much, which no further life repairs.
func (w *World) differs(want *World) (wrong []string, excess bool) {
	got, wanted := w.copies(nil), want.copies(nil)
	all := maps.Clone(wanted)
	maps.Copy(all, got)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var lines []string
		var more bool
		switch {
		case got[name] == nil:
			lines = []string{"it was never made"}
		case wanted[name] == nil:
			lines, more = []string{"a run without crashes does not make it"}, true
		default:
			lines, more = got[name].compared(wanted[name])
		}
		if len(lines) > 0 {
			wrong = append(wrong, fmt.Sprintf("sink %q:\n%s", name, list(lines)))
		}
		excess = excess || more
	}
	return wrong, excess
}

func (l *ledger[T]) copied(step func(op string)) outside {
	c := l.clone()
	c.step = step
	return c
}

func (l *ledger[T]) size() int { return len(l.read(committed)) }

func (l *ledger[T]) compared(want outside) (wrong []string, excess bool) {
	other, is := want.(*ledger[T])
	if !is {
		return []string{fmt.Sprintf("it has records of %T, and in another run of another type", *new(T))}, true
	}
	got, wanted := l.read(committed), other.read(committed)
	return differences(got, wanted), hasExcess(got, wanted)
}
