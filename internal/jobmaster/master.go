package jobmaster

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/fit"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
	"github.com/weirstream/weir/internal/stats"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/task"
	"github.com/weirstream/weir/internal/worker"
)

// Options are what a job's master runs with.
type Options struct {
	ID    base.JobID
	Graph *graph.Job
	// Machine configures the job's life. New sets its Run and the number of its hooks.
	Machine job.Config
	// Store keeps the job's checkpoints.
	Store storage.Checkpoints
	// InlineMax is as in storage.WriterOptions.
	InlineMax int
	// Recovered are the completed checkpoints that the job goes on from, ascending by id; the last one is restored.
	Recovered []Point
	// AllowNonRestored lets state go that no operator takes.
	AllowNonRestored bool
	// Hooks take part in checkpoints.
	Hooks []Hook
	// Task has the options of all tasks.
	Task task.Options
	// Worker hosts the tasks.
	Worker Worker
	// Carry brings messages to the worker; nil: worker.Direct.
	Carry worker.Carrier
	// BeatEvery is the interval of beats to the worker; 0: none are sent.
	BeatEvery time.Duration
	// CancelTimeout is how long a call of an operator coordinator or a hook may take to return after its context is done;
	// 0: for ever.
	CancelTimeout time.Duration
	// History is how many checkpoints are remembered one by one; 0: 10.
	History int
	// Exit ends the process, of which the message tells why. It may return in tests.
	Exit func(message string)
	// Log hears of everything that people should; nil: slog.Default().
	Log *slog.Logger
}

// Worker is what the master needs of a worker.Worker.
type Worker interface {
	Deploy(specs []task.Spec)
	Receive(m worker.Message)
}

// Point is a checkpoint that tasks can be restored from.
type Point struct {
	Metadata *snapshot.Metadata
	Location string
	// Keep: the files are not the job's to delete.
	Keep bool
}

// Master is the master of one job.
type Master struct {
	options Options
	program fit.Program
	log     *slog.Logger
	box     *inbox[func()]
	start   time.Time // where the machine's clock begins
	ctx     context.Context
	stop    context.CancelFunc
	others  sync.WaitGroup // every goroutine but the actor's
	done    chan struct{}

	// Below, only the actor's goroutine.
	machine   *job.Machine
	links     map[base.Task]*link
	runners   []*runner // by vertex; nil: it has no operator coordinator
	points    map[base.CheckpointID]Point
	discarded places
	requests  map[checkpoint.Request]*request
	asked     checkpoint.Request // the last one
	stats     stats.Checkpoints
	questions map[checkpoint.Token]question
	lives     lives
	unswept   bool // orphans may lie about
	resets    map[job.Token]*reset
	end       *job.End

	last Status // after done
}

// New is the master of a job that has not begun. It refuses a restore point that the job cannot be restored from.
func New(o Options) (*Master, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Carry == nil {
		o.Carry = worker.Direct
	}
	m := &Master{options: o, program: Program(o.Graph, o.Hooks), log: o.Log.With("job", string(o.ID)), box: newInbox[func()](), start: time.Now(), done: make(chan struct{}), unswept: true,
		links: map[base.Task]*link{}, runners: make([]*runner, len(o.Graph.Vertices)), points: map[base.CheckpointID]Point{},
		lives:    newLives(o.Graph.Subtasks()),
		requests: map[checkpoint.Request]*request{}, questions: map[checkpoint.Token]question{},
		stats: stats.Checkpoints{Kept: o.History}}
	if err := checkProviders(o.Graph); err != nil {
		return nil, err
	}
	m.ctx, m.stop = context.WithCancel(context.Background())
	recovered, err := m.takeOver()
	if err != nil {
		return nil, err
	}
	cfg := o.Machine
	cfg.Run, cfg.Checkpoints.Hooks = o.Store.Run(), len(o.Hooks)
	if m.machine, err = job.NewMachine(cfg, o.Graph, recovered); err != nil {
		return nil, err
	}
	return m, nil
}

// checkProviders refuses sources whose coordinators could not be made.
func checkProviders(g *graph.Job) error {
	for _, v := range g.Vertices {
		c := v.Head().Coordinator
		if _, ok := c.(CoordinatorProvider); v.IsSource() && c != nil && !ok {
			return fmt.Errorf("jobmaster: source %s: %T is no CoordinatorProvider", v.Head().Label(), c)
		}
	}
	return nil
}

// takeOver takes over the restore points.
func (m *Master) takeOver() (checkpoint.Recovered, error) {
	r := checkpoint.Recovered{LastID: m.options.Store.LargestID()}
	for i, p := range m.options.Recovered {
		if i == len(m.options.Recovered)-1 {
			if err := m.restorable(p); err != nil {
				return r, err
			}
		}
		p.Metadata = m.program.Adopt(p.Metadata)
		m.points[p.Metadata.ID] = p
		c := completedOf(p)
		c.Apart = m.isApart(p)
		r.Completed = append(r.Completed, c)
	}
	return r, nil
}

// Start begins the job. It ends by itself, or by Cancel; Done says when.
func (m *Master) Start() {
	m.post(func() { m.step(job.Started{}) })
	go m.run()
}

// Done is closed when the job has ended and nothing of its master runs any more.
func (m *Master) Done() <-chan struct{} { return m.done }

// End is how the job ended; only after Done.
func (m *Master) End() job.End { return *m.end }

// run is the actor's goroutine.
func (m *Master) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	beats, stopBeats := m.beats()
	defer stopBeats()
	for m.end == nil {
		m.arm(timer)
		select {
		case <-m.box.bell:
			m.turn()
		case <-timer.C:
			m.step(job.TimePassed{})
		case <-beats:
			m.beat()
		}
	}
	m.finish()
}

// turn does everything that is in the inbox.
func (m *Master) turn() {
	for _, do := range m.box.take() {
		do()
		if m.end != nil {
			return
		}
	}
}

// arm sets the one timer to the machine's deadline.
func (m *Master) arm(timer *time.Timer) {
	at, ok := m.machine.Deadline()
	if !ok {
		timer.Stop()
		return
	}
	timer.Reset(at.Sub(m.now()))
}

func (m *Master) now() checkpoint.Time { return checkpoint.Time(time.Since(m.start)) }

func (m *Master) beats() (<-chan time.Time, func()) {
	if m.options.BeatEvery <= 0 {
		return nil, func() {}
	}
	t := time.NewTicker(m.options.BeatEvery)
	return t.C, t.Stop
}

// finish ends everything else, writes down how the job ended, and lets go who still waits.
func (m *Master) finish() {
	m.stop()
	for _, r := range m.runners {
		if r != nil {
			r.stop()
		}
	}
	m.settle()
	for _, r := range m.requests {
		r.answer <- Answer{Err: ErrEnded}
	}
	m.last = m.status()
	close(m.done)
}

// settle waits for everything that is under way, and for what its answers begin: a location that was created too late is
// deleted again.
func (m *Master) settle() {
	m.others.Wait()
	for {
		late := m.box.take()
		if len(late) == 0 {
			break
		}
		for _, do := range late {
			do()
		}
		m.others.Wait()
	}
	m.box.close()
}

// post has do done on the actor's goroutine. Any goroutine may call it; after the end it does nothing.
func (m *Master) post(do func()) { m.box.post(do) }

// step gives the machine an event, and performs what it wants done, in order. What performing raises is posted, never
// stepped: it comes behind.
func (m *Master) step(e job.Event) {
	m.observe(e)
	for _, a := range m.machine.Step(m.now(), e) {
		m.perform(a)
	}
}

// guard is the one place where a panic of user code becomes an error.
func guard(call func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicked(r)
		}
	}()
	return call()
}

// watch ends the process where user code whose context is done does not return in time; nil: it may take for ever.
func (m *Master) watch(done <-chan struct{}, who string) *time.Timer {
	after := m.options.CancelTimeout
	if after <= 0 {
		return nil
	}
	return time.AfterFunc(after, func() {
		select {
		case <-done:
		default:
			m.options.Exit(fmt.Sprintf("%s did not return %v after its context was done (task.cancellation.timeout). Go cannot interrupt "+
				"code, so the process ends.", who, after))
		}
	})
}

// permanent is true of errors that no restart can repair.
func permanent(err error) bool {
	var marked interface{ NonRecoverable() bool }
	return errors.Is(err, storage.ErrDamaged) || errors.Is(err, state.ErrCorrupt) || errors.As(err, &marked) && marked.NonRecoverable()
}

// triggerError marks an I/O error of an enumerator or a hook as what it is, so that it is counted among the checkpoint's failures.
func triggerError(err error) error {
	var errno syscall.Errno
	var path *iofs.PathError
	var connection *net.OpError
	if errors.As(err, &errno) || errors.As(err, &path) || errors.As(err, &connection) {
		return &checkpoint.DeclineError{Reason: checkpoint.IOFailure, Err: err}
	}
	return err
}
