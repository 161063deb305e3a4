package state

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// fileStore is where the files of checkpoints lie.
type fileStore struct {
	files  map[string][]byte
	number int
}

// put stores a file under a name of its own; a small one lies in its handle.
func (s *fileStore) put(b []byte, inline int) snapshot.Handle {
	if len(b) <= inline {
		return snapshot.InlineHandle(b)
	}
	s.number++
	h := snapshot.Handle{File: fmt.Sprint("/file-", s.number), Size: int64(len(b))}
	s.files[h.File] = b
	return h
}

func (s *fileStore) open(h snapshot.Handle) (io.ReaderAt, error) {
	if h.File == "" {
		return bytes.NewReader(h.Inline), nil
	}
	b, ok := s.files[h.File]
	if !ok {
		return nil, fmt.Errorf("there is no %s any more", h.File)
	}
	return bytes.NewReader(b), nil
}

// keepOnly deletes the files that none of these checkpoints names.
func (s *fileStore) keepOnly(all []snapshot.KeyedHandle) {
	named := map[string]bool{}
	for _, h := range all {
		named[h.File] = true
		for _, r := range h.Refers {
			named[r.File] = true
		}
	}
	for name := range s.files {
		if !named[name] {
			delete(s.files, name)
		}
	}
}

// taken is a checkpoint: pending, or completed.
type taken[K comparable] struct {
	id       base.CheckpointID
	upon     base.CheckpointID
	snapshot *KeyedSnapshot
	handle   snapshot.KeyedHandle
	file     []byte
	err      error
	written  chan struct{} // closed when file and handle are there
	want     *model[K]
	now      int64
}

// line is a line of checkpoints, as a job takes them: some are pending at the same time, some fail, each is upon one that was
// completed, and files that no checkpoint names any more are deleted.
type line[K comparable] struct {
	*rig[K]
	store   *fileStore
	inline  int
	last    base.CheckpointID
	named   base.CheckpointID // the newest base that was named
	pending []*taken[K]
	done    []*taken[K] // completed, and not older than named

	checkpoints, inlined, referring, files, restarts int
}

func newLine[K comparable](g *rig[K], store *fileStore, inline int) *line[K] {
	return &line[K]{rig: g, store: store, inline: inline}
}

// trigger takes a checkpoint upon a completed one, and has it written by another goroutine.
func (l *line[K]) trigger() {
	l.last++
	c := &taken[K]{id: l.last, written: make(chan struct{}), want: l.model.clone(), now: l.now}
	if len(l.done) > 0 && l.rnd.IntN(40) > 0 {
		c.upon = l.done[l.rnd.IntN(len(l.done))].id
		l.named = max(l.named, c.upon)
	}
	c.snapshot = l.keyed.Snapshot(c.id, c.upon)
	l.done = slices.DeleteFunc(l.done, func(o *taken[K]) bool { return o.id < l.named })
	l.pending = append(l.pending, c)
	l.checkpoints++
	go c.write() // ends with the file
}

func (c *taken[K]) write() {
	defer close(c.written)
	var b bytes.Buffer
	_, c.err = c.snapshot.WriteTo(&b)
	c.file = b.Bytes()
}

// finish completes a pending checkpoint, or aborts it.
func (l *line[K]) finish() {
	i := l.rnd.IntN(len(l.pending))
	c := l.pending[i]
	l.pending = slices.Delete(l.pending, i, i+1)
	fails := l.rnd.IntN(4) == 0
	if fails && l.rnd.IntN(2) == 0 { // the news comes while it is still being written
		l.keyed.Forget(c.id)
	}
	<-c.written
	must(l.t, c.err)
	c.handle = snapshot.KeyedHandle{Range: l.keyed.within, Handle: l.store.put(c.file, l.inline), Refers: c.snapshot.Refers()}
	if !fails || l.rnd.IntN(2) == 0 {
		c.snapshot.Written(c.handle.Handle)
	}
	c.snapshot.Release()
	if fails {
		l.keyed.Forget(c.id)
		return
	}
	if c.id >= l.named {
		l.done = append(l.done, c)
	}
	l.checkBounds(c)
	l.count(c)
	l.sweep()
}

// sweep deletes the files that belong to no checkpoint: neither to one that may be a base, nor to what is being written upon one.
func (l *line[K]) sweep() {
	var named []snapshot.KeyedHandle
	for _, c := range l.done {
		named = append(named, c.handle)
	}
	for _, c := range l.pending {
		if u := c.snapshot.upon; u != nil {
			var h snapshot.KeyedHandle
			for _, f := range u.base.files {
				h.Refers = append(h.Refers, f.handle)
			}
			named = append(named, h)
		}
	}
	l.store.keepOnly(named)
}

// checkBounds: at each single checkpoint, what is kept is at most twice what is alive.
func (l *line[K]) checkBounds(c *taken[K]) {
	var alive, kept int64
	for _, t := range c.snapshot.manifest.tables {
		for _, s := range t.sections {
			for _, u := range s.usages() {
				alive += u.bytes
			}
		}
	}
	for _, h := range c.handle.Refers {
		kept += h.Size
		if _, ok := l.store.files[h.File]; !ok {
			l.t.Fatalf("checkpoint %d refers to %s, which is deleted", c.id, h.File)
		}
	}
	if kept > 2*alive || len(c.handle.Refers) > filesMost {
		l.t.Fatalf("checkpoint %d keeps %d files of %d bytes for %d", c.id, len(c.handle.Refers), kept, alive)
	}
}

func (l *line[K]) count(c *taken[K]) {
	if c.handle.File == "" {
		l.inlined++
	}
	if n := len(c.handle.Refers); n > 0 {
		l.referring++
		l.files = max(l.files, n)
	}
}

// from is a checkpoint to be restored.
func (l *line[K]) from(c *taken[K]) RestoreFile {
	return RestoreFile{ID: c.id, Handle: c.handle, Open: l.store.open}
}

// compareAt restores a checkpoint at some parallelism and compares it with the model of its moment.
func (l *line[K]) compareAt(c *taken[K]) {
	parallelism := []int{1, 2, 3, 7}[l.rnd.IntN(4)]
	for i := range parallelism {
		own, ok := base.RangeOf(i, parallelism).Intersect(l.keyed.within)
		if !ok {
			continue
		}
		var s everyState
		k := l.open(&s, own, l.keyed.slots.hash, &c.now)
		must(l.t, k.Restore(l.from(c), own))
		l.check(k)
		if err := c.want.within(k.Hash, own).diff(k, &s, c.now); err != nil {
			l.t.Fatalf("checkpoint %d restored at %d/%d: %v", c.id, i, parallelism, err)
		}
	}
}

// restart goes on from a completed checkpoint, as after a failure.
func (l *line[K]) restart() {
	if len(l.done) == 0 {
		return
	}
	for _, c := range l.pending {
		<-c.written
	}
	c := l.done[len(l.done)-1]
	hash := l.keyed.slots.hash
	l.state = everyState{}
	l.keyed = l.open(&l.state, l.keyed.within, hash, &l.now)
	from := l.from(c)
	if l.rnd.IntN(4) == 0 { // its files are another's
		from.ID = 0
	}
	must(l.t, l.keyed.Restore(from, l.keyed.within))
	l.check(l.keyed)
	l.model = c.want.clone()
	l.pending, l.done, l.named = nil, []*taken[K]{c}, c.id
	l.restarts++
	l.sweep()
}

// step does something.
func (l *line[K]) step() {
	switch n := l.rnd.IntN(20); {
	case n < 8 && len(l.pending) < 4:
		l.trigger()
	case n < 14 && len(l.pending) > 0:
		l.finish()
	case n < 15 && len(l.done) > 0 && l.rnd.IntN(3) == 0:
		l.compareAt(l.done[l.rnd.IntN(len(l.done))])
	case n < 16 && l.rnd.IntN(8) == 0:
		l.restart()
	case n < 19:
		l.slice()
	}
}

func (l *line[K]) runLine(checkpoints int) {
	for l.checkpoints < checkpoints {
		l.step()
	}
	for len(l.pending) > 0 {
		l.finish()
	}
	for _, c := range l.done {
		l.compareAt(c)
	}
	if err := l.model.diff(l.keyed, &l.state, l.now); err != nil {
		l.t.Fatal(err)
	}
	l.t.Logf("%d checkpoints, %d restarts, %d inline, %d refer to at most %d files; %d keys, %+v", l.checkpoints, l.restarts,
		l.inlined, l.referring, l.files, l.keyed.Len(), l.keyed.stats)
	if l.referring == 0 || l.restarts == 0 {
		l.t.Error("some of what this test is about did not happen")
	}
}

// Whatever a job does with its checkpoints, each that was completed holds what the model held, at any parallelism.
func TestRandomIncrementalCheckpointsEqualTheModel(t *testing.T) {
	key := mustKey[int64](t)
	for _, c := range []struct {
		name   string
		r      base.KeyGroupRange
		hash   func(int64) uint64
		most   int
		inline int
	}{
		{"small", allGroups, nil, 60, 0},
		{"some inline", allGroups, nil, 200, 3000},
		{"large", allGroups, nil, 1500, 20_000},
		{"a third", base.RangeOf(1, 3), nil, 700, 3000},
		{"few groups", base.KeyGroupRange{First: 16000, Last: 17000}, nil, 300, 0},
		{"one hash", allGroups, func(int64) uint64 { return 42 }, 100, 0},
		{"seven hashes", allGroups, func(k int64) uint64 { return key.Hash(k % 7) }, 400, 2000},
		{"three prefixes", allGroups, func(k int64) uint64 { return key.Hash(k%3)&^(1<<49-1) | key.Hash(k)>>15 }, 600, 0},
		{"no hash at all", allGroups, func(k int64) uint64 { return uint64(k) }, 400, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := &fileStore{files: map[string][]byte{}}
			newLine(newRig(t, 7, c.r, c.hash, asInt, c.most), store, c.inline).runLine(400)
		})
	}
	t.Run("strings", func(t *testing.T) {
		newLine(newRig(t, 8, allGroups, nil, asText, 300), &fileStore{files: map[string][]byte{}}, 0).runLine(400)
	})
}

// Rescaled up and down, and each time going on with increments of its own, a job holds what the model holds.
func TestRescalingBetweenIncrementalCheckpoints(t *testing.T) {
	lines := []*line[int64]{newLine(newRig(t, 3, allGroups, nil, asInt, 900), &fileStore{files: map[string][]byte{}}, 1000)}
	lines[0].runSome(60)
	for i, parallelism := range []int{3, 2, 2, 1} {
		lines = rescaled(t, lines, parallelism)
		for _, l := range lines {
			l.runSome(20 + 10*i)
		}
	}
}

// runSome takes some checkpoints, until there is one that all was completed before.
func (l *line[K]) runSome(checkpoints int) {
	for until := l.checkpoints + checkpoints; l.checkpoints < until || len(l.done) == 0; {
		l.step()
	}
	for len(l.pending) > 0 {
		l.finish()
	}
	l.compareAt(l.newest())
}

func (l *line[K]) newest() *taken[K] {
	return slices.MaxFunc(l.done, func(a, b *taken[K]) int { return int(a.id - b.id) })
}

// rescaled restores the newest checkpoints of some lines, all of their job's subtasks, at another parallelism.
func rescaled[K comparable](t *testing.T, old []*line[K], parallelism int) (all []*line[K]) {
	for i := range parallelism {
		own := base.RangeOf(i, parallelism)
		g := newRig(t, uint64(parallelism*10+i), own, old[0].keyed.slots.hash, old[0].key, old[0].most)
		l := newLine(g, &fileStore{files: map[string][]byte{}, number: 1_000_000 * (parallelism*10 + i)}, old[0].inline)
		for _, o := range old {
			g.now, l.last = max(g.now, o.now), max(l.last, o.last)
		}
		for _, o := range old {
			c := o.newest()
			both, ok := own.Intersect(o.keyed.within)
			if !ok {
				continue
			}
			must(t, g.keyed.Restore(o.from(c), both))
			part := c.want.within(g.keyed.Hash, own).clone()
			maps.Copy(g.model.entries, part.entries)
			maps.Copy(g.model.timers, part.timers)
			if both == own && both == o.keyed.within { // as after a failure
				maps.Copy(l.store.files, o.store.files)
				l.done, l.named = []*taken[K]{c}, c.id
			}
		}
		l.check(g.keyed)
		all = append(all, l)
	}
	return all
}
