package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/storage"
)

const out = "/data/out"

func newSink(fsys storage.FS, options ...SinkOption) *sink[string] {
	k := &sink[string]{fs: fsys, dir: out, format: AppendLine, options: sinkOptions{prefix: "part"}}
	for _, set := range options {
		set(&k.options)
	}
	return k
}

// stored is what a checkpoint of a test's job holds.
type stored struct {
	id       int64
	position int // records read
	states   [][]byte
	pending  []pending
}

// job is a source of numbered records before a sink, with the engine in little: it restores, writes, prepares all writers,
// stores the checkpoint, commits, and fails with the first error.
type job struct {
	sink        *sink[string]
	records     int
	every       int            // records between checkpoints
	lost        map[int64]bool // checkpoints of which no writer hears that they completed
	commitFirst bool           // what was pending is committed before the writers are restored
	latest      stored
}

func (j *job) run(parallelism int) (err error) {
	writers := make([]weir.Writer[string], parallelism)
	defer func() {
		for _, w := range writers {
			if w != nil {
				w.Close()
			}
		}
	}()
	if j.commitFirst {
		err = j.commit()
	}
	for i := 0; i < parallelism && err == nil; i++ {
		writers[i], err = j.open(i, parallelism)
	}
	if err == nil && !j.commitFirst {
		err = j.commit()
	}
	for at := j.latest.position; at < j.records && err == nil; at++ {
		if err = writers[at%parallelism].Write(fmt.Sprint("record ", at), time.Time{}); err != nil {
			break
		}
		if (at+1)%j.every == 0 || at+1 == j.records {
			err = j.checkpoint(writers, at+1)
		}
	}
	return err
}

func (j *job) open(subtask, of int) (weir.Writer[string], error) {
	w, err := j.sink.Writer(&fakeTask{index: subtask, of: of})
	if err != nil || j.latest.id == 0 {
		return w, err
	}
	var mine [][]byte
	for i, s := range j.latest.states {
		if i%of == subtask {
			mine = append(mine, s)
		}
	}
	return w, j.sink.Restore(w, mine)
}

func (j *job) checkpoint(writers []weir.Writer[string], position int) error {
	next := stored{id: j.latest.id + 1, position: position, pending: slices.Clone(j.latest.pending)}
	for _, w := range writers {
		parts, state, err := j.sink.Prepare(w, next.id)
		if err != nil {
			return err
		}
		next.pending = append(next.pending, parts...)
		next.states = append(next.states, state)
	}
	j.latest = next
	if j.lost[next.id] {
		return nil
	}
	return j.commit()
}

// commit publishes what is pending. The checkpoint goes on to hold it, as a real one does.
func (j *job) commit() error {
	return publish(j.sink, j.latest.pending...)
}

// publish is one error for all parts.
func publish(k *sink[string], parts ...pending) error {
	return errors.Join(k.publisher().publish(context.Background(), parts)...)
}

// published is what a reader of the directory sees: name -> content.
func published(t testing.TB, fsys storage.FS) (seen, hidden map[string]string) {
	t.Helper()
	seen, hidden = map[string]string{}, map[string]string{}
	entries, err := fsys.List(out)
	if err != nil {
		return seen, hidden
	}
	for _, e := range entries {
		file, err := fsys.Open(out + "/" + e.Name)
		content, err2 := io.ReadAll(io.NewSectionReader(must(t, file, err), 0, 1<<20))
		if err2 != nil {
			t.Fatal(err2)
		}
		if unfinished(e.Name) {
			hidden[e.Name] = string(content)
		} else {
			seen[e.Name] = string(content)
		}
	}
	return seen, hidden
}

// records counts the records in files, by their numbers.
func records(t testing.TB, files map[string]string) map[int]int {
	t.Helper()
	counts := map[int]int{}
	for name, content := range files {
		for _, line := range lines(content) {
			var n int
			if _, err := fmt.Sscanf(line, "record %d", &n); err != nil || fmt.Sprint("record ", n) != line {
				t.Fatalf("%s has the line %q", name, line)
			}
			counts[n]++
		}
	}
	return counts
}

func newJob(options ...SinkOption) *job {
	return &job{sink: newSink(nil, options...), records: 13, every: 4, lost: map[int64]bool{2: true}}
}

var errDead = errors.New("dead")

// life runs a job that dies before operation number op of its file system, and then another to its end. die gives the file
// system on which the second finds itself. It reports whether the first did die.
func life(t *testing.T, op int, first, second int, commitFirst bool, die func(*storage.MemFS) *storage.MemFS, options ...SinkOption) bool {
	t.Helper()
	disk := storage.Memory()
	var after *storage.MemFS
	j := newJob(options...)
	j.sink.fs = storage.Faulty(disk, &storage.Rule{Skip: op, Err: errDead, Hook: func(storage.Op, string) {
		if after == nil {
			after = die(disk)
		}
	}})
	err := j.run(first)
	if after == nil {
		if err != nil {
			t.Fatal(err)
		}
		return false
	}
	seen, _ := published(t, after)
	for n, count := range records(t, seen) {
		if n >= j.latest.position || count > 1 {
			t.Fatalf("op %d: record %d is seen %d times; the checkpoint has %d records", op, n, count, j.latest.position)
		}
	}
	j.sink.fs, j.commitFirst = after, commitFirst
	if err := j.run(second); err != nil {
		t.Fatalf("op %d: the second job: %v", op, err)
	}
	checkDone(t, op, j, after, seen)
	return true
}

// checkDone checks what is in the directory at the end.
func checkDone(t *testing.T, op int, j *job, disk storage.FS, before map[string]string) {
	t.Helper()
	seen, hidden := published(t, disk)
	for name, content := range before {
		if seen[name] != content {
			t.Fatalf("op %d: %s changed from %q to %q", op, name, content, seen[name])
		}
	}
	counts := records(t, seen)
	for n := range j.records {
		if counts[n] != 1 {
			t.Fatalf("op %d: record %d is seen %d times", op, n, counts[n])
		}
	}
	for _, state := range j.latest.states {
		l := must2(decodeLineage(state))(t)
		for name := range hidden {
			if strings.Contains(name, l.Run) {
				t.Fatalf("op %d: %s is left", op, name)
			}
		}
	}
}

func must2[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T { return must(t, v, err) }
}

// The machine loses its power before each single operation on its disk, and what was not synced survives or does not.
func TestPowerCut(t *testing.T) {
	for seed := range uint64(6) {
		die := func(disk *storage.MemFS) *storage.MemFS {
			if seed == 0 {
				return disk.CrashClone(nil)
			}
			return disk.CrashClone(rand.New(rand.NewPCG(seed, 1)))
		}
		everyOp(t, die, RollRecords(int64(seed%3)))
	}
}

// The process dies before each single operation, and the disk lives on.
func TestKilled(t *testing.T) {
	everyOp(t, func(disk *storage.MemFS) *storage.MemFS { return disk }, Suffix(".txt"))
}

func everyOp(t *testing.T, die func(*storage.MemFS) *storage.MemFS, options ...SinkOption) {
	t.Helper()
	for first := 1; first <= 3; first++ {
		op := 0
		for life(t, op, first, 1+op%3, op%2 == 0, die, options...) {
			op++
		}
		if op < 40 {
			t.Fatalf("only %d operations", op)
		}
	}
}

// Jobs that die again and again, at any operation, also while they recover.
func TestManyDeaths(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		disk := storage.Memory()
		j := newJob(RollBytes(rng.Int64N(30)))
		for {
			after := disk
			op := rng.IntN(400)
			j.commitFirst = rng.IntN(2) == 0
			j.sink.fs = storage.Faulty(disk, &storage.Rule{Skip: op, Err: errDead, Hook: func(storage.Op, string) {
				if after == disk && rng.IntN(2) == 0 {
					after = disk.CrashClone(rng)
				}
			}})
			err := j.run(1 + rng.IntN(3))
			disk = after
			if err == nil {
				break
			}
			if !errors.Is(err, errDead) {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		checkDone(t, int(seed), j, disk, nil)
	}
}

// A disk that is full, or broken, at each kind of operation: an error that names the file, a restart, and nothing is lost.
func TestFullDisk(t *testing.T) {
	for _, op := range []storage.Op{storage.OpCreate, storage.OpWrite, storage.OpSync, storage.OpClose, storage.OpSyncDir, storage.OpLink, storage.OpRemove} {
		for skip := range 4 {
			disk := storage.Memory()
			rule := &storage.Rule{Op: op, Path: "*part-*", Skip: skip, Count: 1, Err: syscall.ENOSPC}
			if op == storage.OpSyncDir {
				rule.Path = "out"
				rule.Skip++ // not the one that makes the directory
			}
			j := newJob()
			j.sink.fs = storage.Faulty(disk, rule)
			err := j.run(2)
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), out) {
				t.Errorf("%s %d: %v", op, skip, err)
			}
			if err := j.run(2); err != nil {
				t.Errorf("%s %d: after the restart: %v", op, skip, err)
			}
			checkDone(t, skip, j, disk, nil)
		}
	}
}

// A write that takes less than it was given, and says nothing, is an error too.
func TestShortWrite(t *testing.T) {
	j := newJob()
	j.sink.fs = storage.Faulty(storage.Memory(), &storage.Rule{Op: storage.OpWrite, Short: 5})
	if err := j.run(1); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
}

// A writer that failed stays failed: a later checkpoint must not take what may be damaged.
func TestFailedWriter(t *testing.T) {
	k := newSink(storage.Faulty(storage.Memory(), &storage.Rule{Op: storage.OpSync, Count: 1, Err: syscall.EIO}))
	w := openWriter(t, k, nil)
	w.Write("record 0", time.Time{})
	for range 2 {
		if _, _, err := k.Prepare(w, 1); !errors.Is(err, syscall.EIO) {
			t.Error(err)
		}
	}
	if err := w.Write("record 1", time.Time{}); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	w.Close()
	if seen, hidden := published(t, k.fs); len(seen)+len(hidden) > 0 {
		t.Errorf("left: %v %v", seen, hidden)
	}
}

// openWriter makes a writer; states nil: a fresh start.
func openWriter(t testing.TB, k *sink[string], states [][]byte) weir.Writer[string] {
	t.Helper()
	w, err := k.Writer(&fakeTask{of: 1})
	if err == nil && states != nil {
		err = k.Restore(w, states)
	}
	return must(t, w, err)
}

// sealedPart writes records and prepares them.
func sealedPart(t testing.TB, k *sink[string], w weir.Writer[string], values ...string) (pending, []byte) {
	t.Helper()
	for _, v := range values {
		if err := w.Write(v, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	parts, state, err := k.Prepare(w, 7)
	if err != nil || len(parts) != 1 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	return parts[0], state
}

func TestNothingWritten(t *testing.T) {
	k := newSink(storage.Memory())
	w := openWriter(t, k, nil)
	parts, state, err := k.Prepare(w, 1)
	if err != nil || len(parts) != 0 || state == nil {
		t.Errorf("%d parts, state %s, %v", len(parts), state, err)
	}
	if seen, hidden := published(t, k.fs); len(seen)+len(hidden) > 0 {
		t.Errorf("made %v %v", seen, hidden)
	}
	openWriter(t, k, [][]byte{state})
}

func TestRolls(t *testing.T) {
	for name, c := range map[string]struct {
		option SinkOption
		want   []int64
	}{
		"records": {RollRecords(2), []int64{2, 2, 1}},
		"bytes":   {RollBytes(20), []int64{4, 1}},
		"one":     {RollBytes(1), []int64{1, 1, 1, 1, 1}},
		"never":   {RollBytes(1000), []int64{5}},
	} {
		k := newSink(storage.Memory(), c.option)
		w := openWriter(t, k, nil)
		for i := range 5 {
			w.Write(fmt.Sprint("line", i), time.Time{}) // 6 bytes with its end, so 4 make 24
		}
		parts, _, err := k.Prepare(w, 1)
		var got []int64
		for _, p := range parts {
			got = append(got, p.Records)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: parts of %v records, want %v, %v", name, got, c.want, err)
		}
	}
}

// Commits come late, again, out of order, and after restores; the files come once.
func TestCommitIsIdempotent(t *testing.T) {
	k := newSink(storage.Memory(), Suffix(".txt"))
	w := openWriter(t, k, nil)
	a, _ := sealedPart(t, k, w, "a")
	b, state := sealedPart(t, k, w, "b")
	if seen, _ := published(t, k.fs); len(seen) > 0 {
		t.Errorf("seen before the commit: %v", seen)
	}
	for _, parts := range [][]pending{{b}, {a, b}, {b, a, a}, {a}} {
		if err := publish(k, parts...); err != nil {
			t.Error(err)
		}
		openWriter(t, k, [][]byte{state})
	}
	seen, hidden := published(t, k.fs)
	if got := slices.Sorted(maps.Values(seen)); !slices.Equal(got, []string{"a\n", "b\n"}) || len(hidden) > 0 {
		t.Errorf("seen %v, hidden %v", seen, hidden)
	}
	for name := range seen {
		if !strings.HasPrefix(name, "part-") || !strings.HasSuffix(name, ".txt") {
			t.Errorf("name %s", name)
		}
	}
}

// One part that cannot be published does not keep the others back.
func TestCommitGoesOn(t *testing.T) {
	disk := storage.Faulty(storage.Memory())
	k := newSink(disk)
	w := openWriter(t, k, nil)
	a, _ := sealedPart(t, k, w, "a")
	b, _ := sealedPart(t, k, w, "b")
	c, _ := sealedPart(t, k, w, "c")
	disk.SetRules(&storage.Rule{Op: storage.OpLink, Path: b.Name, Count: 1, Err: syscall.EIO})
	errs := k.publisher().publish(context.Background(), []pending{a, b, c})
	if errs[0] != nil || !errors.Is(errs[1], syscall.EIO) || errors.Is(errs[1], ErrLost) || errs[2] != nil {
		t.Errorf("%v", errs)
	}
	if seen, _ := published(t, disk); len(seen) != 2 {
		t.Errorf("seen %v", seen)
	}
	if err := publish(k, b); err != nil {
		t.Error(err)
	}
	if seen, hidden := published(t, disk); len(seen) != 3 || len(hidden) > 0 {
		t.Errorf("seen %v, hidden %v", seen, hidden)
	}
}

// What may pass is tried again some times, and then shown; a canceled job does not try.
func TestCommitRetries(t *testing.T) {
	k := newSink(storage.Faulty(storage.Memory(), &storage.Rule{Op: storage.OpLink, Err: syscall.EIO}))
	a, _ := sealedPart(t, k, openWriter(t, k, nil), "a")
	for attempt := 1; attempt <= commitAttempts; attempt++ {
		err := k.Commit(context.Background(), []*weir.Commit[pending]{{Value: a, Attempt: attempt}})
		if shown := errors.Is(err, syscall.EIO) && strings.Contains(err.Error(), "publishing "+a.path()+" of checkpoint 7"); shown != (attempt == commitAttempts) {
			t.Errorf("attempt %d: %v", attempt, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := k.Commit(ctx, []*weir.Commit[pending]{{Value: a, Attempt: 1}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Every way in which what was to be published is not there.
func TestLost(t *testing.T) {
	put := func(fsys storage.FS, path, content string) {
		fsys.Remove(path)
		f, _ := fsys.Create(path)
		f.Write([]byte(content))
	}
	for name, c := range map[string]struct {
		break_  func(storage.FS, *pending)
		want    string
		ignored bool // by IgnoreMissing
	}{
		"both missing": {func(fsys storage.FS, p *pending) { fsys.Remove(p.hidden()) },
			"data lost: neither /data/out/NAME nor the pending .NAME.inprogress is there, and checkpoint 7 had written 2 records (6 bytes)", true},
		"other content": {func(fsys storage.FS, p *pending) { put(fsys, p.path(), "xy\nzz\n") },
			"data lost: /data/out/NAME is there with other content (6 bytes, CRC-32C ", false},
		"other length, no pending": {func(fsys storage.FS, p *pending) { fsys.Remove(p.hidden()); put(fsys, p.path(), "xy") },
			"data lost: /data/out/NAME is there with other content (2 bytes, CRC-32C ", false},
		"pending cut short": {func(fsys storage.FS, p *pending) { put(fsys, p.hidden(), "ab") },
			"data lost: the pending file /data/out/.NAME.inprogress has 2 bytes, and checkpoint 7 had written 6 into it (2 records)", false},
	} {
		for _, ignore := range []bool{false, true} {
			k := newSink(storage.Memory())
			k.options.ignoreMissing = ignore
			p, _ := sealedPart(t, k, openWriter(t, k, nil), "ab", "cd")
			c.break_(k.fs, &p)
			before, _ := published(t, k.fs)
			err := publish(k, p)
			if ignore && c.ignored {
				if err != nil {
					t.Errorf("%s, ignored: %v", name, err)
				}
			} else if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), strings.ReplaceAll(c.want, "NAME", p.Name)) {
				t.Errorf("%s: %v", name, err)
			}
			if after, _ := published(t, k.fs); !maps.Equal(before, after) {
				t.Errorf("%s: %v became %v", name, before, after)
			}
		}
	}
}

// File systems without hard links.
func TestWithoutLinks(t *testing.T) {
	for _, refusal := range []error{syscall.ENOTSUP, syscall.EPERM} {
		k := newSink(storage.Faulty(storage.Memory(), &storage.Rule{Op: storage.OpLink, Err: refusal}))
		w := openWriter(t, k, nil)
		p, _ := sealedPart(t, k, w, "a")
		for range 2 {
			if err := publish(k, p); err != nil {
				t.Error(err)
			}
		}
		q, _ := sealedPart(t, k, w, "b")
		f, _ := k.fs.Create(q.path())
		f.Write([]byte("mine"))
		if err := publish(k, q); !errors.Is(err, ErrLost) {
			t.Error(err)
		}
		if seen, _ := published(t, k.fs); seen[p.Name] != "a\n" || seen[q.Name] != "mine" {
			t.Errorf("seen %v", seen)
		}
	}
}

// Two jobs from one checkpoint, one after the other: the second continues behind the names of the first, and replaces none.
func TestRestoredTwice(t *testing.T) {
	k := newSink(storage.Memory())
	w := openWriter(t, k, nil)
	a, state := sealedPart(t, k, w, "a")
	for i := range 3 {
		w := openWriter(t, k, [][]byte{state})
		b, _ := sealedPart(t, k, w, fmt.Sprint("b", i))
		if err := publish(k, a, b); err != nil {
			t.Error(err)
		}
	}
	seen, _ := published(t, k.fs)
	if got := slices.Sorted(maps.Values(seen)); !slices.Equal(got, []string{"a\n", "b0\n", "b1\n", "b2\n"}) {
		t.Errorf("seen %v", seen)
	}
}

// A restore clears up behind its own dead writers, at another parallelism too, and behind nobody else.
func TestSweep(t *testing.T) {
	k := newSink(storage.Memory())
	w1, w2, other := openWriter(t, k, nil), openWriter(t, k, nil), openWriter(t, k, nil)
	a, s1 := sealedPart(t, k, w1, "a")
	b, s2 := sealedPart(t, k, w2, "b")
	sealedPart(t, k, w1, "dead")
	sealedPart(t, k, w2, "dead")
	w2.Write("dead, in progress", time.Time{})
	w2.Flush(false)
	c, _ := sealedPart(t, k, other, "c")
	foreign := out + "/.part-x-0-9.inprogress"
	k.fs.Create(foreign)
	w := openWriter(t, k, [][]byte{s1, s2})
	_, hidden := published(t, k.fs)
	want := []string{".part-x-0-9.inprogress", hiddenName(a.Name), hiddenName(b.Name), hiddenName(c.Name)}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(hidden)); !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
	d, _ := sealedPart(t, k, w, "d")
	if run := strings.Split(a.Name, "-")[1]; !strings.Contains(d.Name, run) {
		t.Errorf("%s does not go on from %s", d.Name, a.Name)
	}
	if err := k.Abort(context.Background(), []pending{a, d, d}); err != nil {
		t.Error(err)
	}
	if _, hidden := published(t, k.fs); len(hidden) != 3 {
		t.Errorf("after the abort: %v", hidden)
	}
}

// A writer that was thought dead wakes up, and clears up: behind itself only.
func TestLateClose(t *testing.T) {
	k := newSink(storage.Memory())
	late := openWriter(t, k, nil)
	_, state := sealedPart(t, k, late, "a")
	late.Write("dead", time.Time{})
	late.Flush(false)
	w := openWriter(t, k, [][]byte{state})
	b, _ := sealedPart(t, k, w, "b")
	late.Close()
	if err := publish(k, b); err != nil {
		t.Error(err)
	}
}

// Names that are taken, by files that came after the writer was restored, are passed over.
func TestTakenNames(t *testing.T) {
	k := newSink(storage.Memory())
	w := openWriter(t, k, nil)
	a, _ := sealedPart(t, k, w, "a")
	stem := strings.TrimSuffix(a.Name, "0")
	k.fs.Create(out + "/" + stem + "1")
	k.fs.Create(out + "/" + hiddenName(stem+"2"))
	if b, _ := sealedPart(t, k, w, "b"); b.Name != stem+"3" {
		t.Errorf("%s follows %s", b.Name, a.Name)
	}
}

// A commit came to link a part and no further, and the restore clears up before it is committed again. Whatever of the link
// and the removal a power cut then leaves, the part has a name.
func TestSweepOfHalfCommitted(t *testing.T) {
	for seed := range uint64(20) {
		disk := storage.Memory()
		k := newSink(disk)
		a, state := sealedPart(t, k, openWriter(t, k, nil), "a")
		if err := disk.Link(a.hidden(), a.path()); err != nil {
			t.Fatal(err)
		}
		k.fs = storage.Faulty(disk, &storage.Rule{Op: storage.OpSyncDir, Path: "out", Skip: int(seed % 2), Err: errDead})
		w, err := k.Writer(&fakeTask{of: 1})
		k.Restore(must(t, w, err), [][]byte{state})
		if _, hidden := published(t, disk); seed%2 == 1 && len(hidden) > 0 {
			t.Errorf("left %v", hidden)
		}
		k.fs = disk.CrashClone(rand.New(rand.NewPCG(seed, 3)))
		if err := publish(k, a); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

func TestBadDirectory(t *testing.T) {
	k := newSink(storage.Faulty(storage.Memory(), &storage.Rule{Op: storage.OpCreate, Err: syscall.EACCES}))
	_, err := k.Writer(&fakeTask{of: 1})
	if !errors.Is(err, syscall.EACCES) || !strings.Contains(err.Error(), "cannot write to the directory /data/out") ||
		!strings.Contains(err.Error(), "permit it to the user that runs the job") {
		t.Error(err)
	}
	for _, o := range []SinkOption{Prefix(""), Prefix(".x"), Prefix("a/b"), Suffix("/"), RollBytes(-1), RollRecords(-1)} {
		if _, err := newSink(storage.Memory(), o).Writer(&fakeTask{of: 1}); err == nil {
			t.Error("a bad option is taken")
		}
	}
}

// The state of version 1, which later versions must go on to read.
func TestLineageFormat(t *testing.T) {
	const golden = `{"version":1,"dir":"/data/out","run":"00ff12ab34cd","next":7}`
	l := must2(decodeLineage([]byte(golden)))(t)
	if state := must2(l.encode())(t); string(state) != golden || l.Next != 7 {
		t.Errorf("state %s", state)
	}
}

func TestBadState(t *testing.T) {
	k := newSink(storage.Memory())
	w := openWriter(t, k, nil)
	for _, state := range []string{"", "{}", `{"version":2}`, `{"version":1,"run":"","next":1}`, `{"version":1,"run":"../x","next":1}`, `{"version":1,"run":"ab","next":-1}`} {
		if k.Restore(w, [][]byte{[]byte(state)}) == nil {
			t.Errorf("%s is a state", state)
		}
	}
}

func TestPendingIsEncodable(t *testing.T) {
	if _, err := codec.For[pending](); err != nil {
		t.Error(err)
	}
}

// On the machine's own disk.
func TestSinkOnDisk(t *testing.T) {
	k := newSink(storage.Disk())
	k.dir = t.TempDir() + "/a/b"
	w := openWriter(t, k, nil)
	p, state := sealedPart(t, k, w, "a", "b")
	openWriter(t, k, [][]byte{state})
	for range 2 {
		if err := publish(k, p); err != nil {
			t.Error(err)
		}
	}
	if got := readAll(t, Lines(k.dir)); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("read back %q", got)
	}
}

func BenchmarkWrite(b *testing.B) {
	k := newSink(storage.Disk())
	k.dir = b.TempDir()
	w := openWriter(b, k, nil)
	defer w.Close()
	line := strings.Repeat("x", 79)
	b.SetBytes(80)
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Write(line, time.Time{}); err != nil {
			b.Fatal(err)
		}
	}
}
