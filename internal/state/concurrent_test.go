package state_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
)

// aging is state that expires, of values that must be cloned; time is the owner's.
type aging struct {
	*state.Keyed[int64]
	now   int64
	value state.Value[treasure]
	list  state.List[treasure]
	byKey state.Map[int64, treasure]
}

type treasure struct {
	Tags  []int64
	Notes map[string]int64
}

func newAging(t *testing.T) *aging {
	a := &aging{}
	key, err := codec.KeyFor[int64]()
	must(t, err)
	a.Keyed = state.NewKeyed(key, allGroups)
	for name, f := range map[string]binder{"value": &a.value, "list": &a.list, "map": &a.byKey} {
		must(t, f.Bind(a.Keyed, state.Spec{Name: name, TTL: 100}))
	}
	a.Open(func() int64 { return a.now })
	return a
}

const agingKeys = 500

func (a *aging) seek(k int64) { a.Seek(a.Hash(k), k) }

// set writes everything of a key.
func (a *aging) set(k, v int64) {
	a.seek(k)
	it := treasure{[]int64{v, v}, map[string]int64{"v": v}}
	a.value.Set(it)
	a.list.Update([]treasure{it, it})
	a.byKey.Put(v, it)
}

// spoil changes in place what a key has.
func (a *aging) spoil(k int64) {
	a.seek(k)
	for _, it := range append(slices.Collect(a.list.All()), a.value.Get()) {
		if len(it.Tags) > 0 {
			it.Tags[0], it.Notes["spoilt"] = -1, k
		}
	}
	for _, it := range maps.Collect(a.byKey.All()) {
		it.Tags[1], it.Notes["spoilt"] = -1, k
	}
}

func (a *aging) show() (lines []string) {
	for k := range int64(agingKeys) {
		a.seek(k)
		lines = append(lines, fmt.Sprint(k, a.value.Get(), slices.Collect(a.list.All()), maps.Collect(a.byKey.All())))
	}
	return lines
}

// Case B103: while snapshots in both formats are written on other goroutines the owner overwrites, spoils in place, deletes, and lets
// everything expire and go. They have what there was at their moment, and nothing that had expired by then.
func TestSnapshotsWhileEverythingExpires(t *testing.T) {
	a, want := newAging(t), newAging(t)
	for k := range int64(agingKeys) {
		a.now, want.now = k%2*60, k%2*60 // every other key has expired at 110
		a.set(k, k)
		if k%2 == 1 {
			want.set(k, k)
		}
	}
	a.now, want.now = 110, 110
	a.Settle()
	native, canonical := a.Snapshot(0, 0), a.Snapshot(0, 0)
	var file bytes.Buffer
	rows := make([]bytes.Buffer, 4)
	all := canonical.Rows()
	failed := make(chan error, 2)
	go func() { _, err := native.WriteTo(&file); failed <- err }()
	go func() {
		var err error
		for i, r := range all {
			if err == nil {
				_, err = r.WriteTo(&rows[i])
			}
		}
		failed <- err
	}()
	for k := range int64(agingKeys) {
		switch k % 5 {
		case 0:
			a.set(k, -k)
		case 1:
			a.seek(k)
			a.value.Clear()
			a.list.Clear()
			a.byKey.Clear()
		default:
			a.spoil(k)
		}
	}
	a.now = 1000
	a.show()
	a.Settle()
	must(t, <-failed)
	must(t, <-failed)
	native.Release()
	canonical.Release()

	restored := []*aging{newAging(t), newAging(t)}
	for _, r := range restored {
		r.now = 110
	}
	kept := &kept{files: map[string][]byte{"f": file.Bytes()}, native: []snapshot.KeyedHandle{{Range: allGroups, Handle: snapshot.Handle{File: "f", Size: int64(file.Len())}}}}
	must(t, kept.restore(&home{keyed: restored[0]}))
	kept.native, kept.rows = nil, [][]keptRows{nil}
	for i, r := range all {
		kept.rows[0] = append(kept.rows[0], keptRows{r.Handle(), rows[i].Bytes(), r.Index()})
	}
	must(t, kept.restore(&home{keyed: restored[1]}))
	for i, r := range restored {
		if got, want := r.show(), want.show(); !slices.Equal(got, want) {
			t.Errorf("format %d: got %d of its keys otherwise", i, len(got))
			for j := range got {
				if got[j] != want[j] {
					t.Fatalf("got %s, want %s", got[j], want[j])
				}
			}
		}
		if r.Len() != agingKeys/2 {
			t.Errorf("format %d: %d keys", i, r.Len())
		}
	}
}
