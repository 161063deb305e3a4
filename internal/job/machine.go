package job

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/graph"
)

// Config is how a job lives.
type Config struct {
	// Name of the job, for messages.
	Name string
	// Run numbers this life of the job; the attempts of its tasks begin with it.
	Run int64
	// Restart is what follows a failure; the zero value is none.
	Restart Strategy
	// Random is a source of random numbers in [0, 1), the driver's; nil: restarts are not jittered.
	Random func() float64
	// SavepointDir is where savepoints go that name no directory; "": each must name one.
	SavepointDir string
	// Checkpoints is the coordinator's configuration.
	Checkpoints checkpoint.Config
}

// Machine decides what happens to a job. Only one goroutine may call its methods.
//
// An event is handled in two steps: the arm of its type changes the state and says what the coordinator must hear; then
// settle lets the coordinator hear it, takes its answers, and does whatever has become possible, until nothing has. So the
// arms never call each other, and every way to a deployment or to the end is one function (advance), not a callback.
type Machine struct {
	config      Config
	graph       *graph.Job
	checkpoints *checkpoint.Coordinator
	regions     [][]base.Task // tasks that fail together, ascending
	regionOf    []int         // by vertex

	tasks    []execution // by base.Task
	alive    []int       // executions that are neither idle nor over, by region
	finished int         // executions that are finished
	status   Status
	restart  *restart // under way; nil: none
	restarts int      // begun, without the first deployment
	history  history
	failures []Failure // the last ones, oldest first
	tokens   Token

	end      *ending                         // decided; nil: the job goes on
	requests map[checkpoint.Request]askedFor // savepoints whose answer is more than handed on
	replies  []Reply                         // that wait for the end of the job
	stopped  *checkpoint.Reply               // the savepoint by which the job stops is complete
	told     []checkpoint.CoordinatorEvent   // that the coordinator has yet to hear
	out      []Action
}

// failuresKept is how many failures Status tells of (Flink's web.exception-history-size).
const failuresKept = 16

// execution is the current attempt of a task.
type execution struct {
	attempt base.Attempt
	state   state
}

type state uint8

const (
	idle      state = iota // never deployed
	deploying              // deployed, restoring
	running
	canceling // told to end
	finished
	gone // failed or canceled
)

// alive is true of an execution that holds resources.
func (s state) alive() bool { return s == deploying || s == running || s == canceling }

// ending is how the job ends, once all tasks are gone.
type ending struct {
	status Status
	how    checkpoint.JobEnd
	err    error
	// savepoint is where the one lies after which the job is cancelled.
	savepoint string

	asked  bool // RecordEnd is out
	known  bool // and answered, or not needed
	closed bool // the coordinator knows
	told   bool // End is out
}

// NewMachine is the machine of a job that has not begun. It goes on from the last of the recovered checkpoints.
func NewMachine(cfg Config, g *graph.Job, r checkpoint.Recovered) (*Machine, error) {
	if err := errors.Join(cfg.Restart.Validate(), cfg.Checkpoints.Validate()); err != nil {
		return nil, err
	}
	c, err := checkpoint.NewCoordinator(cfg.Checkpoints, checkpointGraph(g), r)
	if err != nil {
		return nil, err
	}
	m := &Machine{config: cfg, graph: g, checkpoints: c, tasks: make([]execution, g.Subtasks()),
		regionOf: make([]int, len(g.Vertices)), requests: map[checkpoint.Request]askedFor{}}
	for i, vertices := range g.Regions() {
		m.regions = append(m.regions, nil)
		for _, v := range vertices {
			m.regionOf[v] = i
			for t := range tasksOf(g.Vertices[v]) {
				m.regions[i] = append(m.regions[i], t)
			}
		}
		slices.Sort(m.regions[i])
	}
	m.alive = make([]int, len(m.regions))
	return m, nil
}

// Step takes one event and says what is to be done, in this order. The slice is valid until the next Step.
func (m *Machine) Step(now checkpoint.Time, e Event) []Action {
	m.out = m.out[:0]
	m.handle(now, e)
	m.settle(now)
	return m.out
}

func (m *Machine) handle(now checkpoint.Time, e Event) {
	switch e := e.(type) {
	case Started:
		m.started(now)
	case TaskReported:
		m.taskReported(now, e)
	case LinkBroken:
		m.linkBroken(now, e)
	case OperatorFailed:
		m.operatorFailed(now, e)
	case OperatorsReset:
		m.operatorsReset(now, e)
	case SavepointAsked:
		m.savepointAsked(e)
	case CheckpointAsked:
		m.checkpointAsked(e)
	case CancelAsked:
		m.decide(ending{status: Canceled, how: checkpoint.JobCanceled})
	case SuspendAsked:
		m.decide(ending{status: Suspended, how: checkpoint.JobSuspended})
	case Relayed:
		m.tell(e.Event)
	case EndRecorded:
		m.endRecorded(e)
	case TimePassed:
		m.tell(checkpoint.TimePassed{})
	default:
		panic(fmt.Sprintf("job: unknown event %T", e))
	}
}

// settle does what the new state allows.
func (m *Machine) settle(now checkpoint.Time) {
	for {
		m.talk(now)
		if !m.advance(now) && len(m.told) == 0 {
			return
		}
	}
}

// tell queues an event for the coordinator.
func (m *Machine) tell(e checkpoint.CoordinatorEvent) { m.told = append(m.told, e) }

// talk lets the coordinator hear what it must, and takes its answers. What they make it hear comes behind.
func (m *Machine) talk(now checkpoint.Time) {
	for len(m.told) > 0 {
		e := m.told[0]
		m.told = m.told[1:]
		for _, a := range m.checkpoints.Step(now, e) {
			m.take(now, a)
		}
	}
	m.told = m.told[:0]
}

// take takes an action of the coordinator: three are for the machine, the others for the driver.
func (m *Machine) take(now checkpoint.Time, a checkpoint.CoordinatorAction) {
	switch a := a.(type) {
	case checkpoint.Restore:
		m.restorePoint(a.From)
	case checkpoint.FailJob:
		m.failJob(now, a)
	case checkpoint.Reply:
		m.replied(a)
	default:
		m.do(Relay{a})
	}
}

// advance does one thing that has become possible; false: there is none.
func (m *Machine) advance(now checkpoint.Time) bool {
	switch {
	case m.end != nil:
		return m.advanceEnd()
	case m.finished == len(m.tasks):
		m.decide(ending{status: Finished, how: checkpoint.JobFinished})
		return true
	case m.restart != nil:
		return m.advanceRestart(now)
	}
	return false
}

func (m *Machine) do(a Action) { m.out = append(m.out, a) }

// Deadline is when TimePassed is due; false: not at all.
func (m *Machine) Deadline() (checkpoint.Time, bool) {
	at, ok := m.checkpoints.Deadline()
	if r := m.restart; r != nil && m.end == nil && r.phase == waiting && !r.due && (!ok || r.at < at) {
		return r.at, true
	}
	return at, ok
}

// Report is what a Machine tells of itself.
type Report struct {
	Status Status
	// Ending: how it ends is decided.
	Ending   bool
	Restarts int
	// Failures are the last ones, oldest first.
	Failures []Failure
	// Tasks counts the tasks that are deploying, running and finished.
	Deploying, Running, Finished int
	Checkpoints                  checkpoint.Status
}

// Status is a copy that the caller may keep.
func (m *Machine) Status() Report {
	r := Report{Status: m.status, Ending: m.end != nil, Restarts: m.restarts, Failures: slices.Clone(m.failures), Finished: m.finished, Checkpoints: m.checkpoints.Status()}
	for i := range m.tasks {
		switch m.tasks[i].state {
		case deploying:
			r.Deploying++
		case running:
			r.Running++
		}
	}
	return r
}
