package cluster

import "context"

// tuneKey is the key of a context's tuning.
type tuneKey struct{}

// WithTuning has jobs that are executed with the context changed by tune before they run. It is how Weir's own tools and tests
// reach what the public API does not show: a job's status while it runs, other clocks and file systems, faults.
func WithTuning(ctx context.Context, tune func(*Job)) context.Context {
	return context.WithValue(ctx, tuneKey{}, tune)
}

// Tuned is j as the context's tuning wants it.
func Tuned(ctx context.Context, j Job) Job {
	if tune, ok := ctx.Value(tuneKey{}).(func(*Job)); ok {
		tune(&j)
	}
	return j
}
