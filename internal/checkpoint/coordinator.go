package checkpoint

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/base"
)

// Coordinator takes the checkpoints and savepoints of one job. It is a machine: Step takes one event and returns what is to
// be done; doc.go has the duties of whoever drives it.
//
// A checkpoint's life:
//
//	request --queue--> locating --> operators --> hooks --> triggered --> writing --> storing --> completed
//	           |           |            |           |           |         \________________/         |
//	        refused        +------------+-----------+-----------+            sealed: only the        retention
//	                              aborted: timeout, decline, ...             answers decide
//
// Flink does this with a lock, a timer thread, an I/O thread pool and a dozen callbacks that check, each on its own, what
// has changed meanwhile. Here every event changes the state first, and then one function, settle, does whatever time and
// the new state allow: expire, activate, tick, start, restore, close. No event needs to know what waits for it.
//
// The naive way to finish a checkpoint is to abort it on whatever arrives until the metadata's answer does. But
// WriteMetadata is done by somebody else: while a failover, a timeout or a shutdown is handled here, the metadata may
// become visible there. Aborted anyway, the checkpoint would be published after its files were deleted; or the job would go
// on from the one before, while a restart finds the newer. So writing and storing are past the point of no return: nothing
// but the answer ends them, and RestoreAsked waits for it. What was published but could not be stored is withdrawn before
// anything goes on without it.
type Coordinator struct {
	cfg   Config
	graph Graph
	now   Time

	// The job and its tasks.
	tasks      []task
	jobRunning bool
	running    int   // tasks that are running
	notRunning int   // tasks that are neither running nor finished
	toEnd      int   // tasks that are not at the end of their data
	toEndOf    []int // the same by vertex
	final      finalState
	finalAt    Time

	// When periodic checkpoints come.
	scheduling bool
	stops      int // requests that hold the scheduler
	next       Time
	firstDelay time.Duration
	backlog    map[int]bool // vertices whose source works one off

	// Checkpoints.
	lastID     base.CheckpointID
	queue      queue
	triggering *pending // in its trigger phase: one at a time
	pending    []*pending
	completed  []*Completed // ascending by id
	terminal   *Completed   // the savepoint by which the job stops
	forceFull  bool         // nothing of what was restored may be shared
	lastDone   Time
	everDone   bool
	failures   failures
	aborted    abortedRing

	// I/O in flight.
	questions map[Token]question
	lastToken Token
	cleaning  int // unanswered Discards

	restoring bool
	closing   bool
	end       JobEnd
	closed    bool

	out []CoordinatorAction
}

// NewCoordinator is the coordinator of a job none of whose tasks is deployed yet.
func NewCoordinator(cfg Config, graph Graph, recovered Recovered) (*Coordinator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := graph.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	c := &Coordinator{
		cfg:        cfg,
		graph:      graph,
		toEndOf:    make([]int, len(graph.Vertices)),
		finalAt:    Never,
		next:       Never,
		firstDelay: cfg.FirstDelay,
		backlog:    map[int]bool{},
		lastID:     recovered.LastID,
		completed:  slices.Clone(recovered.Completed),
		questions:  map[Token]question{},
	}
	for v := range graph.Vertices {
		for range graph.Vertices[v].Parallelism {
			c.tasks = append(c.tasks, task{attempt: NoExec.Attempt, vertex: v})
			c.count(&c.tasks[len(c.tasks)-1], +1)
		}
	}
	if l := c.latest(); l != nil {
		c.lastID = max(c.lastID, l.ID)
		c.forceFull = l.Keep
	}
	return c, nil
}

// Step takes one event and says what is to be done, in this order. The slice is valid until the next Step.
func (c *Coordinator) Step(now Time, e CoordinatorEvent) []CoordinatorAction {
	clear(c.out)
	c.out = c.out[:0]
	c.now = now
	c.take(e)
	c.settle()
	return c.out
}

// take changes the state by one event.
func (c *Coordinator) take(e CoordinatorEvent) {
	switch e := e.(type) {
	case JobRunning:
		c.jobRunning = true
		c.reviseFinal()
	case JobNotRunning:
		c.jobRunning = false
	case TaskChanged:
		c.taskChanged(e)
	case TaskEnded:
		c.taskEnded(e)
	case BacklogChanged:
		c.backlogChanged(e)
	case Requested:
		c.requested(e)
	case LocationCreated:
		c.locationCreated(e)
	case OperatorSnapped:
		c.operatorSnapped(e)
	case HookSnapped:
		c.hookSnapped(e)
	case OperatorSent:
		c.operatorSent(e)
	case TriggerRefused:
		c.triggerRefused(e)
	case TaskAcked:
		c.taskAcked(e)
	case TaskDeclined:
		c.taskDeclined(e)
	case MetadataWritten:
		c.metadataWritten(e)
	case Stored:
		c.stored(e)
	case Discarded:
		c.discarded(e)
	case RestoreAsked:
		c.restoreAsked()
	case Closed:
		c.close(e)
	case TimePassed: // settle looks at the clock
	default:
		panic(fmt.Sprintf("checkpoint: unknown event %T", e))
	}
}

// settle does what time and the new state allow.
func (c *Coordinator) settle() {
	c.expire()
	c.activate()
	c.tick()
	c.askFinal()
	for c.startNext() {
	}
	c.discardAll(c.retire())
	c.maybeRestore()
	c.maybeClose()
}

func (c *Coordinator) do(a CoordinatorAction) { c.out = append(c.out, a) }

// Deadline is when TimePassed is due; false: not at all.
func (c *Coordinator) Deadline() (Time, bool) {
	d := min(c.next, c.finalAt)
	for _, p := range c.pending {
		if !p.sealed() {
			d = min(d, p.deadline)
		}
	}
	return d, d != Never
}

// latest is the newest completed checkpoint; nil: there is none.
func (c *Coordinator) latest() *Completed {
	if n := len(c.completed); n > 0 {
		return c.completed[n-1]
	}
	return nil
}

// restoreAsked gives up all that is not sealed: its tasks are gone.
func (c *Coordinator) restoreAsked() {
	if c.closing {
		return
	}
	c.abortAll(FailoverRegion)
	c.final, c.finalAt = finalNone, Never
	c.restoring = true
}

// maybeRestore answers RestoreAsked once it is known what the latest checkpoint is. Plain savepoints are never restored
// from, so they hold nothing up. After the savepoint by which the job stops there is no restore: what it committed would
// come again.
func (c *Coordinator) maybeRestore() {
	if !c.restoring || slices.ContainsFunc(c.pending, (*pending).decidesRestore) {
		return
	}
	c.restoring = false
	if c.terminal != nil {
		c.do(FailJob{Exec: NoExec, Reason: FailoverRegion, Err: stoppingError(c.terminal), Terminal: true})
		return
	}
	c.do(Restore{c.latest()})
}

// stoppingError is Flink's StopWithSavepointStoppingException.
func stoppingError(s *Completed) error {
	return fmt.Errorf("A savepoint has been created at: %s, but the corresponding job failed during stopping. The savepoint is "+
		"consistent, but might have uncommitted transactions. If you want to commit the transaction please restart a job from "+
		"this savepoint.", s.Location)
}

// close begins the end: nothing is started any more.
func (c *Coordinator) close(e Closed) {
	if c.closing {
		return
	}
	c.closing, c.end, c.restoring = true, e.End, false
	c.final, c.finalAt = finalNone, Never
	c.abortAll(Shutdown)
}

// maybeClose ends what close began once nothing is sealed, and deletes what is not to outlive the job.
func (c *Coordinator) maybeClose() {
	if !c.closing || c.closed || len(c.pending) > 0 {
		return
	}
	c.closed = true
	if !c.cfg.Retention.keeps(c.end) {
		c.discardAll(c.completed)
	}
	c.completed = nil
}

// Status is what a Coordinator tells about itself; the slices are the caller's.
type Status struct {
	Scheduling bool
	Queued     int
	Pending    []PendingStatus // ascending by id
	Completed  []*Completed    // retained, ascending by id
	Failures   int             // counted ones in a row
	Cleaning   int             // Discards without an answer
	Restoring  bool            // RestoreAsked waits for an answer of a sealed checkpoint
	Closed     bool            // and with Cleaning 0 there is nothing left to do
}

// PendingStatus is one checkpoint under way.
type PendingStatus struct {
	ID       base.CheckpointID
	Kind     Kind
	Periodic bool
	Sealed   bool
	Tasks    int // how many are to acknowledge
	Acked    int // how many have
}

// Status is a copy that the caller may keep.
func (c *Coordinator) Status() Status {
	s := Status{
		Scheduling: c.scheduling,
		Queued:     len(c.queue),
		Completed:  slices.Clone(c.completed),
		Failures:   c.failures.consecutive,
		Cleaning:   c.cleaning,
		Restoring:  c.restoring,
		Closed:     c.closed,
	}
	for _, p := range c.pending {
		s.Pending = append(s.Pending, PendingStatus{
			ID: p.id, Kind: p.done.Kind, Periodic: p.request.origin == periodic, Sealed: p.sealed(),
			Tasks: p.plan.waits, Acked: p.plan.waits - p.left,
		})
	}
	return s
}
