package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/rest"
)

const aJob = "902004b38894ad5f013dde716bf994b1"

// exchange is one request that the command line must send, and the answer that it gets.
type exchange struct {
	request string // method, path, and the body
	status  int
	answer  string
}

// conversation is a server that takes exactly these exchanges, in order.
func conversation(t *testing.T, exchanges ...exchange) string {
	left := exchanges
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got := strings.TrimSpace(fmt.Sprint(r.Method, " ", r.URL.RequestURI(), " ", ordered(body)))
		if len(left) == 0 || left[0].request != got {
			t.Errorf("sent %s; want %v", got, left)
			http.Error(w, "unexpected", http.StatusTeapot)
			return
		}
		w.WriteHeader(left[0].status)
		_, _ = io.WriteString(w, left[0].answer)
		left = left[1:]
	}))
	t.Cleanup(func() {
		s.Close()
		if len(left) > 0 {
			t.Errorf("not sent: %v", left)
		}
	})
	return strings.TrimPrefix(s.URL, "http://")
}

// ordered is JSON with its fields in order, without those that are null.
func ordered(body []byte) string {
	fields := map[string]any{}
	if json.Unmarshal(body, &fields) != nil || len(fields) == 0 {
		return ""
	}
	maps.DeleteFunc(fields, func(_ string, v any) bool { return v == nil })
	b, _ := json.Marshal(fields)
	return string(b)
}

// TestActions: requests and words are those of Flink's command line.
func TestActions(t *testing.T) {
	const request = `{"request-id":"501e27e9846356c6873df63ca34078f3"}`
	const polled = "/501e27e9846356c6873df63ca34078f3"
	const inProgress = `{"status":{"id":"IN_PROGRESS"},"operation":null}`
	completed := func(operation string) string { return `{"status":{"id":"COMPLETED"},"operation":` + operation + `}` }
	location := completed(`{"location":"file:/sp/savepoint-902004-e5490460d826"}`)
	jobs := "/v1/jobs/" + aJob
	for _, c := range []struct {
		args      string
		exchanges []exchange
		status    int
		want      string
	}{
		{"savepoint JOB /sp", []exchange{
			{"POST " + jobs + `/savepoints {"cancel-job":false,"formatType":"CANONICAL","target-directory":"/sp"}`, 202, request},
			{"GET " + jobs + "/savepoints" + polled, 200, inProgress},
			{"GET " + jobs + "/savepoints" + polled, 200, location},
		}, 0, "Triggering savepoint for job JOB.\nWaiting for response...\nSavepoint completed. Path: file:/sp/savepoint-902004-e5490460d826\n" +
			"You can resume your program from this savepoint with the run command.\n"},
		{"savepoint -type native -detached JOB", []exchange{
			{"POST " + jobs + `/savepoints {"cancel-job":false,"formatType":"NATIVE"}`, 202, request},
		}, 0, "Triggering savepoint in detached mode for job JOB.\nSuccessfully trigger manual savepoint, triggerId: 501e27e9846356c6873df63ca34078f3\n"},
		{"savepoint JOB", []exchange{
			{"POST " + jobs + `/savepoints {"cancel-job":false,"formatType":"CANONICAL"}`, 400,
				`{"errors":["org.apache.flink.runtime.rest.handler.RestHandlerException: Config key [execution.checkpointing.savepoint-dir] is not set. Property [target-directory] must be provided.\n\tat somewhere"]}`},
		}, 1, "Triggering savepoint for job JOB.\nWaiting for response...\n\n------------------------------------------------------------\n" +
			" The program finished with the following exception:\n\nFailed to trigger a savepoint for the job JOB.\n" +
			"Caused by: Config key [execution.checkpointing.savepoint-dir] is not set. Property [target-directory] must be provided.\n"},
		{"savepoint JOB /full", []exchange{
			{"POST " + jobs + `/savepoints {"cancel-job":false,"formatType":"CANONICAL","target-directory":"/full"}`, 202, request},
			{"GET " + jobs + "/savepoints" + polled, 200, completed(`{"failure-cause":{"class":"x","stack-trace":"java.util.concurrent.CompletionException: a.b.CheckpointException: No space left.\n\tat x\nCaused by: a.b.IOException: /full\n"}}`)},
		}, 1, "Triggering savepoint for job JOB.\nWaiting for response...\n\n------------------------------------------------------------\n" +
			" The program finished with the following exception:\n\nFailed to trigger a savepoint for the job JOB.\nCaused by: No space left.\nCaused by: /full\n"},
		{"savepoint -d /sp/one", []exchange{
			{`POST /v1/savepoint-disposal {"savepoint-path":"/sp/one"}`, 200, request},
			{"GET /v1/savepoint-disposal" + polled, 200, completed("{}")},
		}, 0, "Disposing savepoint '/sp/one'.\nWaiting for response...\nSavepoint '/sp/one' disposed.\n"},
		{"checkpoint -full JOB", []exchange{
			{"POST " + jobs + `/checkpoints {"checkpointType":"FULL"}`, 202, request},
			{"GET " + jobs + "/checkpoints" + polled, 200, completed(`{"checkpointId":3}`)},
		}, 0, "Triggering checkpoint for job JOB.\nWaiting for response...\nCheckpoint(FULL) 3 for job JOB completed.\n" +
			"You can resume your program from this checkpoint with the run command.\n"},
		{"stop --drain --type native --savepointPath /sp JOB", []exchange{
			{"POST " + jobs + `/stop {"drain":true,"formatType":"NATIVE","targetDirectory":"/sp"}`, 202, request},
			{"GET " + jobs + "/savepoints" + polled, 200, location},
		}, 0, "Draining job \"JOB\" with a NATIVE savepoint.\nTriggering stop-with-savepoint for job JOB.\nWaiting for response...\n" +
			"Savepoint completed. Path: file:/sp/savepoint-902004-e5490460d826\n"},
		{"stop -p JOB", []exchange{ // what stands behind the option is the job, where nothing else does
			{"POST " + jobs + `/stop {"drain":false,"formatType":"CANONICAL"}`, 202, request},
			{"GET " + jobs + "/savepoints" + polled, 200, location},
		}, 0, "Suspending job \"JOB\" with a CANONICAL savepoint.\nTriggering stop-with-savepoint for job JOB.\nWaiting for response...\n" +
			"Savepoint completed. Path: file:/sp/savepoint-902004-e5490460d826\n"},
		{"cancel JOB", []exchange{{"PATCH " + jobs + "?mode=cancel", 202, "{}"}}, 0, "Cancelling job JOB.\nCancelled job JOB.\n"},
		{"cancel JOB", []exchange{{"PATCH " + jobs + "?mode=cancel", 404, `{"errors":["a.b.RestHandlerException: Job could not be found.\n\tat x"]}`}}, 1,
			"Cancelling job JOB.\n\n------------------------------------------------------------\n The program finished with the following exception:\n\n" +
				"Could not cancel job JOB.\nCaused by: Job could not be found.\n"},
		{"cancel -s /sp JOB", []exchange{
			{"POST " + jobs + `/savepoints {"cancel-job":true,"formatType":"CANONICAL","target-directory":"/sp"}`, 202, request},
			{"GET " + jobs + "/savepoints" + polled, 200, location},
		}, 0, "DEPRECATION WARNING: Cancelling a job with savepoint is deprecated. Use \"stop\" instead.\n" +
			"Cancelling job JOB with CANONICAL savepoint to /sp.\nCancelled job JOB. Savepoint stored in file:/sp/savepoint-902004-e5490460d826.\n"},
		{"stop notahexid", nil, 1, "Cannot parse JobID from \"notahexid\". The expected format is [0-9a-fA-F]{32}, e.g. fd72014d4c864993a2e5a9287b4a9c5d.\n\n" +
			"Use the help option (-h or --help) to get help on the command.\n"},
		{"cancel", nil, 1, "Missing JobID. Specify a JobID to cancel a job.\n\nUse the help option (-h or --help) to get help on the command.\n"},
		{"list", []exchange{{"GET /v1/jobs/overview", 200, `{"jobs":[]}`}}, 0, "Waiting for response...\nNo running jobs.\nNo scheduled jobs.\n"},
	} {
		t.Run(c.args, func(t *testing.T) {
			at := conversation(t, c.exchanges...)
			args := strings.Fields(strings.ReplaceAll(c.args, "JOB", aJob))
			args = append([]string{args[0], "-m", at, "-D", "client.timeout=1min"}, args[1:]...)
			var out bytes.Buffer
			if got := run(args, &out, &out); got != c.status {
				t.Errorf("exit status %d", got)
			}
			if want := strings.ReplaceAll(c.want, "JOB", aJob); out.String() != want {
				t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
			}
		})
	}
}

func TestListIsSorted(t *testing.T) {
	var out bytes.Buffer
	listJobs(&out, []rest.JobOverview{{ID: "b", State: "RUNNING", Start: 2000}, {ID: "a", State: "RUNNING", Start: 1000},
		{ID: "c", State: "RESTARTING", Start: 3000}, {ID: "d", State: "CREATED", Start: 1}, {ID: "e", State: "FAILED", Start: 1}}, true, true, true)
	var ids []string
	for line := range strings.Lines(out.String()) {
		if _, after, ok := strings.Cut(line, " : "); ok {
			ids = append(ids, after[:1])
		}
	}
	if got := strings.Join(ids, ""); got != "cabde" {
		t.Errorf("in the order %s:\n%s", got, out.String())
	}
}

func TestNobodyAnswers(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	at := strings.TrimPrefix(s.URL, "http://")
	s.Close()
	var out bytes.Buffer
	if got := run([]string{"list", "-m", at, "-D", "client.timeout=1min"}, &out, &out); got != 1 || !strings.Contains(out.String(), "Nothing answers at "+at) {
		t.Errorf("exit status %d\n%s", got, out.String())
	}
}

// TestStillUnderWay: a savepoint that takes longer than the client waits has not failed. It is told apart by the exit status.
func TestStillUnderWay(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.WriteString(w, `{"request-id":"501e27e9846356c6873df63ca34078f3"}`)
			return
		}
		_, _ = io.WriteString(w, `{"status":{"id":"IN_PROGRESS"},"operation":null}`)
	}))
	defer s.Close()
	for _, action := range [][]string{{"savepoint"}, {"stop"}, {"checkpoint"}, {"cancel", "-s", "/sp"}} {
		var out bytes.Buffer
		args := append(action, "-m", strings.TrimPrefix(s.URL, "http://"), "-D", "client.timeout=20ms", aJob)
		if got := run(args, &out, &out); got != exitPending || !strings.Contains(out.String(), "is still under way, and goes on: triggerId 501e27e9846356c6873df63ca34078f3") {
			t.Errorf("%v: exit status %d\n%s", action, got, out.String())
		}
	}
}
