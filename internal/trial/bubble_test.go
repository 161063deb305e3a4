package trial

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/cluster"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// world is what outlives a process.
type world struct {
	disk   *storage.MemFS
	broker *broker
}

// trial is one plan being run.
type trial struct {
	plan
	rng                *rand.Rand
	world              world
	faults             *faults
	disk               []*storage.Rule // the plan's storage faults, which outlive the processes
	log                journal
	from               string  // what the next life goes on from; "": it starts empty
	claim              bool    // where from is a path
	taken              []taken // plain savepoints
	crashes, cancels   int
	stops, failedStops int
	forks              int
	refused            int // parallelisms
	forked             bool
	overtaken          int64 // records in flight that a crash has left
}

// journal keeps what a job logs.
type journal struct {
	mu    sync.Mutex
	lines []string // protected by mu
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) last(n int) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines[max(0, len(j.lines)-n):], "\n\t")
}

// Enabled, Handle, WithAttrs and WithGroup implement slog.Handler.
func (j *journal) Enabled(context.Context, slog.Level) bool { return true }
func (j *journal) WithAttrs([]slog.Attr) slog.Handler       { return j }
func (j *journal) WithGroup(string) slog.Handler            { return j }
func (j *journal) Handle(_ context.Context, r slog.Record) error {
	line := fmt.Sprint(r.Time.Format("05.000 "), r.Level, " ", r.Message)
	r.Attrs(func(a slog.Attr) bool { line += fmt.Sprintf(" %s=%v", a.Key, a.Value); return true })
	j.add("%s", line)
	return nil
}

// inBubble runs a plan in simulated time; the error tells what is wrong.
func inBubble(t *testing.T, p plan) (tr *trial, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tr = &trial{plan: p, rng: rand.New(rand.NewPCG(p.Seed, 3)), world: world{storage.Memory(), newBroker()}, faults: newFaults(p.User)}
		if p.Work > 0 {
			tr.faults.work = toil(p.Work, rand.New(rand.NewPCG(p.Seed, 7)))
		}
		for _, s := range p.Storage {
			tr.disk = append(tr.disk, s.rule())
		}
		err = tr.run()
		for _, s := range tr.taken {
			if err == nil {
				tr.forks++
				err = tr.fork(s)
			}
		}
	})
	return tr, err
}

// livesMost bounds a trial: a job that needs more lives does not get on.
const livesMost = 60

func (tr *trial) run() error {
	for life := 0; life < livesMost; life++ {
		done, err := tr.live(life)
		if err != nil {
			return err
		}
		if done {
			return tr.verdict()
		}
	}
	return fmt.Errorf("not FINISHED after %d lives", livesMost)
}

// life is a run of the job's process.
type life struct {
	world  world
	up     chan struct{}   // closed when it has come up
	handle *cluster.Handle // once it is up
	cancel context.CancelFunc
	ended  chan error
	over   context.Context // done when it has ended
	taken  chan taken
}

func (l *life) cameUp() bool {
	select {
	case <-l.up:
		return true
	default:
		return false
	}
}

// live runs the job until it is FINISHED (done), or its process crashes, or does not come up.
func (tr *trial) live(n int) (done bool, err error) {
	for _, parallelism := range tr.repeats(n) {
		l := tr.start(n, parallelism)
		done, err = tr.lead(l, n)
		var partly *snapshot.PartlyEndedError
		if !errors.As(err, &partly) {
			return done, err
		}
		tr.refused++
	}
	return false, err
}

// start starts the process.
func (tr *trial) start(n, parallelism int) *life {
	ctx, cancel := context.WithCancel(context.Background())
	l := &life{world: tr.world, cancel: cancel, ended: make(chan error, 1), over: ctx, up: make(chan struct{}), taken: make(chan taken, len(tr.Spares))}
	tr.equip(l.world.broker)
	env := tr.env(tr.from, parallelism, checkpoints)
	if tr.claim {
		env.Set("execution.state-recovery.claim-mode", "CLAIM")
	}
	programOf(tr.Program).build(env, stage{records: tr.Records, rate: tr.Rate, faults: tr.faults, sink: topic{l.world.broker, tr.faults}.sink()})
	disk := storage.Faulty(slow(l.world.disk, tr.Slow, tr.rng.Uint64()), tr.disk...)
	ctx = cluster.WithTuning(ctx, func(j *cluster.Job) {
		j.FS, j.Log = disk, slog.New(&tr.log)
		j.Exit = func(message string) { panic(message) }
		j.Started = func(h *cluster.Handle) {
			l.handle = h
			close(l.up)
		}
		if tr.Messages != nil {
			j.Carry = tr.Messages.carry
		}
	})
	tr.log.add("---- life %d at parallelism %d from %q", n, parallelism, tr.from)
	go func() { l.ended <- env.Execute(ctx, "trial") }() // ends with the job
	return l
}

// equip gives the broker its faults.
func (tr *trial) equip(b *broker) {
	if tr.Slow > 0 {
		b.delay = pauses(tr.Slow, tr.rng.Uint64())
	}
	if tr.Broker == 0 {
		return
	}
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(tr.rng.Uint64(), 4))
	b.fault = func(op string) (before, after error) {
		mu.Lock()
		defer mu.Unlock()
		if rng.IntN(1000) >= tr.Broker {
			return nil, nil
		}
		err := fmt.Errorf("%w: broker, %s", errPlanted, op)
		if rng.IntN(2) == 0 {
			return err, nil
		}
		return nil, err
	}
}

// patience is how long a life may take in simulated time: the beats that notice lost messages come every 10 s.
const patience = 5 * time.Minute

// lead lets a life go its way, up to its end as the plan has it.
func (tr *trial) lead(l *life, n int) (done bool, err error) {
	defer tr.collect(l)
	defer l.cancel()
	tr.takeSpares(l, n)
	if n >= len(tr.Lives) {
		return tr.await(l, patience)
	}
	timer := time.NewTimer(tr.Lives[n].After)
	defer timer.Stop()
	select {
	case err := <-l.ended:
		return tr.ended(l, err)
	case <-timer.C:
	}
	synctest.Wait() // so that the end is one moment, in which nothing moves
	select {
	case err := <-l.ended:
		return tr.ended(l, err)
	default:
	}
	return tr.end(l, tr.Lives[n])
}

// await waits for the job's own end.
func (tr *trial) await(l *life, most time.Duration) (done bool, err error) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case err := <-l.ended:
		return tr.ended(l, err)
	case <-timer.C:
	}
	l.cancel()
	return false, fmt.Errorf("the job still runs after %v: %v", most, <-l.ended)
}

// ended judges the end of a life. One that did not come up, because of a fault of the disk, gets a successor.
func (tr *trial) ended(l *life, err error) (done bool, _ error) {
	tr.world = l.world
	if wrong := tr.files(); wrong != nil {
		return false, wrong
	}
	if err == nil {
		return true, nil
	}
	tr.log.add("ended: %v", err)
	switch {
	case tr.failedStop(err):
		return false, nil
	case errors.Is(err, cluster.ErrCanceled):
		tr.from = latest
		return false, nil
	case l.cameUp():
	case strings.Contains(err.Error(), "has FINISHED"): // the crash came between the end of the job and that of its process
		return true, nil
	case errors.Is(err, storage.ErrNone):
		return tr.nothingLeft(err)
	case isOneOf(err, storageErrors):
		if tr.from == "" {
			tr.from = latest
		}
		return false, nil
	}
	return false, err
}

// nothingLeft is a job that ran and has nothing to go on from: it crashed before its first checkpoint, and a person would start
// it anew. That must be safe: nothing is committed.
func (tr *trial) nothingLeft(err error) (done bool, _ error) {
	if len(tr.world.broker.read()) == 0 {
		tr.from = ""
		return false, nil
	}
	return false, err
}

func isOneOf(err error, all []error) bool {
	for _, e := range all {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// files demands that every file is there to which a checkpoint refers, and at the end of a run that nothing of it is left to which
// none does. A disk that fails may leave something, for the next run; so may a crash, until a newer checkpoint completes.
func (tr *trial) files() error {
	h, err := holdingsOf(tr.world.disk, checkpoints)
	if err == nil && tr.crashes == 0 && len(tr.Storage) == 0 {
		err = h.exact(everything)
	}
	return err
}

// verdict compares the committed output with the reference.
func (tr *trial) verdict() error {
	got := bag{}
	for _, line := range tr.world.broker.read() {
		got.add(line)
	}
	if err := tr.files(); err != nil {
		return err
	}
	if wrong := differences(got, programOf(tr.Program).reference(tr.Records), tr.AtLeastOnce && (tr.forked || !tr.quiet())); len(wrong) > 0 {
		return fmt.Errorf("the committed output is not the reference:\n\t%s", strings.Join(wrong, "\n\t"))
	}
	return nil
}
