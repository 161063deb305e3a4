package files

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// lines is what the source promises of a text, written the simple way.
func lines(text string) []string {
	ls := strings.Split(text, "\n")
	if ls[len(ls)-1] == "" {
		ls = ls[:len(ls)-1]
	}
	for i := range ls {
		ls[i] = strings.TrimSuffix(ls[i], "\r")
	}
	return ls
}

func scan(t rapid.TB, s *scanner, most int) (got []string) {
	for range most {
		line, ok, err := s.next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		got = append(got, string(line))
	}
	return got
}

// However a text is cut, and wherever the reading stops and goes on: each line once, and in order.
func TestSplitsExactlyOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([ab\r]{0,9}(\n|\r\n|\n\n)){0,20}[ab\r]{0,9}`).Draw(t, "text")
		splitSize := rapid.Int64Range(1, 40).Draw(t, "split size")
		window := rapid.IntRange(1, 30).Draw(t, "window")
		var got []string
		for _, split := range cut("x", int64(len(text)), splitSize) {
			for split.Offset < split.End {
				s := newTestScanner(t, strings.NewReader(text), split, window)
				got = append(got, scan(t, s, rapid.IntRange(1, 8).Draw(t, "lines"))...)
				if err := s.split.check(); err != nil {
					t.Fatal(err)
				}
				split = s.split
			}
		}
		if want := lines(text); !slices.Equal(got, want) {
			t.Fatalf("read %q, want %q", got, want)
		}
	})
}

// newTestScanner has a small window, so that lines cross it.
func newTestScanner(t rapid.TB, file io.ReaderAt, split Split, window int) *scanner {
	s := &scanner{file: file, split: split, maxLine: 1000, base: split.Offset, window: make([]byte, 0, window)}
	if split.Offset > 0 {
		s.base--
		if err := s.skipLine(); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(0, 500).Draw(t, "size")
		splitSize := rapid.OneOf(rapid.Int64Range(1, 600), rapid.Just(int64(1<<63-1))).Draw(t, "split size")
		at := int64(0)
		for _, s := range cut("x", size, splitSize) {
			if s.Start != at || s.Offset != at || s.Size != size || s.End <= s.Start || s.End-s.Start > splitSize/2*3+1 && s.End != size {
				t.Fatalf("split %+v at %d", s, at)
			}
			at = s.End
		}
		if at != size {
			t.Fatalf("splits end at %d of %d", at, size)
		}
	})
}

// Lines of some megabytes, across windows and splits, with the real window.
func TestLongLines(t *testing.T) {
	var text []byte
	for i, n := range []int{10, windowBytes - 1, windowBytes, 3 * windowBytes, 0, 1 << 21, 5} {
		text = append(append(text, bytes.Repeat([]byte{byte('a' + i)}, n)...), '\n')
	}
	for _, splitSize := range []int64{1000, windowBytes, 1 << 20, 1 << 30} {
		var got []string
		for _, split := range cut("x", int64(len(text)), splitSize) {
			s, err := newScanner(bytes.NewReader(text), split, 1<<21, nil)
			got = append(got, scan(t, must(t, s, err), 100)...)
		}
		if !slices.Equal(got, lines(string(text))) {
			t.Errorf("split size %d: %d lines", splitSize, len(got))
		}
	}
}

func TestMaxLine(t *testing.T) {
	long := "ok\n" + strings.Repeat("x", 100) + "\r\nbehind\n"
	for _, window := range []int{windowBytes, 16} {
		for maxLine, fails := range map[int]bool{99: true, 100: false} {
			s := newTestScanner(t, strings.NewReader(long), cut("/in/a.txt", int64(len(long)), 1000)[0], window)
			s.maxLine = maxLine
			s.next()
			_, _, err := s.next()
			if !fails && err == nil {
				continue
			}
			want := "files: the line of /in/a.txt at offset 3 is longer than 99 bytes: set a greater MaxLine, or leave the file out"
			if !fails || err == nil || err.Error() != want {
				t.Errorf("window %d, longest %d: %v", window, maxLine, err)
			}
			if s.split.Offset != 3 {
				t.Errorf("offset %d after the failure", s.split.Offset)
			}
		}
	}
}

// A line that lies across a whole split is skipped whatever its length, and holds no memory.
func TestSkipsLongerThanMaxLine(t *testing.T) {
	text := strings.Repeat("x", 5000) + "\nend\n"
	split := Split{Path: "x", Start: 10, End: 5002, Offset: 10, Size: int64(len(text))}
	s := newTestScanner(t, strings.NewReader(text), split, 64)
	if got := scan(t, s, 9); !slices.Equal(got, []string{"end"}) || cap(s.window) != 64 {
		t.Errorf("read %q with a window of %d", got, cap(s.window))
	}
}

// stingy is a file of which a read gives less than there is.
type stingy struct {
	io.ReaderAt
	err error
}

func (s stingy) ReadAt(p []byte, off int64) (int, error) {
	n, _ := s.ReaderAt.ReadAt(p[:len(p)/2], off)
	return n, s.err
}

func TestShortReads(t *testing.T) {
	text := strings.Repeat("line\n", 20)
	split := cut("/in/a.txt", 100, 1000)[0]
	for _, err := range []error{nil, io.EOF} {
		s, _ := newScanner(stingy{strings.NewReader(text[:60]), err}, split, 100, nil)
		if _, _, err := s.next(); err == nil || !strings.Contains(err.Error(), "/in/a.txt has become shorter: it had 100 bytes") {
			t.Errorf("short read with %v: %v", err, err)
		}
	}
	s, _ := newScanner(stingy{strings.NewReader(text), os.ErrDeadlineExceeded}, split, 100, nil)
	if _, _, err := s.next(); err == nil || !strings.Contains(err.Error(), "reading /in/a.txt at offset 50") {
		t.Errorf("failed read: %v", err)
	}
}

func TestSplitCheck(t *testing.T) {
	for _, s := range []Split{
		{}, {Path: "x", Start: -1}, {Path: "x", Start: 2, End: 1, Offset: 2, Size: 9}, {Path: "x", End: 10, Size: 9},
		{Path: "x", Start: 3, Offset: 2, End: 5, Size: 9}, {Path: "x", End: 5, Offset: 10, Size: 9},
	} {
		if s.check() == nil {
			t.Errorf("%+v is a split", s)
		}
	}
	if id := (Split{Path: "/a/b", Start: 7}).SplitID(); id != "/a/b@7" {
		t.Error(id)
	}
}

func BenchmarkScan(b *testing.B) {
	path := filepath.Join(b.TempDir(), "in")
	line := strings.Repeat("x", 79) + "\n"
	if err := os.WriteFile(path, []byte(strings.Repeat(line, 1<<17)), 0o666); err != nil {
		b.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	var s *scanner
	for i := 0; i < b.N; i++ {
		if s == nil {
			s, _ = newScanner(file, cut(path, 80<<17, 1<<40)[0], 1000, nil)
		}
		line, ok, err := s.next()
		if err != nil {
			b.Fatal(err)
		}
		if !ok {
			s = nil
			continue
		}
		sinkhole = string(line)
	}
}

var sinkhole string
