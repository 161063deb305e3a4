package storage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"testing"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// The crash test: a life of a job (checkpoints, an aborted one, savepoints, retention, sweeps, an orderly end) is cut after each
// of its file operations. Then either the machine crashes, leaving any part of what was not synced, or only the process dies. The
// next run must find what it may rely on:
//
//   - the newest checkpoint that was answered "published", or a newer one of which the answer never came;
//   - all its state, byte for byte;
//   - ids and runs that were never used before.
//
// And it must be able to go on; its own life is cut as well.

var errCut = errors.New("cut")

// history is what a job's master knows for certain, over all its runs.
type history struct {
	used  base.CheckpointID // ids that something may carry
	acked base.CheckpointID // published and answered
	asked base.CheckpointID // publishing was asked for
	run   int64
}

// live runs a job until an operation fails or its life is over.
func (h *history) live(fsys FS, lives int) error {
	d, err := OpenJobDir(fsys, "/ckpt", testJob)
	if err != nil {
		return err
	}
	if d.Run() <= h.run || d.LargestID() < h.used {
		return fmt.Errorf("run %d after run %d, largest id %d after %d was used", d.Run(), h.run, d.LargestID(), h.used)
	}
	h.run = d.Run()
	if err := h.restore(d); err != nil {
		return err
	}
	next := d.LargestID()
	for _, kind := range []snapshot.Kind{snapshot.Checkpoint, snapshot.Suspend, "aborted", snapshot.Savepoint, snapshot.Checkpoint, snapshot.Suspend}[:2*lives] {
		next++
		if err := h.checkpoint(d, next, kind); err != nil {
			return err
		}
		if err := h.retain(d); err != nil {
			return err
		}
	}
	return errors.Join(d.SetEndState("SUSPENDED"), d.Close())
}

// restore checks what the run begins with: nothing that looks like a checkpoint is less than one, old ones and savepoints too.
func (h *history) restore(d *JobDir) error {
	found, err := d.find()
	for _, c := range found {
		if _, err := d.read(c); err != nil && !errors.Is(err, errUnfinished) {
			return err
		}
	}
	if err != nil {
		return err
	}
	m, location, err := d.Latest()
	switch {
	case errors.Is(err, ErrNone) && h.acked == 0:
		return nil
	case errors.Is(err, errCut):
		return err
	case err != nil:
		return fmt.Errorf("acked %d, asked %d: %w", h.acked, h.asked, err)
	case m.ID < h.acked || m.ID > h.asked:
		return fmt.Errorf("restored checkpoint %d, but %d is published and %d was asked for", m.ID, h.acked, h.asked)
	}
	if err := verify(d.Open, m, location); err != nil {
		return err
	}
	h.acked = m.ID
	return nil
}

func (h *history) checkpoint(d *JobDir, id base.CheckpointID, kind snapshot.Kind) error {
	if kind == "aborted" {
		location, err := d.CreateLocation(id, snapshot.Checkpoint, "")
		if err != nil {
			return err
		}
		h.used = id
		if _, err := writeState(d.Writer(location, smallFiles), id, snapshot.Checkpoint, d.Run()); err != nil {
			return err
		}
		return d.Discard(location)
	}
	if kind != snapshot.Savepoint {
		h.asked = id
	}
	location, err := take(d, id, kind, "/savepoints")
	if location != "" {
		h.used = id
	}
	if err != nil {
		return err
	}
	if kind != snapshot.Savepoint {
		h.acked = id
	}
	return nil
}

// retain keeps one, and deletes a savepoint that the job once stopped with like a checkpoint (as one that was claimed).
func (h *history) retain(d *JobDir) error {
	all, err := d.Completed()
	if err != nil {
		return err
	}
	for i, c := range all {
		if i == len(all)-1 {
			continue
		}
		if err := d.Discard(c.Location); err != nil {
			return err
		}
	}
	_, err = d.Sweep()
	return err
}

// cutAfter lives on a file system whose operations all fail after the first n. What comes back is the number of operations done
// when the life was not cut.
func (h *history) cutAfter(m *MemFS, n, lives int) (done int, err error) {
	f := Faulty(m, &Rule{Hook: func(Op, string) { done++ }, Skip: 0, Count: n}, &Rule{Skip: 0, Err: errCut})
	err = h.live(f, lives)
	return done, err
}

func TestEveryCut(t *testing.T) {
	total := 0
	for n := 1; ; n++ {
		m, h := Memory(), &history{}
		_, err := h.cutAfter(m, n, 3)
		if err == nil {
			total = n
			break
		}
		if !errors.Is(err, errCut) {
			t.Fatalf("cut after %d operations: %v", n, err)
		}
		for seed := range uint64(4) {
			after := m.CrashClone(crashRNG(uint64(n), seed))
			again := *h
			checkNextRun(t, fmt.Sprintf("machine crash after %d operations, seed %d", n, seed), after, &again)
		}
		m.ReleaseLocks()
		checkNextRun(t, fmt.Sprintf("process death after %d operations", n), m, h)
	}
	if total < 200 {
		t.Errorf("a life has only %d operations", total)
	}
}

// crashRNG: seed 0 loses all that was not synced.
func crashRNG(n, seed uint64) *rand.Rand {
	if seed == 0 {
		return nil
	}
	return rand.New(rand.NewPCG(n, seed))
}

// checkNextRun lives on, is cut somewhere and crashes, and lives again to the end.
func checkNextRun(t *testing.T, what string, m *MemFS, h *history) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(h.used), uint64(len(what))))
	if _, err := h.cutAfter(m, 1+rng.IntN(150), 1); err != nil && !errors.Is(err, errCut) {
		t.Fatalf("%s: %v", what, err)
	}
	after := m.CrashClone(rng)
	if err := h.live(after, 1); err != nil {
		t.Fatalf("%s, then a crash of the next run: %v", what, err)
	}
	for _, kept := range []string{"/ckpt/" + string(testJob) + "/" + sharedName, "/ckpt/" + string(testJob) + "/" + taskOwnedName} {
		if _, err := after.Stat(path.Clean(kept)); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}
