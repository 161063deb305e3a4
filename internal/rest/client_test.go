package rest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/jobmaster"
)

// TestClient: the two ends of this package understand each other.
func TestClient(t *testing.T) {
	r := newRig(t)
	defer r.Close()
	c := clientOf(t, r.URL())
	ctx := t.Context()
	jobs, err := c.Jobs(ctx)
	if err != nil || len(jobs) != 1 || jobs[0].ID != jobID || jobs[0].State != "RUNNING" || jobs[0].Name != "j1" {
		t.Errorf("%+v, %v", jobs, err)
	}
	if timeout, err := c.CheckpointTimeout(ctx, jobID); err != nil || timeout.Minutes() != 10 {
		t.Errorf("%v, %v", timeout, err)
	}
	savepoint, err := c.TriggerSavepoint(ctx, jobID, SavepointOrder{Target: "/sp", Format: checkpoint.Native})
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancelCause(ctx)
	enough := errors.New("enough")
	cancel(enough)
	if _, err := c.AwaitSavepoint(gone, jobID, savepoint); !errors.Is(err, enough) && !errors.Is(err, context.Canceled) {
		t.Errorf("who has waited for long enough hears %v", err)
	}
	full, err := c.TriggerCheckpoint(ctx, jobID, true)
	if err != nil {
		t.Fatal(err)
	}
	r.end(jobmaster.Answer{ID: 7, Location: "/sp/savepoint-1"}, nil)
	if location, err := c.AwaitSavepoint(ctx, jobID, savepoint); err != nil || location != "file:/sp/savepoint-1" {
		t.Errorf("%s, %v", location, err)
	}
	if id, err := c.AwaitCheckpoint(ctx, jobID, full); err != nil || id != 7 || !r.job.full[0] {
		t.Errorf("%d, %v", id, err)
	}
	stop, err := c.TriggerStop(ctx, jobID, SavepointOrder{Target: "/sp", Drain: true})
	if err == nil {
		_, err = c.AwaitSavepoint(ctx, jobID, stop)
	}
	if err != nil || r.job.savepoints[1].Kind != checkpoint.Drain || r.job.savepoints[1].Format != checkpoint.Canonical {
		t.Errorf("%+v, %v", r.job.savepoints, err)
	}
	if err := c.Cancel(ctx, jobID); err != nil || r.job.canceled != 1 {
		t.Errorf("%v", err)
	}
}

// TestErrorsOverTheWire: of a failure its messages are left.
func TestErrorsOverTheWire(t *testing.T) {
	r := newRig(t)
	defer r.Close()
	c := clientOf(t, r.URL())
	ctx := t.Context()
	r.end(jobmaster.Answer{}, &checkpoint.DeclineError{Reason: checkpoint.Expired, Err: errors.New("a disk is full")})
	id, err := c.TriggerSavepoint(ctx, jobID, SavepointOrder{Target: "/sp"})
	if err == nil {
		_, err = c.AwaitSavepoint(ctx, jobID, id)
	}
	if err == nil || err.Error() != "Checkpoint expired before completing. a disk is full" {
		t.Errorf("%v", err)
	}
	if id, err = c.TriggerDisposal(ctx, "/sp/missing"); err == nil {
		err = c.AwaitDisposal(ctx, id)
	}
	if err == nil || err.Error() != "there is nothing" {
		t.Errorf("%v", err)
	}
	if err := c.Cancel(ctx, otherID); err == nil || err.Error() != "Job could not be found." {
		t.Errorf("%v", err)
	}
	r.Close()
	if _, err := c.Jobs(ctx); err == nil || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), "-m HOST:PORT") {
		t.Errorf("%v", err)
	}
}

func clientOf(t *testing.T, address string) *Client {
	t.Helper()
	c, err := NewClient(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

func TestAddresses(t *testing.T) {
	for address, base := range map[string]string{"localhost:8081": "http://localhost:8081", "https://a.b:1/c/": "https://a.b:1/c", "[::1]:80": "http://[::1]:80"} {
		if c, err := NewClient(address); err != nil || c.base != base {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"", "localhost", ":8081", "a b:1"} {
		if _, err := NewClient(address); err == nil {
			t.Errorf("%q is taken for an address", address)
		}
	}
}

// TestTexts: a trace as Flink sends it.
func TestTexts(t *testing.T) {
	const trace = "java.util.concurrent.CompletionException: org.apache.flink.runtime.messages.FlinkJobNotFoundException: Could not find Flink job (f)\n" +
		"\tat java.base/java.util.concurrent.CompletableFuture.encodeThrowable(CompletableFuture.java:332)\n\t... 37 more\n" +
		"Caused by: org.apache.flink.runtime.messages.FlinkJobNotFoundException: Could not find Flink job (f)\n\tat x.Y.z(Y.java:1)\n" +
		"Caused by: java.lang.NullPointerException\n\tat x.Y.z(Y.java:1)\nCaused by: java.io.IOException: two\nlines: of text\n"
	if got, want := textsOf(trace), []string{"Could not find Flink job (f)", "two\nlines: of text"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
