package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirstream/weir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// input makes a directory of files with these words in them.
func input(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.txt":     "one two, two; three.three three\r\n",
		"sub/b.txt": "(four)four-four four\n\n\xff_x1\xc3_x1",
		"sub/empty": "",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var want = []Count{{"_x1", 2}, {"four", 4}, {"one", 1}, {"three", 3}, {"two", 2}}

func byWord(a, b Count) int { return cmp.Compare(a.Word, b.Word) }

func TestCount(t *testing.T) {
	for _, parallelism := range []int{1, 3} {
		got, err := count(t.Context(), weir.NewTestEnv().Parallelism(parallelism), "", []string{input(t)})
		slices.SortFunc(got, byWord)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("parallelism %d: %v, %v; want %v", parallelism, got, err, want)
		}
	}
}

func TestOut(t *testing.T) {
	out := t.TempDir()
	if _, err := count(t.Context(), weir.NewTestEnv().Parallelism(2), out, []string{input(t)}); err != nil {
		t.Fatal(err)
	}
	parts, _ := filepath.Glob(filepath.Join(out, "part-*"))
	var lines []string
	for _, path := range parts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Split(strings.TrimSpace(string(text)), "\n")...)
	}
	slices.Sort(lines)
	if got := strings.Join(lines, " "); got != "_x1\t2 four\t4 one\t1 three\t3 two\t2" {
		t.Errorf("%q", got)
	}
}

func TestMistakes(t *testing.T) {
	if _, err := count(t.Context(), weir.NewTestEnv(), "", []string{"no-such-file"}); err == nil || !strings.Contains(err.Error(), "no-such-file does not exist") {
		t.Error(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := count(canceled, weir.NewTestEnv(), "", []string{input(t)}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestSummary(t *testing.T) {
	var b bytes.Buffer
	printSummary(&b, slices.Clone(want), 1500*time.Millisecond)
	if got := b.String(); got != `         4  four
         3  three
         2  _x1
         2  two
         1  one
12 words, 5 distinct, in 1.5 s
` {
		t.Error(got)
	}
}
