package rest

import (
	"net/http"

	"github.com/weirstream/weir/internal/jobmaster"
)

// shareDetails is a vertex's part of a checkpoint, subtask by subtask.
type shareDetails struct {
	vertexShare
	Summary  shareSummary   `json:"summary"`
	Subtasks []subtaskShare `json:"subtasks"`
}

type shareSummary struct {
	Checkpointed statsBody      `json:"checkpointed_size"`
	State        statsBody      `json:"state_size"`
	Duration     statsBody      `json:"end_to_end_duration"`
	Checkpoint   durationsBody  `json:"checkpoint_duration"`
	Alignment    alignmentStats `json:"alignment"`
	StartDelay   statsBody      `json:"start_delay"`
}

type durationsBody struct {
	Sync  statsBody `json:"sync"`
	Async statsBody `json:"async"`
}

type alignmentStats struct {
	Buffered  statsBody `json:"buffered"`
	Processed statsBody `json:"processed"`
	Persisted statsBody `json:"persisted"`
	Duration  statsBody `json:"duration"`
}

// subtaskShare is one subtask's part; of one that has not acknowledged only the index is told.
type subtaskShare struct {
	Class        string            `json:"className"`
	Index        int               `json:"index"`
	At           *int64            `json:"ack_timestamp,omitempty"`
	Duration     *int64            `json:"end_to_end_duration,omitempty"`
	Checkpointed *int64            `json:"checkpointed_size,omitempty"`
	State        *int64            `json:"state_size,omitempty"`
	Checkpoint   *subtaskDurations `json:"checkpoint,omitempty"`
	Alignment    *subtaskAlignment `json:"alignment,omitempty"`
	StartDelay   *int64            `json:"start_delay,omitempty"`
	Unaligned    *bool             `json:"unaligned_checkpoint,omitempty"`
	Aborted      *bool             `json:"aborted,omitempty"`
	Status       string            `json:"status"`
}

// subtaskDurations are not measured.
type subtaskDurations struct {
	Sync  int64 `json:"sync"`
	Async int64 `json:"async"`
}

// subtaskAlignment has what is measured of it: the records in flight.
type subtaskAlignment struct {
	Buffered  int64 `json:"buffered"`
	Processed int64 `json:"processed"`
	Persisted int64 `json:"persisted"`
	Duration  int64 `json:"duration"`
}

// ofVertexShare serves a vertex's part of a checkpoint.
func (s *Server) ofVertexShare() {
	s.ofJob("GET", "/checkpoints/details/{checkpointid}/subtasks/{vertexid}", func(r *http.Request) (any, error) {
		c, err := s.checkpointOf(r)
		if err != nil {
			return nil, err
		}
		v, err := s.vertexOf(r)
		if err != nil {
			return nil, refuse(http.StatusNotFound, "There is no checkpoint statistics for task %s.", r.PathValue("vertexid"))
		}
		b := shareDetails{vertexShare: shareOf(c, v)}
		var sizes, durations, persisted, zeros values
		for i, a := range acksOf(c, v) {
			b.Subtasks = append(b.Subtasks, subtaskShareOf(c, i, a))
			if a.At.IsZero() {
				continue
			}
			sizes, persisted, zeros = append(sizes, a.Bytes), append(persisted, a.InFlight), append(zeros, 0)
			durations = append(durations, max(0, a.At.Sub(c.Wall).Milliseconds()))
		}
		none := zeros.extremes()
		b.Summary = shareSummary{Checkpointed: sizes.extremes(), State: sizes.extremes(), Duration: durations.extremes(),
			Checkpoint: durationsBody{none, none}, StartDelay: none,
			Alignment: alignmentStats{Buffered: zeros.stats(), Processed: none, Persisted: persisted.extremes(), Duration: none}}
		return b, nil
	})
}

func subtaskShareOf(c *jobmaster.CheckpointStats, i int, a jobmaster.AckStats) subtaskShare {
	if a.At.IsZero() {
		return subtaskShare{Class: "pending", Index: i, Status: "pending_or_failed"}
	}
	at, duration, zero, unaligned, aborted := a.At.UnixMilli(), max(0, a.At.Sub(c.Wall).Milliseconds()), int64(0), a.InFlight > 0, false
	return subtaskShare{Class: "completed", Index: i, At: &at, Duration: &duration, Checkpointed: &a.Bytes, State: &a.Bytes,
		Checkpoint: &subtaskDurations{}, Alignment: &subtaskAlignment{Persisted: a.InFlight}, StartDelay: &zero, Unaligned: &unaligned,
		Aborted: &aborted, Status: "completed"}
}
