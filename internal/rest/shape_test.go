package rest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/jobmaster"
)

// A shape is the names and types of all fields of an answer. Those in testdata/shapes were taken from answers of Flink 2.3: a line a field, with
// every type that was seen there; "*" stands for an id.
type shape map[string][]string

func readShape(t *testing.T, name string) shape {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "shapes", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := shape{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		field, types, _ := strings.Cut(lines.Text(), " ")
		s[field] = strings.Split(types, "|")
	}
	return s
}

func shapeOf(answer any) shape {
	s := shape{}
	s.add("", answer)
	return s
}

func (s shape) add(field string, v any) {
	name := field
	if name == "" {
		name = "."
	}
	if t := typeName(v); !slices.Contains(s[name], t) {
		s[name] = append(s[name], t)
	}
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if isHex(key) {
				key = "*"
			}
			s.add(field+"."+key, value)
		}
	case []any:
		for _, value := range v {
			s.add(field+"[]", value)
		}
	}
}

func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case string:
		return "text"
	case map[string]any:
		return "object"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "double"
		}
		return "int"
	}
	return "list"
}

// unrecorded is whether nothing is known of a field: one above it was null, or an empty list, whenever Flink was asked.
func (s shape) unrecorded(field string) bool {
	for above := field; above != ""; above = above[:max(0, strings.LastIndexAny(above, ".["))] {
		if types, ok := s[above]; ok && above != field {
			return slices.Equal(types, []string{"null"}) || slices.Equal(types, []string{"list"}) && s[above+"[]"] == nil
		}
	}
	return false
}

// expectShape compares an answer with Flink's. Lacking are the fields, with all below them, that Weir does not have; those
// of a kind of checkpoint that was not recorded are known by name.
func (r *rig) expectShape(name, path string, lacking ...string) {
	r.t.Helper()
	status, answer := r.ask("GET", path, "")
	if status != 200 {
		r.t.Errorf("%s: status %d: %v", path, status, answer)
		return
	}
	compareShape(r.t, name, answer, lacking...)
}

func compareShape(t *testing.T, name string, answer any, lacking ...string) {
	t.Helper()
	want, got := readShape(t, name), shapeOf(answer)
	below := func(field string) bool {
		return slices.ContainsFunc(lacking, func(l string) bool {
			return field == l || strings.HasPrefix(field, l+".") || strings.HasPrefix(field, l+"[")
		})
	}
	for _, field := range slices.Sorted(maps.Keys(got)) {
		types, known := want[field]
		switch {
		case !known && (want.unrecorded(field) || ofFailed(field) || own(field)):
		case !known:
			t.Errorf("%s: Flink has no field %s", name, field)
		case slices.Equal(types, []string{"null"}):
		default:
			for _, g := range got[field] {
				if !slices.Contains(types, g) && !(g == "null" && nullable[field]) {
					t.Errorf("%s: field %s is %s; in Flink it is %v", name, field, g, types)
				}
			}
		}
	}
	for _, field := range slices.Sorted(maps.Keys(want)) {
		if _, ok := got[field]; !ok && !below(field) {
			t.Errorf("%s: field %s of Flink's is missing", name, field)
		}
	}
}

// ofFailed is whether only checkpoints that failed have a field; none had when Flink was asked.
func ofFailed(field string) bool {
	return strings.HasSuffix(field, ".failure_timestamp") || strings.HasSuffix(field, ".failure_message")
}

// own is whether a field is one that Weir has beside Flink's.
func own(field string) bool {
	return strings.HasSuffix(field, ".explanation") || field == ".latest.restored.duration" || strings.HasPrefix(field, ".latest.restored.initialization")
}

// nullable are fields that were never null when Flink was asked, but may be.
var nullable = map[string]bool{
	".exceptionHistory.entries[].taskName": true, ".exceptionHistory.entries[].endpoint": true, ".exceptionHistory.entries[].taskManagerId": true,
}

// TestShapes: every answer has the fields of Flink's, of the same types, and no others.
func TestShapes(t *testing.T) {
	r := newRig(t)
	of := "/jobs/" + jobID
	source, count := vertexID(r.options.Graph.Vertices[0]), vertexID(r.options.Graph.Vertices[1])
	r.expectShape("config", "/config")
	r.expectShape("overview", "/v1/overview")
	r.expectShape("jobs", "/jobs")
	r.expectShape("jobs-overview", "/jobs/overview")
	r.expectShape("job", of)
	r.expectShape("job-status", of+"/status")
	r.expectShape("job-plan", of+"/plan")
	r.expectShape("job-config", of+"/config")
	r.expectShape("job-exceptions", of+"/exceptions")
	r.expectShape("job-accumulators", of+"/accumulators")
	r.expectShape("execution-result", of+"/execution-result")
	r.expectShape("jobmanager-config", "/jobmanager/config")
	r.expectShape("checkpoints", of+"/checkpoints")
	r.expectShape("checkpoints-config", of+"/checkpoints/config")
	r.expectShape("checkpoint", of+"/checkpoints/details/1")
	r.expectShape("checkpoint-subtasks", of+"/checkpoints/details/1/subtasks/"+count)
	r.expectShape("vertex", of+"/vertices/"+source, ".aggregated.status-duration.SCHEDULED", ".aggregated.status-duration.RUNNING") // the rig runs in the future
	r.expectShape("subtask", of+"/vertices/"+count+"/subtasks/1")
	r.expectShape("job-metrics", of+"/metrics", "[].value")
	r.expectShape("job-metrics", of+"/metrics?get=uptime,numRestarts")
}

// TestShapesOfOperations: so have the answers of what takes its time.
func TestShapesOfOperations(t *testing.T) {
	r := newRig(t)
	of := "/jobs/" + jobID
	_, answer := r.ask("POST", of+"/savepoints", `{"target-directory":"/sp","triggerId":"`+trigger+`"}`)
	compareShape(t, "triggered", answer)
	_, answer = r.ask("GET", of+"/savepoints/"+trigger, "")
	compareShape(t, "savepoint-progress", answer, ".operation.failure-cause", ".operation.location")
	_, answer = r.ask("POST", of+"/checkpoints", "")
	compareShape(t, "triggered", answer)
	checkpointAt := of + "/checkpoints/" + answer.(map[string]any)["request-id"].(string)
	_, answer = r.ask("POST", "/savepoint-disposal", `{"savepoint-path":"/sp/one"}`)
	compareShape(t, "triggered", answer)
	disposalAt := "/savepoint-disposal/" + answer.(map[string]any)["request-id"].(string)
	r.end(jobmaster.Answer{ID: 7, Location: "/sp/savepoint-1"}, nil)
	for name, path := range map[string]string{"savepoint": of + "/savepoints/" + trigger, "checkpoint": checkpointAt, "disposal": disposalAt} {
		r.await(path)
		r.expectShape(name+"-progress", path, ".operation.failure-cause")
	}
	_, answer = r.ask("PATCH", of+"?mode=cancel", "{}")
	compareShape(t, "cancelled", answer)
	_, answer = r.ask("GET", "/nowhere", "")
	compareShape(t, "error", answer)
}

// TestShapeOfFailures: a failure is told in three texts; a checkpoint's under another name.
func TestShapeOfFailures(t *testing.T) {
	r := newRig(t)
	r.end(jobmaster.Answer{}, &checkpoint.DeclineError{Reason: checkpoint.Expired, Err: errors.New("a disk is full")})
	of := "/jobs/" + jobID
	r.ask("POST", of+"/savepoints", `{"target-directory":"/sp","triggerId":"`+trigger+`"}`)
	r.await(of + "/savepoints/" + trigger)
	r.expectShape("savepoint-progress", of+"/savepoints/"+trigger, ".operation.location")
	r.ask("POST", of+"/checkpoints", `{"triggerId":"`+trigger+`"}`)
	end := r.await(of + "/checkpoints/" + trigger)
	f := end["failureCause"].(map[string]any)
	want := "java.util.concurrent.CompletionException: org.apache.flink.runtime.checkpoint.CheckpointException: Checkpoint expired before completing. a disk is full\n" +
		"Caused by: org.apache.flink.runtime.checkpoint.CheckpointException: Checkpoint expired before completing. a disk is full\n"
	if f["class"] != completionException || f["stack-trace"] != want {
		t.Errorf("the failure is %q", f)
	}
}

// TestEndedJob: after its end a job says how it ended.
func TestEndedJob(t *testing.T) {
	r := newRig(t)
	for status, want := range map[job.Status]string{job.Finished: "SUCCEEDED", job.Canceled: "CANCELED", job.Failed: "FAILED"} {
		r.job.mu.Lock()
		r.job.status.Status = status
		r.job.status.Since[status] = r.job.status.Since[job.Running].Add(1)
		r.job.mu.Unlock()
		_, answer := r.ask("GET", "/jobs/"+jobID+"/execution-result", "")
		result := answer.(map[string]any)["job-execution-result"].(map[string]any)
		if result["application-status"] != want || (result["failure-cause"] != nil) != (status == job.Failed) {
			t.Errorf("%v: %v", status, result)
		}
		if code, _ := r.ask("PATCH", "/jobs/"+jobID, ""); code != map[job.Status]int{job.Finished: 409, job.Canceled: 202, job.Failed: 409}[status] {
			t.Errorf("%v: cancelling is answered with %d", status, code)
		}
		_, answer = r.ask("GET", "/jobs/overview", "")
		if o := answer.(map[string]any)["jobs"].([]any)[0].(map[string]any); o["state"] != status.String() || fmt.Sprint(o["duration"]) != "10" {
			t.Errorf("%v: %v", status, o)
		}
	}
}
