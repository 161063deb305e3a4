package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// What users are told of savepoints on a running job, one test a sentence.

// during runs a job, and does something with it 100 ms later. The job is cancelled when that returns, if it has not ended.
func during(t *testing.T, j Job, do func(h *Handle)) (Result, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	j.Started = func(h *Handle) {
		go func() {
			defer close(done)
			defer cancel()
			time.Sleep(100 * time.Millisecond)
			do(h)
		}()
	}
	r, err := Run(ctx, j)
	if err == nil || j.Started != nil && r.ID != "" {
		<-done
	}
	return r, err
}

// checkEach tells what is wrong with the counts, of however many numbers: those of each digit go from 1 up, each once.
func (l *ledger) checkEach() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen, most := map[string]int{}, map[string]int{}
	for _, lines := range l.transactions {
		for _, line := range lines {
			digit, n, _ := strings.Cut(line, ": ")
			count, _ := strconv.Atoi(n)
			seen[line]++
			most[digit] = max(most[digit], count)
		}
	}
	for digit, n := range most {
		for i := range n {
			if line := fmt.Sprintf("%s: %d", digit, i+1); seen[line] != 1 {
				return fmt.Errorf("%q is there %d times", line, seen[line])
			}
		}
	}
	return nil
}

// jobWithoutDir is a job with no directory for savepoints.
func (p *program) jobWithoutDir(t *testing.T, fs storage.FS) Job {
	layer := config.Layer{}
	layer.Set(config.CheckpointInterval.Key, 20*time.Millisecond, "test")
	j := p.job(t, fs)
	var err error
	if j.Config, err = config.Build(layer); err != nil {
		t.Fatal(err)
	}
	return j
}

func savepoint(t *testing.T, h *Handle, s jobmaster.Savepoint) jobmaster.Answer {
	t.Helper()
	a, err := h.TriggerSavepoint(t.Context(), s)
	if err != nil {
		t.Error(err)
	}
	return a
}

// exists tells whether something is there.
func exists(fs storage.FS, name string) bool {
	_, err := fs.Stat(name)
	return !errors.Is(err, iofs.ErrNotExist)
}

var plain = jobmaster.Savepoint{Kind: checkpoint.Savepoint, Format: checkpoint.Native}

// A savepoint goes to the directory that its user names, else to the configured one; without either the message names the option and
// the key.
func TestWhereASavepointGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fs := &program{ledger: newLedger(), endless: true}, storage.Memory()
		_, _ = during(t, p.job(t, fs), func(h *Handle) {
			named := plain
			named.Target = "/elsewhere"
			for target, s := range map[string]jobmaster.Savepoint{"/savepoints": plain, "/elsewhere": named} {
				a := savepoint(t, h, s)
				like := regexp.MustCompile(fmt.Sprintf("^%s/savepoint-%s-[0-9a-f]{12}$", target, h.ID[:6]))
				if !like.MatchString(a.Location) || !exists(fs, a.Location+"/_metadata") {
					t.Errorf("it lies at %s", a.Location)
				}
			}
		})
		_, _ = during(t, p.jobWithoutDir(t, fs), func(h *Handle) {
			for _, s := range []jobmaster.Savepoint{plain, {Kind: checkpoint.Suspend}, {Kind: checkpoint.Savepoint, Cancel: true}} {
				_, err := h.TriggerSavepoint(t.Context(), s)
				if err == nil {
					t.Error("a savepoint without a directory")
					continue
				}
				for _, part := range []string{"execution.checkpointing.savepoint-dir", "--savepointPath", "-s :targetDirectory"} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%v: it does not say %s", err, part)
					}
				}
			}
			if s := h.Status(); s.Status.String() != "RUNNING" || !s.Report.Checkpoints.Scheduling {
				t.Errorf("after that the job is %v, scheduling %v", s.Status, s.Report.Checkpoints.Scheduling)
			}
		})
	})
}

// A directory that cannot be made or written is told with its path, the job goes on, and so do its checkpoints.
func TestASavepointsDirectoryCannotBeMade(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	full := storage.Faulty(storage.Disk(), &storage.Rule{Op: storage.OpMkdir, Path: "savepoint-*", Err: iofs.ErrPermission})
	p := &program{ledger: newLedger(), endless: true}
	j := p.job(t, full, "execution.checkpointing.dir="+filepath.Join(dir, "ckpt"))
	_, _ = during(t, j, func(h *Handle) {
		for target, want := range map[string]string{
			filepath.Join(file, "sp"): "not a directory",
			filepath.Join(dir, "sp"):  "permission denied",
			"s3://bucket/sp":          "the scheme s3: is not supported",
		} {
			for _, s := range []jobmaster.Savepoint{{Kind: checkpoint.Savepoint}, {Kind: checkpoint.Suspend}, {Kind: checkpoint.Savepoint, Cancel: true}} {
				s.Target = target
				_, err := h.TriggerSavepoint(t.Context(), s)
				if d := (*checkpoint.DeclineError)(nil); !errors.As(err, &d) || d.Reason != checkpoint.IOFailure || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v", target, err)
				}
			}
		}
		if s := h.Status(); s.Restarts != 0 || !s.Report.Checkpoints.Scheduling {
			t.Errorf("%d restarts, scheduling %v", s.Restarts, s.Report.Checkpoints.Scheduling)
		}
		if _, err := h.TriggerCheckpoint(t.Context(), false); err != nil {
			t.Error(err)
		}
	})
}

// A savepoint can be moved: all its files are named relatively.
func TestASavepointIsRelocatable(t *testing.T) {
	dir := t.TempDir()
	settings := []string{"execution.checkpointing.dir=" + dir + "/ckpt", "execution.checkpointing.savepoint-dir=" + dir + "/sp",
		"execution.checkpointing.data-inline-threshold=0"}
	p := &program{ledger: newLedger()}
	r, a, err := stopped(t, p, storage.Disk(), jobmaster.Savepoint{Kind: checkpoint.Suspend, Format: checkpoint.Native}, settings...)
	if err != nil || r.Status != "FINISHED" {
		t.Fatalf("%+v, %v", r, err)
	}
	moved := filepath.Join(dir, "moved", "here")
	if err := errors.Join(os.MkdirAll(filepath.Dir(moved), 0o700), os.Rename(a.Location, moved)); err != nil {
		t.Fatal(err)
	}
	r, err = Run(t.Context(), p.job(t, storage.Disk(), append(settings, "execution.state-recovery.path="+moved)...))
	wantDone(t, p, r, err)
}

// Two savepoints asked for at once are both taken, one after the other; a stop does not give up a savepoint that was asked for before.
func TestTwoSavepointsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fs := &program{ledger: newLedger()}, storage.Memory()
		r, err := during(t, p.job(t, fs), func(h *Handle) {
			var group sync.WaitGroup
			answers := make([]jobmaster.Answer, 3)
			for i := range answers {
				s := plain
				if i == 2 {
					s.Kind = checkpoint.Suspend
				}
				group.Go(func() { answers[i] = savepoint(t, h, s) })
				synctest.Wait()
			}
			group.Wait()
			for i, a := range answers {
				m, location, err := storage.ReadMetadata(fs, a.Location)
				if err != nil || m.ID != a.ID || location != a.Location || i > 0 && a.ID <= answers[i-1].ID {
					t.Errorf("%+v, %v", a, err)
				}
			}
		})
		if err != nil || r.Status != "FINISHED" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// A second stop, while one is under way, is told that the job stops already; the first one is not harmed.
func TestTwoStopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fs := &program{ledger: newLedger()}, storage.Memory()
		r, err := during(t, p.job(t, fs), func(h *Handle) {
			var group sync.WaitGroup
			group.Go(func() { savepoint(t, h, jobmaster.Savepoint{Kind: checkpoint.Suspend}) })
			synctest.Wait()
			_, err := h.TriggerSavepoint(t.Context(), jobmaster.Savepoint{Kind: checkpoint.Drain})
			if err == nil || !strings.Contains(err.Error(), "has stopped with savepoint") && !errors.Is(err, jobmaster.ErrEnded) &&
				!strings.Contains(err.Error(), "nothing can be saved any more") {
				t.Errorf("a second stop: %v", err)
			}
			group.Wait()
		})
		if err != nil || r.Status != "FINISHED" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// Who does not wait any longer leaves the savepoint running: it completes.
func TestATimeoutLeavesTheSavepointRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := storage.Faulty(storage.Memory(), &storage.Rule{Op: storage.OpLink, Path: "_metadata", Hook: func(_ storage.Op, name string) {
			if strings.HasPrefix(name, "/savepoints/") {
				time.Sleep(5 * time.Second)
			}
		}})
		p := &program{ledger: newLedger(), endless: true}
		_, _ = during(t, p.job(t, slow), func(h *Handle) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := h.TriggerSavepoint(ctx, plain); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			time.Sleep(10 * time.Second)
			entries, err := slow.List("/savepoints")
			if err != nil || len(entries) != 1 || !exists(slow, path.Join("/savepoints", entries[0].Name, "_metadata")) {
				t.Errorf("there is %v, %v", entries, err)
			}
		})
	})
}

// When a cancel-with-savepoint or a stop fails, the job goes on, with its checkpoints.
func TestAFailedStopLeavesTheJobRunning(t *testing.T) {
	for _, s := range []jobmaster.Savepoint{{Kind: checkpoint.Savepoint, Cancel: true}, {Kind: checkpoint.Suspend}} {
		synctest.Test(t, func(t *testing.T) {
			fs := storage.Faulty(storage.Memory(), &storage.Rule{Op: storage.OpMkdir, Path: "savepoint-*", Count: 1, Err: iofs.ErrPermission})
			p := &program{ledger: newLedger(), endless: true}
			var log bytes.Buffer
			j := p.job(t, fs)
			j.Log = slog.New(slog.NewTextHandler(&log, nil))
			_, _ = during(t, j, func(h *Handle) {
				if _, err := h.TriggerSavepoint(t.Context(), s); err == nil {
					t.Error("a savepoint without a directory")
				}
				before := h.Status().Checkpoints.Completed
				time.Sleep(200 * time.Millisecond)
				if s := h.Status(); s.Checkpoints.Completed < before+3 || s.Restarts != 0 {
					t.Errorf("%d checkpoints after %d, %d restarts", s.Checkpoints.Completed, before, s.Restarts)
				}
				savepoint(t, h, s)
			})
			if s.Cancel {
				wantLines(t, log.String(), "Triggering cancel-with-savepoint for job", "Stopped the checkpoint scheduler of job",
					"Failed to take the cancel-with-savepoint for job", "Started the checkpoint scheduler of job", "Triggering checkpoint",
					"Triggering cancel-with-savepoint for job", "Savepoint stored in /savepoints/savepoint-", "The job is CANCELED.")
			} else {
				wantLines(t, log.String(), "Triggering stop-with-savepoint for job", "Stopped the checkpoint scheduler of job",
					"Started the checkpoint scheduler of job", "Failed to trigger or complete checkpoint", "Triggering stop-with-savepoint for job",
					"(type=SUSPEND, CANONICAL) @", "Completed checkpoint", "Stopping checkpoint coordinator for job", "The job is FINISHED.")
			}
		})
	}
}

// wantLines demands that a log has lines with these texts, in this order.
func wantLines(t *testing.T, log string, texts ...string) {
	t.Helper()
	rest := log
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			t.Fatalf("the log does not say %q behind what comes before:\n%s", text, log)
		}
		rest = after
	}
}

// The log of a savepoint: one line a step, in Flink's words.
func TestTheLogOfASavepoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fs := &program{ledger: newLedger(), endless: true}, storage.Memory()
		var log bytes.Buffer
		j := p.job(t, fs, "execution.checkpointing.interval=8760h")
		j.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.MessageKey || a.Key == slog.LevelKey {
				return a
			}
			return slog.Attr{}
		}}))
		_, _ = during(t, j, func(h *Handle) { savepoint(t, h, plain) })
		want := regexp.MustCompile(`^level=INFO msg="The job is RUNNING."
level=INFO msg="Triggering savepoint for job [0-9a-f]{32}."
level=INFO msg="Triggering checkpoint 1 \(type=SAVEPOINT, NATIVE\) @ \d{12,13} for job [0-9a-f]{32}."
level=INFO msg="Completed checkpoint 1 for job [0-9a-f]{32} \(\d+ bytes, checkpointDuration=\d+ ms, finalizationTime=\d+ ms\)."
level=INFO msg="The job is CANCELLING."
level=INFO msg="Stopping checkpoint coordinator for job [0-9a-f]{32}."
level=INFO msg="The job is CANCELED."
$`)
		if !want.MatchString(log.String()) {
			t.Errorf("it says\n%s", log.String())
		}
	})
}

// The savepoint by which a job stops is complete, but a commit behind it fails: the job is FAILED with no restart, the message is Flink's
// and names the savepoint, and -s latest goes on from it.
func TestTheCommitBehindAStopFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fs := &program{ledger: newLedger()}, storage.Memory()
		var stopping atomic.Bool
		p.trouble = func(where string, _ int64) error {
			if where == "commit" && stopping.Load() {
				return errBoom
			}
			return nil
		}
		r, err := during(t, p.job(t, fs), func(h *Handle) {
			stopping.Store(true)
			_, err := h.TriggerSavepoint(t.Context(), jobmaster.Savepoint{Kind: checkpoint.Suspend})
			if stopped := (*job.StoppedError)(nil); !errors.As(err, &stopped) || !errors.Is(err, errBoom) {
				t.Errorf("who asked is told %v", err)
			}
		})
		if r.Status != "FAILED" || r.Restarts != 0 || r.Savepoint == "" || !strings.Contains(err.Error(), "A savepoint has been created at: "+r.Savepoint) ||
			!strings.Contains(err.Error(), "might have uncommitted transactions") {
			t.Errorf("%+v, %v", r, err)
		}
		p.trouble = nil
		r, err = Run(t.Context(), p.job(t, fs, latestSetting))
		wantDone(t, p, r, err)
	})
}

// Drain is the end of all data: MAX watermark, and everything committed before the job is FINISHED. Suspend is not: what is left over
// comes with the next run.
func TestDrainAndSuspend(t *testing.T) {
	for _, kind := range []checkpoint.Kind{checkpoint.Drain, checkpoint.Suspend} {
		synctest.Test(t, func(t *testing.T) {
			p, fs := &program{ledger: newLedger(), endless: true}, storage.Memory()
			r, a, err := stopped(t, p, fs, jobmaster.Savepoint{Kind: kind})
			if err != nil || r.Status != "FINISHED" {
				t.Fatalf("%+v, %v", r, err)
			}
			if err := p.ledger.checkEach(); err != nil || p.ledger.len() == 0 {
				t.Errorf("%v: %d are committed: %v", kind, p.ledger.len(), err)
			}
			m, _, err := storage.ReadMetadata(fs, a.Location)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range m.Operators {
				for _, s := range o.Subtasks {
					if s.Ended != (m.Kind == snapshot.Drain) {
						t.Errorf("%v: %s %d: ended %v", kind, o.Name, s.Index, s.Ended)
					}
				}
			}
		})
	}
}
