package weir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/cluster"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/operator"
)

// Env is where a job is put together: sources come from it, and Execute runs what was made of them.
type Env struct {
	logical     graph.Logical
	flags       config.Flags
	code        config.Layer
	checkpoints CheckpointConfig
	enabled     config.Origin // where EnableCheckpointing or Checkpoints was called
	modeGiven   bool          // by EnableCheckpointing: the zero Mode is not "not set"
	hooks       []jobmaster.Hook
	problems    graph.Problems           // found while the graph was built
	sides       map[sideKey]reflect.Type // declared side outputs
	refused     []*graph.Node            // operators whose functions were refused
}

// NewEnv makes an environment. It takes Weir's own arguments (-s, -n, --claimMode, -p, -D key=value, --config) out of os.Args, so that the
// program's own flag.Parse sees only the rest; an error in them is reported by Execute.
func NewEnv() *Env {
	e := &Env{}
	flags, err := takeArguments()
	e.flags = flags
	if err != nil {
		e.problems = append(e.problems, err.Error())
	}
	return e
}

var (
	argumentsMu    sync.Mutex
	argumentsTaken bool // protected by argumentsMu, as are the two below
	argumentsFlags config.Flags
	argumentsErr   error
)

// takeArguments takes Weir's arguments out of os.Args; every environment of a process gets the same.
func takeArguments() (config.Flags, error) {
	argumentsMu.Lock()
	defer argumentsMu.Unlock()
	if !argumentsTaken {
		argumentsTaken = true
		var rest []string
		argumentsFlags, rest, argumentsErr = config.Take(os.Args[1:])
		os.Args = append(os.Args[:1:1], rest...)
	}
	return argumentsFlags, argumentsErr
}

// NewTestEnv makes an environment that does not look at os.Args, for tests and for programs that run many jobs.
func NewTestEnv() *Env { return &Env{} }

// Parallelism sets the parallelism of operators that set none of their own; the command line's -p wins over it.
func (e *Env) Parallelism(n int) *Env {
	e.code.Set(config.Parallelism.Key, n, config.Caller(1))
	return e
}

// Set sets a configuration key, e.g. "restart-strategy.type". What the command line says wins over it, and it wins over the
// configuration file. Execute refuses unknown keys and bad values.
func (e *Env) Set(key string, value any) *Env {
	e.code.Set(key, value, config.Caller(1))
	return e
}

// Hook adds a hook that takes part in checkpoints on the job master.
func (e *Env) Hook(h MasterHook) *Env {
	if h == nil {
		e.problem("Hook (at %s) was given a nil hook", userLine())
		return e
	}
	same := func(o jobmaster.Hook) bool { return o.ID() == h.ID() }
	if h.ID() == "" || slices.ContainsFunc(e.hooks, same) {
		e.problem("Hook (at %s) was given a hook of the ID %q: its state is found by the ID, so it must have one, and of its own", userLine(), h.ID())
	}
	e.hooks = append(e.hooks, hookAdapter{h})
	return e
}

// Mode says what a checkpoint guarantees.
type Mode int

const (
	// ExactlyOnce: after a restart every record has acted on the state exactly once. Barriers are aligned.
	ExactlyOnce Mode = iota
	// AtLeastOnce: after a restart records may have acted more than once. Barriers block nothing.
	AtLeastOnce
)

// Retention says which checkpoints stay when a job ends.
type Retention int

const (
	// KeepOnCancellation keeps them unless the job FINISHED. The default where a directory is set.
	KeepOnCancellation Retention = iota
	// DeleteOnCancellation keeps them only when the job FAILED.
	DeleteOnCancellation
	// KeepNothing deletes them however the job ends.
	KeepNothing
)

// CheckpointConfig is how a job takes checkpoints. A field that is left at its zero value is not set: the configuration file
// and then the default decide (docs/config.md names the keys).
type CheckpointConfig struct {
	// Interval between the starts of periodic checkpoints; at least 10 ms.
	Interval time.Duration
	// Timeout after which a checkpoint is given up; default 10 minutes.
	Timeout time.Duration
	// MinPause from the end of a checkpoint to the start of the next periodic one. It forces one checkpoint at a time.
	MinPause time.Duration
	// AlignedTimeout after which an aligned barrier overtakes records, where Unaligned is set.
	AlignedTimeout time.Duration
	// Mode is ExactlyOnce or AtLeastOnce.
	Mode Mode
	// MaxConcurrent is how many checkpoints may be under way at once; default 1.
	MaxConcurrent int
	// TolerableFailures is how many checkpoints in a row may fail before the job restarts; -1: any number. Default 0.
	TolerableFailures int
	// Retained is how many completed checkpoints are kept; default 1.
	Retained int
	// Unaligned lets barriers overtake records, which become part of the checkpoint: fast under back-pressure, and larger. It needs
	// ExactlyOnce, and one checkpoint at a time.
	Unaligned bool
	// Retention says which checkpoints stay when the job ends.
	Retention Retention
	// Storage is where checkpoints lie: "" keeps them in the job master's memory; "file:///dir" or a path, in a directory.
	Storage string
	// Savepoints is the directory of savepoints that name none.
	Savepoints string
}

// EnableCheckpointing has the job take checkpoints at the interval every; 0 means 500 ms. What is returned sets the rest.
func (e *Env) EnableCheckpointing(every time.Duration, mode Mode) *CheckpointConfig {
	e.enabled, e.modeGiven = config.Caller(1), true
	e.checkpoints.Interval, e.checkpoints.Mode = config.IntervalOrDefault(every), mode
	return &e.checkpoints
}

// Checkpoints is the checkpoint configuration, e.g. to set the storage of savepoints without periodic checkpoints.
func (e *Env) Checkpoints() *CheckpointConfig {
	if e.enabled == "" {
		e.enabled = config.Caller(1)
	}
	return &e.checkpoints
}

// layer is what the program has set, the checkpoint configuration first: a key set by Set wins.
func (e *Env) layer() config.Layer {
	var l config.Layer
	c := &e.checkpoints
	set := func(given bool, key string, v any) {
		if given {
			l.Set(key, v, e.enabled)
		}
	}
	set(c.Interval != 0, config.CheckpointInterval.Key, c.Interval)
	set(c.Timeout != 0, config.CheckpointTimeout.Key, c.Timeout)
	set(c.MinPause != 0, config.MinPause.Key, c.MinPause)
	set(c.AlignedTimeout != 0, config.AlignedTimeout.Key, c.AlignedTimeout)
	set(e.modeGiven && c.Mode == ExactlyOnce, config.CheckpointMode.Key, config.ExactlyOnce)
	set(c.Mode == AtLeastOnce, config.CheckpointMode.Key, config.AtLeastOnce)
	set(c.MaxConcurrent != 0, config.MaxConcurrent.Key, c.MaxConcurrent)
	set(c.TolerableFailures != 0, config.TolerableFailures.Key, c.TolerableFailures)
	set(c.Retained != 0, config.Retained.Key, c.Retained)
	set(c.Unaligned, config.Unaligned.Key, c.Unaligned)
	set(c.Retention == DeleteOnCancellation, config.CheckpointRetention.Key, config.DeleteOnCancellation)
	set(c.Retention == KeepNothing, config.CheckpointRetention.Key, config.NoExternalized)
	set(c.Storage != "", config.CheckpointDir.Key, c.Storage)
	set(c.Savepoints != "", config.SavepointDir.Key, c.Savepoints)
	return append(l, e.code...)
}

// Execute runs the job and returns when it has ended: nil when it FINISHED. A job that FAILED returns the cause; a ctx that
// is done cancels the job and returns an error that wraps ctx's. Problems of the graph and of the configuration are
// returned before anything runs, all at once.
func (e *Env) Execute(ctx context.Context, name string) error {
	job, err := e.build(name)
	if err != nil {
		err = fmt.Errorf("weir: job %q cannot run:\n%w", name, err)
	}
	if err := cluster.Role(job, err); err != nil {
		return err
	}
	_, err = cluster.Run(ctx, cluster.Tuned(ctx, job))
	return err
}

// build makes the job of the program and its configuration.
func (e *Env) build(name string) (cluster.Job, error) {
	cfg, err := config.Load(e.flags, e.layer())
	if err != nil {
		return cluster.Job{}, errors.Join(append([]error{err}, e.graphProblems()...)...)
	}
	if n, set := cfg.Lookup(config.JobName); set {
		name = n
	}
	periodic := cfg.Checkpointing().Interval > 0
	if !periodic {
		e.refuseUncommitted()
	}
	if err := errors.Join(e.graphProblems()...); err != nil {
		return cluster.Job{}, err
	}
	g, err := e.logical.Build(name, graph.Options{Parallelism: cfg.Get(config.Parallelism), Chaining: cfg.Get(config.Chaining)})
	if err != nil {
		return cluster.Job{}, err
	}
	if err := checkLinks(g); err != nil {
		return cluster.Job{}, err
	}
	return cluster.Job{Graph: g, Config: cfg, Hooks: e.hooks}, nil
}

// checkLinks refuses record types that cannot leave their process: in one process too, so that a job that runs here runs
// everywhere.
func checkLinks(g *graph.Job) error {
	var all graph.Problems
	for _, v := range g.Vertices {
		for _, l := range v.Inputs {
			if err := l.Edge.Wire.(operator.Wire).Check(); err != nil {
				all = append(all, fmt.Sprintf("records of %s go from %q to %q, which run in different tasks, and cannot be encoded: %v", l.Edge.Type, l.From.Name, l.To.Name, err))
			}
		}
	}
	if len(all) > 0 {
		return all
	}
	return nil
}

// graphProblems are the problems found while the graph was built, and those of the whole.
func (e *Env) graphProblems() []error {
	var all []error
	if len(e.problems) > 0 {
		all = append(all, e.problems)
	}
	if err := e.logical.Validate(); err != nil {
		all = append(all, err)
	}
	return all
}

// refuseUncommitted refuses two-phase sinks that would never commit: without checkpoints only the end of the input does.
func (e *Env) refuseUncommitted() {
	unbounded := e.logical.UnboundedInputs()
	for _, n := range e.logical.Nodes {
		if n.TwoPhase && unbounded[n.ID] {
			e.problems = append(e.problems, fmt.Sprintf("sink %s (made at %s) makes its output visible when a checkpoint completes, but the job takes none and its input has no end: "+
				"nothing would ever be visible. Call env.EnableCheckpointing(time.Second, weir.ExactlyOnce)", n.Label(), n.Made))
		}
	}
}

// MasterHook takes part in checkpoints on the job master, for systems outside of the job whose state belongs to them.
type MasterHook interface {
	// ID identifies the hook's state over all versions of a job.
	ID() string
	// Trigger is called for each checkpoint, before the sources are triggered. What it returns is stored.
	Trigger(ctx context.Context, checkpoint int64, at time.Time) ([]byte, error)
	// Restore is called before the tasks of a restored job start; a nil state: the checkpoint has none of this hook.
	Restore(ctx context.Context, checkpoint int64, state []byte) error
}

// hookAdapter is a MasterHook as the job master sees it.
type hookAdapter struct{ h MasterHook }

// ID implements jobmaster.Hook.
func (a hookAdapter) ID() string { return a.h.ID() }

// Trigger implements jobmaster.Hook.
func (a hookAdapter) Trigger(ctx context.Context, id base.CheckpointID, wall int64) ([]byte, error) {
	return a.h.Trigger(ctx, int64(id), time.Unix(0, wall))
}

// Restore implements jobmaster.Hook.
func (a hookAdapter) Restore(ctx context.Context, id base.CheckpointID, state []byte) error {
	return a.h.Restore(ctx, int64(id), state)
}
