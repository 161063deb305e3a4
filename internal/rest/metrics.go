package rest

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/jobmaster"
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
		return strconv.Itoa(s.Checkpoints.Completed + s.Checkpoints.Failed + s.Checkpoints.InProgress)
	}},
	{"numberOfInProgressCheckpoints", func(s jobmaster.Status) string { return strconv.Itoa(s.Checkpoints.InProgress) }},
	{"numberOfCompletedCheckpoints", func(s jobmaster.Status) string { return strconv.Itoa(s.Checkpoints.Completed) }},
	{"numberOfFailedCheckpoints", func(s jobmaster.Status) string { return strconv.Itoa(s.Checkpoints.Failed) }},
	{"lastCompletedCheckpointId", latestOr("-1", func(c *jobmaster.CheckpointStats) string { return strconv.FormatInt(int64(c.ID), 10) })},
	{"lastCheckpointDuration", latestOr("-1", func(c *jobmaster.CheckpointStats) string { return millisOf(c.Duration) })},
	{"lastCheckpointSize", latestOr("-1", func(c *jobmaster.CheckpointStats) string { return strconv.FormatInt(c.Bytes, 10) })},
	{"lastCheckpointFullSize", latestOr("-1", func(c *jobmaster.CheckpointStats) string { return strconv.FormatInt(c.Bytes, 10) })},
	{"lastCheckpointPersistedData", latestOr("-1", func(c *jobmaster.CheckpointStats) string { return strconv.FormatInt(c.InFlight, 10) })},
	{"lastCheckpointExternalPath", latestOr("n/a", func(c *jobmaster.CheckpointStats) string { return uri(c.Location) })},
}

func latestOr(none string, value func(*jobmaster.CheckpointStats) string) func(jobmaster.Status) string {
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
