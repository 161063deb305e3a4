package checkpoint

import (
	"flag"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "simulate this seed only, and tell everything with -v")
	faultFlag = flag.Int("fault", int(noFault), "with -seed: plant the fault of this number")
	stepsFlag = flag.Int("steps", 400_000, "simulate about so many steps")
)

// TestSimulation simulates jobs until -steps is reached. In the long mode (environment SIM_SECONDS, and SEED to begin with)
// it goes on for so long on all processors, fails if something rare never happened, and sums up in its last line.
func TestSimulation(t *testing.T) {
	if *seedFlag != 0 {
		w := newWorld(*seedFlag, fault(*faultFlag), marks{})
		w.verbose = testing.Verbose()
		if err := w.run(); err != nil {
			t.Fatal(err)
		}
		return
	}
	if seconds := os.Getenv("SIM_SECONDS"); seconds != "" {
		simulateLong(t, seconds)
		return
	}
	total := simulate(t, 1, 1, func(sum *tally) bool { return sum.steps < *stepsFlag }, marks{})
	t.Logf("%+v", total)
}

// simulate runs seeds while goOn says so, and tells how to repeat one that fails.
func simulate(t *testing.T, seed, stride uint64, goOn func(*tally) bool, m marks) tally {
	var sum tally
	for failed := 0; goOn(&sum) && failed < 3; seed += stride {
		w := newWorld(seed, noFault, m)
		err := w.run()
		sum.add(w.tally)
		if err != nil {
			failed++
			t.Errorf("%v\nrepeat with: go test ./internal/checkpoint -run TestSimulation -v -seed=%d", err, seed)
		}
	}
	return sum
}

func simulateLong(t *testing.T, seconds string) {
	n, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		t.Fatalf("SIM_SECONDS=%s: %v", seconds, err)
	}
	first := uint64(1)
	if s := os.Getenv("SEED"); s != "" {
		if first, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("SEED=%s: %v", s, err)
		}
	}
	until := time.Now().Add(time.Duration(n * float64(time.Second)))
	workers := runtime.GOMAXPROCS(0)
	type result struct {
		tally tally
		marks marks
	}
	results := make(chan result)
	for i := range workers {
		go func() { // ends with the time, and is waited for below
			r := result{marks: marks{}}
			r.tally = simulate(t, first+uint64(i), uint64(workers), func(*tally) bool { return time.Now().Before(until) }, r.marks)
			results <- r
		}()
	}
	var sum tally
	all := marks{}
	for range workers {
		r := <-results
		sum.add(r.tally)
		for what, hits := range r.marks {
			all[what] += hits
		}
	}
	reportLong(t, sum, all)
}

func reportLong(t *testing.T, sum tally, all marks) {
	const enough = 10_000_000 // steps, in which the rarest is to be expected ten times
	for _, what := range slices.Sorted(slices.Values(rare)) {
		t.Logf("%9d  %s", all[what], what)
		if all[what] == 0 && sum.steps > enough {
			t.Errorf("never happened: %s; the simulation says nothing about it", what)
		}
	}
	if t.Failed() {
		t.Logf("simulated %d steps, %d checkpoints, %d restores: FAILED", sum.steps, sum.checkpoints, sum.restores)
		return
	}
	t.Logf("simulated %d jobs, %d steps (%d of the machines), %d checkpoints (%d aborted), %d savepoints, %d unaligned snapshots, "+
		"%d restores, %d masters: all held", sum.runs, sum.steps, sum.machineSteps, sum.checkpoints, sum.aborts, sum.savepoints,
		sum.unaligned, sum.restores, sum.masters)
}

// TestPlantedFaults plants bugs and has the simulation find them. Without SIM_SECONDS only those that are found soon.
func TestPlantedFaults(t *testing.T) {
	long := os.Getenv("SIM_SECONDS") != ""
	soon := []fault{notifyBeforeStored, blockNotLifted, eventsNotHeld, cancelForgotten, goneTakenForFinished}
	for f := noFault + 1; f < faults; f++ {
		if !long && !slices.Contains(soon, f) {
			continue
		}
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			var sum tally
			start := time.Now()
			for seed := uint64(1); time.Since(start) < time.Minute; seed++ {
				w := newWorld(seed, f, marks{})
				err := w.run()
				sum.add(w.tally)
				if err != nil {
					t.Logf("found after %d steps, %v (-fault=%d): %v", sum.steps, time.Since(start).Round(time.Millisecond), f, err)
					return
				}
			}
			t.Errorf("not found within %d steps", sum.steps)
		})
	}
}
