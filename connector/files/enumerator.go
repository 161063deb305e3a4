package files

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/weirstream/weir"
)

// enumerator finds files and gives their splits to the readers that ask, one at a time, in the order of paths and offsets.
//
// Looking for files is slow, so it happens beside: until the first look is done the enumerator has nothing to give, and a
// checkpoint says that nothing was found yet. A look compares the files that are there with those that were there before;
// that set is replaced whole, never changed, so the goroutine that looks may read it.
type enumerator struct {
	source LineSource // with defaults
	roots  []string   // absolute
	ctx    weir.EnumeratorContext[Split]

	found   bool            // there was a first look
	seen    map[string]bool // the paths of the last look; of a bounded source none
	pending []Split         // not given to any reader
	waiting map[int]bool    // subtasks that asked and got nothing
}

// Start begins to look for files, unless a bounded source is restored after it had found them.
func (e *enumerator) Start() error {
	if e.found && e.source.Bounded() {
		return nil
	}
	for _, root := range e.roots {
		if err := checkReadable(root); err != nil {
			return err
		}
	}
	e.look(0)
	return nil
}

// look lists the files, after a while.
func (e *enumerator) look(after time.Duration) {
	seen := e.seen
	e.ctx.Run(func(ctx context.Context) (any, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(after):
		}
		return e.source.look(ctx, e.roots, seen)
	}, e.looked)
}

// looking is what a look has found.
type looking struct {
	seen   map[string]bool
	splits []Split
}

// look lists the files and cuts the new ones, which must be readable, into splits.
func (s LineSource) look(ctx context.Context, roots []string, seen map[string]bool) (*looking, error) {
	sizes, err := find(ctx, roots, s.patterns)
	if err != nil {
		return nil, err
	}
	return s.cutNew(roots, sizes, seen)
}

// cutNew cuts the files that were not seen into splits. One that went since it was listed was never there, as in finder.walk,
// but for those that the user named.
func (s LineSource) cutNew(roots []string, sizes map[string]int64, seen map[string]bool) (*looking, error) {
	l := &looking{}
	for _, path := range slices.Sorted(maps.Keys(sizes)) {
		if seen[path] {
			continue
		}
		err := checkReadable(path)
		if errors.Is(err, fs.ErrNotExist) && !slices.Contains(roots, path) {
			delete(sizes, path)
			continue
		}
		if err != nil {
			return nil, err
		}
		l.splits = append(l.splits, cut(path, sizes[path], s.splitSize)...)
	}
	if !s.Bounded() {
		l.seen = make(map[string]bool, len(sizes))
		for path := range sizes {
			l.seen[path] = true
		}
	}
	return l, nil
}

// looked takes over what was found, and has an unbounded source look again later.
func (e *enumerator) looked(v any, err error) error {
	if err != nil {
		return err
	}
	l := v.(*looking)
	e.found, e.seen = true, l.seen
	e.pending = append(e.pending, l.splits...)
	for _, subtask := range slices.Sorted(maps.Keys(e.waiting)) {
		e.give(subtask)
	}
	if !e.source.Bounded() {
		e.look(e.source.every)
	}
	return nil
}

// give answers a request, now or when there is an answer.
func (e *enumerator) give(subtask int) {
	switch {
	case len(e.pending) > 0:
		delete(e.waiting, subtask)
		e.ctx.Assign(subtask, e.pending[0])
		e.pending = e.pending[1:]
	case e.found && e.source.Bounded():
		delete(e.waiting, subtask)
		e.ctx.NoMoreSplits(subtask)
	default:
		e.waiting[subtask] = true
	}
}

// Added forgets what an earlier reader of the subtask asked: the new one asks for itself.
func (e *enumerator) Added(subtask int) error {
	delete(e.waiting, subtask)
	return nil
}

func (e *enumerator) SplitRequested(subtask int) error {
	e.give(subtask)
	return nil
}

func (e *enumerator) Close() error { return nil }
