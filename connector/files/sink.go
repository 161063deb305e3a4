package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/storage"
)

// Sink is a sink that writes each record exactly once into files of a directory, which is made where it is missing. format
// appends a record to dst, with whatever is to divide it from the next; AppendLine is one for strings.
//
// Files are called part-<run>-<subtask>-<number>. The run is a random name that a writer takes when it starts without a
// checkpoint and that its successors keep: no two jobs, and no two runs of one, ever write a file of the same name.
//
// A file appears when the checkpoint that its records belong to has completed: whole, synced, and for good. Until then it is
// hidden: its name begins with "." and ends with ".inprogress". Every checkpoint begins a new file, in every subtask that was
// given a record, so seldom checkpoints make few and large files. A job without checkpoints shows its files at its end.
//
// What a writer that failed has left hidden is removed by its successor, as long as one of them got into a checkpoint. What
// is left by a job that was killed before its first checkpoint stays; it can be deleted by hand when no job runs.
//
// Two jobs that were started from the same checkpoint, or savepoint, must not write into one directory: they would take one
// another for dead.
func Sink[T any](dir string, format func(dst []byte, v T) []byte, options ...SinkOption) weir.Sink[T] {
	k := &sink[T]{fs: storage.Disk(), dir: dir, format: format, options: sinkOptions{prefix: "part"}}
	for _, set := range options {
		set(&k.options)
	}
	return weir.Committing[T, pending](k)
}

// AppendLine appends s and a newline.
func AppendLine(dst []byte, s string) []byte { return append(append(dst, s...), '\n') }

// SinkOption changes what a Sink does.
type SinkOption func(*sinkOptions)

type sinkOptions struct {
	prefix, suffix string
	rollBytes      int64
	rollRecords    int64
	ignoreMissing  bool
}

// Prefix is how the names of a sink's files begin, instead of with "part".
func Prefix(prefix string) SinkOption { return func(o *sinkOptions) { o.prefix = prefix } }

// Suffix is how the names of a sink's files end, such as ".jsonl"; by default with their number.
func Suffix(suffix string) SinkOption { return func(o *sinkOptions) { o.suffix = suffix } }

// RollBytes begins a new file also within a checkpoint, when one has so many bytes. It ends behind a whole record.
func RollBytes(n int64) SinkOption { return func(o *sinkOptions) { o.rollBytes = n } }

// RollRecords begins a new file also within a checkpoint, when one has so many records.
func RollRecords(n int64) SinkOption { return func(o *sinkOptions) { o.rollRecords = n } }

// IgnoreMissing is for directories from which something takes the published files away. After a failure the sink publishes
// again what the last checkpoint had, and a file that is neither pending nor published is data lost, which fails the job. With
// this option such a file counts as published and taken: data lost in earnest goes unnoticed.
func IgnoreMissing() SinkOption { return func(o *sinkOptions) { o.ignoreMissing = true } }

// validate tells all that is wrong with the options.
func (o *sinkOptions) validate() error {
	var errs []error
	if o.prefix == "" || strings.HasPrefix(o.prefix, ".") || strings.Contains(o.prefix, "/") {
		errs = append(errs, fmt.Errorf("files: Prefix: %q cannot begin the name of a file that is to be seen", o.prefix))
	}
	if strings.Contains(o.suffix, "/") {
		errs = append(errs, fmt.Errorf("files: Suffix: %q cannot end a file's name", o.suffix))
	}
	if o.rollBytes < 0 {
		errs = append(errs, fmt.Errorf("files: RollBytes: %d is not a number of bytes", o.rollBytes))
	}
	if o.rollRecords < 0 {
		errs = append(errs, fmt.Errorf("files: RollRecords: %d is not a number of records", o.rollRecords))
	}
	return weir.NonRecoverable(errors.Join(errs...))
}

// sink is the two-phase sink behind Sink.
type sink[T any] struct {
	fs      storage.FS
	dir     string
	format  func(dst []byte, v T) []byte
	options sinkOptions
}

// Name is for people.
func (k *sink[T]) Name() string { return "Files" }

// Writer makes the directory and tries whether it can be written to, so that a job that cannot work says so at its start.
func (k *sink[T]) Writer(ctx weir.WriterContext) (weir.Writer[T], error) {
	if err := k.options.validate(); err != nil {
		return nil, err
	}
	dir, err := k.fs.Resolve(k.dir)
	if err == nil {
		err = tryDir(k.fs, dir)
	}
	if err != nil {
		err = fmt.Errorf("files: the sink cannot write to the directory %s: %w; "+
			"permit it to the user that runs the job, or choose another directory", k.dir, err)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOTDIR) {
			err = weir.NonRecoverable(err) // no restart will change it
		}
		return nil, err
	}
	subtask, _ := ctx.Subtask()
	return &writer[T]{
		format: k.format,
		parts:  parts{fs: k.fs, options: &k.options, dir: dir, subtask: subtask, run: newRun()},
	}, nil
}

// Restore has the writer go on from where the old ones had stopped at the checkpoint.
func (k *sink[T]) Restore(w weir.Writer[T], states [][]byte) error {
	for i, state := range states {
		l, err := decodeLineage(state)
		if err != nil {
			return weir.NonRecoverable(err) // it is of another version, or damaged
		}
		if err := w.(*writer[T]).parts.succeed(l, i == 0); err != nil {
			return err
		}
	}
	return nil
}

// Prepare makes pending parts of what was written.
func (k *sink[T]) Prepare(w weir.Writer[T], checkpoint int64) ([]pending, []byte, error) {
	return w.(*writer[T]).prepare(checkpoint)
}

// commitAttempts is how often a commit is tried that fails for a reason that may pass, before the job restarts, which shows
// the error.
const commitAttempts = 3

// Commit publishes pending parts.
func (k *sink[T]) Commit(ctx context.Context, cs []*weir.Commit[pending]) error {
	parts := make([]pending, len(cs))
	for i, c := range cs {
		parts[i] = c.Value
	}
	var failed []error
	for i, err := range k.publisher().publish(ctx, parts) {
		c := cs[i]
		switch {
		case err == nil:
		case errors.Is(err, ErrLost):
			c.Fail(weir.NonRecoverable(err))
		case c.Attempt < commitAttempts && ctx.Err() == nil:
			c.Retry()
		default:
			failed = append(failed, fmt.Errorf("files: publishing %s of checkpoint %d: %w", c.Value.path(), c.Value.Checkpoint, err))
		}
	}
	return errors.Join(failed...)
}

func (k *sink[T]) publisher() publisher { return publisher{k.fs, k.options.ignoreMissing} }

// Abort removes pending parts.
func (k *sink[T]) Abort(_ context.Context, cs []pending) error {
	var errs []error
	for i := range cs {
		errs = append(errs, removeFile(k.fs, cs[i].hidden()))
	}
	return errors.Join(errs...)
}
