package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	kills         = 2
	checkpointsIn = 2    // how many checkpoints a run completes before it is killed
	readMost      = 0.95 // a kill later in the input than this is not one in the middle

	// The runs that are killed read so slowly that the whole input would take them this long. Where the machine is slower
	// anyway, that is no limit; where it is faster, they would end before they could be killed.
	inputTakes = 6 * time.Second
)

// trial is one demonstration.
type trial struct {
	options     jobOptions
	reference   *reference
	ledger      *ledger
	checkpoints checkpoints
	display     *display

	run       int   // the number of the run, from 1
	readFully int64 // words that the earlier runs have read; some of them again and again

	lastRead int64 // for the rate
	lastTime time.Time
	perSec   float64
}

func newTrial(o jobOptions, r *reference, d *display) *trial {
	return &trial{options: o, reference: r, display: d, ledger: newLedger(r, outputDir(o.dir)), checkpoints: checkpoints{dir: checkpointsDir(o.dir)}}
}

// hold runs the job, kills it, and so on, to the end, and compares the output with the reference.
func (t *trial) hold(ctx context.Context) error {
	slow := t.options
	slow.rate = float64(t.reference.lines) / inputTakes.Seconds()
	t.display.note("The runs that will be killed read at most %s lines a second, so that the kills come in the middle.", grouped(int64(slow.rate)))
	var restore []string
	for range kills {
		if err := t.runAndKill(ctx, slow, restore); err != nil {
			return fmt.Errorf("run %d: %w", t.run, err)
		}
		restore = []string{"-s", "latest"}
	}
	if err := t.runToEnd(ctx, t.options, restore); err != nil {
		return fmt.Errorf("run %d: %w", t.run, err)
	}
	if err := t.ledger.balance(); err != nil {
		return fmt.Errorf("the output differs from the reference:\n%w", err)
	}
	return nil
}

// runAndKill starts the job, and kills it at some moment after its second checkpoint.
func (t *trial) runAndKill(ctx context.Context, o jobOptions, restore []string) error {
	p, err := t.start(ctx, o, restore)
	if err != nil {
		return err
	}
	before := t.checkpoints.count
	err = t.watch(p, func() bool { return t.checkpoints.count >= before+checkpointsIn })
	if err == nil {
		until := time.Now().Add(rand.N(o.interval)) // any moment between two checkpoints
		err = t.watch(p, func() bool { return !time.Now().Before(until) })
	}
	if err != nil {
		p.cmd.Process.Kill()
		<-p.done
		return err
	}
	if err := p.kill(); err != nil {
		return fmt.Errorf("%w\n%s", err, logTail(o.dir))
	}
	if err := t.look(); err != nil {
		return err
	}
	return t.killed(p, t.checkpoints.count-before)
}

// killed tells of a kill, and makes sure that it came in the middle of the input. Where in the input the run was is not known
// exactly, as it began at its checkpoint; but it was not behind all that this and the earlier runs have read together.
func (t *trial) killed(p *process, completed int) error {
	t.readFully += p.read.Load()
	t.display.note("Run %d: killed (-9) after %d checkpoints; %s of %s words were committed.", t.run, completed, grouped(t.ledger.count), grouped(t.reference.total))
	if float64(t.readFully) > readMost*float64(t.reference.total) {
		return fmt.Errorf("the kill may have come too late to prove anything: the runs have read %s words together, and the input has %s; "+
			"name a larger input with -source", grouped(t.readFully), grouped(t.reference.total))
	}
	return nil
}

// runToEnd starts the job, and waits until it has ended by itself.
func (t *trial) runToEnd(ctx context.Context, o jobOptions, restore []string) error {
	p, err := t.start(ctx, o, restore)
	if err != nil {
		return err
	}
	if err := t.watch(p, func() bool { return false }); err != nil {
		return err
	}
	t.display.note("Run %d: the job is FINISHED.", t.run)
	return nil
}

func (t *trial) start(ctx context.Context, o jobOptions, restore []string) (*process, error) {
	t.run++
	t.lastRead, t.lastTime, t.perSec = 0, time.Now(), 0
	return startProcess(ctx, o, restore...)
}

// watch shows what goes on until it is enough, or the job has ended: by itself in time only if it was never enough.
func (t *trial) watch(p *process, enough func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !enough() {
		ended := false
		select {
		case <-p.done:
			ended = true
		case <-tick.C:
		}
		if err := t.look(); err != nil {
			return err
		}
		t.show(p)
		if ended {
			return t.ended(p)
		}
	}
	return nil
}

// ended says how a job has ended that was not killed.
func (t *trial) ended(p *process) error {
	if p.err != nil {
		return fmt.Errorf("the job has failed (%w):\n%s", p.err, logTail(t.options.dir))
	}
	if t.run <= kills {
		return fmt.Errorf("the job was done before it could be killed: name a larger input with -source")
	}
	return nil
}

// look takes notice of what has appeared.
func (t *trial) look() error {
	if err := t.checkpoints.look(); err != nil {
		return err
	}
	return t.ledger.enterNew()
}

func (t *trial) show(p *process) {
	if read, passed := p.read.Load(), time.Since(t.lastTime).Seconds(); passed >= 0.5 {
		t.perSec = float64(read-t.lastRead) / passed
		t.lastRead, t.lastTime = read, time.Now()
	}
	t.display.status(fmt.Sprintf("Run %d: %s of %s words committed, %s read a second, %d checkpoints, %d restarts",
		t.run, grouped(t.ledger.count), grouped(t.reference.total), grouped(int64(t.perSec)), t.checkpoints.count, t.run-1))
}
