package state

import (
	"bytes"
	"io"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/snapshot"
)

func TestExpired(t *testing.T) {
	for _, c := range []struct {
		stamp, ttl, now int64
		want            bool
	}{
		{100, 10, 109, false},
		{100, 10, 110, true}, // Flink: expired when stamp + ttl <= now
		{100, 10, 50, false}, // the clock was set back
		{math.MaxInt64 - 5, 10, math.MaxInt64, false},
		{math.MinInt64, 10, 0, true},
		{-100, 10, -91, false},
		{-100, 10, -90, true},
		{0, math.MaxInt64, math.MaxInt64, true},
	} {
		if got := expired(c.stamp, time.Duration(c.ttl), c.now); got != c.want {
			t.Errorf("written at %d with ttl %d, expired at %d: %v", c.stamp, c.ttl, c.now, got)
		}
	}
}

// expiring is a Keyed with one expiring state of each kind.
type expiring struct {
	now   int64
	keyed *Keyed[int64]
	value Value[int64]
	list  List[int64]
	m     Map[string, int64]
}

func newExpiring(t testing.TB, now int64) *expiring {
	e := &expiring{now: now}
	e.keyed = newKeyed[int64](t, allGroups, &e.now, map[string]binder{"value": &e.value, "list": &e.list, "map": &e.m},
		Spec{Name: "value", TTL: 10}, Spec{Name: "list", TTL: 10}, Spec{Name: "map", TTL: 10})
	return e
}

func (e *expiring) seek(k int64) { e.keyed.Seek(e.keyed.Hash(k), k) }

func TestExpiredStateIsNeverReturned(t *testing.T) {
	e := newExpiring(t, 100)
	e.seek(1)
	e.value.Set(1)
	e.list.Add(1)
	e.m.Put("a", 1)
	e.now = 105
	e.list.Add(2)
	e.m.Put("b", 2)
	e.now = 110
	if _, ok := e.value.Lookup(); ok {
		t.Error("the value has not expired")
	}
	if got := slices.Collect(e.list.All()); !slices.Equal(got, []int64{2}) || e.list.Len() != 1 {
		t.Errorf("the list is %v", got)
	}
	if got := maps.Collect(e.m.All()); len(got) != 1 || got["b"] != 2 || e.m.Len() != 1 {
		t.Errorf("the map is %v", got)
	}
	if _, ok := e.m.Get("a"); ok {
		t.Error("an entry of the map has not expired")
	}
	e.now = 115
	if e.list.Len() != 0 || e.m.Len() != 0 {
		t.Error("the list or the map has not expired")
	}
}

// A clock that goes back makes nothing expire, and nothing that was found expired comes back.
func TestClockGoingBackResurrectsNothing(t *testing.T) {
	e := newExpiring(t, 1000)
	e.seek(1)
	e.value.Set(1)
	e.now = 0
	if e.value.Get() != 1 {
		t.Error("the value is younger than now, and has expired")
	}
	e.now = 1010
	if e.value.Get() != 0 {
		t.Error("the value has not expired")
	}
	e.now = 1000
	if e.value.Get() != 0 {
		t.Error("the value came back")
	}
}

// Keys that nobody asks for again go, while records of other keys are processed.
func TestSweepRemovesExpiredKeys(t *testing.T) {
	e := newExpiring(t, 0)
	for k := range int64(5000) {
		e.seek(k)
		e.value.Set(k)
		e.list.Add(k)
		e.keyed.Settle()
	}
	s := e.keyed.Snapshot(0, 0) // sweeping copies what a snapshot reads
	e.now = 100
	for range 5000 {
		e.seek(1)
		e.value.Set(1)
		e.keyed.Settle()
	}
	if n := e.keyed.Len(); n != 1 {
		t.Errorf("%d keys are left", n)
	}
	must(t, checkIndex(&e.keyed.index))
	restored := newExpiring(t, 0)
	restoreFrom(t, restored.keyed, fileOf(t, s))
	if n := restored.keyed.Len(); n != 5000 {
		t.Errorf("the snapshot has %d keys", n)
	}
}

// Written out at a time, a snapshot has no state that had expired when it was taken (case: downtime longer than the time to
// live is told by the clock of the restoring job).
func TestSnapshotsLeaveOutWhatHasExpired(t *testing.T) {
	e := newExpiring(t, 100)
	e.seek(1)
	e.value.Set(1)
	e.seek(2)
	e.list.Add(1)
	e.m.Put("a", 1)
	e.now = 105
	e.list.Add(2)
	e.seek(3)
	e.value.Set(3)
	e.now = 110
	file := fileOf(t, e.keyed.Snapshot(0, 0))

	r := newExpiring(t, 112)
	restoreFrom(t, r.keyed, file)
	if n := r.keyed.Len(); n != 2 {
		t.Errorf("%d keys were restored, want 2", n)
	}
	r.seek(2)
	if got := slices.Collect(r.list.All()); !slices.Equal(got, []int64{2}) || r.m.Len() != 0 {
		t.Errorf("restored: list %v, map of %d", got, r.m.Len())
	}
	r.seek(3)
	if r.value.Get() != 3 {
		t.Error("a value expired too early")
	}
	r.now = 115
	if r.value.Get() != 0 {
		t.Error("the stamp was lost")
	}
}

// A state may get a time to live, or lose it, from one version of a job to the next.
func TestTimeToLiveMayBeSwitched(t *testing.T) {
	var now int64
	var plain Value[int64]
	k := newKeyed[int64](t, allGroups, &now, map[string]binder{"value": &plain}, Spec{Name: "value"})
	k.Seek(k.Hash(1), 1)
	plain.Set(7)
	file := fileOf(t, k.Snapshot(0, 0))

	now = 50
	var brief Value[int64]
	b := newKeyed[int64](t, allGroups, &now, map[string]binder{"value": &brief}, Spec{Name: "value", TTL: 10})
	restoreFrom(t, b, file)
	b.Seek(b.Hash(1), 1)
	if now = 59; brief.Get() != 7 {
		t.Error("the age of a value without a stamp is not reckoned from the restore")
	}
	file = fileOf(t, b.Snapshot(0, 0))

	k = newKeyed[int64](t, allGroups, &now, map[string]binder{"value": &plain}, Spec{Name: "value"})
	restoreFrom(t, k, file)
	k.Seek(k.Hash(1), 1)
	if now = 1000; plain.Get() != 7 {
		t.Error("a value without a time to live has expired")
	}
}

// fileOf writes a snapshot out and releases it.
func fileOf(t testing.TB, s *KeyedSnapshot) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := s.WriteTo(&b)
	must(t, err)
	if n != int64(b.Len()) {
		t.Fatalf("WriteTo says %d of %d bytes", n, b.Len())
	}
	s.Release()
	return b.Bytes()
}

func restoreFrom[K comparable](t testing.TB, k *Keyed[K], file []byte) {
	t.Helper()
	must(t, k.Restore(inMemory(file), k.within))
}

// inMemory is a checkpoint's keyed state in one file, to be restored.
func inMemory(file []byte) RestoreFile {
	return RestoreFile{
		ID:     1,
		Handle: snapshot.KeyedHandle{Range: allGroups, Handle: snapshot.InlineHandle(file)},
		Open:   func(h snapshot.Handle) (io.ReaderAt, error) { return bytes.NewReader(h.Inline), nil },
	}
}
