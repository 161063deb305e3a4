package trial

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/cluster"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/worker"
)

// stand is where the jobs of a hard case run, one after the other, in simulated time.
type stand struct {
	*testing.T
	world
	fs     storage.FS // nil: the world's disk as it is
	faults *faults
	carry  worker.Carrier
	log    journal
	runs   []*running
}

func onStand(t *testing.T, test func(s *stand)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stand{T: t, world: world{storage.Memory(), newBroker()}, faults: newFaults(nil)}
		defer s.close()
		test(s)
	})
}

// close ends the jobs that still run.
func (s *stand) close() {
	for _, r := range s.runs {
		r.cancel()
		<-r.done
	}
	if s.Failed() {
		s.Log("the last of the log:\n\t" + s.log.last(30))
	}
}

// env is an environment with checkpoints; every long: by hand only.
func (s *stand) env(parallelism int, every time.Duration) *weir.Env {
	env := weir.NewTestEnv().Parallelism(parallelism).Set("restart-strategy.exponential-delay.max-backoff", 200*time.Millisecond)
	c := env.EnableCheckpointing(every, weir.ExactlyOnce)
	c.Storage, c.Savepoints, c.TolerableFailures = "/checkpoints", "/savepoints", -1
	return env
}

const seldom = 24 * time.Hour

// resumed is an environment that goes on from a checkpoint.
func (s *stand) resumed(parallelism int, every time.Duration, from string) *weir.Env {
	return s.env(parallelism, every).Set("execution.state-recovery.path", from)
}

func (s *stand) stage(records int64, rate float64) stage {
	return stage{records: records, rate: rate, faults: s.faults, sink: topic{s.broker, s.faults}.sink()}
}

// running is a job on a stand.
type running struct {
	*stand
	world
	handle *cluster.Handle
	cancel context.CancelFunc
	done   chan struct{}
	err    error // how it ended
}

// start starts a job, and returns when it has settled.
func (s *stand) start(env *weir.Env) *running {
	r := s.try(env)
	select {
	case <-r.done:
		if r.handle == nil {
			s.Fatal("the job did not start: ", r.err)
		}
	default:
	}
	return r
}

// try is start of a job that may be refused.
func (s *stand) try(env *weir.Env) *running {
	r := &running{stand: s, world: s.world, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	ctx = cluster.WithTuning(ctx, func(j *cluster.Job) {
		if j.FS = s.fs; s.fs == nil {
			j.FS = s.disk
		}
		j.Log, j.Carry = slog.New(&s.log), s.carry
		j.Exit = func(message string) { panic(message) }
		j.Started = func(h *cluster.Handle) { r.handle = h }
	})
	go func() { // ends with the job
		r.err = env.Execute(ctx, "stand")
		close(r.done)
	}()
	s.runs = append(s.runs, r)
	synctest.Wait()
	return r
}

// wait is how the job ended.
func (r *running) wait() error {
	<-r.done
	return r.err
}

// finish waits for the job's end, which must be FINISHED.
func (r *running) finish() {
	r.stand.Helper()
	if err := r.wait(); err != nil {
		r.Fatal(err)
	}
}

// fails waits for the job's end, which must be an error that says all of want.
func (r *running) fails(want ...string) {
	r.stand.Helper()
	err := r.wait()
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			r.Errorf("error: %v\nhas no %q", err, w)
		}
	}
}

// checkpoint takes a checkpoint.
func (r *running) checkpoint() string {
	r.stand.Helper()
	a, err := r.handle.TriggerCheckpoint(r.Context(), false)
	if err != nil {
		r.Fatal(err)
	}
	synctest.Wait()
	return a.Location
}

// crash kills the job's process, and its machine with it; the stand goes on with what that leaves.
func (r *running) crash() {
	synctest.Wait()
	r.stand.world = world{r.world.disk.CrashClone(nil), r.world.broker.clone()}
	r.cancel()
	<-r.done
}

// expect compares what is committed with a reference.
func (s *stand) expect(want bag) {
	s.Helper()
	got := bag{}
	for _, line := range s.broker.read() {
		got.add(line)
	}
	if wrong := differences(got, want, false); len(wrong) > 0 {
		s.Errorf("the committed output is not what it must be:\n\t%s", strings.Join(wrong, "\n\t"))
	}
}

// pass lets simulated time pass.
func pass(d time.Duration) { time.Sleep(d) } // in a bubble

// sortedCopy is for comparisons.
func sortedCopy(lines []string) []string {
	lines = slices.Clone(lines)
	slices.Sort(lines)
	return lines
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if got, want := sortedCopy(got), sortedCopy(want); !slices.Equal(got, want) {
		t.Errorf("got %s\nwant %s", fmt.Sprint(got), fmt.Sprint(want))
	}
}
