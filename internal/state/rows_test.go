package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/avro"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// rowsFile is one state of a snapshot in the canonical format.
type rowsFile struct {
	snapshot.RowsHandle
	file, index []byte
}

func (f rowsFile) open(t testing.TB) *RowsFile {
	t.Helper()
	opened, err := OpenRows(bytes.NewReader(f.file), int64(len(f.file)), f.index)
	must(t, err)
	return opened
}

// writeRows writes all states of a snapshot.
func writeRows(all []*Rows) (files []rowsFile, err error) {
	for _, r := range all {
		var b bytes.Buffer
		if _, err := r.WriteTo(&b); err != nil {
			return nil, err
		}
		files = append(files, rowsFile{r.Handle(), b.Bytes(), r.Index()})
	}
	return files, nil
}

func rowsOf(t testing.TB, all []*Rows) []rowsFile {
	t.Helper()
	files, err := writeRows(all)
	must(t, err)
	return files
}

func namesOf(files []rowsFile) (names []string) {
	for _, f := range files {
		names = append(names, f.Name)
	}
	return names
}

// restoreKeyedRows restores what files have within a range.
func restoreKeyedRows[K comparable](t testing.TB, k *Keyed[K], files []rowsFile, within base.KeyGroupRange) {
	t.Helper()
	for _, f := range files {
		must(t, k.RestoreRows(f.open(t), within, namesOf(files)))
	}
}

func TestACountSurvivesACanonicalSavepoint(t *testing.T) {
	var now int64
	var count, restored Value[int64]
	k := newKeyed[string](t, allGroups, &now, map[string]binder{"count": &count}, Spec{Name: "count"})
	for _, word := range []string{"a", "b", "a"} {
		k.Seek(k.Hash(word), word)
		count.Set(count.Get() + 1)
		k.Settle()
	}
	files := rowsOf(t, k.Snapshot(0, 0).Rows())
	if len(files) != 1 || files[0].Count != 2 || !files[0].Keyed {
		t.Fatalf("%+v", files)
	}
	r := newKeyed[string](t, allGroups, &now, map[string]binder{"count": &restored}, Spec{Name: "count"})
	restoreKeyedRows(t, r, files, allGroups)
	for word, want := range map[string]int64{"a": 2, "b": 1, "c": 0} {
		r.Seek(r.Hash(word), word)
		if got := restored.Get(); got != want {
			t.Errorf("count of %s is %d, want %d", word, got, want)
		}
	}
}

// decoded are the rows of a file as another library reads them.
func decoded(t testing.TB, f rowsFile) (rows []map[string]any) {
	t.Helper()
	r := f.open(t)
	schema, err := avro.Parse(r.Property("avro.schema"))
	must(t, err)
	for b, err := range r.Blocks(0) {
		must(t, err)
		src := b.Rows
		for range b.Count {
			var row any
			src, err = schema.Decode(src, &row)
			must(t, err)
			rows = append(rows, row.(map[string]any))
		}
		if len(src) > 0 {
			t.Fatalf("state %q: %d bytes too many", f.Name, len(src))
		}
	}
	if int64(len(rows)) != f.Count {
		t.Fatalf("state %q: %d rows, the handle says %d", f.Name, len(rows), f.Count)
	}
	return rows
}

// Another library reads rows of every kind, with the columns that the format names, ordered by hash.
func TestRowsAreWhatTheStateHolds(t *testing.T) {
	s, k := goldenKeyed(t)
	fillGolden(s, k)
	columns := map[string][]string{
		KindValue: {"hash", "key", "value"}, KindReducing: {"hash", "key", "value"}, KindList: {"hash", "index", "key", "value"},
		KindMap: {"hash", "key", "mapKey", "value"}, KindTimers: {"event", "hash", "key", "time"},
	}
	want := map[string]int64{"n": 100, "text": 50, "list": 100, "nested": 40, "m": 34, "briefs": 34, "(timers)": 200}
	for i, f := range rowsOf(t, k.Snapshot(0, 0).Rows()) {
		if n, ok := want[f.Name]; ok && f.Count != n {
			t.Errorf("state %q has %d rows, want %d", f.Name, f.Count, n)
		}
		names := columns[k.Schemas()[i].Kind]
		if strings.HasPrefix(f.Name, "brief") {
			names = slices.Sorted(slices.Values(append([]string{"expires"}, names...)))
		}
		last := ""
		for _, row := range decoded(t, f) {
			if got := slices.Sorted(maps.Keys(row)); !slices.Equal(got, names) {
				t.Fatalf("state %q has the columns %v, want %v", f.Name, got, names)
			}
			hash, key := string(row["hash"].([]byte)), row["key"].(string)
			if hash < last {
				t.Errorf("state %q: its rows are out of order", f.Name)
			}
			last = hash
			n, err := strconv.ParseInt(strings.TrimPrefix(key, "key "), 10, 64)
			must(t, err)
			checkGoldenRow(t, f.Name, key, n, row)
		}
	}
}

// checkGoldenRow compares a row with what fillGolden made of the key numbered n.
func checkGoldenRow(t *testing.T, name, key string, n int64, row map[string]any) {
	t.Helper()
	keyHash := mustKey[string](t).Hash(key)
	hash := binary.BigEndian.Uint64(row["hash"].([]byte))
	var want, got any
	switch name {
	case "n":
		want, got = n, row["value"]
	case "list":
		want, got = []string{"a", fmt.Sprint(n)}[row["index"].(int64)], row["value"]
	case "m":
		want, got = fmt.Sprint("x", n), fmt.Sprint(row["mapKey"], row["value"])
	case "brief":
		want, got = fmt.Sprint(n, 1000+int64(brief)), fmt.Sprint(row["value"], row["expires"].(time.Time).UnixNano())
	case "(timers)":
		at := row["time"].(time.Time).UnixNano()
		want, got = row["event"].(bool), at > 0 || at == 0 && row["event"].(bool)
		keyHash = hashTimer(keyHash, base.EventTime(at))
	}
	if want != got || hash != keyHash {
		t.Errorf("state %q, key %q: %v, want %v; hash %x, want %x", name, key, got, want, hash, keyHash)
	}
}

// A key's rows may lie in several blocks, and the last of them may hold the first of the next key: a restore of a range finds its
// first row wherever it lies, also where a block begins with the first hash of the range itself.
func TestRestoreBeginsInTheMiddle(t *testing.T) {
	groupOf := func(k int64) uint64 { return uint64(k) << 49 }
	var now int64
	open := func(r base.KeyGroupRange) (*Keyed[int64], *List[string]) {
		l := &List[string]{}
		k := NewKeyed(mustKey[int64](t), r)
		k.slots.hash = groupOf
		must(t, l.Bind(k, Spec{Name: "l"}))
		k.Open(func() int64 { return now })
		return k, l
	}
	lengths := []int{3, 30_000, 1, 1, 50_000, 0, 2}
	k, l := open(allGroups)
	for key, n := range lengths {
		k.Seek(groupOf(int64(key)), int64(key))
		for i := range n {
			l.Add(fmt.Sprint(key, " ", i))
		}
		k.Settle()
	}
	files := rowsOf(t, k.Snapshot(0, 0).Rows())
	for first := range lengths {
		for last := first; last < len(lengths); last++ {
			k, l := open(base.KeyGroupRange{First: first, Last: last})
			restoreKeyedRows(t, k, files, allGroups)
			for key := first; key <= last; key++ {
				k.Seek(groupOf(int64(key)), int64(key))
				n := 0
				for s := range l.All() {
					if s != fmt.Sprint(key, " ", n) {
						t.Fatalf("element %d of key %d is %s", n, key, s)
					}
					n++
				}
				if n != lengths[key] {
					t.Errorf("%d-%d: key %d has %d elements of %d", first, last, key, n, lengths[key])
				}
			}
		}
	}
}

// The whole of a file depends on nothing but the state: not on the order of its changes, nor on how it is spread over subtasks.
func TestEqualStatesHaveEqualRows(t *testing.T) {
	var now int64
	var files [2][]rowsFile
	for i := range files {
		var v Value[int64]
		var m Map[int64, int64]
		k := newKeyed[int64](t, allGroups, &now, map[string]binder{"v": &v, "m": &m}, Spec{Name: "v"}, Spec{Name: "m"})
		for j := range int64(1000) {
			key := j
			if i == 1 {
				key = 999 - j
			}
			seek(k, key)
			v.Set(key)
			m.Put(key%7, key)
			m.Put(key%5, key)
			k.Settle()
		}
		files[i] = rowsOf(t, k.Snapshot(0, 0).Rows())
	}
	for i := range files[0] {
		if !bytes.Equal(files[0][i].file, files[1][i].file) {
			t.Errorf("state %q has other rows", files[0][i].Name)
		}
	}
}

// Types of one name in key and value, here one declared in each of two functions, have a name each; the same type has one.
func TestRowsOfTypesWithOneName(t *testing.T) {
	type inner struct{ A int32 }
	type pair struct {
		In inner
		N  uint64
	}
	type outer = pair
	key := pair{inner{1}, 2}
	var now int64
	func() {
		type inner struct{ B string }
		type pair struct {
			In inner
			N  uint64
		}
		var v Value[pair]
		k := newKeyed[outer](t, allGroups, &now, map[string]binder{"v": &v}, Spec{Name: "v"})
		k.Seek(k.Hash(key), key)
		v.Set(pair{inner{"b"}, 3})
		row := decoded(t, rowsOf(t, k.Snapshot(0, 0).Rows())[0])[0]
		if got := fmt.Sprint(row["key"], row["value"]); !strings.Contains(got, "map[A:1]") || !strings.Contains(got, "map[B:b]") {
			t.Errorf("the row is %v", row)
		}
	}()
	var m Map[pair, map[string]pair]
	k := newKeyed[pair](t, allGroups, &now, map[string]binder{"m": &m}, Spec{Name: "m"})
	k.Seek(k.Hash(key), key)
	m.Put(key, map[string]pair{"x": key})
	file := rowsOf(t, k.Snapshot(0, 0).Rows())[0]
	row := decoded(t, file)[0]
	if got := fmt.Sprint(row["key"]); got != fmt.Sprint(row["mapKey"]) || !strings.Contains(fmt.Sprint(row["value"]), got) {
		t.Errorf("the row is %v", row)
	}
	if schema := file.open(t).Property("avro.schema"); strings.Contains(schema, "__2") {
		t.Errorf("one type has two names: %s", schema)
	}
}

func TestRowsOfAnOperatorAreItsElements(t *testing.T) {
	s := newOpState(t)
	s.list.Add("a", "b")
	s.nested.Add([]int64{1}, nil)
	s.m.Put(5, "five")
	s.mm.Put("x", []int64{9})
	want := []string{
		`[map[value:a] map[value:b]]`, `[map[value:[1]] map[value:[]]]`, `[]`,
		`[map[mapKey:5 value:five]]`, `[map[mapKey:x value:[9]]]`,
	}
	for i, f := range rowsOf(t, s.ops.Snapshot().Rows()) {
		if got := fmt.Sprint(decoded(t, f)); got != want[i] || f.Keyed {
			t.Errorf("state %q: %s, want %s", f.Name, got, want[i])
		}
	}
}

// Ages come back, whatever the time to live is then, or was; a state without one gets none.
func TestAgesOfRows(t *testing.T) {
	for _, c := range []struct {
		old, new   time.Duration
		livesUntil int64 // written at 1000, restored at 1500
	}{
		{1000, 1000, 2000}, {1000, 600, 1600}, {1000, 5000, 6000}, {1<<63 - 1, 1000, 2000}, {0, 1000, 2500}, {1000, 0, 1 << 62},
	} {
		now := int64(1000)
		open := func(ttl time.Duration) *expiring {
			e := &expiring{}
			e.keyed = newKeyed[int64](t, allGroups, &now, map[string]binder{"value": &e.value, "list": &e.list, "map": &e.m},
				Spec{Name: "value", TTL: ttl}, Spec{Name: "list", TTL: ttl}, Spec{Name: "map", TTL: ttl})
			return e
		}
		e := open(c.old)
		e.seek(1)
		e.value.Set(1)
		e.list.Add(1)
		e.m.Put("x", 1)
		now = 1500
		files := rowsOf(t, e.keyed.Snapshot(0, 0).Rows())
		r := open(c.new)
		restoreKeyedRows(t, r.keyed, files, allGroups)
		for _, at := range []int64{1500, c.livesUntil - 1, c.livesUntil} {
			now = at
			r.seek(1)
			_, value := r.value.Lookup()
			_, entry := r.m.Get("x")
			lives := at < c.livesUntil || c.new == 0
			if value != lives || entry != lives || (r.list.Len() == 1) != lives {
				t.Errorf("%v, then %v: at %d %v %v %d, want %v", c.old, c.new, at, value, entry, r.list.Len(), lives)
			}
		}
	}
}
