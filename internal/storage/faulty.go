package storage

import (
	"io"
	"path"
	"strings"
	"sync"
)

// Op is an operation of a file system, for rules.
type Op string

// The operations that a rule can name. OpWrite, OpSync, OpClose and OpRead are those of open files.
const (
	OpCreate  Op = "create"
	OpOpen    Op = "open"
	OpLink    Op = "link"
	OpRename  Op = "rename"
	OpRemove  Op = "remove"
	OpMkdir   Op = "mkdir"
	OpList    Op = "list"
	OpStat    Op = "stat"
	OpSyncDir Op = "syncdir"
	OpLock    Op = "lock"
	OpWrite   Op = "write"
	OpSync    Op = "sync"
	OpClose   Op = "close"
	OpRead    Op = "read"
)

// Rule makes operations of a file system go wrong. The first rule of a Faulty that applies decides alone.
type Rule struct {
	// Op is the operation; "" is any.
	Op Op
	// Path is a pattern of path.Match, for the last name of the path, or for the whole when it has a slash; "" is any.
	Path string
	// Skip operations pass first; then Count of them are struck, and all of them when it is 0.
	Skip, Count int
	// Hook is called first, on the caller's goroutine: it may note, wait or change things.
	Hook func(op Op, path string)
	// Short lets a read or write do at most so many bytes; 0: no limit.
	Short int
	// Err is the error to return, after Short bytes of a write (a torn write). All others do nothing then, but for a close,
	// which does release the file. nil: the operation goes on, short or not.
	Err error

	seen int
}

// FaultyFS is a file system on which rules make things go wrong.
type FaultyFS struct {
	under FS
	mu    sync.Mutex // protects rules
	rules []*Rule
}

// Faulty is the file system under with faults.
func Faulty(under FS, rules ...*Rule) *FaultyFS { return &FaultyFS{under: under, rules: rules} }

// SetRules replaces the rules: with none the file system is healthy again.
func (f *FaultyFS) SetRules(rules ...*Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = rules
}

// strike is the rule that applies now, after its hook was called. The zero Rule: none.
func (f *FaultyFS) strike(op Op, name string) Rule {
	r := f.match(op, name)
	if r.Hook != nil {
		r.Hook(op, name)
	}
	if r.Err != nil {
		r.Err = pathError(string(op), name, r.Err)
	}
	return r
}

func (f *FaultyFS) match(op Op, name string) Rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.rules {
		if !r.matches(op, name) {
			continue
		}
		r.seen++
		if r.seen > r.Skip && (r.Count == 0 || r.seen <= r.Skip+r.Count) {
			return *r
		}
	}
	return Rule{}
}

func (r *Rule) matches(op Op, name string) bool {
	if r.Op != "" && r.Op != op {
		return false
	}
	if r.Path == "" {
		return true
	}
	if !strings.Contains(r.Path, "/") {
		name = path.Base(name)
	}
	matched, err := path.Match(r.Path, name)
	return matched && err == nil
}

// do performs an operation unless a rule fails it.
func (f *FaultyFS) do(op Op, name string, perform func() error) error {
	if r := f.strike(op, name); r.Err != nil {
		return r.Err
	}
	return perform()
}

// Create implements FS.
func (f *FaultyFS) Create(name string) (File, error) {
	if r := f.strike(OpCreate, name); r.Err != nil {
		return nil, r.Err
	}
	file, err := f.under.Create(name)
	if err != nil {
		return nil, err
	}
	return &faultyFile{f, name, file}, nil
}

// Open implements FS.
func (f *FaultyFS) Open(name string) (Reader, error) {
	if r := f.strike(OpOpen, name); r.Err != nil {
		return nil, r.Err
	}
	reader, err := f.under.Open(name)
	if err != nil {
		return nil, err
	}
	return &faultyReader{f, name, reader}, nil
}

// Link implements FS; rules see the new path.
func (f *FaultyFS) Link(oldPath, newPath string) error {
	return f.do(OpLink, newPath, func() error { return f.under.Link(oldPath, newPath) })
}

// Rename implements FS; rules see the new path.
func (f *FaultyFS) Rename(oldPath, newPath string) error {
	return f.do(OpRename, newPath, func() error { return f.under.Rename(oldPath, newPath) })
}

// Remove implements FS.
func (f *FaultyFS) Remove(name string) error {
	return f.do(OpRemove, name, func() error { return f.under.Remove(name) })
}

// Mkdir implements FS.
func (f *FaultyFS) Mkdir(name string) error {
	return f.do(OpMkdir, name, func() error { return f.under.Mkdir(name) })
}

// SyncDir implements FS.
func (f *FaultyFS) SyncDir(name string) error {
	return f.do(OpSyncDir, name, func() error { return f.under.SyncDir(name) })
}

// List implements FS.
func (f *FaultyFS) List(dir string) ([]Entry, error) {
	if r := f.strike(OpList, dir); r.Err != nil {
		return nil, r.Err
	}
	return f.under.List(dir)
}

// Stat implements FS.
func (f *FaultyFS) Stat(name string) (Entry, error) {
	if r := f.strike(OpStat, name); r.Err != nil {
		return Entry{}, r.Err
	}
	return f.under.Stat(name)
}

// Lock implements FS.
func (f *FaultyFS) Lock(name, owner string) (io.Closer, error) {
	if r := f.strike(OpLock, name); r.Err != nil {
		return nil, r.Err
	}
	return f.under.Lock(name, owner)
}

// Resolve implements FS; it never fails by a rule.
func (f *FaultyFS) Resolve(name string) (string, error) { return f.under.Resolve(name) }

type faultyFile struct {
	fs   *FaultyFS
	name string
	file File
}

func (f *faultyFile) Write(p []byte) (int, error) {
	r := f.fs.strike(OpWrite, f.name)
	switch {
	case r.Short > 0:
		p = p[:min(r.Short, len(p))]
	case r.Err != nil:
		return 0, r.Err
	}
	n, err := f.file.Write(p)
	if err == nil {
		err = r.Err
	}
	return n, err
}

func (f *faultyFile) Sync() error { return f.fs.do(OpSync, f.name, f.file.Sync) }

func (f *faultyFile) Close() error {
	r := f.fs.strike(OpClose, f.name)
	if err := f.file.Close(); r.Err == nil {
		return err
	}
	return r.Err
}

type faultyReader struct {
	fs   *FaultyFS
	name string
	Reader
}

func (f *faultyReader) ReadAt(p []byte, off int64) (int, error) {
	r := f.fs.strike(OpRead, f.name)
	if r.Err != nil {
		return 0, r.Err
	}
	if r.Short > 0 {
		p = p[:min(r.Short, len(p))]
	}
	return f.Reader.ReadAt(p, off)
}
