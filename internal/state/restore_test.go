package state

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
)

var update = flag.Bool("update", false, "write the golden files of a new format version (never of an old one)")

// goldenKeyed is the state that lies in testdata/compat, and must be restored from it for ever.
func goldenKeyed(t testing.TB) (*everyState, *Keyed[string]) {
	s := &everyState{}
	k := NewKeyed(mustKey[string](t), allGroups)
	s.bindAll(t, k)
	k.Open(func() int64 { return 1000 })
	return s, k
}

func fillGolden(s *everyState, k *Keyed[string]) {
	for i := range int64(100) {
		key := fmt.Sprint("key ", i)
		k.Seek(k.Hash(key), key)
		s.n.Set(i)
		if i%2 == 0 {
			s.text.Set(fmt.Sprint(i))
			s.list.Add("a", fmt.Sprint(i))
			s.brief.Set(i)
		}
		if i%3 == 0 {
			s.big.Set([40]int64{0: i})
			s.m.Put("x", i)
			s.mm.Put(i, []int64{i, -i})
			s.briefs.Add(i)
		}
		if i%5 == 0 {
			s.slice.Set([]int64{i})
			s.frozen.Set([]int64{i})
			s.sum.Add(i)
			s.nested.Add([]int64{i}, nil)
			s.briefm.Put(i, "y")
		}
		k.Timers(true).Register(base.EventTime(i))
		k.Timers(false).Register(base.EventTime(-i))
	}
}

func showKeyed[K comparable](s *everyState, k *Keyed[K]) map[string]string {
	all := map[string]string{}
	for key := range k.Each {
		k.Seek(k.Hash(key), key)
		all[fmt.Sprint(key)] = s.show()
	}
	k.Leave()
	return all
}

func TestFormatVersion1IsRestored(t *testing.T) {
	want, wantKeyed := goldenKeyed(t)
	fillGolden(want, wantKeyed)
	got, k := goldenKeyed(t)
	restoreFrom(t, k, goldenFile(t, "keyed-v1.state"))
	for key, want := range showKeyed(want, wantKeyed) {
		if got := showKeyed(got, k)[key]; got != want {
			t.Errorf("%s:\n got %s\nwant %s", key, got, want)
		}
	}
	if k.Len() != 100 || k.Timers(true).Len() != 100 || k.Timers(false).Len() != 100 {
		t.Errorf("%d keys, %d and %d timers", k.Len(), k.Timers(true).Len(), k.Timers(false).Len())
	}
}

func TestOperatorFormatVersion1IsRestored(t *testing.T) {
	want := newOpState(t)
	want.list.Add("a", "b", "c")
	want.nested.Add([]int64{1, 2}, nil)
	want.union.Add(7, 8)
	want.m.Put(1, "one")
	want.mm.Put("x", []int64{9})
	path := filepath.Join("testdata", "compat", "operator-v1.state")
	snap := want.ops.Snapshot()
	var b bytes.Buffer
	_, err := snap.WriteTo(&b)
	must(t, err)
	if *update {
		must(t, os.WriteFile(path, b.Bytes(), 0o666))
	}
	file, err := os.ReadFile(path)
	must(t, err)
	got := newOpState(t)
	restoreOp(t, got, file, snap.Lists())
	if got.show() != want.show() {
		t.Errorf("restored\n%s, want\n%s", got.show(), want.show())
	}
	if !bytes.Equal(file, b.Bytes()) {
		t.Error("the format changed without a new version")
	}
}

// Files of several old subtasks are merged, and cut at the ends of the new ranges: no key is lost, twice, or foreign. Over
// several rescalings nothing comes back that was left behind.
func TestRescaleUpAndDown(t *testing.T) {
	const n = 20_000
	type subtask struct {
		keyed *Keyed[int64]
		count *Value[int64]
	}
	var now int64
	open := func(i, p int) subtask {
		v := &Value[int64]{}
		return subtask{newKeyed[int64](t, base.RangeOf(i, p), &now, map[string]binder{"v": v}, Spec{Name: "v"}), v}
	}
	old := []subtask{open(0, 1)}
	for k := range int64(n) {
		seek(old[0].keyed, k)
		old[0].count.Set(k)
	}
	for _, p := range []int{2, 3, 2, 4, 127, 5, 1} {
		var next []subtask
		for i := range p {
			s := open(i, p)
			for j, o := range old {
				_, both := base.RangeOf(i, p).Intersect(base.RangeOf(j, len(old)))
				if both || i == j { // one that has nothing of it does no harm
					restoreFrom(t, s.keyed, fileOf(t, o.keyed.Snapshot(0, 0)))
				}
			}
			must(t, checkIndex(&s.keyed.index))
			next = append(next, s)
		}
		total := 0
		for _, s := range next {
			total += s.keyed.Len()
		}
		if total != n {
			t.Fatalf("parallelism %d: %d keys", p, total)
		}
		for k := range int64(n) {
			s := next[base.OwnerOf(old[0].keyed.Hash(k), p)]
			if seek(s.keyed, k); s.count.Get() != k {
				t.Fatalf("parallelism %d: key %d is %d", p, k, s.count.Get())
			}
		}
		old = next
	}
}

// State in a single key group (case: restored at 3, and at 127 with empty ones).
func TestSparseKeyGroups(t *testing.T) {
	var now int64
	var v Value[int64]
	k := newKeyed[int64](t, allGroups, &now, map[string]binder{"v": &v}, Spec{Name: "v"})
	seek(k, 5)
	v.Set(1)
	file := fileOf(t, k.Snapshot(0, 0))
	for _, p := range []int{1, 3, 127, 32768} {
		for i := range p {
			if p > 127 && i != base.OwnerOf(k.Hash(5), p) {
				continue
			}
			var v Value[int64]
			r := newKeyed[int64](t, base.RangeOf(i, p), &now, map[string]binder{"v": &v}, Spec{Name: "v"})
			restoreFrom(t, r, file)
			want := 0
			if base.OwnerOf(k.Hash(5), p) == i {
				want = 1
			}
			if r.Len() != want {
				t.Errorf("%d/%d has %d keys, want %d", i, p, r.Len(), want)
			}
		}
	}
}

func TestRestoreRefusesChangedSchemas(t *testing.T) {
	var now int64
	var a Value[int64]
	var b Map[string, int64]
	k := newKeyed[int64](t, allGroups, &now, map[string]binder{"a": &a, "b": &b}, Spec{Name: "a"}, Spec{Name: "b"})
	seek(k, 1)
	a.Set(1)
	b.Put("x", 2)
	seek(k, 2)
	b.Put("x", 3)
	file := fileOf(t, k.Snapshot(0, 0))
	restore := func(r *Keyed[int64]) error {
		return r.Restore(inMemory(file), allGroups)
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
	var text Value[string]
	r := newKeyed[int64](t, allGroups, &now, map[string]binder{"a": &text, "b": new(Map[string, int64])}, Spec{Name: "a"}, Spec{Name: "b"})
	refused(restore(r), `"a" (value)`, "stored as long", "declared as string", "declare it as before")
	var list List[int64]
	r = newKeyed[int64](t, allGroups, &now, map[string]binder{"a": &list, "b": new(Map[string, int64])}, Spec{Name: "a"}, Spec{Name: "b"})
	refused(restore(r), "kind value", "as list")
	refused(newKeyed[string](t, allGroups, &now, nil).Restore(inMemory(file), allGroups), "the keys", "stored as long", "declared as string", "a new UID")

	var onlyA Value[int64]
	r = newKeyed[int64](t, allGroups, &now, map[string]binder{"a": &onlyA}, Spec{Name: "a"})
	refused(restore(r), `"b"`, "not declared any more")
	r = newKeyed[int64](t, allGroups, &now, map[string]binder{"a": &onlyA}, Spec{Name: "a"})
	r.AllowDropped()
	must(t, restore(r))
	if r.Len() != 1 || len(r.Dropped()) != 1 || r.Dropped()[0] != "b" {
		t.Errorf("%d keys, dropped %v", r.Len(), r.Dropped())
	}
	must(t, checkIndex(&r.index))

	var renamed Value[int64]
	r = newKeyed[int64](t, allGroups, &now, map[string]binder{"c": &renamed, "b": new(Map[string, int64])},
		Spec{Name: "c", Was: "a"}, Spec{Name: "b"})
	must(t, restore(r))
	if seek(r, 1); renamed.Get() != 1 {
		t.Error("the renamed state is empty")
	}
	if err := restore(r); !errors.Is(err, ErrCorrupt) {
		t.Errorf("restored twice: %v", err)
	}
}

// Odd names never mix, and come back.
func TestOddNames(t *testing.T) {
	names := []string{"a", "ab", "a/b", "é", strings.Repeat("x", 300), "\x00", " "}
	var now int64
	open := func() (*Keyed[int64], []*Value[int64]) {
		fields, specs := map[string]binder{}, []Spec{}
		var vs []*Value[int64]
		for _, n := range names {
			vs = append(vs, &Value[int64]{})
			fields[n] = vs[len(vs)-1]
			specs = append(specs, Spec{Name: n})
		}
		return newKeyed[int64](t, allGroups, &now, fields, specs...), vs
	}
	k, vs := open()
	seek(k, 1)
	for i, v := range vs {
		v.Set(int64(i))
	}
	r, got := open()
	restoreFrom(t, r, fileOf(t, k.Snapshot(0, 0)))
	seek(r, 1)
	for i, v := range got {
		if n, ok := v.Lookup(); !ok || n != int64(i) {
			t.Errorf("state %q is %d", names[i], n)
		}
	}
}

// Every changed, missing or additional byte is noticed, but for those of the other version.
func TestDamageIsNoticed(t *testing.T) {
	s, k := goldenKeyed(t)
	fillGolden(s, k)
	file := fileOf(t, k.Snapshot(0, 0))
	restore := func(b []byte) error {
		_, k := goldenKeyed(t)
		return k.Restore(inMemory(b), allGroups)
	}
	for i := 0; i < len(file); i += 7 {
		b := bytes.Clone(file)
		b[i] ^= 0x10
		if err := restore(b); err == nil {
			t.Fatalf("a changed byte at %d was not noticed", i)
		}
		if err := restore(file[:i]); err == nil {
			t.Fatalf("a file cut at %d was not noticed", i)
		}
	}
	newer := bytes.Clone(file)
	newer[6] = 9
	if err := restore(newer); err == nil || !strings.Contains(err.Error(), "version 9") {
		t.Errorf("another version: %v", err)
	}
}

// The loop over integers writes what the codec writes.
func TestIntegersAreTheCodecsBytes(t *testing.T) {
	c, err := codec.For[int64]()
	must(t, err)
	vs := &array[int64]{}
	p := newLayout([]part{vs}, nil).newPage(1, 0)
	for i := range uint(slotsPerPage) {
		*vs.at(p, i) = int64(1)<<(2*i) - int64(i)*1000
	}
	*vs.at(p, 0), *vs.at(p, 1) = math.MinInt64, math.MaxInt64
	got, err := appendSlots(nil, c, vs, p, allSlots)
	must(t, err)
	var want []byte
	for i := range uint(slotsPerPage) {
		want, err = c.Append(want, vs.at(p, i))
		must(t, err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// Elements and keys that have no bytes are counted all the same.
func TestStatesWithoutBytes(t *testing.T) {
	type nothing struct {
		Hidden int64 `weir:"-"`
	}
	var now int64
	var list, list2 List[nothing]
	var m, m2 Map[struct{}, nothing]
	specs := []Spec{{Name: "list"}, {Name: "m"}}
	k := newKeyed[struct{}](t, allGroups, &now, map[string]binder{"list": &list, "m": &m}, specs...)
	k.Seek(k.Hash(struct{}{}), struct{}{})
	list.Add(make([]nothing, 1000)...)
	m.Put(struct{}{}, nothing{})
	r := newKeyed[struct{}](t, allGroups, &now, map[string]binder{"list": &list2, "m": &m2}, specs...)
	restoreFrom(t, r, fileOf(t, k.Snapshot(0, 0)))
	r.Seek(r.Hash(struct{}{}), struct{}{})
	if list2.Len() != 1000 || m2.Len() != 1 {
		t.Errorf("a list of %d, a map of %d", list2.Len(), m2.Len())
	}
}
