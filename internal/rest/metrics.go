package rest

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/stats"
)

// metricBody is a metric; in the list of all of them it has no value.
type metricBody struct {
	ID    string  `json:"id"`
	Value *string `json:"value,omitempty"`
}

// jobMetrics are Flink's metrics of a job that Weir has.
var jobMetrics = []struct {
	id    string
	value func(s jobmaster.Status) string
}{
	{"numRestarts", func(s jobmaster.Status) string { return strconv.Itoa(s.Restarts) }},
	{"uptime", func(s jobmaster.Status) string { return millisOf(uptime(s)) }},
	{"totalNumberOfCheckpoints", func(s jobmaster.Status) string {
		return strconv.Itoa(s.Checkpoints.Total())
	}},
	{"numberOfInProgressCheckpoints", func(s jobmaster.Status) string { return strconv.Itoa(s.Checkpoints.InProgress) }},
	{"numberOfCompletedCheckpoints", func(s jobmaster.Status) string { return strconv.Itoa(s.Checkpoints.Completed) }},
	{"numberOfFailedCheckpoints", func(s jobmaster.Status) string { return strconv.Itoa(s.Checkpoints.Failed) }},
	{"lastCompletedCheckpointId", latestOr("-1", func(c *stats.Checkpoint) string { return strconv.FormatInt(int64(c.ID), 10) })},
	{"lastCheckpointDuration", latestOr("-1", func(c *stats.Checkpoint) string { return millisOf(c.EndToEnd()) })},
	{"lastCheckpointSize", latestOr("-1", func(c *stats.Checkpoint) string { return strconv.FormatInt(c.Sizes.New, 10) })},
	{"lastCheckpointFullSize", latestOr("-1", func(c *stats.Checkpoint) string { return strconv.FormatInt(c.Sizes.State, 10) })},
	{"lastCheckpointCompletedTimestamp", latestOr("-1", func(c *stats.Checkpoint) string { return strconv.FormatInt(c.Ended.UnixMilli(), 10) })},
	{"lastCheckpointRestoreTimestamp", func(s jobmaster.Status) string {
		if s.Checkpoints.Restores == 0 {
			return "-1"
		}
		return strconv.FormatInt(s.Checkpoints.Restored.At.UnixMilli(), 10)
	}},
	{"lastCheckpointProcessedData", latestOr("-1", func(c *stats.Checkpoint) string { return strconv.FormatInt(c.Processed(), 10) })},
	{"lastCheckpointPersistedData", latestOr("-1", func(c *stats.Checkpoint) string { return strconv.FormatInt(c.Persisted(), 10) })},
	{"lastCheckpointExternalPath", latestOr("n/a", func(c *stats.Checkpoint) string { return uri(c.Location) })},
}

func latestOr(none string, value func(*stats.Checkpoint) string) func(jobmaster.Status) string {
	return func(s jobmaster.Status) string {
		if s.Checkpoints.LatestCompleted == nil {
			return none
		}
		return value(s.Checkpoints.LatestCompleted)
	}
}

func uptime(s jobmaster.Status) time.Duration {
	if s.Status != job.Running {
		return 0
	}
	return time.Since(s.Since[job.Running])
}

func millisOf(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// jobMetrics answers with the metrics that get names, or with the names of all.
func (s *Server) jobMetrics(r *http.Request) (any, error) {
	all := []metricBody{}
	wanted := r.URL.Query().Get("get")
	if wanted == "" {
		for _, m := range jobMetrics {
			all = append(all, metricBody{ID: m.id})
		}
		return all, nil
	}
	status := s.options.Job.Status()
	for id := range strings.SplitSeq(wanted, ",") {
		for _, m := range jobMetrics {
			if m.id == id {
				value := m.value(status)
				all = append(all, metricBody{ID: id, Value: &value})
			}
		}
	}
	return all, nil
}
