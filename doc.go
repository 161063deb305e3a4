// Package weir is a stateful stream processor: a job is an ordinary Go program that puts streams together and runs them,
// with Apache Flink's semantics of checkpoints, event time and state.
//
//	env := weir.NewEnv()
//	env.EnableCheckpointing(time.Second, weir.ExactlyOnce).Storage = "/var/lib/jobs"
//	env.From(files.Lines("access.log")).UID("lines").
//		FlatMap(words).
//		KeyBy(func(w string) string { return w }).
//		Process(&count{}).UID("count").
//		To(files.Sink("out", format)).UID("out")
//	err := env.Execute(ctx, "wordcount")
//
// # Nouns
//
// An Env is where a job is put together. A Stream is the output of an operator; its methods append operators. A
// KeyedStream is partitioned by key, and its functions have state by key: fields such as Value, List and Map of the
// function's struct. A Source is read by splits, a Sink is written by each subtask; a TwoPhase sink makes its output visible
// when a checkpoint completes, and so exactly once.
//
// # What is guaranteed
//
// A checkpoint is a consistent cut: every record acted before it on all the state that it reaches, or on none. After a
// failure the state is that of the latest checkpoint, and the sources are read again from their positions in it. So state
// is exact, and so is the output of two-phase sinks. docs/semantics.md says it in full.
//
// # Invariants
//
//  1. A function's struct is copied for each subtask and again after each restart; only fields tagged `weir:"shared"`, and
//     what closures refer to, are shared.
//  2. All methods of one copy are called on one goroutine.
//  3. Everything that is wrong with a job is reported by Execute before anything runs, all at once, with the line that made
//     it.
//
// # Goroutines
//
// Building a job starts none. Execute runs the job with one goroutine for each subtask, one for the job's master, one for
// each source's enumerator, and short ones for I/O; all have ended when it returns.
package weir
