package state

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/weirstream/weir/internal/fit"
	"github.com/weirstream/weir/internal/snapshot"
)

// account is a type as an older version of a program has it, account2 as a newer one has it: a field was added, one removed, one
// renamed, one widened, and the order is another.
type (
	account struct {
		ID    int32
		Owner string
		Old   []string
		Notes map[string]int32
	}
	account2 struct {
		Holder string `weir:"was=Owner"`
		ID     int64
		New    float64
		Notes  map[string]int64
		Cache  int `weir:"-"`
	}
)

func oldAccount(i int) account {
	return account{int32(i), fmt.Sprint("owner ", i), []string{"x"}, map[string]int32{"n": int32(i)}}
}

func newAccount(i int) account2 {
	return account2{Holder: fmt.Sprint("owner ", i), ID: int64(i), Notes: map[string]int64{"n": int64(i)}}
}

func addIDs(a, b account) account    { a.ID += b.ID; return a }
func addIDs2(a, b account2) account2 { a.ID += b.ID; return a }

// ledger has a state of every kind by key; plain accounts are an A, keys of maps an M.
type ledger[A any, M comparable] struct {
	value   Value[A]
	list    List[A]
	byKey   Map[M, A]
	reduced Reducing[A]
	sum     Aggregating[A, A, A]
}

func (l *ledger[A, M]) fields() map[string]binder {
	return map[string]binder{"value": &l.value, "list": &l.list, "map": &l.byKey, "reduced": &l.reduced, "sum": &l.sum}
}

var ledgerSpecs = []Spec{{Name: "value"}, {Name: "list", TTL: 1000}, {Name: "map"}, {Name: "reduced"}, {Name: "sum"}}

func openLedger[K, M comparable, A any](t *testing.T, now *int64, add func(a, b A) A) (*Keyed[K], *ledger[A, M]) {
	l := &ledger[A, M]{}
	k := newKeyed[K](t, allGroups, now, l.fields(), ledgerSpecs...)
	l.reduced.Use(add)
	l.sum.Use(Aggregate[A, A, A]{Add: add, Result: func(a A) A { return a }})
	return k, l
}

// fill gives the current key what is due to i.
func (l *ledger[A, M]) fill(i int, a func(int) A, m M) {
	l.value.Set(a(i))
	l.list.Add(a(i), a(i+1))
	l.byKey.Put(m, a(i))
	l.reduced.Add(a(i))
	l.sum.Add(a(i))
}

func (l *ledger[A, M]) show() string {
	return fmt.Sprint(l.value.Get(), slices.Collect(l.list.All()), maps.Collect(l.byKey.All()), l.reduced.Get(), l.sum.Get())
}

// files are a snapshot in both formats.
type files struct {
	native []byte
	rows   []rowsFile
}

func filesOf[K comparable](t *testing.T, k *Keyed[K]) files {
	rows := k.Snapshot(0, 0)
	f := files{native: fileOf(t, k.Snapshot(0, 0)), rows: rowsOf(t, rows.Rows())}
	rows.Release()
	return f
}

func restoreFiles[K comparable](t *testing.T, k *Keyed[K], f files, canonical bool) (err error) {
	if !canonical {
		return k.Restore(inMemory(f.native), allGroups)
	}
	for _, r := range f.rows {
		err = errors.Join(err, k.RestoreRows(r.open(t), allGroups, namesOf(f.rows)))
	}
	return err
}

const ledgerKeys = 200

// State of every kind, whose type, key, map's key and timers' key are all others now, comes back whole: also what nobody touches
// between the restore and the next snapshot, and also when that is of another format.
func TestEveryKindOfStateMigrates(t *testing.T) {
	var now int64
	old, l := openLedger[int32, int32](t, &now, addIDs)
	for i := range ledgerKeys {
		old.Seek(old.Hash(int32(i)), int32(i))
		l.fill(i, oldAccount, int32(i))
		old.Timers(true).Register(5)
		old.Settle()
	}
	first := filesOf(t, old)
	for _, canonical := range []bool{false, true} {
		k, l := openLedger[int64, int64](t, &now, addIDs2)
		must(t, restoreFiles(t, k, first, canonical))
		must(t, checkIndex(&k.index))
		seek(k, 7)
		l.value.Set(newAccount(1007))
		second := filesOf(t, k)
		for _, canonical := range []bool{false, true} {
			k, l := openLedger[int64, int64](t, &now, addIDs2)
			must(t, restoreFiles(t, k, second, canonical))
			checkLedger(t, &now, k, l)
		}
	}
}

func checkLedger(t *testing.T, now *int64, k *Keyed[int64], l *ledger[account2, int64]) {
	t.Helper()
	if k.Len() != ledgerKeys || k.Timers(true).Len() != ledgerKeys {
		t.Fatalf("%d keys, %d timers", k.Len(), k.Timers(true).Len())
	}
	want, w := openLedger[int64, int64](t, now, addIDs2)
	for i := range int64(ledgerKeys) {
		seek(want, i)
		w.fill(int(i), newAccount, i)
		if i == 7 {
			w.value.Set(newAccount(1007))
		}
		seek(k, i)
		if l.show() != w.show() {
			t.Fatalf("key %d: %s, want %s", i, l.show(), w.show())
		}
	}
	if n := len(popAll(k.Timers(true), 5)); n != ledgerKeys {
		t.Errorf("%d timers fire", n)
	}
}

// operatorBinder is a field of operator state.
type operatorBinder interface{ Bind(*Operator, Spec) error }

func TestOperatorStateMigrates(t *testing.T) {
	var list OperatorList[account]
	var union UnionList[account]
	var broadcast BroadcastMap[int32, account]
	old := bound(t, &list, &union, &broadcast)
	for i := range 10 {
		list.Add(oldAccount(i))
		union.Add(oldAccount(i))
		broadcast.Put(int32(i), oldAccount(i))
	}
	s := old.Snapshot()
	var file bytes.Buffer
	_, err := s.WriteTo(&file)
	must(t, err)
	rows := rowsOf(t, s.Rows())
	for _, canonical := range []bool{false, true} {
		var list OperatorList[account2]
		var union UnionList[account2]
		var broadcast BroadcastMap[int64, account2]
		o := bound(t, &list, &union, &broadcast)
		for i, h := range s.Lists() {
			if canonical {
				must(t, o.RestoreRows(rows[i].open(t), 0, 10))
			} else {
				must(t, o.Restore(bytes.NewReader(file.Bytes()), int64(file.Len()), h))
			}
		}
		lists, unions := slices.Collect(list.All()), slices.Collect(union.All())
		for i := range 10 {
			want := fmt.Sprint(newAccount(i))
			b, _ := broadcast.Get(int64(i))
			if fmt.Sprint(lists[i]) != want || fmt.Sprint(unions[i]) != want || fmt.Sprint(b) != want {
				t.Errorf("canonical %v: %v, %v, %v, want %s", canonical, lists[i], unions[i], b, want)
			}
		}
	}
}

// A list that is stored under its new name is not filled from what has its old name too, even where none of it falls to the subtask:
// that is dropped.
func TestAnOldNameGivesWayToTheNewOne(t *testing.T) {
	var before, after OperatorList[int64]
	old := NewOperator()
	must(t, before.Bind(old, Spec{Name: "old"}))
	must(t, after.Bind(old, Spec{Name: "new"}))
	before.Add(1)
	after.Add(2)
	s := old.Snapshot()
	var file bytes.Buffer
	_, err := s.WriteTo(&file)
	must(t, err)
	rows := rowsOf(t, s.Rows())
	for _, canonical := range []bool{false, true} {
		for _, stored := range [][]string{{"old"}, {"old", "new"}} {
			var list OperatorList[int64]
			o := NewOperator()
			must(t, list.Bind(o, Spec{Name: "new", Was: "old"}))
			o.AllowDropped()
			o.Stored(stored)
			for i, h := range s.Lists() {
				switch {
				case h.Name != "old":
				case canonical:
					must(t, o.RestoreRows(rows[i].open(t), 0, 1))
				default:
					must(t, o.Restore(bytes.NewReader(file.Bytes()), int64(file.Len()), h))
				}
			}
			want := []int64{1}
			if len(stored) == 2 {
				want = nil
			}
			if got := slices.Collect(list.All()); !slices.Equal(got, want) {
				t.Errorf("canonical %v, stored are %q: %v, want %v", canonical, stored, got, want)
			}
		}
	}
}

func bound(t *testing.T, fields ...operatorBinder) *Operator {
	o := NewOperator()
	for i, f := range fields {
		must(t, f.Bind(o, Spec{Name: fmt.Sprint("state ", i)}))
	}
	return o
}

// change is a state of key 1 as it was, and as it is now.
type change struct {
	name    string
	was, is binder
	fill    func()
	fits    bool
}

func valueChange[A, B any](name string, v A, fits bool) change {
	was := &Value[A]{}
	return change{name: name, was: was, is: new(Value[B]), fill: func() { was.Set(v) }, fits: fits}
}

func listChange[A, B any](name string, v A, fits bool) change {
	was := &List[A]{}
	return change{name: name, was: was, is: new(List[B]), fill: func() { was.Add(v, v, v) }, fits: fits}
}

func mapChange[A, B comparable](name string, v A, fits bool) change {
	was := &Map[A, int64]{}
	return change{name: name, was: was, is: new(Map[B, int64]), fill: func() { was.Put(v, 1) }, fits: fits}
}

type (
	empty  struct{}
	filled struct{ X int64 }
	hidden struct {
		X int64
		Y int `weir:"-"`
	}
	shown struct {
		X int64
		Y int
	}
)

// What is refused before anything runs is what a restore refuses, from either format.
func TestTheCheckAndTheRestoreAgree(t *testing.T) {
	list := &List[int64]{}
	for _, c := range []change{
		valueChange[int64, int64]("same", 1, true),
		valueChange[int32, int64]("widened", 1, true),
		valueChange[int64, int32]("narrowed", 1, false),
		valueChange[int32, float64]("an integer as a float", 1, true),
		valueChange[float32, float64]("a float widened", 1, true),
		valueChange[int64, string]("a number as text", 1, false),
		valueChange[string, []byte]("text as bytes", "a", true),
		valueChange[int64, *int64]("made optional", 1, true),
		valueChange[*int64, int64]("made mandatory", new(int64), false),
		valueChange[account, account2]("a struct", oldAccount(1), true),
		valueChange[filled, account]("nothing in common", filled{1}, false),
		valueChange[filled, hidden]("a field that is not kept was added", filled{1}, true),
		valueChange[hidden, shown]("a field is kept now", hidden{1, 2}, true),
		valueChange[[]filled, []hidden]("a slice", []filled{{1}}, true),
		valueChange[[]filled, filled]("a slice as its element", []filled{{1}}, false),
		valueChange[map[int32]int32, map[int64]int64]("a map", map[int32]int32{1: 1}, true),
		valueChange[map[int64]int32, map[string]int32]("a map's key", map[int64]int32{1: 1}, false),
		valueChange[uint64, int64]("uint64 as int64", 1, false),
		valueChange[empty, filled]("nothing as something", empty{}, true),
		listChange[account, account2]("a list", oldAccount(1), true),
		listChange[int64, int32]("a list narrowed", 1, false),
		listChange[empty, filled]("a list of nothing as of something", empty{}, false),
		listChange[empty, *empty]("a list of nothing made optional", empty{}, true),
		listChange[filled, empty]("a list of something as of nothing", filled{1}, true),
		mapChange[int32, int64]("a map state's key widened", 1, true),
		mapChange[int64, int32]("a map state's key narrowed", 1, false),
		mapChange[int64, string]("a map state's key as text", 1, false),
		mapChange[string, string]("a map state's key kept", "a", true),
		{name: "another kind", was: list, is: new(Value[int64]), fill: func() { list.Add(1) }},
	} {
		t.Run(c.name, c.check)
	}
}

func (c change) check(t *testing.T) {
	var now int64
	old := newKeyed[int64](t, allGroups, &now, map[string]binder{"s": c.was}, Spec{Name: "s"})
	seek(old, 1)
	c.fill()
	f := filesOf(t, old)
	for _, canonical := range []bool{false, true} {
		k := newKeyed[int64](t, allGroups, &now, map[string]binder{"s": c.is}, Spec{Name: "s"})
		agrees(t, "check", fit.States(operatorOf(old.Schemas()), k.Schemas(), false), c.fits)
		agrees(t, fmt.Sprint("restore, canonical: ", canonical), restoreFiles(t, k, f, canonical), c.fits)
	}
}

// operatorOf is an operator with keyed state of these schemas in a checkpoint.
func operatorOf(schemas []snapshot.StateSchema) *snapshot.Operator {
	return &snapshot.Operator{Parallelism: 1, Schemas: schemas, Subtasks: []snapshot.Subtask{{Keyed: []snapshot.KeyedHandle{{Range: allGroups}}}}}
}

// inBothOrders are schemas, and the same the other way round: in which order states are declared makes no difference.
func inBothOrders(schemas []snapshot.StateSchema) [][]snapshot.StateSchema {
	reversed := slices.Clone(schemas)
	slices.Reverse(reversed)
	return [][]snapshot.StateSchema{schemas, reversed}
}

// TestTheCheckFindsWhatTheRestoreFinds: states that are renamed, gone, or only declared.
func TestTheCheckFindsWhatTheRestoreFinds(t *testing.T) {
	for _, c := range []struct {
		name    string
		is      map[string]Spec
		dropped bool
		fits    bool
	}{
		{"renamed", map[string]Spec{"v": {Name: "new", Was: "s"}}, false, true},
		{"renamed to what has another type", map[string]Spec{"text": {Name: "new", Was: "s"}}, false, false},
		{"renamed, and it may be dropped", map[string]Spec{"text": {Name: "new", Was: "s"}}, true, false},
		{"gone", map[string]Spec{"v": {Name: "other"}}, false, false},
		{"gone, and it may be dropped", map[string]Spec{"v": {Name: "other"}}, true, true},
		{"kept beside one that was called so", map[string]Spec{"v": {Name: "s"}, "text": {Name: "new", Was: "s"}}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var now int64
			v := new(Value[int64])
			old := newKeyed[int64](t, allGroups, &now, map[string]binder{"s": v}, Spec{Name: "s"})
			seek(old, 1)
			v.Set(1)
			f := filesOf(t, old)
			for _, canonical := range []bool{false, true} {
				var specs []Spec
				fields := map[string]binder{}
				for field, spec := range c.is {
					specs = append(specs, spec)
					fields[spec.Name] = map[string]binder{"v": new(Value[int64]), "text": new(Value[string])}[field]
				}
				k := newKeyed[int64](t, allGroups, &now, fields, specs...)
				if c.dropped {
					k.AllowDropped()
				}
				for _, declared := range inBothOrders(k.Schemas()) {
					agrees(t, "check", fit.States(operatorOf(old.Schemas()), declared, c.dropped), c.fits)
				}
				agrees(t, fmt.Sprint("restore, canonical: ", canonical), restoreFiles(t, k, f, canonical), c.fits)
			}
		})
	}
	declaredOnly := operatorOf([]snapshot.StateSchema{{Name: "s", Kind: KindValue, Key: `"long"`, Value: `"long"`}})
	declaredOnly.Subtasks[0].Keyed = nil
	agrees(t, "nothing is stored", fit.States(declaredOnly, nil, false), true)
}

func agrees(t *testing.T, what string, err error, fits bool) {
	t.Helper()
	var refused *SchemaError
	if (err == nil) != fits || err != nil && !errors.As(err, &refused) {
		t.Errorf("%s: %v, fits: %v", what, err, fits)
	}
}
