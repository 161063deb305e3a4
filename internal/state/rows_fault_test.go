package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/avrofile"
	"github.com/weirstream/weir/internal/base"
)

// restoreGoldenRows restores one file to a new state of every kind.
func restoreGoldenRows(t testing.TB, f rowsFile, allow bool) (*everyState, *Keyed[string], error) {
	s, k := goldenKeyed(t)
	if allow {
		k.AllowDropped()
	}
	opened, err := OpenRows(bytes.NewReader(f.file), int64(len(f.file)), f.index)
	if err == nil {
		err = k.RestoreRows(opened, allGroups, []string{f.Name})
	}
	return s, k, err
}

// Every changed, missing or additional byte is noticed, and the index of another file.
func TestDamagedRowsAreNoticed(t *testing.T) {
	s, k := goldenKeyed(t)
	fillGolden(s, k)
	files := rowsOf(t, k.Snapshot(0, 0).Rows())
	for i, f := range files {
		refused := func(what string, at int, f rowsFile) {
			t.Helper()
			if _, _, err := restoreGoldenRows(t, f, false); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("state %q, %s at %d: %v", f.Name, what, at, err)
			}
		}
		for at := 0; at < len(f.file); at += 1 + len(f.file)/50 {
			b := bytes.Clone(f.file)
			b[at] ^= 0x10
			refused("a changed byte", at, rowsFile{f.RowsHandle, b, f.index})
			refused("cut", at, rowsFile{f.RowsHandle, f.file[:at], f.index})
		}
		refused("another index", 0, rowsFile{f.RowsHandle, f.file, files[(i+1)%len(files)].index})
		refused("no index", 0, rowsFile{f.RowsHandle, f.file, nil})
	}
}

// container is a file of rows with the properties of another, and rows of its own; right checksums and all.
func container(t testing.TB, of rowsFile, count int, first uint64, rows []byte) rowsFile {
	t.Helper()
	r := of.open(t)
	var properties []avrofile.Property
	for _, name := range []string{nameProperty, kindProperty, keyProperty, mapKeyProperty, valueProperty, ttlProperty} {
		if v := r.Property(name); v != "" {
			properties = append(properties, avrofile.Property{Name: name, Value: v})
		}
	}
	var b bytes.Buffer
	w, err := avrofile.NewWriter(&b, r.Property("avro.schema"), properties)
	must(t, err)
	for n := range count { // the rows as one, and rows of no bytes
		row := w.Buffer()
		if n == 0 {
			row = append(row, rows...)
		}
		must(t, w.Add(row, first))
	}
	must(t, w.Close())
	return rowsFile{of.RowsHandle, b.Bytes(), w.Index()}
}

// Rows that make no sense are refused, though all checksums are right.
func TestRowsWithoutSenseAreRefused(t *testing.T) {
	s, k := goldenKeyed(t)
	fillGolden(s, k)
	files := map[string]rowsFile{}
	for _, f := range rowsOf(t, k.Snapshot(0, 0).Rows()) {
		files[f.Name] = f
	}
	hash := k.Hash("a")
	head := append(binary.BigEndian.AppendUint64(nil, hash), 2, 'a')
	after := binary.BigEndian.AppendUint64(nil, math.MaxUint64)
	long := func(vs ...int64) (b []byte) {
		for _, v := range vs {
			b = binary.AppendVarint(b, v)
		}
		return b
	}
	row := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	timer := hashTimer(hash, 7)
	timerHead := append(binary.BigEndian.AppendUint64(nil, timer), 2, 'a')
	for _, c := range []struct {
		what, state string
		count       int
		first       uint64
		rows        []byte
		want        string
	}{
		{"a good row", "n", 1, hash, row(head, long(5)), ""},
		{"another hash", "n", 1, hash + 1, row(binary.BigEndian.AppendUint64(nil, hash+1), head[8:], long(5)), "a row has the hash"},
		{"another first hash", "n", 1, hash - 1, row(head, long(5)), "its index says"},
		{"two values", "n", 2, hash, row(head, long(5), head, long(6)), "two values"},
		{"out of order", "n", 2, math.MaxUint64, row(after, long(0), head, long(5)), "hash"},
		{"too few bytes", "n", 2, hash, row(head, long(5)), "too early"},
		{"too many bytes", "n", 1, hash, row(head, long(5), long(1)), "too many"},
		{"half a hash", "n", 1, hash, head[:4], "too early"},
		{"half a key", "n", 1, hash, head[:9], "key"},
		{"half a value", "n", 1, hash, append(slices.Clone(head), 0x80), `state "n"`},
		{"a list from the middle", "list", 1, hash, row(head, long(1), long(0)), "numbered 1"},
		{"an element twice", "list", 2, hash, row(head, long(0), long(0), head, long(0), long(0)), "numbered 0"},
		{"a list's good rows", "list", 2, hash, row(head, long(0), long(0), head, long(1), long(0)), ""},
		{"an entry twice", "m", 2, hash, row(head, []byte{2, 'x'}, long(1), head, []byte{2, 'x'}, long(2)), "twice"},
		{"no expiry", "brief", 1, hash, row(head, long(1)), "too early"},
		{"an expiry", "brief", 1, hash, row(head, long(1, 2)), ""},
		{"a good timer", "(timers)", 1, timer, row(timerHead, long(7), []byte{1}), ""},
		{"a timer twice", "(timers)", 2, timer, row(timerHead, long(7), []byte{1}, timerHead, long(7), []byte{1}), "already"},
		{"a timer of two kinds", "(timers)", 2, timer, row(timerHead, long(7), []byte{0}, timerHead, long(7), []byte{1}), ""},
		{"a timer of a third kind", "(timers)", 1, timer, row(timerHead, long(7), []byte{2}), "kind"},
		{"another timer's hash", "(timers)", 1, timer, row(timerHead, long(8), []byte{1}), "a timer has the hash"},
		{"half a timer", "(timers)", 1, timer, row(timerHead, long(7)), "too early"},
	} {
		_, k, err := restoreGoldenRows(t, container(t, files[c.state], c.count, c.first, c.rows), false)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		case c.want == "":
			must(t, checkIndex(&k.index))
		}
	}
}

// A changed schema is refused as in a native file, with the same words.
func TestRowsRefuseChangedSchemas(t *testing.T) {
	var now int64
	var a Value[int64]
	var b Map[string, int64]
	k := newKeyed[int64](t, allGroups, &now, map[string]binder{"a": &a, "b": &b}, Spec{Name: "a"}, Spec{Name: "b"})
	seek(k, 1)
	a.Set(1)
	b.Put("x", 2)
	k.Timers(true).Register(5)
	files := rowsOf(t, k.Snapshot(0, 0).Rows())
	restore := func(k interface {
		RestoreRows(*RowsFile, base.KeyGroupRange, []string) error
	}) (err error) {
		for _, f := range files {
			err = errors.Join(err, k.RestoreRows(f.open(t), allGroups, namesOf(files)))
		}
		return err
	}
	refused := func(err error, parts ...string) {
		t.Helper()
		var e *SchemaError
		if !errors.As(err, &e) {
			t.Fatalf("the error is %v", err)
		}
		for _, p := range parts {
			if !strings.Contains(err.Error(), p) {
				t.Errorf("the error is %v, want one with %s", err, p)
			}
		}
	}
	refused(restore(newKeyed[int64](t, allGroups, &now, map[string]binder{"a": new(Value[string]), "b": new(Map[string, int64])}, Spec{Name: "a"}, Spec{Name: "b"})),
		`"a" (value)`, "stored as long", "declared as string")
	refused(restore(newKeyed[int64](t, allGroups, &now, map[string]binder{"a": new(Value[int64]), "b": new(Map[int64, int64])}, Spec{Name: "a"}, Spec{Name: "b"})),
		`"b" (map), its keys`, "stored as string", "declared as long")
	refused(restore(newKeyed[string](t, allGroups, &now, map[string]binder{"a": new(Value[int64]), "b": new(Map[string, int64])}, Spec{Name: "a"}, Spec{Name: "b"})), "the keys: stored as long")

	var onlyA Value[int64]
	r := newKeyed[int64](t, allGroups, &now, map[string]binder{"a": &onlyA}, Spec{Name: "a"})
	refused(restore(r), `"b"`, "not declared any more")
	r = newKeyed[int64](t, allGroups, &now, map[string]binder{"a": &onlyA}, Spec{Name: "a"})
	r.AllowDropped()
	must(t, restore(r))
	if !slices.Equal(r.Dropped(), []string{"b"}) || r.Len() != 1 || r.Timers(true).Len() != 1 {
		t.Errorf("dropped %v, %d keys", r.Dropped(), r.Len())
	}

	var renamed Value[int64]
	r = newKeyed[int64](t, allGroups, &now, map[string]binder{"c": &renamed, "b": new(Map[string, int64])}, Spec{Name: "c", Was: "a"}, Spec{Name: "b"})
	must(t, restore(r))
	if seek(r, 1); renamed.Get() != 1 {
		t.Error("the renamed state is empty")
	}
	// b is there under its own name, so what was called a is not b
	refused(restore(newKeyed[int64](t, allGroups, &now, map[string]binder{"b": new(Map[string, int64])}, Spec{Name: "b", Was: "a"})), `"a"`, "not declared any more")

	o := newOpState(t)
	o.list.Add("x")
	all := rowsOf(t, o.ops.Snapshot().Rows())
	ops := NewOperator()
	must(t, new(OperatorList[int64]).Bind(ops, Spec{Name: "list"}))
	refused(ops.RestoreRows(all[0].open(t), 0, 1), `"list"`, "stored as string", "declared as long")
	refused(ops.RestoreRows(all[1].open(t), 0, 0), `"nested"`, "not declared any more")
	ops.AllowDropped()
	must(t, ops.RestoreRows(all[1].open(t), 0, 0))
	if err := o.ops.RestoreRows(all[0].open(t), 0, 2); err == nil || !strings.Contains(err.Error(), "no rows 0 to 2 among 1") {
		t.Errorf("rows that are not there: %v", err)
	}
}

// TestRowsOfVersion1AreRestored for ever, from files that are never rewritten.
func TestRowsOfVersion1AreRestored(t *testing.T) {
	dir := filepath.Join("testdata", "compat", "rows-v1")
	want, wantKeyed := goldenKeyed(t)
	fillGolden(want, wantKeyed)
	op := newOpState(t)
	op.list.Add("a", "b", "c")
	op.nested.Add([]int64{1, 2}, nil)
	op.union.Add(7, 8)
	op.m.Put(1, "one")
	op.mm.Put("x", []int64{9})
	if *update {
		must(t, os.MkdirAll(dir, 0o777))
	}
	golden := func(f rowsFile) rowsFile {
		for ext, b := range map[string]*[]byte{".avro": &f.file, ".idx": &f.index} {
			path := filepath.Join(dir, f.Name+ext)
			if *update {
				must(t, os.WriteFile(path, *b, 0o666))
			}
			stored, err := os.ReadFile(path)
			must(t, err)
			same := bytes.Equal(stored, *b)
			if !same { // the file says a type, whose schema is another since the codec's second version
				second, err := os.ReadFile(filepath.Join(dir, "schemas2", f.Name+ext))
				same = err == nil && bytes.Equal(second, *b)
			}
			if !same {
				t.Errorf("%s: the format changed without a new version", path)
			}
			*b = stored
		}
		return f
	}
	got, k := goldenKeyed(t)
	var files []rowsFile
	for _, f := range rowsOf(t, wantKeyed.Snapshot(0, 0).Rows()) {
		files = append(files, golden(f))
	}
	restoreKeyedRows(t, k, files, allGroups)
	wantShown, gotShown := showKeyed(want, wantKeyed), showKeyed(got, k)
	for key := range wantShown {
		if gotShown[key] != wantShown[key] {
			t.Errorf("%s:\n got %s\nwant %s", key, gotShown[key], wantShown[key])
		}
	}
	if k.Len() != 100 || k.Timers(true).Len() != 100 || k.Timers(false).Len() != 100 {
		t.Errorf("%d keys, %d and %d timers", k.Len(), k.Timers(true).Len(), k.Timers(false).Len())
	}
	restored := newOpState(t)
	for _, f := range rowsOf(t, op.ops.Snapshot().Rows()) {
		f.Name = "operator-" + f.Name
		must(t, restored.ops.RestoreRows(golden(f).open(t), 0, f.Count))
	}
	if restored.show() != op.show() {
		t.Errorf("restored\n%s, want\n%s", restored.show(), op.show())
	}
}

// FuzzRows: the bytes are a block of rows of a state of any kind, in a container whose checksums are right.
func FuzzRows(f *testing.F) {
	s, k := goldenKeyed(f)
	fillGolden(s, k)
	files := rowsOf(f, k.Snapshot(0, 0).Rows())
	for i, file := range files {
		for b, err := range file.open(f).Blocks(0) {
			must(f, err)
			f.Add(uint8(i), uint8(b.Count), b.Rows)
		}
	}
	f.Fuzz(func(t *testing.T, which, count uint8, rows []byte) {
		var first uint64
		if len(rows) >= 8 {
			first = binary.BigEndian.Uint64(rows)
		}
		s, k, err := restoreGoldenRows(t, container(t, files[int(which)%len(files)], int(max(count, 1)), first, rows), false)
		if err != nil {
			return
		}
		must(t, checkIndex(&k.index))
		showKeyed(s, k) // what was restored can be read
	})
}

// FuzzListRows: the same for the lists and maps of an operator.
func FuzzListRows(f *testing.F) {
	s := newOpState(f)
	s.list.Add("a", "b")
	s.nested.Add([]int64{1, 2}, nil)
	s.union.Add(7)
	s.m.Put(1, "one")
	s.mm.Put("x", []int64{9})
	files := rowsOf(f, s.ops.Snapshot().Rows())
	for i, file := range files {
		for b, err := range file.open(f).Blocks(0) {
			must(f, err)
			f.Add(uint8(i), uint8(b.Count), b.Rows, uint8(0))
		}
	}
	f.Fuzz(func(t *testing.T, which, count uint8, rows []byte, from uint8) {
		count = max(count, 1)
		file := container(t, files[int(which)%len(files)], int(count), 0, rows)
		s := newOpState(t)
		if err := s.ops.RestoreRows(file.open(t), int64(min(from, count)), int64(count)); err == nil {
			_ = s.show()
		}
	})
}
