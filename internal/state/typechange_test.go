package state_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/fit"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
)

// State whose types have changed is tried with every type in every place, kept in every way, at another parallelism each time:
//
//	the old program, 2 subtasks: fills every key
//	the new program, 3 subtasks: touches one key, and reads none
//	the new program, 1 subtask:  reads every key, the touched and the untouched

// verdict is what becomes of state whose type has changed; what is refused has a list of its own.
type verdict string

const (
	same    verdict = "same"    // the bytes are those of the new type
	migrate verdict = "migrate" // they are read as the new type, and written so from then on
)

// opener opens the state of one subtask.
type opener func(t *testing.T, within base.KeyGroupRange) *home

// tryPlaces lets the state of the older program go on with the newer.
func tryPlaces(t *testing.T, old, now opener) {
	before, after := old(t, allGroups), now(t, allGroups)
	must(t, fit.States(storedKeyed(before.keyed.Schemas()), after.keyed.Schemas(), false))
	must(t, fit.States(storedLists(before.operator.Schemas()), after.operator.Schemas(), false))
	for _, m := range []medium{inCheckpoint, inCanonical, inNative} {
		homes := restoreAll(t, keepAll(t, m, old, 2), now, 3)
		for _, h := range homes {
			if h.owns(0) {
				h.later = h.touch
			}
		}
		last := restoreAll(t, keepHomes(t, m, homes), now, 1)[0]
		if n := last.keyed.Len(); n != last.keys {
			t.Errorf("%v: %d keys, want %d", m, n, last.keys)
		}
		if err := last.check(); err != nil {
			t.Errorf("%v: %v", m, err)
		}
	}
}

// ---- places of state

// home is the state of a subtask, keyed and the operator's, in which values or keys of one type stand at every place that there is.
type home struct {
	keyed    keyedState
	operator *state.Operator
	within   base.KeyGroupRange
	keys     int    // of all subtasks
	later    func() // what happens before the state is kept, but after the checkpoint before; nil: nothing
	hash     func(i int) uint64
	fill     func(i int)
	touch    func()
	check    func() error // on the one subtask that has everything
}

// keyedState is a Keyed of any type of keys.
type keyedState interface {
	Len() int
	Settle()
	Schemas() []snapshot.StateSchema
	Snapshot(id, upon base.CheckpointID) *state.KeyedSnapshot
	Restore(from state.RestoreFile, within base.KeyGroupRange) error
	RestoreRows(f *state.RowsFile, within base.KeyGroupRange, stored []string) error
}

// binder is a field of keyed state, listBinder one of operator state.
type (
	binder interface {
		Bind(state.Table, state.Spec) error
	}
	listBinder interface {
		Bind(*state.Operator, state.Spec) error
	}
)

var allGroups = base.KeyGroupRange{First: 0, Last: base.KeyGroups - 1}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// openKeyed opens keyed state. Lists and sums expire, long after the test.
func openKeyed[K comparable](t *testing.T, within base.KeyGroupRange, fields map[string]binder) *state.Keyed[K] {
	key, err := codec.KeyFor[K]()
	must(t, err)
	k := state.NewKeyed(key, within)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		spec := state.Spec{Name: name}
		if name == "list" || name == "sum" {
			spec.TTL = 1000
		}
		must(t, fields[name].Bind(k, spec))
	}
	k.Open(func() int64 { return 0 })
	return k
}

func openOperator(t *testing.T, lists ...listBinder) *state.Operator {
	o := state.NewOperator()
	for i, l := range lists {
		must(t, l.Bind(o, state.Spec{Name: fmt.Sprint("list ", i)}))
	}
	return o
}

func (h *home) owns(i int) bool {
	least, most := h.within.Hashes()
	return h.hash(i) >= least && h.hash(i) <= most
}

const shelfKeys = 12

// shelvesOf makes homes in which the values of int64 keys are of V: the i-th key has the i-th of vs, over and over again.
func shelvesOf[V any](vs []V) opener {
	of := func(i int) V { return vs[i%len(vs)] }
	return func(t *testing.T, within base.KeyGroupRange) *home {
		s := &shelf[V]{}
		k := openKeyed[int64](t, within, map[string]binder{"value": &s.value, "list": &s.list, "map": &s.byKey, "reduced": &s.reduced, "sum": &s.sum})
		s.reduced.Use(func(_, b V) V { return b })
		s.sum.Use(state.Aggregate[V, V, V]{Add: func(_, b V) V { return b }, Result: func(a V) V { return a }})
		h := &home{keyed: k, within: within, keys: shelfKeys, operator: openOperator(t, &s.oplist, &s.union, &s.broadcast)}
		seek := func(i int) { k.Seek(k.Hash(int64(i)), int64(i)) }
		h.hash = func(i int) uint64 { return k.Hash(int64(i)) }
		h.fill = func(i int) {
			seek(i)
			v := of(i)
			s.value.Set(v)
			s.list.Add(v, of(i+1))
			s.byKey.Put(int64(i), v)
			s.reduced.Add(v)
			s.sum.Add(v)
			s.oplist.Add(v)
			s.union.Add(v)
			s.broadcast.Put(int64(i), v)
		}
		h.touch = func() { seek(0); s.value.Set(of(1)) }
		h.check = func() (err error) {
			for i := range shelfKeys {
				seek(i)
				err = errors.Join(err, s.check(i, of))
			}
			return errors.Join(err, s.checkOperator(of))
		}
		return h
	}
}

// shelf is every state of values of V.
type shelf[V any] struct {
	value     state.Value[V]
	list      state.List[V]
	byKey     state.Map[int64, V]
	reduced   state.Reducing[V]
	sum       state.Aggregating[V, V, V]
	oplist    state.OperatorList[V]
	union     state.UnionList[V]
	broadcast state.BroadcastMap[int64, V]
}

// check compares what the i-th key has.
func (s *shelf[V]) check(i int, of func(i int) V) error {
	want := of(i)
	wantValue := want
	if i == 0 {
		wantValue = of(1)
	}
	got := map[string][2]any{"value": {s.value.Get(), wantValue}, "list": {slices.Collect(s.list.All()), []V{want, of(i + 1)}},
		"map": {maps.Collect(s.byKey.All()), map[int64]V{int64(i): want}}, "reduced": {s.reduced.Get(), want}, "sum": {s.sum.Get(), want}}
	return differences(fmt.Sprint("key ", i), got)
}

func (s *shelf[V]) checkOperator(of func(i int) V) error {
	all := make([]V, shelfKeys)
	byKey := map[int64]V{}
	for i := range all {
		all[i] = of(i)
		byKey[int64(i)] = of(i)
	}
	// Which subtask had which is another's business: here they stand in some order.
	less := func(a, b V) int { return cmp.Compare(shown(a), shown(b)) }
	slices.SortFunc(all, less)
	return differences("operator", map[string][2]any{"list": {slices.SortedFunc(s.oplist.All(), less), all}, "union": {slices.SortedFunc(s.union.All(), less), all},
		"broadcast": {maps.Collect(s.broadcast.All()), byKey}})
}

// shown tells values apart, also behind pointers.
func shown(v any) string {
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Pointer && !r.IsNil() {
		return shown(r.Elem().Interface())
	}
	return fmt.Sprintf("%+v", v)
}

func differences(of string, got map[string][2]any) (err error) {
	for place, g := range got {
		if !reflect.DeepEqual(g[0], g[1]) {
			err = errors.Join(err, fmt.Errorf("%s, %s: got %s, want %s", of, place, shown(g[0]), shown(g[1])))
		}
	}
	return err
}

// ringsOf makes homes whose keys, those of map state, timers and broadcast maps included, are keys.
func ringsOf[K comparable](keys []K) opener {
	return func(t *testing.T, within base.KeyGroupRange) *home {
		var value state.Value[int64]
		var byKey state.Map[K, int64]
		var broadcast state.BroadcastMap[K, int64]
		k := openKeyed[K](t, within, map[string]binder{"value": &value, "map": &byKey})
		h := &home{keyed: k, within: within, keys: len(keys), operator: openOperator(t, &broadcast)}
		seek := func(i int) { k.Seek(k.Hash(keys[i]), keys[i]) }
		h.hash = func(i int) uint64 { return k.Hash(keys[i]) }
		h.fill = func(i int) {
			seek(i)
			value.Set(int64(i))
			byKey.Put(keys[i], int64(i))
			k.Timers(true).Register(base.EventTime(i))
			k.Timers(false).Register(base.EventTime(i))
			broadcast.Put(keys[i], int64(i))
		}
		h.touch = func() { seek(0); value.Set(100) }
		h.check = func() (err error) {
			all := map[K]int64{}
			for i, key := range keys {
				seek(i)
				want := int64(i)
				if all[key] = want; i == 0 {
					want = 100
				}
				err = errors.Join(err, differences(fmt.Sprint("key ", key), map[string][2]any{"value": {value.Get(), want},
					"map": {maps.Collect(byKey.All()), map[K]int64{key: int64(i)}}}))
			}
			return errors.Join(err, differences("operator", map[string][2]any{"broadcast": {maps.Collect(broadcast.All()), all},
				"event timers": {fires(k.Timers(true)), all}, "processing timers": {fires(k.Timers(false)), all}}))
		}
		return h
	}
}

// fires are the times of all timers, by key.
func fires[K comparable](timers *state.Timers[K]) map[K]int64 {
	all := map[K]int64{}
	for {
		_, key, at, ok := timers.Pop(1 << 40)
		if !ok {
			return all
		}
		all[key] = int64(at)
	}
}

// ---- ways to keep state

// medium is a way in which state is kept.
type medium string

const (
	inCheckpoint medium = "checkpoint" // the second of two, which builds upon the first
	inCanonical  medium = "canonical savepoint"
	inNative     medium = "native savepoint"
)

// kept is the state of all subtasks.
type kept struct {
	medium   medium
	files    map[string][]byte
	native   []snapshot.KeyedHandle
	rows     [][]keptRows
	operator []keptOperator
}

// keptOperator is the operator state of one subtask.
type keptOperator struct {
	file  []byte
	lists []snapshot.ListHandle
	rows  []keptRows // of a canonical savepoint
}

// keptRows is a file of rows and its index.
type keptRows struct {
	handle      snapshot.RowsHandle
	file, index []byte
}

func writeRows(t *testing.T, all []*state.Rows) (files []keptRows) {
	for _, r := range all {
		var b bytes.Buffer
		_, err := r.WriteTo(&b)
		must(t, err)
		files = append(files, keptRows{r.Handle(), b.Bytes(), r.Index()})
	}
	return files
}

// keepAll fills the homes of p subtasks and keeps them.
func keepAll(t *testing.T, m medium, open opener, p int) *kept {
	var homes []*home
	for i := range p {
		homes = append(homes, open(t, base.RangeOf(i, p)))
	}
	for _, h := range homes {
		fill := func(first int) {
			for i := first; i < h.keys; i += 2 {
				if h.owns(i) {
					h.fill(i)
				}
			}
		}
		fill(0)
		h.later = func() { fill(1) }
	}
	return keepHomes(t, m, homes)
}

func keepHomes(t *testing.T, m medium, homes []*home) *kept {
	all := &kept{medium: m, files: map[string][]byte{}}
	for i, h := range homes {
		all.keep(t, i, h)
		all.keepOperator(t, h.operator)
	}
	return all
}

func (all *kept) keep(t *testing.T, subtask int, h *home) {
	h.keyed.Settle()
	if all.medium == inCheckpoint {
		all.write(t, fmt.Sprint(subtask, "-first"), h.keyed.Snapshot(1, 0), h.within)
	}
	if h.later != nil {
		h.later()
		h.keyed.Settle()
	}
	switch all.medium {
	case inCanonical:
		s := h.keyed.Snapshot(0, 0)
		all.rows = append(all.rows, writeRows(t, s.Rows()))
		s.Release()
	case inNative:
		all.native = append(all.native, all.write(t, fmt.Sprint(subtask, "-savepoint"), h.keyed.Snapshot(0, 0), h.within))
	default:
		all.native = append(all.native, all.write(t, fmt.Sprint(subtask, "-second"), h.keyed.Snapshot(2, 1), h.within))
	}
}

// write writes a snapshot to a file.
func (all *kept) write(t *testing.T, name string, s *state.KeyedSnapshot, within base.KeyGroupRange) snapshot.KeyedHandle {
	var b bytes.Buffer
	_, err := s.WriteTo(&b)
	must(t, err)
	all.files[name] = b.Bytes()
	h := snapshot.Handle{File: name, Size: int64(b.Len()), CRC: snapshot.Checksum(0, b.Bytes())}
	kept := snapshot.KeyedHandle{Range: within, Handle: h, Refers: s.Refers()}
	s.Written(h)
	s.Release()
	return kept
}

func (all *kept) keepOperator(t *testing.T, o *state.Operator) {
	s := o.Snapshot()
	var k keptOperator
	var b bytes.Buffer
	_, err := s.WriteTo(&b)
	must(t, err)
	if k.file, k.lists = b.Bytes(), s.Lists(); all.medium == inCanonical {
		k.rows = writeRows(t, s.Rows())
	}
	all.operator = append(all.operator, k)
}

// restoreAll restores what is kept to p subtasks. The lists are dealt out as they come.
func restoreAll(t *testing.T, all *kept, open opener, p int) (homes []*home) {
	for i := range p {
		h := open(t, base.RangeOf(i, p))
		must(t, all.restore(h))
		homes = append(homes, h)
	}
	for i, k := range all.operator {
		must(t, homes[i%p].restoreOperator(k))
	}
	return homes
}

// restore restores the keyed state that h shall have.
func (all *kept) restore(h *home) (err error) {
	for _, n := range all.native {
		from := state.RestoreFile{ID: 2, Handle: n, Open: func(h snapshot.Handle) (io.ReaderAt, error) { return bytes.NewReader(all.files[h.File]), nil }}
		err = errors.Join(err, h.keyed.Restore(from, n.Range))
	}
	for _, files := range all.rows {
		var names []string
		for _, f := range files {
			names = append(names, f.handle.Name)
		}
		for _, f := range files {
			rows, e := state.OpenRows(bytes.NewReader(f.file), int64(len(f.file)), f.index)
			if e == nil {
				e = h.keyed.RestoreRows(rows, allGroups, names)
			}
			err = errors.Join(err, e)
		}
	}
	return err
}

func (h *home) restoreOperator(k keptOperator) (err error) {
	for i, l := range k.lists {
		if k.rows == nil {
			err = errors.Join(err, h.operator.Restore(bytes.NewReader(k.file), int64(len(k.file)), l))
			continue
		}
		f := k.rows[i]
		rows, e := state.OpenRows(bytes.NewReader(f.file), int64(len(f.file)), f.index)
		if e == nil {
			e = h.operator.RestoreRows(rows, 0, f.handle.Count)
		}
		err = errors.Join(err, e)
	}
	return err
}

// storedKeyed is an operator with keyed state of these schemas in a checkpoint, storedLists one with lists.
func storedKeyed(schemas []snapshot.StateSchema) *snapshot.Operator {
	return &snapshot.Operator{Parallelism: 1, Schemas: schemas, Subtasks: []snapshot.Subtask{{Keyed: []snapshot.KeyedHandle{{Range: allGroups}}}}}
}

func storedLists(schemas []snapshot.StateSchema) *snapshot.Operator {
	o := &snapshot.Operator{Parallelism: 1, Schemas: schemas, Subtasks: []snapshot.Subtask{{}}}
	for _, s := range schemas {
		o.Subtasks[0].Lists = append(o.Subtasks[0].Lists, snapshot.ListHandle{Name: s.Name})
	}
	return o
}
