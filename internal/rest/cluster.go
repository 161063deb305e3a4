package rest

import (
	"net/http"
	"time"

	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/job"
)

// spoken is the version of Flink's REST that is served.
const spoken = "2.3.0"

// refreshEvery is how often a dashboard asks.
const refreshEvery = 3 * time.Second

type configBody struct {
	Refresh  int64    `json:"refresh-interval"`
	Zone     string   `json:"timezone-name"`
	Offset   int      `json:"timezone-offset"`
	Version  string   `json:"flink-version"`
	Revision string   `json:"flink-revision"`
	Features features `json:"features"`
}

type features struct {
	Submit  bool `json:"web-submit"`
	Cancel  bool `json:"web-cancel"`
	Rescale bool `json:"web-rescale"`
	History bool `json:"web-history"`
}

type overviewBody struct {
	TaskManagers int    `json:"taskmanagers"`
	Slots        int    `json:"slots-total"`
	SlotsFree    int    `json:"slots-available"`
	Running      int    `json:"jobs-running"`
	Finished     int    `json:"jobs-finished"`
	Cancelled    int    `json:"jobs-cancelled"`
	Failed       int    `json:"jobs-failed"`
	Version      string `json:"flink-version"`
	Commit       string `json:"flink-commit"`
}

// keyValue is a line of a configuration.
type keyValue struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func (s *Server) clusterRoutes() {
	s.handle("GET /config", s.config)
	s.handle("GET /overview", s.overview)
	s.handle("GET /jobmanager/config", s.settings)
}

func (s *Server) config(*http.Request) (any, error) {
	zone, offset := time.Now().Zone()
	return configBody{Refresh: refreshEvery.Milliseconds(), Zone: zone, Offset: offset * 1000, Version: spoken, Revision: "Weir " + s.options.Version,
		Features: features{Cancel: true}}, nil
}

func (s *Server) overview(*http.Request) (any, error) {
	b := overviewBody{TaskManagers: 1, Slots: widest(s.options.Graph), Version: spoken, Commit: "Weir " + s.options.Version}
	switch s.options.Job.Status().Status {
	case job.Finished:
		b.Finished, b.SlotsFree = 1, b.Slots
	case job.Canceled:
		b.Cancelled, b.SlotsFree = 1, b.Slots
	case job.Failed:
		b.Failed, b.SlotsFree = 1, b.Slots
	default:
		b.Running = 1
	}
	return b, nil
}

// widest is how many slots a job takes where each holds one subtask of every vertex.
func widest(g *graph.Job) (most int) {
	for _, v := range g.Vertices {
		most = max(most, v.Parallelism)
	}
	return most
}

func (s *Server) settings(*http.Request) (any, error) {
	all := []keyValue{}
	for _, set := range s.options.Config.Settings() {
		all = append(all, keyValue{set.Key, set.Value.(string)})
	}
	return all, nil
}
