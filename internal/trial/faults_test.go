package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/worker"
)

// fault is an error or a panic of user code, once, at the Nth time that a place is passed.
type fault struct {
	Where string
	Nth   int
	Panic bool
}

// places are where user code can fail, each with about how often it is passed in a trial.
var places = []struct {
	name  string
	often int
}{
	{"process", 1000}, {"process", 1000}, {"timer", 100}, {"open", 8}, {"completed", 60}, {"end", 4},
	{"source.poll", 500}, {"source.snapshot", 60}, {"source.add", 8}, {"source.completed", 60},
	{"enumerator.new", 3}, {"enumerator.added", 8}, {"enumerator.snapshot", 30},
	{"sink.open", 8}, {"sink.write", 1000}, {"sink.prepare", 60}, {"sink.commit", 40}, {"sink.restore", 8},
}

var errPlanted = errors.New("planted")

// faults are those of one trial; they outlive the processes.
type faults struct {
	// work is what the user's code takes for a record, of those that take time; nil: nothing.
	work func(where string)

	mu     sync.Mutex
	passed map[string]int // protected by mu
	left   []fault        // protected by mu
	struck []fault        // protected by mu
}

func newFaults(all []fault) *faults {
	return &faults{passed: map[string]int{}, left: slices.Clone(all)}
}

// next plants a fault at the next time that a place is passed.
func (f *faults) next(where string, panics bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = append(f.left, fault{Where: where, Nth: f.passed[where] + 1, Panic: panics})
}

// meet passes a place.
func (f *faults) meet(where string) error {
	if f == nil {
		return nil
	}
	if f.work != nil {
		f.work(where)
	}
	f.mu.Lock()
	f.passed[where]++
	n := f.passed[where]
	i := slices.IndexFunc(f.left, func(x fault) bool { return x.Where == where && x.Nth <= n })
	if i < 0 {
		f.mu.Unlock()
		return nil
	}
	x := f.left[i]
	f.left = slices.Delete(f.left, i, i+1)
	f.struck = append(f.struck, x)
	f.mu.Unlock()
	if x.Panic {
		panic(fmt.Sprintf("planted: %+v", x))
	}
	return fmt.Errorf("%w: %+v", errPlanted, x)
}

// shaky is a source whose halves fail.
type shaky[T any, S weir.Split] struct {
	weir.Source[T, S]
	faults *faults
}

func shake[T any, S weir.Split](s weir.Source[T, S], f *faults) shaky[T, S] { return shaky[T, S]{s, f} }

func (s shaky[T, S]) Enumerator(ctx weir.EnumeratorContext[S], state []byte) (weir.Enumerator[S], error) {
	if err := s.faults.meet("enumerator.new"); err != nil {
		return nil, err
	}
	e, err := s.Source.Enumerator(ctx, state)
	return shakyEnumerator[S]{e, s.faults}, err
}

func (s shaky[T, S]) Reader(ctx weir.ReaderContext) (weir.Reader[T, S], error) {
	r, err := s.Source.Reader(ctx)
	return shakyReader[T, S]{r, s.faults}, err
}

type shakyEnumerator[S weir.Split] struct {
	weir.Enumerator[S]
	faults *faults
}

// Added fails at first or at last, so that splits were given out or not.
func (e shakyEnumerator[S]) Added(subtask int) error {
	if err := e.faults.meet("enumerator.added"); err != nil {
		return err
	}
	return errors.Join(e.Enumerator.Added(subtask), e.faults.meet("enumerator.added"))
}

func (e shakyEnumerator[S]) Snapshot(id int64) ([]byte, error) {
	b, err := e.Enumerator.Snapshot(id)
	return b, errors.Join(err, e.faults.meet("enumerator.snapshot"))
}

type shakyReader[T any, S weir.Split] struct {
	weir.Reader[T, S]
	faults *faults
}

func (r shakyReader[T, S]) AddSplits(splits []S) error {
	return errors.Join(r.Reader.AddSplits(splits), r.faults.meet("source.add"))
}

func (r shakyReader[T, S]) Poll(ctx context.Context, most int, out weir.Out[T]) (weir.Status, error) {
	s, err := r.Reader.Poll(ctx, most, out)
	return s, errors.Join(err, r.faults.meet("source.poll"))
}

func (r shakyReader[T, S]) Snapshot(id int64) ([]S, error) {
	s, err := r.Reader.Snapshot(id)
	return s, errors.Join(err, r.faults.meet("source.snapshot"))
}

// CheckpointCompleted implements weir.NotifyingReader.
func (r shakyReader[T, S]) CheckpointCompleted(int64) error { return r.faults.meet("source.completed") }

// messageFaults is a worker.Carrier that loses, doubles and holds back some messages of some types.
type messageFaults struct {
	Types    []string // of bodies; none: all
	PerMille int      // of the messages of those types that are struck
	Most     int      // that are struck in all

	mu  sync.Mutex
	rng *rand.Rand // protected by mu
}

// messageTypes are all bodies that a link carries.
var messageTypes = []string{"Trigger", "Deliver", "Complete", "Abort", "Cancel", "Changed", "Reported", "Asked"}

func (f *messageFaults) carry(m worker.Message, deliver func(worker.Message)) {
	name := strings.TrimPrefix(fmt.Sprintf("%T", m.Body), "worker.")
	f.mu.Lock()
	struck := f.Most > 0 && slices.Contains(messageTypes, name) && (len(f.Types) == 0 || slices.Contains(f.Types, name)) && f.rng.IntN(1000) < f.PerMille
	if struck {
		f.Most--
	}
	how, late := f.rng.IntN(3), time.Duration(f.rng.IntN(200_000))*time.Microsecond
	f.mu.Unlock()
	if !struck {
		deliver(m)
		return
	}
	if how == 0 { // doubled
		deliver(m)
	}
	if how != 1 { // 1: lost
		time.AfterFunc(late, func() { deliver(m) })
	}
}

// storageFault is a fault of the disk.
type storageFault struct {
	Op          storage.Op
	Path        string
	Skip, Count int
	Short       int
	Err         error
}

var storageErrors = []error{syscall.ENOSPC, syscall.EIO, errors.New("503 slow down"), io.ErrClosedPipe}

var storageOps = []storage.Op{storage.OpCreate, storage.OpOpen, storage.OpLink, storage.OpRename, storage.OpRemove, storage.OpMkdir, storage.OpList,
	storage.OpStat, storage.OpSyncDir, storage.OpWrite, storage.OpSync, storage.OpClose, storage.OpRead, ""}

func (s storageFault) rule() *storage.Rule {
	return &storage.Rule{Op: s.Op, Path: s.Path, Skip: s.Skip, Count: s.Count, Short: s.Short, Err: s.Err}
}

// slow is a file system each operation of which takes a random time.
func slow(fs storage.FS, most time.Duration, seed uint64) storage.FS {
	if most == 0 {
		return fs
	}
	pause := pauses(most, seed)
	return storage.Faulty(fs, &storage.Rule{Hook: func(storage.Op, string) { pause() }})
}

// toil makes the work of user code: some calls take a random time, so that queues fill, barriers lag behind each other, and one
// subtask is ahead of another.
func toil(most time.Duration, rng *rand.Rand) func(where string) {
	var mu sync.Mutex
	pause := pauses(most, rng.Uint64())
	return func(string) {
		mu.Lock()
		busy := rng.IntN(8) == 0
		mu.Unlock()
		if busy {
			pause()
		}
	}
}

// pauses makes a function that sleeps for a random time; any goroutine may call it.
func pauses(most time.Duration, seed uint64) func() {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 6))
	return func() {
		mu.Lock()
		d := time.Duration(rng.Int64N(int64(most)))
		mu.Unlock()
		time.Sleep(d) // what the disk or the broker takes, in simulated time
	}
}

// everyStep is a file system that calls a function before each operation.
func everyStep(fs storage.FS, step func()) storage.FS {
	return storage.Faulty(fs, &storage.Rule{Hook: func(storage.Op, string) { step() }})
}

func randOf(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 8)) }
