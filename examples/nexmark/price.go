package main

import "math"

// price is random, from 1 to 10^6 and evenly by magnitude, in cents.
func price(n int64, k int) int64 {
	unit := float64(random(n, k)>>11) * 0x1p-53
	return int64(exp(unit*priceMagnitude*math.Ln10)*100 + 0.5) // 10^x is e^(x ln 10), and what is positive is rounded down
}

// exp is e^x for x from 0 to 700: as exact as math.Exp, and more than twice as fast, which every bid waits for.
//
//	x = k ln2/128 + r, |r| < ln2/256
//	e^x = 2^(k/128) e^r
//
// The first factor is one of 128 with another exponent; of the second's series five terms are exact enough.
func exp(x float64) float64 {
	const (
		high  = 0x1.62e42fefap-8      // ln2/128, its leading bits: times k it is exact
		low   = 0x1.cf79abc9e3b3ap-47 // and the rest
		round = 0x1.8p52              // a number to which this is added has no bits left below 1, and is its own last bits
	)
	rounded := x*(128*math.Log2E) + round
	k := math.Float64bits(rounded)
	rounded -= round
	r := x - rounded*high - rounded*low
	square := r * r
	series := r + square*(1./2+r*(1./6)) + square*square*(1./24+r*(1./120))
	scale := math.Float64frombits(powers[k%128] + k<<45)
	return scale + scale*series
}

// powers are the bits of 2^(i/128), less what i adds to the exponent.
var powers = func() (all [128]uint64) {
	for i := range all {
		all[i] = math.Float64bits(math.Exp2(float64(i)/128)) - uint64(i)<<45
	}
	return all
}()
