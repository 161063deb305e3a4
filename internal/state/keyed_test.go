package state

import (
	"bytes"
	"testing"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
)

var allGroups = base.KeyGroupRange{First: 0, Last: base.KeyGroups - 1}

// mustKey is the key codec of K.
func mustKey[K comparable](t testing.TB) *codec.Key[K] {
	t.Helper()
	k, err := codec.KeyFor[K]()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// binder is any state field.
type binder interface{ Bind(Table, Spec) error }

// newKeyed is an open state of keys of type K with fields bound under the given names; time stands at *now.
func newKeyed[K comparable](t testing.TB, r base.KeyGroupRange, now *int64, fields map[string]binder, specs ...Spec) *Keyed[K] {
	t.Helper()
	k := NewKeyed(mustKey[K](t), r)
	for _, s := range specs {
		must(t, fields[s.Name].Bind(k, s))
	}
	k.Open(func() int64 { return *now })
	return k
}

func TestACountSurvivesACheckpoint(t *testing.T) {
	var now int64
	var count, restored Value[int64]
	k := newKeyed[string](t, allGroups, &now, map[string]binder{"count": &count}, Spec{Name: "count"})
	for _, word := range []string{"a", "b", "a"} {
		k.Seek(k.Hash(word), word)
		count.Set(count.Get() + 1)
		k.Settle()
	}
	s := k.Snapshot(0, 0)
	var file bytes.Buffer
	_, err := s.WriteTo(&file)
	must(t, err)
	s.Release()

	r := newKeyed[string](t, allGroups, &now, map[string]binder{"count": &restored}, Spec{Name: "count"})
	must(t, r.Restore(inMemory(file.Bytes()), allGroups))
	for word, want := range map[string]int64{"a": 2, "b": 1, "c": 0} {
		r.Seek(r.Hash(word), word)
		if got := restored.Get(); got != want {
			t.Errorf("count of %s is %d, want %d", word, got, want)
		}
	}
}
