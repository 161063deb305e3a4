package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/cluster"
	"github.com/weirstream/weir/internal/task"
)

// workload is what a child is to do.
type workload struct {
	records, keys int64
	interval      time.Duration
	warm          int64
	parallelism   int // of count
	snapshots     int // end after so many, counted from record warm on; 0: at the last record
	profile       string
	unaligned     bool // checkpoints of pressure
}

// result is what a child tells its parent, as JSON on its standard output.
type result struct {
	Sum              int64     // of all emitted counts: equal on all sides
	Seconds          float64   // from the start of the job to its end
	Mallocs          uint64    // from record warm on; parallelism 1 only
	SyncMicros       []int64   // of each snapshot of the counter
	CheckpointMillis []float64 `json:",omitempty"` // of the last checkpoints, from end to end; pressure only
	GCShare          float64   // of the CPU time that the process could have had
}

// children are what can be measured.
var children = map[string]func(workload) (result, error){
	"loop":     loop,
	"generate": generateOnly,
	"count":    count,
	"first":    first,
	"pressure": pressure,
}

func runChild(name string, w workload) error {
	slog.SetLogLoggerLevel(slog.LevelWarn)
	f, ok := children[name]
	if !ok {
		return fmt.Errorf("no child %q", name)
	}
	if w.profile != "" {
		file, err := os.Create(w.profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	r, err := f(w)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// splitmix is SplitMix64: the i-th key of the workload.
func splitmix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// loop is what a person writes by hand, in one goroutine.
func loop(w workload) (r result, err error) {
	m := map[int64]int64{}
	for i := range w.records {
		k := int64(splitmix(uint64(i)) % uint64(w.keys))
		v := m[k] + 1
		m[k] = v
		r.Sum += v
	}
	return r, nil
}

// generateOnly is the generator alone.
func generateOnly(w workload) (r result, err error) {
	for i := range w.records {
		r.Sum += int64(splitmix(uint64(i)) % uint64(w.keys))
	}
	return r, nil
}

type keyCount struct{ Key, N int64 }

// counter counts the records of each key.
type counter struct {
	Count weir.Value[int64] `state:"count"`
}

// Process implements weir.KeyedFunction.
func (c *counter) Process(ctx *weir.KeyedContext[int64], _ int64, out weir.Out[keyCount]) error {
	n := c.Count.Get() + 1
	c.Count.Set(n)
	out.Emit(keyCount{ctx.Key(), n})
	return nil
}

// summing is a sink that adds the counts up.
type summing struct {
	mu   sync.Mutex // protects into, which all writers share
	into *result
	warm int64
	seen atomic.Int64 // records, now and then
}

// Writer implements weir.Sink.
func (s *summing) Writer(weir.WriterContext) (weir.Writer[keyCount], error) {
	return &sumWriter{of: s, warm: s.warm}, nil
}

type sumWriter struct {
	of      *summing
	sum, n  int64
	warm    int64
	mallocs uint64
}

// Write implements weir.Writer.
func (w *sumWriter) Write(v keyCount, _ time.Time) error {
	w.sum += v.N
	if w.n++; w.n == w.warm {
		w.mallocs = mallocs()
	}
	if w.n%4096 == 0 {
		w.of.seen.Store(w.n)
	}
	return nil
}

// Flush implements weir.Writer.
func (w *sumWriter) Flush(end bool) error {
	if !end {
		return nil
	}
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	w.of.into.Sum += w.sum
	if w.warm > 0 {
		w.of.into.Mallocs = mallocs() - w.mallocs
	}
	return nil
}

// Close implements weir.Writer.
func (w *sumWriter) Close() error { return nil }

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// count is the keyed count as a job: a source and a counter in two tasks, with an exchange between.
func count(w workload) (r result, err error) {
	env := weir.NewTestEnv().Parallelism(w.parallelism)
	if w.interval > 0 {
		dir, err := os.MkdirTemp("", "weir-bench-")
		if err != nil {
			return r, err
		}
		defer os.RemoveAll(dir)
		env.EnableCheckpointing(w.interval, weir.ExactlyOnce).Storage = dir
	}
	sink := &summing{into: &r, warm: w.warm}
	keys := uint64(w.keys)
	env.From(weir.Generate(w.records, func(i int64) int64 { return int64(splitmix(uint64(i)) % keys) })).UID("generate").
		KeyBy(func(v int64) int64 { return v }).
		Process(&counter{}).UID("count").
		To(sink)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	begun := time.Now()
	err = env.Execute(timing(ctx, w, sink, cancel), "count")
	r.Seconds = time.Since(begun).Seconds()
	if w.snapshots > 0 && errors.Is(err, context.Canceled) {
		err = nil
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.GCShare = m.GCCPUFraction
	return r, err
}

// timing has the synchronous parts of the counter's snapshots timed, from record warm on, and the job ended when there are
// enough of them.
func timing(ctx context.Context, w workload, sink *summing, enough func()) context.Context {
	var mu sync.Mutex // protects the result
	return cluster.WithTuning(ctx, func(j *cluster.Job) {
		j.Tune = func(o *task.Options) {
			o.Synced = func(x base.Exec, _ base.CheckpointID, took time.Duration) {
				if int(x.Task) < w.parallelism || w.snapshots > 0 && sink.seen.Load() < w.warm { // the source, or too early
					return
				}
				mu.Lock()
				defer mu.Unlock()
				all := append(sink.into.SyncMicros, took.Microseconds())
				if sink.into.SyncMicros = all; len(all) == w.snapshots {
					enough()
				}
			}
		}
	})
}

// first is a small bounded job, to see how soon it is done.
func first(workload) (r result, err error) {
	env := weir.NewTestEnv()
	n := 0
	env.From(weir.FromSlice([]int64{1, 2, 3})).UID("three").
		KeyBy(func(v int64) int64 { return v }).
		Process(&counter{}).UID("count").
		To(firstSink{&n})
	err = env.Execute(context.Background(), "first")
	r.Sum = int64(n)
	return r, err
}

// firstSink prints one byte at the first record.
type firstSink struct{ n *int }

// Writer implements weir.Sink.
func (s firstSink) Writer(weir.WriterContext) (weir.Writer[keyCount], error) { return s, nil }

// Write implements weir.Writer.
func (s firstSink) Write(keyCount, time.Time) error {
	if *s.n++; *s.n == 1 {
		os.Stdout.WriteString("\n")
	}
	return nil
}

// Flush implements weir.Writer.
func (s firstSink) Flush(bool) error { return nil }

// Close implements weir.Writer.
func (s firstSink) Close() error { return nil }
