package trial

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/storage"
)

// savepoint takes one.
func (r *running) savepoint(kind checkpoint.Kind, format checkpoint.Format) string {
	r.stand.Helper()
	a, err := r.handle.TriggerSavepoint(r.Context(), jobmaster.Savepoint{Kind: kind, Format: format})
	if err != nil {
		r.Fatal(err)
	}
	return a.Location
}

// B058: a savepoint is taken between two checkpoints, and its owner deletes it. Whether a task fails then or the process dies, the job goes back to
// the checkpoint before, and its output comes once. B061: nor does a later
// stop mind that there is one savepoint less.
func TestASavepointIsNoRestorePoint(t *testing.T) {
	for _, dies := range []bool{false, true} {
		onStand(t, func(s *stand) {
			totalsFrom := func(env *weir.Env) *running {
				buildTotals(env, s.stage(1000, 1000))
				return s.start(env)
			}
			r := totalsFrom(s.env(2, seldom))
			pass(200 * time.Millisecond)
			r.checkpoint()
			pass(200 * time.Millisecond)
			before := len(s.broker.read())
			if left, err := storage.Dispose(s.disk, r.savepoint(checkpoint.Savepoint, checkpoint.Canonical)); err != nil || len(left) > 0 {
				s.Fatal(left, err)
			}
			if after := len(s.broker.read()); before == 0 || after != before {
				s.Errorf("the savepoint has committed: %d lines, then %d", before, after)
			}
			pass(100 * time.Millisecond)
			if dies {
				r.crash()
				r = totalsFrom(s.resumed(3, seldom, "latest"))
			} else {
				s.faults.next("process", false)
			}
			pass(150 * time.Millisecond)
			r.savepoint(checkpoint.Suspend, checkpoint.Native)
			r.finish()
			totalsFrom(s.resumed(1, seldom, "latest")).finish()
			s.expect(wantTotals(1000))
		})
	}
}

// B059: a job that was stopped half-way goes on from its savepoint, and fails before it has a checkpoint of its own: in its task, and
// again as its process dies. It goes back to the savepoint each time.
func TestAFailureBeforeTheFirstOwnCheckpoint(t *testing.T) {
	for _, format := range []checkpoint.Format{checkpoint.Native, checkpoint.Canonical} {
		onStand(t, func(s *stand) {
			env := s.env(2, seldom)
			buildTotals(env, s.stage(1000, 1000))
			r := s.start(env)
			pass(500 * time.Millisecond)
			from := r.savepoint(checkpoint.Suspend, format)
			r.finish()
			for range 2 {
				env = s.resumed(3, seldom, from)
				buildTotals(env, s.stage(1000, 1000))
				s.faults.left = []fault{{Where: "process", Nth: s.faults.passed["process"] + 10}}
				r = s.start(env)
				pass(50 * time.Millisecond) // it waits to restart
				if n := r.handle.Status().Restarts; n != 1 {
					s.Errorf("%d restarts", n)
				}
				r.crash()
			}
			env = s.resumed(1, seldom, from)
			buildTotals(env, s.stage(1000, 1000))
			s.faults.left = []fault{{Where: "process", Nth: s.faults.passed["process"] + 10}}
			s.start(env).finish()
			s.expect(wantTotals(1000))
		})
	}
}

// plain is a sink without transactions: a line is out once it is written.
type plain struct {
	mu    sync.Mutex
	lines bag // protected by mu
}

func (p *plain) Writer(weir.WriterContext) (weir.Writer[string], error) { return p, nil }
func (p *plain) Flush(bool) error                                       { return nil }
func (p *plain) Close() error                                           { return nil }

func (p *plain) Write(line string, _ time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines.add(line)
	return nil
}

// B023: nothing flows between the savepoint of a stop and the stop, so even a sink that takes back nothing has each line once; also where
// barriers block nothing, and with periodic checkpoints all along.
func TestAStopDoublesNothing(t *testing.T) {
	for seed := range uint64(12) {
		onStand(t, func(s *stand) {
			out := &plain{lines: bag{}}
			rng := randOf(seed)
			env := s.env(2, 10*time.Millisecond)
			for range 3 {
				if seed%2 == 0 {
					env.EnableCheckpointing(10*time.Millisecond, weir.AtLeastOnce)
				}
				env.Checkpoints().Storage, env.Checkpoints().Savepoints = "/checkpoints", "/savepoints"
				buildTotals(env, stage{records: 1000, rate: 2000, faults: s.faults, sink: out})
				r := s.start(env)
				pass(time.Duration(rng.IntN(150)) * time.Millisecond)
				from := r.savepoint(checkpoint.Suspend, drawFormat(rng))
				r.finish()
				env = s.resumed(1+rng.IntN(4), 10*time.Millisecond, from)
			}
			buildTotals(env, stage{records: 1000, faults: s.faults, sink: out})
			s.start(env).finish()
			if wrong := differences(out.lines, wantTotals(1000), false); len(wrong) > 0 {
				s.Errorf("seed %d: %v", seed, fmt.Sprint(wrong))
			}
		})
	}
}
