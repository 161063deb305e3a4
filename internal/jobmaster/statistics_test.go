package jobmaster

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/stats"
	"github.com/weirstream/weir/internal/task"
	"github.com/weirstream/weir/internal/worker"
)

// lines keeps a log.
type lines struct {
	mu  sync.Mutex
	all []string // protected by mu
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *lines) WithGroup(string) slog.Handler            { return l }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	l.all = append(l.all, line)
	return nil
}

func (l *lines) has(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(strings.Join(l.all, "\n"), part)
}

func (r *rig) last() stats.Checkpoint {
	h := r.Status().Checkpoints.History
	return h[len(h)-1]
}

// TestAnEnumeratorIsBlamed: one that does not answer is named, in the history and in the log, and while it is waited for.
func TestAnEnumeratorIsBlamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		r := newRig(t, func(o *Options) { o.Machine.Checkpoints.Timeout, o.Log = 3*time.Second, slog.New(log) })
		block := make(chan struct{})
		r.source.setDo(r, "snapshot 1", func() error { <-block; return nil })
		done := make(chan struct{})
		go func() { _, _ = r.checkpoint(); close(done) }()
		time.Sleep(time.Second)
		if got, want := r.last().Explanation, `After 1.0 s the operator coordinator of "numbers" has not answered.`; got != want {
			t.Errorf("under way: %s", got)
		}
		<-done
		want := `After 3.0 s the operator coordinator of "numbers" had not answered.`
		if got := r.last().Explanation; got != want || !log.has("explanation="+want) {
			t.Errorf("expired: %s", got)
		}
		close(block)
		if r.mustCheckpoint(); len(r.questions) != 0 {
			t.Errorf("%d questions are left", len(r.questions))
		}
		r.end()
	})
}

// TestNotesAndCounters: what tasks tell of themselves is in the status; of an old attempt, or of a checkpoint that has ended, nothing is.
func TestNotesAndCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *Options) { o.Machine.Checkpoints.Timeout = 10 * time.Second })
		sink := r.current(2)
		r.on(func(x base.Exec, body any) bool {
			trigger, ok := body.(worker.Trigger)
			if ok && x.Task == 1 {
				r.ack(x, trigger.Barrier)
				r.say(sink, worker.Noted{Note: task.Aligning{ID: trigger.Barrier.ID}, Counters: task.Counters{ReadRecords: 5}})
			}
			return ok
		})
		_, _ = r.checkpoint()
		c := r.last()
		if p := c.Parts; p[0].Stage != stats.Nothing || p[1].Stage != stats.Acked || p[2].Stage != stats.Aligning || c.Acked != 1 || c.Reason != checkpoint.Expired {
			t.Errorf("%+v", c)
		}
		want := `After 10.0 s 1 of 3 tasks had acknowledged; subtask 1 of "numbers" had not come to its trigger: its code had not returned; 1 waits for barriers of these.`
		if c.Explanation != want {
			t.Errorf("got %s", c.Explanation)
		}
		r.say(sink, worker.Noted{Note: task.Writing{ID: c.ID}, Counters: task.Counters{ReadRecords: 7}})
		if s := r.Status(); s.Tasks[2].Counters.ReadRecords != 7 || r.last().Parts[2].Stage != stats.Aligning {
			t.Errorf("%+v, %v", s.Tasks[2], r.last().Parts[2].Stage)
		}
		r.Master.Receive(worker.Message{Body: worker.Beat{Links: []worker.Progress{{Exec: sink, Sent: 4, Counters: task.Counters{ReadRecords: 9}}}}})
		if s := r.Status(); s.Tasks[2].Counters.ReadRecords != 9 {
			t.Errorf("a beat told of %+v", s.Tasks[2].Counters)
		}
		r.on(nil)
		r.say(r.current(0), worker.Changed{State: task.Failed, Err: errors.New("boom")})
		time.Sleep(time.Second)
		r.say(sink, worker.Noted{Note: task.Restored{}, Counters: task.Counters{ReadRecords: 100}})
		if s := r.Status(); s.Restarts != 1 || s.Tasks[2].Counters.ReadRecords != 0 {
			t.Errorf("%d restarts; the new attempt has counted %+v", s.Restarts, s.Tasks[2].Counters)
		}
		r.end()
	})
}

// TestARestoreIsToldOf when the last task runs: how long each phase took.
func TestARestoreIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		r := newRig(t, func(o *Options) { o.Log = slog.New(log) })
		r.mustCheckpoint()
		if s := r.Status().Checkpoints; s.Restores != 0 {
			t.Errorf("%d restores at first", s.Restores)
		}
		r.say(r.current(0), worker.Changed{State: task.Failed, Err: errors.New("boom")})
		time.Sleep(time.Second)
		s := r.Status().Checkpoints
		if s.Restores != 1 || s.Restored.ID != 1 || len(s.Restored.Tasks) != 3 || s.Restored.Took <= 0 {
			t.Errorf("%d restores, %+v", s.Restores, s.Restored)
		}
		if !log.has("Restored 3 tasks from checkpoint 1 in 0 ms") {
			t.Errorf("the log: %q", log.all)
		}
		r.end()
	})
}
