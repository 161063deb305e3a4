package fstest

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/storage"
)

// TestOwn: the engine's own file systems pass.
func TestOwn(t *testing.T) {
	t.Run("disk", func(t *testing.T) {
		Test(t, func(t testing.TB) Place {
			dir, err := storage.Disk().Resolve(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			return Place{storage.Disk(), dir}
		})
	})
	t.Run("memory", func(t *testing.T) { Test(t, memory) })
	t.Run("faulty", func(t *testing.T) {
		Test(t, func(t testing.TB) Place { return Place{storage.Faulty(memory(t).FS), "/tmp"} })
	})
}

func memory(t testing.TB) Place {
	m := storage.Memory()
	if err := storage.MkdirAll(m, "/tmp"); err != nil {
		t.Fatal(err)
	}
	return Place{m, "/tmp"}
}

// broken is a file system with a mistake.
type broken struct {
	storage.FS
	mistake string
}

func (b broken) Create(name string) (storage.File, error) {
	f, err := b.FS.Create(name)
	if b.mistake == "create is not exclusive" && errors.Is(err, iofs.ErrExist) {
		if err := b.FS.Remove(name); err != nil {
			return nil, err
		}
		return b.FS.Create(name)
	}
	if b.mistake == "writes after close" && err == nil {
		return &careless{File: f}, nil
	}
	return f, err
}

// careless takes what comes after its end.
type careless struct {
	storage.File
	closed bool
}

func (f *careless) Write(p []byte) (int, error) {
	if f.closed {
		return len(p), nil
	}
	return f.File.Write(p)
}
func (f *careless) Close() error { f.closed = true; return f.File.Close() }

func (b broken) Link(from, to string) error {
	if b.mistake == "link replaces" {
		_ = b.FS.Remove(to)
	}
	return b.FS.Link(from, to)
}

func (b broken) Rename(from, to string) error {
	if _, err := b.FS.Stat(to); b.mistake == "rename never replaces" && err == nil {
		return fmt.Errorf("rename %s: %w", to, iofs.ErrExist)
	}
	return b.FS.Rename(from, to)
}

func (b broken) List(dir string) ([]storage.Entry, error) {
	entries, err := b.FS.List(dir)
	if b.mistake == "lists in any order" {
		slices.Reverse(entries)
	}
	return entries, err
}

func (b broken) Open(name string) (storage.Reader, error) {
	r, err := b.FS.Open(name)
	if b.mistake == "errors of its own kind" && err != nil {
		return nil, errors.New("404 not found")
	}
	return r, err
}

func (b broken) Lock(name, owner string) (io.Closer, error) {
	if b.mistake == "everybody has the lock" {
		return io.NopCloser(nil), nil
	}
	return b.FS.Lock(name, owner)
}

// failure is a testing.TB that may fail without failing the test.
type failure struct {
	testing.TB
	said []string
}

func (f *failure) Helper()                        {}
func (f *failure) Errorf(format string, a ...any) { f.said = append(f.said, fmt.Sprintf(format, a...)) }
func (f *failure) Fatalf(format string, a ...any) { f.Errorf(format, a...); runtime.Goexit() }

// TestBroken: each mistake is found, by the check whose it is.
func TestBroken(t *testing.T) {
	for mistake, by := range map[string]string{
		"": "", "create is not exclusive": "creation is exclusive", "writes after close": "closed is closed", "link replaces": "links never replace",
		"rename never replaces": "renames replace at once", "lists in any order": "lists in order", "errors of its own kind": "what is missing is told",
		"everybody has the lock": "one has the lock",
	} {
		found := map[string]string{}
		for _, c := range checks {
			f := &failure{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.run(look{f, Place{broken{memory(t).FS, mistake}, "/tmp"}})
			}()
			if <-done; len(f.said) > 0 {
				found[c.name] = strings.Join(f.said, "\n")
			}
		}
		if (by == "") != (len(found) == 0) || by != "" && found[by] == "" {
			t.Errorf("%q: found %v; want %q", mistake, found, by)
		}
	}
}
