package storage

import (
	"errors"
	"io"
	iofs "io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
)

// MemFS is a file system in memory that can crash.
//
// It keeps the two views that POSIX leaves apart: what running processes see, and what a crash of the machine surely leaves. A
// directory holds its durable names and a log of what was done to names since its last SyncDir; a file knows how much of it
// was synced. CrashClone makes a new file system of the durable names, some of the logged operations, and some of the
// unsynced bytes. (The naive way, a flag on each file "survives or not", finds neither a rename whose file was never synced,
// nor a file whose directory was never synced.)
type MemFS struct {
	mu    sync.Mutex // protects everything below, and all nodes
	root  *node
	locks map[string]string // path -> owner
}

// Memory is an empty file system in memory.
func Memory() *MemFS {
	return &MemFS{root: newDir(), locks: map[string]string{}}
}

// node is a file or a directory; it may have several names.
type node struct {
	isDir bool

	// Of a directory.
	names   map[string]*node // what processes see
	durable map[string]*node // what a crash leaves
	log     []change         // what leads from durable to names

	// Of a file.
	data   []byte
	synced int // bytes of data that a crash leaves
}

func newDir() *node {
	return &node{isDir: true, names: map[string]*node{}, durable: map[string]*node{}}
}

// change is one operation on a directory's names. It names its node, not only the old name, so that it means the same when
// operations before it were lost.
type change struct {
	gone string // a name that goes; "": none
	name string // a name that comes to be target; "": none
	node *node
}

func (c change) apply(names map[string]*node) {
	if c.gone != "" && names[c.gone] == c.node {
		delete(names, c.gone)
	}
	if c.name != "" {
		names[c.name] = c.node
	}
}

// record applies c to what processes see, and remembers it until the next SyncDir.
func (n *node) record(c change) {
	c.apply(n.names)
	n.log = append(n.log, c)
}

func pathError(op, name string, err error) error {
	return &iofs.PathError{Op: op, Path: name, Err: err}
}

var (
	errNotDir   = errors.New("not a directory")
	errIsDir    = errors.New("is a directory")
	errNotEmpty = errors.New("directory not empty")
)

// find walks to a node; nil: there is none.
func (m *MemFS) find(name string) *node {
	at := m.root
	for part := range strings.SplitSeq(strings.Trim(name, "/"), "/") {
		if part == "" {
			continue
		}
		if at = at.names[part]; at == nil {
			return nil
		}
	}
	return at
}

// parent is the directory that holds name, and the name within it.
func (m *MemFS) parent(op, name string) (*node, string, error) {
	dir := m.find(path.Dir(name))
	switch {
	case dir == nil:
		return nil, "", pathError(op, name, iofs.ErrNotExist)
	case !dir.isDir:
		return nil, "", pathError(op, name, errNotDir)
	}
	return dir, path.Base(name), nil
}

// add gives a node a new name.
func (m *MemFS) add(op, name string, n *node) error {
	dir, base, err := m.parent(op, name)
	if err != nil {
		return err
	}
	if dir.names[base] != nil {
		return pathError(op, name, iofs.ErrExist)
	}
	dir.record(change{name: base, node: n})
	return nil
}

// Create implements FS.
func (m *MemFS) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := &node{}
	if err := m.add("create", name, n); err != nil {
		return nil, err
	}
	return &memFile{fs: m, name: name, node: n}, nil
}

// Mkdir implements FS.
func (m *MemFS) Mkdir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.add("mkdir", name, newDir())
}

// Open implements FS.
func (m *MemFS) Open(name string) (Reader, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	switch {
	case n == nil:
		return nil, pathError("open", name, iofs.ErrNotExist)
	case n.isDir:
		return nil, pathError("open", name, errIsDir)
	}
	return &memReader{fs: m, name: name, node: n, size: int64(len(n.data))}, nil
}

// Link implements FS.
func (m *MemFS) Link(oldPath, newPath string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.sibling("link", oldPath, newPath)
	if err != nil {
		return err
	}
	return m.add("link", newPath, n)
}

// Rename implements FS.
func (m *MemFS) Rename(oldPath, newPath string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.sibling("rename", oldPath, newPath)
	if err != nil {
		return err
	}
	dir, base, err := m.parent("rename", newPath)
	if err != nil {
		return err
	}
	if there := dir.names[base]; there != nil && there.isDir {
		return pathError("rename", newPath, iofs.ErrExist)
	}
	dir.record(change{gone: path.Base(oldPath), name: base, node: n})
	return nil
}

// sibling finds the file that is to get a new name in the same directory.
func (m *MemFS) sibling(op, oldPath, newPath string) (*node, error) {
	n := m.find(oldPath)
	switch {
	case n == nil:
		return nil, pathError(op, oldPath, iofs.ErrNotExist)
	case n.isDir:
		return nil, pathError(op, oldPath, errIsDir)
	case path.Dir(oldPath) != path.Dir(newPath):
		return nil, pathError(op, newPath, errors.New("another directory"))
	}
	return n, nil
}

// Remove implements FS.
func (m *MemFS) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent("remove", name)
	if err != nil {
		return err
	}
	n := dir.names[base]
	switch {
	case n == nil:
		return pathError("remove", name, iofs.ErrNotExist)
	case len(n.names) > 0:
		return pathError("remove", name, errNotEmpty)
	}
	dir.record(change{gone: base, node: n})
	return nil
}

// List implements FS.
func (m *MemFS) List(name string) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, err := m.dir("list", name)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(dir.names))
	for _, base := range slices.Sorted(maps.Keys(dir.names)) {
		entries = append(entries, dir.names[base].entry(base))
	}
	return entries, nil
}

func (m *MemFS) dir(op, name string) (*node, error) {
	n := m.find(name)
	switch {
	case n == nil:
		return nil, pathError(op, name, iofs.ErrNotExist)
	case !n.isDir:
		return nil, pathError(op, name, errNotDir)
	}
	return n, nil
}

func (n *node) entry(name string) Entry {
	return Entry{Name: name, Dir: n.isDir, Size: int64(len(n.data))}
}

// Stat implements FS.
func (m *MemFS) Stat(name string) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	if n == nil {
		return Entry{}, pathError("stat", name, iofs.ErrNotExist)
	}
	return n.entry(path.Base(name)), nil
}

// SyncDir implements FS.
func (m *MemFS) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, err := m.dir("sync", name)
	if err != nil {
		return err
	}
	dir.durable, dir.log = maps.Clone(dir.names), nil
	return nil
}

// Resolve implements FS: relative paths begin at the root, and there are no links.
func (m *MemFS) Resolve(name string) (string, error) { return path.Join("/", name), nil }

// Lock implements FS.
func (m *MemFS) Lock(name, owner string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if held, locked := m.locks[name]; locked {
		return nil, &LockedError{Path: name, Owner: held}
	}
	if err := m.add("lock", name, &node{}); err != nil && !errors.Is(err, iofs.ErrExist) {
		return nil, err
	}
	m.locks[name] = owner
	return &memLock{fs: m, name: name}, nil
}

// ReleaseLocks releases all locks, as a kernel does when their owners are killed.
func (m *MemFS) ReleaseLocks() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.locks = map[string]string{}
}

type memLock struct {
	fs   *MemFS
	name string
}

func (l *memLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	delete(l.fs.locks, l.name)
	return nil
}

// memFile is a file being written.
type memFile struct {
	fs     *MemFS
	name   string
	node   *node
	closed bool
}

func (f *memFile) Write(p []byte) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed {
		return 0, pathError("write", f.name, iofs.ErrClosed)
	}
	f.node.data = append(f.node.data, p...)
	return len(p), nil
}

func (f *memFile) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed {
		return pathError("sync", f.name, iofs.ErrClosed)
	}
	f.node.synced = len(f.node.data)
	return nil
}

func (f *memFile) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed {
		return pathError("close", f.name, iofs.ErrClosed)
	}
	f.closed = true
	return nil
}

// memReader is a file being read. It returns io.EOF together with the last bytes, as an io.ReaderAt may.
type memReader struct {
	fs   *MemFS
	name string
	node *node
	size int64
}

func (r *memReader) Size() int64  { return r.size }
func (r *memReader) Close() error { return nil }

func (r *memReader) ReadAt(p []byte, off int64) (int, error) {
	r.fs.mu.Lock()
	defer r.fs.mu.Unlock()
	if off < 0 {
		return 0, pathError("read", r.name, iofs.ErrInvalid)
	}
	if off >= int64(len(r.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, r.node.data[off:])
	if off+int64(n) == int64(len(r.node.data)) {
		return n, io.EOF
	}
	return n, nil
}
