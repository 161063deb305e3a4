package rest

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/jobmaster"
)

type jobsBody struct {
	Jobs []jobIDBody `json:"jobs"`
}

type jobIDBody struct {
	ID     base.JobID `json:"id"`
	Status string     `json:"status"`
}

type overviewsBody struct {
	Jobs []JobOverview `json:"jobs"`
}

// JobOverview is a job in the list of jobs.
type JobOverview struct {
	ID               string         `json:"jid"`
	Name             string         `json:"name"`
	Type             string         `json:"jobType"`
	Scheduler        string         `json:"schedulerType"`
	Start            int64          `json:"start-time"` // Unix milliseconds
	End              int64          `json:"end-time"`   // -1: it runs
	Duration         int64          `json:"duration"`
	State            string         `json:"state"`
	LastModification int64          `json:"last-modification"`
	Tasks            map[string]int `json:"tasks"`
	Pending          int            `json:"pending-operators"`
}

type jobBody struct {
	ID           base.JobID       `json:"jid"`
	Application  base.JobID       `json:"application-id"`
	Name         string           `json:"name"`
	Stoppable    bool             `json:"isStoppable"`
	State        string           `json:"state"`
	Type         string           `json:"job-type"`
	Scheduler    string           `json:"schedulerType"`
	Start        int64            `json:"start-time"`
	End          int64            `json:"end-time"`
	Duration     int64            `json:"duration"`
	MaxParallel  int              `json:"maxParallelism"`
	Now          int64            `json:"now"`
	Timestamps   map[string]int64 `json:"timestamps"`
	Vertices     []Vertex         `json:"vertices"`
	StatusCounts map[string]int   `json:"status-counts"`
	Plan         planBody         `json:"plan"`
	Pending      int              `json:"pending-operators"`
}

type planBody struct {
	ID    base.JobID `json:"jid"`
	Name  string     `json:"name"`
	Type  string     `json:"type"`
	Nodes []planNode `json:"nodes"`
}

type planNode struct {
	ID          string      `json:"id"`
	Operator    string      `json:"operator"`
	Parallelism int         `json:"parallelism"`
	Strategy    string      `json:"operator_strategy"`
	Description string      `json:"description"`
	Optimizer   empty       `json:"optimizer_properties"`
	Inputs      []planInput `json:"inputs,omitempty"`
}

type planInput struct {
	ID       string `json:"id"`
	Num      int    `json:"num"`
	Exchange string `json:"exchange"`
	Strategy string `json:"ship_strategy"`
}

type exceptionsBody struct {
	History exceptionHistory `json:"exceptionHistory"`
}

type exceptionHistory struct {
	Entries   []exceptionEntry `json:"entries"`
	Truncated bool             `json:"truncated"`
}

type exceptionEntry struct {
	Name       string            `json:"exceptionName"`
	Stack      string            `json:"stacktrace"`
	At         int64             `json:"timestamp"`
	Labels     map[string]string `json:"failureLabels"`
	Task       *string           `json:"taskName"`
	Endpoint   *string           `json:"endpoint"`
	Manager    *string           `json:"taskManagerId"`
	Concurrent []empty           `json:"concurrentExceptions"`
}

const (
	streaming        = "STREAMING"
	defaultScheduler = "Default"
)

func (s *Server) jobRoutes() {
	s.handle("GET /jobs", func(*http.Request) (any, error) {
		return jobsBody{[]jobIDBody{{s.options.ID, s.options.Job.Status().Status.String()}}}, nil
	})
	s.handle("GET /jobs/overview", func(*http.Request) (any, error) { return overviewsBody{[]JobOverview{s.jobOverview()}}, nil })
	s.ofJob("GET", "", s.job)
	s.ofJob("GET", "/status", func(*http.Request) (any, error) {
		return struct {
			Status string `json:"status"`
		}{s.options.Job.Status().Status.String()}, nil
	})
	s.ofJob("GET", "/plan", func(*http.Request) (any, error) {
		return struct {
			Plan planBody `json:"plan"`
		}{s.plan()}, nil
	})
	s.ofJob("GET", "/config", s.jobConfig)
	s.ofJob("GET", "/jobmanager/config", s.settings)
	s.ofJob("GET", "/exceptions", s.exceptions)
	s.ofJob("GET", "/accumulators", func(*http.Request) (any, error) {
		return struct {
			Job        []empty `json:"job-accumulators"`
			User       []empty `json:"user-task-accumulators"`
			Serialized empty   `json:"serialized-user-task-accumulators"`
		}{[]empty{}, []empty{}, empty{}}, nil
	})
	s.ofJob("GET", "/execution-result", s.executionResult)
	s.ofJob("GET", "/metrics", s.jobMetrics)
}

// lifetime is when a job began and ended, how long it has run, and when something changed.
func (s *Server) lifetime(status jobmaster.Status, now time.Time) (start, end, duration, changed int64) {
	start, end = millis(status.Since[job.Created]), -1
	for _, t := range status.Since {
		changed = max(changed, millis(t))
	}
	for i := range status.Tasks {
		for _, t := range status.Tasks[i].Since {
			changed = max(changed, millis(t))
		}
	}
	if status.Status.Terminal() {
		end = millis(status.Since[status.Status])
		return start, end, end - start, end
	}
	return start, end, now.UnixMilli() - start, changed
}

// millis is a time as Flink writes it; 0: never.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func (s *Server) jobOverview() JobOverview {
	status := s.options.Job.Status()
	o := JobOverview{ID: string(s.options.ID), Name: s.options.Graph.Name, Type: streaming, Scheduler: defaultScheduler, State: status.Status.String(),
		Tasks: map[string]int{"total": len(status.Tasks)}}
	o.Start, o.End, o.Duration, o.LastModification = s.lifetime(status, time.Now())
	for state, n := range countStates(status.Tasks) {
		o.Tasks[strings.ToLower(state)] = n
	}
	return o
}

func (s *Server) job(*http.Request) (any, error) {
	status, now := s.options.Job.Status(), time.Now()
	b := jobBody{ID: s.options.ID, Application: s.options.ID, Name: s.options.Graph.Name, State: status.Status.String(), Type: streaming,
		Scheduler: defaultScheduler, MaxParallel: base.KeyGroups, Now: now.UnixMilli(), Plan: s.plan(), StatusCounts: countStates(nil),
		Timestamps: map[string]int64{"INITIALIZING": millis(s.began), "RECONCILING": 0}}
	b.Start, b.End, b.Duration, _ = s.lifetime(status, now)
	for i, t := range status.Since {
		b.Timestamps[job.Status(i).String()] = millis(t)
	}
	for _, v := range s.options.Graph.Vertices {
		body := s.vertexBody(v, tasksOf(v, status), now)
		b.Vertices = append(b.Vertices, body)
		b.StatusCounts[body.Status]++
	}
	return b, nil
}

// plan has the vertices from the sinks to the sources.
func (s *Server) plan() planBody {
	p := planBody{ID: s.options.ID, Name: s.options.Graph.Name, Type: streaming}
	for i := range s.options.Graph.Vertices {
		v := s.options.Graph.Vertices[len(s.options.Graph.Vertices)-1-i]
		n := planNode{ID: vertexID(v), Parallelism: v.Parallelism, Description: describe(v)}
		for i, l := range v.Inputs {
			n.Inputs = append(n.Inputs, planInput{ID: vertexID(l.From), Num: i, Exchange: "pipelined_bounded", Strategy: l.Kind.String()})
		}
		p.Nodes = append(p.Nodes, n)
	}
	return p
}

// describe lists the operators of a chain, as a dashboard shows them.
func describe(v *graph.Vertex) string {
	var b strings.Builder
	for i, n := range v.Nodes {
		if i > 0 {
			b.WriteString(strings.Repeat("   ", i-1) + "+- ")
		}
		b.WriteString(n.Name + "<br/>")
	}
	return b.String()
}

func (s *Server) jobConfig(*http.Request) (any, error) {
	type execution struct {
		Restart     string `json:"restart-strategy"`
		Parallelism int    `json:"job-parallelism"`
		Reuse       bool   `json:"object-reuse-mode"`
		User        empty  `json:"user-config"`
	}
	c := s.options.Config
	return struct {
		ID        base.JobID `json:"jid"`
		Name      string     `json:"name"`
		Execution execution  `json:"execution-config"`
	}{s.options.ID, s.options.Graph.Name, execution{Restart: string(c.Restart().Kind), Parallelism: c.Get(config.Parallelism), Reuse: true}}, nil
}

func (s *Server) exceptions(*http.Request) (any, error) {
	b := exceptionsBody{exceptionHistory{Entries: []exceptionEntry{}}}
	all := s.options.Job.Status().Exceptions
	for i := range all {
		e := all[len(all)-1-i]
		entry := exceptionEntry{Name: classOf(e.Err), Stack: fmt.Sprintf("%s: %v\n", classOf(e.Err), e.Err), At: e.At.UnixMilli(),
			Labels: map[string]string{}, Concurrent: []empty{}}
		if e.Where != "" {
			entry.Task = &e.Where
		}
		b.History.Entries = append(b.History.Entries, entry)
	}
	return b, nil
}

func (s *Server) executionResult(*http.Request) (any, error) {
	type result struct {
		ID           base.JobID `json:"id"`
		Status       string     `json:"application-status"`
		Accumulators empty      `json:"accumulator-results"`
		Runtime      int64      `json:"net-runtime"`
		Failure      *failure   `json:"failure-cause,omitempty"`
	}
	type body struct {
		Status progressStatus `json:"status"`
		Result *result        `json:"job-execution-result,omitempty"`
	}
	status := s.options.Job.Status()
	if !status.Status.Terminal() {
		return body{Status: progressStatus{inProgress}}, nil
	}
	r := &result{ID: s.options.ID, Status: applicationStatus(status.Status)}
	_, _, r.Runtime, _ = s.lifetime(status, time.Now())
	if n := len(status.Exceptions); status.Status == job.Failed && n > 0 {
		r.Failure = failureOf(status.Exceptions[n-1].Err)
	}
	return body{progressStatus{completed}, r}, nil
}

// applicationStatus is Flink's other name of how a job ended.
func applicationStatus(s job.Status) string {
	switch s {
	case job.Finished:
		return "SUCCEEDED"
	case job.Canceled:
		return "CANCELED"
	case job.Failed:
		return "FAILED"
	}
	return "UNKNOWN"
}
