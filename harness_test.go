package weir_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	. "github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/cluster"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// notes is what happened, in order, for functions of a job and the test around it to share.
type notes struct {
	mu    sync.Mutex
	lines []string // protected by mu
}

func (n *notes) add(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}

// take is everything since the last take, sorted where several subtasks write.
func (n *notes) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	lines := n.lines
	n.lines = nil
	return lines
}

func (n *notes) takeSorted() []string {
	lines := n.take()
	slices.Sort(lines)
	return lines
}

// lab is where the jobs of one test run, one after the other: a disk in memory, a log, and a clock that the test sets. All
// of it is in a synctest bubble, so that what takes time takes none, and settle waits until nothing moves.
type lab struct {
	*testing.T
	disk  storage.FS
	born  time.Time
	log   notes
	clock func() int64 // of processing time; nil: the bubble's
	tune  func(*cluster.Job)
	jobs  []*running
}

func inLab(t *testing.T, test func(l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &lab{T: t, disk: storage.Memory(), born: time.Now()}
		defer l.close()
		test(l)
	})
}

// close ends the jobs that still run.
func (l *lab) close() {
	for _, r := range l.jobs {
		r.cancel()
		<-r.ended
	}
}

// env is an environment with checkpoints on the lab's disk that are taken when the test asks for them.
func (l *lab) env(parallelism int) *Env {
	env := NewTestEnv().Parallelism(parallelism)
	c := env.EnableCheckpointing(24*time.Hour, ExactlyOnce)
	c.Storage, c.Savepoints = "/checkpoints", "/savepoints"
	return env
}

// resumed is an environment that goes on from a checkpoint or savepoint.
func (l *lab) resumed(parallelism int, from string) *Env {
	return l.env(parallelism).Set("execution.state-recovery.path", from)
}

// Handle implements slog.Handler: warnings and errors are kept.
func (l *lab) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += fmt.Sprintf(" %s=%v", a.Key, a.Value); return true })
	l.log.add("%v %s", r.Level, line)
	return nil
}
func (l *lab) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l *lab) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *lab) WithGroup(string) slog.Handler                    { return l }

// warnings are the warnings and errors since the last call.
func (l *lab) warnings() (all []string) {
	for _, line := range l.log.take() {
		if !strings.HasPrefix(line, "INFO") {
			all = append(all, line)
		}
	}
	return all
}

// running is a job that runs in a lab.
type running struct {
	*lab
	handle *cluster.Handle
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // how it ended
}

// start runs the job until it has settled.
func (l *lab) start(env *Env) *running {
	l.Helper()
	r := &running{lab: l, ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	ctx = cluster.WithTuning(ctx, func(j *cluster.Job) {
		j.FS, j.Log = l.disk, slog.New(l)
		j.Started = func(h *cluster.Handle) { r.handle = h }
		j.Exit = func(message string) { panic(message) }
		j.Tune = func(o *task.Options) { o.Clock = l.clock }
		if l.tune != nil {
			l.tune(j)
		}
	})
	go func() {
		r.err = env.Execute(ctx, "lab")
		close(r.ended)
	}()
	l.jobs = append(l.jobs, r)
	r.settle()
	return r
}

// settle waits until nothing of the job moves, but for clocks.
func (r *running) settle() { synctest.Wait() }

// pass lets time pass until what is due has happened.
func (r *running) pass(d time.Duration) {
	pass(d)
	r.settle()
}

// pass lets the bubble's clock go on: it is how user code is slow, and how a test waits for a clock.
func pass(d time.Duration) { time.Sleep(d) }

// finish waits for the job's end, which must be FINISHED.
func (r *running) finish() {
	r.Helper()
	if <-r.ended; r.err != nil {
		r.Fatal(r.err)
	}
}

// kill ends the job without a word: as a process that dies, but for its memory.
func (r *running) kill() {
	r.Helper()
	r.cancel()
	<-r.ended
}

// checkpoint takes a checkpoint.
func (r *running) checkpoint() base.CheckpointID {
	r.Helper()
	a, err := r.handle.TriggerCheckpoint(r.Context(), false)
	if err != nil {
		r.Fatal(err)
	}
	r.settle()
	return a.ID
}

// savepoint takes a savepoint, and where the kind says so stops the job by it.
func (r *running) savepoint(kind checkpoint.Kind) string {
	r.Helper()
	a, err := r.handle.TriggerSavepoint(r.Context(), jobmaster.Savepoint{Kind: kind})
	if err != nil {
		r.Fatal(err)
	}
	if kind.IsSynchronous() {
		r.finish()
	}
	r.settle()
	return a.Location
}

// fails runs a job that must not run, or must FAIL; the error has all of want in it.
func (l *lab) fails(env *Env, want ...string) string {
	l.Helper()
	r := l.start(env)
	<-r.ended
	return l.mustSay(r.err, want...)
}

func (l *lab) mustSay(err error, want ...string) string {
	l.Helper()
	if err == nil {
		l.Fatalf("no error; want %q", want)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			l.Errorf("error: %v\nhas no %q", err, w)
		}
	}
	return err.Error()
}

// expect compares what was noted.
func expect(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// tape is a source that a test records while the job runs. It has lanes, of which each is read from where its split stands.
type tape[T any] struct {
	endless bool

	mu    sync.Mutex
	lanes [][]T // protected by mu
	over  bool  // protected by mu
	wake  []func()
}

func newTape[T any](lanes int) *tape[T] { return &tape[T]{lanes: make([][]T, lanes)} }

// write appends to a lane.
func (s *tape[T]) write(lane int, vs ...T) {
	s.mu.Lock()
	s.lanes[lane] = append(s.lanes[lane], vs...)
	s.mu.Unlock()
	s.ring()
}

// end says that nothing more will be written.
func (s *tape[T]) end() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.ring()
}

func (s *tape[T]) ring() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.wake {
		w()
	}
}

// Strip is the split of a tape: a lane, and how much of it was read. Where is a slice so that splits are not flat.
type Strip struct {
	Lane  int
	Where []int
}

func (s Strip) SplitID() string { return fmt.Sprint(s.Lane) }

func (s *tape[T]) Bounded() bool { return !s.endless }

func (s *tape[T]) Enumerator(ctx EnumeratorContext[Strip], state []byte) (Enumerator[Strip], error) {
	e := &tapeEnumerator{ctx: ctx}
	if state != nil {
		return e, json.Unmarshal(state, &e.pending)
	}
	for i := range s.lanes {
		e.pending = append(e.pending, Strip{Lane: i, Where: []int{0}})
	}
	return e, nil
}

// tapeEnumerator deals the strips.
type tapeEnumerator struct {
	ctx     EnumeratorContext[Strip]
	pending []Strip
}

func (e *tapeEnumerator) Start() error { return nil }
func (e *tapeEnumerator) Added(subtask int) error {
	e.pending = slices.DeleteFunc(e.pending, func(s Strip) bool {
		if s.Lane%e.ctx.Parallelism() != subtask {
			return false
		}
		e.ctx.Assign(subtask, s)
		return true
	})
	e.ctx.NoMoreSplits(subtask)
	return nil
}
func (e *tapeEnumerator) SplitRequested(int) error { return nil }
func (e *tapeEnumerator) SplitsReturned(_ int, splits []Strip) error {
	e.pending = append(e.pending, splits...)
	return nil
}
func (e *tapeEnumerator) Snapshot(int64) ([]byte, error) { return json.Marshal(e.pending) }
func (e *tapeEnumerator) Close() error                   { return nil }

func (s *tape[T]) Reader(ctx ReaderContext) (Reader[T, Strip], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = append(s.wake, ctx.Wake)
	return &tapeReader[T]{tape: s}, nil
}

// tapeReader reads strips. It changes them in place, and on Close spoils them: neither may reach a checkpoint.
type tapeReader[T any] struct {
	tape   *tape[T]
	strips []Strip
	last   bool // no strip will be added
}

func (r *tapeReader[T]) AddSplits(splits []Strip) error {
	r.strips = append(r.strips, splits...)
	return nil
}
func (r *tapeReader[T]) NoMoreSplits() { r.last = true }

func (r *tapeReader[T]) Poll(_ context.Context, most int, out Out[T]) (Status, error) {
	r.tape.mu.Lock()
	defer r.tape.mu.Unlock()
	n, left := 0, 0
	for _, s := range r.strips {
		for ; n < most && s.Where[0] < len(r.tape.lanes[s.Lane]); n++ {
			out.Emit(r.tape.lanes[s.Lane][s.Where[0]])
			s.Where[0]++
		}
		left += len(r.tape.lanes[s.Lane]) - s.Where[0]
	}
	switch {
	case left > 0:
		return More, nil
	case r.tape.over && r.last:
		return Ended, nil
	}
	return Waiting, nil
}

func (r *tapeReader[T]) Snapshot(int64) ([]Strip, error) { return r.strips, nil }

func (r *tapeReader[T]) Close() error {
	for _, s := range r.strips {
		s.Where[0] = 0
	}
	return nil
}

// numbers are 1 to n.
func numbers(n int) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = int64(i + 1)
	}
	return all
}

// note is a sink that notes every record at once.
func note[T any](n *notes) Sink[T] { return noteSink[T]{n} }

type noteSink[T any] struct{ n *notes }

func (s noteSink[T]) Writer(WriterContext) (Writer[T], error) { return s, nil }
func (s noteSink[T]) Write(v T, _ time.Time) error            { s.n.add("%v", v); return nil }
func (s noteSink[T]) Flush(bool) error                        { return nil }
func (s noteSink[T]) Close() error                            { return nil }
