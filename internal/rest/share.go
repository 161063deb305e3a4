package rest

import (
	"net/http"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/stats"
)

// Share is a vertex's part of a checkpoint, subtask by subtask.
type Share struct {
	vertexShare
	Summary  shareSummary   `json:"summary"`
	Subtasks []SubtaskShare `json:"subtasks"`
}

type shareSummary struct {
	Checkpointed Summary        `json:"checkpointed_size"`
	State        Summary        `json:"state_size"`
	Duration     Summary        `json:"end_to_end_duration"`
	Checkpoint   durationsBody  `json:"checkpoint_duration"`
	Alignment    alignmentStats `json:"alignment"`
	StartDelay   Summary        `json:"start_delay"`
}

type durationsBody struct {
	Sync  Summary `json:"sync"`
	Async Summary `json:"async"`
}

type alignmentStats struct {
	Buffered  Summary `json:"buffered"`
	Processed Summary `json:"processed"`
	Persisted Summary `json:"persisted"`
	Duration  Summary `json:"duration"`
}

// SubtaskShare is one subtask's part; of one that has not acknowledged only the index is told.
type SubtaskShare struct {
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

// subtaskDurations are of the two parts of a snapshot.
type subtaskDurations struct {
	Sync  int64 `json:"sync"`
	Async int64 `json:"async"`
}

// subtaskAlignment is of the barriers; nothing is ever buffered.
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
		return detailsOf(c, v), nil
	})
}

// detailsOf is a vertex's part with its subtasks.
func detailsOf(c *stats.Checkpoint, v *graph.Vertex) Share {
	b := Share{vertexShare: shareOf(c, v)}
	var q shareQuantities
	for i, p := range partsOf(c, v) {
		b.Subtasks = append(b.Subtasks, subtaskShareOf(c, i, &p))
		if p.Acked() {
			q.add(c, &p)
		}
	}
	b.Summary = q.summary()
	return b
}

// shareQuantities are what the parts of a vertex came to, a value for each subtask that has acknowledged.
type shareQuantities struct {
	checkpointed, state, duration, sync, async, processed, persisted, alignment, delay []int64
}

func (q *shareQuantities) add(c *stats.Checkpoint, p *stats.Part) {
	for _, v := range []struct {
		to    *[]int64
		value int64
	}{{&q.checkpointed, p.New}, {&q.state, p.State}, {&q.duration, c.After(p).Milliseconds()}, {&q.sync, p.Sync.Milliseconds()}, {&q.async, p.Async.Milliseconds()},
		{&q.processed, p.Processed}, {&q.persisted, p.Persisted}, {&q.alignment, p.Alignment.Milliseconds()}, {&q.delay, p.StartDelay.Milliseconds()}} {
		*v.to = append(*v.to, v.value)
	}
}

func (q *shareQuantities) summary() shareSummary {
	of := func(values []int64) Summary { return extremesOf(stats.Of(values...)) }
	return shareSummary{Checkpointed: of(q.checkpointed), State: of(q.state), Duration: of(q.duration), Checkpoint: durationsBody{of(q.sync), of(q.async)},
		Alignment:  alignmentStats{Buffered: buffered(len(q.state)), Processed: of(q.processed), Persisted: of(q.persisted), Duration: of(q.alignment)},
		StartDelay: of(q.delay)}
}

// subtaskShareOf is a subtask's part. Aborted: it had taken its snapshot when the checkpoint was given up.
func subtaskShareOf(c *stats.Checkpoint, i int, p *stats.Part) SubtaskShare {
	aborted := c.What == checkpoint.Failed && p.Stage == stats.Writing
	if !p.Acked() && !aborted {
		return SubtaskShare{Class: "pending", Index: i, Status: "pending_or_failed"}
	}
	at, duration, delay := p.Since.UnixMilli(), c.After(p).Milliseconds(), p.StartDelay.Milliseconds()
	return SubtaskShare{Class: "completed", Index: i, At: &at, Duration: &duration, Checkpointed: &p.New, State: &p.State,
		Checkpoint: &subtaskDurations{Sync: p.Sync.Milliseconds(), Async: p.Async.Milliseconds()},
		Alignment:  &subtaskAlignment{Processed: p.Processed, Persisted: p.Persisted, Duration: p.Alignment.Milliseconds()},
		StartDelay: &delay, Unaligned: &p.Unaligned, Aborted: &aborted, Status: "completed"}
}
