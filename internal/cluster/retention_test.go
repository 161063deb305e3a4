package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/storage"
)

// The table of docs/semantics.md: what becomes of a job's checkpoints, and of a savepoint that it has claimed, by how it ends.
func TestRetention(t *testing.T) {
	ends := map[string]func(h *Handle, trouble *atomic.Bool){
		"FINISHED": func(*Handle, *atomic.Bool) {},
		"CANCELED": func(h *Handle, _ *atomic.Bool) { h.Cancel() },
		"FAILED":   func(_ *Handle, trouble *atomic.Bool) { trouble.Store(true) },
	}
	for retention, kept := range map[string][]string{
		"RETAIN_ON_CANCELLATION":      {"CANCELED", "FAILED"},
		"DELETE_ON_CANCELLATION":      {"FAILED"},
		"NO_EXTERNALIZED_CHECKPOINTS": nil,
	} {
		for status, end := range ends {
			synctest.Test(t, func(t *testing.T) {
				p := &program{ledger: newLedger()}
				fs, location := snapshotted(t, p, checkpoint.Savepoint)
				var trouble atomic.Bool
				p.trouble = func(string, int64) error {
					if trouble.Load() {
						return errBoom
					}
					return nil
				}
				j := p.job(t, fs, from(location), claimSetting, "execution.checkpointing.num-retained=1000", "restart-strategy.type=none",
					"execution.checkpointing.externalized-checkpoint-retention="+retention)
				j.Started = func(h *Handle) {
					time.AfterFunc(50*time.Millisecond, func() { end(h, &trouble) })
				}
				before := chks(t, fs) // of the life before: they were left behind
				r, _ := Run(context.WithoutCancel(t.Context()), j)
				own, want := len(chks(t, fs))-len(before), slices.Contains(kept, status)
				if r.Status != status || own > 0 != want || exists(fs, location) != want {
					t.Errorf("%s, %s: %v, and %d checkpoints are left, and what was claimed: %v", retention, status, r.Status, own, exists(fs, location))
				}
				for _, at := range before {
					if !exists(fs, path.Join(at, "_metadata")) {
						t.Errorf("%s was left behind, and is deleted", at)
					}
				}
			})
		}
	}
}

const orStartSetting = "execution.state-recovery.path=latest-or-start"

// Lives of one job that begin by -s latest-or-start or by the path of a savepoint, claimed or not, and end by a crash at any moment, a
// cancellation or a stop: the ledger is exact for the history that the last start has chosen, a savepoint that nobody has claimed
// is never touched.
func TestLivesThatBeginByPath(t *testing.T) {
	back, claims := 0, 0
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			l := &livesByPath{t: t, rng: rand.New(rand.NewPCG(seed, 21)), seed: seed}
			l.run()
			back, claims = back+l.back, claims+l.claims
		})
	}
	if back < 5 || claims < 2 { // how many there are depends on random first delays
		t.Errorf("only %d lives began with a savepoint, and %d claimed one", back, claims)
	}
}

type livesByPath struct {
	t    *testing.T
	rng  *rand.Rand
	seed uint64
	fs   *storage.MemFS
	p    *program
	// savepoints with the ledger as it was when each was complete: what it has committed by then is what a start from it goes on from.
	savepoints   []saved
	back, claims int
}

type saved struct {
	location string
	ledger   *ledger
}

func (l *livesByPath) run() {
	l.fs, l.p = storage.Memory(), &program{ledger: newLedger()}
	start := []string{orStartSetting}
	for lives := 1; ; lives++ {
		if lives > 60 {
			l.t.Fatalf("seed %d: the job does not end", l.seed)
		}
		if l.live(append(start, fmt.Sprintf("execution.checkpointing.num-retained=%d", 1+l.rng.IntN(2)))) {
			break
		}
		l.check()
		start = []string{orStartSetting}
		if n := len(l.savepoints); n > 0 && l.rng.IntN(4) == 0 {
			start = l.goBack(l.rng.IntN(n))
		}
	}
	if err := l.p.ledger.check(numbersTotal); err != nil {
		l.t.Fatalf("seed %d: %v", l.seed, err)
	}
	l.check()
}

// goBack has the next life begin from a savepoint: the world outside goes back too.
func (l *livesByPath) goBack(i int) []string {
	s := l.savepoints[i]
	l.p = &program{ledger: s.ledger.clone()}
	if l.rng.IntN(2) == 0 {
		l.back++
		return []string{from(s.location)}
	}
	l.claims++
	l.savepoints = slices.Delete(l.savepoints, i, i+1) // it may be gone any time from now on
	return []string{from(s.location), claimSetting}
}

// live runs the job until it ends, or the process crashes; true: it has FINISHED for good.
func (l *livesByPath) live(settings []string) bool {
	ctx, cancel := context.WithCancel(l.t.Context())
	defer cancel()
	var handle *Handle
	j := l.p.job(l.t, l.fs, settings...)
	j.Started = func(h *Handle) { handle = h }
	type outcome struct {
		r   Result
		err error
	}
	ended := make(chan outcome, 1)
	go func() {
		r, err := Run(ctx, j)
		ended <- outcome{r, err}
	}()
	time.Sleep(time.Duration(l.rng.IntN(60_000)) * time.Microsecond)
	switch l.rng.IntN(4) {
	case 0: // a savepoint, then a crash somewhere behind
		synctest.Wait()
		if handle != nil {
			if a, err := handle.TriggerSavepoint(l.t.Context(), plain); err == nil {
				l.savepoints = append(l.savepoints, saved{location: a.Location, ledger: l.p.ledger.clone()})
			}
		}
		time.Sleep(time.Duration(l.rng.IntN(30_000)) * time.Microsecond)
	case 1: // a stop; it may fail where the job has ended meanwhile
		synctest.Wait()
		if handle != nil {
			if _, err := handle.TriggerSavepoint(l.t.Context(), jobmaster.Savepoint{Kind: checkpoint.Suspend}); err == nil {
				o := <-ended
				if o.r.Status != "FINISHED" {
					l.t.Fatalf("seed %d: %+v, %v", l.seed, o.r, o.err)
				}
				return false
			}
		}
	}
	select {
	case o := <-ended:
		if o.err != nil {
			l.t.Fatalf("seed %d: %v: %v", l.seed, settings, o.err)
		}
		return true
	default:
	}
	after, crashed := &program{ledger: l.p.ledger.clone()}, l.fs.CrashClone(l.rng)
	cancel()
	<-ended
	l.fs, l.p = crashed, after
	return false
}

// check looks for the savepoints that are not claimed.
func (l *livesByPath) check() {
	for _, s := range l.savepoints {
		if _, _, err := storage.ReadMetadata(l.fs, s.location); err != nil {
			l.t.Fatalf("seed %d: a savepoint that nobody has claimed: %v", l.seed, err)
		}
	}
}
