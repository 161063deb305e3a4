package storage

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

func FuzzRecord(f *testing.F) {
	f.Add(someRecord.encode())
	f.Add(record{largest: 42, newest: 40, open: []base.CheckpointID{41, 42}, origin: origin{mode: noOrigin}, run: 1}.encode())
	f.Add(claimant{job: testJob, dir: "/ckpt/" + string(testJob)}.encode())
	f.Add(pointer{id: 7, location: "/sp/savepoint-012345-0123456789ab"}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		// Also with the right checksum, which would keep the fuzzer out.
		for _, b := range [][]byte{b, sealText(strings.TrimSuffix(string(b), "\n"))} {
			if r, err := decodeRecord(b); err == nil && r.run < 1 {
				t.Errorf("%+v", r)
			}
			if p, err := decodePointer(b); err == nil && p.id < 1 {
				t.Errorf("%+v", p)
			}
			if c, err := decodeClaim(b); err == nil && !snapshot.ValidJob(c.job) {
				t.Errorf("%+v", c)
			}
		}
	})
}

// someRecord has something in every field.
var someRecord = record{largest: 42, newest: 40, open: []base.CheckpointID{41, 42}, first: 5, left: 30,
	origin: origin{mode: claimed, id: 28, location: "/sp/\"x\""}, run: 3, end: "FINISHED \"so\"\n", endRun: 2}

// The text of records is frozen: directories of every version must open for ever.
func TestRecordText(t *testing.T) {
	want := "weir job 2\nlargest 42\nnewest 40\nopen 41 42\nfirst 5\nleft 30\norigin claim 28 \"/sp/\\\"x\\\"\"\nrun 3\n" +
		"end \"FINISHED \\\"so\\\"\\n\" 2\ncrc32c "
	if got := string(someRecord.encode()); got[:min(len(got), len(want))] != want {
		t.Errorf("it is %q", got)
	}
	empty := record{run: 1, origin: origin{mode: noOrigin}}
	for _, r := range []record{someRecord, empty} {
		if got, err := decodeRecord(r.encode()); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	one := []byte("weir job 1\nlargest 42\nfirst 5\nrun 3\nend \"FAILED\" 2\n")
	one = fmt.Appendf(one, "crc32c %08x\n", snapshot.Checksum(0, one))
	r := record{largest: 42, first: 5, origin: origin{mode: noOrigin}, run: 3, end: "FAILED", endRun: 2}
	if got, err := decodeRecord(one); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("version 1: %+v, %v", got, err)
	}
	p := pointer{id: 7, location: "/a \"b\"/c"}
	if got, err := decodePointer(p.encode()); err != nil || got != p {
		t.Errorf("%+v, %v", got, err)
	}
	c := claimant{job: testJob, dir: "/a \"b\"/c"}
	if got, err := decodeClaim(c.encode()); err != nil || got != c {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRecordsThatCannotBe(t *testing.T) {
	for what, change := range map[string][2]string{
		"a later version":           {"weir job 2", "weir job 3"},
		"another title":             {"weir job 2", "weir pointer"},
		"other fields":              {"newest", "eldest"},
		"a field less":              {"newest 40\n", ""},
		"no number":                 {"largest 42", "largest x"},
		"no run":                    {"run 3", "run 0"},
		"an end in the future":      {"\" 2\n", "\" 4\n"},
		"an unquoted end":           {"end \"FINISHED", "end FINISHED"},
		"a first beyond all":        {"first 5", "first 43"},
		"a newest beyond all":       {"newest 40", "newest 43"},
		"a newest that was left":    {"left 30", "left 40"},
		"open ones that are closed": {"open 41", "open 40"},
		"open ones in disorder":     {"open 41 42", "open 42 41"},
		"an unknown origin":         {"origin claim", "origin legacy"},
		"an origin without place":   {"28 \"/sp/\\\"x\\\"\"", "28 \"\""},
		"half an origin":            {"origin claim 28 \"/sp/\\\"x\\\"\"", "origin claim"},
		"none, but one":             {"origin claim", "origin none"},
	} {
		text, _, _ := strings.Cut(string(someRecord.encode()), "crc32c")
		changed := strings.Replace(text, change[0], change[1], 1)
		if changed == text {
			t.Fatalf("%s: nothing changed", what)
		}
		b := fmt.Appendf([]byte(changed), "crc32c %08x\n", snapshot.Checksum(0, []byte(changed)))
		if _, err := decodeRecord(b); !errors.Is(err, ErrDamaged) && !errors.Is(err, snapshot.ErrVersion) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A whole directory as version 1 wrote it. It is never rewritten.
func TestGoldenJobDirectory(t *testing.T) {
	dir := t.TempDir()
	must(t, copyTree(path.Join("testdata", "compat", "job-v1"), dir))
	d := openJob(t, Disk(), dir)
	if state, run := d.EndState(); d.LargestID() != 4 || d.Run() != 3 || state != "CANCELED" || run != 2 {
		t.Errorf("largest id %d, run %d, ended %s in run %d", d.LargestID(), d.Run(), state, run)
	}
	mustLatest(t, d, 3)
	all, err := d.Completed()
	if got := ids(all); err != nil || !slices.Equal(got, []base.CheckpointID{1, 3}) {
		t.Errorf("completed are %v, %v", got, err)
	}
}

// The same of version 2: the job was started from /savepoints/savepoint-fedcba-0123456789ab, checkpoint 30, and has completed 32 and
// 33 since; 34 was begun.
func TestGoldenJobDirectory2(t *testing.T) {
	dir := t.TempDir()
	must(t, copyTree(path.Join("testdata", "compat", "job-v2"), dir))
	d := openJob(t, Disk(), dir)
	want := record{largest: 34, newest: 33, open: []base.CheckpointID{34}, first: 3, left: 30, run: 5, end: "CANCELED", endRun: 2,
		origin: origin{mode: claimed, id: 30, location: "/savepoints/savepoint-fedcba-0123456789ab"}}
	if got := d.known(); !reflect.DeepEqual(got, want) {
		t.Errorf("it is %+v", got)
	}
	mustLatest(t, d, 33)
	all, err := d.Completed()
	if got := ids(all); err != nil || !slices.Equal(got, []base.CheckpointID{32, 33}) {
		t.Errorf("completed are %v, %v", got, err)
	}
}
