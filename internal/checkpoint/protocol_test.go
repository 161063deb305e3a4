package checkpoint

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/base"
)

// TestClosedSets counts the members of the four sets, so that nobody adds one without looking at who takes them, and sees
// that the scripts know every event.
func TestClosedSets(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "protocol.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	members := map[string][]string{}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && (strings.HasSuffix(f.Name.Name, "Event") || strings.HasSuffix(f.Name.Name, "Action")) {
			members[f.Name.Name] = append(members[f.Name.Name], f.Recv.List[0].Type.(*ast.Ident).Name)
		}
	}
	want := map[string]int{"coordinatorEvent": 19, "coordinatorAction": 14, "handlerEvent": 10, "handlerAction": 16}
	for set, n := range want {
		if len(members[set]) != n {
			t.Errorf("%s has %d members, want %d: %v", set, len(members[set]), n, members[set])
		}
	}
	for _, name := range append(members["coordinatorEvent"], members["handlerEvent"]...) {
		if _, ok := scriptTypes[name]; !ok {
			t.Errorf("scripts do not know the event %s", name)
		}
	}
}

func TestDeclineErrorCarriesItsReason(t *testing.T) {
	cause := errors.New("no space left")
	err := errors.Join(errors.New("writing"), &DeclineError{IOFailure, cause})
	if got := reasonOf(err, TriggerFailure); got != IOFailure {
		t.Errorf("got %v", got)
	}
	if got := reasonOf(cause, TriggerFailure); got != TriggerFailure {
		t.Errorf("got %v", got)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
}

func TestConfigReportsEverythingThatIsWrong(t *testing.T) {
	bad := Config{
		Interval: 1, BacklogInterval: 1, FirstDelay: -1, Timeout: 1, MinPause: -1, MaxConcurrent: -1, TolerableFailures: -2, Retained: -1,
		Retention: 9, AtLeastOnce: true, Unaligned: true, AlignedTimeout: -1, FinalRetry: -1, Hooks: -1,
	}
	if got := strings.Count(bad.Validate().Error(), "checkpoint: "); got != 13 {
		t.Errorf("%d problems, want 13: %v", got, bad.Validate())
	}
	for _, good := range []Config{
		{},
		{Interval: 10 * ms, BacklogInterval: -1, MinPause: 5 * ms, MaxConcurrent: 3, TolerableFailures: -1},
		{Interval: 10 * ms, BacklogInterval: 20 * ms, Unaligned: true, AlignedTimeout: ms},
	} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	if err := (&Config{Unaligned: true, MaxConcurrent: 2}).Validate(); err == nil {
		t.Error("two unaligned checkpoints at once are accepted")
	}
}

func TestRetention(t *testing.T) {
	want := map[Retention]string{RetainNever: "0001", RetainOnFailure: "0011", RetainOnCancellation: "0111"} // FINISHED CANCELED FAILED SUSPENDED
	for retention, bits := range want {
		for end := JobFinished; end <= JobSuspended; end++ {
			if got := retention.keeps(end); got != (bits[end] == '1') {
				t.Errorf("retention %d keeps the checkpoints of a job that is %v: %v", retention, end, got)
			}
		}
	}
}

// TestGraphValidate includes A8: only sources may have operator coordinators.
func TestGraphValidate(t *testing.T) {
	good := Graph{[]Vertex{
		{Name: "a", First: 0, Parallelism: 2, Coordinated: true},
		{Name: "b", First: 2, Parallelism: 3, Inputs: []Edge{{From: 0, Pattern: Pointwise}}},
	}}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	if good.Tasks() != 5 || good.VertexOf(4) != 1 || good.VertexOf(5) != -1 || good.VertexOf(-1) != -1 {
		t.Errorf("%d tasks, task 4 in vertex %d", good.Tasks(), good.VertexOf(4))
	}
	bad := Graph{[]Vertex{
		{Name: "a", First: 1, Parallelism: 0},
		{Name: "b", First: 1, Parallelism: 1, Coordinated: true, Inputs: []Edge{{From: 1}, {From: -1}}},
	}}
	if got := strings.Count(bad.Validate().Error(), "checkpoint: vertex"); got != 5 {
		t.Errorf("%d problems, want 5: %v", got, bad.Validate())
	}
	if (&Graph{}).Validate() == nil {
		t.Error("an empty graph is accepted")
	}
	if _, err := NewCoordinator(Config{}, bad, Recovered{}); err == nil {
		t.Error("a coordinator takes a wrong graph")
	}
	if _, err := NewCoordinator(Config{Hooks: -1}, good, Recovered{}); err == nil {
		t.Error("a coordinator takes a wrong configuration")
	}
}

func TestPointwiseSendersCoverUpstream(t *testing.T) {
	for up := 1; up < 12; up++ {
		for down := 1; down < 12; down++ {
			receivers := make([]int, up)
			for i := range down {
				lo, hi := PointwiseSenders(up, down, i)
				if lo >= hi || hi > up {
					t.Fatalf("%d to %d: subtask %d has senders [%d, %d)", up, down, i, lo, hi)
				}
				for s := lo; s < hi; s++ {
					receivers[s]++
				}
			}
			for s, n := range receivers {
				if n == 0 || up >= down && n != 1 {
					t.Errorf("%d to %d: sender %d has %d receivers", up, down, s, n)
				}
			}
		}
	}
}

func TestTimeDoesNotWrapAround(t *testing.T) {
	if got := (Never - 1).Add(10); got != Never {
		t.Errorf("got %d", got)
	}
	if got := Time(5).Add(-3); got != 2 {
		t.Errorf("got %d", got)
	}
}

func TestForcedBarrierIsSentOnAsItWas(t *testing.T) {
	b := Barrier{ID: 1, Alignment: Aligned, Forced: true}
	if got := b.Restored(); got.Alignment != Unaligned || got.Forced {
		t.Errorf("got %+v", got)
	}
	b.Timeout = ms
	if got := b.Restored(); got.Alignment != Aligned || got.Forced {
		t.Errorf("got %+v", got)
	}
}

// idle is a coordinator of one running source.
func idle(t *testing.T, cfg Config) *Coordinator {
	t.Helper()
	c, err := NewCoordinator(cfg, Graph{[]Vertex{{Name: "a", Parallelism: 1}}}, Recovered{})
	if err != nil {
		t.Fatal(err)
	}
	c.Step(0, TaskChanged{base.Exec{}, TaskRunning})
	c.Step(0, JobRunning{})
	return c
}

// TestQueueIsBounded fills the queue. The newcomer is refused, unless a periodic request can give way.
func TestQueueIsBounded(t *testing.T) {
	c := idle(t, Config{Interval: 10 * ms, FirstDelay: ms})
	c.Step(0, Requested{Request: 1}) // under way
	for i := range queueMax - 1 {
		c.Step(0, Requested{Request: Request(2 + i)})
	}
	c.Step(Time(ms), TimePassed{})
	if !c.queue.has(periodic) || len(c.queue) != queueMax {
		t.Fatalf("%d queued", len(c.queue))
	}
	refused := func(actions []CoordinatorAction) (all []Report) {
		for _, a := range actions {
			if r, ok := a.(Report); ok && r.Reason == TooManyRequests {
				all = append(all, r)
			}
		}
		return all
	}
	if got := refused(c.Step(Time(ms), Requested{Request: 5000})); len(got) != 1 || !got[0].Periodic {
		t.Errorf("refused %+v, want the periodic one", got)
	}
	if got := refused(c.Step(Time(ms), Requested{Request: 5001})); len(got) != 1 || got[0].Periodic {
		t.Errorf("refused %+v, want the newcomer", got)
	}
	if len(c.queue) != queueMax {
		t.Errorf("%d queued", len(c.queue))
	}
}

// TestTrackerIsBounded: barriers of ever new checkpoints come on one of two channels.
func TestTrackerIsBounded(t *testing.T) {
	h := NewBarrierHandler(HandlerConfig{Channels: 2, AtLeastOnce: true})
	declined := 0
	for id := range base.CheckpointID(1000) {
		for _, a := range h.Step(0, BarrierArrived{Barrier: Barrier{ID: id + 1}}) {
			if d, ok := a.(Decline); ok && d.Reason == DeclinedSubsumed {
				declined++
			}
		}
	}
	if got := h.Status().Tracked; got != tracksMax || declined != 1000-tracksMax {
		t.Errorf("%d tracked, %d declined", got, declined)
	}
}

// TestEarlyAbortsAreBounded is B049: aborts of checkpoints that never come must not fill the memory.
func TestEarlyAbortsAreBounded(t *testing.T) {
	h := NewBarrierHandler(HandlerConfig{Channels: 1})
	if n := testing.AllocsPerRun(1000, func() { h.Step(0, AbortNotified{ID: 7}) }); n > 0 {
		t.Errorf("an abort allocates %v times", n)
	}
	for id := range base.CheckpointID(100_000) {
		h.Step(0, AbortNotified{ID: id + 1})
	}
	if got := h.Step(0, BarrierArrived{Barrier: Barrier{ID: 100_000}}); len(got) != 1 || got[0] != (ForwardCancel{100_000}) {
		t.Errorf("got %v", got)
	}
}

// TestUnknownMembersPanic: the sets are closed, a stranger is a bug.
func TestUnknownMembersPanic(t *testing.T) {
	panics := func(f func()) (did bool) {
		defer func() { did = recover() != nil }()
		f()
		return false
	}
	if !panics(func() { idle(t, Config{}).Step(0, nil) }) {
		t.Error("a coordinator takes anything")
	}
	if !panics(func() { NewBarrierHandler(HandlerConfig{}).Step(0, nil) }) {
		t.Error("a handler takes anything")
	}
}
