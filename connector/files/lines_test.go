package files

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/codec"
	"pgregory.net/rapid"
)

// tree writes files below a new directory: path -> text.
func tree(t testing.TB, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range texts {
		write(t, filepath.Join(dir, path), text)
	}
	return dir
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// readAll runs a bounded source with one reader to its end.
func readAll(t testing.TB, s LineSource) []string {
	t.Helper()
	m := newMaster(1)
	e := start(t, s, m, nil)
	r, _ := newReader(t, s, 1)
	return drive(t, e, m, r, 0)
}

// drive has a reader read and ask until nothing more is given to it.
func drive(t testing.TB, e *enumerator, m *fakeMaster, r *reader, subtask int) (got []string) {
	t.Helper()
	for {
		line, ok, err := r.next()
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			got = append(got, line)
			continue
		}
		if err := e.SplitRequested(subtask); err != nil {
			t.Fatal(err)
		}
		if len(m.given[subtask]) == 0 {
			return got
		}
		if err := r.AddSplits(m.given[subtask]); err != nil {
			t.Fatal(err)
		}
		delete(m.given, subtask)
	}
}

func TestWhatIsRead(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.txt": "a1\r\na2", "b/c.txt": "c1\n\n", "b/d.go": "d1\n", "empty.txt": "", ".hidden": "x\n", "_tmp": "x\n",
		"b/.part-1.inprogress": "x\n", ".git/config": "x\n", "e.md": "e\xff1\n",
	})
	if err := os.Symlink(filepath.Join(dir, "a.txt"), filepath.Join(dir, "z.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		source LineSource
		want   []string
	}{
		"all":            {Lines(dir), []string{"a1", "a2", "c1", "", "d1", "e\xff1", "a1", "a2"}},
		"small splits":   {Lines(dir).SplitSize(1), []string{"a1", "a2", "c1", "", "d1", "e\xff1", "a1", "a2"}},
		"match":          {Lines(dir).Match("*.go").Match("*.md", "c*"), []string{"c1", "", "d1", "e\xff1"}},
		"named":          {Lines(dir+"/.hidden", dir+"/b/d.go").Match("*.txt"), []string{"x", "d1"}},
		"twice":          {Lines(dir+"/b", dir+"/b/../b/d.go", dir+"/b"), []string{"c1", "", "d1"}},
		"nothing":        {Lines(dir).Match("*.rs"), nil},
		"hidden, by dir": {Lines(dir + "/.git"), []string{"x"}},
	} {
		if got := readAll(t, c.source); !slices.Equal(got, c.want) {
			t.Errorf("%s: read %q, want %q", name, got, c.want)
		}
	}
}

func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		source LineSource
		want   string
	}{
		{Lines(dir + "/none"), "the input " + dir + "/none does not exist: give Lines the path of a file or directory"},
		{Lines("/dev/null"), "the input /dev/null is neither a regular file nor a directory"},
		{Lines().Match("[").SplitSize(-1).MaxLine(-2).Every(-time.Second).Rate(-3),
			"no path*not a pattern*SplitSize: -1*MaxLine: -2*Every: -1s*Rate: -3"},
	} {
		m := newMaster(1)
		e, err := c.source.Enumerator(m, nil)
		if err == nil {
			err = e.Start()
		}
		if err == nil {
			err = m.work()
		}
		for want := range strings.SplitSeq(c.want, "*") {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
	}
	if _, err := Lines().Reader(&fakeTask{of: 1}); err == nil {
		t.Error("a reader of no path")
	}
}

// The life of a job: readers that ask at any moment, restores at any parallelism from any checkpoint; each line once.
func TestLinesExactlyOnce(t *testing.T) {
	dir := tree(t, map[string]string{"a": "1\n22\n333\n4444\n", "b": "5\n\n7", "c/d": strings.Repeat("8\n", 9)})
	want := readAll(t, Lines(dir))
	slices.Sort(want)
	rapid.Check(t, func(rt *rapid.T) {
		source := Lines(dir).SplitSize(rapid.Int64Range(1, 9).Draw(rt, "split size"))
		var state []byte
		var splits []Split
		var got []string
		for run := 0; run < 4; run++ {
			of := rapid.IntRange(1, 3).Draw(rt, "parallelism")
			m := newMaster(of)
			e, err := source.Enumerator(m, state)
			if err == nil {
				err = e.Start()
			}
			if err != nil {
				rt.Fatal(err)
			}
			readers := make([]*reader, of)
			for i := range readers {
				readers[i], _ = newReader(t, source, of)
				e.Added(i)
			}
			for i, s := range splits {
				readers[i%of].AddSplits([]Split{s})
			}
			looked := false
			for range rapid.IntRange(0, 30).Draw(rt, "steps") {
				if !looked && rapid.Bool().Draw(rt, "look") {
					looked = true
					if err := m.work(); err != nil {
						rt.Fatal(err)
					}
				}
				i := rapid.IntRange(0, of-1).Draw(rt, "subtask")
				got = append(got, step(rt, e.(*enumerator), m, readers[i], i)...)
			}
			if run == 3 {
				m.work()
				for i, r := range readers {
					got = append(got, drive(t, e.(*enumerator), m, r, i)...)
				}
			}
			splits = nil
			for i, r := range readers {
				left, _ := r.Snapshot(1)
				splits = append(splits, append(left, m.given[i]...)...)
				r.Close()
			}
			if state, err = e.Snapshot(1); err != nil {
				rt.Fatal(err)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || len(splits) > 0 {
			rt.Fatalf("read %q, want %q; left: %v", got, want, splits)
		}
	})
}

// step has a reader take what it was given, and read one line or ask.
func step(t rapid.TB, e *enumerator, m *fakeMaster, r *reader, subtask int) []string {
	if err := r.AddSplits(m.given[subtask]); err != nil {
		t.Fatal(err)
	}
	delete(m.given, subtask)
	line, ok, err := r.next()
	if err != nil {
		t.Fatal(err)
	}
	if ok {
		return []string{line}
	}
	if err := e.SplitRequested(subtask); err != nil {
		t.Fatal(err)
	}
	return nil
}

// A reader asks once, again after it was given something, and never after the end.
func TestReaderAsks(t *testing.T) {
	dir := tree(t, map[string]string{"a": "1\n"})
	r, task := newReader(t, Lines(dir), 1)
	for range 3 {
		r.wait()
	}
	if task.requests != 1 {
		t.Errorf("asked %d times", task.requests)
	}
	if err := r.AddSplits(cut(dir+"/a", 2, 10)); err != nil || r.idle() {
		t.Error(err)
	}
	r.next()
	r.next()
	r.wait()
	r.NoMoreSplits()
	if status := r.wait(); task.requests != 2 || status != 2 {
		t.Errorf("asked %d times, status %d", task.requests, status)
	}
}

func TestChangedFiles(t *testing.T) {
	dir := tree(t, map[string]string{"short": "1\n2\n3\n", "gone": "1\n2\n"})
	for name, want := range map[string]string{
		"short": "files: " + dir + "/short has become shorter: it had 6 bytes when it was found, was read up to offset 4, and has 2 bytes now",
		"gone":  "files: " + dir + "/gone, read up to offset 2 of 4, is gone",
	} {
		path := filepath.Join(dir, name)
		m := newMaster(1)
		start(t, Lines(path), m, nil).SplitRequested(0)
		split := m.given[0][0]
		split.Offset = split.Size - 2
		if name == "short" {
			write(t, path, "1\n")
		} else {
			os.Remove(path)
		}
		r, _ := newReader(t, Lines(dir), 1)
		r.AddSplits([]Split{split})
		if _, _, err := r.next(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		r.Close()
	}
}

// What is appended after a file was found is not read, whether before or after its end is reached.
func TestGrownFile(t *testing.T) {
	dir := tree(t, map[string]string{"a": "1\n2"})
	m := newMaster(1)
	e := start(t, Lines(dir), m, nil)
	write(t, filepath.Join(dir, "a"), "1\n22\n3\n")
	r, _ := newReader(t, Lines(dir), 1)
	if got := drive(t, e, m, r, 0); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("read %q", got)
	}
}

// An unbounded source reads each path once, over rounds and restores, and again only when it had been gone.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, map[string]string{"a": "a\n"})
		source := Lines(dir).Every(time.Minute)
		began := time.Now()
		m := newMaster(1)
		e := start(t, source, m, nil)
		r, _ := newReader(t, source, 1)
		round := func(want ...string) {
			t.Helper()
			if err := m.work(); err != nil {
				t.Fatal(err)
			}
			if got := drive(t, e, m, r, 0); !slices.Equal(got, want) {
				t.Errorf("after %v read %q, want %q", time.Since(began), got, want)
			}
		}
		round("a")
		write(t, dir+"/b", "b\n")
		write(t, dir+"/a", "a\nmore\n")
		write(t, dir+"/later", "")
		round("b")
		write(t, dir+"/later", "later\n")
		os.Remove(dir + "/a")
		round("later")
		write(t, dir+"/a", "again\n")
		write(t, dir+"/c", "c\n")

		state := snapshot(t, e)
		m = newMaster(1)
		e = start(t, source, m, state)
		if len(m.over) > 0 {
			t.Error("told that no split comes")
		}
		round("again", "c")
		if d := time.Since(began); d < 4*time.Minute || d > 6*time.Minute {
			t.Errorf("5 rounds a minute apart took %v", d)
		}
	})
}

func snapshot(t testing.TB, e *enumerator) []byte {
	t.Helper()
	state, err := e.Snapshot(1)
	return must(t, state, err)
}

// Requests that came before the files were found are answered then, ascending; a reader that died is not.
func TestWaitingReaders(t *testing.T) {
	dir := tree(t, map[string]string{"a": "a\n", "b": "b\n"})
	m := newMaster(4)
	enum, err := Lines(dir).Enumerator(m, nil)
	e := must(t, enum, err).(*enumerator)
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	for _, subtask := range []int{3, 1, 0, 2} {
		e.SplitRequested(subtask)
	}
	e.Added(0)
	if err := m.work(); err != nil {
		t.Fatal(err)
	}
	if len(m.given[1]) != 1 || len(m.given[2]) != 1 || fmt.Sprint(m.over) != "map[3:true]" {
		t.Errorf("given %v, over %v", m.given, m.over)
	}
}

func TestStateKeepsAnyPath(t *testing.T) {
	e := &enumerator{found: true, pending: cut("/in/\xff\x00", 20, 10), seen: map[string]bool{"/\xfe": true, "/a": true}}
	state := snapshot(t, e)
	var back enumerator
	if err := back.restore(state); err != nil {
		t.Fatal(err)
	}
	if !back.found || !slices.Equal(back.pending, e.pending) || !back.seen["/\xfe"] || len(back.seen) != 2 {
		t.Errorf("restored %+v", back)
	}
}

// The bytes of version 1, which later versions must go on to read.
func TestStateFormat(t *testing.T) {
	const golden = "\x01\x01\x02\x06/in\x14\x28\x18\x28\x00\x02\x06/in\x00"
	e := &enumerator{found: true, pending: []Split{{Path: "/in", Start: 10, End: 20, Offset: 12, Size: 20}}, seen: map[string]bool{"/in": true}}
	if state := snapshot(t, e); string(state) != golden {
		t.Errorf("state %q", state)
	}
	var back enumerator
	if err := back.restore([]byte(golden)); err != nil || !slices.Equal(back.pending, e.pending) {
		t.Errorf("%+v, %v", back, err)
	}
}

func FuzzState(f *testing.F) {
	e := &enumerator{found: true, pending: cut("/in", 20, 10), seen: map[string]bool{"/in": true}}
	state, err := e.Snapshot(1)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{state, state[:len(state)-1], append(state, 0), {}, {2}} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, state []byte) {
		var e enumerator
		if e.restore(state) != nil {
			return
		}
		for i := range e.pending {
			if err := e.pending[i].check(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestSplitIsEncodable(t *testing.T) {
	if _, err := codec.For[Split](); err != nil {
		t.Error(err)
	}
}

func TestRootThatIsALinkToADirectoryIsRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "real", "a"), []byte("x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	found, err := find(t.Context(), []string{link}, nil)
	if err != nil || len(found) != 1 || found[filepath.Join(link, "a")] != 2 {
		t.Errorf("found %v, %v", found, err)
	}
}
