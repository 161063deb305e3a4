package weir_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// Snapshots of every version of the format lie whole in testdata/compat, and are restored for ever. They are of the job below, half-way. Neither
// it nor they are ever changed: what a new version adds goes into new directories, which -update writes where they are missing.

var update = flag.Bool("update", false, "write the snapshots in testdata/compat that are missing")

const (
	oldLanes = 3
	oldHalf  = 300 // records that are there when the snapshot is taken
	oldAll   = 400
	oldKeys  = 7
)

// oldJob is what the job reads and writes.
type oldJob struct {
	source *tape[int64]
	out    *notes
	hook   *oldHook
}

// newOldJob has the first records on its tape.
func newOldJob(records int64) *oldJob {
	j := &oldJob{source: newTape[int64](oldLanes), out: &notes{}, hook: &oldHook{}}
	for v := range records {
		j.source.write(int(v%oldLanes), v)
	}
	return j
}

// build has all that a snapshot can have: splits in their enumerator and in readers, one source that has finished, lists of each kind, state by
// key of each kind, both sorts of timers, watermarks, broadcast state, what a sink has prepared and not committed, a master hook.
func (j *oldJob) build(env *Env) *Env {
	names := env.From(FromSlice([]string{"a", "bb", "ccc"})).UID("names").Parallelism(1).Broadcast()
	seconds := Watermarks[int64]{Timestamp: func(v int64) time.Time { return time.Unix(v, 0) }}
	env.Hook(j.hook).From(j.source, seconds).UID("tape").
		Rebalance().Process(&oldLists{N: j.out}).UID("lists").
		Map(func(v int64) oldRecord { pass(time.Millisecond); return oldRecord{v, fmt.Sprint(v)} }).UID("slow").NewChain().
		KeyBy(func(r oldRecord) string { return fmt.Sprint("key ", r.V%oldKeys) }).ConnectBroadcast(names).
		Process(newOldState()).UID("state").
		To(Committing[string, string](&oldLedger{j.out})).UID("ledger")
	return env
}

type oldRecord struct {
	V    int64
	Text string
}

// oldLists keeps in lists what passes, and tells at the end what it has.
type oldLists struct {
	Mine OperatorList[int64] `state:"mine"`
	All  UnionList[int64]    `state:"all"`
	N    *notes              `weir:"shared"`
}

func (f *oldLists) Open(ctx OpenContext) error {
	var own []int64
	for v := range f.All.All() {
		if v%int64(ctx.Parallelism) == int64(ctx.Subtask) {
			own = append(own, v)
		}
	}
	f.All.Update(own)
	return nil
}

func (f *oldLists) Process(_ *Context, v int64, out Out[int64]) error {
	f.Mine.Add(v)
	f.All.Add(v)
	out.Emit(v)
	return nil
}

func (f *oldLists) EndOfInput(Out[int64]) error {
	for v := range f.Mine.All() {
		f.N.add("mine %d", v)
	}
	for v := range f.All.All() {
		f.N.add("all %d", v)
	}
	return nil
}

// oldTotal has a field of each sort that the codec has.
type oldTotal struct {
	Name   string
	Count  int64
	Small  int8
	Big    uint64
	Mean   float64
	Even   bool
	Last   time.Time
	Parts  []int32
	Newest *int64
	Bytes  []byte
	Pair   [2]uint8
	By     map[string]int64
}

type oldState struct {
	Total Value[oldTotal]                    `state:"total"`
	Texts List[string]                       `state:"texts"`
	Halfs Map[int64, oldRecord]              `state:"halfs"`
	Most  Reducing[int64]                    `state:"most"`
	Sum   Aggregating[int64, []int64, int64] `state:"sum"`
	Names BroadcastMap[string, int64]        `state:"names"`
}

func newOldState() *oldState {
	f := &oldState{}
	f.Most.Reduce = func(a, b int64) int64 { return max(a, b) }
	f.Sum.Fold = func(acc []int64, v int64) []int64 { return append(acc, v) }
	f.Sum.Result = func(acc []int64) (sum int64) {
		for _, v := range acc {
			sum += v
		}
		return sum
	}
	return f
}

var (
	oldEnd   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	oldRings = time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC) // an hour after the bubble's clock begins
)

func (f *oldState) Process(ctx *KeyedContext[string], r oldRecord, out Out[string]) error {
	t := f.Total.Get()
	if t.Count == 0 {
		t.Name, t.By = ctx.Key(), map[string]int64{}
		ctx.EventTimer(oldEnd)
		ctx.ProcessingTimer(oldRings)
	}
	t.Count++
	t.Small, t.Big, t.Mean, t.Even = int8(t.Count), uint64(t.Count)<<60+1, float64(t.Count)/2, t.Count%2 == 0
	t.Bytes, t.Pair = []byte(t.Name), [2]uint8{1, uint8(t.Count)}
	t.Parts = append(t.Parts, int32(r.V))
	t.By[[]string{"even", "odd"}[r.V%2]] += r.V
	if t.Newest == nil || *t.Newest < r.V {
		t.Newest, t.Last = &r.V, time.Unix(r.V, 0).UTC()
	}
	f.Total.Set(t)
	f.Texts.Add(r.Text)
	f.Halfs.Put(r.V/2, r)
	f.Most.Add(r.V)
	f.Sum.Add(r.V)
	ctx.EventTimer(time.Unix(r.V+50, 0))
	out.Emit(fmt.Sprint("record ", r.V))
	return nil
}

func (f *oldState) ProcessBroadcast(_ *Context, name string, _ Out[string]) error {
	f.Names.Put(name, int64(len(name)))
	return nil
}

func (f *oldState) OnTimer(ctx *KeyedContext[string], t Timer, out Out[string]) error {
	switch {
	case !t.Event:
		out.Emit(ctx.Key() + " rings")
	case !t.At.Equal(oldEnd):
		out.Emit(fmt.Sprint("timer ", t.At.Unix()))
	default:
		out.Emit(f.totals())
	}
	return nil
}

// totals are all states in a line, whatever the order in which records came.
func (f *oldState) totals() string {
	t := f.Total.Get()
	slices.Sort(t.Parts)
	texts, halfs, names := 0, int64(0), int64(0)
	for s := range f.Texts.All() {
		texts += len(s)
	}
	for _, r := range f.Halfs.All() {
		halfs += r.V
	}
	for _, n := range f.Names.All() {
		names += n
	}
	return fmt.Sprint(t.Name, ": ", t.Count, " ", t.Small, " ", t.Big, " ", t.Mean, " ", t.Even, " ", t.Last.Format(time.RFC3339), " ", t.Parts, " ", *t.Newest, " ",
		string(t.Bytes), " ", t.Pair, " ", t.By, "; ", texts, " ", halfs, " ", f.Most.Get(), " ", f.Sum.Get(), " ", names)
}

// oldLedger commits what was written, in one piece for each checkpoint.
type oldLedger struct{ n *notes }

type oldLedgerWriter struct{ lines []string }

func (w *oldLedgerWriter) Write(v string, _ time.Time) error {
	w.lines = append(w.lines, v)
	return nil
}
func (w *oldLedgerWriter) Flush(bool) error { return nil }
func (w *oldLedgerWriter) Close() error     { return nil }

func (s *oldLedger) Writer(WriterContext) (Writer[string], error) { return &oldLedgerWriter{}, nil }
func (s *oldLedger) Restore(_ Writer[string], states [][]byte) error {
	for _, b := range states {
		if string(b) != "a writer's own state" {
			return fmt.Errorf("a writer's state is %q", b)
		}
	}
	return nil
}
func (s *oldLedger) Prepare(w Writer[string], _ int64) ([]string, []byte, error) {
	lw := w.(*oldLedgerWriter)
	lines := strings.Join(lw.lines, "\n")
	if lw.lines = nil; lines == "" {
		return nil, []byte("a writer's own state"), nil
	}
	return []string{lines}, []byte("a writer's own state"), nil
}
func (s *oldLedger) Commit(_ context.Context, cs []*Commit[string]) error {
	for _, c := range cs {
		for line := range strings.Lines(c.Value) {
			s.n.add("%s", strings.TrimSuffix(line, "\n"))
		}
	}
	return nil
}
func (s *oldLedger) Abort(context.Context, []string) error { return nil }

type oldHook struct{ restored string }

func (h *oldHook) ID() string { return "old hook" }
func (h *oldHook) Trigger(_ context.Context, id int64, _ time.Time) ([]byte, error) {
	return fmt.Append(nil, "position ", id), nil
}
func (h *oldHook) Restore(_ context.Context, _ int64, state []byte) error {
	h.restored = string(state)
	return nil
}

// oldSnapshots are how each directory was made, at parallelism 2. Version 1 was written before there were records in flight.
var oldSnapshots = []struct {
	dir       string
	version   int
	unaligned bool
	take      func(r *running) (path string, err error)
}{
	{"v1-checkpoint", 1, false, oldCheckpoint},
	{"v1-savepoint", 1, false, oldSavepoint(checkpoint.Savepoint, checkpoint.Native)},
	{"v2-checkpoint", 2, false, oldCheckpoint},
	{"v2-unaligned", 2, true, oldCheckpoint},
	{"v2-savepoint-native", 2, false, oldSavepoint(checkpoint.Savepoint, checkpoint.Native)},
	{"v2-savepoint-canonical", 2, false, oldSavepoint(checkpoint.Savepoint, checkpoint.Canonical)},
	{"v3-checkpoint", 3, false, oldCheckpoint}, // with files in shared/
	{"v3-savepoint-native", 3, false, oldSavepoint(checkpoint.Savepoint, checkpoint.Native)},
}

func oldCheckpoint(r *running) (string, error) {
	a, err := r.handle.TriggerCheckpoint(r.Context(), false)
	return a.Location, err
}

func oldSavepoint(kind checkpoint.Kind, format checkpoint.Format) func(r *running) (string, error) {
	return func(r *running) (string, error) {
		a, err := r.handle.TriggerSavepoint(r.Context(), jobmaster.Savepoint{Kind: kind, Format: format})
		return a.Location, err
	}
}

// TestOldSnapshots of every version are restored, at the same parallelism and at others, from another place: all that the job would have told is
// told, once.
func TestOldSnapshots(t *testing.T) {
	for _, s := range oldSnapshots {
		dir := filepath.Join("testdata", "compat", s.dir)
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) && *update {
			inLab(t, func(l *lab) { l.makeOld(dir, s.unaligned, s.take) })
		}
		for _, p := range []int{2, 1, 3} {
			t.Run(fmt.Sprint(s.dir, " at ", p), func(t *testing.T) {
				inLab(t, func(l *lab) { l.restoreOld(dir, p) })
			})
		}
	}
}

// makeOld takes a snapshot of the job and writes it to a directory.
func (l *lab) makeOld(dir string, unaligned bool, take func(r *running) (string, error)) {
	j := newOldJob(oldHalf)
	env := j.build(l.env(2)).Set("execution.checkpointing.data-inline-threshold", "64 b")
	env.Checkpoints().Unaligned = unaligned
	r := l.start(env)
	r.pass(40 * time.Millisecond)
	path, err := take(r)
	if err == nil {
		err = saveOld(l.disk, path, dir)
	}
	if r.kill(); err != nil {
		l.Fatal(err)
	}
}

// saveOld copies a directory of files to the disk.
func saveOld(from storage.FS, path, to string) error {
	entries, err := from.List(path)
	if err == nil {
		err = os.MkdirAll(to, 0o755)
	}
	for _, e := range entries {
		if err != nil {
			return err
		}
		var b []byte
		if b, err = oldFile(from, path+"/"+e.Name); err == nil {
			err = os.WriteFile(filepath.Join(to, e.Name), b, 0o644)
		}
	}
	for _, shared := range oldShared(to) {
		if err != nil {
			return err
		}
		var b []byte
		if b, err = oldFile(from, shared); err == nil {
			err = errors.Join(os.MkdirAll(filepath.Join(to, "shared"), 0o755), os.WriteFile(filepath.Join(to, "shared", filepath.Base(shared)), b, 0o644))
		}
	}
	return err
}

// oldShared are the files that a snapshot on the disk names absolutely; with it they lie in its directory shared.
func oldShared(dir string) (all []string) {
	b, _ := os.ReadFile(filepath.Join(dir, "_metadata"))
	m, err := snapshot.Decode(b)
	if err != nil {
		return nil // the restore tells
	}
	_ = m.Handles(func(_ snapshot.Owner, h *snapshot.Handle) error { // which never fails
		if filepath.IsAbs(h.File) {
			all = append(all, h.File)
		}
		return nil
	})
	return all
}

func oldFile(from storage.FS, path string) ([]byte, error) {
	r, err := from.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	return b, cmp.Or(err, r.Close())
}

// loadOld copies a directory of files from the disk.
func loadOld(from string, to storage.FS, path string) error {
	entries, err := os.ReadDir(from)
	if err == nil {
		err = to.Mkdir(path)
	}
	files := map[string]string{} // by where they go
	for _, e := range entries {
		if !e.IsDir() {
			files[path+"/"+e.Name()] = filepath.Join(from, e.Name())
		}
	}
	for _, shared := range oldShared(from) {
		files[shared] = filepath.Join(from, "shared", filepath.Base(shared))
		err = errors.Join(err, storage.MkdirAll(to, filepath.Dir(shared)))
	}
	for name, file := range files {
		b, readErr := os.ReadFile(file)
		if err = errors.Join(err, readErr); err == nil {
			err = writeOld(to, name, b)
		}
	}
	return err
}

func writeOld(to storage.FS, path string, b []byte) error {
	f, err := to.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// restoreOld goes on from a snapshot to the end of the job.
func (l *lab) restoreOld(dir string, parallelism int) {
	if err := loadOld(dir, l.disk, "/moved"); err != nil {
		l.Fatal(err)
	}
	j := newOldJob(oldAll)
	r := l.start(j.build(l.resumed(parallelism, "/moved")))
	r.pass(time.Hour) // the clock's timers ring
	j.source.end()
	r.finish()
	if j.hook.restored != "position 1" {
		l.Errorf("the hook was restored with %q", j.hook.restored)
	}
	expect(l, j.out.takeSorted(), oldOutput()...)
}

// oldOutput is all that the job tells.
func oldOutput() (all []string) {
	for v := range oldAll {
		all = append(all, fmt.Sprint("record ", v), fmt.Sprint("timer ", v+50), fmt.Sprint("mine ", v), fmt.Sprint("all ", v))
	}
	for k := range int64(oldKeys) {
		all = append(all, fmt.Sprintf("key %d rings", k), oldTotals(k))
	}
	slices.Sort(all)
	return all
}

// oldTotals is the line of a key that has had all its records.
func oldTotals(key int64) string {
	var count, sum, most, texts, halfs int64
	var parts []int32
	by := map[string]int64{}
	byHalf := map[int64]int64{}
	for v := key; v < oldAll; v += oldKeys {
		count, sum, most = count+1, sum+v, v
		parts = append(parts, int32(v))
		by[[]string{"even", "odd"}[v%2]] += v
		texts += int64(len(fmt.Sprint(v)))
		byHalf[v/2] = v
	}
	for _, v := range byHalf {
		halfs += v
	}
	name := fmt.Sprint("key ", key)
	return fmt.Sprint(name, ": ", count, " ", int8(count), " ", uint64(count)<<60+1, " ", float64(count)/2, " ", count%2 == 0, " ",
		time.Unix(most, 0).UTC().Format(time.RFC3339), " ", parts, " ", most, " ", name, " ", [2]uint8{1, uint8(count)}, " ", by, "; ",
		texts, " ", halfs, " ", most, " ", sum, " ", 6)
}
