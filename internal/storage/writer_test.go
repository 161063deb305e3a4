package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/weirstream/weir/internal/snapshot"
)

// Small objects travel inline, larger ones in a file that is there exactly when it was committed.
func TestObjects(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, dir string) {
		for _, c := range []struct {
			what      string
			inlineMax int
			size      int
			inFile    bool
		}{
			{"nothing", 0, 0, false},
			{"the threshold", 0, DefaultInlineMax, false},
			{"one more", 0, DefaultInlineMax + 1, true},
			{"many buffers", 0, 5*spillBytes + 17, true},
			{"a threshold beyond the buffer", 2 * spillBytes, spillBytes, false},
			{"never inline", -1, 1, true},
			{"never inline, and nothing", -1, 0, true},
		} {
			body := bytes.Repeat([]byte("0123456"), c.size/7+1)[:c.size]
			w := NewWriter(fsys, dir, WriterOptions{InlineMax: c.inlineMax})
			o, err := w.Create(c.what)
			must(t, err)
			_, err = io.Copy(o, iotest.OneByteReader(bytes.NewReader(body[:min(c.size, 10)])))
			must(t, err)
			_, err = io.Copy(o, bytes.NewReader(body[min(c.size, 10):]))
			must(t, err)
			h, err := o.Commit()
			must(t, err)
			if (h.File != "") != c.inFile || h.Size != int64(c.size) || path.IsAbs(h.File) {
				t.Errorf("%s: %q, %d bytes inline of %d", c.what, h.File, len(h.Inline), h.Size)
			}
			r, err := OpenHandle(fsys, dir, h)
			must(t, err)
			got, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
			if must(t, err); !bytes.Equal(got, body) {
				t.Errorf("%s: other bytes come back", c.what)
			}
			must(t, r.Close())
			if _, err := o.Commit(); err == nil && c.inFile {
				t.Errorf("%s: committed twice", c.what)
			}
		}
	})
}

func TestAbortRemoves(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, dir string) {
		w := NewWriter(fsys, dir, WriterOptions{})
		for _, size := range []int{0, 10, 2 * spillBytes} {
			o, err := w.Create("op")
			must(t, err)
			must(t, writeAll(o, make([]byte, size)))
			must(t, o.Abort())
			must(t, o.Abort())
			if _, err := o.Write([]byte("x")); err == nil {
				t.Error("an aborted object can be written")
			}
		}
		if left, err := fsys.List(dir); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
}

// A full or sick disk fails the object, wherever it shows, and leaves nothing; then the next one works (B136).
func TestObjectOnAFullDisk(t *testing.T) {
	for _, rule := range []Rule{
		{Op: OpCreate, Path: "op", Err: syscall.ENOSPC},
		{Op: OpWrite, Path: "op", Err: syscall.ENOSPC},
		{Op: OpWrite, Path: "op", Short: 100, Err: syscall.ENOSPC},
		{Op: OpWrite, Path: "op", Skip: 1, Err: syscall.ENOSPC},
		{Op: OpSync, Path: "op", Err: syscall.ENOSPC},
		{Op: OpClose, Path: "op", Err: syscall.ENOSPC},
		{Op: OpSyncDir, Err: syscall.ENOSPC},
	} {
		f := Faulty(memoryWith(t, "/d"), &rule)
		w := NewWriter(f, "/d", WriterOptions{})
		o, err := w.Create("op")
		must(t, err)
		writeErr := errors.Join(writeAll(o, make([]byte, 2*spillBytes)), writeAll(o, make([]byte, 2*spillBytes)))
		h, err := o.Commit()
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "/d") || h.File != "" {
			t.Errorf("%s, skip %d: Write %v, Commit %v", rule.Op, rule.Skip, writeErr, err)
		}
		if left, err := f.List("/d"); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", rule.Op, left, err)
		}
		f.SetRules()
		if _, err := writeObject(w, "op", make([]byte, 2*spillBytes)); err != nil {
			t.Errorf("after the disk was freed: %v", err)
		}
	}
}

func TestFileNames(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{
		"counts-0", "a/b", "a b", "a%2Fb", "../../etc/passwd", "..", ".", "_metadata", "_metadata.tmp", ".hidden", "日本", "A", "a",
		strings.Repeat("x", 1000), strings.Repeat("x", 1001), strings.Repeat("日", 300), "\x00",
	} {
		name := fileName(text)
		if other, taken := seen[name]; taken {
			t.Errorf("%q and %q are both %s", text, other, name)
		}
		seen[name] = text
		if len(name) > 200 || strings.ContainsAny(name, "/\x00") || strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") {
			t.Errorf("%q is the file %q", text, name)
		}
	}
	if got := fileName("op/0 keyed_state.v1"); got != "op%2F0%20keyed_state.v1" {
		t.Errorf("it is %q", got)
	}
	if _, err := NewWriter(Memory(), "/", WriterOptions{}).Create(""); err == nil {
		t.Error("an object has no name")
	}
}

// The name of a file that is there is not given twice.
func TestObjectsDoNotOverwrite(t *testing.T) {
	w := NewWriter(memoryWith(t, "/d"), "/d", WriterOptions{InlineMax: -1})
	_, err := writeObject(w, "op", []byte("1"))
	must(t, err)
	if _, err := writeObject(w, "op", []byte("2")); err == nil {
		t.Error("it was overwritten")
	}
}

// With memory storage a state has a largest size, and the refusal tells both (Flink's words).
func TestMemoryStorageHasALimit(t *testing.T) {
	j := OpenJobMemory(Memory(), testJob, 0)
	location, err := j.CreateLocation(1, snapshot.Checkpoint, "")
	must(t, err)
	w := j.Writer(location, WriterOptions{})
	h, err := writeObject(w, "op", make([]byte, DefaultMemoryMax))
	if err != nil || len(h.Inline) != DefaultMemoryMax {
		t.Errorf("%d bytes inline, %v", len(h.Inline), err)
	}
	_, err = writeObject(w, "op", make([]byte, DefaultMemoryMax+1))
	want := "Size of the state is larger than the maximum permitted memory-backed state. Size=5242881, maxSize=5242880. Consider using a different checkpoint storage"
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "execution.checkpointing.dir") {
		t.Errorf("%v", err)
	}
	small := OpenJobMemory(Memory(), testJob, 10)
	if _, err := writeObject(small.Writer("memory:chk-1", WriterOptions{}), "op", make([]byte, 11)); err == nil {
		t.Error("the job's own limit is not kept")
	}
	// A worker writes with nothing but the barrier's location.
	if _, err := writeObject(NewWriter(Memory(), location, WriterOptions{MemoryMax: 3}), "op", make([]byte, 4)); err == nil {
		t.Error("the worker's limit is not kept")
	}
}

func TestMemoryStorageRefusesWhatWasDiscarded(t *testing.T) {
	j := OpenJobMemory(Memory(), testJob, 0)
	location, err := j.CreateLocation(1, snapshot.Checkpoint, "")
	must(t, err)
	m, err := writeState(j.Writer(location, smallFiles), 1, snapshot.Checkpoint, 1)
	must(t, err)
	must(t, j.Discard(location))
	if _, err := j.Publish(location, m); err == nil {
		t.Error("a discarded checkpoint is published")
	}
}

// Reads that return 1 to 7 bytes, with io.EOF beside the last ones, give the same state (B139).
func TestShortReads(t *testing.T) {
	m := memoryWith(t, "/d")
	d := openJob(t, m, "/d")
	location := mustTake(t, d, 1, snapshot.Checkpoint, "")
	for short := 1; short <= 7; short++ {
		f := Faulty(m, &Rule{Op: OpRead, Short: short})
		meta, _, err := ReadMetadata(f, location)
		must(t, err)
		open := func(location string, h snapshot.Handle) (Reader, error) { return OpenHandle(f, location, h) }
		must(t, verify(open, meta, location))
	}
}

// oddReader is a Reader of size bytes that answers as it likes.
type oddReader struct {
	size int64
	read func(p []byte, off int64) (int, error)
}

func (r oddReader) ReadAt(p []byte, off int64) (int, error) { return r.read(p, off) }
func (r oddReader) Size() int64                             { return r.size }
func (r oddReader) Close() error                            { return nil }

func TestPrematureEndTellsBothLengths(t *testing.T) {
	r := &fullReader{name: "/d/f", Reader: oddReader{size: 100, read: func(p []byte, off int64) (int, error) {
		return min(len(p), int(40-off)), io.EOF
	}}}
	n, err := r.ReadAt(make([]byte, 100), 0)
	if n != 40 || !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "/d/f is damaged: it ends after 40 of 100 bytes") {
		t.Errorf("%d, %v", n, err)
	}
	idle := &fullReader{name: "/d/f", Reader: oddReader{size: 100, read: func([]byte, int64) (int, error) { return 0, nil }}}
	_, err = idle.ReadAt(make([]byte, 1), 5)
	isErr(t, "a reader without progress", err, io.ErrNoProgress)
	whole := &fullReader{name: "/d/f", Reader: oddReader{size: 100, read: func(p []byte, _ int64) (int, error) { return len(p), nil }}}
	if n, err := whole.ReadAt(make([]byte, 20), 90); n != 10 || err != io.EOF {
		t.Errorf("over the end: %d, %v", n, err)
	}
}

func TestOpenHandleVerifies(t *testing.T) {
	m := memoryWith(t, "/d")
	must(t, writeSynced(m, "/d/f", []byte("hello")))
	good := snapshot.Handle{File: "f", Size: 5, CRC: snapshot.Checksum(0, []byte("hello"))}
	absolute, inline := good, snapshot.InlineHandle([]byte("hello"))
	absolute.File = "/d/f"
	for _, h := range []snapshot.Handle{good, absolute, inline, {}} {
		r, err := OpenHandle(m, "/d", h)
		must(t, err)
		must(t, r.Close())
	}
	size, crc, missing, badInline := good, good, good, inline
	size.Size++
	crc.CRC++
	missing.File = "g"
	badInline.CRC++
	for _, h := range []snapshot.Handle{size, crc, missing, badInline} {
		_, err := OpenHandle(m, "/d", h)
		isErr(t, fmt.Sprintf("%+v", h), err, ErrDamaged)
	}
	f := Faulty(m, &Rule{Op: OpRead, Err: syscall.EIO})
	_, err := OpenHandle(f, "/d", good)
	isErr(t, "reading", err, syscall.EIO)
	if errors.Is(err, ErrDamaged) {
		t.Error("a sick disk is taken for damage")
	}
}
