package rest

import (
	"math"
	"strconv"

	"github.com/weirstream/weir/internal/stats"
)

// Summary sums up values.
type Summary struct {
	Min  int64      `json:"min"`
	Max  int64      `json:"max"`
	Avg  int64      `json:"avg"`
	P50  Percentile `json:"p50"`
	P90  Percentile `json:"p90"`
	P95  Percentile `json:"p95"`
	P99  Percentile `json:"p99"`
	P999 Percentile `json:"p999"`
}

// Percentile is written as Java writes a double: 7.0, and "NaN" where there is none.
type Percentile float64

// MarshalJSON implements json.Marshaler.
func (p Percentile) MarshalJSON() ([]byte, error) {
	f := float64(p)
	switch {
	case math.IsNaN(f):
		return []byte(`"NaN"`), nil
	case f == math.Trunc(f):
		return strconv.AppendFloat(nil, f, 'f', 1, 64), nil
	}
	return strconv.AppendFloat(nil, f, 'f', -1, 64), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Percentile) UnmarshalJSON(b []byte) error {
	if string(b) == `"NaN"` {
		*p = Percentile(math.NaN())
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	*p = Percentile(f)
	return err
}

// statsOf sums up; without values all is 0, and the percentiles are none.
func statsOf(q stats.Quantity) Summary {
	b := extremesOf(q)
	p := q.Percentiles(0.5, 0.9, 0.95, 0.99, 0.999)
	b.P50, b.P90, b.P95, b.P99, b.P999 = Percentile(p[0]), Percentile(p[1]), Percentile(p[2]), Percentile(p[3]), Percentile(p[4])
	return b
}

// extremesOf are the stats without percentiles: Flink has none of the subtasks of a checkpoint.
func extremesOf(q stats.Quantity) Summary {
	none := Percentile(math.NaN())
	return Summary{Min: q.Min, Max: q.Max, Avg: q.Mean(), P50: none, P90: none, P95: none, P99: none, P999: none}
}

// summarise sums up the completed checkpoints.
func summarise(s stats.Summary) summaryBody {
	return summaryBody{Checkpointed: statsOf(s.New), State: statsOf(s.State), Duration: statsOf(s.Duration), Buffered: buffered(s.State.Count),
		Processed: statsOf(s.Processed), Persisted: statsOf(s.Persisted)}
}

// buffered is a number that Flink has not counted for long: n zeros, which one sums up as well as many.
func buffered(n int) Summary { return statsOf(stats.Of(make([]int64, min(n, 1))...)) }
