package trial

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// A life ends when the job has, or as its plan says:
//
//	crash     at any moment; the next life goes on from the latest checkpoint
//	stop      a savepoint, at any moment, by which the job ends; the next life goes on from it
//	cancel    the next life goes on from the latest checkpoint
//
// A stop that is refused, or fails, is none: the life goes on, to the job's end.
type ending struct {
	After  time.Duration
	How    string
	Format checkpoint.Format // of a stop's savepoint
	ByPath bool              // the next life is given the savepoint's path, and not "latest"
	Claim  bool              // and owns it
}

const (
	crash  = "crash"
	stop   = "stop"
	cancel = "cancel"
)

func (e ending) String() string {
	if e.How == stop {
		return fmt.Sprintf("%v %v %v by path %v claim %v", e.How, e.Format, e.After, e.ByPath, e.Claim)
	}
	return fmt.Sprint(e.How, " ", e.After)
}

// widths are the parallelisms that jobs run at.
var widths = []int{1, 2, 5, 7}

// drawLives: to crash needs a directory to go on from; to stop does not.
func (p *plan) drawLives(r *rand.Rand) {
	for range r.IntN(4) {
		e := ending{After: time.Duration(20+r.IntN(400)) * time.Millisecond, How: []string{crash, crash, stop, stop, cancel}[r.IntN(5)],
			Format: drawFormat(r), ByPath: r.IntN(2) == 0, Claim: r.IntN(2) == 0}
		if !p.Directory {
			e.How, e.ByPath = stop, true
		}
		p.Lives = append(p.Lives, e)
		p.Parallelism = append(p.Parallelism, widths[r.IntN(len(widths))])
	}
}

func drawFormat(r *rand.Rand) checkpoint.Format {
	return []checkpoint.Format{checkpoint.Native, checkpoint.Canonical}[r.IntN(2)]
}

// latest is from where a life goes on whose job may have completed a checkpoint.
const latest = "latest-or-start"

// end ends a life as the plan says. done: the job has come to its end.
func (tr *trial) end(l *life, e ending) (done bool, err error) {
	switch e.How {
	case stop:
		return tr.stop(l, e)
	case cancel:
		tr.cancels++
		l.cancel()
		return tr.ended(l, <-l.ended)
	}
	tr.crashes++
	tr.world = world{l.world.disk.CrashClone(tr.rng), l.world.broker.clone()}
	tr.overtaken += overtaken(tr.world.disk)
	l.cancel()
	<-l.ended
	tr.from = latest
	return false, tr.files()
}

// stop stops the job with a savepoint.
func (tr *trial) stop(l *life, e ending) (done bool, err error) {
	select {
	case <-l.up:
	case err := <-l.ended:
		return tr.ended(l, err)
	}
	a, err := l.handle.TriggerSavepoint(context.Background(), jobmaster.Savepoint{Kind: checkpoint.Suspend, Format: e.Format, Target: savepoints})
	if err != nil {
		tr.log.add("the stop: %v", err)
		return tr.await(l, patience)
	}
	if err := <-l.ended; err != nil {
		return false, fmt.Errorf("the job was stopped with a savepoint, and ended: %w", err)
	}
	tr.stops++
	tr.world = l.world
	if tr.from = latest; e.ByPath {
		tr.from, tr.claim = a.Location, e.Claim
	}
	return false, nil
}

// savepoints is the directory of all of them.
const savepoints = "/savepoints"

// checkpoints is that of the job's own.
const checkpoints = "/checkpoints"

// stoppedShort finds the savepoint that the error names of a job whose stop failed when the savepoint was complete.
var stoppedShort = regexp.MustCompile(`A savepoint has been created at: (\S+),`)

// failedStop tells whether a job FAILED only because its stop did; whoever runs it then goes on from the savepoint.
func (tr *trial) failedStop(err error) bool {
	found := stoppedShort.FindStringSubmatch(err.Error())
	if found == nil {
		return false
	}
	tr.failedStops++
	tr.from, tr.claim = found[1], false
	return true
}

// spare is a plain savepoint of a life, taken while the job goes on.
type spare struct {
	Life   int
	After  time.Duration
	Format checkpoint.Format
}

func (s spare) String() string { return fmt.Sprintf("%v %v in life %d", s.Format, s.After, s.Life) }

// taken is a plain savepoint that was completed.
type taken struct {
	spare
	path string
	id   int64
}

func (p *plan) drawSpares(r *rand.Rand) {
	for range max(0, r.IntN(5)-2) {
		p.Spares = append(p.Spares, spare{Life: r.IntN(len(p.Lives) + 1), After: time.Duration(r.IntN(300)) * time.Millisecond, Format: drawFormat(r)})
	}
}

// takeSpares takes a life's plain savepoints; the goroutines end with the life.
func (tr *trial) takeSpares(l *life, n int) {
	for _, s := range tr.Spares {
		if s.Life == n {
			go tr.takeSpare(l, s)
		}
	}
}

func (tr *trial) takeSpare(l *life, s spare) {
	timer := time.NewTimer(s.After)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.over.Done():
		return
	}
	select {
	case <-l.up:
	case <-l.over.Done():
		return
	}
	a, err := l.handle.TriggerSavepoint(l.over, jobmaster.Savepoint{Kind: checkpoint.Savepoint, Format: s.Format, Target: savepoints})
	if err != nil {
		tr.log.add("savepoint: %v", err)
		return
	}
	l.taken <- taken{s, a.Location, int64(a.ID)}
}

// collect keeps what was taken in a life.
func (tr *trial) collect(l *life) {
	for {
		select {
		case t := <-l.taken:
			tr.taken = append(tr.taken, t)
		default:
			return
		}
	}
}

// fork goes on from a plain savepoint, in a world in which nothing has happened after it: what had been sealed before it is
// committed or in it; all else never was.
func (tr *trial) fork(from taken) error {
	p := tr.plan
	p.Lives, p.User, p.Storage, p.Broker, p.Messages, p.Spares = nil, nil, nil, 0, nil, nil
	f := &trial{plan: p, forked: true, rng: tr.rng, faults: newFaults(nil), from: from.path, world: world{tr.world.disk.CrashClone(nil), tr.world.broker.before(from.id)}}
	f.Parallelism = []int{widths[tr.rng.IntN(len(widths))]}
	if err := f.run(); err != nil {
		return fmt.Errorf("going on at parallelism %v from the savepoint %v %s: %w\n%s", f.Parallelism, from.spare, from.path, err, f.log.last(20))
	}
	return nil
}

// before is the broker as if a checkpoint's successors had never been.
func (b *broker) before(checkpoint int64) *broker {
	c := b.clone()
	for _, t := range c.txns {
		switch {
		case t.Sealed < 0 || t.Sealed > checkpoint:
			t.State = aborted
		case t.State == aborted: // what was aborted because of a later crash
			t.State = pending
		}
	}
	c.order = slices.DeleteFunc(c.order, func(id string) bool { return c.txns[id].State != committed })
	return c
}

// overtaken is how many records in flight the newest checkpoint has, where there is one.
func overtaken(fs storage.FS) (records int64) {
	jobs, _ := fs.List(checkpoints)
	for _, job := range jobs {
		var newest *snapshot.Metadata
		dir := checkpoints + "/" + job.Name
		entries, _ := fs.List(dir)
		for _, e := range entries {
			if m, _, err := storage.ReadMetadata(fs, dir+"/"+e.Name); err == nil && (newest == nil || m.ID > newest.ID) {
				newest = m
			}
		}
		if newest != nil {
			records += inFlight(newest)
		}
	}
	return records
}

func inFlight(m *snapshot.Metadata) (records int64) {
	for _, o := range m.Operators {
		for _, s := range o.Subtasks {
			for _, h := range s.InFlight {
				records += h.Records
			}
		}
	}
	return records
}
