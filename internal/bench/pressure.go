package main

import (
	"context"
	"os"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/cluster"
)

// pressure is a job whose sink is some hundred times slower than its source, so that all queues between them are full. What
// counts is how long its checkpoints take.
func pressure(w workload) (r result, err error) {
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	env := weir.NewTestEnv().Parallelism(w.parallelism)
	c := env.EnableCheckpointing(w.interval, weir.ExactlyOnce)
	c.Storage, c.Unaligned = dir, w.unaligned
	keys := uint64(w.keys)
	env.From(weir.Generate(w.records, func(i int64) int64 { return int64(splitmix(uint64(i)) % keys) })).UID("generate").
		KeyBy(func(v int64) int64 { return v }).
		Process(&counter{}).UID("count").
		To(lazySink{}).Parallelism(w.parallelism)
	var job *cluster.Handle
	ctx := cluster.WithTuning(context.Background(), func(j *cluster.Job) { j.Started = func(h *cluster.Handle) { job = h } })
	begun := time.Now()
	err = env.Execute(ctx, "pressure")
	r.Seconds = time.Since(begun).Seconds()
	if job != nil {
		for _, e := range job.Status().Checkpoints.History {
			if e.What == checkpoint.Succeeded {
				r.CheckpointMillis = append(r.CheckpointMillis, float64(e.Duration.Microseconds())/1000)
			}
		}
	}
	return r, err
}

// lazySink takes a tenth of a millisecond for each record, as bench/flink's does: in the mean, as a sleep takes a millisecond at
// least.
type lazySink struct{ n *int }

// Writer implements weir.Sink.
func (s lazySink) Writer(weir.WriterContext) (weir.Writer[keyCount], error) {
	return lazySink{new(int)}, nil
}

// Write implements weir.Writer.
func (s lazySink) Write(keyCount, time.Time) error {
	if *s.n++; *s.n%10 == 0 {
		time.Sleep(time.Millisecond)
	}
	return nil
}

// Flush implements weir.Writer.
func (lazySink) Flush(bool) error { return nil }

// Close implements weir.Writer.
func (lazySink) Close() error { return nil }
