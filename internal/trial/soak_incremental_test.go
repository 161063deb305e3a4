package trial

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"
)

// TestSoakIncremental takes a checkpoint each 100 ms of a keyed count: a small one for two seconds; in make soak-incremental one of a million
// keys at 100,000 records/s. No checkpoint fails, the records keep their pace, and the process stays under 300 MB.
func TestSoakIncremental(t *testing.T) {
	s := &countSoak{seconds: 2, rate: 20_000, keys: 20_000, interval: 50 * time.Millisecond, errEvery: 24 * time.Hour}
	large := os.Getenv("SOAK_INCREMENTAL") != ""
	if large {
		*s = countSoak{seconds: setting(t, "SOAK_SECONDS", 600), rate: 100_000, keys: 1_000_000, interval: 100 * time.Millisecond, errEvery: 24 * time.Hour}
	}
	s.dir, s.out = t.TempDir(), newLedger()
	openFiles() // the first look opens what the runtime keeps open
	before := s.look()
	samples, err := s.run()
	if err != nil {
		t.Fatal(err)
	}
	after := s.settled(before)
	wrong := errors.Join(s.out.balance(s.reference()), s.nothingLeft(before, after))
	if large {
		wrong = errors.Join(wrong, s.held(samples))
	}
	if s.seconds >= 600 { // the keys fill up for the first ten seconds, and what is alive with them
		wrong = errors.Join(wrong, steady(samples))
	}
	verdict := "PASSED"
	if wrong != nil {
		verdict = "FAILED"
		t.Error(wrong)
	}
	c := s.handle.Status().Checkpoints
	s.say("%s: %d records in %v, %d checkpoints completed, %d failed; %v; in the end %v", verdict, s.out.records.Load(), s.took, c.Completed, c.Failed, trends(samples), after)
	if last := c.History; large && len(last) > 0 {
		size := last[len(last)-1].Sizes
		s.say("the last checkpoint: %d bytes new of %d", size.New, size.State)
	}
}

// held demands what a short interval must not cost.
func (s *countSoak) held(samples []sample) error {
	var wrong []error
	if f := s.handle.Status().Checkpoints.LatestFailed; f != nil { // what was not begun any more, at the job's end, is none
		wrong = append(wrong, fmt.Errorf("checkpoint %d failed: %v: %s", f.ID, f.Reason, f.Explanation))
	}
	if wanted := time.Duration(s.seconds) * time.Second; s.took > wanted+wanted/20+5*time.Second {
		wrong = append(wrong, fmt.Errorf("the records of %v took %v", wanted, s.took))
	}
	const residentMost = 300 << 10 // in KB
	for _, x := range samples {
		if x.rssKB > residentMost {
			wrong = append(wrong, fmt.Errorf("the process had %d MB", x.rssKB>>10))
			break
		}
	}
	return errors.Join(wrong...)
}
