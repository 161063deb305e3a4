package rest

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/task"
)

// at is the value at a path of an answer, as in "history.0.status".
func at(answer any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch v := answer.(type) {
		case map[string]any:
			answer = v[name]
		case []any:
			var i int
			_, _ = fmt.Sscan(name, &i)
			answer = v[i]
		}
	}
	return answer
}

func (r *rig) expectValues(path string, want map[string]any) {
	r.t.Helper()
	status, answer := r.ask("GET", path, "")
	if status != 200 {
		r.t.Fatalf("%s: %d %v", path, status, answer)
	}
	for field, w := range want {
		if got := fmt.Sprint(at(answer, field)); got != fmt.Sprint(w) {
			r.t.Errorf("%s: %s is %s, want %v", path, field, got, w)
		}
	}
}

// TestCheckpointValues: what was measured is where Flink has it.
func TestCheckpointValues(t *testing.T) {
	r := newRig(t)
	of := "/jobs/" + jobID
	source, count := vertexID(r.options.Graph.Vertices[0]), vertexID(r.options.Graph.Vertices[1])
	r.expectValues(of+"/checkpoints", map[string]any{
		"counts.total": 4, "counts.completed": 2, "counts.failed": 1, "counts.in_progress": 1, "counts.restored": 1,
		"summary.state_size.min": 412, "summary.checkpointed_size.max": 408, "summary.end_to_end_duration.p99": "9.0", "summary.processed_data.avg": 64,
		"summary.persisted_data.p50": "20.0", "summary.alignment_buffered.p50": "0.0",
		"history.0.status": "IN_PROGRESS", "history.0.checkpointed_size": 4, "history.0.end_to_end_duration": 5, "history.0.num_acknowledged_subtasks": 1,
		"history.1.status": "FAILED", "history.1.end_to_end_duration": 36, "history.1.failure_message": "Checkpoint expired before completing.",
		"history.2.checkpoint_type": "SAVEPOINT", "history.2.savepointFormat": "CANONICAL",
		"history.3.checkpoint_type": "UNALIGNED_CHECKPOINT", "history.3.processed_data": 64, "history.3.persisted_data": 20, "history.3.discarded": true,
		"latest.completed.id": 1, "latest.savepoint.id": 2, "latest.failed.id": 3, "latest.restored.id": 9, "latest.restored.duration": 7,
		"latest.restored.initialization.max.read": 4, "latest.restored.initialization.sum.bytes": 1000,
	})
	for i := range 4 {
		_, answer := r.ask("GET", of+"/checkpoints", "")
		if s, _ := at(answer, fmt.Sprint("history.", i, ".explanation")).(string); !strings.HasSuffix(s, ".") {
			t.Errorf("entry %d is explained as %q", i, s)
		}
	}
	r.expectValues(of+"/checkpoints/details/1", map[string]any{
		"tasks." + source + ".state_size": 12, "tasks." + source + ".checkpointed_size": 10, "tasks." + source + ".end_to_end_duration": 6,
		"tasks." + count + ".processed_data": 64, "tasks." + count + ".persisted_data": 20, "tasks." + count + ".latest_ack_timestamp": 1_800_000_000_109,
	})
	r.expectValues(of+"/checkpoints/details/1/subtasks/"+count, map[string]any{
		"summary.checkpoint_duration.sync.max": 2, "summary.checkpoint_duration.async.avg": 3, "summary.alignment.duration.max": 2,
		"summary.alignment.processed.max": 64, "summary.alignment.persisted.min": 0, "summary.alignment.buffered.p99": "0.0", "summary.start_delay.min": 3,
		"summary.start_delay.p50": "NaN", "subtasks.1.ack_timestamp": 1_800_000_000_109, "subtasks.1.checkpointed_size": 299, "subtasks.1.state_size": 300,
		"subtasks.1.checkpoint.sync": 2, "subtasks.1.checkpoint.async": 4, "subtasks.1.alignment.duration": 1, "subtasks.1.alignment.processed": 64,
		"subtasks.0.alignment.persisted": 20, "subtasks.1.start_delay": 3, "subtasks.1.unaligned_checkpoint": true, "subtasks.1.aborted": false,
	})
	// One had taken its snapshot when the checkpoint was given up, the others had not.
	r.expectValues(of+"/checkpoints/details/3/subtasks/"+source, map[string]any{
		"subtasks.0.status": "pending_or_failed", "subtasks.1.status": "completed", "subtasks.1.aborted": true, "subtasks.1.start_delay": 5,
		"num_acknowledged_subtasks": 0, "end_to_end_duration": -1,
	})
	r.expectValues(of+"/metrics?get=lastCheckpointDuration,lastCheckpointSize,lastCheckpointFullSize,lastCheckpointProcessedData,lastCheckpointRestoreTimestamp",
		map[string]any{"0.value": 9, "1.value": 408, "2.value": 412, "3.value": 64, "4.value": 1_800_000_000_005})
}

// TestVertexValues: counters are a subtask's own, and together the vertex's.
func TestVertexValues(t *testing.T) {
	r := newRig(t)
	of, count := "/jobs/"+jobID, vertexID(r.options.Graph.Vertices[1])
	r.job.mu.Lock()
	for i := 2; i < 4; i++ {
		n := int64(i)
		r.job.status.Tasks[i].Counters = task.Counters{ReadRecords: 100 * n, ReadBytes: 1600 * n, WriteRecords: n, WriteBytes: 10 * n,
			Busy: time.Duration(n) * time.Second, Idle: 3 * time.Second, Backpressured: time.Minute}
	}
	r.job.mu.Unlock()
	r.expectValues(of, map[string]any{"vertices.1.metrics.read-records": 500, "vertices.1.metrics.read-bytes": 8000, "vertices.1.metrics.write-records": 5,
		"vertices.1.metrics.write-bytes": 50, "vertices.1.metrics.accumulated-busy-time": "5000.0", "vertices.1.metrics.accumulated-idle-time": 6000,
		"vertices.1.metrics.accumulated-backpressured-time": 120_000, "vertices.0.metrics.read-records": 0})
	r.expectValues(of+"/vertices/"+count, map[string]any{"aggregated.metrics.read-records.min": 200, "aggregated.metrics.read-records.median": 250,
		"aggregated.metrics.read-records.p25": 200, "aggregated.metrics.accumulated-busy-time.sum": 5000, "aggregated.status-duration.INITIALIZING.max": 1})
	r.expectValues(of+"/vertices/"+count+"/subtasks/1", map[string]any{"metrics.read-records": 300, "metrics.accumulated-busy-time": "3000.0"})
}

// TestClientReadsStatistics: what the server answers comes back as it was, NaN too.
func TestClientReadsStatistics(t *testing.T) {
	r := newRig(t)
	c, err := NewClient(r.URL())
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.Checkpoints(t.Context(), jobID)
	if err != nil || len(all.History) != 4 || all.Summary.State.P50 != 412 {
		t.Fatalf("%+v, %v", all, err)
	}
	_, want := r.ask("GET", "/jobs/"+jobID+"/checkpoints", "")
	if got := again(t, all); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	vertices, err := c.Vertices(t.Context(), jobID)
	if err != nil || len(vertices) != 2 {
		t.Fatalf("%+v, %v", vertices, err)
	}
	share, err := c.Share(t.Context(), jobID, "1", vertices[1].ID)
	if err != nil || len(share.Subtasks) != 2 || !math.IsNaN(float64(share.Summary.StartDelay.P50)) {
		t.Fatalf("%+v, %v", share, err)
	}
	_, want = r.ask("GET", "/jobs/"+jobID+"/checkpoints/details/1/subtasks/"+vertices[1].ID, "")
	if got := again(t, share); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if one, err := c.Checkpoint(t.Context(), jobID, "3"); err != nil || one.Failure == nil || len(one.Tasks) != 2 {
		t.Errorf("%+v, %v", one, err)
	}
	if _, err := c.Checkpoint(t.Context(), jobID, "77"); err == nil {
		t.Error("a checkpoint that is not known was told of")
	}
}

// again writes as JSON, and reads that.
func again(t *testing.T, v any) (answer any) {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	if err := d.Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}
