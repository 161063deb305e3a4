package rest

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/jobmaster"
)

type statisticsBody struct {
	Counts  countsBody        `json:"counts"`
	Summary summaryBody       `json:"summary"`
	Latest  latestBody        `json:"latest"`
	History []*checkpointBody `json:"history"`
}

type countsBody struct {
	Restored   int `json:"restored"`
	Total      int `json:"total"`
	InProgress int `json:"in_progress"`
	Completed  int `json:"completed"`
	Failed     int `json:"failed"`
}

type summaryBody struct {
	Checkpointed statsBody `json:"checkpointed_size"`
	State        statsBody `json:"state_size"`
	Duration     statsBody `json:"end_to_end_duration"`
	Buffered     statsBody `json:"alignment_buffered"`
	Processed    statsBody `json:"processed_data"`
	Persisted    statsBody `json:"persisted_data"`
}

type latestBody struct {
	Completed *checkpointBody `json:"completed"`
	Savepoint *checkpointBody `json:"savepoint"`
	Failed    *checkpointBody `json:"failed"`
	Restored  *restoredBody   `json:"restored"`
}

type restoredBody struct {
	ID        base.CheckpointID `json:"id"`
	At        int64             `json:"restore_timestamp"`
	Savepoint bool              `json:"is_savepoint"`
	Path      string            `json:"external_path"`
}

// sizesBody is what a checkpoint, and a vertex's part of one, came to.
type sizesBody struct {
	LastAck      int64 `json:"latest_ack_timestamp"`
	Checkpointed int64 `json:"checkpointed_size"`
	State        int64 `json:"state_size"`
	Duration     int64 `json:"end_to_end_duration"`
	Buffered     int64 `json:"alignment_buffered"`
	Processed    int64 `json:"processed_data"`
	Persisted    int64 `json:"persisted_data"`
	Subtasks     int   `json:"num_subtasks"`
	Acked        int   `json:"num_acknowledged_subtasks"`
}

// checkpointBody is a checkpoint; the last fields are of one that completed, or of one that failed.
type checkpointBody struct {
	Class     string            `json:"className"`
	ID        base.CheckpointID `json:"id"`
	Status    string            `json:"status"`
	Savepoint bool              `json:"is_savepoint"`
	Format    *string           `json:"savepointFormat"`
	Triggered int64             `json:"trigger_timestamp"`
	sizesBody
	Type      string                 `json:"checkpoint_type"`
	Tasks     map[string]vertexShare `json:"tasks"`
	Path      *string                `json:"external_path,omitempty"`
	Discarded *bool                  `json:"discarded,omitempty"`
	FailedAt  *int64                 `json:"failure_timestamp,omitempty"`
	Failure   *string                `json:"failure_message,omitempty"`
}

// vertexShare is a vertex's part of a checkpoint.
type vertexShare struct {
	ID     base.CheckpointID `json:"id"`
	Status string            `json:"status"`
	sizesBody
}

type checkpointConfigBody struct {
	Mode            string              `json:"mode"`
	Interval        int64               `json:"interval"`
	Timeout         int64               `json:"timeout"`
	MinPause        int64               `json:"min_pause"`
	MaxConcurrent   int                 `json:"max_concurrent"`
	Externalization externalizationBody `json:"externalization"`
	Backend         string              `json:"state_backend"`
	Storage         string              `json:"checkpoint_storage"`
	Unaligned       bool                `json:"unaligned_checkpoints"`
	Tolerable       int                 `json:"tolerable_failed_checkpoints"`
	AlignedTimeout  int64               `json:"aligned_checkpoint_timeout"`
	AfterFinish     bool                `json:"checkpoints_after_tasks_finish"`
	Changelog       bool                `json:"state_changelog_enabled"`
	Materialization int64               `json:"changelog_periodic_materialization_interval"`
	ChangelogStore  string              `json:"changelog_storage"`
}

type externalizationBody struct {
	Enabled bool `json:"enabled"`
	Delete  bool `json:"delete_on_cancellation"`
}

// disabled is Flink's interval of checkpoints that nobody takes.
const disabled = math.MaxInt64

func (s *Server) checkpointRoutes() {
	s.ofJob("GET", "/checkpoints", s.statistics)
	s.ofJob("GET", "/checkpoints/config", s.checkpointConfig)
	s.ofJob("GET", "/checkpoints/details/{checkpointid}", func(r *http.Request) (any, error) {
		c, err := s.checkpointOf(r)
		if err != nil {
			return nil, err
		}
		b := bodyOf(c)
		for _, v := range s.options.Graph.Vertices {
			b.Tasks[vertexID(v)] = shareOf(c, v)
		}
		return b, nil
	})
	s.ofVertexShare()
}

func (s *Server) statistics(*http.Request) (any, error) {
	c := s.options.Job.Status().Checkpoints
	b := statisticsBody{
		Counts:  countsBody{Restored: c.Restored.Count, Total: c.Completed + c.Failed + c.InProgress, InProgress: c.InProgress, Completed: c.Completed, Failed: c.Failed},
		Summary: summarise(c.Sizes),
		Latest:  latestBody{Completed: bodyOf(c.LatestCompleted), Savepoint: bodyOf(c.LatestSavepoint), Failed: bodyOf(c.LatestFailed)},
		History: []*checkpointBody{},
	}
	if r := c.Restored; r.Count > 0 {
		b.Latest.Restored = &restoredBody{ID: r.ID, At: r.At.UnixMilli(), Savepoint: r.Kind.IsSavepoint(), Path: uri(r.Location)}
	}
	for i := range c.History {
		b.History = append(b.History, bodyOf(&c.History[len(c.History)-1-i]))
	}
	return b, nil
}

// bodyOf tells of a checkpoint; nil: there is none.
func bodyOf(c *jobmaster.CheckpointStats) *checkpointBody {
	if c == nil {
		return nil
	}
	b := &checkpointBody{ID: c.ID, Savepoint: c.Kind.IsSavepoint(), Triggered: millis(c.Wall), Type: typeOf(c), Tasks: map[string]vertexShare{}}
	b.Status, b.Class = statusOf(c)
	if b.Savepoint {
		format := c.Format.String()
		b.Format = &format
	}
	b.sizesBody = sizesBody{LastAck: -1, Checkpointed: c.Bytes, State: c.Bytes, Duration: c.Duration.Milliseconds(), Persisted: c.InFlight,
		Subtasks: c.Tasks, Acked: c.Acked}
	if at := c.LastAck(); !at.IsZero() {
		b.LastAck = at.UnixMilli()
	}
	switch c.What {
	case checkpoint.Begun:
		b.Duration = time.Since(c.Wall).Milliseconds()
	case checkpoint.Succeeded:
		path := uri(c.Location)
		b.Path, b.Discarded = &path, &c.Discarded
	case checkpoint.Failed:
		at, text := millis(c.Wall.Add(c.Duration)), (&checkpoint.DeclineError{Reason: c.Reason, Err: c.Err}).Error()
		b.FailedAt, b.Failure = &at, &text
	}
	return b
}

// statusOf is the status of a checkpoint, and Flink's name of the class of what tells of it.
func statusOf(c *jobmaster.CheckpointStats) (status, class string) {
	switch c.What {
	case checkpoint.Succeeded:
		return "COMPLETED", "completed"
	case checkpoint.Failed:
		return "FAILED", "failed"
	}
	return "IN_PROGRESS", "in_progress"
}

func typeOf(c *jobmaster.CheckpointStats) string {
	switch {
	case c.Kind.IsSynchronous():
		return "SYNC_SAVEPOINT"
	case c.Kind.IsSavepoint():
		return "SAVEPOINT"
	case c.InFlight > 0:
		return "UNALIGNED_CHECKPOINT"
	}
	return "CHECKPOINT"
}

// checkpointOf is the checkpoint that a request names, as long as it is remembered.
func (s *Server) checkpointOf(r *http.Request) (*jobmaster.CheckpointStats, error) {
	text := r.PathValue("checkpointid")
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, badRequest("Bad request, could not parse parameters: Cannot resolve path parameter (checkpointid) from value %q.", text)
	}
	c := s.options.Job.Status().Checkpoints
	for i := range c.History {
		if c.History[i].ID == base.CheckpointID(id) {
			return &c.History[i], nil
		}
	}
	for _, latest := range []*jobmaster.CheckpointStats{c.LatestCompleted, c.LatestSavepoint, c.LatestFailed} {
		if latest != nil && latest.ID == base.CheckpointID(id) {
			return latest, nil
		}
	}
	return nil, refuse(http.StatusNotFound, "Could not find checkpointing statistics for checkpoint %d.", id)
}

// shareOf is a vertex's part of a checkpoint.
func shareOf(c *jobmaster.CheckpointStats, v *graph.Vertex) vertexShare {
	status, _ := statusOf(c)
	b := vertexShare{ID: c.ID, Status: status, sizesBody: sizesBody{LastAck: -1, Subtasks: v.Parallelism}}
	for _, a := range acksOf(c, v) {
		if a.At.IsZero() {
			continue
		}
		b.Acked++
		b.LastAck = max(b.LastAck, a.At.UnixMilli())
		b.State += a.Bytes
		b.Persisted += a.InFlight
	}
	b.Checkpointed = b.State
	if b.LastAck >= 0 {
		b.Duration = max(0, b.LastAck-millis(c.Wall))
	}
	return b
}

func acksOf(c *jobmaster.CheckpointStats, v *graph.Vertex) []jobmaster.AckStats {
	return c.Acks[v.First : v.First+base.Task(v.Parallelism)]
}

func (s *Server) checkpointConfig(*http.Request) (any, error) {
	c := s.options.Config
	e := c.Checkpointing()
	b := checkpointConfigBody{Mode: "exactly_once", Interval: disabled, Timeout: e.Timeout.Milliseconds(), MinPause: e.MinPause.Milliseconds(),
		MaxConcurrent: e.MaxConcurrent, Backend: "HashMapStateBackend", Storage: "FileSystemCheckpointStorage", Unaligned: e.Unaligned,
		Tolerable: e.TolerableFailures, AlignedTimeout: e.AlignedTimeout.Milliseconds(), AfterFinish: true, ChangelogStore: "memory"}
	if e.Interval > 0 {
		b.Interval = e.Interval.Milliseconds()
	}
	if e.AtLeastOnce {
		b.Mode = "at_least_once"
	}
	if c.Storage() == config.JobManagerStorage {
		b.Storage = "JobManagerCheckpointStorage"
	}
	retention := c.Get(config.CheckpointRetention)
	b.Externalization = externalizationBody{Enabled: retention != config.NoExternalized, Delete: retention != config.RetainOnCancellation}
	return b, nil
}
