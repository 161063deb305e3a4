package job

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
)

// fault is a bug that is planted to see that the checkers find it. Nothing of it is in the machine: a fault changes the
// machine's state, or what it is told, around a step.
type fault int

const (
	noFault fault = iota
	deployedTooSoon
	oldExecutionHeard
	abandonedResetTaken
	restartCountedTwice
	restartAfterStop
	toldCountsAsFinished
	wrongRegion
	attemptUsedAgain
	delayIgnored
	stopNotAnswered
	endNotRecorded
	failureForgotten
	faults
)

func (f fault) String() string {
	return [...]string{
		noFault:              "none",
		deployedTooSoon:      "a restart does not wait until the last task is gone",
		oldExecutionHeard:    "what an old execution says is taken for the current one's",
		abandonedResetTaken:  "the answer to an abandoned reset is taken for the newest one's",
		restartCountedTwice:  "a failure during a restart begins another one",
		restartAfterStop:     "it is forgotten that the savepoint by which the job stops is complete",
		toldCountsAsFinished: "a task that was told to end counts as finished",
		wrongRegion:          "a failure restarts another region",
		attemptUsedAgain:     "the number of an attempt is used again",
		delayIgnored:         "the delay of a restart is ignored",
		stopNotAnswered:      "who asked for the stop is not answered",
		endNotRecorded:       "the job ends without a record",
		failureForgotten:     "a task's failure is not heard of",
	}[f]
}

// faultyStep is a step of the machine, with a fault around it.
func (w *world) faultyStep(e Event) []Action {
	m := w.m
	switch w.bug {
	case deployedTooSoon:
		if _, ok := e.(TimePassed); ok && m.restart != nil && m.restart.phase == waiting {
			alive := m.alive
			m.alive = make([]int, len(alive))
			defer func() { m.alive = alive }()
		}
	case oldExecutionHeard, toldCountsAsFinished, failureForgotten:
		e = w.misheard(e)
	case abandonedResetTaken:
		if reset, ok := e.(OperatorsReset); ok && m.restart != nil && m.restart.phase == resetting {
			reset.Token = m.restart.token
			e = reset
		}
	case restartCountedTwice:
		if report, ok := e.(TaskReported); ok && report.State == TaskFailed && m.end == nil {
			m.restart = nil
		}
	case restartAfterStop:
		m.stopped = nil
	case wrongRegion:
		clear(m.regionOf)
	case attemptUsedAgain:
		if _, ok := e.(OperatorsReset); ok {
			m.tasks[0].attempt--
		}
	case delayIgnored:
		if m.restart != nil {
			m.restart.at = 0
		}
	case stopNotAnswered:
		m.replies = nil
	case endNotRecorded:
		if m.end != nil {
			m.end.asked, m.end.known = true, true
		}
	}
	return m.Step(w.now, e)
}

// misheard is what the machine understands of a report.
func (w *world) misheard(e Event) Event {
	report, ok := e.(TaskReported)
	if !ok {
		return e
	}
	x := &w.m.tasks[report.Exec.Task]
	switch {
	case w.bug == oldExecutionHeard:
		report.Exec.Attempt = x.attempt
	case w.bug == toldCountsAsFinished && report.State == TaskFinished && x.state == canceling:
		x.state = running
	case w.bug == failureForgotten && report.State == TaskFailed:
		return Relayed{checkpoint.TimePassed{}}
	}
	return report
}

// TestPlantedFaults has the simulation find each fault within a minute; without SIM_SECONDS, all but the one that is found late.
func TestPlantedFaults(t *testing.T) {
	for f := noFault + 1; f < faults; f++ {
		if f == toldCountsAsFinished && os.Getenv("SIM_SECONDS") == "" {
			continue
		}
		t.Run(strings.ReplaceAll(f.String(), " ", "_"), func(t *testing.T) {
			start, steps := time.Now(), 0
			for seed := uint64(0); time.Since(start) < time.Minute; seed++ {
				w := newWorld(seed, map[string]int{}, f)
				err := w.run()
				steps += w.steps
				if err != nil {
					t.Logf("found after %d steps, %v, by seed %d: %v", steps, time.Since(start).Round(time.Millisecond), seed, err)
					return
				}
			}
			t.Errorf("not found within %d steps", steps)
		})
	}
}
