package checkpoint

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/base"
)

// This file sees that the scripts leave no cell of the machines' tables out: each event of a handler in each state of its
// alignment (waiting, collecting, recording; idle and tracking where nothing blocks), and whatever may meet a pending
// checkpoint in each phase of its life.

// cells are the (state, event) pairs that scripts have come to, with a script for each.
type cells map[string]string

// TestScriptsCoverTheTables runs all scripts and compares the cells that they come to with those that there are.
func TestScriptsCoverTheTables(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	seen := cells{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s := script{watch: func(machine any, e any) {
			for _, cell := range cellsOf(machine, e) {
				if seen[cell] == "" {
					seen[cell] = filepath.Base(file)
				}
			}
		}}
		if _, err := s.run(string(raw)); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	want := slices.Concat(handlerCells(), trackerCells(), coordinatorCells())
	for _, cell := range want {
		if seen[cell] == "" {
			t.Errorf("no script comes to: %s", cell)
		}
	}
	if testing.Verbose() {
		for _, cell := range slices.Sorted(maps.Keys(seen)) {
			known := "  "
			if slices.Contains(want, cell) {
				known = "* "
			}
			t.Logf("%s%-70s %s", known, cell, seen[cell])
		}
	}
}

// TestEveryScriptIsListed in testdata/README.md, which names no other.
func TestEveryScriptIsListed(t *testing.T) {
	raw, err := os.ReadFile("testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		cols := strings.Split(line, "|")
		if len(cols) != 4 || strings.Contains(line, "---") || strings.Contains(line, "| scripts |") {
			continue
		}
		for _, name := range strings.Split(cols[2], ",") {
			listed[strings.TrimSpace(name)] = true
		}
	}
	files, _ := filepath.Glob("testdata/*.txt")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if !listed[name] {
			t.Errorf("testdata/README.md does not say what %s is for", name)
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("testdata/README.md names %q, which does not exist", name)
	}
}

// handlerCells are those of exactly once. What is not here cannot be: collecting, no alarm is due but by a timed barrier;
// an unaligned barrier is collected only while a broadcast channel is waited for.
func handlerCells() []string {
	return across(map[string][]string{
		"waiting": {
			"barrier", "last barrier", "timed barrier", "last timed barrier", "unaligned barrier", "last unaligned barrier",
			"forced barrier", "obsolete barrier", "aborted barrier", "announcement", "obsolete announcement",
			"marker of a newer one", "obsolete marker", "end of a channel", "end of a channel, finishing at once",
			"trigger", "trigger with open channels", "unaligned trigger with open channels", "obsolete trigger", "aborted trigger",
			"stop of a source", "abort of one being written", "abort of an acknowledged one", "abort of an unknown one",
			"abort of the stop", "alarm of an output queue", "snapshot written", "snapshot failed", "late answer of a snapshot",
		},
		"collecting": {
			"barrier", "last barrier", "timed barrier", "last timed barrier", "unaligned barrier", "last unaligned barrier",
			"forced barrier", "last forced barrier", "barrier of a newer one", "unaligned barrier of a newer one", "obsolete barrier",
			"repeated barrier", "announcement", "announcement of a newer one", "marker of this one", "marker of a newer one",
			"obsolete marker", "end of a channel", "last end of a channel", "end of a channel whose barrier has come",
			"end of a channel, finishing at once", "trigger of a newer one", "abort of this one", "abort of an unknown one",
			"alarm", "snapshot written",
		},
		"recording": {
			"timed barrier", "unaligned barrier", "last unaligned barrier", "last timed barrier", "barrier of a newer one",
			"unaligned barrier of a newer one", "obsolete barrier", "announcement", "announcement of a newer one",
			"marker of this one", "marker of a newer one", "obsolete marker", "end of a channel", "last end of a channel",
			"end of a channel whose barrier has come", "end of a channel, finishing at once", "trigger of a newer one",
			"abort of this one", "snapshot failed",
		},
	})
}

// trackerCells are those of at least once.
func trackerCells() []string {
	return across(map[string][]string{
		"idle": {
			"barrier", "last barrier", "obsolete barrier", "marker of a newer one", "obsolete marker", "end of a channel",
			"trigger", "trigger with open channels", "obsolete trigger", "aborted trigger", "aborted barrier", "stop of a source",
			"announcement",
		},
		"tracking": {
			"barrier of this one", "last barrier of this one", "last barrier of a newer one", "barrier of a newer one",
			"obsolete barrier", "repeated barrier", "marker of this one", "marker of a newer one", "obsolete marker",
			"end of a channel", "last end of a channel", "end of a channel, finishing at once", "abort of this one",
			"abort of an unknown one", "trigger of a newer one",
		},
	})
}

// coordinatorCells are what meets a pending checkpoint, by its phase.
func coordinatorCells() []string {
	always := []string{"timeout", "task gone", "task finished", "job not running", "restore asked", "closed", "stop requested", "task declined"}
	table := map[string][]string{}
	for _, phase := range []string{"locating", "operators", "hooks", "triggered", "writing", "storing", "withdrawing"} {
		table[phase] = slices.Clone(always)
	}
	for _, phase := range []string{"locating", "operators", "hooks", "writing", "storing"} {
		table[phase] = append(table[phase], "answered", "answered by an error")
	}
	table["withdrawing"] = append(table["withdrawing"], "answered")
	table["triggered"] = append(table["triggered"], "acknowledged", "last acknowledged", "acknowledged twice", "acknowledged by another attempt",
		"trigger refused", "newer stored")
	for _, phase := range []string{"writing", "storing", "withdrawing"} {
		table[phase] = append(table[phase], "acknowledged twice", "newer stored")
	}
	return across(table)
}

func across(table map[string][]string) (all []string) {
	for state, events := range table {
		for _, e := range events {
			all = append(all, state+": "+e)
		}
	}
	slices.Sort(all)
	return all
}

// cellsOf are the cells that an event is in, before it is taken.
func cellsOf(machine, e any) []string {
	switch m := machine.(type) {
	case *BarrierHandler:
		if cell := eventOf(m, e.(HandlerEvent)); cell != "" {
			return []string{stateOf(m) + ": " + cell}
		}
		return nil
	case *Coordinator:
		return phasesOf(m, e.(CoordinatorEvent))
	}
	return nil
}

func stateOf(h *BarrierHandler) string {
	switch {
	case h.cfg.AtLeastOnce && len(h.tracks) > 0:
		return "tracking"
	case h.cfg.AtLeastOnce:
		return "idle"
	case !h.align.pending:
		return "waiting"
	case h.align.taken:
		return "recording"
	default:
		return "collecting"
	}
}

func eventOf(h *BarrierHandler, e HandlerEvent) string {
	switch e := e.(type) {
	case BarrierArrived:
		return barrierOf(h, e)
	case BarrierAnnounced:
		return against(h, e.Barrier.ID, "announcement")
	case CancelArrived:
		switch {
		case isCurrent(h, e.ID):
			return "marker of this one"
		case e.ID > h.last:
			return "marker of a newer one"
		}
		return "obsolete marker"
	case ChannelEnded:
		return endOf(h, e.Channel)
	case Triggered:
		return triggerOf(h, e.Barrier)
	case AbortNotified:
		return abortOf(h, e.ID)
	case SnapshotWritten:
		_, writing := h.uploads[e.ID]
		switch {
		case !writing:
			return "late answer of a snapshot"
		case e.Err != nil:
			return "snapshot failed"
		}
		return "snapshot written"
	case AlarmRang:
		switch {
		case h.align.pending && !h.align.taken:
			return "alarm"
		case h.convertAt != Never:
			return "alarm of an output queue"
		}
	case DataEnded, CompleteNotified:
	}
	return ""
}

// isCurrent: it is being aligned, or tracked.
func isCurrent(h *BarrierHandler, id base.CheckpointID) bool {
	return h.isTracked(id) || h.align.pending && h.align.barrier.ID == id
}

// against says where an id is beside that which is under way.
func against(h *BarrierHandler, id base.CheckpointID, what string) string {
	busy := h.align.pending || len(h.tracks) > 0
	switch {
	case isCurrent(h, id), !busy && id > h.last:
		return what
	case id > h.last:
		return what + " of a newer one"
	default:
		return "obsolete " + what
	}
}

func barrierOf(h *BarrierHandler, e BarrierArrived) string {
	b, c := e.Barrier, h.channels[e.Channel]
	if h.cfg.AtLeastOnce {
		return trackedOf(h, e)
	}
	kind := "barrier"
	switch {
	case b.Alignment == Unaligned:
		kind = "unaligned barrier"
	case b.Forced:
		kind = "forced barrier"
	case b.Timeout > 0:
		kind = "timed barrier"
	}
	switch in := h.align.in + 1; {
	case b.ID <= h.last && !isCurrent(h, b.ID):
		return "obsolete barrier"
	case h.aborted.has(b.ID) && b.ID > h.last:
		return "aborted barrier"
	case h.align.pending && b.ID > h.last:
		return kind + " of a newer one"
	case h.align.pending && c.in:
		return "repeated barrier"
	case h.align.pending && in == h.open, !h.align.pending && h.open == 1:
		return "last " + kind
	}
	return kind
}

func trackedOf(h *BarrierHandler, e BarrierArrived) string {
	id := e.Barrier.ID
	i := h.trackOf(id)
	switch {
	case i < 0 && id <= h.last:
		return "obsolete barrier"
	case i < 0 && h.aborted.has(id):
		return "aborted barrier"
	case i < 0 && len(h.tracks) > 0:
		return "barrier of a newer one"
	case i < 0 && h.open == 1:
		return "last barrier"
	case i < 0:
		return "barrier"
	case h.tracks[i].in[e.Channel]:
		return "repeated barrier"
	case h.tracks[i].left > 1:
		return "barrier of this one"
	case i > 0:
		return "last barrier of a newer one"
	default:
		return "last barrier of this one"
	}
}

func endOf(h *BarrierHandler, channel int) string {
	c := h.channels[channel]
	missing := h.align.pending && h.open-h.align.in == 1 && !c.in
	if n := len(h.tracks); n > 0 {
		missing = h.tracks[n-1].left == 1 && !h.tracks[n-1].in[channel]
	}
	switch {
	case !c.open:
		return ""
	case h.cfg.FinishAtEnd:
		return "end of a channel, finishing at once"
	case h.align.pending && c.in:
		return "end of a channel whose barrier has come"
	case missing:
		return "last end of a channel"
	}
	return "end of a channel"
}

func triggerOf(h *BarrierHandler, b Barrier) string {
	busy := h.align.pending || len(h.tracks) > 0
	switch {
	case b.ID <= h.last:
		return "obsolete trigger"
	case busy:
		return "trigger of a newer one"
	case h.aborted.has(b.ID):
		return "aborted trigger"
	case h.open > 0 && b.Alignment == Unaligned:
		return "unaligned trigger with open channels"
	case h.open > 0:
		return "trigger with open channels"
	case b.Kind.IsSynchronous() && len(h.channels) == 0:
		return "stop of a source"
	}
	return "trigger"
}

func abortOf(h *BarrierHandler, id base.CheckpointID) string {
	_, writing := h.uploads[id]
	switch {
	case h.finished:
		return ""
	case h.stopsBy != 0 && id == h.stopsBy:
		return "abort of the stop"
	case isCurrent(h, id):
		return "abort of this one"
	case writing:
		return "abort of one being written"
	case slices.Contains(h.acked, id):
		return "abort of an acknowledged one"
	case id > h.last:
		return "abort of an unknown one"
	}
	return ""
}

// phasesOf are the cells that an event is in: one of each pending checkpoint that it concerns.
func phasesOf(c *Coordinator, e CoordinatorEvent) (all []string) {
	for _, p := range c.pending {
		if what := meets(c, p, e); what != "" {
			all = append(all, phaseNames[p.phase]+": "+what)
		}
	}
	return all
}

var phaseNames = [...]string{"locating", "operators", "hooks", "triggered", "writing", "storing", "withdrawing"}

// meets says what an event means to a pending checkpoint; "": nothing.
func meets(c *Coordinator, p *pending, e CoordinatorEvent) string {
	switch e := e.(type) {
	case TimePassed:
		if c.now >= p.deadline {
			return "timeout"
		}
	case TaskChanged:
		return changeOf(p, e)
	case TaskDeclined:
		if e.ID == p.id && p.expects(e.Exec) {
			return "task declined"
		}
	case TriggerRefused:
		if e.ID == p.id && p.expects(e.Exec) {
			return "trigger refused"
		}
	case TaskAcked:
		return ackOf(p, e)
	case JobNotRunning:
		return "job not running"
	case RestoreAsked:
		return "restore asked"
	case Closed:
		return "closed"
	case Requested:
		if e.StopScheduler {
			return "stop requested"
		}
	case LocationCreated:
		return answerOf(c, p, e.Token, e.Err)
	case OperatorSnapped:
		return answerOf(c, p, e.Token, e.Err)
	case HookSnapped:
		return answerOf(c, p, e.Token, e.Err)
	case MetadataWritten:
		return answerOf(c, p, e.Token, e.Err)
	case Stored:
		if q, ok := c.questions[e.Token]; ok && q.id > p.id && e.Err == nil {
			return "newer stored"
		}
		return answerOf(c, p, e.Token, e.Err)
	case Discarded:
		if c.questions[e.Token].asked == askedWithdraw {
			return answerOf(c, p, e.Token, nil)
		}
	case JobRunning, TaskEnded, BacklogChanged, OperatorSent:
	}
	return ""
}

func answerOf(c *Coordinator, p *pending, t Token, err error) string {
	switch q, ok := c.questions[t]; {
	case !ok || q.id != p.id:
		return ""
	case err != nil:
		return "answered by an error"
	}
	return "answered"
}

func changeOf(p *pending, e TaskChanged) string {
	if !p.expects(e.Exec) {
		return ""
	}
	switch e.State {
	case TaskGone:
		return "task gone"
	case TaskFinished:
		return "task finished"
	case TaskDeploying, TaskRunning:
	}
	return ""
}

func ackOf(p *pending, e TaskAcked) string {
	switch {
	case e.ID != p.id:
		return ""
	case !p.expects(e.Exec):
		return "acknowledged by another attempt"
	case p.acked[e.Exec.Task]:
		return "acknowledged twice"
	case p.left == 1:
		return "last acknowledged"
	}
	return "acknowledged"
}
