package state

import (
	"bytes"
	"testing"

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
	files := rowsOf(t, k.Snapshot().Rows())
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
