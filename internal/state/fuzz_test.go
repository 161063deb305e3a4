package state

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirstream/weir/internal/snapshot"
)

// goldenFile is a file from testdata/compat.
func goldenFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "compat", name))
	must(t, err)
	return b
}

// FuzzRestoreKeyed: any bytes lead to an error or a state.
func FuzzRestoreKeyed(f *testing.F) {
	f.Add(goldenFile(f, "keyed-v1.state"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, k := goldenKeyed(t)
		if err := k.Restore(inMemory(b), allGroups); err == nil {
			must(t, checkIndex(&k.index))
		}
	})
}

// FuzzRestorePages: the bytes are a block whose checksum is right, so that what lies behind it is reached.
func FuzzRestorePages(f *testing.F) {
	s, k := goldenKeyed(f)
	fillGolden(s, k)
	e := tableEncoder{file: &fileWriter{w: new(bytes.Buffer)}, snapshot: k.Snapshot(0, 0), columns: k.columns, keys: k.encodeKeys}
	for _, p := range e.snapshot.views[tableKeys].pages() {
		b, err := e.encodePage(nil, p, p.live)
		must(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, k := goldenKeyed(t)
		file := fileWithBlock(k, b)
		if err := k.Restore(inMemory(file), allGroups); err != nil {
			return
		}
		must(t, checkIndex(&k.index))
		showKeyed(s, k) // what was restored can be read
	})
}

// fileWithBlock is a state file with the schemas of k, and b as the only block.
func fileWithBlock[K comparable](k *Keyed[K], b []byte) []byte {
	var file bytes.Buffer
	w := fileWriter{w: &file}
	trailer := k.Snapshot(0, 0).appendSchemas(nil)
	only := block{last: ^uint64(0), off: int64(len(fileMagic)), length: len(b), crc: crc32.Checksum(b, castagnoli)}
	if w.begin() == nil && w.write(b) == nil {
		trailer = appendBlocks(appendBlocks(appendBlocks(trailer, []block{only}), nil), nil)
		_ = w.end(trailer)
	}
	return file.Bytes()
}

// FuzzTrailer: the bytes are a trailer whose checksum is right.
func FuzzTrailer(f *testing.F) {
	for _, name := range []string{"keyed-v1.state", "operator-v1.state"} {
		b := goldenFile(f, name)
		at := binary.LittleEndian.Uint64(b[len(b)-footerBytes:])
		f.Add(b[at : len(b)-footerBytes])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var file bytes.Buffer
		w := fileWriter{w: &file}
		must(t, w.begin())
		must(t, w.end(bytes.Clone(b)))
		_, k := goldenKeyed(t)
		_ = k.Restore(inMemory(file.Bytes()), allGroups)
		s := newOpState(t)
		_ = s.ops.Restore(bytes.NewReader(file.Bytes()), int64(file.Len()), snapshot.ListHandle{Name: "list", Offsets: []int64{8}})
	})
}
