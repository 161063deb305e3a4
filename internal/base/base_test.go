package base

import (
	"math"
	"testing"
	"time"
)

func TestRangesCoverAllKeyGroupsInOrder(t *testing.T) {
	for _, p := range []int{1, 2, 3, 5, 7, 127, 128, 1000, 32767, 32768} {
		next := 0
		for i := range p {
			r := RangeOf(i, p)
			if r.First != next || r.Last < r.First {
				t.Fatalf("parallelism %d: subtask %d has %v, want it to begin at %d", p, i, r, next)
			}
			next = r.Last + 1
			least, largest := r.Hashes()
			if OwnerOf(least, p) != i || OwnerOf(largest, p) != i {
				t.Fatalf("parallelism %d: the ends of subtask %d's range belong to %d and %d", p, i, OwnerOf(least, p), OwnerOf(largest, p))
			}
		}
		if next != KeyGroups {
			t.Fatalf("parallelism %d: the ranges end at %d", p, next)
		}
	}
}

func TestIntersect(t *testing.T) {
	if r, ok := (KeyGroupRange{0, 42}).Intersect(KeyGroupRange{43, 85}); ok {
		t.Errorf("neighbours intersect in %v", r)
	}
	if r, ok := (KeyGroupRange{0, 42}).Intersect(KeyGroupRange{40, 85}); !ok || r != (KeyGroupRange{40, 42}) {
		t.Errorf("got %v %v", r, ok)
	}
}

func TestAttemptsOfALaterRunAreLarger(t *testing.T) {
	a, b := FirstAttempt(1, math.MaxInt32), FirstAttempt(2, 0)
	if a >= b || b.Run() != 2 || a.Number() != math.MaxInt32 || b.String() != "2.0" {
		t.Errorf("%v %v", a, b)
	}
}

func TestTimeOf(t *testing.T) {
	now := time.Date(2026, 11, 30, 1, 2, 3, 4, time.UTC)
	if got := TimeOf(now).Time(); !got.Equal(now) {
		t.Errorf("got %v", got)
	}
	if TimeOf(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)) != EndOfTime {
		t.Error("a far future is not the end of time")
	}
	if past := TimeOf(time.Time{}); past <= NoTime || past > TimeOf(time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the zero time is %d", past)
	}
	if !NoTime.Time().IsZero() {
		t.Error("NoTime is not the zero time")
	}
}
