package weirtest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/connector/files"
	"github.com/weirstream/weir/weirtest"
)

func numbers(n int) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = int64(i)
	}
	return all
}

// TestSources runs the kit against Weir's own sources.
func TestSources(t *testing.T) {
	t.Run("slice", func(t *testing.T) {
		weirtest.TestSource(t, weirtest.SourceKit[int64, weir.Lane]{
			New:  func(testing.TB) weir.Source[int64, weir.Lane] { return weir.FromSlice(numbers(100)) },
			Want: numbers(100),
		})
	})
	t.Run("generator", func(t *testing.T) {
		weirtest.TestSource(t, weirtest.SourceKit[int64, weir.Lane]{
			New: func(testing.TB) weir.Source[int64, weir.Lane] {
				return weir.Generate(50, func(i int64) int64 { return i / 2 })
			},
			Want: append(numbers(25), numbers(25)...),
		})
	})
	script := func(testing.TB) *weirtest.Source[int64] {
		s := weirtest.NewSource[int64]()
		for i, v := range numbers(100) {
			s.Split(fmt.Sprint(i % 7)).Emit(v).Watermark(noon)
		}
		return s
	}
	t.Run("script", func(t *testing.T) {
		weirtest.TestSource(t, weirtest.SourceKit[int64, weirtest.Position]{
			New:  func(t testing.TB) weir.Source[int64, weirtest.Position] { return script(t) },
			Want: numbers(100),
		})
	})
	t.Run("endless script", func(t *testing.T) {
		weirtest.TestSource(t, weirtest.SourceKit[int64, weirtest.Position]{
			New:  func(t testing.TB) weir.Source[int64, weirtest.Position] { return script(t).Endless() },
			Want: numbers(100),
		})
	})
	t.Run("files", func(t *testing.T) {
		dir := t.TempDir()
		var want []string
		for i := range 7 {
			var text strings.Builder
			for j := range 10 * i {
				want = append(want, fmt.Sprintf("line %d of file %d", j, i))
				fmt.Fprintln(&text, want[len(want)-1])
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte(text.String()), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		weirtest.TestSource(t, weirtest.SourceKit[string, files.Split]{
			New:  func(testing.TB) weir.Source[string, files.Split] { return files.Lines(dir) },
			Want: want,
		})
	})
}

// TestSinks runs the kit against Weir's own sinks.
func TestSinks(t *testing.T) {
	record := func(i int) string { return fmt.Sprint("record ", i) }
	t.Run("collecting", func(t *testing.T) {
		weirtest.TestSink(t, weirtest.SinkKit[string]{Record: record, Open: func(testing.TB) weirtest.Outside[string] {
			out := weirtest.NewSink[string]()
			return weirtest.Outside[string]{Sink: out.Sink, Visible: out.Committed, Left: out.Pending}
		}})
	})
	t.Run("Collect", func(t *testing.T) {
		weirtest.TestSink(t, weirtest.SinkKit[string]{Record: record, Open: func(testing.TB) weirtest.Outside[string] {
			var got []string
			k := weir.Collect(&got)
			return weirtest.Outside[string]{Sink: func() weir.Sink[string] { return k }, Visible: func() []string { return got }}
		}})
	})
	t.Run("files", func(t *testing.T) {
		weirtest.TestSink(t, weirtest.SinkKit[string]{Record: record, Open: func(t testing.TB) weirtest.Outside[string] {
			dir := t.TempDir()
			return weirtest.Outside[string]{
				Sink: func() weir.Sink[string] { return files.Sink(dir, files.AppendLine) },
				Visible: func() []string {
					return linesOf(t, dir, func(name string) bool { return !strings.HasPrefix(name, ".") })
				},
				Left: func() []string {
					hidden, err := filepath.Glob(filepath.Join(dir, ".*"))
					if err != nil {
						t.Fatal(err)
					}
					return hidden
				},
			}
		}})
	})
}

// linesOf are the lines of the files of a directory.
func linesOf(t testing.TB, dir string, take func(name string) bool) (lines []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !take(e.Name()) })
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		lines = slices.AppendSeq(lines, strings.Lines(string(b)))
	}
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\n")
	}
	return lines
}
