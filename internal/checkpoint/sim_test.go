package checkpoint

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "simulate this seed only, and tell everything with -v")
	faultFlag = flag.Int("fault", int(noFault), "with -seed: plant the fault of this number")
	stepsFlag = flag.Int("steps", 1_000_000, "simulate about so many steps")
)

// summary is the last line of a long run (make sim); "": this is none, or it failed.
var summary string

func TestMain(m *testing.M) {
	code := m.Run()
	if summary != "" {
		if code != 0 {
			summary = "FAILED, see above: " + strings.TrimSuffix(summary, ": all held")
		}
		fmt.Println(summary)
	}
	os.Exit(code)
}

// TestSimulation simulates jobs until -steps is reached. In the long mode (environment SIM_SECONDS, and SEED to begin with)
// it goes on for so long on all processors. It fails if something rare never happened that such a run must come to.
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
	m := marks{}
	total := simulate(t, 1, 1, func(sum *tally) bool { return sum.steps < *stepsFlag }, m)
	t.Log(&total)
	checkMarks(t, total.steps, m)
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

func checkMarks(t *testing.T, steps int, m marks) {
	for _, what := range m.missing(steps) {
		t.Errorf("never happened in %d steps: %s; the simulation says nothing about it", steps, what)
	}
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
	for _, what := range slices.Sorted(maps.Keys(all)) {
		t.Logf("%9d  %s", all[what], what)
	}
	checkMarks(t, sum.steps, all)
	summary = fmt.Sprintf("simulated %v: all held", &sum)
}

// TestPlantedFaults plants bugs and has the simulation find each within a minute. Without SIM_SECONDS, all but those that are
// found late.
func TestPlantedFaults(t *testing.T) {
	long := os.Getenv("SIM_SECONDS") != ""
	for f := noFault + 1; f < faults; f++ {
		if !long && slices.Contains(late, f) {
			continue
		}
		t.Run(strings.ReplaceAll(f.String(), " ", "_"), func(t *testing.T) {
			var sum tally
			start := time.Now()
			for seed := uint64(1); time.Since(start) < time.Minute; seed++ {
				w := newWorld(seed, f, marks{})
				err := w.run()
				sum.add(w.tally)
				if err != nil {
					t.Logf("found after %d steps, %v, with -seed=%d -fault=%d: %v",
						sum.steps, time.Since(start).Round(time.Millisecond), seed, f, err)
					return
				}
			}
			t.Errorf("not found within %d steps", sum.steps)
		})
	}
}
