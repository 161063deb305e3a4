package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/stats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	jobID   = "29971265f93b0d85aa9526f8e979ec8b"
	otherID = "ffffffffffffffffffffffffffffffff"
	trigger = "0123456789abcdef0123456789abcdef"
)

// fakeJob answers as it is told to.
type fakeJob struct {
	mu         sync.Mutex
	status     jobmaster.Status      // protected by mu
	savepoints []jobmaster.Savepoint // that were asked for; protected by mu
	canceled   int                   // protected by mu
	full       []bool                // checkpoints that were asked for; protected by mu
	finish     chan struct{}         // savepoints and checkpoints end when it is closed
	answer     jobmaster.Answer      // their end
	err        error                 // their end
}

func (j *fakeJob) Status() jobmaster.Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.status
}

func (j *fakeJob) TriggerSavepoint(_ context.Context, s jobmaster.Savepoint) (jobmaster.Answer, error) {
	j.mu.Lock()
	j.savepoints = append(j.savepoints, s)
	j.mu.Unlock()
	<-j.finish
	return j.answer, j.err
}

func (j *fakeJob) TriggerCheckpoint(_ context.Context, full bool) (jobmaster.Answer, error) {
	j.mu.Lock()
	j.full = append(j.full, full)
	j.mu.Unlock()
	<-j.finish
	return j.answer, j.err
}

func (j *fakeJob) Cancel() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.canceled++
}

// rig is a server of a fake job: a source of two subtasks, keyed into one task of two operators.
type rig struct {
	*Server
	t    *testing.T
	job  *fakeJob
	gone []string // savepoints that were disposed of
}

func newRig(t *testing.T, settings ...string) *rig {
	t.Helper()
	logical := &graph.Logical{
		Nodes: []*graph.Node{{ID: 0, Kind: graph.Source, Name: "numbers", UID: "numbers"}, {ID: 1, Kind: graph.Transform, Name: "count", UID: "count"},
			{ID: 2, Kind: graph.Sink, Name: "out", UID: "out"}},
		Edges: []*graph.Edge{{From: 0, To: 1, Partitioning: graph.Hash}, {From: 1, To: 2, Partitioning: graph.Forward}},
	}
	g, err := logical.Build("j1", graph.Options{Parallelism: 2, Chaining: true})
	if err != nil {
		t.Fatal(err)
	}
	var l config.Layer
	l.Set(config.RestPort.Key, 0, "test")
	for i := 0; i < len(settings); i += 2 {
		l.Set(settings[i], settings[i+1], "test")
	}
	c, err := config.Build(l)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, job: &fakeJob{status: statusOfTest(g), finish: make(chan struct{})}}
	r.Server, err = Listen(Options{ID: jobID, Graph: g, Config: c, Job: r.job, Version: "v0", Dispose: func(path string) error {
		if strings.HasSuffix(path, "missing") {
			return errors.New("there is nothing")
		}
		r.gone = append(r.gone, path)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	r.Serve()
	t.Cleanup(r.Close)
	return r
}

// statusOfTest is a job that has come through everything once.
func statusOfTest(g *graph.Job) jobmaster.Status {
	at := func(ms int64) time.Time { return time.UnixMilli(1_800_000_000_000 + ms) }
	s := jobmaster.Status{Tasks: make([]jobmaster.TaskStatus, g.Subtasks())}
	s.Status = job.Running
	s.Since[job.Created], s.Since[job.Running] = at(0), at(10)
	for i := range s.Tasks {
		t := &s.Tasks[i]
		t.State = jobmaster.TaskRunning
		t.Since[jobmaster.TaskCreated], t.Since[jobmaster.TaskDeploying] = at(1), at(2)
		t.Since[jobmaster.TaskInitializing], t.Since[jobmaster.TaskRunning] = at(3), at(4)
	}
	part := func(ms, bytes, inFlight int64, m checkpoint.AckMetrics) stats.Part {
		m.Persisted = inFlight
		return stats.Part{Stage: stats.Acked, Since: at(ms), Sizes: snapshot.Sizes{State: bytes, New: bytes - 1}, AckMetrics: m}
	}
	parts := []stats.Part{
		part(105, 5, 0, checkpoint.AckMetrics{StartDelay: 2 * time.Millisecond, Async: 3 * time.Millisecond}),
		part(106, 7, 0, checkpoint.AckMetrics{StartDelay: 3 * time.Millisecond, Async: 3 * time.Millisecond}),
		part(107, 100, 20, checkpoint.AckMetrics{StartDelay: 3 * time.Millisecond, Alignment: 2 * time.Millisecond, Sync: time.Millisecond,
			Async: 2 * time.Millisecond, Unaligned: true, First: 1, Last: 2}),
		part(109, 300, 0, checkpoint.AckMetrics{StartDelay: 3 * time.Millisecond, Alignment: time.Millisecond, Sync: 2 * time.Millisecond,
			Async: 4 * time.Millisecond, Processed: 64, Unaligned: true, First: 1, Last: 2}),
	}
	report := func(id base.CheckpointID, what checkpoint.Progress) checkpoint.Report {
		return checkpoint.Report{ID: id, What: what, Tasks: 4, Wall: at(100).UnixNano(), Location: fmt.Sprint("/checkpoints/chk-", id), Exec: checkpoint.NoExec}
	}
	c := &s.Checkpoints
	c.Restores, c.Restored = 1, stats.Start{ID: 9, Kind: checkpoint.Savepoint, Location: "/savepoints/savepoint-1", At: at(5), Took: 7 * time.Millisecond,
		Tasks: []stats.TaskStart{{Took: 7 * time.Millisecond, Phases: stats.Phases{Wait: time.Millisecond, Read: 4 * time.Millisecond, Bytes: 1000}}}}
	for id := base.CheckpointID(1); id <= 4; id++ {
		r := report(id, checkpoint.Begun)
		if id == 2 {
			r.Kind = checkpoint.Savepoint
		}
		c.Begun(r, 4, func(base.Task) bool { return false })
		c.Triggered(id, at(101))
		for t, p := range parts {
			if id <= 2 || id == 4 && t == 0 {
				c.Acknowledged(checkpoint.TaskAcked{Exec: base.Exec{Task: base.Task(t)}, ID: id, Metrics: p.AckMetrics}, p.Sizes, p.Since)
			}
		}
		if id == 3 {
			c.Writing(3, 1, checkpoint.AckMetrics{StartDelay: 5 * time.Millisecond}, at(205))
			r.Reason = checkpoint.Expired
		}
		if r.What, r.Duration = checkpoint.Succeeded, 12*time.Millisecond; id == 3 {
			r.What = checkpoint.Failed
		}
		if id < 4 {
			c.Closed(g, r, at(100+12*int64(id)))
		}
	}
	c.Discarded(1)
	s.Checkpoints = c.Clone(g, at(305))
	s.Exceptions = []jobmaster.Exception{{Failure: job.Failure{Where: `task "count" (1/2)`, Exec: base.Exec{}, Err: errors.New("boom")}, At: at(50)}}
	return s
}

// end lets the operations end so.
func (r *rig) end(a jobmaster.Answer, err error) {
	r.job.answer, r.job.err = a, err
	close(r.job.finish)
}

// ask makes a request; the answer is decoded with numbers as they are written.
func (r *rig) ask(method, path, body string) (status int, answer any) {
	r.t.Helper()
	q, err := http.NewRequest(method, r.URL()+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	q.Close = true
	return r.send(q)
}

func (r *rig) send(q *http.Request) (status int, answer any) {
	r.t.Helper()
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	if err := d.Decode(&answer); err != nil {
		r.t.Fatalf("%s %s answers %s: %v", q.Method, q.URL, b, err)
	}
	return a.StatusCode, answer
}

// await asks until an operation is COMPLETED, and is what became of it.
func (r *rig) await(path string) map[string]any {
	r.t.Helper()
	for {
		status, answer := r.ask("GET", path, "")
		body := answer.(map[string]any)
		if status != http.StatusOK {
			r.t.Fatalf("%s: %d %v", path, status, answer)
		}
		if body["status"].(map[string]any)["id"] == "COMPLETED" {
			return body["operation"].(map[string]any)
		}
	}
}
