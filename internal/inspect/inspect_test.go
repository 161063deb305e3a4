package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
	"github.com/weirstream/weir/internal/storage"
)

// everyState are the states of the rig.
var everyState = []string{"total", "visits", "texts", "recent", "parts", "brief", "most", "sum", "timers", "mine", "all", "names"}

func TestBothFormatsShowTheSame(t *testing.T) {
	r := newRig(t, 200)
	native := r.take(t, "/native", snapshot.Savepoint, snapshot.Native, 0, 0)
	canonical := r.take(t, "/canonical", snapshot.Savepoint, snapshot.Canonical, 0, 0)
	for _, name := range everyState {
		q := Query{Operator: "every", State: name}
		a, b := lines(t, native, q), lines(t, canonical, q)
		if !slices.Equal(a, b) || len(a) < 2 {
			t.Errorf("state %q: %d lines natively, %d canonically", name, len(a), len(b))
		}
		q.Limit = 2
		if got := lines(t, native, q); !slices.Equal(got, a[:2]) {
			t.Errorf("state %q: the first two are %q", name, got)
		}
	}
	q := Query{Operator: "Source", State: "splits"}
	if a, b := lines(t, native, q), lines(t, canonical, q); !slices.Equal(a, b) || len(a) != rigTasks {
		t.Errorf("splits: %q, %q", a, b)
	}
}

func TestEntriesOfKeys(t *testing.T) {
	r := newRig(t, 200)
	for _, s := range []*Snapshot{
		r.take(t, "/native", snapshot.Savepoint, snapshot.Native, 0, 0), r.take(t, "/canonical", snapshot.Savepoint, snapshot.Canonical, 0, 0),
	} {
		for _, name := range everyState[:9] {
			var want []string
			for _, line := range lines(t, s, Query{Operator: "every", State: name}) {
				if strings.HasPrefix(line, `{"key":"key 36",`) || strings.HasPrefix(line, `{"key":"key 42",`) {
					want = append(want, line)
				}
			}
			got := lines(t, s, Query{Operator: "every", State: name, Keys: []string{`"key 36"`, "key 42", "nobody", "key 42"}})
			if !slices.Equal(got, want) || len(got) < 2 {
				t.Errorf("%s, state %q:\n%q, want\n%q", s.Location, name, got, want)
			}
		}
	}
}

func TestLines(t *testing.T) {
	r := newRig(t, 7)
	s := r.take(t, "/native", snapshot.Savepoint, snapshot.Native, 0, 0)
	key := []string{"key 6"}
	for _, c := range []struct {
		name string
		keys []string
		want string
	}{
		{"total", key, `{"key":"key 6","value":{"ID":6,"Total":6917529027641081856,"At":"1970-01-01T00:00:06Z","Lines":{"pen":6}}}`},
		{"visits", key, `{"key":"key 6","value":6,"written":"1970-01-01T01:00:00Z","expires":"1970-01-01T02:00:00Z"}`},
		{"texts", key, `{"key":"key 6","index":0,"value":"a"}`},
		{"recent", key, `{"key":"key 6","index":0,"value":6,"written":"1970-01-01T01:00:00Z","expires":"1970-01-01T01:01:00Z"}`},
		{"parts", key, `{"key":"key 6","map_key":-6,"value":{"ID":0,"Total":0,"At":"0001-01-01T00:00:00Z","Lines":{}}}`},
		{"brief", key, `{"key":"key 6","map_key":"x","value":"Bg==","written":"1970-01-01T01:00:00Z","expires":"1970-01-01T01:00:01Z"}`},
		{"sum", key, `{"key":"key 6","value":[6]}`},
		{"timers", key, `{"key":"key 6","time":"1970-01-01T00:00:00.000000007Z","timer":"processing"}`},
		{"mine", nil, `{"subtask":0,"index":0,"value":0}`},
		{"names", nil, `{"subtask":0,"map_key":"name 0","value":7}`},
	} {
		if got := lines(t, s, Query{Operator: "every", State: c.name, Keys: c.keys}); got[0] != c.want {
			t.Errorf("%s\nwant\n%s", got[0], c.want)
		}
	}
	if got := lines(t, s, Query{Operator: "source", State: "coordinator"}); got[0] != `{"bytes":"d2hhdCB0aGUgZW51bWVyYXRvciBrbm93cw=="}` {
		t.Errorf("the coordinator is %q", got)
	}
}

// rowsOf are the files of rows of a snapshot, by subtask and state.
func rowsOf(t *testing.T, s *Snapshot) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, o := range s.Operators {
		for _, sub := range o.Subtasks {
			for _, h := range sub.Rows {
				file, err := s.bytes(h.Handle)
				must(t, err)
				index, err := s.bytes(h.Index)
				must(t, err)
				all[fmt.Sprint(o.UID, sub.Index, h.Name, h.Keyed, h.Range, h.Mode, h.Count)] = string(file) + string(index)
			}
		}
	}
	return all
}

// sameCanonical compares what WriteCanonical makes of s with what the engine wrote at the same moment.
func sameCanonical(t *testing.T, r *rig, s, engine *Snapshot) {
	t.Helper()
	location, err := s.WriteCanonical(s.Location + "-avro")
	must(t, err)
	made := r.look(t, location)
	got, want := rowsOf(t, made), rowsOf(t, engine)
	if len(got) != len(want) {
		t.Errorf("%s: %d files of rows, the engine writes %d", s.Location, len(got), len(want))
	}
	for name, b := range want {
		if got[name] != b {
			t.Errorf("%s: the rows %s are others than the engine's: %d bytes, not %d", s.Location, name, len(got[name]), len(b))
		}
	}
	v, err := made.Verify()
	must(t, err)
	if len(v.Faults)+len(v.Strangers) > 0 {
		t.Errorf("%s: %v %v", s.Location, v.Faults, v.Strangers)
	}
	if d := Diff(s, made); !d.SameShape() || !made.Kind.IsSavepoint() || made.ID != s.ID || made.Job != s.Job || made.Operators[1].Subtasks[1].Watermark != 1 ||
		len(made.Hooks) != 1 || made.Operators[0].Coordinator == nil {
		t.Errorf("%s became %+v", s.Location, made.Metadata)
	}
}

// What is made of native files is, byte for byte, what the engine would have written; also of those that refer to older ones.
func TestCanonicalIsWhatTheEngineWrites(t *testing.T) {
	r := newRig(t, 300)
	native := r.take(t, "/sp/native", snapshot.Savepoint, snapshot.Native, 0, 0)
	canonical := r.take(t, "/sp/canonical", snapshot.Savepoint, snapshot.Canonical, 0, 0)
	sameCanonical(t, r, native, canonical)
	sameCanonical(t, r, canonical, canonical)

	r.take(t, "/job/chk-1", snapshot.Checkpoint, snapshot.Native, 1, 0)
	r.now += 2e9 // what is brief expires
	r.fill(40, 3)
	second := r.take(t, "/job/chk-2", snapshot.Checkpoint, snapshot.Native, 2, 1)
	if sum := second.Summary(); sum.Totals.Outside == 0 || sum.Totals.OutsideBytes == 0 || sum.Totals.New >= sum.Totals.Bytes {
		t.Errorf("the second checkpoint refers to nothing: %+v", sum.Totals)
	}
	sameCanonical(t, r, second, r.take(t, "/sp/later", snapshot.Savepoint, snapshot.Canonical, 0, 0))
	v, err := second.Verify()
	must(t, err)
	if len(v.Faults) > 0 {
		t.Errorf("%v", v.Faults)
	}
}

func TestCanonicalGoesNowhereElse(t *testing.T) {
	r := newRig(t, 10)
	s := r.take(t, "/native", snapshot.Savepoint, snapshot.Native, 0, 0)
	for _, dir := range []string{"/native", "/"} {
		if _, err := s.WriteCanonical(dir); err == nil || !strings.Contains(err.Error(), "is not empty") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	must(t, r.fs.Mkdir("/empty"))
	if _, err := s.WriteCanonical("/empty"); err != nil {
		t.Error(err)
	}
	e := snapshot.Edge{From: "source", To: "every"}
	s.Metadata.Operators[1].Subtasks[0].InFlight = []snapshot.InFlightHandle{{Edge: e, Records: 3}}
	if _, err := s.WriteCanonical("/other"); err == nil || !strings.Contains(err.Error(), "3 records are in flight on the edge source -> every") {
		t.Error(err)
	}
}

// Cut after any operation, whether the machine or only the process dies, there is a whole savepoint or none.
func TestCanonicalIsWholeOrNotThere(t *testing.T) {
	cut := errors.New("cut")
	r := newRig(t, 5)
	r.take(t, "/native", snapshot.Savepoint, snapshot.Native, 0, 0)
	healthy := r.fs.(*storage.MemFS).CrashClone(rand.New(rand.NewPCG(0, 0)))
	for n := 0; ; n += 3 {
		fs := healthy.CrashClone(rand.New(rand.NewPCG(1, uint64(n))))
		r.fs = storage.Faulty(fs, &storage.Rule{Hook: func(storage.Op, string) {}, Count: n + 1}, &storage.Rule{Err: cut})
		s, err := Open(r.fs, "/native")
		if err == nil {
			_, err = s.WriteCanonical("/avro")
		}
		for _, after := range []storage.FS{fs, fs.CrashClone(rand.New(rand.NewPCG(2, uint64(n))))} {
			made, failed := Open(after, "/avro")
			if err == nil && failed != nil {
				t.Fatalf("after %d operations: it was made, and is not there: %v", n, failed)
			}
			if failed != nil {
				continue
			}
			v, failed := made.Verify()
			must(t, failed)
			if len(v.Faults) > 0 {
				t.Fatalf("after %d operations: %v", n, v.Faults)
			}
		}
		if err == nil {
			return
		}
	}
}

func TestVerifyFindsEveryFault(t *testing.T) {
	r := newRig(t, 60)
	r.take(t, "/job/chk-1", snapshot.Checkpoint, snapshot.Native, 1, 0)
	r.fill(3, 2)
	for _, s := range []*Snapshot{
		r.take(t, "/job/chk-2", snapshot.Checkpoint, snapshot.Native, 2, 1), r.take(t, "/canonical", snapshot.Savepoint, snapshot.Canonical, 0, 0),
	} {
		files := map[string]bool{}
		must(t, s.Handles(func(_ snapshot.Owner, h *snapshot.Handle) error {
			files[storage.FilePath(s.Location, *h)] = h.File != ""
			return nil
		}))
		for name, is := range files {
			if is {
				damage(t, r.fs, s.Location, name)
			}
		}
		damage(t, r.fs, s.Location, s.Location+"/_metadata")
	}
}

// damage does all that can be done to a file, a thing at a time, and demands that Verify names it each time.
func damage(t *testing.T, fs storage.FS, location, name string) {
	t.Helper()
	good := read(t, fs, name)
	check := func(what string, b []byte) {
		t.Helper()
		must(t, fs.Remove(name))
		if b != nil {
			write(t, fs, name, b)
		}
		if !isFaulty(t, fs, location, path.Base(name)) {
			t.Errorf("%s: %s, and nobody sees it", name, what)
		}
		if b == nil {
			write(t, fs, name, good)
		}
	}
	for _, at := range []int{0, len(good) / 3, len(good) / 2, len(good) - 1} {
		bad := bytes.Clone(good)
		bad[at] ^= 0x10
		check(fmt.Sprintf("byte %d of %d is flipped", at, len(good)), bad)
	}
	check("it is cut short", good[:len(good)-1])
	check("it is longer", append(bytes.Clone(good), 0))
	check("it is empty", []byte{})
	check("it is another's", bytes.Repeat([]byte("x"), len(good)))
	check("it is missing", nil)
	if isFaulty(t, fs, location, path.Base(name)) {
		t.Errorf("%s has a fault where nothing is wrong", name)
	}
}

// isFaulty reports that Verify names the file, or that the snapshot cannot be opened.
func isFaulty(t *testing.T, fs storage.FS, location, name string) bool {
	t.Helper()
	s, err := Open(fs, location)
	if err != nil {
		return strings.Contains(err.Error(), name)
	}
	defer s.Close()
	v, err := s.Verify()
	must(t, err)
	_ = s.Summary() // and never a panic
	return slices.ContainsFunc(v.Faults, func(f Fault) bool { return strings.Contains(f.String(), name) })
}

func read(t *testing.T, fs storage.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	must(t, err)
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	must(t, err)
	return b
}

func write(t *testing.T, fs storage.FS, name string, b []byte) {
	t.Helper()
	f, err := fs.Create(name)
	must(t, err)
	_, err = f.Write(b)
	must(t, errors.Join(err, f.Close()))
}

func TestStrangersAreTold(t *testing.T) {
	r := newRig(t, 5)
	s := r.take(t, "/native", snapshot.Savepoint, snapshot.Native, 0, 0)
	write(t, r.fs, "/native/notes.txt", []byte("x"))
	v, err := s.Verify()
	must(t, err)
	if len(v.Faults) > 0 || !slices.Equal(v.Strangers, []string{"notes.txt"}) {
		t.Errorf("%+v", v)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	r := newRig(t, 5)
	s := r.take(t, "/native", snapshot.Savepoint, snapshot.Native, 0, 0)
	for _, c := range []struct {
		q    Query
		want string
	}{
		{Query{Operator: "evry", State: "total"}, `there is no operator "evry" in /native; there are "every"`},
		{Query{Operator: "every", State: "totals"}, `has no state "totals"; the nearest of 12 are "total"`},
		{Query{Operator: "source", State: "timers"}, `has no state "timers"; there are`},
		{Query{Operator: "every", State: "mine", Keys: []string{"1"}}, "it has no keys; leave --key out"},
		{Query{Operator: "source", State: "coordinator", Keys: []string{"1"}}, "it has no keys; leave --key out"},
	} {
		if err := s.WriteEntries(new(bytes.Buffer), c.q); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.q, err)
		}
	}
	s.Operators[0].Name = "Process"
	if err := s.WriteEntries(new(bytes.Buffer), Query{Operator: "Process", State: "total"}); err == nil || !strings.Contains(err.Error(), `2 operators are called "Process"; name one by its UID: "source", "every"`) {
		t.Error(err)
	}
}

func TestDiffer(t *testing.T) {
	r := newRig(t, 5)
	a := r.take(t, "/a", snapshot.Savepoint, snapshot.Native, 0, 0)
	r.fill(10, 90)
	b := r.take(t, "/b", snapshot.Savepoint, snapshot.Canonical, 0, 0)
	if d := Diff(a, b); !d.SameShape() || *d.Operators[1].Keys.Before != 5 {
		t.Errorf("%+v", d)
	}
	change := func(i int, to func(*snapshot.StateSchema)) { to(&b.Operators[1].Schemas[i]) }
	change(1, func(s *snapshot.StateSchema) { s.Value = `"double"` }) // visits
	change(2, func(s *snapshot.StateSchema) { s.Value = `"bytes"` })  // texts
	change(6, func(s *snapshot.StateSchema) { s.Kind = state.KindValue })
	b.Operators[1].Schemas = append(b.Operators[1].Schemas, snapshot.StateSchema{Name: "new", Kind: state.KindOpList, Value: `"int"`})
	b.Operators[0].UID = "other source"
	d := Diff(a, b)
	got := map[string]Change{}
	for _, o := range d.Operators {
		got[o.UID] = o.Change
		for _, s := range o.States {
			got[o.UID+" "+s.Name] = s.Change
		}
	}
	for name, want := range map[string]Change{"source": Removed, "other source": Added, "every": Same, "every total": Same, "every visits": Incompatible,
		"every texts": Migrates, "every most": Incompatible, "every new": Added, "source splits": Removed} {
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
	}
	var text strings.Builder
	must(t, d.WriteText(&text))
	for _, want := range []string{"- operator source", "+ operator other source", "!   visits", "~   texts", "+   new", "the shape differs"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
}
