package storage

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// What a job goes on from, where people have a hand in it: a newest checkpoint that somebody deleted, and a start from a path.

const otherJob = base.JobID("fedcba9876543210fedcba9876543210")

// wantMissed demands that Latest misses a checkpoint, and says which and what to do.
func wantMissed(t *testing.T, what string, d *JobDir, missed string) {
	t.Helper()
	m, _, err := d.Latest()
	if err == nil {
		t.Errorf("%s: checkpoint %d is taken", what, m.ID)
		return
	}
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), missed) || !strings.Contains(err.Error(), "name the checkpoint to start from") {
		t.Errorf("%s: %v", what, err)
	}
}

// A newest checkpoint that somebody deleted by hand is missed, also by a run that died before it wrote anything more; the one before
// is not taken for it.
func TestANewestDeletedByHand(t *testing.T) {
	for what, c := range map[string]struct {
		ids    []base.CheckpointID // completed, all retained
		next   bool                // the next one has begun
		gone   string
		missed string
	}{
		"the only one":                    {ids: []base.CheckpointID{1}, gone: "chk-1", missed: "chk-1"},
		"the only one, the next begun":    {ids: []base.CheckpointID{1}, next: true, gone: "chk-1", missed: "checkpoint 1"},
		"the second":                      {ids: []base.CheckpointID{1, 2}, gone: "chk-2", missed: "chk-2"},
		"the second, the next begun":      {ids: []base.CheckpointID{1, 2}, next: true, gone: "chk-2", missed: "checkpoint 2"},
		"its metadata":                    {ids: []base.CheckpointID{1, 2}, next: true, gone: "chk-2/_metadata", missed: "checkpoint 2"},
		"the one that was only begun too": {ids: []base.CheckpointID{1, 2}, next: true, gone: "chk-3", missed: "chk-3"},
	} {
		m := memoryWith(t, "/d")
		d := openJob(t, m, "/d")
		for _, id := range c.ids {
			mustTake(t, d, id, snapshot.Checkpoint, "")
		}
		if c.next {
			_, err := d.CreateLocation(c.ids[len(c.ids)-1]+1, snapshot.Checkpoint, "")
			must(t, err)
		}
		after := m.CrashClone(nil)
		must(t, removeAny(after, path.Join(d.dir, c.gone)))
		again := openJob(t, after, "/d")
		wantMissed(t, what, again, c.missed)
		must(t, again.Close())
		wantMissed(t, what+", asked twice", openJob(t, after, "/d"), c.missed)
	}
}

// removeAny removes a file, or a directory with all in it.
func removeAny(fsys FS, name string) error {
	if e, err := fsys.Stat(name); err == nil && !e.Dir {
		return fsys.Remove(name)
	}
	return removeAll(fsys, name)
}

// The pointer to the savepoint that the job stopped with is missed like a checkpoint.
func TestATerminalPointerDeletedByHand(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	mustTake(t, d, 1, snapshot.Checkpoint, "")
	mustTake(t, d, 2, snapshot.Suspend, "/sp")
	must(t, m.Remove(path.Join(d.dir, "_savepoint-2")))
	must(t, d.Close())
	wantMissed(t, "the pointer", openJob(t, m, "/d"), "checkpoint 2")
}

// What the engine deletes is not missed: what was retired, what was aborted, a savepoint that was withdrawn.
func TestWhatTheEngineDeletesIsNotMissed(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	first := mustTake(t, d, 1, snapshot.Checkpoint, "")
	mustTake(t, d, 2, snapshot.Checkpoint, "")
	must(t, d.Discard(first))
	aborted, err := d.CreateLocation(3, snapshot.Checkpoint, "")
	must(t, err)
	must(t, d.Discard(aborted))
	savepoint := mustTake(t, d, 4, snapshot.Savepoint, "/sp")
	must(t, removeAll(m, savepoint))
	terminal := mustTake(t, d, 5, snapshot.Suspend, "/sp")
	must(t, d.Discard(terminal))
	for seed := range uint64(8) {
		mustLatest(t, openJob(t, m.CrashClone(crashRNG(1, seed)), "/d"), 2)
	}
}

// A job that ends and keeps nothing has nothing to go on from, however far its deletions have come when the process dies.
func TestTheEndIsNotMissed(t *testing.T) {
	for n := 0; ; n++ {
		m := memoryWith(t, "/d")
		f := Faulty(m)
		d := openJob(t, f, "/d")
		locations := []string{mustTake(t, d, 1, snapshot.Checkpoint, ""), mustTake(t, d, 2, snapshot.Checkpoint, ""),
			mustTake(t, d, 3, snapshot.Checkpoint, "")}
		must(t, d.SetEndState(StateFinished))
		f.SetRules(&Rule{Skip: n, Err: errCut})
		var err error
		for _, l := range slices.Backward(locations) { // the newest first: the worst order
			err = errors.Join(err, d.Discard(l))
		}
		again := openJob(t, m.CrashClone(crashRNG(uint64(n), 1)), "/d")
		latest, _, latestErr := again.Latest()
		if latestErr == nil && latest.ID != 3 || latestErr != nil && !errors.Is(latestErr, ErrNone) {
			t.Fatalf("cut after %d operations: %v, %v", n, latest, latestErr)
		}
		if err == nil {
			if latestErr == nil {
				t.Error("the end deletes nothing")
			}
			return
		}
	}
}

// startFrom starts a run from a snapshot at a path.
func startFrom(t *testing.T, fsys FS, d *JobDir, location string, claim bool) {
	t.Helper()
	m, location, err := ReadMetadata(fsys, location)
	must(t, err)
	must(t, d.StartFrom(m, location, claim))
}

// A start from a path is the latest until a checkpoint after it completes, over any number of crashes; what was newer is left behind,
// neither taken nor deleted. Ids go on after all.
func TestAStartFromAPathHolds(t *testing.T) {
	for _, claim := range []bool{false, true} {
		m := memoryWith(t, "/d")
		d := openJob(t, m, "/d")
		for id := range base.CheckpointID(3) {
			mustTake(t, d, id+1, snapshot.Checkpoint, "")
		}
		startFrom(t, m, d, d.chk(2), claim)
		m = m.CrashClone(nil)
		d = openJob(t, m, "/d")
		mustLatest(t, d, 2)
		if d.LargestID() != 3 || d.Owns(d.chk(2)) != claim || d.Owns(d.chk(3)) || d.Owns(d.chk(1)) {
			t.Errorf("largest id %d; owns 1: %v, 2: %v, 3: %v", d.LargestID(), d.Owns(d.chk(1)), d.Owns(d.chk(2)), d.Owns(d.chk(3)))
		}
		unfinished, err := d.CreateLocation(4, snapshot.Checkpoint, "")
		must(t, err)
		m = m.CrashClone(nil)
		d = openJob(t, m, "/d")
		mustLatest(t, d, 2)
		mustTake(t, d, 5, snapshot.Checkpoint, "")
		mustLatest(t, d, 5)
		removed, err := d.Sweep()
		if err != nil || !slices.Equal(removed, []string{unfinished}) {
			t.Errorf("swept %v, %v", removed, err)
		}
		want := []base.CheckpointID{5}
		if claim {
			want = []base.CheckpointID{2, 5}
		}
		for range 2 {
			all, err := d.Completed()
			if got := ids(all); err != nil || !slices.Equal(got, want) {
				t.Errorf("claim %v: completed are %v, %v", claim, got, err)
			}
			m = m.CrashClone(nil)
			d = openJob(t, m, "/d")
		}
		must(t, removeAll(m, d.chk(5)))
		wantMissed(t, "the first own one", d, "checkpoint 5")
	}
}

// The snapshot of another job, with a larger id: ids go on after it.
func TestIDsGoOnAfterAnothersSnapshot(t *testing.T) {
	m := memoryWith(t, "/d")
	other, err := OpenJobDir(m, "/other", otherJob)
	must(t, err)
	location, err := other.CreateLocation(1000, snapshot.Savepoint, "/sp")
	must(t, err)
	md, err := writeState(other.Writer(location, smallFiles), 1000, snapshot.Savepoint, 1)
	must(t, err)
	md.Job = otherJob
	_, err = other.Publish(location, md)
	must(t, err)
	d := openJob(t, m, "/d")
	mustTake(t, d, 7, snapshot.Checkpoint, "")
	startFrom(t, m, d, location, false)
	for range 2 {
		if d.LargestID() != 1000 {
			t.Errorf("the largest id is %d", d.LargestID())
		}
		mustLatest(t, d, 1000)
		m = m.CrashClone(nil)
		d = openJob(t, m, "/d")
	}
	must(t, removeAll(m, location))
	_, _, err = d.Latest()
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "was started from "+location) {
		t.Errorf("%v", err)
	}
}

// A job that has FINISHED does not go back to the snapshot that it was started from.
func TestAFinishedJobHasNoOrigin(t *testing.T) {
	for _, claim := range []bool{false, true} {
		m := memoryWith(t, "/d")
		d := openJob(t, m, "/d")
		location := mustTake(t, d, 1, snapshot.Savepoint, "/sp")
		startFrom(t, m, d, location, claim)
		must(t, d.SetEndState(StateFinished))
		m = m.CrashClone(nil)
		d = openJob(t, m, "/d")
		_, _, err := d.Latest()
		isErr(t, "the latest", err, ErrNone)
		removed, err := d.Sweep()
		must(t, err)
		if _, err := m.Stat(location); errors.Is(err, iofs.ErrNotExist) != claim || (len(removed) == 1) != claim {
			t.Errorf("claim %v: swept %v; the savepoint: %v", claim, removed, err)
		}
	}
}

func TestWhoClaimsOwns(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, dir string) {
		d := openJob(t, fsys, path.Join(dir, "ckpt"))
		location := mustTake(t, d, 1, snapshot.Savepoint, path.Join(dir, "sp"))
		startFrom(t, fsys, d, location, true)
		must(t, d.StartFrom(&snapshot.Metadata{ID: 1}, location, true)) // the first start failed behind the claim
		if owner, err := OwnerOf(fsys, location); owner != testJob || err != nil {
			t.Errorf("the owner is %q, %v", owner, err)
		}
		other, err := OpenJobDir(fsys, path.Join(dir, "ckpt"), otherJob)
		must(t, err)
		for _, s := range []Checkpoints{other, OpenJobMemory(fsys, otherJob, 0)} {
			err = s.StartFrom(&snapshot.Metadata{ID: 1}, location, true)
			taken := (*ClaimedError)(nil)
			if !errors.As(err, &taken) || taken.Job != testJob || !strings.Contains(err.Error(), "NO_CLAIM") {
				t.Errorf("a second claim: %v", err)
			}
			must(t, s.StartFrom(&snapshot.Metadata{ID: 1}, location, false))
		}
		must(t, d.Close())
		if err := other.StartFrom(&snapshot.Metadata{ID: 1}, location, true); !errors.As(err, new(*ClaimedError)) {
			t.Errorf("a second claim, when the first job is dead: %v", err)
		}
		must(t, fsys.Remove(path.Join(location, claimName)))
		must(t, other.StartFrom(&snapshot.Metadata{ID: 1}, location, true))
		must(t, other.Close())
	})
}

// The checkpoint of a job that is alive cannot be claimed; when it is dead it can.
func TestClaimOfALiveJobsCheckpoint(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	location := mustTake(t, d, 1, snapshot.Checkpoint, "")
	other, err := OpenJobDir(m, "/d", otherJob)
	must(t, err)
	err = other.StartFrom(&snapshot.Metadata{ID: 1}, location, true)
	if taken := (*ClaimedError)(nil); !errors.As(err, &taken) || taken.Job != testJob || !strings.Contains(err.Error(), "running") {
		t.Errorf("%v", err)
	}
	if _, err := m.Stat(path.Join(location, claimName)); err == nil {
		t.Error("the claim was made")
	}
	must(t, d.Close())
	must(t, other.StartFrom(&snapshot.Metadata{ID: 1}, location, true))
	must(t, other.Discard(location))
	wantMissed(t, "its owner", openJob(t, m, "/d"), "checkpoint 1")
}

func TestADamagedClaimIsRefused(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	location := mustTake(t, d, 1, snapshot.Savepoint, "/sp")
	name := path.Join(location, claimName)
	must(t, writeSynced(m, name, []byte("mine")))
	err := d.StartFrom(&snapshot.Metadata{ID: 1}, location, true)
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), name) {
		t.Errorf("%v", err)
	}
}

// A life that begins with a claim is cut after each of its operations: the snapshot is whole as long as it may be needed, and gone,
// with nothing left of it, when the next run has completed a checkpoint and swept.
func TestEveryCutOfAClaim(t *testing.T) {
	for n := 1; ; n++ {
		m := memoryWith(t, "/d")
		d := openJob(t, m, "/d")
		location := mustTake(t, d, 5, snapshot.Savepoint, "/sp")
		must(t, d.Close())
		f := Faulty(m, &Rule{Skip: n, Err: errCut})
		err := claimingLife(f, location)
		if err != nil && !errors.Is(err, errCut) {
			t.Fatalf("cut after %d operations: %v", n, err)
		}
		for seed := range uint64(4) {
			checkClaimed(t, fmt.Sprintf("crash after %d operations, seed %d", n, seed), m.CrashClone(crashRNG(uint64(n), seed)), location)
		}
		if err == nil {
			return
		}
	}
}

// claimingLife claims a snapshot, takes a checkpoint, and deletes what it has claimed.
func claimingLife(fsys FS, location string) error {
	d, err := OpenJobDir(fsys, "/d", testJob)
	if err != nil {
		return err
	}
	m, _, err := ReadMetadata(fsys, location)
	if err != nil {
		return err
	}
	if err := d.StartFrom(m, location, true); err != nil {
		return err
	}
	if _, err := take(d, 6, snapshot.Checkpoint, ""); err != nil {
		return err
	}
	return d.Discard(location)
}

func checkClaimed(t *testing.T, what string, m *MemFS, location string) {
	t.Helper()
	d := openJob(t, m, "/d")
	md, at, err := d.Latest()
	switch {
	case errors.Is(err, ErrNone): // the start is not on record
		startFrom(t, m, d, location, true)
	case err != nil:
		t.Fatalf("%s: %v", what, err)
	default:
		if err := verify(d.Open, md, at); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	if at == location && !d.Owns(location) {
		t.Errorf("%s: the claim is forgotten", what)
	}
	mustTake(t, d, 8, snapshot.Checkpoint, "")
	if d.Owns(location) {
		must(t, d.Discard(location))
	}
	if _, err := d.Sweep(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if _, err := m.Stat(location); !errors.Is(err, iofs.ErrNotExist) {
		entries, _ := m.List(location)
		t.Errorf("%s: there is left %v, %v", what, entries, err)
	}
}
