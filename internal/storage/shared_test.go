package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// incremental is metadata of a checkpoint that refers to files, with a file of its own that it writes.
func incremental(w Writer, job base.JobID, id base.CheckpointID, refers ...snapshot.Handle) (*snapshot.Metadata, error) {
	h, err := writeShared(w, "op/0 keyed", fileBody(id))
	return &snapshot.Metadata{
		ID: id, Job: job, Kind: snapshot.Checkpoint, Format: snapshot.Native, Run: 1,
		Operators: []snapshot.Operator{{UID: "op", Name: "op", Parallelism: 1, Subtasks: []snapshot.Subtask{{
			Watermark: base.NoTime, PendingWatermark: base.NoTime,
			Keyed: []snapshot.KeyedHandle{{Range: base.RangeOf(0, 1), Handle: h, Refers: refers}},
		}}}},
	}, err
}

func writeShared(w Writer, name string, body []byte) (snapshot.Handle, error) {
	o, err := w.CreateShared(name)
	if err != nil {
		return snapshot.Handle{}, err
	}
	_, err = o.Write(body)
	h, commitErr := o.Commit()
	return h, errors.Join(err, commitErr)
}

func openAs(t *testing.T, fsys FS, dir string, job base.JobID) *JobDir {
	t.Helper()
	d, err := OpenJobDir(fsys, dir, job)
	must(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// keyedOf is the one keyed state of a checkpoint.
func keyedOf(m *snapshot.Metadata) snapshot.KeyedHandle { return m.Operators[0].Subtasks[0].Keyed[0] }

// filesOf are all files of a checkpoint's keyed state.
func filesOf(m *snapshot.Metadata) []snapshot.Handle {
	return append([]snapshot.Handle{keyedOf(m).Handle}, keyedOf(m).Refers...)
}

// takeUpon takes an incremental checkpoint that refers to files.
func takeUpon(d *JobDir, id base.CheckpointID, refers ...snapshot.Handle) (m *snapshot.Metadata, location string, err error) {
	if location, err = d.CreateLocation(id, snapshot.Checkpoint, ""); err != nil {
		return nil, "", err
	}
	if m, err = incremental(d.Writer(location, smallFiles), d.job, id, refers...); err != nil {
		return nil, location, err
	}
	_, err = d.Publish(location, m)
	return m, location, err
}

func mustTakeUpon(t *testing.T, d *JobDir, id base.CheckpointID, refers ...snapshot.Handle) (*snapshot.Metadata, string) {
	t.Helper()
	m, location, err := takeUpon(d, id, refers...)
	must(t, err)
	return m, location
}

// verifyFilesOf reads every file of a checkpoint's keyed state.
func verifyFilesOf(fsys FS, m *snapshot.Metadata, location string) error {
	for _, h := range filesOf(m) {
		id, ok := sharedID(path.Base(h.File))
		if !ok {
			return fmt.Errorf("%q is no name of a shared file", h.File)
		}
		r, err := OpenHandle(fsys, location, h)
		if err != nil {
			return err
		}
		got, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
		if !bytes.Equal(got, fileBody(id)) {
			return fmt.Errorf("%s is not what was written", h.File)
		}
	}
	return nil
}

// wantShared demands that exactly the files of these checkpoints are in shared/.
func wantShared(t *testing.T, what string, fsys FS, dir string, want ...base.CheckpointID) {
	t.Helper()
	entries, err := fsys.List(path.Join(dir, sharedName))
	must(t, err)
	var got []base.CheckpointID
	for _, e := range entries {
		id, _ := sharedID(e.Name)
		got = append(got, id)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s: shared/ has files of checkpoints %v, want %v", what, got, want)
	}
}

func TestSharedObjects(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, dir string) {
		d := openJob(t, fsys, path.Join(dir, "ckpt"))
		location, err := d.CreateLocation(7, snapshot.Checkpoint, "")
		must(t, err)
		w := d.Writer(location, smallFiles)
		h, err := writeShared(w, "op/0 keyed", fileBody(7))
		must(t, err)
		if want := path.Join(d.dir, "shared", "7-op%2F0%20keyed"); h.File != want || h.Size != int64(len(fileBody(7))) {
			t.Errorf("the file is %+v, want %s", h, want)
		}
		if h, err := writeShared(w, "small", inlineBody(7)); err != nil || h.File != "" || !bytes.Equal(h.Inline, inlineBody(7)) {
			t.Errorf("small: %+v, %v", h, err)
		}
		if _, err := writeShared(w, "op/0 keyed", fileBody(7)); !errors.Is(err, iofs.ErrExist) {
			t.Errorf("the same name again: %v", err)
		}
		if _, err := w.CreateShared(""); err == nil {
			t.Error("a name is needed")
		}
		o, err := w.CreateShared("aborted")
		must(t, err)
		_, err = o.Write(make([]byte, 2*spillBytes))
		must(t, errors.Join(err, o.Abort()))
		wantShared(t, "one committed", fsys, d.dir, 7)

		savepoint, err := d.CreateLocation(8, snapshot.Savepoint, path.Join(dir, "sp"))
		must(t, err)
		if h, err := writeShared(d.Writer(savepoint, smallFiles), "keyed", fileBody(8)); err != nil || h.File != "keyed" {
			t.Errorf("of a savepoint: %+v, %v", h, err)
		}
		if h, err := writeShared(OpenJobMemory(fsys, testJob, 0).Writer("memory:chk-1", smallFiles), "keyed", fileBody(8)); err != nil || h.File != "" {
			t.Errorf("in memory: %+v, %v", h, err)
		}
	})
}

// A file goes with the last checkpoint that names it, in whatever order they go.
func TestSharedFilesGoWithTheLast(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, dir string) {
		d := openJob(t, fsys, path.Join(dir, "ckpt"))
		m1, l1 := mustTakeUpon(t, d, 1)
		m2, l2 := mustTakeUpon(t, d, 2, filesOf(m1)...)
		m3, l3 := mustTakeUpon(t, d, 3, filesOf(m2)...)
		must(t, d.Discard(l2))
		wantShared(t, "without 2", fsys, d.dir, 1, 2, 3)
		m4, l4 := mustTakeUpon(t, d, 4, keyedOf(m3).Handle)
		must(t, d.Discard(l1))
		wantShared(t, "without 1", fsys, d.dir, 1, 2, 3, 4)
		must(t, d.Discard(l3))
		wantShared(t, "without 3", fsys, d.dir, 3, 4)
		must(t, d.Discard(l3)) // what is gone is gone
		must(t, verifyFilesOf(fsys, m4, l4))
		must(t, d.Discard(l4))
		wantShared(t, "without any", fsys, d.dir)
	})
}

// What never completed takes its own files with it, late ones too, and no other.
func TestSharedFilesOfTheAborted(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	m1, _ := mustTakeUpon(t, d, 1)
	aborted, err := d.CreateLocation(2, snapshot.Checkpoint, "")
	must(t, err)
	w := d.Writer(aborted, smallFiles)
	_, err = incremental(w, testJob, 2, filesOf(m1)...)
	must(t, err)
	m3, l3 := mustTakeUpon(t, d, 3, filesOf(m1)...)
	must(t, d.Discard(aborted))
	wantShared(t, "2 aborted", m, d.dir, 1, 3)
	_, err = writeShared(w, "late", fileBody(2))
	must(t, err)
	must(t, d.Discard(aborted)) // as for a late acknowledgement
	wantShared(t, "2 aborted again", m, d.dir, 1, 3)
	_, err = writeShared(w, "later", fileBody(2)) // and nobody hears of it
	must(t, err)
	removed, err := d.Sweep()
	must(t, err)
	if !slices.Equal(removed, []string{path.Join(d.dir, "shared", "2-later")}) {
		t.Errorf("swept: %v", removed)
	}
	must(t, verifyFilesOf(m, m3, l3))
}

// A checkpoint under way, and one whose publication is not over, loses nothing to a sweep, though a newer one has completed.
func TestASweepLeavesWhatIsUnderWay(t *testing.T) {
	m := memoryWith(t, "/d")
	f := Faulty(m)
	d := openJob(t, f, "/d")
	slow, err := d.CreateLocation(1, snapshot.Checkpoint, "")
	must(t, err)
	m1, err := incremental(d.Writer(slow, smallFiles), testJob, 1)
	must(t, err)
	mustTakeUpon(t, d, 2)
	sweep := func(what string) {
		_, err := d.Sweep()
		must(t, err)
		wantShared(t, what, m, d.dir, 1, 2)
	}
	sweep("under way")
	f.SetRules(&Rule{Op: OpSyncDir, Path: slow, Err: errCut, Count: 2})
	_, err = d.Publish(slow, m1)
	isErr(t, "publishing on a broken disk", err, ErrUncertain)
	f.SetRules()
	sweep("uncertain")
	_, err = d.Publish(slow, m1)
	must(t, err)
	sweep("published")
	must(t, verifyFilesOf(m, m1, slow))
}

// A checkpoint is refused that refers to what may go: files of a checkpoint that did not complete, files that went already, files that
// are not the job's.
func TestPublishRefusesReferences(t *testing.T) {
	m := memoryWith(t, "/d")
	must(t, m.Mkdir("/e"))
	d := openJob(t, m, "/d")
	other := openAs(t, m, "/e", otherJob)
	foreign, _ := mustTakeUpon(t, other, 1)
	m1, l1 := mustTakeUpon(t, d, 1)
	aborted, err := d.CreateLocation(2, snapshot.Checkpoint, "")
	must(t, err)
	m2, err := incremental(d.Writer(aborted, smallFiles), testJob, 2)
	must(t, err)
	for i, c := range []struct {
		what   string
		refers snapshot.Handle
		want   string
	}{
		{"a file of what has not completed", keyedOf(m2).Handle, "which no completed checkpoint has"},
		{"another job's", keyedOf(foreign).Handle, "which is no file of the job's"},
		{"any file", snapshot.Handle{File: "/etc/passwd"}, "which is no file of the job's"},
		{"a file in shared/ that is not called so", snapshot.Handle{File: path.Join(d.dir, "shared", "mine")}, "which is no file of the job's"},
	} {
		_, location, err := takeUpon(d, base.CheckpointID(3+i), c.refers)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.what, err)
		}
		if _, err := m.Stat(path.Join(location, metadataName)); !errors.Is(err, iofs.ErrNotExist) {
			t.Errorf("%s: it was published before it was refused: %v", c.what, err)
		}
		must(t, d.Discard(location))
	}
	_, _ = mustTakeUpon(t, d, 8)
	must(t, d.Discard(l1))
	_, _, err = takeUpon(d, 9, filesOf(m1)...)
	if err == nil || !strings.Contains(err.Error(), "which no completed checkpoint has") {
		t.Errorf("a file that went: %v", err)
	}
}

// What the next run finds is counted again: B052. Deletions of the run before neither go on nor count.
func TestTheNextRunCountsAgain(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	m1, l1 := mustTakeUpon(t, d, 1)
	m2, _ := mustTakeUpon(t, d, 2, filesOf(m1)...)
	must(t, d.Close())
	again := openJob(t, m, "/d")
	if err := d.Discard(l1); !errors.Is(err, errClosed) {
		t.Errorf("a late deletion of the run before: %v", err)
	}
	if _, err := d.Sweep(); !errors.Is(err, errClosed) {
		t.Errorf("a late sweep of the run before: %v", err)
	}
	m3, l3 := mustTakeUpon(t, again, 3, filesOf(m2)...)
	must(t, again.Discard(l1))
	must(t, again.Discard(d.chk(2)))
	wantShared(t, "only 3 is left", m, d.dir, 1, 2, 3)
	must(t, verifyFilesOf(m, m3, l3))
}

// What a run has left goes when it closes, but for what may be a completed checkpoint's.
// A job's directory is moved, and another start leaves behind what is in it, though it is named where it was. Moved back, all is there.
func TestAMovedDirectoryKeepsItsFiles(t *testing.T) {
	dir, err := Disk().Resolve(t.TempDir())
	must(t, err)
	here, there := path.Join(dir, "ckpt"), path.Join(dir, "moved")
	d := openJob(t, Disk(), here)
	first, _ := mustTakeUpon(t, d, 1)
	second, location := mustTakeUpon(t, d, 2, filesOf(first)...)
	must(t, d.Close())

	must(t, os.Rename(here, there))
	d = openJob(t, Disk(), there)
	mustTakeUpon(t, d, 3)
	_, err = d.Sweep()
	must(t, err)
	must(t, d.Discard(d.chk(1)))
	must(t, d.Close())
	wantShared(t, "moved", Disk(), d.dir, 1, 2, 3)

	must(t, os.Rename(there, here))
	must(t, verifyFilesOf(Disk(), second, location))
}

func TestCloseSweepsItsOwn(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	m1, l1 := mustTakeUpon(t, d, 1)
	aborted, err := d.CreateLocation(2, snapshot.Checkpoint, "")
	must(t, err)
	w := d.Writer(aborted, smallFiles)
	must(t, d.Discard(aborted))
	_, err = writeShared(w, "late", fileBody(2))
	must(t, err)
	must(t, writeSynced(m, path.Join(d.dir, "shared", "notes.txt"), []byte("mine")))
	must(t, d.Close())
	must(t, m.Remove(path.Join(d.dir, "shared", "notes.txt"))) // it was left
	wantShared(t, "closed", m, d.dir, 1)
	must(t, verifyFilesOf(m, m1, l1))
}

// Metadata that cannot be read may name any file that is as old, and a person may bring it back.
func TestWhatCannotBeReadKeepsItsFiles(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	m1, l1 := mustTakeUpon(t, d, 1)
	_, l2 := mustTakeUpon(t, d, 2, filesOf(m1)...)
	must(t, d.Close())
	whole := contents(t, m, path.Join(l2, metadataName))
	rewrite(t, m, path.Join(l2, metadataName), func(b []byte) []byte { return b[:20] })
	again := openJob(t, m, "/d")
	_, l3 := mustTakeUpon(t, again, 3)
	must(t, again.Discard(l1))
	_, _ = mustTakeUpon(t, again, 4)
	must(t, again.Discard(l3))
	_, err := again.Sweep()
	must(t, err)
	wantShared(t, "2 is damaged", m, d.dir, 1, 2, 4)
	must(t, again.Close())
	rewrite(t, m, path.Join(l2, metadataName), func([]byte) []byte { return []byte(whole) })
	m2, _, err := ReadMetadata(m, l2)
	must(t, err)
	must(t, verifyFilesOf(m, m2, l2))
}

// A checkpoint is verified with all files that it refers to, before anything of it is used.
func TestAMissingReferenceIsDamage(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	m1, _ := mustTakeUpon(t, d, 1)
	_, l2 := mustTakeUpon(t, d, 2, filesOf(m1)...)
	must(t, m.Remove(keyedOf(m1).File))
	_, _, err := ReadMetadata(m, l2)
	isErr(t, "a referenced file is missing", err, ErrDamaged)
	if !strings.Contains(err.Error(), keyedOf(m1).File) || !strings.Contains(err.Error(), "keyed state of older checkpoints") {
		t.Error(err)
	}
	must(t, writeSynced(m, keyedOf(m1).File, []byte("short")))
	_, _, err = d.Latest()
	isErr(t, "a referenced file is cut", err, ErrDamaged)
}

// Pages carry checksums of their own, so their file is not read twice; that it is whole is known by its size.
func TestOpenPages(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	m1, l1 := mustTakeUpon(t, d, 1)
	h := keyedOf(m1).Handle
	rewrite(t, m, h.File, func(b []byte) []byte { b[3] ^= 1; return b })
	_, err := d.Open(l1, h)
	isErr(t, "opening what is flipped", err, ErrDamaged)
	r, err := d.OpenPages(l1, h)
	must(t, err)
	must(t, r.Close())
	rewrite(t, m, h.File, func(b []byte) []byte { return b[1:] })
	_, err = d.OpenPages(l1, h)
	isErr(t, "opening what is cut", err, ErrDamaged)
	_, err = d.OpenPages(l1, snapshot.Handle{Inline: []byte("x"), Size: 1})
	isErr(t, "inline bytes that are not what was written", err, ErrDamaged)
}

// Of another job's checkpoint that was claimed go, when it is given up, the files that no other checkpoint there needs; of one that was
// not claimed nothing ever does: B053.
func TestSharedFilesOfAnotherJobs(t *testing.T) {
	for _, claim := range []bool{true, false} {
		m := memoryWith(t, "/d")
		must(t, m.Mkdir("/e"))
		owner := openAs(t, m, "/e", otherJob)
		m1, l1 := mustTakeUpon(t, owner, 1)
		m2, l2 := mustTakeUpon(t, owner, 2, filesOf(m1)...)
		must(t, owner.Close())
		d := openJob(t, m, "/d")
		startFrom(t, m, d, l2, claim)
		m3, l3 := mustTakeUpon(t, d, 3)
		if claim {
			must(t, d.Discard(l2))
			wantGone(t, m, l2)
			wantShared(t, "claimed and given up", m, owner.dir, 1)
		} else {
			wantShared(t, "not claimed", m, owner.dir, 1, 2)
			must(t, verifyFilesOf(m, m2, l2))
		}
		must(t, verifyFilesOf(m, m1, l1))
		must(t, verifyFilesOf(m, m3, l3))
	}
}

// Disposing of a checkpoint that was kept leaves what another one needs.
func TestDisposeOfSharedFiles(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	m1, l1 := mustTakeUpon(t, d, 1)
	m2, l2 := mustTakeUpon(t, d, 2, filesOf(m1)...)
	must(t, d.Close())
	for n := 0; ; n++ {
		after := m.CrashClone(nil)
		_, err := Dispose(Faulty(after, &Rule{Skip: n, Err: errCut}), l1)
		after = after.CrashClone(crashRNG(uint64(n), 1))
		must(t, verifyFilesOf(after, m2, l2))
		if err == nil {
			wantShared(t, "1 disposed of", after, d.dir, 1, 2)
			break
		}
	}
	for n := 0; ; n++ {
		after := m.CrashClone(nil)
		_, err := Dispose(Faulty(after, &Rule{Skip: n, Err: errCut}), l2)
		after = after.CrashClone(crashRNG(uint64(n), 1))
		must(t, verifyFilesOf(after, m1, l1))
		if _, again := Dispose(after, l2); again != nil && !errors.Is(again, iofs.ErrNotExist) {
			t.Fatal(again)
		}
		if err == nil {
			wantShared(t, "2 disposed of", after, d.dir, 1)
			return
		}
	}
}
