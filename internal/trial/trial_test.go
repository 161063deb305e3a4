package trial

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// setting is an integer of the environment.
func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
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

// TestTrials runs plans by seed: a sample, or as many as TRIALS says from SEED on (make soak).
func TestTrials(t *testing.T) {
	count := uint64(150)
	if raceEnabled {
		count = 25
	}
	if testing.Short() {
		count = 20
	}
	count = setting(t, "TRIALS", count)
	first := setting(t, "SEED", uint64(time.Now().UnixNano()%1_000_000))
	var sum tally
	for seed := first; seed < first+count; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			p := draw(seed)
			tr, err := inBubble(t, p)
			if err != nil {
				t.Errorf("%v\nof the plan: %v\nstruck: %+v\nthe last of the log:\n\t%s\nrepeat with: TRIALS=1 SEED=%d go test ./internal/trial -run TestTrials",
					err, p, tr.faults.struck, tr.log.last(40), seed)
			}
			sum.enter(tr)
		})
	}
	t.Logf("%d trials from seed %d on: %v", count, first, sum)
}

// tally is what trials have met.
type tally struct {
	crashes, cancels, stops, failedStops, forks, struck, refused, exact int
	overtaken                                                           int64
}

func (s *tally) enter(tr *trial) {
	s.crashes += tr.crashes
	s.overtaken += tr.overtaken
	s.cancels += tr.cancels
	s.stops += tr.stops
	s.failedStops += tr.failedStops
	s.forks += tr.forks
	s.struck += len(tr.faults.struck)
	s.refused += tr.refused
	if !tr.AtLeastOnce {
		s.exact++
	}
}

func (s tally) String() string {
	return fmt.Sprintf("%d exactly once, %d crashes that left %d records in flight, %d cancellations, %d stops with savepoints and %d that failed when they were complete, "+
		"%d restores of other savepoints, %d faults of user code, %d refused parallelisms", s.exact, s.crashes, s.overtaken, s.cancels, s.stops, s.failedStops,
		s.forks, s.struck, s.refused)
}
