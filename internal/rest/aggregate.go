package rest

import "github.com/weirstream/weir/internal/stats"

// aggregated sums up the subtasks of a vertex, by the names of their fields.
type aggregated struct {
	Metrics   map[string]aggregate `json:"metrics"`
	Durations map[string]aggregate `json:"status-duration"`
}

// aggregate sums up one number of all subtasks.
type aggregate struct {
	Min    int64 `json:"min"`
	Max    int64 `json:"max"`
	Avg    int64 `json:"avg"`
	Sum    int64 `json:"sum"`
	Median int64 `json:"median"`
	P25    int64 `json:"p25"`
	P75    int64 `json:"p75"`
	P95    int64 `json:"p95"`
}

func aggregateOf(values []int64) aggregate {
	q := stats.Of(values...)
	p := q.Percentiles(0.5, 0.25, 0.75, 0.95)
	return aggregate{Min: q.Min, Max: q.Max, Avg: q.Mean(), Sum: q.Sum, Median: int64(p[0]), P25: int64(p[1]), P75: int64(p[2]), P95: int64(p[3])}
}

// aggregatedOf leaves out durations of states that no subtask has come into.
func aggregatedOf(subtasks []subtaskBody) aggregated {
	metrics, durations := map[string][]int64{}, map[string][]int64{}
	for i := range subtasks {
		for name, v := range subtasks[i].Metrics.numbers() {
			metrics[name] = append(metrics[name], v)
		}
		for state, v := range subtasks[i].Durations {
			if v >= 0 {
				durations[state] = append(durations[state], v)
			}
		}
	}
	return aggregated{Metrics: aggregateAll(metrics), Durations: aggregateAll(durations)}
}

func aggregateAll(values map[string][]int64) map[string]aggregate {
	all := map[string]aggregate{}
	for name, v := range values {
		all[name] = aggregateOf(v)
	}
	return all
}

// numbers are the metrics that are numbers, by their names in JSON.
func (m ioMetrics) numbers() map[string]int64 {
	return map[string]int64{"read-bytes": m.ReadBytes, "write-bytes": m.WriteBytes, "read-records": m.ReadRecords, "write-records": m.WriteRecords,
		"accumulated-backpressured-time": m.Backpressured, "accumulated-idle-time": m.Idle, "accumulated-busy-time": int64(m.Busy)}
}
