package state

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// Golden files of version 2: a checkpoint of all that there is, and one upon it. They are restored, and written the same, for ever.
func TestFormatVersion2IsRestored(t *testing.T) {
	names := []string{"keyed-v2-1.state", "keyed-v2-2.state"}
	want, k := goldenKeyed(t)
	fillGolden(want, k)
	store := &fileStore{files: map[string][]byte{}}
	first := checkpointOf(t, k, store, 1, 0)
	for i := range int64(100) {
		key := string(rune('a' + i))
		if h := k.Hash(key); h>>60 == 3 { // a part of the range
			k.Seek(h, key)
			want.n.Set(-i)
			want.m.Put("changed", i)
			k.Timers(true).Register(base.EventTime(1000 + i))
		}
	}
	second := checkpointOf(t, k, store, 2, 1)
	for i, h := range []snapshot.Handle{first.Handle, second.Handle} {
		path := filepath.Join("testdata", "compat", names[i])
		if *update {
			must(t, os.WriteFile(path, store.files[h.File], 0o666))
		}
		file := goldenFile(t, names[i])
		if !bytes.Equal(file, store.files[h.File]) {
			t.Errorf("%s: the format changed without a new version", names[i])
		}
		store.files[h.File] = file
	}
	if len(second.Refers) != 1 {
		t.Fatalf("the second refers to %d files", len(second.Refers))
	}
	got, r := goldenKeyed(t)
	must(t, r.Restore(RestoreFile{ID: 2, Handle: second, Open: store.open}, allGroups))
	all := showKeyed(got, r)
	for key, want := range showKeyed(want, k) {
		if all[key] != want {
			t.Errorf("%s:\n got %s\nwant %s", key, all[key], want)
		}
	}
	if r.Len() != k.Len() || r.Timers(true).Len() != k.Timers(true).Len() || r.Timers(false).Len() != 100 {
		t.Errorf("%d keys, %d and %d timers", r.Len(), r.Timers(true).Len(), r.Timers(false).Len())
	}
}

// checkpointOf takes a checkpoint and stores it.
func checkpointOf[K comparable](t testing.TB, k *Keyed[K], store *fileStore, id, upon base.CheckpointID) snapshot.KeyedHandle {
	t.Helper()
	s := k.Snapshot(id, upon)
	var b bytes.Buffer
	_, err := s.WriteTo(&b)
	must(t, err)
	h := store.put(b.Bytes(), 0)
	s.Written(h)
	s.Release()
	return snapshot.KeyedHandle{Range: k.within, Handle: h, Refers: s.Refers()}
}

// isWrittenUpon fails unless a checkpoint refers to others, or does not.
func isWrittenUpon(t *testing.T, h snapshot.KeyedHandle, files int) {
	t.Helper()
	if len(h.Refers) != files {
		t.Errorf("it refers to %d files, want %d", len(h.Refers), files)
	}
}

// A base that is not known is no harm: everything is written.
func TestABaseThatIsNotKnown(t *testing.T) {
	c := newCounts(t, 2000)
	c.checkpoint()
	c.change(10, 1)
	c.checkpoint()
	isWrittenUpon(t, c.handle, 1)
	isWrittenUpon(t, checkpointOf(t, c.keyed, c.store, 3, 99), 0) // never taken
	isWrittenUpon(t, checkpointOf(t, c.keyed, c.store, 4, 0), 0)  // all is wanted
	c.keyed.Forget(4)
	isWrittenUpon(t, checkpointOf(t, c.keyed, c.store, 5, 4), 0) // aborted
	isWrittenUpon(t, checkpointOf(t, c.keyed, c.store, 6, 5), 1)
	isWrittenUpon(t, checkpointOf(t, c.keyed, c.store, 7, 2), 0) // older than one that was named before
	isWrittenUpon(t, checkpointOf(t, c.keyed, c.store, 0, 7), 1)
	s := c.keyed.Snapshot(8, 7) // not written yet
	isWrittenUpon(t, checkpointOf(t, c.keyed, c.store, 9, 8), 0)
	s.Release()
}

// Whoever neither completes nor aborts checkpoints does not fill the memory; the base stays.
func TestPendingCheckpointsAreBounded(t *testing.T) {
	c := newCounts(t, 2000)
	c.checkpoint()
	for id := range base.CheckpointID(20) {
		isWrittenUpon(t, checkpointOf(t, c.keyed, c.store, 2+id, 1), 1)
		if n := len(c.keyed.baselines); n > baselinesMost {
			t.Fatalf("%d are kept", n)
		}
	}
}

// What is small lies in the metadata, where no later checkpoint can refer to it.
func TestAnInlineCheckpointIsNotReferredTo(t *testing.T) {
	c := newCounts(t, 2000)
	c.checkpoint()
	c.change(10, 1)
	s := c.keyed.Snapshot(2, 1)
	var small bytes.Buffer
	_, err := s.WriteTo(&small)
	must(t, err)
	s.Written(snapshot.InlineHandle(small.Bytes()))
	s.Release()
	c.id, c.handle = 2, snapshot.KeyedHandle{Range: allGroups, Handle: snapshot.InlineHandle(small.Bytes()), Refers: s.Refers()}
	c.checkRestore()
	c.change(10, 1)
	c.checkpoint()
	isWrittenUpon(t, c.handle, 1)
	if c.handle.Size <= int64(small.Len()) || c.handle.Size > 3*int64(small.Len()) {
		t.Errorf("after %d bytes inline, %d are written", small.Len(), c.handle.Size)
	}
	c.checkRestore()
}

// After a restart the first checkpoint is written upon the one restored, if just that came back.
func TestTheFirstCheckpointAfterARestoreIsWrittenUponIt(t *testing.T) {
	c := newCounts(t, 2000)
	c.checkpoint()
	c.change(100, 1)
	c.checkpoint()
	restored := func(id base.CheckpointID, within base.KeyGroupRange) snapshot.KeyedHandle {
		var now int64
		var v Value[int64]
		k := newKeyed[int64](t, within, &now, map[string]binder{"count": &v}, Spec{Name: "count"})
		must(t, k.Restore(RestoreFile{ID: id, Handle: c.handle, Open: c.store.open}, within))
		k.Seek(k.Hash(c.keys[len(c.keys)-1]), c.keys[len(c.keys)-1]) // the last is in the range of the last
		v.Set(-1)
		return checkpointOf(t, k, c.store, 3, 2)
	}
	isWrittenUpon(t, restored(2, allGroups), 2)
	isWrittenUpon(t, restored(0, allGroups), 0) // its files are another's
	isWrittenUpon(t, restored(2, base.RangeOf(1, 2)), 0)
}

// A changed program writes everything at first, with its new schemas; after that it is as before.
func TestSchemasThatChange(t *testing.T) {
	var now int64
	var before Value[int32]
	old := newKeyed[int64](t, allGroups, &now, map[string]binder{"v": &before}, Spec{Name: "v"})
	store := &fileStore{files: map[string][]byte{}}
	for i := range int64(3000) {
		seek(old, i)
		before.Set(int32(i))
	}
	checkpointOf(t, old, store, 1, 0)
	seek(old, 7)
	before.Set(-7)
	h := checkpointOf(t, old, store, 2, 1)
	isWrittenUpon(t, h, 1)

	var wide, wide2 Value[int64]
	k := newKeyed[int64](t, allGroups, &now, map[string]binder{"v": &wide}, Spec{Name: "v"})
	must(t, k.Restore(RestoreFile{ID: 2, Handle: h, Open: store.open}, allGroups))
	h = checkpointOf(t, k, store, 3, 2)
	isWrittenUpon(t, h, 0)
	seek(k, 8)
	wide.Set(-8)
	h = checkpointOf(t, k, store, 4, 3)
	isWrittenUpon(t, h, 1)
	r := newKeyed[int64](t, allGroups, &now, map[string]binder{"v": &wide2}, Spec{Name: "v"})
	must(t, r.Restore(RestoreFile{ID: 4, Handle: h, Open: store.open}, allGroups))
	for i := range int64(3000) {
		want := i
		if i == 7 || i == 8 {
			want = -i
		}
		if seek(r, i); wide2.Get() != want {
			t.Fatalf("key %d is %d", i, wide2.Get())
		}
	}
}

// What had expired when the checkpoint was taken is not restored, though it still lies in a page that was written before; also
// not to a state that has a longer life now, or for ever.
func TestWhatHadExpiredStaysAway(t *testing.T) {
	var now int64 = 1000
	states := func(ttl time.Duration) (*Keyed[int64], *Value[int64], *List[int64], *Map[int64, int64]) {
		v, l, m := &Value[int64]{}, &List[int64]{}, &Map[int64, int64]{}
		k := newKeyed[int64](t, allGroups, &now, map[string]binder{"v": v, "l": l, "m": m},
			Spec{Name: "v", TTL: ttl}, Spec{Name: "l", TTL: ttl}, Spec{Name: "m", TTL: ttl})
		return k, v, l, m
	}
	k, v, l, m := states(100)
	const n = 2000
	for i := range int64(n) {
		if now = 1000; i%2 == 0 {
			now = 1090
		}
		seek(k, i)
		v.Set(i)
		l.Add(i)
		m.Put(1, i)
		if now = 1090; i%4 == 1 { // its list and map live on, in part
			l.Add(-i)
			m.Put(2, -i)
		}
	}
	store := &fileStore{files: map[string][]byte{}}
	checkpointOf(t, k, store, 1, 0)
	now = 1100 // the odd ones expire
	h := checkpointOf(t, k, store, 2, 1)
	isWrittenUpon(t, h, 1)
	for _, ttl := range []time.Duration{100, 100_000, 0} {
		r, v, l, m := states(ttl)
		must(t, r.Restore(RestoreFile{ID: 2, Handle: h, Open: store.open}, allGroups))
		must(t, checkIndex(&r.index))
		if r.Len() != n/4*3 {
			t.Errorf("%v: %d keys", ttl, r.Len())
		}
		for i := range int64(n) {
			seek(r, i)
			_, ok := v.Lookup()
			_, first := m.Get(1)
			_, second := m.Get(2)
			if even, part := i%2 == 0, i%4 == 1; ok != even || first != even || second != part || (l.Len() == 1) != (even || part) {
				t.Fatalf("%v: key %d has %v %v %v %d", ttl, i, ok, first, second, l.Len())
			}
		}
		isWrittenUpon(t, checkpointOf(t, r, store, 3, 2), map[bool]int{true: 1}[ttl == 100])
	}
}

// Files that are not those of the metadata, or not all of them, or damaged anywhere, are refused.
func TestDamageOfManyFilesIsNoticed(t *testing.T) {
	c := newCounts(t, 1000)
	c.checkpoint()
	c.change(200, 1)
	c.checkpoint()
	c.change(200, 1)
	c.checkpoint()
	isWrittenUpon(t, c.handle, 2)
	restore := func(h snapshot.KeyedHandle, open func(h snapshot.Handle) (io.ReaderAt, error)) error {
		var now int64
		k := newKeyed[int64](t, allGroups, &now, map[string]binder{"count": &Value[int64]{}}, Spec{Name: "count"})
		return k.Restore(RestoreFile{ID: c.id, Handle: h, Open: open}, allGroups)
	}
	must(t, restore(c.handle, c.store.open))

	fewer := c.handle
	fewer.Refers = fewer.Refers[:1]
	if err := restore(fewer, c.store.open); !errors.Is(err, ErrCorrupt) {
		t.Errorf("one file less: %v", err)
	}
	swapped := c.handle
	swapped.Refers = []snapshot.Handle{c.handle.Refers[1], c.handle.Refers[0]}
	if err := restore(swapped, c.store.open); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "/file-") {
		t.Errorf("files swapped: %v", err)
	}
	missing := func(h snapshot.Handle) (io.ReaderAt, error) {
		if h.File == c.handle.Refers[0].File {
			return nil, os.ErrNotExist
		}
		return c.store.open(h)
	}
	if err := restore(c.handle, missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is missing: %v", err)
	}
	whole := c.store.files[c.handle.File]
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 0x10
		c.store.files[c.handle.File] = b
		if err := restore(c.handle, c.store.open); err == nil {
			t.Fatalf("a changed byte at %d was not noticed", i)
		}
	}
}

// A root that had grown for more keys than are left is restored in another shape: then pages are found one by one.
func TestARootOfAnotherShapeAfterARestore(t *testing.T) {
	c := newCounts(t, 20_000)
	for _, k := range c.keys {
		if k%7 > 0 {
			c.keyed.Seek(c.keyed.Hash(k), k)
			c.count.Clear()
			c.keyed.Settle()
			delete(c.model, k)
		}
	}
	c.checkpoint()
	var now int64
	r := &counts{t: t, model: c.model, store: c.store, id: 1}
	r.keyed = newKeyed[int64](t, allGroups, &now, map[string]binder{"count": &r.count}, Spec{Name: "count"})
	must(t, r.keyed.Restore(RestoreFile{ID: 1, Handle: c.handle, Open: c.store.open}, allGroups))
	if len(r.keyed.root) == len(c.keyed.root) {
		t.Fatalf("both roots have %d segments", len(r.keyed.root))
	}
	r.set(7, -7)
	r.checkpoint()
	isWrittenUpon(t, r.handle, 1)
	if r.handle.Size > c.handle.Size/4 {
		t.Errorf("%d bytes were written for one change of %d", r.handle.Size, c.handle.Size)
	}
	r.checkRestore()
}
