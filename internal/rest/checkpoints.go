package rest

import (
	"math"
	"net/http"
	"strconv"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/stats"
)

// Statistics are a job's checkpoints.
type Statistics struct {
	Counts  countsBody    `json:"counts"`
	Summary summaryBody   `json:"summary"`
	Latest  latestBody    `json:"latest"`
	History []*Checkpoint `json:"history"`
}

type countsBody struct {
	Restored   int `json:"restored"`
	Total      int `json:"total"`
	InProgress int `json:"in_progress"`
	Completed  int `json:"completed"`
	Failed     int `json:"failed"`
}

type summaryBody struct {
	Checkpointed Summary `json:"checkpointed_size"`
	State        Summary `json:"state_size"`
	Duration     Summary `json:"end_to_end_duration"`
	Buffered     Summary `json:"alignment_buffered"`
	Processed    Summary `json:"processed_data"`
	Persisted    Summary `json:"persisted_data"`
}

type latestBody struct {
	Completed *Checkpoint   `json:"completed"`
	Savepoint *Checkpoint   `json:"savepoint"`
	Failed    *Checkpoint   `json:"failed"`
	Restored  *restoredBody `json:"restored"`
}

type restoredBody struct {
	ID        base.CheckpointID `json:"id"`
	At        int64             `json:"restore_timestamp"`
	Savepoint bool              `json:"is_savepoint"`
	Path      string            `json:"external_path"`
	// Weir's own.
	Duration       int64               `json:"duration"` // until all tasks ran; -1: they do not yet
	Explanation    string              `json:"explanation,omitempty"`
	Initialization *initializationBody `json:"initialization"`
}

// initializationBody is what a restore was made of: of all tasks together, and the longest of any.
type initializationBody struct {
	Sum phasesBody `json:"sum"`
	Max phasesBody `json:"max"`
}

// phasesBody is in milliseconds, and bytes.
type phasesBody struct {
	Wait     int64 `json:"wait"`
	Read     int64 `json:"read"`
	Restore  int64 `json:"restore"`
	InFlight int64 `json:"in_flight"`
	Open     int64 `json:"open"`
	Bytes    int64 `json:"bytes"`
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

// Checkpoint is a checkpoint or a savepoint; the last fields are of one that completed, or of one that failed.
type Checkpoint struct {
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
	// Explanation is Weir's own.
	Explanation string `json:"explanation"`
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
		b := checkpointBody(c)
		for _, v := range s.options.Graph.Vertices {
			b.Tasks[vertexID(v)] = shareOf(c, v)
		}
		return b, nil
	})
	s.ofVertexShare()
}

func (s *Server) statistics(*http.Request) (any, error) {
	c := s.options.Job.Status().Checkpoints
	b := Statistics{
		Counts:  countsBody{Restored: c.Restores, Total: c.Total(), InProgress: c.InProgress, Completed: c.Completed, Failed: c.Failed},
		Summary: summarise(c.Summary),
		Latest: latestBody{Completed: checkpointBody(c.LatestCompleted), Savepoint: checkpointBody(c.LatestSavepoint),
			Failed: checkpointBody(c.LatestFailed)},
		History: []*Checkpoint{},
	}
	if c.Restores > 0 {
		b.Latest.Restored = s.restoredBody(&c.Restored)
	}
	for i := range c.History {
		b.History = append(b.History, checkpointBody(&c.History[len(c.History)-1-i]))
	}
	return b, nil
}

func (s *Server) restoredBody(r *stats.Start) *restoredBody {
	sum, most := r.Total()
	b := &restoredBody{ID: r.ID, At: r.At.UnixMilli(), Savepoint: r.Kind.IsSavepoint(), Path: uri(r.Location), Duration: -1,
		Initialization: &initializationBody{phasesOf(sum), phasesOf(most)}}
	if r.Took > 0 {
		b.Duration, b.Explanation = r.Took.Milliseconds(), r.Explain(s.options.Graph)
	}
	return b
}

func phasesOf(p stats.Phases) phasesBody {
	return phasesBody{Wait: p.Wait.Milliseconds(), Read: p.Read.Milliseconds(), Restore: p.Restore.Milliseconds(), InFlight: p.InFlight.Milliseconds(),
		Open: p.Open.Milliseconds(), Bytes: p.Bytes}
}

// checkpointBody tells of a checkpoint; nil: there is none.
func checkpointBody(c *stats.Checkpoint) *Checkpoint {
	if c == nil {
		return nil
	}
	b := &Checkpoint{ID: c.ID, Savepoint: c.Kind.IsSavepoint(), Triggered: millis(c.Wall), Type: typeOf(c), Tasks: map[string]vertexShare{},
		Explanation: c.Explanation}
	b.Status, b.Class = statusOf(c)
	if b.Savepoint {
		format := c.Format.String()
		b.Format = &format
	}
	b.sizesBody = sizesBody{LastAck: -1, Checkpointed: c.Sizes.New, State: c.Sizes.State, Duration: -1, Processed: c.Processed(), Persisted: c.Persisted(),
		Subtasks: c.Tasks, Acked: c.Acked}
	if at := c.LastAck(); !at.IsZero() {
		b.LastAck = at.UnixMilli()
	}
	if d := c.EndToEnd(); d >= 0 {
		b.Duration = d.Milliseconds()
	}
	switch c.What {
	case checkpoint.Begun:
	case checkpoint.Succeeded:
		path := uri(c.Location)
		b.Path, b.Discarded = &path, &c.Discarded
	case checkpoint.Failed:
		at, text := millis(c.Ended), (&checkpoint.DeclineError{Reason: c.Reason, Err: c.Err}).Error()
		b.FailedAt, b.Failure = &at, &text
	}
	return b
}

// statusOf is the status of a checkpoint, and Flink's name of the class of what tells of it.
func statusOf(c *stats.Checkpoint) (status, class string) {
	switch c.What {
	case checkpoint.Succeeded:
		return "COMPLETED", "completed"
	case checkpoint.Failed:
		return "FAILED", "failed"
	}
	return "IN_PROGRESS", "in_progress"
}

func typeOf(c *stats.Checkpoint) string {
	switch {
	case c.Kind.IsSynchronous():
		return "SYNC_SAVEPOINT"
	case c.Kind.IsSavepoint():
		return "SAVEPOINT"
	case c.Unaligned():
		return "UNALIGNED_CHECKPOINT"
	}
	return "CHECKPOINT"
}

// checkpointOf is the checkpoint that a request names, as long as it is remembered.
func (s *Server) checkpointOf(r *http.Request) (*stats.Checkpoint, error) {
	text := r.PathValue("checkpointid")
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, badRequest("Bad request, could not parse parameters: Cannot resolve path parameter (checkpointid) from value %q.", text)
	}
	all := s.options.Job.Status().Checkpoints
	if c := all.Find(base.CheckpointID(id)); c != nil {
		return c, nil
	}
	return nil, refuse(http.StatusNotFound, "Could not find checkpointing statistics for checkpoint %d.", id)
}

// shareOf is a vertex's part of a checkpoint.
func shareOf(c *stats.Checkpoint, v *graph.Vertex) vertexShare {
	status, _ := statusOf(c)
	b := vertexShare{ID: c.ID, Status: status, sizesBody: sizesBody{LastAck: -1, Duration: -1, Subtasks: v.Parallelism}}
	for _, p := range partsOf(c, v) {
		if !p.Acked() {
			continue
		}
		b.Acked++
		b.LastAck = max(b.LastAck, p.Since.UnixMilli())
		b.Duration = max(b.Duration, c.After(&p).Milliseconds())
		b.Checkpointed += p.New
		b.State += p.State
		b.Processed += p.Processed
		b.Persisted += p.Persisted
	}
	return b
}

func partsOf(c *stats.Checkpoint, v *graph.Vertex) []stats.Part {
	return c.Parts[v.First : v.First+base.Task(v.Parallelism)]
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
