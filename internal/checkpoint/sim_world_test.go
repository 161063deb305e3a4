package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/base"
)

// The simulation is one job of any shape (sim_topology_test.go) whose machines are the real ones and whose everything else is
// slices and one random number generator. For example:
//
//	splits source --hash--> count --pointwise--> relay --rebalance--> sink
//	rules source --broadcast--^                   |
//	                                              '------hash------> sink
//
// A pick takes one thing at random and does it: a task takes an item from a channel or emits one, a channel carries an item
// from its sender's queue to its receiver's, a message arrives, an I/O is answered, the clock jumps, something fails, a user
// wants something. The checkers (sim_check_test.go) look after every step of a machine, at every checkpoint and at the end.

// world is the whole simulation of one job, over all its failovers, masters and savepoints, until its results are complete.
type world struct {
	seed    uint64
	rng     *rand.Rand
	now     Time
	picks   int // how often something was tried
	steps   int // how often something was done
	calm    bool
	verbose bool
	fault   fault
	marks   marks
	tally   tally

	// The job.
	cfg        Config
	topo       *topology
	union      int // the node with union state; -1: none
	splits     int // how many a source has,
	lengths    []int
	ruleCount  int
	slow       int // this task works once in
	slowness   int // so many times
	parallel   []int
	graph      Graph
	unassigned [][]int // the enumerators' states, by node
	outbox     []CoordinatorEvent
	doneSplits [][]int // of sources that finished before the restore, by node

	// What runs.
	master      *Coordinator
	deadline    Time
	inbox       []CoordinatorEvent // behind the step that is being performed
	performing  bool
	questions   []io
	up          []CoordinatorEvent // messages of tasks
	tasks       []*simTask
	channels    []*simChannel
	lastAttempt base.Attempt
	down        bool // fails over: tasks die one by one, then it waits for Restore
	dying       []*simTask
	deathRate   int  // one in so many picks
	failing     bool // a failover comes with the end of this step
	stopped     bool // a person has to start it again
	finished    bool // the results are complete
	requests    map[Request]bool

	disk disk
	sink committed
}

// tally sums up what a simulation did.
type tally struct {
	runs, picks, steps, machineSteps           int
	checkpoints, savepoints, restores, masters int
	aborts, unaligned, resumes, rescales       int
}

func (t *tally) add(o tally) {
	t.runs += o.runs
	t.picks += o.picks
	t.steps += o.steps
	t.machineSteps += o.machineSteps
	t.checkpoints += o.checkpoints
	t.savepoints += o.savepoints
	t.restores += o.restores
	t.masters += o.masters
	t.aborts += o.aborts
	t.unaligned += o.unaligned
	t.resumes += o.resumes
	t.rescales += o.rescales
}

func (t *tally) String() string {
	return fmt.Sprintf("%d jobs, %d steps (%d of the machines), %d checkpoints (%d aborted), %d savepoints, %d unaligned snapshots, "+
		"%d restores (%d from savepoints, %d at another parallelism), %d masters",
		t.runs, t.steps, t.machineSteps, t.checkpoints, t.aborts, t.savepoints, t.unaligned, t.restores, t.resumes, t.rescales, t.masters)
}

const ms = time.Millisecond

func newWorld(seed uint64, f fault, m marks) *world {
	r := rand.New(rand.NewPCG(seed, 7))
	w := &world{
		seed: seed, rng: r, fault: f, marks: m,
		cfg:       randomConfig(r),
		topo:      randomTopology(r),
		union:     -1,
		splits:    1 + r.IntN(5),
		ruleCount: 5 + r.IntN(100),
		slow:      r.IntN(handlersMax),
		slowness:  [...]int{30, 300}[r.IntN(2)],
		requests:  map[Request]bool{},
	}
	if f == endedBetween || f == earlyNotPassedOn {
		w.cfg.AtLeastOnce, w.cfg.Unaligned, w.cfg.AlignedTimeout = true, false, 0
	}
	if r.IntN(7) == 0 {
		w.union = r.IntN(len(w.topo.nodes))
	}
	for range w.topo.nodes { // one of two sources may have few, and finish long before the other
		w.lengths = append(w.lengths, 10+r.IntN([...]int{60, 300}[r.IntN(2)]))
	}
	w.disk.init()
	w.sink.init()
	w.startMaster()
	return w
}

func randomConfig(r *rand.Rand) Config {
	cfg := Config{
		Interval: 20 * ms, Timeout: 200 * ms, FirstDelay: time.Duration(r.IntN(20)) * ms,
		TolerableFailures: -1, Retained: 1 + r.IntN(2), Retention: Retention(r.IntN(3)), FinalRetry: 10 * ms, Hooks: r.IntN(2),
	}
	switch r.IntN(7) {
	case 0:
		cfg.MaxConcurrent = 1 + r.IntN(3)
	case 1:
		cfg.MinPause = 5 * ms
	case 2:
		cfg.Unaligned = true
	case 3, 4:
		cfg.Unaligned, cfg.AlignedTimeout = true, time.Duration(1+r.IntN(10))*ms
	case 5, 6:
		cfg.AtLeastOnce, cfg.MaxConcurrent = true, 1+r.IntN(3)
	}
	switch r.IntN(6) {
	case 0:
		cfg.BacklogInterval = -1
	case 1:
		cfg.BacklogInterval = 60 * ms
	case 2:
		cfg.TolerableFailures = r.IntN(3)
	}
	return cfg
}

// violation is what a checker panics with.
type violation string

func (w *world) failf(format string, args ...any) { panic(violation(fmt.Sprintf(format, args...))) }

func (w *world) logf(format string, args ...any) {
	fmt.Printf("%9.3fms %s\n", float64(w.now)/1e6, fmt.Sprintf(format, args...))
}

func (w *world) oneIn(n int) bool { return w.rng.IntN(n) == 0 }

// troubled: something bad happens now, once in n times while it is not calm.
func (w *world) troubled(n int) bool { return !w.calm && w.oneIn(n) }

// pick does one thing.
func (w *world) pick() {
	r := w.rng
	w.picks++
	w.now += Time(r.IntN(w.pace()))
	if len(w.dying) > 0 && w.oneIn(w.deathRate) {
		w.killNext()
		w.steps++
	} else if w.chosen(r.IntN(100)) {
		w.steps++
	}
	w.afterwards()
}

// chosen does the thing that a number below 100 stands for; false: there was nothing to do.
func (w *world) chosen(k int) bool {
	switch {
	case k < 45:
		return len(w.tasks) > 0 && w.work(w.anyTask())
	case k < 75:
		return len(w.channels) > 0 && w.carry(w.channels[w.rng.IntN(len(w.channels))])
	case k < 82:
		return len(w.tasks) > 0 && w.deliver(w.anyTask())
	case k < 86:
		return w.deliverUp()
	case k < 90:
		return w.answer()
	case k < 94:
		return len(w.tasks) > 0 && w.upload(w.anyTask())
	case k < 96:
		return w.enumerate()
	case k < 98:
		return w.passOutbox()
	case k < 99:
		w.now += Time(w.rng.IntN(150 * w.pace()))
		return true
	default:
		return w.meddle()
	}
}

// pace is how far the clock goes in a pick, in nanoseconds: each task is as fast in a large job as in a small one.
func (w *world) pace() int { return 80_000 / max(4, len(w.tasks)) }

func (w *world) anyTask() *simTask { return w.tasks[w.rng.IntN(len(w.tasks))] }

// afterwards lets happen what follows by itself: alarms, failovers, the job's end.
func (w *world) afterwards() {
	const heartbeat = 2000
	if w.picks%heartbeat == 0 {
		for _, t := range w.tasks {
			w.failing = w.failing || t.gap && !t.done
		}
	}
	if w.deadline <= w.now {
		w.tell(TimePassed{})
		if w.deadline <= w.now {
			w.failf("the master's timer runs hot: %v", w.master.Status())
		}
	}
	for _, t := range w.tasks {
		if t.deadline <= w.now && t.lives() {
			w.tellTask(t, AlarmRang{})
			if t.deadline <= w.now {
				w.failf("the timer of task %d runs hot", t.exec.Task)
			}
		}
	}
	if w.failing && !w.stopped {
		w.failOver()
	}
	w.failing = false
	switch {
	case w.stopped:
		w.startMaster()
	case !w.allDone():
	case w.master.terminal != nil:
		w.startMaster() // a person resumes from the savepoint
	default:
		w.finish()
	}
}

func (w *world) allDone() bool {
	for _, t := range w.tasks {
		if !t.done {
			return false
		}
	}
	return len(w.tasks) > 0 && !w.down
}

// meddle is a user, or a failure.
func (w *world) meddle() bool {
	r := w.rng
	switch {
	case w.calm:
		return false
	case len(w.tasks) > 0 && (r.IntN(25) == 0 || w.ending() && r.IntN(8) == 0):
		w.failOver()
	case !w.allDone() && (r.IntN(50) == 0 || w.sealing() && r.IntN(10) == 0): // the worst moment is not rare
		w.crashMaster()
	case r.IntN(60) == 0:
		return w.startFromSnapshot()
	case r.IntN(8) == 0:
		w.request()
	case r.IntN(20) == 0:
		w.tell(BacklogChanged{Vertex: 0, Backlog: w.oneIn(2)})
	default:
		return false
	}
	return true
}

// ending: some task is at its end, and some is not.
func (w *world) ending() bool {
	ended := 0
	for _, t := range w.tasks {
		ended += boolInt(t.ended)
	}
	return ended > 0 && ended < len(w.tasks)
}

// sealing: metadata is being published.
func (w *world) sealing() bool {
	return slices.ContainsFunc(w.questions, func(q io) bool { _, ok := q.action.(WriteMetadata); return ok })
}

// request is what a user wants.
func (w *world) request() {
	e := Requested{Request: Request(w.picks), Kind: Savepoint, Format: Native}
	switch k := w.rng.IntN(20); {
	case slices.ContainsFunc(w.tasks, func(t *simTask) bool { return t.done }):
		e.Kind = Kind(w.rng.IntN(2)) * Savepoint // the end is near: what would come next?
	case k < 5:
		e.Kind, e.StopScheduler = Suspend, true
	case k < 6:
		e.Kind, e.StopScheduler = Drain, true
	case k < 8:
		e.Kind = Checkpoint
	case k < 9:
		e.Kind = FullCheckpoint
	case k < 10:
		e.StopScheduler = true // cancel-with-savepoint, and then it is not cancelled
	}
	w.requests[e.Request] = true
	w.tell(e)
}

// finish ends a job all of whose tasks have finished, and compares its results with the reference.
func (w *world) finish() {
	w.tell(Closed{JobFinished})
	for len(w.questions) > 0 || len(w.outbox) > 0 {
		w.passOutbox()
		w.answer()
	}
	w.checkClosed()
	w.checkResults()
	w.finished = true
}

// run simulates one job to its end.
func (w *world) run() (err error) {
	defer func() {
		r := recover()
		if v, ok := r.(violation); ok {
			err = fmt.Errorf("seed %d, pick %d: %s [%v, %v]", w.seed, w.picks, string(v), w.topo, w.parallel)
		} else if r != nil {
			panic(fmt.Sprintf("seed %d, pick %d: %v", w.seed, w.picks, r))
		}
		w.tally.runs, w.tally.picks, w.tally.steps = 1, w.picks, w.steps
	}()
	const stuckAfter = 500_000
	calmAfter := 20_000 + w.rng.IntN(40_000)
	for !w.finished {
		w.pick()
		w.calm = w.picks > calmAfter
		if w.picks > stuckAfter {
			w.failf("the job does not finish: %+v", w.master.Status())
		}
	}
	return nil
}
