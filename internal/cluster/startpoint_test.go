package cluster

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/stats"
	"github.com/weirstream/weir/internal/storage"
)

// What users are told of where a job goes on from, and of whose the snapshot is, one test a sentence.

const claimSetting = "execution.state-recovery.claim-mode=CLAIM"

func from(location string) string { return "execution.state-recovery.path=" + location }

// crashAfter runs a job for a while, and returns the world as a crash leaves it.
func crashAfter(t *testing.T, p *program, fs *storage.MemFS, life time.Duration, settings ...string) *storage.MemFS {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := Run(ctx, p.job(t, fs, settings...))
		ended <- err
	}()
	time.Sleep(life)
	synctest.Wait()
	crashed := fs.CrashClone(nil)
	cancel()
	if err := <-ended; !errors.Is(err, ErrCanceled) {
		t.Fatalf("the job that was to crash: %v", err)
	}
	return crashed
}

// jobDir is the directory of the job's checkpoints.
func jobDir(t *testing.T, fs storage.FS) string {
	t.Helper()
	entries, err := fs.List("/checkpoints")
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	return path.Join("/checkpoints", entries[0].Name)
}

// chks are the job's own checkpoints, oldest first.
func chks(t *testing.T, fs storage.FS) (all []string) {
	t.Helper()
	dir := jobDir(t, fs)
	entries, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name, "chk-") && exists(fs, path.Join(dir, e.Name, "_metadata")) {
			all = append(all, path.Join(dir, e.Name))
		}
	}
	return all
}

func remove(t *testing.T, fs storage.FS, dir string) {
	t.Helper()
	entries, err := fs.List(dir)
	for _, e := range entries {
		err = errors.Join(err, fs.Remove(path.Join(dir, e.Name)))
	}
	if err := errors.Join(err, fs.Remove(dir)); err != nil {
		t.Fatal(err)
	}
}

// wantLatest demands that -s latest would take a checkpoint.
func wantLatest(t *testing.T, fs storage.FS, location string) {
	t.Helper()
	d, err := storage.OpenJobDir(fs, "/checkpoints", IDOf("numbers"))
	if err != nil {
		t.Fatal(err)
	}
	if _, at, err := d.Latest(); err != nil || at != location {
		t.Errorf("the latest is %s, %v; want %s", at, err, location)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// A newest checkpoint that somebody deleted by hand is missed: the one before is not taken, unless a person names it.
func TestTheNewestIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{ledger: newLedger()}
		fs := crashAfter(t, p, storage.Memory(), 100*time.Millisecond, "execution.checkpointing.num-retained=2")
		all := chks(t, fs)
		if len(all) != 2 {
			t.Fatalf("there are %v", all)
		}
		remove(t, fs, all[1])
		for _, setting := range []string{latestSetting, "execution.state-recovery.path=latest-or-start"} {
			_, err := Run(t.Context(), p.job(t, fs, setting))
			if err == nil || !strings.Contains(err.Error(), "somebody has deleted it") || !strings.Contains(err.Error(), "name the checkpoint") {
				t.Errorf("%s: %v", setting, err)
			}
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel() // before it takes a checkpoint of its own
		if _, err := Run(canceled, p.job(t, fs, from(all[0]))); !errors.Is(err, ErrCanceled) {
			t.Errorf("by its path: %v", err)
		}
		wantLatest(t, fs, all[0])
	})
}

// Who starts from an older checkpoint keeps to it: a crash before the first checkpoint of the new run does not bring the newer back, nor
// do two.
func TestAnOlderOneByItsPathHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{ledger: newLedger()}
		fs := crashAfter(t, p, storage.Memory(), 100*time.Millisecond, "execution.checkpointing.num-retained=3")
		all := chks(t, fs)
		older, newest := all[0], all[2]
		fs = crashAfter(t, p, fs, 10*time.Millisecond, from(older), "execution.checkpointing.interval=8760h")
		fs = crashAfter(t, p, fs, 10*time.Millisecond, latestSetting, "execution.checkpointing.interval=8760h")
		wantLatest(t, fs, older)
		fs = crashAfter(t, p, fs, 100*time.Millisecond, latestSetting, "execution.checkpointing.num-retained=3")
		if now := chks(t, fs); len(now) != 6 || now[0] == older && now[2] != newest {
			t.Errorf("what was left behind was deleted: there were %v, there are %v", all, now)
		}
		if !exists(fs, older) || !exists(fs, newest) {
			t.Error("what was left behind was deleted")
		}
	})
}

// A restore that is refused leaves no trace: the latest is what it was.
func TestARefusedStartChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{ledger: newLedger()}
		fs := crashAfter(t, p, storage.Memory(), 100*time.Millisecond, "execution.checkpointing.num-retained=2")
		all := chks(t, fs)
		for want, change := range map[string]func(n *graph.Node){
			"--allowNonRestoredState":   func(n *graph.Node) { n.UID = "renamed" },
			`state "splits" (oplist): `: func(n *graph.Node) { n.Schemas[0].Value = `"double"` },
		} {
			other := p.job(t, fs, from(all[0]), claimSetting)
			other.Started = func(*Handle) { t.Errorf("it is started, where is %s", want) }
			change(other.Graph.Vertices[0].Nodes[0])
			if _, err := Run(t.Context(), other); err == nil || !strings.Contains(err.Error(), "numbers") || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
		}
		wantLatest(t, fs, all[1])
		if exists(fs, path.Join(all[0], "_claimed")) {
			t.Error("it was claimed")
		}
	})
}

// The whole snapshot is looked at before anything runs: a file that is missing or cut off is refused with its path.
func TestABrokenSnapshotIsRefusedBeforeAnythingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, damage := range map[string]func(fs storage.FS, file string) error{
			"missing": func(fs storage.FS, file string) error { return fs.Remove(file) },
			"cut off": func(fs storage.FS, file string) error {
				f, err := fs.Create(file + "x")
				return errors.Join(err, f.Close(), fs.Rename(file+"x", file))
			},
		} {
			p, fs := &program{ledger: newLedger()}, storage.Memory()
			_, a, _ := stopped(t, p, fs, jobmaster.Savepoint{Kind: checkpoint.Suspend, Format: checkpoint.Native},
				"execution.checkpointing.data-inline-threshold=0")
			entries, err := fs.List(a.Location)
			if err != nil {
				t.Fatal(err)
			}
			file := path.Join(a.Location, entries[len(entries)-1].Name)
			if err := damage(fs, file); err != nil {
				t.Fatal(err)
			}
			for _, setting := range []string{latestSetting, from(a.Location)} {
				j := p.job(t, fs, setting)
				j.Started = func(*Handle) { t.Errorf("%s, %s: the job was started", what, setting) }
				_, err = Run(t.Context(), j)
				if !errors.Is(err, storage.ErrDamaged) || !strings.Contains(err.Error(), file) {
					t.Errorf("%s, %s: %v", what, setting, err)
				}
			}
		}
	})
}

// NO_CLAIM: the snapshot's files are never touched, however the job ends, and its first checkpoint is a full one.
func TestWhatIsNotClaimedIsNotTouched(t *testing.T) {
	for _, kind := range []checkpoint.Kind{checkpoint.Savepoint, checkpoint.Checkpoint} {
		synctest.Test(t, func(t *testing.T) {
			p := &program{ledger: newLedger()}
			fs, location := snapshotted(t, p, kind)
			before, err := fs.List(location)
			if err != nil {
				t.Fatal(err)
			}
			var first stats.Checkpoint
			r, err := during(t, p.job(t, fs, from(location)), func(h *Handle) {
				first = h.Status().Checkpoints.History[0]
				<-h.Done()
			})
			if err != nil || r.Status != "FINISHED" || first.Kind != checkpoint.FullCheckpoint {
				t.Fatalf("%+v, %v; the first checkpoint was a %v", r, err, first.Kind)
			}
			after, err := fs.List(location)
			if err != nil || len(after) != len(before) {
				t.Errorf("there was %v, there is %v, %v", before, after, err)
			}
		})
	}
}

// snapshotted runs a job until it has taken a savepoint or a checkpoint, and returns the world after a crash behind that.
func snapshotted(t *testing.T, p *program, kind checkpoint.Kind) (*storage.MemFS, string) {
	t.Helper()
	var location string
	var crashed *storage.MemFS
	fs := storage.Memory()
	_, _ = during(t, p.job(t, fs), func(h *Handle) {
		var a jobmaster.Answer
		var err error
		if kind == checkpoint.Savepoint {
			a, err = h.TriggerSavepoint(t.Context(), plain)
		} else {
			a, err = h.TriggerCheckpoint(t.Context(), false)
		}
		if err != nil {
			t.Error(err)
		}
		location, crashed = a.Location, fs.CrashClone(nil)
	})
	p.ledger = newLedger() // what was committed after the savepoint is not in this world
	return crashed, location
}

// CLAIM: the snapshot is the job's, also a savepoint: it goes when it is subsumed, not before; with num-retained 2, with the second.
func TestWhatIsClaimedGoesWhenItIsSubsumed(t *testing.T) {
	for _, kind := range []checkpoint.Kind{checkpoint.Savepoint, checkpoint.Checkpoint} {
		for _, retained := range []int{1, 2} {
			synctest.Test(t, func(t *testing.T) {
				p := &program{ledger: newLedger(), endless: true}
				fs, location := snapshotted(t, p, kind)
				settings := []string{from(location), claimSetting, "execution.checkpointing.interval=8760h",
					"execution.checkpointing.num-retained=" + map[int]string{1: "1", 2: "2"}[retained]}
				_, _ = during(t, p.job(t, fs, settings...), func(h *Handle) {
					for n := range 2 {
						if !exists(fs, path.Join(location, "_metadata")) {
							t.Errorf("it is gone before checkpoint %d", n+1)
						}
						if _, err := h.TriggerCheckpoint(t.Context(), false); err != nil {
							t.Error(err)
						}
						synctest.Wait()
						if n+1 == retained {
							break
						}
					}
					if exists(fs, location) {
						t.Errorf("it is there after %d checkpoints", retained)
					}
				})
			})
		}
	}
}

// The claim outlives a crash: before the first checkpoint -s latest goes on from what was claimed, and when that is subsumed it goes.
func TestAClaimOutlivesACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{ledger: newLedger(), endless: true}
		fs, location := snapshotted(t, p, checkpoint.Savepoint)
		rare := "execution.checkpointing.interval=8760h"
		fs = crashAfter(t, p, fs, 10*time.Millisecond, from(location), claimSetting, rare)
		fs = crashAfter(t, p, fs, 10*time.Millisecond, latestSetting, rare)
		wantLatest(t, fs, location)
		two := "execution.checkpointing.num-retained=2"
		_, _ = during(t, p.job(t, fs, latestSetting, rare, two), func(h *Handle) {
			if _, err := h.TriggerCheckpoint(t.Context(), false); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			fs = fs.CrashClone(nil)
		})
		if !exists(fs, location) {
			t.Fatal("it is gone too early")
		}
		_, _ = during(t, p.job(t, fs, latestSetting, rare, two), func(h *Handle) {
			if _, err := h.TriggerCheckpoint(t.Context(), false); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if exists(fs, location) {
				t.Error("it is left")
			}
		})
	})
}

// What was claimed goes, or stays, with the job's own checkpoints when the job ends: by the retention.
func TestWhatIsClaimedEndsWithTheJob(t *testing.T) {
	for retention, kept := range map[string]bool{"RETAIN_ON_CANCELLATION": true, "DELETE_ON_CANCELLATION": false, "NO_EXTERNALIZED_CHECKPOINTS": false} {
		synctest.Test(t, func(t *testing.T) {
			p := &program{ledger: newLedger(), endless: true}
			fs, location := snapshotted(t, p, checkpoint.Savepoint)
			_, _ = during(t, p.job(t, fs, from(location), claimSetting, "execution.checkpointing.interval=8760h",
				"execution.checkpointing.externalized-checkpoint-retention="+retention), func(*Handle) {})
			if exists(fs, location) != kept {
				t.Errorf("%s: it is there: %v", retention, !kept)
			}
			if kept {
				wantLatest(t, fs, location)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		p := &program{ledger: newLedger()}
		fs, location := snapshotted(t, p, checkpoint.Savepoint)
		r, err := Run(t.Context(), p.job(t, fs, from(location), claimSetting))
		if err != nil || r.Status != "FINISHED" || exists(fs, location) {
			t.Errorf("%+v, %v; it is there: %v", r, err, exists(fs, location))
		}
	})
}

// Two jobs cannot claim one snapshot; the second is told whose it is. It may start from it all the same, and is warned.
func TestTwoJobsClaimOneSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{ledger: newLedger(), endless: true}
		fs, location := snapshotted(t, p, checkpoint.Savepoint)
		_, _ = during(t, p.job(t, fs, from(location), claimSetting, "execution.checkpointing.interval=8760h"), func(h *Handle) {
			other := p.job(t, fs, from(location), claimSetting)
			other.ID = base.JobID(strings.Repeat("a", 32))
			_, err := Run(t.Context(), other)
			if taken := (*storage.ClaimedError)(nil); !errors.As(err, &taken) || taken.Job != h.ID {
				t.Errorf("got %v", err)
			}
			var log bytes.Buffer
			other = p.job(t, fs, from(location))
			other.ID, other.Log = base.JobID(strings.Repeat("a", 32)), slog.New(slog.NewTextHandler(&log, nil))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if _, err := Run(ctx, other); !errors.Is(err, ErrCanceled) {
				t.Error(err)
			}
			wantLines(t, log.String(), "belongs to another job, which may delete it at any time", "Starting job aaaa", "Reset the checkpoint ID of job aaaa")
		})
	})
}

// Ids go on after the restored snapshot's, also of another job's, and never repeat.
func TestIDsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{ledger: newLedger(), endless: true}
		fs, location := snapshotted(t, p, checkpoint.Savepoint)
		m, _, err := storage.ReadMetadata(fs, location)
		if err != nil {
			t.Fatal(err)
		}
		other := p.job(t, fs, from(location), "execution.checkpointing.interval=8760h")
		var log bytes.Buffer
		other.ID, other.Log = base.JobID(strings.Repeat("a", 32)), slog.New(slog.NewTextHandler(&log, nil))
		_, _ = during(t, other, func(h *Handle) {
			a, err := h.TriggerCheckpoint(t.Context(), false)
			if err != nil || a.ID != m.ID+1 {
				t.Errorf("after %d comes %d, %v; %+v", m.ID, a.ID, err, log.String())
			}
		})
	})
}

// With pipeline.sources.pause-until-first-checkpoint the sources of a restored job read nothing before the first checkpoint is triggered;
// those of a job that starts empty do not wait.
func TestSourcesWaitForTheFirstCheckpoint(t *testing.T) {
	pause := "pipeline.sources.pause-until-first-checkpoint=true"
	synctest.Test(t, func(t *testing.T) {
		p := &program{ledger: newLedger(), endless: true}
		var counted atomic.Int64
		p.trouble = func(where string, _ int64) error {
			if where == "count" {
				counted.Add(1)
			}
			return nil
		}
		fs, location := snapshotted(t, p, checkpoint.Savepoint)
		for _, c := range []struct {
			settings []string
			waits    bool
		}{
			{[]string{pause, from(location)}, true},
			{[]string{from(location)}, false},
			{[]string{pause}, false},
		} {
			counted.Store(0)
			settings := append(c.settings, "execution.checkpointing.interval=8760h", "execution.checkpointing.min-pause=1min")
			var first time.Duration
			began := time.Now()
			j := p.job(t, fs, settings...)
			_, _ = during(t, j, func(h *Handle) {
				synctest.Wait()
				if (counted.Load() == 0) != c.waits {
					t.Errorf("%v: %d numbers are counted after 100 ms", c.settings, counted.Load())
				}
				if !c.waits {
					return
				}
				for h.Status().Checkpoints.Completed == 0 {
					time.Sleep(time.Second)
				}
				first = time.Since(began)
				if counted.Load() == 0 || first < time.Minute || first > 2*time.Minute+time.Second {
					t.Errorf("after the first checkpoint, %v after the start, %d numbers are counted", first, counted.Load())
				}
			})
		}
	})
}
