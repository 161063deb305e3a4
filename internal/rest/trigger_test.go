package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/jobmaster"
)

// refused is a request that is answered with an error, whose one text begins so.
type refused struct {
	method, path, body string
	status             int
	text               string
}

func TestRefusals(t *testing.T) {
	r := newRig(t)
	r.end(jobmaster.Answer{Location: "/sp/savepoint-1"}, nil)
	const handler, missing = "org.apache.flink.runtime.rest.handler.RestHandlerException: ", "org.apache.flink.runtime.rest.NotFoundException: "
	of, other := "/v1/jobs/"+jobID, "/jobs/"+otherID
	for _, c := range []refused{
		{"GET", "/nowhere", "", 404, "Unable to load requested file /nowhere."},
		{"GET", "/v1/nowhere", "", 404, "Unable to load requested file /v1/nowhere."},
		{"GET", "/v2/overview", "", 404, "Unable to load requested file /v2/overview."},
		{"GET", "/savepoint-disposal", "", 404, "Unable to load requested file /savepoint-disposal."},
		{"POST", "/nowhere", "", 404, "Not found: /nowhere"},
		{"DELETE", of, "", 404, "Not found: " + of},
		{"GET", other, "", 404, missing + "Job " + otherID + " not found"},
		{"GET", other + "/checkpoints", "", 404, missing + "Job " + otherID + " not found"},
		{"GET", "/jobs/notahexid", "", 400, handler + `Bad request, could not parse parameters: Cannot resolve path parameter (jobid) from value "notahexid".`},
		{"GET", of + "/vertices/" + otherID, "", 404, missing + "JobVertex " + otherID + " not found"},
		{"GET", of + "/checkpoints/details/999999", "", 404, handler + "Could not find checkpointing statistics for checkpoint 999999."},
		{"GET", of + "/checkpoints/details/x", "", 400, handler + `Bad request, could not parse parameters: Cannot resolve path parameter (checkpointid) from value "x".`},
		{"GET", of + "/savepoints/" + trigger, "", 404, missing + "There is no savepoint operation with triggerId=" + trigger + " for job " + jobID + "."},
		{"GET", of + "/checkpoints/" + trigger, "", 404, missing + "There is no checkpoint operation with triggerId=" + trigger + " for job " + jobID + "."},
		{"GET", of + "/savepoints/x", "", 400, handler + `Bad request, could not parse parameters: Cannot resolve path parameter (triggerid) from value "x".`},
		// Without a directory, whether there is such a job or not; the two spell their field each in its own way.
		{"POST", of + "/savepoints", "{}", 400, handler + "Config key [execution.checkpointing.savepoint-dir] is not set. Property [target-directory] must be provided."},
		{"POST", other + "/stop", `{"target-directory":"/sp"}`, 400, handler + "Config key [execution.checkpointing.savepoint-dir] is not set. Property [targetDirectory] must be provided."},
		{"POST", of + "/savepoints", "{", 400, handler + "Request did not match expected format SavepointTriggerRequestBody."},
		{"POST", of + "/savepoints", `{"formatType":"canonical"}`, 400, handler + "Request did not match expected format SavepointTriggerRequestBody."},
		{"POST", of + "/stop", `{"triggerId":"x"}`, 400, handler + "Request did not match expected format StopWithSavepointRequestBody."},
		{"POST", of + "/checkpoints", `{"checkpointType":"BIG"}`, 400, handler + "Request did not match expected format CheckpointTriggerRequestBody."},
		{"POST", of + "/checkpoints", `{"checkpointType":"INCREMENTAL"}`, 500, "java.lang.UnsupportedOperationException: "},
		{"POST", "/savepoint-disposal", "{}", 400, handler + "Field savepoint-path must not be omitted or be null."},
		{"PATCH", other, "", 404, handler + "Job could not be found."},
		{"PATCH", of + "?mode=stop", "", 308, handler + `The termination mode "stop" has been removed.`},
		{"PATCH", of + "?mode=x", "", 400, handler + `Bad request, could not parse parameters: Cannot resolve query parameter (mode) from value "x".`},
	} {
		status, answer := r.ask(c.method, c.path, c.body)
		texts, _ := answer.(map[string]any)["errors"].([]any)
		if status != c.status || len(texts) != 1 || !strings.HasPrefix(texts[0].(string), c.text) {
			t.Errorf("%s %s %s: %d %v\nwant %d %s", c.method, c.path, c.body, status, answer, c.status, c.text)
		}
	}
	if r.job.canceled > 0 || len(r.job.savepoints) > 0 {
		t.Error("something was done all the same")
	}
}

// TestOrders: what is asked for in Flink's words reaches the job. Fields that nobody knows are ignored.
func TestOrders(t *testing.T) {
	r := newRig(t, config.SavepointDir.Key, "/default")
	r.end(jobmaster.Answer{ID: 7, Location: "/sp/savepoint-1"}, nil)
	of := "/jobs/" + jobID
	for _, c := range []struct {
		path, body string
		want       jobmaster.Savepoint
	}{
		{"/savepoints", "", jobmaster.Savepoint{Kind: checkpoint.Savepoint, Format: checkpoint.Canonical}},
		{"/savepoints", `{"target-directory":"/sp","cancel-job":false,"formatType":"NATIVE","triggerId":null,"more":[1]}`,
			jobmaster.Savepoint{Kind: checkpoint.Savepoint, Format: checkpoint.Native, Target: "/sp"}},
		{"/savepoints", `{"cancel-job":true}`, jobmaster.Savepoint{Kind: checkpoint.Savepoint, Format: checkpoint.Canonical, Cancel: true}},
		{"/stop", `{"targetDirectory":"/sp"}`, jobmaster.Savepoint{Kind: checkpoint.Suspend, Format: checkpoint.Canonical, Target: "/sp"}},
		{"/stop", `{"drain":true,"formatType":"NATIVE"}`, jobmaster.Savepoint{Kind: checkpoint.Drain, Format: checkpoint.Native}},
	} {
		status, answer := r.ask("POST", of+c.path, c.body)
		end := r.await(of + "/savepoints/" + answer.(map[string]any)["request-id"].(string))
		if status != http.StatusAccepted || end["location"] != "file:/sp/savepoint-1" {
			t.Errorf("%s %s: %d %v", c.path, c.body, status, end)
		}
		if got := r.job.savepoints[len(r.job.savepoints)-1]; got != c.want {
			t.Errorf("%s %s: the job was asked for %+v; want %+v", c.path, c.body, got, c.want)
		}
	}
	for _, c := range []struct {
		body string
		full bool
	}{{"", false}, {`{"checkpointType":"CONFIGURED"}`, false}, {`{"checkpointType":"FULL"}`, true}} {
		_, answer := r.ask("POST", of+"/checkpoints", c.body)
		end := r.await(of + "/checkpoints/" + answer.(map[string]any)["request-id"].(string))
		if got := r.job.full[len(r.job.full)-1]; fmt.Sprint(end["checkpointId"]) != "7" || got != c.full {
			t.Errorf("%s: full %v, %v", c.body, got, end)
		}
	}
	if status, _ := r.ask("PATCH", of, "{}"); status != http.StatusAccepted || r.job.canceled != 1 {
		t.Errorf("cancel: status %d, %d times", status, r.job.canceled)
	}
}

// TestSameTriggerID: who repeats a request, because its answer was lost, begins nothing twice.
func TestSameTriggerID(t *testing.T) {
	r := newRig(t)
	of := "/jobs/" + jobID
	for range 3 {
		status, answer := r.ask("POST", of+"/stop", `{"targetDirectory":"/sp","triggerId":"`+strings.ToUpper(trigger)+`"}`)
		if id := answer.(map[string]any)["request-id"]; status != http.StatusAccepted || id != trigger {
			t.Errorf("%d, request-id %v", status, id)
		}
	}
	r.end(jobmaster.Answer{Location: "/sp/savepoint-1"}, nil)
	r.await(of + "/savepoints/" + trigger)
	if len(r.job.savepoints) != 1 {
		t.Errorf("%d savepoints", len(r.job.savepoints))
	}
}

// TestUnknownJob: a savepoint of a job that is not here is begun, and fails, as in Flink.
func TestUnknownJob(t *testing.T) {
	r := newRig(t)
	r.end(jobmaster.Answer{}, nil)
	for _, path := range []string{"/savepoints", "/stop", "/checkpoints"} {
		status, answer := r.ask("POST", "/jobs/"+otherID+path, `{"target-directory":"/sp","targetDirectory":"/sp"}`)
		at := strings.Replace(path, "/stop", "/savepoints", 1)
		end := r.await("/jobs/" + otherID + at + "/" + answer.(map[string]any)["request-id"].(string))
		text := fmt.Sprint(end)
		if want := "org.apache.flink.runtime.messages.FlinkJobNotFoundException: Could not find Flink job (" + otherID + ")"; status != 202 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

func TestDisposal(t *testing.T) {
	r := newRig(t)
	r.end(jobmaster.Answer{}, nil)
	dispose := func(path string) map[string]any {
		status, answer := r.ask("POST", "/savepoint-disposal", `{"savepoint-path":"`+path+`"}`)
		if status != http.StatusOK {
			t.Errorf("status %d", status)
		}
		return r.await("/savepoint-disposal/" + answer.(map[string]any)["request-id"].(string))
	}
	if end := dispose("/sp/one"); len(end) > 0 || len(r.gone) != 1 || r.gone[0] != "/sp/one" {
		t.Errorf("%v; gone: %v", end, r.gone)
	}
	if end := dispose("/sp/missing"); !strings.Contains(fmt.Sprint(end["failure-cause"]), "there is nothing") {
		t.Errorf("%v", end)
	}
}

// TestJobThatStopped: a job that has stopped is gone at once; who stopped it must hear of it all the same.
func TestJobThatStopped(t *testing.T) {
	r := newRig(t)
	of := "/jobs/" + jobID
	r.ask("POST", of+"/stop", `{"targetDirectory":"/sp","triggerId":"`+trigger+`"}`)
	closed := make(chan struct{})
	go func() {
		r.Close()
		close(closed)
	}()
	r.end(jobmaster.Answer{Location: "/sp/savepoint-1"}, nil)
	if end := r.await(of + "/savepoints/" + trigger); end["location"] != "file:/sp/savepoint-1" {
		t.Errorf("%v", end)
	}
	<-closed
}

// TestNobodyAsks: but one who never asks does not keep it.
func TestNobodyAsks(t *testing.T) {
	o := newOperations()
	o.begin(operationKey{kind: savepointOperation}, func() any { return savepointEnd{} })
	o.settle(time.Millisecond)
	if end, known := o.look(operationKey{kind: savepointOperation}); end == nil || !known {
		t.Error("it has not ended")
	}
}

func TestForeignPages(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		method, header, value string
		status                int
	}{
		{"GET", "Host", "evil.example:8081", 403},
		{"GET", "Host", "localhost:8081", 200},
		{"GET", "Host", "[::1]", 200},
		{"PATCH", "Origin", "http://evil.example", 403},
		{"PATCH", "Sec-Fetch-Site", "cross-site", 403},
		{"PATCH", "Origin", r.URL(), 202},
		{"PATCH", "Accept", "*/*", 202},
	} {
		q, err := http.NewRequest(c.method, r.URL()+"/jobs/"+jobID, nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Close = true
		q.Header.Set(c.header, c.value)
		if c.header == "Host" {
			q.Host = c.value
		}
		if status, answer := r.send(q); status != c.status {
			t.Errorf("%s with %s: %s: %d %v", c.method, c.header, c.value, status, answer)
		}
	}
}

// TestPorts: a job takes the port that it is told, or says why not; told none, the next free one.
func TestPorts(t *testing.T) {
	r := newRig(t)
	_, port, _ := strings.Cut(strings.TrimPrefix(r.URL(), "http://"), ":")
	var l config.Layer
	l.Set(config.RestPort.Key, port, "test")
	c, err := config.Build(l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listen(c); err == nil || !strings.Contains(err.Error(), "choose another address or port (rest.bind-address, rest.port; port -1: none)") {
		t.Errorf("a taken port: %v", err)
	}
	first, err := listen(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := listen(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if first.Addr().String() == second.Addr().String() || !strings.HasPrefix(second.Addr().String(), "127.0.0.1:") {
		t.Errorf("at %v and %v", first.Addr(), second.Addr())
	}
}

func TestClasses(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("x: %w", &job.StoppedError{Err: &checkpoint.DeclineError{}}), "org.apache.flink.runtime.scheduler.stopwithsavepoint.StopWithSavepointStoppingException"},
		{fmt.Errorf("x: %w", &checkpoint.DeclineError{}), "org.apache.flink.runtime.checkpoint.CheckpointException"},
		{errors.New("x"), "org.apache.flink.util.FlinkException"},
	} {
		if got := classOf(c.err); got != c.want {
			t.Errorf("%v: %s", c.err, got)
		}
	}
}
