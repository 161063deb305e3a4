package rest

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/jobmaster"
)

// Vertex is a chain of operators with all its subtasks.
type Vertex struct {
	ID          string         `json:"id"`
	Group       string         `json:"slotSharingGroupId"`
	Name        string         `json:"name"`
	MaxParallel int            `json:"maxParallelism"`
	Parallelism int            `json:"parallelism"`
	Status      string         `json:"status"`
	Start       int64          `json:"start-time"`
	End         int64          `json:"end-time"`
	Duration    int64          `json:"duration"`
	Tasks       map[string]int `json:"tasks"`
	Metrics     ioMetrics      `json:"metrics"`
}

// ioMetrics are of a task or a vertex, times in milliseconds.
type ioMetrics struct {
	ReadBytes      int64      `json:"read-bytes"`
	ReadBytesAll   bool       `json:"read-bytes-complete"`
	WriteBytes     int64      `json:"write-bytes"`
	WriteBytesAll  bool       `json:"write-bytes-complete"`
	ReadRecords    int64      `json:"read-records"`
	ReadRecordsAll bool       `json:"read-records-complete"`
	WriteRecords   int64      `json:"write-records"`
	WriteAll       bool       `json:"write-records-complete"`
	Backpressured  int64      `json:"accumulated-backpressured-time"`
	Idle           int64      `json:"accumulated-idle-time"`
	Busy           Percentile `json:"accumulated-busy-time"`
}

type vertexDetails struct {
	ID          string        `json:"id"`
	Name        string        `json:"name"`
	Parallelism int           `json:"parallelism"`
	MaxParallel int           `json:"maxParallelism"`
	Now         int64         `json:"now"`
	Subtasks    []subtaskBody `json:"subtasks"`
	Aggregated  aggregated    `json:"aggregated"`
}

type subtaskBody struct {
	Subtask   int              `json:"subtask"`
	Status    string           `json:"status"`
	Attempt   int              `json:"attempt"`
	Endpoint  string           `json:"endpoint"`
	Start     int64            `json:"start-time"`
	End       int64            `json:"end-time"`
	Duration  int64            `json:"duration"`
	Metrics   ioMetrics        `json:"metrics"`
	Manager   string           `json:"taskmanager-id"`
	Durations map[string]int64 `json:"status-duration"`
	StartToo  int64            `json:"start_time"`
}

// worker is the name of the only worker.
const worker = "local"

// slotGroup is the id of the only group of vertices that share slots.
var slotGroup = idOf("slot sharing group")

// allStates are Flink's states of a task; two of them no task of Weir's comes into.
var allStates = []string{"CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED", "CANCELING", "CANCELED", "FAILED", "RECONCILING"}

func (s *Server) vertexRoutes() {
	s.ofVertex("", s.vertex)
	s.ofVertex("/subtasks/{subtask}", s.subtask)
	none := func(*http.Request, *graph.Vertex) (any, error) { return []empty{}, nil }
	s.ofVertex("/metrics", none)
	s.ofVertex("/subtasks/metrics", none)
	s.ofVertex("/watermarks", none)
}

// ofVertex serves a path below a vertex of the job.
func (s *Server) ofVertex(path string, h func(*http.Request, *graph.Vertex) (any, error)) {
	s.ofJob("GET", "/vertices/{vertexid}"+path, func(r *http.Request) (any, error) {
		v, err := s.vertexOf(r)
		if err != nil {
			return nil, err
		}
		return h(r, v)
	})
}

func (s *Server) vertexOf(r *http.Request) (*graph.Vertex, error) {
	id, err := hexOf(r, "vertexid")
	if err != nil {
		return nil, err
	}
	for _, v := range s.options.Graph.Vertices {
		if vertexID(v) == id {
			return v, nil
		}
	}
	return nil, notFound("JobVertex %s not found", id)
}

// vertexID is the same as long as the vertex begins with the same operator.
func vertexID(v *graph.Vertex) string { return idOf("vertex " + v.Head().StateID()) }

// idOf is an id as Flink's are, derived from a name.
func idOf(name string) string {
	sum := sha256.Sum256([]byte("weir " + name))
	return hex.EncodeToString(sum[:16])
}

// tasksOf are the tasks of a vertex.
func tasksOf(v *graph.Vertex, s jobmaster.Status) []jobmaster.TaskStatus {
	return s.Tasks[v.First : v.First+base.Task(v.Parallelism)]
}

// countStates counts tasks by their state; states without a task are there too.
func countStates(tasks []jobmaster.TaskStatus) map[string]int {
	counts := map[string]int{}
	for _, state := range allStates {
		counts[state] = 0
	}
	for i := range tasks {
		counts[tasks[i].State.String()]++
	}
	return counts
}

// together is the state of a vertex: the first of these that a task of it is in; FINISHED only when all are.
func together(counts map[string]int, tasks int) string {
	for _, state := range []string{"FAILED", "CANCELING", "CANCELED", "INITIALIZING", "RUNNING", "DEPLOYING"} {
		if counts[state] > 0 {
			return state
		}
	}
	switch counts["FINISHED"] {
	case 0:
		return "CREATED"
	case tasks:
		return "FINISHED"
	}
	return "RUNNING"
}

func (s *Server) vertexBody(v *graph.Vertex, tasks []jobmaster.TaskStatus, now time.Time) Vertex {
	b := Vertex{ID: vertexID(v), Group: slotGroup, Name: v.Name, MaxParallel: base.KeyGroups, Parallelism: v.Parallelism, Start: -1,
		Duration: -1, Tasks: countStates(tasks), Metrics: ioMetricsOf(tasks...)}
	b.Status = together(b.Tasks, len(tasks))
	ended := 0
	for i := range tasks {
		start, end, _ := span(&tasks[i], now)
		if start >= 0 && (b.Start < 0 || start < b.Start) {
			b.Start = start
		}
		if end >= 0 {
			b.End = max(b.End, end)
			ended++
		}
	}
	if ended < len(tasks) {
		b.End = -1
	}
	if b.Start >= 0 {
		b.Duration = until(b.End, now) - b.Start
	}
	return b
}

// ioMetricsOf are those of some tasks. They are complete: nothing is left to ask for.
func ioMetricsOf(tasks ...jobmaster.TaskStatus) ioMetrics {
	m := ioMetrics{ReadBytesAll: true, WriteBytesAll: true, ReadRecordsAll: true, WriteAll: true}
	var busy time.Duration
	for i := range tasks {
		c := &tasks[i].Counters
		m.ReadRecords += c.ReadRecords
		m.ReadBytes += c.ReadBytes
		m.WriteRecords += c.WriteRecords
		m.WriteBytes += c.WriteBytes
		m.Backpressured += c.Backpressured.Milliseconds()
		m.Idle += c.Idle.Milliseconds()
		busy += c.Busy
	}
	m.Busy = Percentile(busy.Milliseconds())
	return m
}

// span is when a task began and ended, and how long it has run; -1: it did not.
func span(t *jobmaster.TaskStatus, now time.Time) (start, end, duration int64) {
	start, end, duration = -1, -1, -1
	if at := t.Since[jobmaster.TaskDeploying]; !at.IsZero() {
		start = at.UnixMilli()
	}
	if at := t.Ended(); !at.IsZero() {
		end = at.UnixMilli()
	}
	if start >= 0 {
		duration = until(end, now) - start
	}
	return start, end, duration
}

func until(end int64, now time.Time) int64 {
	if end < 0 {
		return now.UnixMilli()
	}
	return end
}

func (s *Server) vertex(_ *http.Request, v *graph.Vertex) (any, error) {
	now := time.Now()
	b := vertexDetails{ID: vertexID(v), Name: v.Name, Parallelism: v.Parallelism, MaxParallel: base.KeyGroups, Now: now.UnixMilli()}
	tasks := tasksOf(v, s.options.Job.Status())
	for i := range tasks {
		b.Subtasks = append(b.Subtasks, subtaskOf(i, &tasks[i], now))
	}
	b.Aggregated = aggregatedOf(b.Subtasks)
	return b, nil
}

func (s *Server) subtask(r *http.Request, v *graph.Vertex) (any, error) {
	text := r.PathValue("subtask")
	i, err := strconv.Atoi(text)
	if err != nil || i < 0 {
		return nil, badRequest("Bad request, could not parse parameters: Cannot resolve path parameter (subtaskindex) from value %q.", text)
	}
	if i >= v.Parallelism {
		return nil, refuse(http.StatusNotFound, "Invalid subtask index for vertex %s", vertexID(v))
	}
	return subtaskOf(i, &tasksOf(v, s.options.Job.Status())[i], time.Now()), nil
}

func subtaskOf(i int, t *jobmaster.TaskStatus, now time.Time) subtaskBody {
	b := subtaskBody{Subtask: i, Status: t.State.String(), Attempt: t.Attempt.Number(), Endpoint: worker, Manager: worker, Metrics: ioMetricsOf(*t),
		Durations: map[string]int64{}}
	b.Start, b.End, b.Duration = span(t, now)
	b.StartToo = b.Start
	for _, state := range []string{"CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING"} {
		b.Durations[state] = -1
	}
	// The states that a task comes through, in their order: each lasts until the next one.
	next := now
	if at := t.Ended(); !at.IsZero() {
		next = at
	}
	for state := jobmaster.TaskRunning; ; state-- {
		if at := t.Since[state]; !at.IsZero() {
			b.Durations[state.String()], next = next.Sub(at).Milliseconds(), at
		}
		if state == jobmaster.TaskCreated {
			return b
		}
	}
}
