package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain is the job's process where the demonstration has started it as that.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == jobRole {
		main()
		return
	}
	os.Exit(m.Run())
}

// input makes a directory of .go files, some of which are none.
func input(t *testing.T, files, lines int) string {
	t.Helper()
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range files {
		var text []byte
		for range lines {
			text = fmt.Appendf(text, "\tw%d(x_%d, \"%d\") // é\n", random.IntN(100), random.IntN(1000), random.IntN(10))
		}
		write(t, filepath.Join(dir, fmt.Sprint("sub", i%7), fmt.Sprint("a", i, ".go")), text)
	}
	write(t, filepath.Join(dir, "not.txt"), []byte("notgo"))
	write(t, filepath.Join(dir, ".hidden.go"), []byte("hidden"))
	write(t, filepath.Join(dir, "_sub", "unfinished.go"), []byte("unfinished"))
	write(t, filepath.Join(dir, "dir.go", "last.go"), []byte("no_newline"))
	return dir
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestDemo is the whole demonstration, over a small input.
func TestDemo(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	o := jobOptions{source: input(t, 200, 300), dir: t.TempDir(), interval: 50 * time.Millisecond}
	result, err := compare(t.Context(), o, newDisplay(out))
	told, _ := os.ReadFile(out.Name())
	if err != nil {
		t.Fatalf("%v\n%s", err, told)
	}
	if !strings.HasPrefix(result, "exactly once: 180001 words, 1111 distinct, 2 kills, ") {
		t.Errorf("result: %s", result)
	}
	for _, want := range []string{"Run 1: killed (-9)", "Run 2: killed (-9)", "Run 3: the job is FINISHED"} {
		if !strings.Contains(string(told), want) {
			t.Errorf("the display does not say %q:\n%s", want, told)
		}
	}
}

// TestTooSmall has an input that ends before anything can be killed.
func TestTooSmall(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.go"), []byte("one"))
	out, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	o := jobOptions{source: dir, dir: t.TempDir(), interval: 50 * time.Millisecond}
	if _, err := compare(t.Context(), o, newDisplay(out)); err == nil || !strings.Contains(err.Error(), "name a larger input with -source") {
		t.Error(err)
	}
}

func TestWordsOf(t *testing.T) {
	for line, want := range map[string][]string{
		"":              nil,
		" ,":            nil,
		"a":             {"a"},
		"a b":           {"a", "b"},
		"(x_1)=é9+Z;;":  {"x_1", "9", "Z"},
		"\xff_\xc3\xa9": {"_"},
	} {
		if got := slices.Collect(wordsOf(line)); !slices.Equal(got, want) {
			t.Errorf("%q: %q; want %q", line, got, want)
		}
	}
}

// TestLedger enters outputs with a mistake each.
func TestLedger(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "in.go"), []byte("a b a"))
	r, err := count(dir)
	if err != nil || r.total != 3 || r.words["a"].n != 2 {
		t.Fatal(r, err)
	}
	for _, c := range []struct{ name, text, want string }{
		{"part-1", "b 1\na 2\na 1\n", ""},
		{"part-1", "b 1\na 2\n", `"a" for the 1-th time is missing`},
		{"part-1", "b 1\na 2\na 1\na 2\n", `"a" for the 2-th time, which was there already`},
		{"part-1", "b 1\na 2\na 1\na 3\n", `"a" for the 3-th time; it comes 2 times`},
		{"part-1", "b 1\na 2\na 1\na 0\n", `"a" for the 0-th time`},
		{"part-1", "b 1\na 2\na 1\nc 1\n", `"c", which is not in the input`},
		{"part-1", "b 1\na 2\na 1\na", "ends in the middle of a line"},
		{"part-1", "b 1\na 2\na 1\n\n", "not a word and a number"},
		{".part-1.inprogress", "b 1\na 2\na 1\n", `"b" for the 1-th time is missing`},
	} {
		out := t.TempDir()
		write(t, filepath.Join(out, c.name), []byte(c.text))
		err := newLedger(r, out).balance()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %q", c.text, err, c.want)
		}
	}
}

// TestLedgerWatchesFiles: what is published must stay as it is.
func TestLedgerWatchesFiles(t *testing.T) {
	source, out := t.TempDir(), t.TempDir()
	write(t, filepath.Join(source, "in.go"), []byte("a b"))
	r, err := count(source)
	if err != nil {
		t.Fatal(err)
	}
	l := newLedger(r, out)
	write(t, filepath.Join(out, "part-1"), []byte("a 1\n"))
	write(t, filepath.Join(out, "part-2"), []byte("b 1\n"))
	if err := l.enterNew(); err != nil || l.count != 2 {
		t.Fatal(l.count, err)
	}
	write(t, filepath.Join(out, "part-1"), []byte("a 1\nb 1\n"))
	if err := os.Remove(filepath.Join(out, "part-2")); err != nil {
		t.Fatal(err)
	}
	err = l.balance()
	if err == nil || !strings.Contains(err.Error(), "part-1 was published with 4 bytes, and now has 8") || !strings.Contains(err.Error(), "part-2 was published, and is gone") {
		t.Error(err)
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 12056554: "12,056,554"} {
		if got := grouped(n); got != want {
			t.Error(got, "instead of", want)
		}
	}
}
