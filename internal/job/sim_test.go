package job

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/graph"
)

var (
	simRuns = flag.Int("sim.runs", 400, "seeds that TestSimulation runs")
	simSeed = flag.Uint64("sim.seed", 0, "the first of them")
)

// TestSimulation lets a machine with its coordinator live in a world of executions, links and I/O in which everything fails:
// crash storms, lost, doubled and late messages, answers in any order. After each step the world checks what the machine did
// against what is true; then the faults stop, and the job must come to its end.
func TestSimulation(t *testing.T) {
	marks := map[string]int{}
	steps := 0
	for i := range *simRuns {
		seed := *simSeed + uint64(i)
		w := newWorld(seed, marks, noFault)
		if err := w.run(); err != nil {
			t.Fatalf("seed %d, step %d: %v\n%v\nrepeat with: go test ./internal/job -run TestSimulation -sim.runs=1 -sim.seed=%d",
				seed, w.steps, err, w.m.Status(), seed)
		}
		steps += w.steps
	}
	t.Logf("%d jobs, %d steps: all held; %v", *simRuns, steps, marks)
	for _, mark := range []string{"joined", "abandoned reset", "sealed at failure", "restored", "from nothing", "FINISHED", "FAILED", "CANCELED",
		"stopped", "broken link", "region alone"} {
		if marks[mark] == 0 && *simRuns >= 400 {
			t.Errorf("%q never happened: the simulation does not reach it", mark)
		}
	}
}

const (
	simFaults = 3_000  // steps with faults
	simData   = 5_000  // steps after which the data ends
	simEnd    = 60_000 // steps until which the job must have ended
)

// body is one execution as it really is.
type body struct {
	exec  base.Exec
	over  bool
	last  TaskState // where over
	told  bool
	ended bool
	acked base.CheckpointID // its first snapshot after its end
	up    []Event           // on its link to the master
	down  []checkpoint.CoordinatorAction
	lost  bool // the link up broke
}

// world is everything around one machine.
type world struct {
	rng    *rand.Rand
	marks  map[string]int
	bug    fault
	m      *Machine
	graph  *graph.Job
	now    checkpoint.Time
	steps  int
	bodies []*body   // the current one of each task; nil: never deployed
	old    []*body   // those before, which may still say something
	io     []*answer // under way
	late   []Event   // doubles of messages, still on their way
	stored base.CheckpointID

	restarts, deploys int
	underWay          bool            // a restart was announced and has not come to its deployment
	notBefore         checkpoint.Time // its tasks are deployed
	recorded          bool            // the end is on record, or that was tried
	sealed            int             // WriteMetadata and Store without answer
	resetting         bool            // the answer to the newest reset is being taken, and it is a good one
	resetFrom         *checkpoint.Completed
	newest            Token
	terminal          bool // the savepoint by which the job stops is complete
	sync              map[base.CheckpointID]bool
	end               *End
	err               error
	request           checkpoint.Request
	replies           map[checkpoint.Request]int
}

// answer is an I/O under way, or a reset.
type answer struct {
	do   func()
	slow bool
}

func newWorld(seed uint64, marks map[string]int, f fault) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), marks: marks, bug: f, sync: map[base.CheckpointID]bool{}, replies: map[checkpoint.Request]int{}}
	shapes := []string{"a:2 -> b:2", "a:1 -> b:2 | c:2 -> d:1", "a:1 -> b:1 -> c:3 | d:1 -> e:1 | f:2 -> g:2"}
	w.graph = makeGraph(shapes[w.rng.IntN(len(shapes))])
	w.bodies = make([]*body, w.graph.Subtasks())
	strategy := DefaultStrategy()
	if w.rng.IntN(4) == 0 {
		strategy = Strategy{Kind: FixedDelay, Attempts: 4, Delay: time.Duration(w.rng.IntN(3)) * 50 * time.Millisecond}
	}
	var err error
	w.m, err = NewMachine(Config{Name: "sim", Run: 1, Restart: strategy, Random: w.rng.Float64, SavepointDir: "/s",
		Checkpoints: checkpoint.Config{Interval: 200 * time.Millisecond, Timeout: time.Minute, TolerableFailures: w.rng.IntN(4) - 1,
			MaxConcurrent: 1 + w.rng.IntN(2), Retained: 2}}, w.graph, checkpoint.Recovered{})
	if err != nil {
		panic(err)
	}
	return w
}

func (w *world) run() error {
	w.step(Started{})
	for w.end == nil && w.err == nil {
		if w.steps++; w.steps > simEnd {
			return errors.New("the job is stuck")
		}
		if w.steps == simFaults+w.rng.IntN(500) {
			w.ask(checkpoint.Suspend, false)
		}
		w.pick()
	}
	for len(w.io) > 0 && w.err == nil {
		w.answer()
	}
	for r := range w.request {
		if n := w.replies[r+1]; n != 1 && w.err == nil {
			return fmt.Errorf("request %d has %d replies", r+1, n)
		}
	}
	return w.err
}

func (w *world) calm() bool { return w.steps > simFaults }

func (w *world) chance(n int) bool { return w.rng.IntN(n) == 0 }

// pick does one thing at random.
func (w *world) pick() {
	switch n := w.rng.IntN(100); {
	case n < 35:
		w.live(w.bodies[w.rng.IntN(len(w.bodies))])
	case n < 70:
		w.hear()
	case n < 85:
		w.answer()
	case n < 95:
		w.pass()
	case !w.calm():
		w.fault()
	}
}

// pass lets time go on, mostly to the deadline.
func (w *world) pass() {
	if at, ok := w.m.Deadline(); ok && (at.Sub(w.now) < 300*time.Millisecond || w.m.status != Running || !w.calm() && w.chance(30)) {
		w.now = max(w.now, at)
	} else {
		w.now = w.now.Add(time.Duration(w.rng.IntN(50)) * time.Millisecond)
	}
	w.step(TimePassed{})
}

// answer lets one I/O end.
func (w *world) answer() {
	if len(w.io) == 0 {
		return
	}
	i := w.rng.IntN(len(w.io))
	a := w.io[i]
	if a.slow && !w.calm() && w.end == nil && !w.chance(150) {
		return
	}
	w.io = slices.Delete(w.io, i, i+1)
	a.do()
}

// begin begins an I/O; every third one is slow.
func (w *world) begin(do func()) { w.io = append(w.io, &answer{do: do, slow: w.chance(3)}) }

// live lets an execution do something of its own.
func (w *world) live(b *body) {
	if b == nil || b.over {
		return
	}
	if len(b.down) > 0 {
		a := b.down[0]
		b.down = b.down[1:]
		w.obey(b, a)
		return
	}
	switch {
	case b.told && w.chance(8):
		w.finish(b, []TaskState{TaskCanceled, TaskCanceled, TaskFailed, TaskFinished}[w.rng.IntN(4)])
	case !b.told && b.last == TaskInitializing:
		b.last = TaskRunning
		b.say(TaskReported{Exec: b.exec, State: TaskRunning})
	case !b.told && w.steps > simData && !b.ended:
		b.ended = true
		b.say(Relayed{checkpoint.TaskEnded{Exec: b.exec}})
	}
}

// obey takes a message of the coordinator's.
func (w *world) obey(b *body, a checkpoint.CoordinatorAction) {
	switch a := a.(type) {
	case checkpoint.TriggerTasks:
		if w.chance(20) && !w.calm() {
			b.say(Relayed{checkpoint.TaskDeclined{Exec: b.exec, ID: a.Barrier.ID, Reason: checkpoint.AsyncFailure}})
			return
		}
		if b.ended && b.acked == 0 && a.Barrier.Kind == checkpoint.Checkpoint {
			b.acked = a.Barrier.ID
		}
		b.say(Relayed{checkpoint.TaskAcked{Exec: b.exec, ID: a.Barrier.ID, State: "state", Ended: b.ended}})
	case checkpoint.NotifyComplete:
		if w.sync[a.ID] || b.acked > 0 && a.ID >= b.acked {
			w.finish(b, TaskFinished)
		}
	}
}

func (b *body) say(e Event) { b.up = append(b.up, e) }

func (w *world) finish(b *body, s TaskState) {
	b.over, b.last = true, s
	b.say(TaskReported{Exec: b.exec, State: s, Err: errors.New("boom")})
}

// hear brings a message of some execution to the master: perhaps never, perhaps twice, from an old one perhaps late.
func (w *world) hear() {
	if len(w.late) > 0 && w.chance(10) {
		e := w.late[0]
		w.late = w.late[1:]
		w.step(e)
		return
	}
	all := slices.Concat(w.bodies, w.old)
	b := all[w.rng.IntN(len(all))]
	if b == nil || len(b.up) == 0 {
		return
	}
	e := b.up[0]
	b.up = b.up[1:]
	report, isState := e.(TaskReported)
	last := isState && report.State >= TaskFinished
	if !w.calm() && !last && w.chance(60) {
		b.lost = true
		w.marks["broken link"]++
		w.step(LinkBroken{Exec: b.exec, Err: errors.New("lost")})
		return
	}
	if b.lost {
		if last {
			w.step(TaskReported{Exec: b.exec, State: TaskFailed, Err: errors.New("lost")})
		}
		return
	}
	w.step(e)
	if !w.calm() && w.chance(20) {
		w.late = append(w.late, e)
	}
}

// fault makes something go wrong, or a user ask for something.
func (w *world) fault() {
	b := w.bodies[w.rng.IntN(len(w.bodies))]
	switch n := w.rng.IntN(1000); {
	case n < 60, w.sealed > 0 && n < 400: // the worst moment
		if b != nil && !b.over {
			w.finish(b, TaskFailed)
		}
	case n < 100: // a storm
		for _, b := range w.bodies {
			if b != nil && !b.over && w.chance(2) {
				w.finish(b, TaskFailed)
			}
		}
	case n < 115:
		w.step(OperatorFailed{Vertex: 0, Err: errors.New("the enumerator")})
	case n < 300:
		w.ask(checkpoint.Savepoint, w.chance(40))
	case n < 350:
		w.ask(checkpoint.Suspend, false)
	case n < 352:
		w.step(CancelAsked{})
	}
}

func (w *world) ask(k checkpoint.Kind, cancel bool) {
	w.request++
	w.step(SavepointAsked{Request: w.request, Kind: k, Cancel: cancel})
}

// step gives the machine an event and does what it wants done.
func (w *world) step(e Event) {
	if w.end != nil && len(w.io) == 0 || w.err != nil {
		return
	}
	for _, a := range slices.Clone(w.faultyStep(e)) {
		if w.end != nil {
			if r, ok := a.(Relay); !ok || !isCleaning(r.Action) {
				w.fail("%T after the end", a)
			}
		}
		w.perform(a)
	}
	if n := w.m.Status().Restarts; n != w.restarts {
		w.fail("%d restarts, but %d were announced", n, w.restarts)
	}
}

// isCleaning is true of what may still happen when the job has ended.
func isCleaning(a checkpoint.CoordinatorAction) bool {
	switch a.(type) {
	case checkpoint.Discard, checkpoint.Report:
		return true
	}
	return false
}

func (w *world) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

func (w *world) perform(a Action) {
	switch a := a.(type) {
	case CancelTasks:
		for _, x := range a.Tasks {
			if b := w.bodies[x.Task]; b.exec == x {
				b.told = true
			}
		}
	case ResetOperators:
		w.reset(a)
	case RecordEnd:
		w.begin(func() {
			var err error
			if !w.calm() && w.chance(3) {
				err = errors.New("the disk is full")
			}
			w.recorded = true
			w.step(EndRecorded{Err: err})
		})
	case DeployTasks:
		w.deploy(a)
	case Relay:
		w.relay(a.Action)
	case Reply:
		w.replies[a.Request]++
	case ReportRestart:
		w.restarts++
		if w.underWay {
			w.fail("restart %d is announced while the one before is under way", a.Number)
		}
		w.underWay, w.notBefore = true, w.now.Add(a.Delay)
		if w.sealed > 0 {
			w.marks["sealed at failure"]++
		}
	case End:
		w.ends(a)
	}
}

func (w *world) reset(a ResetOperators) {
	id := base.CheckpointID(0)
	if a.From != nil {
		id = a.From.ID
	}
	if id != w.stored {
		w.fail("restore from %d, but %d is the latest that is stored", id, w.stored)
	}
	if w.terminal {
		w.fail("restore although the job has stopped with a savepoint")
	}
	for _, b := range w.bodies {
		if b != nil && b.told && !b.over {
			w.fail("a reset while %v is there", b.exec)
		}
	}
	w.newest = a.Token
	w.begin(func() {
		var err error
		if !w.calm() && w.chance(10) {
			err = errors.New("the enumerator cannot be made")
		}
		before := w.deploys
		w.underWay = w.underWay && (err == nil || a.Token != w.newest) // a reset that fails is a failure of its own
		w.resetting, w.resetFrom = err == nil && a.Token == w.newest, a.From
		w.step(OperatorsReset{Token: a.Token, Err: err})
		if err == nil && w.deploys == before && w.end == nil {
			w.marks["abandoned reset"]++
		}
		w.resetting = false
	})
}

func (w *world) deploy(a DeployTasks) {
	w.deploys++
	w.underWay = false
	if w.now < w.notBefore {
		w.fail("a deployment %v before the delay of its restart is over", w.notBefore.Sub(w.now))
	}
	if w.deploys > w.restarts+1 {
		w.fail("%d deployments, but %d restarts", w.deploys, w.restarts)
	}
	if !w.resetting || w.resetFrom != a.From {
		w.fail("a deployment without its reset")
	}
	if a.From != nil {
		w.marks["restored"]++
	} else if w.deploys > 1 {
		w.marks["from nothing"]++
	}
	if len(a.Tasks) < len(w.bodies) {
		w.marks["region alone"]++
	}
	if n := len(w.m.Status().Failures); w.restarts > 0 && n > w.restarts {
		w.marks["joined"]++
	}
	for _, x := range a.Tasks {
		b := w.bodies[x.Task]
		if b != nil && !b.over {
			w.fail("%v is deployed while %v is there", x, b.exec)
		}
		if b != nil && b.exec.Attempt >= x.Attempt {
			w.fail("%v after %v", x, b.exec)
		}
		if b != nil {
			w.old = append(w.old, b)
		}
		w.bodies[x.Task] = &body{exec: x}
	}
	if len(w.old) > 20 {
		w.old = w.old[len(w.old)-20:]
	}
}

// relay does the coordinator's I/O, with answers in any order.
func (w *world) relay(a checkpoint.CoordinatorAction) {
	later := func(seal int, e func(error) checkpoint.CoordinatorEvent) {
		w.sealed += seal
		w.begin(func() {
			w.sealed -= seal
			var err error
			if !w.calm() && w.chance(30) {
				err = errors.New("the disk")
			}
			w.step(Relayed{e(err)})
		})
	}
	switch a := a.(type) {
	case checkpoint.CreateLocation:
		w.sync[a.ID] = a.Kind.IsSynchronous()
		later(0, func(err error) checkpoint.CoordinatorEvent {
			return checkpoint.LocationCreated{Token: a.Token, Location: "here", Err: err}
		})
	case checkpoint.SnapshotOperator:
		later(0, func(err error) checkpoint.CoordinatorEvent {
			return checkpoint.OperatorSnapped{Token: a.Token, Err: err}
		})
	case checkpoint.WriteMetadata:
		later(1, func(err error) checkpoint.CoordinatorEvent {
			return checkpoint.MetadataWritten{Token: a.Token, Err: err}
		})
	case checkpoint.Store:
		later(1, func(err error) checkpoint.CoordinatorEvent {
			if err == nil {
				w.stored = max(w.stored, a.Completed.ID)
			}
			return checkpoint.Stored{Token: a.Token, Err: err}
		})
	case checkpoint.Discard:
		later(0, func(error) checkpoint.CoordinatorEvent { return checkpoint.Discarded{Token: a.Token} })
	case checkpoint.TriggerTasks: // its barrier reaches every task at once: channels are another simulation's business
		for _, b := range w.bodies {
			if b != nil && !b.over {
				b.down = append(b.down, a)
			}
		}
	case checkpoint.NotifyComplete:
		if w.sync[a.ID] {
			w.terminal = true
			w.marks["stopped"]++
		}
		for _, x := range a.Tasks {
			if b := w.bodies[x.Task]; b.exec == x && !b.over {
				b.down = append(b.down, a)
			}
		}
	}
}

func (w *world) ends(a End) {
	w.end = &a
	w.marks[a.Status.String()]++
	for _, b := range w.bodies {
		switch {
		case b == nil:
		case !b.over:
			w.fail("the job ends while %v runs", b.exec)
		case a.Status == Finished && (b.last != TaskFinished || b.told):
			w.fail("the job is FINISHED, but %v is %v", b.exec, b.last)
		}
	}
	if a.Status != Suspended && !w.recorded {
		w.fail("the job ends %v, and nothing is on record", a.Status)
	}
	if w.sealed > 0 {
		w.fail("the job ends while metadata is being published")
	}
	if w.terminal && a.Savepoint == "" {
		w.fail("the job has stopped with a savepoint, and nobody hears of it")
	}
	if a.Status == Failed && a.Err == nil {
		w.fail("FAILED without a cause")
	}
}
