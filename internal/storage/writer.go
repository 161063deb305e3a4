package storage

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/weirstream/weir/internal/snapshot"
)

// Writer makes the files of one checkpoint. It is safe for concurrent use; its objects are not.
type Writer interface {
	// Create begins an object. The name is unique within the checkpoint; any text will do, and whoever looks at the directory
	// finds it there in a file's name.
	Create(name string) (Object, error)
	// CreateFile is Create of an object that becomes a file of its own however small it is, where checkpoints are files. The
	// name's extension, as ".avro", stays that of the file.
	CreateFile(name string) (Object, error)
	// CreateShared is Create of an object that later checkpoints may refer to, where there is a place for such: its handle then names
	// the file absolutely.
	CreateShared(name string) (Object, error)
}

// Object is bytes being written into a checkpoint. It ends with exactly one of Commit and Abort.
type Object interface {
	io.Writer
	// Commit makes the bytes durable and says where they are. After an error, of a Write too, nothing is left of them.
	Commit() (snapshot.Handle, error)
	// Abort removes what was written.
	Abort() error
}

// WriterOptions tune a Writer; the zero value is the default.
type WriterOptions struct {
	// InlineMax is the size in bytes up to which an object travels within the metadata; 0 is DefaultInlineMax, a negative one
	// puts every object into a file. Larger: more in the metadata, which passes through the master;
	// smaller: more small files.
	InlineMax int
	// MemoryMax is the size in bytes that an object may have where the master's memory is the storage; 0 is DefaultMemoryMax.
	MemoryMax int64
}

const (
	// DefaultInlineMax is the default of WriterOptions.InlineMax (Flink's data-inline-threshold).
	DefaultInlineMax = 20 << 10
	// DefaultMemoryMax is the default of WriterOptions.MemoryMax, as Flink's.
	DefaultMemoryMax = 5 << 20
)

// NewWriter writes files of the checkpoint at location. This is all that a worker needs, which knows the location from the
// barrier and has no part in completing the checkpoint.
func NewWriter(fsys FS, location string, o WriterOptions) Writer {
	if o.InlineMax == 0 {
		o.InlineMax = DefaultInlineMax
	}
	if o.MemoryMax == 0 {
		o.MemoryMax = DefaultMemoryMax
	}
	if isMemory(location) {
		return memWriter{max: o.MemoryMax}
	}
	return &fileWriter{fs: fsys, location: location, inlineMax: o.InlineMax}
}

type fileWriter struct {
	fs        FS
	location  string
	inlineMax int
}

func (w *fileWriter) Create(name string) (Object, error) { return w.create(name, w.inlineMax) }

func (w *fileWriter) CreateFile(name string) (Object, error) { return w.create(name, -1) }

// CreateShared makes a file in shared/ beside the directory of the job's checkpoint; savepoints have none.
func (w *fileWriter) CreateShared(name string) (Object, error) {
	id, ok := numbered(path.Base(w.location), chkPrefix)
	if !ok {
		return w.Create(name)
	}
	o, err := w.newObject(name, w.inlineMax)
	if err != nil {
		return nil, err
	}
	o.dir = path.Join(path.Dir(w.location), sharedName)
	o.name = sharedFileName(id, name)
	o.handle = o.path()
	return o, nil
}

func (w *fileWriter) create(name string, inlineMax int) (Object, error) {
	o, err := w.newObject(name, inlineMax)
	if err != nil {
		return nil, err
	}
	return o, nil
}

func (w *fileWriter) newObject(name string, inlineMax int) (*fileObject, error) {
	if name == "" {
		return nil, errors.New("storage: an object needs a name")
	}
	file := fileName(name)
	return &fileObject{fs: w.fs, dir: w.location, name: file, handle: file, inlineMax: inlineMax}, nil
}

// nameMax keeps a file's name below the 255 bytes that file systems allow.
const nameMax = 150

// extMax is the most bytes of what counts as an extension, with its dot.
const extMax = 5

// fileName makes any text a file name: letters, digits, dashes and dots stay, all others become %XX; of a long one the checksum
// keeps what was cut off, and the extension stays. It never begins with an underscore or a dot, which Weir's own files and hidden ones do.
func fileName(text string) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || i > 0 && (c == '.' || c == '_')
		if plain {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() <= nameMax {
		return b.String()
	}
	ext := path.Ext(b.String())
	if len(ext) > extMax {
		ext = ""
	}
	return fmt.Sprintf("%s-%08x%s", b.String()[:nameMax], snapshot.Checksum(0, []byte(text)), ext)
}

// spillBytes is how much an object gathers before it writes to its file.
const spillBytes = 64 << 10

// fileObject gathers bytes in memory and begins a file when there are more than spillBytes, or on Commit when there are more
// than may travel inline.
type fileObject struct {
	fs        FS
	dir, name string
	handle    string // what the file is called in the handle: relative to the checkpoint's directory, or absolute
	inlineMax int
	buf       []byte
	file      File // nil: none yet
	size      int64
	crc       uint32
	err       error // the first; nothing works after it
	ended     bool
}

func (o *fileObject) path() string { return path.Join(o.dir, o.name) }

func (o *fileObject) Write(p []byte) (int, error) {
	if o.ended {
		return 0, fmt.Errorf("storage: writing %s after its end", o.path())
	}
	if o.err != nil {
		return 0, o.err
	}
	o.size += int64(len(p))
	o.crc = snapshot.Checksum(o.crc, p)
	if o.buf = append(o.buf, p...); len(o.buf) > spillBytes {
		o.spill()
	}
	if o.err != nil {
		return 0, o.err
	}
	return len(p), nil
}

// spill writes what was gathered to the file.
func (o *fileObject) spill() {
	if o.file == nil {
		if o.file, o.err = o.fs.Create(o.path()); o.err != nil {
			o.err = fmt.Errorf("storage: writing state: %w", o.err)
			return
		}
	}
	if err := writeAll(o.file, o.buf); err != nil {
		o.err = fmt.Errorf("storage: writing state to %s: %w", o.path(), err)
	}
	o.buf = o.buf[:0]
}

func (o *fileObject) Commit() (snapshot.Handle, error) {
	if o.ended {
		return snapshot.Handle{}, fmt.Errorf("storage: %s was ended twice", o.path())
	}
	if o.err == nil && o.file == nil && len(o.buf) <= o.inlineMax {
		o.ended = true
		return snapshot.InlineHandle(o.buf), nil
	}
	if o.err == nil {
		o.spill()
	}
	if o.err == nil {
		o.sync()
	}
	if o.err != nil {
		return snapshot.Handle{}, errors.Join(o.err, o.Abort())
	}
	o.ended = true
	return snapshot.Handle{File: o.handle, Size: o.size, CRC: o.crc}, nil
}

// sync makes the file and its name durable. The error of Close counts: on some file systems only it tells of a full disk.
func (o *fileObject) sync() {
	err := errors.Join(o.file.Sync(), o.file.Close())
	o.file = closedFile{}
	if err == nil {
		err = o.fs.SyncDir(o.dir)
	}
	if err != nil {
		o.err = fmt.Errorf("storage: syncing state in %s: %w", o.path(), err)
	}
}

// closedFile stands for a file that was made and closed.
type closedFile struct{ File }

func (closedFile) Close() error { return nil }

func (o *fileObject) Abort() error {
	if o.ended {
		return nil
	}
	o.ended = true
	if o.file == nil {
		return nil
	}
	closeErr := o.file.Close()
	if err := ignoreMissing(o.fs.Remove(o.path())); err != nil {
		return fmt.Errorf("storage: removing unfinished state: %w", errors.Join(err, closeErr))
	}
	return nil // what is removed need not have been closed well
}

// memWriter keeps objects in memory, for the acknowledgement to carry to the master.
type memWriter struct{ max int64 }

func (w memWriter) Create(string) (Object, error) { return &memObject{max: w.max}, nil }

func (w memWriter) CreateFile(name string) (Object, error) { return w.Create(name) }

func (w memWriter) CreateShared(name string) (Object, error) { return w.Create(name) }

type memObject struct {
	max  int64
	buf  []byte
	size int64
}

// Write forgets what is too much, but counts it: the error of Commit tells the whole size.
func (o *memObject) Write(p []byte) (int, error) {
	if o.size += int64(len(p)); o.size > o.max {
		o.buf = nil
	} else {
		o.buf = append(o.buf, p...)
	}
	return len(p), nil
}

func (o *memObject) Commit() (snapshot.Handle, error) {
	if o.size > o.max {
		return snapshot.Handle{}, fmt.Errorf("storage: Size of the state is larger than the maximum permitted memory-backed state. "+
			"Size=%d, maxSize=%d. Consider using a different checkpoint storage: set execution.checkpointing.dir to a directory", o.size, o.max)
	}
	return snapshot.InlineHandle(o.buf), nil
}

func (o *memObject) Abort() error { return nil }
