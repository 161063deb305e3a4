package weir

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestEveryCheckpointIsAConsistentCut runs three sources of different speeds into one count, keeps all checkpoints, and then
// resumes from each of them: whatever it was, each key is counted to the number of its records. A record on the wrong side of
// a barrier in any channel would be missing, or there twice.
func TestEveryCheckpointIsAConsistentCut(t *testing.T) {
	const keys, each = 7, 3000
	dir := t.TempDir()
	run := func(from string, rate float64) map[int64]int64 {
		env := NewTestEnv().Parallelism(2)
		c := env.EnableCheckpointing(15*time.Millisecond, ExactlyOnce)
		c.Storage, c.Retained = dir, 100
		if from != "" {
			env.Set("execution.state-recovery.path", from)
		}
		source := func(uid string, speed float64) Stream[int64] {
			return env.From(FromSlice(numbers(each)).Rate(rate * speed)).UID(uid)
		}
		last := map[int64]int64{}
		source("a", 1).Union(source("b", 1.5), source("c", 3)).
			KeyBy(func(v int64) int64 { return v % keys }).
			Process(&countToTheEnd{}).UID("count").
			Global().To(lastCounts{last}).Parallelism(1)
		execute(t, env)
		return last
	}
	want := map[int64]int64{}
	for _, v := range numbers(each) {
		want[v%keys] += 3
	}
	check := func(what string, got map[int64]int64) {
		t.Helper()
		for k, n := range want {
			if got[k] != n {
				t.Errorf("%s: key %d was counted to %d, want %d", what, k, got[k], n)
			}
		}
	}
	stop := keepCheckpoints(t, dir)
	check("the first run", run("", 6000))
	kept := stop()
	if len(kept) < 3 { // some twenty, where the machine is free
		t.Fatalf("only %d checkpoints were taken", len(kept))
	}
	for i, path := range kept {
		got := run(path, 0)
		if newest := i == len(kept)-1; newest && len(got) == 0 {
			continue // it was taken after the end of the data: nothing is left to count
		}
		check(filepath.Base(path), got)
	}
}

// countToTheEnd counts the records of each key, and tells the counts when time ends: however few records a resumed run has left
// to read, it tells of all keys.
type countToTheEnd struct {
	N Value[int64] `state:"n"`
}

func (f *countToTheEnd) Process(ctx *KeyedContext[int64], _ int64, _ Out[keyTotal]) error {
	f.N.Set(f.N.Get() + 1)
	ctx.EventTimer(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC))
	return nil
}

func (f *countToTheEnd) OnTimer(ctx *KeyedContext[int64], _ Timer, out Out[keyTotal]) error {
	out.Emit(keyTotal{Key: ctx.Key(), Count: f.N.Get()})
	return nil
}

// lastCounts is a sink of the largest count of each key.
type lastCounts struct{ into map[int64]int64 }

func (s lastCounts) Writer(WriterContext) (Writer[keyTotal], error) { return s, nil }

func (s lastCounts) Write(v keyTotal, _ time.Time) error {
	s.into[v.Key] = max(s.into[v.Key], v.Count)
	return nil
}
func (s lastCounts) Flush(bool) error { return nil }
func (s lastCounts) Close() error     { return nil }

// keepCheckpoints copies the checkpoints that appear in dir, until stop, which returns them oldest first: a job that has
// FINISHED deletes its own.
func keepCheckpoints(t *testing.T, dir string) (stop func() []string) {
	to := t.TempDir()
	quit, done := make(chan struct{}), make(chan []string)
	go func() {
		var kept []string
		seen := map[string]bool{}
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			found, _ := filepath.Glob(filepath.Join(dir, "*", "chk-*", "_metadata"))
			for _, m := range found {
				at := filepath.Dir(m)
				copied := filepath.Join(to, filepath.Base(at))
				if !seen[at] && os.CopyFS(copied, os.DirFS(at)) == nil {
					if _, err := os.Stat(filepath.Join(copied, "_metadata")); err == nil { // else it was just being deleted
						kept = append(kept, copied)
					}
				}
				seen[at] = true
			}
			select {
			case <-tick.C:
			case <-quit:
				done <- kept
				return
			}
		}
	}()
	return func() []string {
		close(quit)
		kept := <-done
		slices.SortFunc(kept, func(a, b string) int { return checkpointOf(a) - checkpointOf(b) })
		return kept
	}
}

// checkpointOf is the id of the checkpoint in a directory chk-N.
func checkpointOf(path string) int {
	var n int
	fmt.Sscanf(filepath.Base(path), "chk-%d", &n)
	return n
}
