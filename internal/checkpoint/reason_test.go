package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/base"
)

// reasonsOfFlink are the 24 reasons as Flink 2.3 has them, with what produces each here.
var reasonsOfFlink = []struct {
	reason             Reason
	name               string
	preflight, counted bool
	message            string
	by                 string // a script whose machine says it; or, in brackets, why none does
}{
	{PeriodicSchedulerShutdown, "PERIODIC_SCHEDULER_SHUTDOWN", true, false,
		"Periodic checkpoint scheduler is shut down.",
		"(a periodic request goes with the scheduler that made it, in the same step)"},
	{TooManyRequests, "TOO_MANY_CHECKPOINT_REQUESTS", true, false,
		"The maximum number of queued checkpoint requests exceeded",
		"(TestQueueIsBounded: a thousand requests are no script)"},
	{MinimumPause, "MINIMUM_TIME_BETWEEN_CHECKPOINTS", true, false,
		"The minimum time between checkpoints is still pending. Checkpoint will be triggered after the minimum time.",
		"b005_minimum_pause"},
	{NotAllTasksRunning, "NOT_ALL_REQUIRED_TASKS_RUNNING", true, false,
		"Not all required tasks are currently running.",
		"b015_gone_is_not_finished"},
	{IOFailure, "IO_EXCEPTION", true, true,
		"An Exception occurred while triggering the checkpoint. IO-problem detected.",
		"fails_locating"},
	{BlockingOutput, "BLOCKING_OUTPUT_EXIST", true, false,
		"Blocking output edge exists in running tasks.",
		"(no edge of Weir is blocking)"},
	{AsyncFailure, "CHECKPOINT_ASYNC_EXCEPTION", false, true,
		"Asynchronous task checkpoint failed.",
		"snapshot_fails"},
	{ChannelStateShared, "CHANNEL_STATE_SHARED_STREAM_EXCEPTION", false, false,
		"The checkpoint was aborted due to exception of other subtasks sharing the ChannelState file.",
		"(no two subtasks share a file)"},
	{Expired, "CHECKPOINT_EXPIRED", false, true,
		"Checkpoint expired before completing.",
		"b001_late_ack_after_expiry"},
	{Subsumed, "CHECKPOINT_SUBSUMED", false, false,
		"Checkpoint has been subsumed.",
		"b008_failure_of_an_old_one"},
	{Declined, "CHECKPOINT_DECLINED", false, true,
		"Checkpoint was declined.",
		"b002_decline_then_ack"},
	{DeclinedNotReady, "CHECKPOINT_DECLINED_TASK_NOT_READY", false, false,
		"Checkpoint was declined (tasks not ready)",
		"late_acks"},
	{DeclinedClosing, "CHECKPOINT_DECLINED_TASK_CLOSING", false, false,
		"Checkpoint was declined (task is closing)",
		"union"},
	{DeclinedSubsumed, "CHECKPOINT_DECLINED_SUBSUMED", false, false,
		"Checkpoint was canceled because a barrier from newer checkpoint was received.",
		"newer_ends_older"},
	{DeclinedOnCancel, "CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER", false, false,
		"Task received cancellation from one of its inputs",
		"b037_cancel_and_barrier"},
	{DeclinedEndOfStream, "CHECKPOINT_DECLINED_INPUT_END_OF_STREAM", false, false,
		"Checkpoint was declined because one input stream is finished",
		"end_declines"},
	{Shutdown, "CHECKPOINT_COORDINATOR_SHUTDOWN", false, false,
		"CheckpointCoordinator shutdown.",
		"fails_triggered"},
	{Suspended, "CHECKPOINT_COORDINATOR_SUSPEND", false, false,
		"Checkpoint Coordinator is suspending.",
		"periodic"},
	{FailoverRegion, "JOB_FAILOVER_REGION", false, false,
		"FailoverRegion is restarting.",
		"fails_triggered"},
	{TaskFailure, "TASK_FAILURE", false, false,
		"Task has failed or finished.", // Flink: "Task has failed.", also where it has finished
		"b017_left_before_it_acked"},
	{TaskCheckpointFailure, "TASK_CHECKPOINT_FAILURE", false, false,
		"Task local checkpoint failure.",
		"fails_triggered"},
	{UnknownTask, "UNKNOWN_TASK_CHECKPOINT_NOTIFICATION_FAILURE", false, false,
		"Unknown task for the checkpoint to notify.",
		"b017_left_before_it_acked"},
	{FinalizeFailure, "FINALIZE_CHECKPOINT_FAILURE", false, true,
		"Failure to finalize checkpoint.",
		"sealed_withdrawing"},
	{TriggerFailure, "TRIGGER_CHECKPOINT_FAILURE", false, false,
		"Trigger checkpoint failure.",
		"b010_operator_error"},
}

func TestReasonsAreThoseOfFlink(t *testing.T) {
	counted := 0
	for i, want := range reasonsOfFlink {
		r := want.reason
		if r != Reason(i+1) {
			t.Errorf("reason %d is %v, want %v", i+1, Reason(i+1), r)
		}
		if r.String() != want.name || r.Message() != want.message || r.Preflight() != want.preflight || r.Counted() != want.counted {
			t.Errorf("%v: %q, before the checkpoint exists: %v, counted: %v; want %+v", r, r.Message(), r.Preflight(), r.Counted(), want)
		}
		if want.counted {
			counted++
		}
		if !strings.HasPrefix(want.by, "(") {
			expectSaid(t, want.by, r)
		}
	}
	if n := int(reasons) - 1; n != 24 || len(reasonsOfFlink) != n || counted != 5 {
		t.Errorf("%d reasons, %d in the table, %d counted; want 24, 24 and 5", n, len(reasonsOfFlink), counted)
	}
	if got := Reason(200); got.String() != "REASON_200" || got.Counted() {
		t.Errorf("an unknown reason is %v", got)
	}
}

// expectSaid: in this script the machine itself says this reason.
func expectSaid(t *testing.T, script string, r Reason) {
	raw, err := os.ReadFile(filepath.Join("testdata", script+".txt"))
	if err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "    ") && strings.Contains(line+" ", "reason="+r.String()) {
			return
		}
	}
	t.Errorf("nothing in %s has the reason %v", script, r)
}

// TestFiveReasonsCount has a task decline for each reason, in a job that tolerates no failure.
func TestFiveReasonsCount(t *testing.T) {
	for r := NoReason + 1; r < reasons; r++ {
		c := idle(t, Config{})
		c.Step(0, Requested{})
		c.Step(0, LocationCreated{Token: 1, Location: "chk"})
		failed := false
		for _, a := range c.Step(0, TaskDeclined{Exec: base.Exec{}, ID: 1, Reason: r}) {
			_, fails := a.(FailJob)
			failed = failed || fails
		}
		if failed != r.Counted() {
			t.Errorf("a task declines by %v, the job fails: %v, want %v", r, failed, r.Counted())
		}
	}
}
