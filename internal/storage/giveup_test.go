package storage

import "testing"

// TestWhatIsGoneIsNotGivenUp: a retirement and a sweep delete what was claimed at once, and the record stays one that can be read.
func TestWhatIsGoneIsNotGivenUp(t *testing.T) {
	r := record{largest: 3, newest: 3, first: 1, run: 1, origin: origin{mode: noOrigin}}
	r.giveUp("/sp/one")
	if err := r.validate(); err != nil || r.origin.mode != noOrigin {
		t.Errorf("%+v: %v", r.origin, err)
	}
	r.origin = origin{mode: claimed, id: 1, location: "/sp/one"}
	if r.giveUp("/sp/two"); r.origin.mode != claimed {
		t.Error("another one is given up")
	}
	if r.giveUp("/sp/one"); r.origin.mode != givenUp || r.validate() != nil {
		t.Errorf("%+v", r.origin)
	}
}
