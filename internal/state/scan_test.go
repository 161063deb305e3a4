package state

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// copied is the file of rows that the rows of a scan make, and its index.
func copied(t testing.TB, s StoredState, mode snapshot.Mode, rows iter.Seq2[Row, error]) rowsFile {
	t.Helper()
	return rowsOf(t, []*Rows{CopyRows(s, mode, rows)})[0]
}

func sameFile(t testing.TB, what string, got, want rowsFile) {
	t.Helper()
	if !bytes.Equal(got.file, want.file) || !bytes.Equal(got.index, want.index) || got.Count != want.Count || got.Mode != want.Mode {
		t.Fatalf("%s: %d rows, %d bytes; the engine writes %d, %d", what, got.Count, len(got.file), want.Count, len(want.file))
	}
}

// checkScan compares what a scan of a native file gives, and one of rows, with the rows that the engine writes.
func checkScan[K comparable](t testing.TB, what string, k *Keyed[K], from RestoreFile, want []rowsFile) {
	t.Helper()
	s, err := OpenKeyed(from)
	must(t, err)
	must(t, s.Check())
	for _, w := range want {
		stored := StoredState{Schema: s.TimerSchema()}
		if i := slices.IndexFunc(s.States(), func(s StoredState) bool { return s.Schema.Name == w.Name }); i >= 0 {
			stored = s.States()[i]
		}
		sameFile(t, what+", "+w.Name, copied(t, stored, 0, s.Rows(w.Name, AllHashes)), w)
		opened := w.open(t)
		sameFile(t, what+", rows of "+w.Name, copied(t, opened.State(), 0, opened.ScanKeyed(AllHashes)), w)
		checkScanWithin(t, s.Rows(w.Name, AllHashes), s.Rows(w.Name, someHashes), what+", "+w.Name)
		checkScanWithin(t, s.Rows(w.Name, AllHashes), opened.ScanKeyed(someHashes), what+", rows of "+w.Name)
	}
}

var someHashes = Hashes{1 << 61, 3 << 61}

// line is a row as text.
func (r Row) line() string {
	return fmt.Sprintf("%016x %x %d %x %x %d %v", r.Hash, r.Key, r.Index, r.MapKey, r.Value, r.At, r.Event)
}

// rowLines are the rows within a range as text.
func rowLines(t testing.TB, rows iter.Seq2[Row, error], within Hashes) (lines []string) {
	t.Helper()
	for r, err := range rows {
		must(t, err)
		if within.has(r.Hash) {
			lines = append(lines, r.line())
		}
	}
	return lines
}

// checkScanWithin demands that a scan of a range gives those of all rows that are within.
func checkScanWithin(t testing.TB, all, some iter.Seq2[Row, error], what string) {
	t.Helper()
	want, got := rowLines(t, all, someHashes), rowLines(t, some, AllHashes)
	if !slices.Equal(want, got) {
		t.Fatalf("%s: %d rows within the range, want %d", what, len(got), len(want))
	}
}

func scanRandom[K comparable](t *testing.T, seed uint64, key func(uint64) K) {
	g := newRig(t, seed, allGroups, nil, key, 40+int(seed%5)*150)
	for range 30 {
		g.slice()
	}
	for range 20 {
		k, h := g.pick()
		g.keyed.Seek(h, k)
		g.keyed.Timers(false).Register(base.EventTime(g.rnd.Int64N(1000)))
		g.keyed.Settle()
	}
	g.keyed.Leave()
	s := g.keyed.Snapshot(0, 0)
	checkScan(t, fmt.Sprintf("%T, seed %d", key(0), seed), g.keyed, inMemory(fileOf(t, s)), rowsOf(t, s.Rows()))
}

func TestAScanGivesTheRowsOfACanonicalSavepoint(t *testing.T) {
	type place struct {
		Country string
		Zip     int32
	}
	for seed := range uint64(5) {
		scanRandom(t, seed, asInt)
		scanRandom(t, seed, asText)
		scanRandom(t, seed, func(i uint64) float64 { return float64(i) / 3 })
		scanRandom(t, seed, func(i uint64) [3]byte { return [3]byte{byte(i), byte(i >> 8), 7} })
		scanRandom(t, seed, func(i uint64) place { return place{fmt.Sprint(i % 13), int32(i)} })
		scanRandom(t, seed, func(i uint64) uint16 { return uint16(i) })
		scanRandom(t, seed, func(i uint64) bool { return i%2 == 0 })
	}
	s, k := goldenKeyed(t)
	fillGolden(s, k)
	rows := rowsOf(t, k.Snapshot(0, 0).Rows())
	checkScan(t, "what is written now", k, inMemory(fileOf(t, k.Snapshot(0, 0))), rows)
	old, err := OpenKeyed(inMemory(goldenFile(t, "keyed-v1.state"))) // its schemas say less
	must(t, err)
	must(t, old.Check())
	for _, f := range rows {
		want, got := rowLines(t, f.open(t).ScanKeyed(AllHashes), AllHashes), rowLines(t, old.Rows(f.Name, AllHashes), AllHashes)
		if !slices.Equal(got, want) {
			t.Errorf("version 1, %s: %d rows, want %d", f.Name, len(got), len(want))
		}
	}
}

func TestAScanOfListsGivesTheRowsOfACanonicalSavepoint(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	s := newOpState(t)
	for range 100 {
		s.change(rnd)
	}
	for i := range 20_000 { // several blocks
		s.list.Add(fmt.Sprint("element ", i))
	}
	taken := s.ops.Snapshot()
	var file bytes.Buffer
	_, err := taken.WriteTo(&file)
	must(t, err)
	for i, w := range rowsOf(t, taken.Rows()) {
		list := taken.Lists()[i]
		list.Handle = snapshot.InlineHandle(file.Bytes())
		l, err := OpenList(list, inMemory(file.Bytes()).Open)
		must(t, err)
		sameFile(t, list.Name, copied(t, l.State(), list.Mode, l.Rows()), w)
		opened := w.open(t)
		sameFile(t, "rows of "+list.Name, copied(t, opened.State(), list.Mode, opened.ScanList()), w)
	}
}

// Every flipped bit that is read leads to an error.
func TestAScanOfDamagedFiles(t *testing.T) {
	s, k := goldenKeyed(t)
	fillGolden(s, k)
	good := fileOf(t, k.Snapshot(0, 0))
	for at := 0; at < len(good); at += 7 {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << (at % 8)
		stored, err := OpenKeyed(inMemory(bad))
		if err == nil {
			err = stored.Check()
		}
		if err == nil {
			t.Fatalf("byte %d of %d is flipped, and nobody sees it", at, len(good))
		}
	}
}

// FuzzScan: any bytes lead to an error or to rows.
func FuzzScan(f *testing.F) {
	f.Add(goldenFile(f, "keyed-v1.state"))
	f.Fuzz(func(t *testing.T, b []byte) { scanAll(b) })
}

// FuzzScanPages: the bytes are a block whose checksum is right.
func FuzzScanPages(f *testing.F) {
	s, k := goldenKeyed(f)
	fillGolden(s, k)
	e := tableEncoder{file: &fileWriter{w: new(bytes.Buffer)}, snapshot: k.Snapshot(0, 0), columns: k.columns, keys: k.encodeKeys}
	for _, p := range e.snapshot.views[tableKeys].pages() {
		b, err := e.encodePage(nil, p, p.live)
		must(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, k := goldenKeyed(t)
		scanAll(fileWithPage(t, k, b))
	})
}

func scanAll(file []byte) {
	s, err := OpenKeyed(inMemory(file))
	if err != nil {
		return
	}
	_ = s.Check()
	for _, state := range append(s.States(), StoredState{Schema: s.TimerSchema()}) {
		n := 0
		for range s.Rows(state.Schema.Name, AllHashes) {
			if n++; n > 10_000 { // elements of no bytes may be any number
				break
			}
		}
	}
}
