package weirtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/cluster"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/task"
)

// trial is a plan being run.
type trial struct {
	*crashes
	plan   trialPlan
	rng    *rand.Rand
	log    *journal
	world  *World // between two lives
	from   string // what the next life goes on from; "": nothing
	lived  []*life
	counts map[what]int // of the last life
	took   time.Duration
	err    error // what is wrong
}

// life is one run of the job's process.
type life struct {
	lifePlan
	from   string
	gate   *gate
	handle *cluster.Handle
	up     chan struct{} // closed when handle is there
	ended  chan error
	cancel context.CancelFunc

	end     ending
	hit     string // what a crash came before
	left    *World // by a crash
	faulted bool

	mu      sync.Mutex
	changed error // protected by mu; a record that was changed after it was emitted
}

// ending is how a life ended.
type ending string

const (
	finished ending = "the job FINISHED"
	crashed  ending = "crash"
	stopped  ending = "stopped with a savepoint"
	notUp    ending = "it did not come up"
)

const (
	checkpointDir = "/checkpoints"
	savepointDir  = "/savepoints"
	latest        = "latest-or-start"
	// patience is how long a life may take in simulated time, beside some twenty times what it takes without crashes.
	patience = time.Minute
)

// run lets the lives of the plan follow one another.
func (tr *trial) run() {
	tr.world = newWorld()
	for _, p := range tr.plan.Lives {
		l, err := tr.live(p)
		if err != nil {
			tr.err = err
			return
		}
		if l.end == finished {
			break
		}
		if wrong, excess := tr.compared(); excess {
			tr.err = fmt.Errorf("behind life %d there is too much in the output: %s", len(tr.lived), wrong)
			return
		}
	}
	tr.err = tr.verdict()
}

// compared tells what is committed that is not in the reference, where nothing else says what is right.
func (tr *trial) compared() (wrong string, excess bool) {
	if tr.Check != nil || tr.reference == nil {
		return "", false
	}
	lines, excess := tr.world.differs(tr.reference)
	return strings.Join(lines, "\n"), excess
}

func (tr *trial) verdict() error {
	if tr.Check != nil {
		return tr.Check(tr.world)
	}
	if wrong, _ := tr.compared(); wrong != "" {
		return fmt.Errorf("what the job has committed is not what it commits without crashes: %s", wrong)
	}
	return nil
}

// live is a life, at another parallelism where the planned one is refused because only some subtasks had ended, and once more where
// there is nothing to go on from.
func (tr *trial) live(p lifePlan) (l *life, err error) {
	for _, p.Parallelism = range append([]int{p.Parallelism}, tr.parallelisms()...) {
		l, err = tr.liveOnce(p)
		if err == nil && l.end == notUp {
			l, err = tr.liveOnce(p)
		}
		var partly *snapshot.PartlyEndedError
		if !errors.As(err, &partly) {
			return l, err
		}
		tr.lived = tr.lived[:len(tr.lived)-1]
	}
	return l, err
}

func (tr *trial) liveOnce(p lifePlan) (*life, error) {
	l := tr.start(p)
	tr.lived = append(tr.lived, l)
	err := tr.lead(l)
	tr.counts = l.gate.stop()
	if changed := l.changedRecord(); changed != nil {
		err = changed
	}
	return l, err
}

// parallelisms are all that a life ran at, the last one first, and all others.
func (tr *trial) parallelisms() (all []int) {
	for i := len(tr.lived) - 1; i >= 0; i-- {
		all = append(all, tr.lived[i].Parallelism)
	}
	return append(all, tr.Parallelism...)
}

// start starts the process.
func (tr *trial) start(p lifePlan) *life {
	ctx, cancel := context.WithCancel(context.Background())
	g := newGate()
	l := &life{lifePlan: p, from: tr.from, gate: g, cancel: cancel, up: make(chan struct{}), ended: make(chan error, 1)}
	world := tr.world
	world.gate, g.strike, g.faultAt, g.slow = g, p.Strike, p.Fault, tr.slow()
	g.onCrash = func() { l.left = world.left(tr.rng) }
	env := weir.NewTestEnv()
	tr.Job(env, world)
	tr.configure(env, p)
	ctx = cluster.WithTuning(ctx, func(j *cluster.Job) {
		j.FS, j.Log, j.Carry = g.files(world.disk), slog.New(tr.log), g.carry
		j.Tune = func(o *task.Options) { o.SliceMost = tr.plan.How.Slice }
		j.Exit = func(message string) { panic(message) }
		j.Started = func(h *cluster.Handle) {
			l.handle = h
			close(l.up)
		}
		guard(j.Graph, l.hearOfChange, g.hear)
	})
	tr.log.add("---- life %d: %v, from %q", len(tr.lived)+1, p, tr.from)
	go func() { l.ended <- env.Execute(ctx, "trial") }() // ends with the job, for which lead waits
	return l
}

// configure sets what a trial decides; it wins over what the job has set.
func (tr *trial) configure(env *weir.Env, p lifePlan) {
	c := tr.plan.How
	env.Parallelism(p.Parallelism).
		Set("execution.checkpointing.interval", c.Interval).
		Set("execution.checkpointing.dir", checkpointDir).
		Set("execution.checkpointing.savepoint-dir", savepointDir).
		Set("execution.checkpointing.tolerable-failed-checkpoints", -1).
		Set("execution.checkpointing.timeout", 20*time.Second).
		Set("execution.checkpointing.incremental", !c.Whole).
		Set("pipeline.operator-chaining.enabled", !c.Unchained).
		Set("pipeline.auto-watermark-interval", 5*time.Millisecond).
		Set("restart-strategy.type", "exponential-delay").
		Set("restart-strategy.exponential-delay.initial-backoff", 10*time.Millisecond).
		Set("restart-strategy.exponential-delay.max-backoff", 200*time.Millisecond)
	if c.Unaligned {
		env.Set("execution.checkpointing.unaligned.enabled", true).Set("execution.checkpointing.aligned-checkpoint-timeout", c.AlignedTimeout)
	}
	if c.Files {
		env.Set("execution.checkpointing.data-inline-threshold", 0)
	}
	if c.Batch > 0 {
		env.Set("weir.exchange.batch-records", c.Batch)
	}
	if c.Queue > 0 {
		env.Set("weir.exchange.queue-batches", c.Queue)
	}
	if tr.from != "" {
		env.Set("execution.state-recovery.path", tr.from)
	}
}

// slow makes what operators take for what they emit: sources often, others now and then.
func (tr *trial) slow() func(from *graph.Node) {
	var mu sync.Mutex
	rng, most := rand.New(rand.NewPCG(tr.rng.Uint64(), 3)), int64(max(1, tr.plan.How.Work))
	return func(from *graph.Node) {
		often := 8
		if from.Kind == graph.Source {
			often = 2
		}
		mu.Lock()
		busy, d := rng.IntN(often) == 0, time.Duration(rng.Int64N(most))
		mu.Unlock()
		if busy {
			time.Sleep(d) // simulated
		}
	}
}

func (l *life) hearOfChange(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = err
	}
}

func (l *life) changedRecord() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// lead lets a life go its way, and judges its end.
func (tr *trial) lead(l *life) error {
	began := time.Now()
	defer l.cancel()
	var stop <-chan time.Time
	if l.Stop > 0 {
		timer := time.NewTimer(l.Stop)
		defer timer.Stop()
		stop = timer.C
	}
	most := patience + 20*tr.crashes.took
	enough := time.NewTimer(most)
	defer enough.Stop()
	for {
		select {
		case <-l.gate.crashed:
			l.cancel()
			<-l.ended
			tr.crash(l)
			return nil
		case err := <-l.ended:
			tr.took = time.Since(began)
			return tr.ended(l, err)
		case <-stop:
			if done, err := tr.stop(l); done {
				return err
			}
		case <-enough.C:
			l.cancel()
			return fmt.Errorf("the job still runs after %v; it must come to an end by itself: %v", most, <-l.ended)
		}
	}
}

func (tr *trial) crash(l *life) {
	l.end = crashed
	l.hit, l.faulted = l.gate.hit()
	tr.world, tr.from = l.left, latest
}

// stop stops the job with a savepoint, unless that is refused or fails; then the life goes on.
func (tr *trial) stop(l *life) (done bool, err error) {
	select {
	case <-l.up:
	case err := <-l.ended:
		return true, tr.ended(l, err)
	}
	a, err := l.handle.TriggerSavepoint(context.Background(), jobmaster.Savepoint{Kind: checkpoint.Suspend, Format: l.Format, Target: savepointDir})
	if err != nil {
		tr.log.add("the stop: %v", err)
		return false, nil
	}
	if err := <-l.ended; err != nil {
		return true, fmt.Errorf("the job was stopped with a savepoint, and ended: %w", err)
	}
	l.end, tr.from = stopped, a.Location
	_, l.faulted = l.gate.hit()
	return true, nil
}

// ended judges a life that ended by itself. A job that ran and has nothing to go on from crashed before its first checkpoint: a person
// would start it anew, which is right where nothing is committed.
func (tr *trial) ended(l *life, err error) error {
	_, l.faulted = l.gate.hit()
	switch {
	case err == nil, strings.Contains(err.Error(), "has FINISHED"): // the crash came between the end of the job and that of its process
		l.end = finished
	case errors.Is(err, storage.ErrNone) && tr.world.records() == 0:
		l.end, tr.from = notUp, ""
	default:
		return fmt.Errorf("the job has failed: %w", err)
	}
	return nil
}

// told is what happened, for people.
func (tr *trial) told() (all []string) {
	for i, l := range tr.lived {
		text := fmt.Sprintf("life %d at parallelism %d", i+1, l.Parallelism)
		if l.from != "" {
			text += ", from " + l.from
		}
		if l.faulted {
			text += fmt.Sprintf(", a task failed at %s %d", aRun, l.Fault)
		}
		switch {
		case l.end == crashed:
			text += fmt.Sprintf(": crash before %s %d (%s)", l.Strike.what, l.Strike.n, l.hit)
		case l.end == stopped:
			text += fmt.Sprintf(": %s (%v) after %v", l.end, l.Format, l.Stop)
		case l.end != "":
			text += ": " + string(l.end)
		}
		all = append(all, text)
	}
	return append(all, tr.plan.How.String())
}
