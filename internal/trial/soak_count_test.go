package trial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/cluster"
)

// countSoak is a keyed count that runs for long while an error strikes again and again: what it looks for is not a wrong
// interleaving but what is left over each time, a goroutine, an open file, a checkpoint's file, a little memory.
type countSoak struct {
	seconds  uint64
	rate     int64 // records a second
	keys     uint64
	interval time.Duration // of checkpoints
	errEvery time.Duration
	dir      string // of checkpoints
	out      *ledger
	due      atomic.Bool // an error
	errors   atomic.Int64
	handle   *cluster.Handle
	took     time.Duration
}

// TestSoakCount runs a small keyed count for two seconds; one as large and as long as SOAK_SECONDS says in make soak-count.
func TestSoakCount(t *testing.T) {
	s := &countSoak{seconds: 2, rate: 20_000, keys: 1000, interval: 50 * time.Millisecond, errEvery: 500 * time.Millisecond}
	if os.Getenv("SOAK_COUNT") != "" {
		*s = countSoak{seconds: setting(t, "SOAK_SECONDS", 1800), rate: 200_000, keys: 100_000, interval: 200 * time.Millisecond, errEvery: 20 * time.Second}
	}
	s.dir, s.out = t.TempDir(), newLedger()
	openFiles() // the first look opens what the runtime keeps open
	before := s.look()
	samples, err := s.run()
	if err != nil {
		t.Fatal(err)
	}
	after := s.settled(before)
	wrong := errors.Join(s.out.balance(s.reference()), s.nothingLeft(before, after), steady(samples))
	verdict := "PASSED"
	if wrong != nil {
		verdict = "FAILED"
		t.Error(wrong)
	}
	s.say("%s: %d records exactly once, %d errors, %d restarts, %d checkpoints completed, %d failed; %v; in the end %v",
		verdict, s.out.records.Load(), s.errors.Load(), s.handle.Status().Restarts, s.handle.Status().Checkpoints.Completed,
		s.handle.Status().Checkpoints.Failed, trends(samples), after)
}

func (s *countSoak) say(format string, args ...any) {
	if os.Getenv("SOAK_COUNT")+os.Getenv("SOAK_INCREMENTAL") != "" {
		fmt.Printf(time.Now().Format("15:04:05 ")+format+"\n", args...)
	}
}

// run runs the job to its end, and samples the process each second, or ten times where it is short.
func (s *countSoak) run() (samples []sample, err error) {
	ctx := cluster.WithTuning(context.Background(), func(j *cluster.Job) {
		j.Log = slog.New(slog.DiscardHandler)
		j.Started = func(h *cluster.Handle) { s.handle = h }
	})
	began := time.Now()
	defer func() { s.took = time.Since(began) }()
	ended := make(chan error, 1)
	go func() { ended <- s.job().Execute(ctx, "soak-count") }() // ends with the job
	every := min(time.Second, time.Duration(s.seconds)*time.Second/10)
	look, fail, tell := time.NewTicker(every), time.NewTicker(s.errEvery), time.NewTicker(30*time.Second)
	defer look.Stop()
	defer fail.Stop()
	defer tell.Stop()
	for {
		select {
		case err := <-ended:
			return samples, err
		case <-look.C:
			samples = append(samples, s.look())
		case <-fail.C:
			s.due.Store(true)
		case <-tell.C:
			s.say("%d records, %d errors; %v", s.out.records.Load(), s.errors.Load(), samples[len(samples)-1])
		}
	}
}

func (s *countSoak) key(i int64) int64 {
	x := uint64(i) * 0x9E3779B97F4A7C15
	return int64((x ^ x>>29) % s.keys)
}

func (s *countSoak) records() int64 { return int64(s.seconds) * s.rate }

func (s *countSoak) job() *weir.Env {
	env := weir.NewTestEnv().Parallelism(2).
		Set("restart-strategy.exponential-delay.max-backoff", 200*time.Millisecond)
	env.EnableCheckpointing(s.interval, weir.ExactlyOnce).Storage = s.dir
	env.From(weir.Generate(s.records(), s.key).Rate(float64(s.rate))).UID("keys").
		KeyBy(func(k int64) int64 { return k }).
		Process(&tallied{Soak: s}).UID("count").
		To(weir.Committing[keyCount, portion](s.out)).UID("out")
	return env
}

type keyCount struct{ Key, N int64 }

// mix makes of a count a number whose sum over many tells whether each is there once.
func (c keyCount) mix() uint64 {
	x := uint64(c.Key)<<32 + uint64(c.N)
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// tallied counts by key, and fails where an error is due.
type tallied struct {
	Count weir.Value[int64] `state:"count"`
	Soak  *countSoak        `weir:"shared"`
}

func (c *tallied) Process(ctx *weir.KeyedContext[int64], _ int64, out weir.Out[keyCount]) error {
	if c.Soak.due.Load() && c.Soak.due.CompareAndSwap(true, false) {
		c.Soak.errors.Add(1)
		return errPlanted
	}
	n := c.Count.Get() + 1
	c.Count.Set(n)
	out.Emit(keyCount{ctx.Key(), n})
	return nil
}

// reference is what a loop makes of the same records.
func (s *countSoak) reference() (n int64, sum uint64) {
	counts := make([]int64, s.keys)
	for i := range s.records() {
		k := s.key(i)
		counts[k]++
		sum += keyCount{k, counts[k]}.mix()
	}
	return s.records(), sum
}

// ledger is a two-phase sink that keeps only how many counts were committed, and their sum.
type ledger struct {
	records atomic.Int64

	mu   sync.Mutex
	sum  uint64        // protected by mu
	last map[int]int64 // protected by mu; by subtask, the checkpoint that was committed last
}

// portion is what one subtask wrote between two checkpoints.
type portion struct {
	Subtask    int
	Checkpoint int64
	Records    int64
	Sum        uint64
}

func newLedger() *ledger { return &ledger{last: map[int]int64{}} }

func (l *ledger) balance(records int64, sum uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.records.Load() != records || l.sum != sum {
		return fmt.Errorf("%d counts with the sum %d are committed, want %d with %d", l.records.Load(), l.sum, records, sum)
	}
	return nil
}

type portionWriter struct{ portion }

func (w *portionWriter) Write(c keyCount, _ time.Time) error {
	w.Records++
	w.Sum += c.mix()
	return nil
}

func (w *portionWriter) Flush(bool) error { return nil }
func (w *portionWriter) Close() error     { return nil }

// Writer implements weir.TwoPhase.
func (l *ledger) Writer(ctx weir.WriterContext) (weir.Writer[keyCount], error) {
	subtask, _ := ctx.Subtask()
	return &portionWriter{portion{Subtask: subtask}}, nil
}

// Restore implements weir.TwoPhase.
func (l *ledger) Restore(weir.Writer[keyCount], [][]byte) error { return nil }

// Prepare implements weir.TwoPhase.
func (l *ledger) Prepare(w weir.Writer[keyCount], checkpoint int64) ([]portion, []byte, error) {
	pw := w.(*portionWriter)
	p := pw.portion
	p.Checkpoint = checkpoint
	pw.portion = portion{Subtask: p.Subtask}
	return []portion{p}, nil, nil
}

// Commit implements weir.TwoPhase. A subtask's portions come in the order of their checkpoints; what comes again is known.
func (l *ledger) Commit(_ context.Context, cs []*weir.Commit[portion]) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range cs {
		if p := c.Value; p.Checkpoint > l.last[p.Subtask] {
			l.last[p.Subtask] = p.Checkpoint
			l.records.Add(p.Records)
			l.sum += p.Sum
		}
	}
	return nil
}

// Abort implements weir.TwoPhase.
func (l *ledger) Abort(context.Context, []portion) error { return nil }

// sample is what a process has at a moment.
type sample struct {
	rssKB      int64
	liveKB     int64 // of the heap, as the collector last found it
	goroutines int64
	open       int64 // file descriptors
	files      int64 // of checkpoints
	chks       int64 // directories of checkpoints
	others     int64 // files beside them: what the job has on record
}

func (x sample) String() string {
	return fmt.Sprintf("%.1f MB, %.1f of them alive, %d goroutines, %d open files, %d files in %d checkpoints, %d beside", float64(x.rssKB)/1024, float64(x.liveKB)/1024, x.goroutines, x.open, x.files, x.chks, x.others)
}

// settled is the look of the process once the goroutines have gone that were about to, which they have a second for.
func (s *countSoak) settled(before sample) sample {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for range 100 {
		if x := s.look(); x.goroutines <= before.goroutines && x.open <= before.open {
			return x
		}
		<-again.C
	}
	return s.look()
}

func (s *countSoak) look() sample {
	x := sample{rssKB: residentKB(), liveKB: liveKB(), goroutines: int64(runtime.NumGoroutine()), open: openFiles()}
	filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil: // it was deleted meanwhile
		case strings.HasPrefix(e.Name(), "chk-"):
			x.chks++
		case e.IsDir():
		case strings.Contains(path, "chk-"), strings.Contains(path, "/shared/"):
			x.files++
		default:
			x.others++
		}
		return nil
	})
	return x
}

// residentKB is the resident size of this process; 0 where the system does not tell.
func residentKB() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	fmt.Sscan(string(b), &size, &resident)
	return resident * int64(os.Getpagesize()) / 1024
}

func liveKB() int64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return int64(live[0].Value.Uint64() / 1024)
}

func openFiles() int64 {
	entries, _ := os.ReadDir("/proc/self/fd")
	return int64(len(entries))
}

// nothingLeft compares the process after the job with the one before it.
func (s *countSoak) nothingLeft(before, after sample) error {
	if after.goroutines > before.goroutines || after.open > before.open || after.files > 0 || after.chks > 0 {
		return fmt.Errorf("something is left: before %v, after %v", before, after)
	}
	return nil
}

// trend is the median of a figure in the first and in the last third of the samples that follow the warm-up, which is a tenth.
type trend struct {
	name        string
	first, last int64
	most        int64 // of all samples
	slack       int64 // that the last may have over the first
}

func (r trend) String() string {
	return fmt.Sprintf("%s: %d, then %d, most %d", r.name, r.first, r.last, r.most)
}

func trends(samples []sample) []trend {
	samples = samples[len(samples)/10:]
	third := len(samples) / 3
	of := func(name string, figure func(sample) int64, slack func(first int64) int64) trend {
		var all []int64
		for _, x := range samples {
			all = append(all, figure(x))
		}
		r := trend{name: name, first: middle(all[:third]), last: middle(all[len(all)-third:]), most: slices.Max(all)}
		r.slack = slack(r.first)
		return r
	}
	few := func(int64) int64 { return 2 }
	return []trend{
		of("resident KB", func(x sample) int64 { return x.rssKB }, func(first int64) int64 { return first/20 + 4096 }),
		of("alive KB", func(x sample) int64 { return x.liveKB }, func(first int64) int64 { return first/20 + 1024 }),
		of("goroutines", func(x sample) int64 { return x.goroutines }, few),
		of("open files", func(x sample) int64 { return x.open }, few),
		of("checkpoints' files", func(x sample) int64 { return x.files }, func(first int64) int64 { return first/2 + 2 }),
		of("checkpoints", func(x sample) int64 { return x.chks }, few),
		of("files beside them", func(x sample) int64 { return x.others }, few),
	}
}

func middle(of []int64) int64 {
	of = slices.Sorted(slices.Values(of))
	if len(of) == 0 {
		return 0
	}
	return of[len(of)/2]
}

// steady tells what has grown.
func steady(samples []sample) error {
	var wrong []error
	for _, r := range trends(samples) {
		if r.last > r.first+r.slack {
			wrong = append(wrong, fmt.Errorf("it grows: %v, of which %d would pass", r, r.slack))
		}
	}
	return errors.Join(wrong...)
}
