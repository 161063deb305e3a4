package rest

import (
	"math"
	"slices"
	"strconv"

	"github.com/weirstream/weir/internal/jobmaster"
)

// statsBody sums up values.
type statsBody struct {
	Min  int64      `json:"min"`
	Max  int64      `json:"max"`
	Avg  int64      `json:"avg"`
	P50  percentile `json:"p50"`
	P90  percentile `json:"p90"`
	P95  percentile `json:"p95"`
	P99  percentile `json:"p99"`
	P999 percentile `json:"p999"`
}

// percentile is written as Java writes a double: 7.0, and "NaN" where there is none.
type percentile float64

// MarshalJSON implements json.Marshaler.
func (p percentile) MarshalJSON() ([]byte, error) {
	f := float64(p)
	switch {
	case math.IsNaN(f):
		return []byte(`"NaN"`), nil
	case f == math.Trunc(f):
		return strconv.AppendFloat(nil, f, 'f', 1, 64), nil
	}
	return strconv.AppendFloat(nil, f, 'f', -1, 64), nil
}

// values are to be summed up.
type values []int64

// stats sums up; without values all is 0, and the percentiles are none.
func (v values) stats() statsBody {
	if len(v) == 0 {
		none := percentile(math.NaN())
		return statsBody{P50: none, P90: none, P95: none, P99: none, P999: none}
	}
	sorted := slices.Sorted(slices.Values(v))
	var sum int64
	for _, x := range sorted {
		sum += x
	}
	return statsBody{Min: sorted[0], Max: sorted[len(sorted)-1], Avg: sum / int64(len(sorted)), P50: at(sorted, 0.5), P90: at(sorted, 0.9),
		P95: at(sorted, 0.95), P99: at(sorted, 0.99), P999: at(sorted, 0.999)}
}

// extremes are the stats without percentiles: Flink has none of the subtasks of a checkpoint.
func (v values) extremes() statsBody {
	s := v.stats()
	none := percentile(math.NaN())
	s.P50, s.P90, s.P95, s.P99, s.P999 = none, none, none, none, none
	return s
}

// at is a percentile as Flink's library estimates it: between the two values at its place among n+1.
func at(sorted []int64, p float64) percentile {
	place := p * float64(len(sorted)+1)
	i := int(place)
	switch {
	case i < 1:
		return percentile(sorted[0])
	case i >= len(sorted):
		return percentile(sorted[len(sorted)-1])
	}
	low, high := float64(sorted[i-1]), float64(sorted[i])
	return percentile(low + (place-float64(i))*(high-low))
}

// summarise sums up the completed checkpoints. Flink's least, largest and mean are over all that ever were; these are over the last
// ones, as the percentiles.
func summarise(sizes []jobmaster.SizeStats) summaryBody {
	var bytes, durations, persisted, zeros values
	for _, s := range sizes {
		bytes, durations = append(bytes, s.Bytes), append(durations, s.Duration.Milliseconds())
		persisted, zeros = append(persisted, s.InFlight), append(zeros, 0)
	}
	none := zeros.stats()
	return summaryBody{Checkpointed: bytes.stats(), State: bytes.stats(), Duration: durations.stats(), Buffered: none, Processed: none,
		Persisted: persisted.stats()}
}
