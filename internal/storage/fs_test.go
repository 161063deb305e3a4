package storage

import (
	"bytes"
	"errors"
	"io"
	iofs "io/fs"
	"math/rand/v2"
	"path"
	"reflect"
	"syscall"
	"testing"
)

// eachFS runs a test on every kind of file system, in a directory of its own.
func eachFS(t *testing.T, test func(t *testing.T, fsys FS, dir string)) {
	t.Run("disk", func(t *testing.T) {
		dir, err := Disk().Resolve(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		test(t, Disk(), dir)
	})
	t.Run("memory", func(t *testing.T) { test(t, memoryWith(t, "/tmp"), "/tmp") })
	t.Run("faulty", func(t *testing.T) { test(t, Faulty(memoryWith(t, "/tmp")), "/tmp") })
}

func memoryWith(t testing.TB, dir string) *MemFS {
	t.Helper()
	m := Memory()
	must(t, MkdirAll(m, dir))
	return m
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func isErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func contents(t *testing.T, fsys FS, name string) string {
	t.Helper()
	b, err := readFile(fsys, name)
	must(t, err)
	return string(b)
}

// Package fstest has what every FS has to do; this is what is made of it here.

func TestRemoveAll(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, dir string) {
		sub := path.Join(dir, "sub")
		must(t, MkdirAll(fsys, path.Join(sub, "deeper")))
		must(t, writeSynced(fsys, path.Join(sub, "a"), nil))
		must(t, removeAll(fsys, sub))
		must(t, removeAll(fsys, sub))
		isErr(t, "what was removed", fsys.Remove(sub), iofs.ErrNotExist)
	})
}

// What was synced survives a crash; without a rng nothing else does.
func TestCrashKeepsWhatWasSynced(t *testing.T) {
	m := memoryWith(t, "/d")
	must(t, writeSynced(m, "/d/named", []byte("synced")))
	must(t, m.SyncDir("/d"))
	must(t, writeSynced(m, "/d/unnamed", []byte("synced")))
	f, err := m.Create("/d/growing")
	must(t, err)
	must(t, writeAll(f, []byte("synced")))
	must(t, errors.Join(f.Sync(), m.SyncDir("/d"), writeAll(f, []byte(" and not"))))
	must(t, m.Remove("/d/named"))
	must(t, m.Rename("/d/growing", "/d/renamed"))

	after := m.CrashClone(nil)
	for name, want := range map[string]string{"/d/named": "synced", "/d/unnamed": "synced", "/d/growing": "synced"} {
		if got := contents(t, after, name); got != want {
			t.Errorf("%s holds %q", name, got)
		}
	}
	if _, err := after.Stat("/d/renamed"); err == nil {
		t.Error("the rename survived")
	}
	if got := contents(t, m, "/d/renamed"); got != "synced and not" {
		t.Errorf("the crash touched the original: %q", got)
	}
}

// All combinations that a crash may leave do come up, and none that it may not.
func TestCrashKeepsAnySubset(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(200) {
		m := memoryWith(t, "/d")
		must(t, writeSynced(m, "/d/old", []byte("old")))
		must(t, m.SyncDir("/d"))
		must(t, writeSynced(m, "/d/new", []byte("new")))
		must(t, m.Rename("/d/new", "/d/old"))
		must(t, writeSynced(m, "/d/other", []byte("other")))
		after := m.CrashClone(rand.New(rand.NewPCG(seed, 1)))
		entries, err := after.List("/d")
		must(t, err)
		state := ""
		for _, e := range entries {
			state += e.Name + "=" + contents(t, after, "/d/"+e.Name) + " "
		}
		seen[state] = true
	}
	want := map[string]bool{}
	for _, renamed := range []string{"old=old ", "old=new ", "new=new old=old "} {
		want[renamed], want[renamed+"other=other "] = true, true
	}
	want["new=new old=old other=other "] = true
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("seen %v", seen)
	}
}

func TestCrashTearsUnsyncedBytes(t *testing.T) {
	lengths := map[int]bool{}
	zeros := false
	for seed := range uint64(100) {
		m := memoryWith(t, "/d")
		f, err := m.Create("/d/a")
		must(t, err)
		must(t, errors.Join(writeAll(f, bytes.Repeat([]byte{1}, 100)), f.Sync(), m.SyncDir("/d"), writeAll(f, bytes.Repeat([]byte{2}, 200))))
		got := contents(t, m.CrashClone(rand.New(rand.NewPCG(seed, 2))), "/d/a")
		if len(got) < 100 || got[:100] != string(bytes.Repeat([]byte{1}, 100)) {
			t.Fatalf("synced bytes are lost: %d bytes", len(got))
		}
		lengths[len(got)] = true
		zeros = zeros || bytes.IndexByte([]byte(got), 0) >= 0
	}
	if len(lengths) < 20 || !zeros {
		t.Errorf("%d lengths, zeros %v", len(lengths), zeros)
	}
}

func TestFaultyStrikesByRule(t *testing.T) {
	m := memoryWith(t, "/d")
	var seen []string
	f := Faulty(m,
		&Rule{Op: OpCreate, Path: "a*", Skip: 1, Count: 2, Err: syscall.ENOSPC},
		&Rule{Op: OpSyncDir, Path: "/d/x", Err: syscall.EIO},
		&Rule{Op: OpRemove, Hook: func(op Op, name string) { seen = append(seen, string(op)+" "+name) }},
		&Rule{Op: OpWrite, Path: "torn", Short: 3, Err: syscall.ENOSPC},
		&Rule{Op: OpRead, Path: "short", Short: 2},
		&Rule{Op: OpClose, Path: "closing", Err: syscall.EIO},
	)
	must(t, writeSynced(f, "/d/a1", nil))
	isErr(t, "the second", writeSynced(f, "/d/a2", nil), syscall.ENOSPC)
	must(t, writeSynced(f, "/d/b", nil))
	isErr(t, "the third", writeSynced(f, "/d/a2", nil), syscall.ENOSPC)
	must(t, writeSynced(f, "/d/a2", nil))
	must(t, f.SyncDir("/d"))
	isErr(t, "syncing", f.SyncDir("/d/x"), syscall.EIO)
	must(t, f.Remove("/d/b"))
	if want := []string{"remove /d/b"}; !reflect.DeepEqual(seen, want) {
		t.Errorf("%q", seen)
	}
	file, err := f.Create("/d/torn")
	must(t, err)
	n, err := file.Write([]byte("123456"))
	isErr(t, "the torn write", err, syscall.ENOSPC)
	if n != 3 || contents(t, m, "/d/torn") != "123" {
		t.Errorf("%d bytes, %q", n, contents(t, m, "/d/torn"))
	}
	must(t, writeSynced(f, "/d/short", []byte("123456")))
	if got := contents(t, f, "/d/short"); got != "123456" {
		t.Errorf("short reads give %q", got)
	}
	isErr(t, "closing", writeSynced(f, "/d/closing", nil), syscall.EIO)
	if _, err := m.Stat("/d/closing"); err == nil {
		t.Error("writeSynced leaves a file behind")
	}
	f.SetRules()
	must(t, f.SyncDir("/d"))
}

// A short write without an error is an error.
func TestShortWriteIsNoticed(t *testing.T) {
	f := Faulty(memoryWith(t, "/d"), &Rule{Op: OpWrite, Short: 3})
	isErr(t, "writing", writeSynced(f, "/d/a", []byte("123456")), io.ErrShortWrite)
}
