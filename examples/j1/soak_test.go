package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestSoak kills the job at random moments, with everything else at random too, and goes on at another parallelism. It makes
// one such trial; for as long as SOAK_SECONDS says, with it (make soak). SEED is the first trial's, which a failure names.
func TestSoak(t *testing.T) {
	t.Parallel()
	seconds := number(t, "SOAK_SECONDS", 0)
	first := number(t, "SEED", uint64(time.Now().UnixNano()%1_000_000))
	began := time.Now()
	for seed := first; ; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { soak(t, rand.New(rand.NewPCG(seed, 0))) })
		if t.Failed() {
			t.Fatalf("repeat with: SEED=%d go test ./examples/j1 -run TestSoak (the moments of the kills will differ)", seed)
		}
		if took := time.Since(began); took.Seconds() >= float64(seconds) {
			t.Logf("%d trials in %.0f s, from seed %d on", seed-first+1, took.Seconds(), first)
			return
		}
	}
}

func number(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s: %v", name, text, err)
	}
	return n
}

// soak is one trial.
func soak(t *testing.T, random *rand.Rand) {
	dir := t.TempDir()
	records := 200 + random.IntN(3000)
	job := func(restore ...string) *process {
		return start(t, append(restore, "-dir", dir, "-expect", "-records", fmt.Sprint(records), "-p", fmt.Sprint(1+random.IntN(7)),
			"-rate", fmt.Sprint(300+random.IntN(3000)), "-D", fmt.Sprintf("execution.checkpointing.interval=%dms", 10+random.IntN(120)),
			"-D", fmt.Sprint("execution.checkpointing.unaligned=", random.IntN(2) == 0),
			"-D", fmt.Sprintf("execution.checkpointing.aligned-checkpoint-timeout=%dms", 5*random.IntN(2)),
			"-D", fmt.Sprint("weir.exchange.batch-records=", []int{1, 1024}[random.IntN(2)]))...)
	}
	faults := []string{"-keys", fmt.Sprint(1 + random.IntN(20)), "-fail-at", fmt.Sprint(random.IntN(2 * records)), "-panic-at", fmt.Sprint(random.IntN(2 * records))}
	restore := faults
	for kills := random.IntN(5); kills > 0; kills-- {
		p := job(restore...)
		until := time.Now().Add(time.Duration(random.IntN(700)) * time.Millisecond)
		if !p.killWhen(t, func() bool { return newest(dir) > 0 && time.Now().After(until) }) {
			return // it was done before, and has compared its output
		}
		restore = append([]string{"-s", "latest"}, faults...)
	}
	job(restore...).finish(t)
}
