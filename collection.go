package weir

// FromSlice is a bounded source of the values of a slice, in their order where its parallelism is 1; at a higher one the
// subtasks take turns. The slice must not change while the job runs, and a job that is restored must have one of the same
// length: a checkpoint has the positions, not the values.
func FromSlice[T any](values []T) Generated[T] {
	g := Generate(int64(len(values)), func(i int64) T { return values[i] })
	g.name = "Slice"
	return g
}
