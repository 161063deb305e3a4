package trial

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirstream/weir/connector/files"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/cluster"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// programName is how this test binary knows, by os.Args[0], that it is to be a job's process.
const programName = "trial-program"

func TestMain(m *testing.M) {
	if os.Args[0] == programName {
		os.Exit(programMain(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// How a job's process ends, beside 0 for FINISHED.
const (
	exitFailed      = 1
	exitPartlyEnded = 3 // it cannot be restored at this parallelism
	exitNothingLeft = 4 // it has nothing to go on from
	exitWasFinished = 5
	exitStorage     = 6 // a planted fault of the disk did not let it come up
	exitStopped     = 7 // with a savepoint
)

// programMain is a life of a job: its plan's seed, number, parallelism, whether it goes on from its latest checkpoint, and
// directory.
func programMain(args []string) int {
	seed, _ := strconv.ParseUint(args[0], 10, 64)
	number, _ := strconv.Atoi(args[1])
	parallelism, _ := strconv.Atoi(args[2])
	goOn, dir := args[3] == "true", args[4]
	p := drawReal(seed)
	user, disk := p.ofLife(number)
	from := ""
	if goOn {
		from = latest
	}
	env := p.env(from, parallelism, filepath.Join(dir, "checkpoints"))
	programOf(p.Program).build(env, stage{records: p.Records, rate: p.Rate, faults: newFaults(user), sink: files.Sink(filepath.Join(dir, "out"), files.AppendLine)})
	started := false
	var appointment *time.Timer // for a stop
	stopped := make(chan bool, 1)
	ctx := cluster.WithTuning(context.Background(), func(j *cluster.Job) {
		j.FS = storage.Faulty(storage.Disk(), disk...)
		j.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
		j.Started = func(h *cluster.Handle) {
			started = true
			if number < len(p.Lives) && p.Lives[number].How == stop {
				appointment = time.AfterFunc(p.Lives[number].After, func() { stopped <- stopReal(h, p.Lives[number], dir) })
			}
		}
	})
	err := env.Execute(ctx, "trial")
	if err == nil && appointment != nil && !appointment.Stop() && <-stopped {
		return exitStopped
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	var partly *snapshot.PartlyEndedError
	switch {
	case errors.As(err, &partly):
		return exitPartlyEnded
	case stoppedShort.MatchString(err.Error()):
		return exitStopped
	case strings.Contains(err.Error(), "has FINISHED"):
		return exitWasFinished
	case errors.Is(err, storage.ErrNone):
		return exitNothingLeft
	case !started && isOneOf(err, storageErrors):
		return exitStorage
	}
	return exitFailed
}

// stopReal stops the job with a savepoint, if it still can be.
func stopReal(h *cluster.Handle, e ending, dir string) bool {
	_, err := h.TriggerSavepoint(context.Background(), jobmaster.Savepoint{Kind: checkpoint.Suspend, Format: e.Format, Target: filepath.Join(dir, "savepoints")})
	if err != nil {
		fmt.Fprintln(os.Stderr, "the stop:", err)
	}
	return err == nil
}

// drawReal is the plan of a seed for processes: always with a directory, and with kills.
func drawReal(seed uint64) plan {
	p := draw(seed)
	r := rand.New(rand.NewPCG(seed, 5))
	p.Directory, p.Broker, p.Messages, p.Slow, p.Work = true, 0, nil, 0, 0
	p.Records, p.Rate = int64(300+r.IntN(1200)), float64(1000+r.IntN(3000))
	p.Lives, p.Parallelism = nil, []int{widths[r.IntN(len(widths))]}
	for range 1 + r.IntN(3) {
		p.Lives = append(p.Lives, ending{After: time.Duration(50+r.IntN(350)) * time.Millisecond, How: []string{crash, crash, stop}[r.IntN(3)],
			Format: drawFormat(r)})
		p.Parallelism = append(p.Parallelism, widths[r.IntN(len(widths))])
	}
	return p
}

// ofLife deals the plan's faults to its lives; none is left for those that follow.
func (p plan) ofLife(number int) (user []fault, disk []*storage.Rule) {
	for i, f := range p.User {
		if i%len(p.Parallelism) == number {
			user = append(user, f)
		}
	}
	for i, s := range p.Storage {
		if i%len(p.Parallelism) == number {
			disk = append(disk, s.rule())
		}
	}
	return user, disk
}

// TestProcesses kills real processes with -9, or stops them with a savepoint, and compares what their files hold.
func TestProcesses(t *testing.T) {
	count := uint64(8)
	if raceEnabled {
		count = 3
	}
	if testing.Short() {
		count = 1
	}
	count = setting(t, "PROCESSES", count)
	first := setting(t, "SEED", uint64(time.Now().UnixNano()%1_000_000))
	for seed := first; seed < first+count; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := &realTrial{plan: drawReal(seed), dir: t.TempDir()}
			if err := r.run(t); err != nil {
				t.Errorf("%v\nof the plan: %v\nsaid:\n%s\nrepeat with: PROCESSES=1 SEED=%d go test ./internal/trial -run TestProcesses (the moments of the kills will differ)",
					err, r.plan, last(r.said.String(), 6000), seed)
			}
		})
	}
}

func last(s string, n int) string { return s[max(0, len(s)-n):] }

// realTrial is a plan being run with processes.
type realTrial struct {
	plan
	dir  string
	said bytes.Buffer
}

func (r *realTrial) run(t *testing.T) error {
	goOn := false
	for n := 0; n < livesMost; n++ {
		code, killed := exitPartlyEnded, false
		for _, parallelism := range r.repeats(n) {
			if code, killed = r.live(t, n, parallelism, goOn); killed || code != exitPartlyEnded {
				break
			}
		}
		switch {
		case killed || code == exitStorage || code == exitStopped:
			goOn = true
		case code == exitNothingLeft:
			got, err := r.read()
			if err != nil || len(got) > 0 {
				return fmt.Errorf("there is output, and nothing to go on from: %v", err)
			}
			goOn = false
		case code == 0 || code == exitWasFinished:
			return r.verdict()
		default:
			return fmt.Errorf("life %d ended with code %d", n, code)
		}
	}
	return fmt.Errorf("not FINISHED after %d lives", livesMost)
}

// live is one process, which is killed when its time has come.
func (r *realTrial) live(t *testing.T, n, parallelism int, goOn bool) (code int, killed bool) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	appointment := 2 * time.Minute // for one that hangs, which then says where
	signal := os.Signal(syscall.SIGQUIT)
	if n < len(r.Lives) && r.Lives[n].How == crash {
		appointment, signal = r.Lives[n].After, os.Kill
	}
	ctx, cancel := context.WithTimeout(t.Context(), appointment)
	defer cancel()
	c := exec.CommandContext(ctx, self)
	c.Cancel = func() error { return c.Process.Signal(signal) }
	c.WaitDelay = 5 * time.Second
	c.Args = []string{programName, fmt.Sprint(r.Seed), fmt.Sprint(n), fmt.Sprint(parallelism), fmt.Sprint(goOn), r.dir}
	fmt.Fprintf(&r.said, "---- life %d at parallelism %d\n", n, parallelism)
	c.Stdout, c.Stderr = &r.said, &r.said
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), !c.ProcessState.Exited() && signal == os.Kill
}

// read is what the files hold that the sink has published.
func (r *realTrial) read() (bag, error) {
	got := bag{}
	names, err := filepath.Glob(filepath.Join(r.dir, "out", "part-*"))
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			got.add(lines.Text())
		}
		if err := errors.Join(lines.Err(), f.Close()); err != nil {
			return nil, err
		}
	}
	return got, err
}

func (r *realTrial) verdict() error {
	got, err := r.read()
	if err != nil {
		return err
	}
	if wrong := differences(got, programOf(r.Program).reference(r.Records), r.AtLeastOnce); len(wrong) > 0 {
		return fmt.Errorf("the published output is not the reference:\n\t%s", strings.Join(wrong, "\n\t"))
	}
	return nil
}
