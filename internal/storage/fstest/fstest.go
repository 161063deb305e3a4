package fstest

import (
	"errors"
	"io"
	iofs "io/fs"
	"path"
	"slices"
	"sync"
	"testing"

	"github.com/weirstream/weir/internal/storage"
)

// Place is where a check works: a file system, and an empty directory on it that is its own.
type Place struct {
	FS  storage.FS
	Dir string
}

// Test runs all checks, each in a place that open makes.
func Test(t *testing.T, open func(t testing.TB) Place) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.run(look{t, open(t)}) })
	}
}

// checks are the contract.
var checks = []struct {
	name string
	run  func(look)
}{
	{"what is written is read", testWritten}, {"creation is exclusive", testCreate}, {"one of many creates", testCreateRace}, {"closed is closed", testClosed},
	{"reads where it is asked", testRead}, {"links never replace", testLink}, {"renames replace at once", testRename}, {"removes", testRemove},
	{"directories", testDirectories}, {"lists in order", testList}, {"what is missing is told", testMissing}, {"one has the lock", testLock},
	{"one of many has the lock", testLockRace}, {"resolves", testResolve},
}

// look is a check under way.
type look struct {
	testing.TB
	Place
}

func (l look) at(names ...string) string { return path.Join(append([]string{l.Dir}, names...)...) }

func (l look) must(what string, err error) {
	l.Helper()
	if err != nil {
		l.Fatalf("%s: %v", what, err)
	}
}

// is wants an error of a kind.
func (l look) is(what string, err, want error) {
	l.Helper()
	if !errors.Is(err, want) {
		l.Errorf("%s: %v; want an error that is %v", what, err, want)
	}
}

// refused wants an error of any kind.
func (l look) refused(what string, err error) {
	l.Helper()
	if err == nil {
		l.Errorf("%s: no error", what)
	}
}

// write makes a file.
func (l look) write(name, text string) {
	l.Helper()
	f, err := l.FS.Create(name)
	l.must("creating "+name, err)
	_, err = f.Write([]byte(text))
	l.must("writing "+name, err)
	l.must("syncing "+name, f.Sync())
	l.must("closing "+name, f.Close())
}

// holds wants a file's content.
func (l look) holds(name, want string) {
	l.Helper()
	r, err := l.FS.Open(name)
	l.must("opening "+name, err)
	defer r.Close()
	got, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	if err != nil || string(got) != want {
		l.Errorf("%s holds %q (%v), want %q", name, got, err, want)
	}
}

func testWritten(l look) {
	f, err := l.FS.Create(l.at("a"))
	l.must("creating", err)
	for _, part := range []string{"hello ", "", "world"} {
		n, err := f.Write([]byte(part))
		if n != len(part) || err != nil {
			l.Errorf("writing %q: %d, %v", part, n, err)
		}
		l.must("syncing", f.Sync())
	}
	l.must("closing", f.Close())
	l.must("syncing the directory", l.FS.SyncDir(l.Dir))
	l.holds(l.at("a"), "hello world")
	l.write(l.at("empty"), "")
	l.holds(l.at("empty"), "")
}

func testCreate(l look) {
	l.write(l.at("a"), "first")
	f, err := l.FS.Create(l.at("a"))
	l.is("creating what is there", err, iofs.ErrExist)
	if err == nil {
		f.Close()
	}
	l.holds(l.at("a"), "first")
	l.must("making a directory", l.FS.Mkdir(l.at("d")))
	_, err = l.FS.Create(l.at("d"))
	l.is("creating what is a directory", err, iofs.ErrExist)
	_, err = l.FS.Create(l.at("no", "a"))
	l.is("creating where no directory is", err, iofs.ErrNotExist)
	_, err = l.FS.Create(l.at("a", "b"))
	l.refused("creating in a file", err)
}

// many does something on several goroutines at once, and returns how often it was done.
func many(try func() error) (done int) {
	var group sync.WaitGroup
	var mu sync.Mutex
	for range 8 {
		group.Go(func() {
			if try() == nil {
				mu.Lock()
				done++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return done
}

func testCreateRace(l look) {
	for _, c := range []struct {
		what string
		try  func() error
	}{
		{"created a file", func() error {
			f, err := l.FS.Create(l.at("a"))
			if err != nil {
				return err
			}
			return f.Close()
		}},
		{"made a directory", func() error { return l.FS.Mkdir(l.at("d")) }},
		{"linked a file", func() error { return l.FS.Link(l.at("a"), l.at("b")) }},
	} {
		if n := many(c.try); n != 1 {
			l.Errorf("%d of 8 at once have %s of one name; want 1", n, c.what)
		}
	}
}

func testClosed(l look) {
	f, err := l.FS.Create(l.at("a"))
	l.must("creating", err)
	l.must("closing", f.Close())
	_, err = f.Write([]byte("x"))
	l.refused("writing to a closed file", err)
	l.refused("syncing a closed file", f.Sync())
	l.refused("closing a closed file", f.Close())
}

func testRead(l look) {
	l.write(l.at("a"), "0123456789")
	r, err := l.FS.Open(l.at("a"))
	l.must("opening", err)
	defer r.Close()
	if r.Size() != 10 {
		l.Errorf("its size is %d, want 10", r.Size())
	}
	p := make([]byte, 4)
	if n, err := r.ReadAt(p, 3); err != nil && !errors.Is(err, io.EOF) || string(p[:n]) != "3456"[:n] || n == 0 {
		l.Errorf("reading 4 bytes from 3: %q, %v", p[:n], err)
	}
	if n, err := r.ReadAt(p, 8); n == 2 && !errors.Is(err, io.EOF) || string(p[:n]) != "89"[:n] {
		l.Errorf("reading over the end: %q, %v", p[:n], err)
	}
	if n, err := r.ReadAt(p, 10); n != 0 || !errors.Is(err, io.EOF) {
		l.Errorf("reading behind the end: %d bytes, %v", n, err)
	}
	_, err = r.ReadAt(p, -1)
	l.refused("reading before the beginning", err)
	_, err = l.FS.Open(l.Dir)
	l.refused("opening a directory as a file", err)
}

func testLink(l look) {
	l.write(l.at("a"), "A")
	l.write(l.at("b"), "B")
	l.is("linking over what is there", l.FS.Link(l.at("a"), l.at("b")), iofs.ErrExist)
	l.holds(l.at("b"), "B")
	l.must("linking", l.FS.Link(l.at("a"), l.at("c")))
	l.must("removing the first name", l.FS.Remove(l.at("a")))
	l.holds(l.at("c"), "A")
}

func testRename(l look) {
	l.write(l.at("a"), "A")
	l.write(l.at("b"), "B")
	l.must("renaming over a file", l.FS.Rename(l.at("a"), l.at("b")))
	l.holds(l.at("b"), "A")
	_, err := l.FS.Stat(l.at("a"))
	l.is("looking at the old name", err, iofs.ErrNotExist)
	l.must("renaming", l.FS.Rename(l.at("b"), l.at("c")))
	l.holds(l.at("c"), "A")
}

func testRemove(l look) {
	l.must("making a directory", l.FS.Mkdir(l.at("d")))
	l.write(l.at("d", "a"), "")
	l.refused("removing a directory that is not empty", l.FS.Remove(l.at("d")))
	l.must("removing a file", l.FS.Remove(l.at("d", "a")))
	l.must("removing an empty directory", l.FS.Remove(l.at("d")))
	_, err := l.FS.Stat(l.at("d"))
	l.is("looking at what was removed", err, iofs.ErrNotExist)
	l.write(l.at("a"), "again")
	l.must("removing", l.FS.Remove(l.at("a")))
	l.write(l.at("a"), "and again")
	l.holds(l.at("a"), "and again")
}

func testDirectories(l look) {
	deep := l.at("x", "y", "z")
	l.must("making directories", storage.MkdirAll(l.FS, deep))
	l.must("making them again", storage.MkdirAll(l.FS, deep))
	l.is("making one that is there", l.FS.Mkdir(deep), iofs.ErrExist)
	l.write(path.Join(deep, "a"), "aa")
	l.is("making one where a file is", l.FS.Mkdir(path.Join(deep, "a")), iofs.ErrExist)
	l.must("syncing one", l.FS.SyncDir(deep))
	l.refused("making one in a file", storage.MkdirAll(l.FS, path.Join(deep, "a", "b")))
	e, err := l.FS.Stat(path.Join(deep, "a"))
	if err != nil || e != (storage.Entry{Name: "a", Size: 2}) {
		l.Errorf("a file is described as %+v, %v", e, err)
	}
	if e, err = l.FS.Stat(deep); err != nil || e.Name != "z" || !e.Dir {
		l.Errorf("a directory is described as %+v, %v", e, err)
	}
}

func testList(l look) {
	for _, name := range []string{"b", "10", "a", "9", ".hidden", "B"} {
		l.write(l.at(name), name)
	}
	l.must("making a directory", l.FS.Mkdir(l.at("c")))
	l.write(l.at("c", "deeper"), "")
	entries, err := l.FS.List(l.Dir)
	l.must("listing", err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
		if e.Dir != (e.Name == "c") || !e.Dir && e.Size != int64(len(e.Name)) {
			l.Errorf("listed as %+v", e)
		}
	}
	if want := []string{".hidden", "10", "9", "B", "a", "b", "c"}; !slices.Equal(names, want) {
		l.Errorf("listed are %q, want %q: all, ordered by name", names, want)
	}
}

func testMissing(l look) {
	no := l.at("no")
	for what, do := range map[string]func() error{
		"opening": func() error { _, err := l.FS.Open(no); return err }, "removing": func() error { return l.FS.Remove(no) },
		"listing": func() error { _, err := l.FS.List(no); return err }, "looking at": func() error { _, err := l.FS.Stat(no); return err },
		"linking": func() error { return l.FS.Link(no, l.at("x")) }, "renaming": func() error { return l.FS.Rename(no, l.at("x")) },
		"syncing": func() error { return l.FS.SyncDir(no) }, "making a directory in": func() error { return l.FS.Mkdir(path.Join(no, "d")) },
	} {
		l.is(what+" what is not there", do(), iofs.ErrNotExist)
	}
}

func testLock(l look) {
	name := l.at("lock")
	first, err := l.FS.Lock(name, "process 12")
	l.must("locking", err)
	var locked *storage.LockedError
	if second, err := l.FS.Lock(name, "process 34"); !errors.As(err, &locked) {
		l.Errorf("locking what is locked: %v; want a *storage.LockedError", err)
		if err == nil {
			second.Close()
		}
	} else if locked.Owner != "process 12" || locked.Path != name {
		l.Errorf("the error says that %q is the owner, of %q", locked.Owner, locked.Path)
	}
	l.must("unlocking", first.Close())
	second, err := l.FS.Lock(name, "process 34")
	l.must("locking what was unlocked", err)
	l.must("unlocking", second.Close())
}

func testLockRace(l look) {
	var mu sync.Mutex
	var owners []io.Closer
	n := many(func() error {
		lock, err := l.FS.Lock(l.at("lock"), "me")
		if err == nil {
			mu.Lock()
			owners = append(owners, lock)
			mu.Unlock()
		}
		return err
	})
	if n != 1 {
		l.Errorf("%d of 8 at once have the lock; want 1", n)
	}
	for _, o := range owners {
		l.must("unlocking", o.Close())
	}
}

func testResolve(l look) {
	l.must("making a directory", l.FS.Mkdir(l.at("d")))
	for spelt, want := range map[string]string{
		l.Dir + "/d": l.at("d"), l.Dir + "//d/": l.at("d"), l.Dir + "/d/../d/new": l.at("d", "new"), l.Dir + "/new/../other": l.at("other"),
	} {
		if got, err := l.FS.Resolve(spelt); got != want || err != nil {
			l.Errorf("%q resolves to %q, %v; want %q", spelt, got, err, want)
		}
	}
}
