package files

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/pace"
)

const (
	defaultSplitSize = 64 << 20
	defaultMaxLine   = 16 << 20
)

// LineSource is a source of the lines of text files; Lines makes it. Its methods return a changed copy:
//
//	env.From(files.Lines("/var/log/shop").Match("*.log").Every(10 * time.Second))
//
// A line ends with \n, or \r\n; neither is part of the record. The last line of a file needs no end. Bytes are not looked at
// otherwise: a record may be empty, and need not be UTF-8. Records have no timestamps; Watermarks of the source give them.
//
// Large files are read by several subtasks at once, in splits: a split owns the lines that *begin* in its range of bytes.
// Lines of one split keep their order; splits are given to whoever asks, so nothing can be said of the order between them.
// At parallelism 1, splits come in the order of their paths, and within a file from its beginning.
//
// A file is read up to the length that it had when it was found. It must neither shrink, nor change below that length, nor
// go, until the job has read it. What is written behind that length later is not read: move finished files into a directory
// that is watched, rather than to write them there.
type LineSource struct {
	paths     []string
	patterns  []string
	splitSize int64
	maxLine   int
	every     time.Duration // 0: bounded
	rate      float64
}

// Lines is a source of the lines of the files at paths, and below the directories at paths. It reads what there is when the
// job starts and ends. Relative paths count from the working directory of the process that runs the job; in a cluster all
// machines must see the same files at the same absolute paths.
//
// A path that does not exist or cannot be read is an error at the start of the job. In directories, at any depth, all regular
// files are read, and symbolic links to such, but for names that begin with "." or "_", which stand for files not finished.
// Links to directories are not followed.
func Lines(paths ...string) LineSource {
	return LineSource{paths: slices.Clone(paths)}
}

// Match reads, of the files in directories, only those of which the name matches a pattern of filepath.Match, such as "*.go".
// Called again, or given several, it reads what matches any of them. Files named in Lines are always read.
func (s LineSource) Match(patterns ...string) LineSource {
	s.patterns = slices.Concat(s.patterns, patterns)
	return s
}

// SplitSize sets the number of bytes from which on a file is divided into several splits; 64 MiB by default. It counts for
// files that are found from then on: splits of a checkpoint stay as they are.
func (s LineSource) SplitSize(bytes int64) LineSource {
	s.splitSize = bytes
	return s
}

// MaxLine sets the length in bytes of the longest line; 16 MiB by default. A longer one fails the job: it would be held in
// memory whole.
func (s LineSource) MaxLine(bytes int) LineSource {
	s.maxLine = bytes
	return s
}

// Every makes the source unbounded: it looks for new files at that interval, for ever. A file is known by its path and read
// once; a path that was gone and is there again is a new file. The paths that are there are part of each checkpoint.
func (s LineSource) Every(interval time.Duration) LineSource {
	s.every = interval
	return s
}

// Rate limits the source to so many lines a second, over all subtasks together, each of which has an equal share. Zero, the
// default, is no limit.
func (s LineSource) Rate(perSecond float64) LineSource {
	s.rate = perSecond
	return s
}

// Name is for people.
func (s LineSource) Name() string { return "Lines" }

// Bounded is true unless the source looks for new files Every so often.
func (s LineSource) Bounded() bool { return s.every == 0 }

// Enumerator finds the files.
func (s LineSource) Enumerator(ctx weir.EnumeratorContext[Split], state []byte) (weir.Enumerator[Split], error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	e := &enumerator{source: s.withDefaults(), ctx: ctx, waiting: map[int]bool{}}
	for _, path := range s.paths {
		root, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("files: making %s absolute: %w", path, err)
		}
		e.roots = append(e.roots, root)
	}
	if state != nil {
		if err := e.restore(state); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Reader reads splits, one after the other.
func (s LineSource) Reader(ctx weir.ReaderContext) (weir.Reader[string, Split], error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	s = s.withDefaults()
	_, of := ctx.Subtask()
	return &reader{ctx: ctx, maxLine: s.maxLine, pacer: pace.New(s.rate/float64(of), ctx.Wake)}, nil
}

// validate tells all that is wrong with the options.
func (s LineSource) validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("files: "+format, args...)) }
	if len(s.paths) == 0 {
		wrong("Lines was given no path: name a file or a directory")
	}
	for _, p := range s.patterns {
		if _, err := filepath.Match(p, ""); err != nil {
			wrong("Match: %q is not a pattern of filepath.Match", p)
		}
	}
	if s.splitSize < 0 {
		wrong("SplitSize: %d is not a number of bytes", s.splitSize)
	}
	if s.maxLine < 0 {
		wrong("MaxLine: %d is not a number of bytes", s.maxLine)
	}
	if s.every < 0 {
		wrong("Every: %v is not an interval", s.every)
	}
	if !(s.rate >= 0) {
		wrong("Rate: %v is not a number of records a second", s.rate)
	}
	return weir.NonRecoverable(errors.Join(errs...))
}

func (s LineSource) withDefaults() LineSource {
	s.splitSize = cmp.Or(s.splitSize, defaultSplitSize)
	s.maxLine = cmp.Or(s.maxLine, defaultMaxLine)
	return s
}
