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

func wantGone(t *testing.T, fsys FS, location string) {
	t.Helper()
	if _, err := fsys.Stat(location); !errors.Is(err, iofs.ErrNotExist) {
		entries, _ := fsys.List(location)
		t.Errorf("%s is left: %v, %v", location, entries, err)
	}
}

func TestDispose(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, dir string) {
		d := openJob(t, fsys, path.Join(dir, "ckpt"))
		target := path.Join(dir, "sp")
		for i, spell := range []func(string) string{
			func(s string) string { return s },
			func(s string) string { return s + "/" },
			func(s string) string { return "file:" + s + "/" + metadataName },
		} {
			location := mustTake(t, d, base.CheckpointID(i+1), snapshot.Savepoint, target)
			left, err := Dispose(fsys, spell(location))
			if left != nil || err != nil {
				t.Errorf("left %v, %v", left, err)
			}
			wantGone(t, fsys, location)
		}
		_, err := Dispose(fsys, path.Join(target, "savepoint-0"))
		isErr(t, "disposing of what is not there", err, iofs.ErrNotExist)
	})
}

// Only what belongs to it goes: what else somebody has put there stays, and is told.
func TestDisposeLeavesWhatIsNotItsOwn(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	location := mustTake(t, d, 1, snapshot.Savepoint, "/sp")
	must(t, writeSynced(m, path.Join(location, "notes.txt"), []byte("for later")))
	must(t, m.Mkdir(path.Join(location, "more")))
	left, err := Dispose(m, location)
	if err != nil || !slices.Equal(left, []string{"more", "notes.txt"}) {
		t.Errorf("left %v, %v", left, err)
	}
	if got := contents(t, m, path.Join(location, "notes.txt")); got != "for later" {
		t.Errorf("the notes are %q", got)
	}
	_, err = Dispose(m, location)
	isErr(t, "disposing twice", err, iofs.ErrNotExist)
}

func TestDisposeRefuses(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	live := mustTake(t, d, 1, snapshot.Checkpoint, "")
	savepoint := mustTake(t, d, 2, snapshot.Savepoint, "/sp")
	startFrom(t, m, d, savepoint, true)
	damaged := mustTake(t, d, 3, snapshot.Savepoint, "/sp")
	rewrite(t, m, path.Join(damaged, metadataName), func(b []byte) []byte { return b[:20] })
	must(t, writeSynced(m, "/sp/file", nil))
	for where, want := range map[string]string{
		live:        "is needed by the running job " + string(testJob),
		savepoint:   "is needed by the running job " + string(testJob),
		damaged:     "to be rid of it, remove the directory",
		"/sp":       "(but in its directories savepoint-",
		"/sp/file":  "is a file",
		"/nowhere":  "there is no such directory",
		"s3://a/sp": "scheme",
		"":          "empty",
	} {
		if _, err := Dispose(m, where); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", where, err)
		}
	}
	for _, location := range []string{live, savepoint, damaged} {
		if _, err := m.Stat(path.Join(location, metadataName)); err != nil {
			t.Error(err)
		}
	}
	must(t, d.Close())
	for _, location := range []string{live, savepoint} {
		if _, err := Dispose(m, location); err != nil {
			t.Error(err)
		}
		wantGone(t, m, location)
	}
	wantMissed(t, "the job whose checkpoints are gone", openJob(t, m, "/d"), savepoint)
}

// However far a disposal has come when the machine crashes: there is a whole snapshot, or none, and to dispose of it again removes the
// rest.
func TestEveryCutOfADisposal(t *testing.T) {
	for n := 0; ; n++ {
		m := memoryWith(t, "/d")
		d := openJob(t, m, "/d")
		location := mustTake(t, d, 1, snapshot.Savepoint, "/sp")
		must(t, d.Close())
		_, err := Dispose(Faulty(m, &Rule{Skip: n, Err: errCut}), location)
		if err != nil && !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		for seed := range uint64(4) {
			after := m.CrashClone(crashRNG(uint64(n), seed))
			what := fmt.Sprintf("crash after %d operations, seed %d", n, seed)
			if md, _, err := ReadMetadata(after, location); err == nil {
				must(t, verify(func(l string, h snapshot.Handle) (Reader, error) { return OpenHandle(after, l, h) }, md, location))
			} else if !errors.Is(err, iofs.ErrNotExist) || errors.Is(err, ErrDamaged) {
				t.Fatalf("%s: %v", what, err)
			}
			if _, err := Dispose(after, location); err != nil && !errors.Is(err, iofs.ErrNotExist) {
				t.Fatalf("%s: %v", what, err)
			}
			if entries, _ := after.List(location); len(entries) > 0 {
				t.Errorf("%s: left %v", what, entries)
			}
		}
		if err == nil {
			return
		}
	}
}
