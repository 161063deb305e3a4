package storage

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

const testJob = base.JobID("0123456789abcdef0123456789abcdef")

func openJob(t testing.TB, fsys FS, dir string) *JobDir {
	t.Helper()
	d, err := OpenJobDir(fsys, dir, testJob)
	must(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// fileBody and inlineBody are the state of checkpoint id, one large enough for a file.
func fileBody(id base.CheckpointID) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "state of %d ", id), 100)
}
func inlineBody(id base.CheckpointID) []byte { return fmt.Appendf(nil, "small state of %d", id) }

// smallFiles keeps tests fast.
var smallFiles = WriterOptions{InlineMax: 100}

// writeState is metadata with one state in a file and one inline, both written.
func writeState(w Writer, id base.CheckpointID, kind snapshot.Kind, run int64) (*snapshot.Metadata, error) {
	file, err1 := writeObject(w, "op/0 keyed", fileBody(id))
	inline, err2 := writeObject(w, "op/1 keyed", inlineBody(id))
	return &snapshot.Metadata{
		ID: id, Job: testJob, Kind: kind, Format: snapshot.Native, Run: run,
		Operators: []snapshot.Operator{{UID: "op", Name: "op", Parallelism: 2, Subtasks: []snapshot.Subtask{
			{Index: 0, Watermark: base.NoTime, PendingWatermark: base.NoTime, Keyed: []snapshot.KeyedHandle{{Range: base.RangeOf(0, 2), Handle: file}}},
			{Index: 1, Watermark: base.NoTime, PendingWatermark: base.NoTime, Keyed: []snapshot.KeyedHandle{{Range: base.RangeOf(1, 2), Handle: inline}}},
		}}},
	}, errors.Join(err1, err2)
}

func writeObject(w Writer, name string, body []byte) (snapshot.Handle, error) {
	o, err := w.Create(name)
	if err != nil {
		return snapshot.Handle{}, err
	}
	_, err = o.Write(body)
	h, commitErr := o.Commit()
	return h, errors.Join(err, commitErr)
}

// take takes a whole checkpoint.
func take(c Checkpoints, id base.CheckpointID, kind snapshot.Kind, target string) (location string, err error) {
	if location, err = c.CreateLocation(id, kind, target); err != nil {
		return "", err
	}
	m, err := writeState(c.Writer(location, smallFiles), id, kind, c.Run())
	if err != nil {
		return location, err
	}
	if _, err = c.Publish(location, m); err == nil && kind.IsSynchronous() {
		err = c.PointSavepoint(id, location)
	}
	return location, err
}

func mustTake(t testing.TB, c Checkpoints, id base.CheckpointID, kind snapshot.Kind, target string) string {
	t.Helper()
	location, err := take(c, id, kind, target)
	must(t, err)
	return location
}

// verify reads all state of a checkpoint.
func verify(open func(string, snapshot.Handle) (Reader, error), m *snapshot.Metadata, location string) error {
	for i, want := range [][]byte{fileBody(m.ID), inlineBody(m.ID)} {
		r, err := open(location, m.Operators[0].Subtasks[i].Keyed[0].Handle)
		if err != nil {
			return err
		}
		got, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("state %d of checkpoint %d is not what was written", i, m.ID)
		}
	}
	return nil
}

func mustLatest(t testing.TB, c Checkpoints, want base.CheckpointID) {
	t.Helper()
	m, location, err := c.Latest()
	must(t, err)
	if m.ID != want {
		t.Errorf("the latest is checkpoint %d, want %d", m.ID, want)
	}
	must(t, verify(c.Open, m, location))
}

func ids(all []Completed) (ids []base.CheckpointID) {
	for _, c := range all {
		ids = append(ids, c.Metadata.ID)
	}
	return ids
}

// TestCheckpoints is what every Checkpoints has to do.
func TestCheckpoints(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, dir string) {
		t.Run("directory", func(t *testing.T) { testCheckpoints(t, openJob(t, fsys, path.Join(dir, "ckpt")), dir) })
		t.Run("memory", func(t *testing.T) { testCheckpoints(t, OpenJobMemory(fsys, testJob, 0), dir) })
	})
}

func testCheckpoints(t *testing.T, c Checkpoints, dir string) {
	if !c.Fresh() || c.Run() != 1 || c.LargestID() != 0 {
		t.Errorf("fresh %v, run %d, largest id %d", c.Fresh(), c.Run(), c.LargestID())
	}
	_, _, err := c.Latest()
	isErr(t, "the latest of none", err, ErrNone)
	first := mustTake(t, c, 1, snapshot.Checkpoint, "")
	second := mustTake(t, c, 2, snapshot.Checkpoint, "")
	mustLatest(t, c, 2)
	_, err = c.CreateLocation(2, snapshot.Checkpoint, "")
	if err == nil || !strings.Contains(err.Error(), "id 2 was used before: the largest one is 2") {
		t.Errorf("an id is used twice: %v", err)
	}
	// A plain savepoint is no point of recovery (B058), and its deletion harms nobody (B061).
	plain := mustTake(t, c, 3, snapshot.Savepoint, path.Join(dir, "sp"))
	mustLatest(t, c, 2)
	must(t, c.Discard(plain))
	must(t, c.Discard(plain))
	mustLatest(t, c, 2)
	// The one that the job stopped with is.
	terminal := mustTake(t, c, 5, snapshot.Suspend, path.Join(dir, "sp"))
	mustLatest(t, c, 5)
	must(t, c.Discard(first))
	must(t, c.Discard(first))
	all, err := c.Completed()
	must(t, err)
	if got := ids(all); !slices.Equal(got, []base.CheckpointID{2, 5}) || all[0].Location != second || all[1].Location != terminal {
		t.Errorf("completed are %v", got)
	}
	must(t, c.Discard(terminal))
	mustLatest(t, c, 2)
	must(t, c.SetEndState("FINISHED"))
	if state, run := c.EndState(); state != "FINISHED" || run != 1 {
		t.Errorf("it ended %s in run %d", state, run)
	}
	must(t, c.Close())
}

func TestNextRunKnowsTheLast(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, dir string) {
		d := openJob(t, fsys, dir)
		mustTake(t, d, 7, snapshot.Checkpoint, "")
		_, err := d.CreateLocation(9, snapshot.Checkpoint, "")
		must(t, err)
		must(t, d.SetEndState(`FAILED: "so"`))
		must(t, d.Close())
		for run := int64(2); run < 4; run++ {
			d = openJob(t, fsys, dir)
			if state, endRun := d.EndState(); d.Run() != run || d.Fresh() || d.LargestID() != 9 || state != `FAILED: "so"` || endRun != 1 {
				t.Errorf("run %d, fresh %v, largest %d, ended %s in run %d", d.Run(), d.Fresh(), d.LargestID(), state, endRun)
			}
			mustLatest(t, d, 7)
			must(t, d.Close())
		}
	})
}

func TestRecordOfALostRecord(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	mustTake(t, d, 4, snapshot.Checkpoint, "")
	must(t, d.Close())
	name := path.Join(d.dir, recordName)
	text := contents(t, m, name)
	for what, b := range map[string]string{
		"cut off": text[:len(text)-5], "flipped": strings.Replace(text, "largest 4", "largest 5", 1), "empty": "", "no record": "hello\n",
	} {
		must(t, m.Remove(name))
		must(t, writeSynced(m, name, []byte(b)))
		_, err := OpenJobDir(m, "/d", testJob)
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, m.Remove(name))
	d = openJob(t, m, "/d")
	if d.LargestID() != 4 || d.Fresh() {
		t.Errorf("largest %d, fresh %v", d.LargestID(), d.Fresh())
	}
}

// Two checkpoints at once, as with max-concurrent-checkpoints 2, and many readers.
func TestJobDirIsSafeForConcurrentUse(t *testing.T) {
	d := openJob(t, memoryWith(t, "/d"), "/d")
	var group sync.WaitGroup
	var mu sync.Mutex
	next := base.CheckpointID(0)
	for range 4 {
		group.Go(func() {
			for range 10 {
				mu.Lock()
				next++
				id := next
				location, err := d.CreateLocation(id, snapshot.Checkpoint, "")
				mu.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
				m, err := writeState(d.Writer(location, smallFiles), id, snapshot.Checkpoint, d.Run())
				if err == nil {
					_, err = d.Publish(location, m)
				}
				if _, _, latestErr := d.Latest(); errors.Join(err, latestErr) != nil {
					t.Error(err, latestErr)
				}
			}
		})
	}
	group.Wait()
	mustLatest(t, d, 40)
}

// Damage is refused with its path, and never an older checkpoint taken instead (B050).
func TestDamagedLatestIsRefused(t *testing.T) {
	for what, damage := range map[string]func(t *testing.T, m *MemFS, location string) string{
		"a flipped byte": func(t *testing.T, m *MemFS, location string) string {
			return rewrite(t, m, path.Join(location, metadataName), func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		},
		"cut in half": func(t *testing.T, m *MemFS, location string) string {
			return rewrite(t, m, path.Join(location, metadataName), func(b []byte) []byte { return b[:len(b)/2] })
		},
		"empty metadata": func(t *testing.T, m *MemFS, location string) string {
			return rewrite(t, m, path.Join(location, metadataName), func([]byte) []byte { return nil })
		},
		"a state file cut off": func(t *testing.T, m *MemFS, location string) string {
			return rewrite(t, m, stateFile(t, m, location), func(b []byte) []byte { return b[:len(b)-1] })
		},
		"a state file missing": func(t *testing.T, m *MemFS, location string) string {
			name := stateFile(t, m, location)
			must(t, m.Remove(name))
			return name
		},
		"another checkpoint's metadata": func(t *testing.T, m *MemFS, location string) string {
			other := contents(t, m, path.Join(path.Dir(location), "chk-2", metadataName))
			rewrite(t, m, path.Join(location, metadataName), func([]byte) []byte { return []byte(other) })
			return location
		},
	} {
		t.Run(what, func(t *testing.T) {
			m := memoryWith(t, "/d")
			d := openJob(t, m, "/d")
			for id := range base.CheckpointID(3) {
				mustTake(t, d, id+1, snapshot.Checkpoint, "")
			}
			damaged := damage(t, m, d.chk(3))
			_, _, err := d.Latest()
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), damaged) || !strings.Contains(err.Error(), "no older checkpoint") {
				t.Errorf("%v", err)
			}
			all, err := d.Completed()
			if got := ids(all); err != nil || !slices.Equal(got, []base.CheckpointID{1, 2}) {
				t.Errorf("completed are %v, %v", got, err)
			}
			if _, err := d.Sweep(); err != nil {
				t.Error(err)
			}
			if _, err := m.Stat(d.chk(3)); err != nil {
				t.Error("the damaged checkpoint was removed")
			}
			if chk2, _, err := ReadMetadata(m, d.chk(2)); err != nil || chk2.ID != 2 {
				t.Errorf("chk-2 by name: %v", err)
			}
		})
	}
}

func rewrite(t *testing.T, m *MemFS, name string, change func([]byte) []byte) string {
	t.Helper()
	b := change([]byte(contents(t, m, name)))
	must(t, errors.Join(m.Remove(name), writeSynced(m, name, b)))
	return name
}

// stateFile is the one file beside the metadata.
func stateFile(t *testing.T, fsys FS, location string) string {
	t.Helper()
	entries, err := fsys.List(location)
	must(t, err)
	for _, e := range entries {
		if e.Name != metadataName {
			return path.Join(location, e.Name)
		}
	}
	t.Fatal("there is no state file")
	return ""
}

// A flipped byte in a state file has the right size: it is found when the file is opened.
func TestDamagedStateIsRefusedWhenOpened(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	location := mustTake(t, d, 1, snapshot.Checkpoint, "")
	name := rewrite(t, m, stateFile(t, m, location), func(b []byte) []byte { b[7] ^= 8; return b })
	meta, location, err := d.Latest()
	must(t, err)
	err = verify(d.Open, meta, location)
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("%v", err)
	}
}

// A storage that is not there for a while is no reason to give up, or to begin anew (B050a, B080).
func TestTransientErrorsAreNotDamage(t *testing.T) {
	m := memoryWith(t, "/d")
	f := Faulty(m)
	d := openJob(t, f, "/d")
	mustTake(t, d, 1, snapshot.Checkpoint, "")
	unavailable := errors.New("503 service unavailable")
	for _, op := range []Op{OpList, OpOpen, OpRead, OpStat} {
		f.SetRules(&Rule{Op: op, Path: "*", Count: 3, Err: unavailable})
		for range 3 {
			_, _, err := d.Latest()
			if !errors.Is(err, unavailable) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrNone) {
				t.Errorf("%s: %v", op, err)
			}
		}
		mustLatest(t, d, 1)
	}
}

// What never became a checkpoint is passed over, with a line in the log (B051, B062).
func TestUnfinishedIsPassedOver(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	var log bytes.Buffer
	d.SetLog(slog.New(slog.NewTextHandler(&log, nil)))
	location, err := d.CreateLocation(1, snapshot.Checkpoint, "")
	must(t, err)
	_, err = writeState(d.Writer(location, smallFiles), 1, snapshot.Checkpoint, 1)
	must(t, err)
	must(t, d.Close())

	d = openJob(t, m, "/d")
	_, _, err = d.Latest()
	if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "chk-1 without _metadata") {
		t.Errorf("%v", err)
	}
	d.SetLog(slog.New(slog.NewTextHandler(&log, nil)))
	mustTake(t, d, 2, snapshot.Checkpoint, "")
	_, err = d.CreateLocation(3, snapshot.Checkpoint, "")
	must(t, err)
	mustLatest(t, d, 2)
	if !strings.Contains(log.String(), "chk-3 without _metadata") {
		t.Errorf("the log says %q", log.String())
	}
}

// Orphans of older runs go when a newer checkpoint has completed; nothing else does.
func TestSweep(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	for id := range base.CheckpointID(2) {
		_, err := d.CreateLocation(id+1, snapshot.Checkpoint, "")
		must(t, err)
	}
	mustTake(t, d, 3, snapshot.Checkpoint, "")
	_, err := d.CreateLocation(4, snapshot.Checkpoint, "")
	must(t, err)
	if removed, err := d.Sweep(); err != nil || removed != nil {
		t.Errorf("the running run's were swept: %v, %v", removed, err)
	}
	must(t, d.Close())

	d = openJob(t, m, "/d")
	_, err = d.CreateLocation(5, snapshot.Checkpoint, "")
	must(t, err)
	removed, err := d.Sweep()
	if want := []string{d.chk(1), d.chk(2)}; err != nil || !slices.Equal(removed, want) {
		t.Errorf("swept %v, %v", removed, err)
	}
	mustTake(t, d, 6, snapshot.Checkpoint, "")
	removed, err = d.Sweep()
	if want := []string{d.chk(4)}; err != nil || !slices.Equal(removed, want) {
		t.Errorf("swept %v, %v", removed, err)
	}
	if _, err := m.Stat(d.chk(5)); err != nil {
		t.Error("a checkpoint that is being written was swept")
	}
}

// Deletion that fails is told, tried again by the sweep, and no reason to take no checkpoints (B079).
func TestFailedDiscardIsSweptLater(t *testing.T) {
	f := Faulty(memoryWith(t, "/d"))
	d := openJob(t, f, "/d")
	old := mustTake(t, d, 1, snapshot.Checkpoint, "")
	mustTake(t, d, 2, snapshot.Checkpoint, "")
	f.SetRules(&Rule{Op: OpRemove, Path: "op*", Err: syscall.EACCES})
	isErr(t, "discarding", d.Discard(old), syscall.EACCES)
	mustTake(t, d, 3, snapshot.Checkpoint, "")
	_, err := d.Sweep()
	isErr(t, "sweeping", err, syscall.EACCES)
	mustLatest(t, d, 3)
	f.SetRules()
	if removed, err := d.Sweep(); err != nil || !slices.Equal(removed, []string{old}) {
		t.Errorf("swept %v, %v", removed, err)
	}
}

// Newer checkpoints win over an older terminal savepoint, whatever the kind (B142).
func TestLatestComparesIdsNotKinds(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	mustTake(t, d, 9, snapshot.Suspend, "/sp")
	mustLatest(t, d, 9)
	mustTake(t, d, 10, snapshot.Checkpoint, "")
	mustLatest(t, d, 10)
	terminal := mustTake(t, d, 11, snapshot.Drain, "/sp")
	mustLatest(t, d, 11)
	must(t, removeAll(m, terminal))
	_, _, err := d.Latest()
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), terminal) || !strings.Contains(err.Error(), "bring it back") {
		t.Errorf("the savepoint is gone: %v", err)
	}
	pointer := path.Join(d.dir, "_savepoint-11")
	rewrite(t, m, pointer, func(b []byte) []byte { return b[:9] })
	_, _, err = d.Latest()
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), pointer) {
		t.Errorf("the pointer is damaged: %v", err)
	}
	all, err := d.Completed()
	if got := ids(all); err != nil || !slices.Equal(got, []base.CheckpointID{9, 10}) {
		t.Errorf("completed are %v, %v", got, err)
	}
}

func TestNamesThatAreNotOurs(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	for _, name := range []string{"chk-07", "chk--7", "chk-", "chk-7x", "chk-99999999999999999999", "_savepoint-8.tmp"} {
		must(t, m.Mkdir(path.Join(d.dir, name)))
	}
	must(t, writeSynced(m, path.Join(d.dir, "chk-12"), nil))
	if found, err := d.find(); err != nil || found != nil {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestOpenJobDirRefusesJobIDs(t *testing.T) {
	for _, job := range []base.JobID{"", "job", "../../0123456789abcdef0123456789a", "0123456789ABCDEF0123456789ABCDEF"} {
		if _, err := OpenJobDir(Memory(), "/d", job); err == nil || !strings.Contains(err.Error(), "is no job id") {
			t.Errorf("%q: %v", job, err)
		}
	}
}

func TestPublishIsExclusiveAndRepeatable(t *testing.T) {
	d := openJob(t, memoryWith(t, "/d"), "/d")
	location, err := d.CreateLocation(1, snapshot.Checkpoint, "")
	must(t, err)
	m, err := writeState(d.Writer(location, smallFiles), 1, snapshot.Checkpoint, 1)
	must(t, err)
	first, err := d.Publish(location, m)
	must(t, err)
	if again, err := d.Publish(location, m); err != nil || again != first {
		t.Errorf("publishing the same again: %d, %v", again, err)
	}
	m.Run = 2
	_, err = d.Publish(location, m)
	isErr(t, "publishing another", err, iofs.ErrExist)
	m.Job = "fedcba9876543210fedcba9876543210"
	if _, err := d.Publish(location, m); err == nil {
		t.Error("another job's checkpoint is published")
	}
	m.Job, m.ID = testJob, 0
	if _, err := d.Publish(location, m); err == nil {
		t.Error("invalid metadata is published")
	}
}

// With a sick disk the answer is certain, or says that it is not; then asking again settles it (A1).
func TestPublishOnASickDisk(t *testing.T) {
	for _, c := range []struct {
		what      string
		rules     []*Rule
		uncertain bool
	}{
		{"no space to write", []*Rule{{Op: OpWrite, Path: "_metadata.tmp", Short: 10, Err: syscall.ENOSPC}}, false},
		{"no space to sync", []*Rule{{Op: OpSync, Path: "_metadata.tmp", Err: syscall.ENOSPC}}, false},
		{"no space to close", []*Rule{{Op: OpClose, Path: "_metadata.tmp", Err: syscall.ENOSPC}}, false},
		{"no space to link", []*Rule{{Op: OpLink, Path: metadataName, Err: syscall.ENOSPC}}, false},
		{"the directory cannot be synced once", []*Rule{{Op: OpSyncDir, Path: "chk-2", Count: 1, Err: syscall.ENOSPC}}, false},
		{"the directory cannot be synced", []*Rule{{Op: OpSyncDir, Path: "chk-2", Err: syscall.ENOSPC}}, true},
		{"nor withdrawn", []*Rule{{Op: OpSyncDir, Path: "chk-2", Err: syscall.ENOSPC}, {Op: OpRemove, Path: metadataName, Err: syscall.EIO}}, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := Faulty(memoryWith(t, "/d"))
			d := openJob(t, f, "/d")
			mustTake(t, d, 1, snapshot.Checkpoint, "")
			location, err := d.CreateLocation(2, snapshot.Checkpoint, "")
			must(t, err)
			m, err := writeState(d.Writer(location, smallFiles), 2, snapshot.Checkpoint, 1)
			must(t, err)
			f.SetRules(c.rules...)
			_, err = d.Publish(location, m)
			isErr(t, "publishing", err, syscall.ENOSPC)
			if errors.Is(err, ErrUncertain) != c.uncertain {
				t.Errorf("certainty: %v", err)
			}
			f.SetRules()
			if !c.uncertain {
				mustLatest(t, d, 1)
			}
			_, err = d.Publish(location, m)
			must(t, err)
			mustLatest(t, d, 2)
		})
	}
}

// A pointer that could not be made durable is not there, or the answer says that nobody knows.
func TestPointSavepointOnASickDisk(t *testing.T) {
	f := Faulty(memoryWith(t, "/d"))
	d := openJob(t, f, "/d")
	mustTake(t, d, 1, snapshot.Checkpoint, "")
	location := mustTake(t, d, 2, snapshot.Savepoint, "/sp")
	for _, c := range []struct {
		rule      Rule
		uncertain bool
	}{
		{Rule{Op: OpWrite, Path: "_savepoint*", Err: syscall.ENOSPC}, false},
		{Rule{Op: OpRename, Path: "_savepoint*", Err: syscall.ENOSPC}, false},
		{Rule{Op: OpSyncDir, Path: string(testJob), Count: 1, Err: syscall.ENOSPC}, false},
		{Rule{Op: OpSyncDir, Path: string(testJob), Err: syscall.ENOSPC}, true},
	} {
		f.SetRules(&c.rule)
		err := d.PointSavepoint(2, location)
		isErr(t, "pointing", err, syscall.ENOSPC)
		if errors.Is(err, ErrUncertain) != c.uncertain {
			t.Errorf("certainty: %v", err)
		}
		f.SetRules()
		mustLatest(t, d, 1)
	}
	must(t, d.PointSavepoint(2, location))
	mustLatest(t, d, 2)
}

// The lock is free when its owner is dead, however it died; until then the refusal names it.
func TestLockOfAnotherProcess(t *testing.T) {
	if dir := os.Getenv("WEIR_TEST_LOCK_DIR"); dir != "" {
		holdLock(dir)
	}
	dir := t.TempDir()
	owner := exec.Command(os.Args[0], "-test.run=TestLockOfAnotherProcess")
	owner.Env = append(os.Environ(), "WEIR_TEST_LOCK_DIR="+dir)
	_, err := owner.StdinPipe() // stays open
	must(t, err)
	out, err := owner.StdoutPipe()
	must(t, err)
	must(t, owner.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "locked\n" {
		t.Fatalf("the owner says %q, %v", line, err)
	}
	_, err = OpenJobDir(Disk(), dir, testJob)
	var locked *LockedError
	if !errors.As(err, &locked) || locked.Owner != fmt.Sprintf("process %d", owner.Process.Pid) {
		t.Errorf("%v", err)
	}
	must(t, owner.Process.Kill())
	_ = owner.Wait() // "signal: killed"
	d := openJob(t, Disk(), dir)
	if d.Run() != 2 {
		t.Errorf("run %d", d.Run())
	}
}

// A lock that cannot be had at all is not told as another process's.
func TestLockThatCannotBeMade(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(path.Join(dir, string(testJob), lockName), 0o777))
	_, err := OpenJobDir(Disk(), dir, testJob)
	if err == nil || strings.Contains(err.Error(), "in use") || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("%v", err)
	}
}

// holdLock is the other process: it waits to be killed.
func holdLock(dir string) {
	d, err := OpenJobDir(Disk(), dir, testJob)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("locked")
	_, _ = os.Stdin.Read(make([]byte, 1)) // nobody writes
	runtime.KeepAlive(d)                  // a lock that is garbage is given back
}

func copyTree(from, to string) error { return os.CopyFS(to, os.DirFS(from)) }
