package rest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// FuzzBody: any body of a request is one, or a bad request.
func FuzzBody(f *testing.F) {
	for i, body := range []string{`{"target-directory":"/sp","cancel-job":true,"formatType":"NATIVE","triggerId":"` + trigger + `"}`,
		`{"targetDirectory":"/sp","drain":true,"formatType":"CANONICAL"}`, `{"checkpointType":"FULL","triggerId":null}`, `{"savepoint-path":"/sp"}`, `[]`, `{"triggerId":7}`} {
		f.Add(uint8(i), []byte(body))
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		into := []any{&savepointRequest{}, &stopRequest{}, &checkpointRequest{}, &disposalRequest{}}[which%4]
		err := decode(httptest.NewRequest("POST", "/", bytes.NewReader(body)), "Body", into)
		refused, _ := err.(*fault)
		if err != nil && (refused == nil || refused.status != http.StatusBadRequest) {
			t.Errorf("%q: %v", body, err)
		}
	})
}

// answering gives the same answer to every request.
type answering struct {
	status int
	body   []byte
}

func (a answering) RoundTrip(q *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Request: q, Body: io.NopCloser(bytes.NewReader(a.body))}, nil
}

// FuzzAnswer: any answer of a server is one that the command line understands, or an error.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{`{"jobs":[{"jid":"` + jobID + `","name":"j","state":"RUNNING","start-time":1}]}`, `{"timeout":600000,"state_backend":"heap"}`,
		`{"counts":{"completed":1},"history":[{"id":1,"status":"COMPLETED","latest_ack_timestamp":1}],"latest":{"failed":null}}`, `{"request-id":"` + trigger + `"}`,
		`{"status":{"id":"COMPLETED"},"operation":{"location":"/sp"}}`, `{"status":{"id":"COMPLETED"},"operation":{"failureCause":{"class":"c","stack-trace":"a.B: c\n\tat d"}}}`,
		`{"errors":["no such job","a.b.C: d\n\tat e"]}`, `{"vertices":[{"id":"` + jobID + `","parallelism":2}]}`} {
		f.Add(true, []byte(body))
		f.Add(false, []byte(body))
	}
	f.Fuzz(func(t *testing.T, ok bool, body []byte) {
		status := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[ok]
		c := &Client{base: "http://job:1", http: http.Client{Transport: answering{status, body}}}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // what is not completed is not asked for again
		_, _ = c.Jobs(ctx)
		_, _ = c.CheckpointTimeout(ctx, jobID)
		_, _ = c.Checkpoints(ctx, jobID)
		_, _ = c.Checkpoint(ctx, jobID, "1")
		_, _ = c.Share(ctx, jobID, "1", jobID)
		_, _ = c.Vertices(ctx, jobID)
		_, _ = c.TriggerSavepoint(ctx, jobID, SavepointOrder{})
		_, _ = c.AwaitSavepoint(ctx, jobID, trigger)
		_, _ = c.AwaitCheckpoint(ctx, jobID, trigger)
		_ = c.AwaitDisposal(ctx, trigger)
		if err := c.Cancel(ctx, jobID); !ok && err == nil {
			t.Error("a refusal is taken for an answer")
		}
	})
}
