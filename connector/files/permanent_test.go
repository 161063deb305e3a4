package files

import (
	"errors"
	"math"
	"testing"

	"github.com/weirstream/weir/internal/storage"
)

// What no restart can change ends the job at once, instead of having it restart for ever.
func TestWhatNoRestartCanChange(t *testing.T) {
	sink, source := newSink(storage.Memory(), RollBytes(-1)), Lines(t.TempDir())
	_, badSink := sink.Writer(&fakeTask{of: 1})
	_, badReader := Lines().Reader(&fakeTask{of: 1})
	_, badSource := source.SplitSize(-1).Enumerator(newMaster(1), nil)
	_, noState := source.Enumerator(newMaster(1), []byte("\x02of another version"))
	_, noFile := find(t.Context(), []string{"/dev/null"}, nil)
	r, _ := newReader(t, source, 1)
	good := newSink(storage.Memory())
	for name, err := range map[string]error{
		"options of a sink":         badSink,
		"options of a reader":       badReader,
		"options of an enumerator":  badSource,
		"state of an enumerator":    noState,
		"what is no file":           noFile,
		"a split of another source": r.AddSplits([]Split{{Path: "x", Start: math.MaxInt64}}),
		"state of a writer":         good.Restore(openWriter(t, good, nil), [][]byte{[]byte("{")}),
	} {
		var marked interface{ NonRecoverable() bool }
		if err == nil || !errors.As(err, &marked) {
			t.Errorf("%s: a restart follows on %v", name, err)
		}
	}
}

// A file that goes between being listed and being opened was never there, but one that the user named is missed.
func TestAFileThatGoesWhileItIsBeingFound(t *testing.T) {
	dir := tree(t, map[string]string{"here": "a\n"})
	s := Lines(dir).withDefaults()
	sizes := func() map[string]int64 { return map[string]int64{dir + "/here": 2, dir + "/gone": 7} }
	l, err := s.cutNew([]string{dir}, sizes(), nil)
	if err != nil || len(l.splits) != 1 || l.splits[0].Path != dir+"/here" {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := s.cutNew([]string{dir + "/gone"}, sizes(), nil); err == nil {
		t.Error("a file that the user named is not missed")
	}
}
