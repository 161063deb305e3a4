package main

import (
	"math"
	"testing"
)

// TestPrice compares with what Flink's side computes.
func TestPrice(t *testing.T) {
	for n := range int64(1_000_000) {
		unit := float64(random(n, 4)>>11) * 0x1p-53
		if got, want := price(n, 4), int64(math.Floor(math.Exp(unit*priceMagnitude*math.Ln10)*100+0.5)); got != want {
			t.Fatalf("the price at event %d is %d, want %d", n, got, want)
		}
	}
}

func TestExp(t *testing.T) {
	for x := 0.0; x < 700; x += 0.0101 {
		if got, want := exp(x), math.Exp(x); math.Abs(got/want-1) > 0x1p-51 {
			t.Errorf("exp(%v) = %v, want %v", x, got, want)
		}
	}
}
