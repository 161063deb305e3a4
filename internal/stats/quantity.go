package stats

import (
	"math"
	"slices"
)

// window is how many values Flink's percentiles are taken over.
const window = 10_000

// Quantity sums up values. The zero Quantity has none.
type Quantity struct {
	Min, Max, Sum int64
	Count         int
	last          []int64 // oldest first; copies of a Quantity share it: values are appended, and left behind, never changed
}

// add takes a value. A negative one is none.
func (q *Quantity) add(v int64) {
	if v < 0 {
		return
	}
	if q.Count == 0 || v < q.Min {
		q.Min = v
	}
	q.Max = max(q.Max, v)
	q.Sum += v
	q.Count++
	if q.last = append(q.last, v); len(q.last) > window {
		q.last = q.last[1:]
	}
}

// Of sums up values.
func Of(values ...int64) (q Quantity) {
	for _, v := range values {
		q.add(v)
	}
	return q
}

// Mean is 0 of no values.
func (q Quantity) Mean() int64 {
	if q.Count == 0 {
		return 0
	}
	return q.Sum / int64(q.Count)
}

// Percentiles are those of the last 10,000 values; of none NaN. Each p is between 0 and 1.
func (q Quantity) Percentiles(ps ...float64) []float64 {
	sorted := slices.Sorted(slices.Values(q.last))
	all := make([]float64, len(ps))
	for i, p := range ps {
		all[i] = at(sorted, p)
	}
	return all
}

// at is a percentile as Flink's library estimates it: between the two values at its place among n+1.
func at(sorted []int64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	place := p * float64(len(sorted)+1)
	i := int(place)
	switch {
	case i < 1:
		return float64(sorted[0])
	case i >= len(sorted):
		return float64(sorted[len(sorted)-1])
	}
	low, high := float64(sorted[i-1]), float64(sorted[i])
	return low + (place-float64(i))*(high-low)
}
