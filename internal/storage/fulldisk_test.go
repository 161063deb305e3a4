package storage

import (
	"os"
	"path"
	"syscall"
	"testing"

	"github.com/weirstream/weir/internal/snapshot"
)

// A disk that is really full (B136). It needs one: a small file system whose directory WEIR_TEST_SMALL_DIR names, as by
//
//	mount -t tmpfs -o size=1m tmpfs /tmp/small && WEIR_TEST_SMALL_DIR=/tmp/small go test -run TestRealFullDisk ./internal/storage
func TestRealFullDisk(t *testing.T) {
	small := os.Getenv("WEIR_TEST_SMALL_DIR")
	if small == "" {
		t.Skip("WEIR_TEST_SMALL_DIR names no small file system")
	}
	dir, err := os.MkdirTemp(small, "full")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := openJob(t, Disk(), dir)
	mustTake(t, d, 1, snapshot.Checkpoint, "")

	location, err := d.CreateLocation(2, snapshot.Checkpoint, "")
	must(t, err)
	_, err = writeObject(d.Writer(location, WriterOptions{}), "too much", make([]byte, 4<<20))
	isErr(t, "more than the disk has", err, syscall.ENOSPC)
	if left, err := Disk().List(location); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}

	filler := path.Join(dir, "filler")
	fill(t, filler)
	m, err := writeState(d.Writer(location, WriterOptions{}), 2, snapshot.Checkpoint, d.Run())
	must(t, err) // all inline, so only the metadata needs the disk
	_, err = d.Publish(location, m)
	isErr(t, "publishing on a full disk", err, syscall.ENOSPC)
	mustLatest(t, d, 1)

	must(t, os.Remove(filler))
	must(t, d.Discard(location))
	mustTake(t, d, 3, snapshot.Checkpoint, "")
	mustLatest(t, d, 3)
}

// fill writes until the disk is full.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	must(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096)) // the last write may be short
	}
	isErr(t, "filling the disk", err, syscall.ENOSPC)
	must(t, f.Close())
}
