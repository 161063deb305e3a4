package state

import (
	"bytes"
	"encoding/binary"
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
	f.Add(goldenFile(f, "keyed-v2-1.state"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, k := goldenKeyed(t)
		if err := k.Restore(inMemory(b), allGroups); err == nil {
			must(t, checkIndex(&k.index))
		}
	})
}

// FuzzRestoreUpon: so do the bytes of a file and of another that it refers to.
func FuzzRestoreUpon(f *testing.F) {
	f.Add(goldenFile(f, "keyed-v2-2.state"), goldenFile(f, "keyed-v2-1.state"))
	f.Fuzz(func(t *testing.T, own, other []byte) {
		_, k := goldenKeyed(t)
		from := inMemory(own)
		from.Handle.Refers = []snapshot.Handle{snapshot.InlineHandle(other)}
		if err := k.Restore(from, allGroups); err == nil {
			must(t, checkIndex(&k.index))
		}
	})
}

// FuzzRestorePages: the bytes are a page whose checksum is right, so that what lies behind it is reached.
func FuzzRestorePages(f *testing.F) {
	s, k := goldenKeyed(f)
	fillGolden(s, k)
	e := tableEncoder{snapshot: k.Snapshot(0, 0), columns: k.columns, keys: k.encodeKeys}
	for _, p := range e.snapshot.views[tableKeys].pages() {
		b, err := e.encodePage(nil, p, p.live)
		must(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, k := goldenKeyed(t)
		file := fileWithPage(t, k, b)
		if err := k.Restore(inMemory(file), allGroups); err != nil {
			return
		}
		must(t, checkIndex(&k.index))
		showKeyed(s, k) // what was restored can be read
	})
}

// fileWithPage is a state file with the schemas of k, and b as the only page of a root of one segment.
func fileWithPage[K comparable](t *testing.T, k *Keyed[K], b []byte) []byte {
	m := &manifest{number: 1}
	m.tables[tableKeys].shift = 63
	return fileOfManifest(t, k, m, func(w *fileWriter) {
		off, length, err := w.record(b)
		must(t, err)
		m.tables[tableKeys].sections = []*section{newSection([]filePage{{0, extent{off, length, 1}}})}
	})
}

// fileOfManifest is a state file with the schemas of k, of pages that write writes and the sections of m.
func fileOfManifest[K comparable](t *testing.T, k *Keyed[K], m *manifest, write func(w *fileWriter)) []byte {
	var file bytes.Buffer
	w := fileWriter{w: &file}
	must(t, w.begin(version2))
	write(&w)
	must(t, m.writeSections(&w))
	must(t, w.end(k.Snapshot(0, 0).appendTrailer(nil, m)))
	return file.Bytes()
}

// FuzzSection: the bytes are the record of a section whose checksum is right.
func FuzzSection(f *testing.F) {
	f.Add(appendSection(nil, 0, newSection([]filePage{{0, extent{8, 20, 1}}, {0, extent{28, 20, 1}}, {0, extent{99, 20, 2}}})))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, k := goldenKeyed(t)
		fillGolden(s, k)
		snap := k.Snapshot(0, 0)
		var file bytes.Buffer
		_, err := snap.WriteTo(&file)
		must(t, err)
		w := fileWriter{w: &file, off: int64(file.Len())} // the golden pages lie before, for its runs to hit
		m := snap.manifest
		at := extent{file: 1}
		at.off, at.length, err = w.record(b)
		must(t, err)
		must(t, w.flush())
		m.tables[tableKeys].sections = []*section{{at: at}}
		must(t, w.end(snap.appendTrailer(nil, m)))
		r, k := goldenKeyed(t)
		if err := k.Restore(inMemory(file.Bytes()), allGroups); err == nil {
			must(t, checkIndex(&k.index))
			showKeyed(r, k)
		}
	})
}

// FuzzTrailer: the bytes are a trailer whose checksum is right, of either version.
func FuzzTrailer(f *testing.F) {
	for _, name := range []string{"keyed-v1.state", "operator-v1.state"} {
		b := goldenFile(f, name)
		f.Add(trailerOf(b), uint16(version1))
	}
	s, k := goldenKeyed(f)
	fillGolden(s, k)
	f.Add(trailerOf(fileOf(f, k.Snapshot(0, 0))), uint16(version2))
	f.Fuzz(func(t *testing.T, b []byte, version uint16) {
		var file bytes.Buffer
		w := fileWriter{w: &file}
		must(t, w.begin(version))
		must(t, w.end(bytes.Clone(b)))
		_, k := goldenKeyed(t)
		_ = k.Restore(inMemory(file.Bytes()), allGroups)
		s := newOpState(t)
		_ = s.ops.Restore(bytes.NewReader(file.Bytes()), int64(file.Len()), snapshot.ListHandle{Name: "list", Offsets: []int64{8}})
	})
}

// trailerOf is the trailer of a state file.
func trailerOf(file []byte) []byte {
	at := binary.LittleEndian.Uint64(file[len(file)-footerBytes:])
	return file[at : len(file)-footerBytes]
}
