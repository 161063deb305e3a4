package checkpoint

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/weirstream/weir/internal/base"
)

// TestCoordinatorTakesAnything gives a coordinator events in any order, whether they make sense or not, and checks what
// must hold of its actions all the same.
func TestCoordinatorTakesAnything(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := newMonkey(t, r)
		for range 400 {
			m.step(m.event())
		}
	}
}

// monkey drives a coordinator at random.
type monkey struct {
	*testing.T
	r        *rand.Rand
	c        *Coordinator
	now      Time
	tokens   Token // the largest that was asked
	request  Request
	waiting  map[Request]bool
	notified map[base.CheckpointID]bool
	asked    bool // for a restore
}

func newMonkey(t *testing.T, r *rand.Rand) *monkey {
	cfg := randomConfig(r)
	cfg.FinishAtEnd = r.IntN(4) == 0
	graph := Graph{[]Vertex{
		{Name: "source", Parallelism: 2, Coordinated: true, Union: r.IntN(3) == 0},
		{Name: "sink", First: 2, Parallelism: 2, Inputs: []Edge{{From: 0, Pattern: Pattern(r.IntN(2))}}},
	}}
	c, err := NewCoordinator(cfg, graph, Recovered{LastID: 3, Completed: []*Completed{{ID: 2}, {ID: 3, Kind: Savepoint, Keep: true}}})
	if err != nil {
		t.Fatal(err)
	}
	return &monkey{T: t, r: r, c: c, waiting: map[Request]bool{}, notified: map[base.CheckpointID]bool{}}
}

func (m *monkey) exec() base.Exec {
	return base.Exec{Task: base.Task(m.r.IntN(6) - 1), Attempt: base.Attempt(m.r.IntN(4) - 1)}
}

func (m *monkey) token() Token { return Token(m.r.IntN(int(m.tokens) + 2)) }

func (m *monkey) id() base.CheckpointID { return m.c.lastID - base.CheckpointID(m.r.IntN(3)) + 1 }

func (m *monkey) err() error {
	if m.r.IntN(5) == 0 {
		return errors.New("some error")
	}
	return nil
}

func (m *monkey) event() CoordinatorEvent {
	switch r := m.r; r.IntN(26) {
	case 0:
		return JobNotRunning{}
	case 1:
		return TaskEnded{m.exec()}
	case 2:
		return BacklogChanged{r.IntN(4) - 1, r.IntN(2) == 0}
	case 3, 4:
		m.request++
		m.waiting[m.request] = true
		return Requested{Request: m.request, Kind: Kind(r.IntN(5)), StopScheduler: r.IntN(3) == 0}
	case 5, 6, 7:
		return LocationCreated{Token: m.token(), Location: "somewhere", Err: m.err()}
	case 8, 9:
		return OperatorSnapped{Token: m.token(), Err: m.err()}
	case 10:
		return HookSnapped{Token: m.token(), Err: m.err()}
	case 11:
		return OperatorSent{To: base.Task(r.IntN(6) - 1)}
	case 12:
		return TriggerRefused{Exec: m.exec(), ID: m.id(), Reason: Reason(r.IntN(30))}
	case 13, 14, 15, 16:
		return TaskAcked{Exec: m.exec(), ID: m.id(), Ended: r.IntN(4) == 0}
	case 17:
		return TaskDeclined{Exec: m.exec(), ID: m.id(), Reason: Reason(r.IntN(30))}
	case 18, 19:
		return MetadataWritten{Token: m.token(), Err: m.err()}
	case 20, 21:
		return Stored{Token: m.token(), Err: m.err()}
	case 22:
		return Discarded{m.token()}
	case 23:
		return m.rarely()
	case 24:
		return TaskChanged{m.exec(), TaskState(r.IntN(4))}
	default:
		m.now += Time(r.IntN(30)) * Time(ms)
		return TimePassed{}
	}
}

// rarely is what would end most of a run too soon; else the job runs.
func (m *monkey) rarely() CoordinatorEvent {
	switch m.r.IntN(40) {
	case 0:
		return Closed{JobEnd(m.r.IntN(4))}
	case 1, 2, 3:
		m.asked = true
		return RestoreAsked{}
	case 4, 5, 6, 7:
		return JobRunning{}
	default: // bring all tasks up
		for i := range base.Task(4) {
			m.step(TaskChanged{base.Exec{Task: i, Attempt: m.c.tasks[i].attempt + base.Attempt(m.r.IntN(2))}, TaskRunning})
		}
		return JobRunning{}
	}
}

func (m *monkey) step(e CoordinatorEvent) {
	for _, a := range m.c.Step(m.now, e) {
		m.check(e, a)
	}
	if d, ok := m.c.Deadline(); ok && d <= m.now {
		m.Fatalf("the timer runs hot after %T%+v", e, e)
	}
	if got := m.c.Status(); got.Closed && len(got.Pending) > 0 {
		m.Fatalf("closed with a pending checkpoint: %+v", got)
	}
}

func (m *monkey) check(e CoordinatorEvent, a CoordinatorAction) {
	switch a := a.(type) {
	case CreateLocation:
		m.newToken(a.Token)
	case SnapshotOperator:
		m.newToken(a.Token)
	case SnapshotHook:
		m.newToken(a.Token)
	case WriteMetadata:
		m.newToken(a.Token)
	case Store:
		m.newToken(a.Token)
	case Discard:
		m.newToken(a.Token)
		if a.Completed != nil && a.Completed.Keep && !a.Completed.Kind.IsSavepoint() {
			m.Fatalf("somebody else's checkpoint is deleted: %+v", a)
		}
	case NotifyComplete:
		if _, ok := e.(Stored); !ok || m.notified[a.ID] {
			m.Fatalf("%+v follows from %T, again: %v", a, e, m.notified[a.ID])
		}
		m.notified[a.ID] = true
	case Reply:
		if !m.waiting[a.Request] {
			m.Fatalf("a second reply: %+v", a)
		}
		delete(m.waiting, a.Request)
	case Restore:
		if !m.asked {
			m.Fatalf("a restore that nobody asked for: %+v", a)
		}
		m.asked = false
	case Report:
		if a.What == Failed && a.Reason == NoReason {
			m.Fatalf("a failure without a reason: %+v", a)
		}
	case TriggerTasks, SendEvent, NotifyAborted, FailJob:
	default:
		m.Fatalf("unknown action %T", a)
	}
}

// newToken: tokens are never used twice.
func (m *monkey) newToken(t Token) {
	if t != m.tokens+1 {
		m.Fatalf("token %d after %d", t, m.tokens)
	}
	m.tokens = t
}

// TestHandlerTakesAnything does the same with a handler.
func TestHandlerTakesAnything(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		n := r.IntN(4)
		h := NewBarrierHandler(HandlerConfig{
			Channels: n, Broadcast: make([]bool, n), AtLeastOnce: r.IntN(3) == 0, FinishAtEnd: r.IntN(4) == 0, Ended: r.IntN(4) == 0,
		})
		for i := range h.cfg.Broadcast {
			h.cfg.Broadcast[i] = r.IntN(3) == 0
		}
		var now Time
		told := map[base.CheckpointID]told{}
		for range 300 {
			now += Time(r.IntN(4)) * Time(ms)
			e := randomHandlerEvent(r, h)
			for _, a := range h.Step(now, e) {
				checkHandlerAction(t, told, a)
			}
			if d, ok := h.Deadline(); ok && d <= now {
				t.Fatalf("seed %d: the timer runs hot after %T%+v", seed, e, e)
			}
			if s := h.Status(); s.Blocked > 0 && (s.Aligning == 0 || s.Recording) {
				t.Fatalf("seed %d: blocked without an alignment after %T%+v", seed, e, e)
			}
		}
	}
}

func randomHandlerEvent(r *rand.Rand, h *BarrierHandler) HandlerEvent {
	id := max(1, h.last+base.CheckpointID(r.IntN(4)-1))
	b := Barrier{ID: id, Kind: Kind(r.IntN(5)), Alignment: Alignment(r.IntN(3)), Forced: r.IntN(4) == 0}
	if r.IntN(2) == 0 {
		b.Timeout = 2 * ms
	}
	k := r.IntN(20)
	if n := len(h.channels); n > 0 {
		ch := r.IntN(n)
		switch {
		case k < 8:
			return BarrierArrived{ch, b, r.IntN(3) == 0}
		case k < 10:
			return BarrierAnnounced{ch, b}
		case k < 11:
			return CancelArrived{ch, id}
		case k < 12 && r.IntN(5) == 0:
			return ChannelEnded{ch}
		}
	}
	switch {
	case k < 13:
		return Triggered{b}
	case k < 16:
		var err error
		if recording := h.align.pending && h.align.taken && h.align.barrier.ID == id; recording || r.IntN(4) == 0 {
			err = errors.New("some error")
		}
		return SnapshotWritten{ID: id, Err: err}
	case k < 17:
		return AbortNotified{id, h.reported}
	case k < 18 && r.IntN(10) == 0:
		return CompleteNotified{id}
	case k < 19 && r.IntN(20) == 0:
		return DataEnded{r.IntN(2) == 0}
	default:
		return AlarmRang{}
	}
}

// checkHandlerAction: of a checkpoint one thing goes downstream and one to the coordinator.
func checkHandlerAction(t *testing.T, all map[base.CheckpointID]told, a HandlerAction) {
	t.Helper()
	say := func(id base.CheckpointID, what told) {
		if all[id]&what != 0 {
			t.Fatalf("a second time: %T%+v", a, a)
		}
		all[id] |= what
	}
	switch a := a.(type) {
	case Snapshot:
		say(a.Barrier.ID, toldDownstream)
	case ForwardCancel:
		say(a.ID, toldDownstream)
	case Ack:
		say(a.ID, toldMaster)
	case Decline:
		say(a.ID, toldMaster)
	case Block, Unblock, Seal, Prioritize, EndSource, StopRecording, ConvertOutput, DropSnapshot, Complete, Abort, Finish, FailTask:
	default:
		t.Fatalf("unknown action %T", a)
	}
}
