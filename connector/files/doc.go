// Package files reads and writes files: a source of lines, and a sink that writes each record exactly once.
//
//	env := weir.NewEnv()
//	env.EnableCheckpointing(time.Minute, weir.ExactlyOnce)
//	env.From(files.Lines("/data/in").Match("*.log")).UID("in").
//		Filter(func(line string) bool { return strings.Contains(line, "ERROR") }).
//		To(files.Sink("/data/out", files.AppendLine)).UID("out")
//
// It hides how files are found and divided among the readers, where in a file a reader stands, and all that it takes to make
// a file appear whole, once, and at the right moment, on a disk that may be full and a machine that may lose its power.
//
// # Nouns
//
// The source: a [LineSource] has an enumerator that finds files, cuts them into [Split]s and gives these to readers; a scanner
// finds the lines of one split. The sink: a writer writes parts, hidden files; a checkpoint turns them into pending parts, a
// commit publishes those. A writer's parts have consecutive numbers within its run, which its successors continue.
//
// # What is promised
//
//  1. Each line of each file is read exactly once in the history of a job, at any parallelisms, whatever is restored: a split
//     owns the lines that begin in it, and is owned by the enumerator or by one reader.
//  2. A file that the sink has published is whole, durable, and never changed or replaced. It has the records of one writer
//     between two checkpoints, in the order in which they came.
//  3. A record is in exactly one published file once a checkpoint has completed that began after it: not before, not twice,
//     also when the job dies anywhere and is restored from its latest checkpoint. (Whoever restores an older one gets the
//     records since then in further files, beside those that were published.)
//  4. What can no longer be published, because its file is gone or was changed, fails the job with the file's name.
//  5. Files of others in the sink's directory are left alone. Names that begin with "." are not finished, and the source
//     passes over them: the output directory of one job can be the input of another.
//
// # Goroutines
//
// None of its own. The enumerator looks for files by EnumeratorContext.Run.
package files
