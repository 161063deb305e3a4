package weir_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// Canonical savepoints: of a job that has state of every kind, moved, and restored at another parallelism; damaged; and read by
// an Avro library of another language.

// Place is part of a key and of values: one type in several columns of a row.
type Place struct {
	Name string
	Zip  uint64
}

// knowing has state of every kind by key, timers of both kinds and a broadcast map, and tells all that it knows.
type knowing struct {
	Last  Value[Place]                         `state:"last"`
	Seen  List[int64]                          `state:"seen"`
	Count Map[Place, int64]                    `state:"count"`
	Most  Reducing[int64]                      `state:"most"`
	Sum   Aggregating[int64, []int64, int64]   `state:"sum"`
	Brief Value[int64]                         `state:"brief,ttl=1h"`
	Empty Value[string]                        `state:"never set"`
	Rules BroadcastMap[string, map[string]int] `state:"rules"`
}

func newKnowing() *knowing {
	f := &knowing{}
	f.Most.Reduce = func(a, b int64) int64 { return max(a, b) }
	f.Sum.Fold = func(acc []int64, v int64) []int64 { return append(acc, v) }
	f.Sum.Result = func(acc []int64) (sum int64) {
		for _, v := range acc {
			sum += v
		}
		return sum
	}
	return f
}

func placeOf(v int64) Place { return Place{fmt.Sprint("place ", v%10), uint64(v % 10)} }

func (f *knowing) Process(ctx *KeyedContext[Place], v int64, out Out[string]) error {
	f.Last.Set(placeOf(v + 1))
	f.Seen.Add(v)
	n, _ := f.Count.Get(placeOf(v / 10))
	f.Count.Put(placeOf(v/10), n+1)
	f.Most.Add(v)
	f.Sum.Add(v)
	f.Brief.Set(v)
	ctx.EventTimer(time.Unix(0, v))
	ctx.ProcessingTimer(time.Unix(1<<32, v))
	out.Emit(f.tell(ctx.Key()))
	return nil
}

func (f *knowing) tell(key Place) string {
	return fmt.Sprint(key, f.Last.Get(), slices.Collect(f.Seen.All()), maps.Collect(f.Count.All()), f.Most.Get(), " ", f.Sum.Get(), " ",
		f.Brief.Get(), " ", f.Rules.Len())
}

// saidOf is what knowing tells of a key after all of vs.
func saidOf(key Place, vs []int64, rules int) string {
	count, sum := map[Place]int64{}, int64(0)
	for _, v := range vs {
		count[placeOf(v/10)]++
		sum += v
	}
	last := vs[len(vs)-1]
	return fmt.Sprint(key, placeOf(last+1), vs, count, slices.Max(vs), " ", sum, " ", last, " ", rules)
}

func (f *knowing) ProcessBroadcast(_ *Context, v string, _ Out[string]) error {
	f.Rules.Put(v, map[string]int{v: len(v)})
	return nil
}

func (f *knowing) OnTimer(ctx *KeyedContext[Place], at Timer, out Out[string]) error {
	if at.Event {
		out.Emit(fmt.Sprint("timer of ", ctx.Key(), " at ", at.At.UnixNano()))
	}
	return nil
}

// canonical is the job with all that, on tapes.
type canonical struct {
	*lab
	numbers *tape[int64]
	rules   *tape[string]
	out     *notes
	lists   *notes
	got     []string
}

func newCanonical(l *lab) *canonical {
	return &canonical{lab: l, numbers: newTape[int64](1), rules: newTape[string](1), out: &notes{}, lists: &notes{}}
}

func (c *canonical) run(env *Env) *running {
	c.Helper()
	return c.start(c.graph(env))
}

func (c *canonical) graph(env *Env) *Env {
	rules := env.From(c.rules).UID("rules").Parallelism(1).Broadcast()
	numbers := env.From(c.numbers).UID("numbers").Parallelism(1).Rebalance()
	numbers.Process(&lists{N: c.lists, Mine: true}).UID("my lists").To(Discard[int64]())
	told := numbers.KeyBy(placeOf).ConnectBroadcast(rules).Process(newKnowing()).UID("knowing/all")
	told.To(note[string](c.out)).Parallelism(1)
	told.To(Collect(&c.got)).UID("got").Parallelism(1)
	return env
}

// stop stops the job with a canonical savepoint.
func (c *canonical) stop(r *running) string {
	c.Helper()
	a, err := r.handle.TriggerSavepoint(c.Context(), jobmaster.Savepoint{Kind: checkpoint.Suspend, Format: checkpoint.Canonical})
	if err != nil {
		c.Fatal(err)
	}
	r.finish()
	return a.Location
}

// metadata is what the savepoint says of itself.
func (l *lab) metadata(at string) *snapshot.Metadata {
	l.Helper()
	b, err := readFile(l.disk, path.Join(at, "_metadata"))
	if err != nil {
		l.Fatal(err)
	}
	m, err := snapshot.Decode(b)
	if err != nil {
		l.Fatal(err)
	}
	return m
}

func readFile(fs storage.FS, name string) ([]byte, error) {
	r, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	b := make([]byte, r.Size())
	if n, err := r.ReadAt(b, 0); n < len(b) {
		return nil, errors.Join(err, r.Close())
	}
	return b, r.Close()
}

// files are the files in a directory of the lab's disk.
func (l *lab) files(dir string) map[string][]byte {
	l.Helper()
	entries, err := l.disk.List(dir)
	if err != nil {
		l.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if files[e.Name], err = readFile(l.disk, path.Join(dir, e.Name)); err != nil {
			l.Fatal(err)
		}
	}
	return files
}

// put makes a directory of files.
func (l *lab) put(dir string, files map[string][]byte) string {
	l.Helper()
	err := l.disk.Mkdir(dir)
	for name, b := range files {
		f, e := l.disk.Create(path.Join(dir, name))
		if e == nil {
			_, e = f.Write(b)
			e = errors.Join(e, f.Close())
		}
		err = errors.Join(err, e)
	}
	if err != nil {
		l.Fatal(err)
	}
	return dir
}

// move moves a savepoint: nothing is left where it was.
func (l *lab) move(from, to string) string {
	l.Helper()
	files := l.files(from)
	for name := range files {
		if err := l.disk.Remove(path.Join(from, name)); err != nil {
			l.Fatal(err)
		}
	}
	if err := l.disk.Remove(from); err != nil {
		l.Fatal(err)
	}
	return l.put(to, files)
}

// A canonical savepoint has a file of rows and an index for each state and subtask, with names that people can read, and nothing
// of it in the metadata. It can be moved, and restored at any parallelism.
func TestACanonicalSavepointIsRestoredAnywhere(t *testing.T) {
	for _, c := range []struct{ from, to int }{{1, 3}, {3, 2}, {2, 2}, {2, 5}} {
		inLab(t, func(l *lab) {
			j := newCanonical(l)
			r := j.run(l.env(c.from))
			j.rules.write(0, "a", "bb")
			r.settle()
			j.numbers.write(0, numbers(300)...)
			r.settle()
			at := j.stop(r)
			j.checkFiles(at, c.from)
			j.out.take()
			j.got = nil // what was committed is committed again, by a program that has nothing yet
			at = l.move(at, "/moved")
			r = j.run(l.resumed(c.to, at))
			for i, line := range j.lists.take() {
				if i >= c.from && line != fmt.Sprintf("split %d, union 300", 300/c.to) {
					t.Errorf("%d -> %d: %s", c.from, c.to, line)
				}
			}
			j.numbers.write(0, 301, 302, 303, 304, 305, 306, 307, 308, 309, 310)
			r.settle()
			var want []string
			for k := range int64(10) {
				var vs []int64
				for v := k; v <= 310; v += 10 {
					if v > 0 {
						vs = append(vs, v)
					}
				}
				want = append(want, saidOf(placeOf(k), vs, 2))
			}
			slices.Sort(want)
			expect(t, j.out.takeSorted(), want...)
			j.numbers.end()
			j.rules.end()
			r.finish()
			want = want[:0]
			for _, v := range numbers(310) { // the end of the input fires all event timers
				want = append(want, fmt.Sprint("timer of ", placeOf(v), " at ", v))
			}
			slices.Sort(want)
			expect(t, j.out.takeSorted(), want...)
			if len(j.got) != 2*310 {
				t.Errorf("%d -> %d: %d records were committed", c.from, c.to, len(j.got))
			}
		})
	}
}

// checkFiles checks what a savepoint of p subtasks consists of.
func (c *canonical) checkFiles(at string, p int) {
	c.Helper()
	m := c.metadata(at)
	if m.Format != snapshot.Canonical {
		c.Errorf("the format is %s", m.Format)
	}
	named := map[string]bool{"_metadata": true}
	rows := map[string]int64{}
	for _, o := range m.Operators {
		for _, s := range o.Subtasks {
			if len(s.Keyed)+len(s.Lists) > 0 {
				c.Errorf("%s has native state", o.UID)
			}
			for _, r := range s.Rows {
				if r.Keyed && r.Range != base.RangeOf(s.Index, p) {
					c.Errorf("%s: the range of %q is %v", o.UID, r.Name, r.Range)
				}
				rows[o.UID+" "+r.Name] += r.Count
				named[r.File], named[r.Index.File] = true, true
			}
		}
	}
	for _, want := range []string{"knowing%2Fall-last.avro", "knowing%2Fall-never%20set.idx", "my%20lists-split.avro", "numbers-splits.avro", "got-committables.avro"} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(named)), func(name string) bool { return strings.HasSuffix(name, "-"+want) }) {
			c.Errorf("no file is named like %q: %v", want, slices.Sorted(maps.Keys(named)))
		}
	}
	if got := c.files(at); len(got) != len(named) {
		c.Errorf("%d files, the metadata names %d", len(got), len(named))
	}
	want := map[string]int64{"knowing/all last": 10, "knowing/all seen": 300, "knowing/all most": 10, "knowing/all sum": 10, "knowing/all brief": 10,
		"knowing/all never set": 0, "knowing/all (timers)": 600, "knowing/all rules": int64(2 * p), "my lists split": 300, "my lists union": 300}
	for name, n := range want {
		if got, ok := rows[name]; got != n || !ok {
			c.Errorf("%s has %d rows, want %d", name, got, n)
		}
	}
}

// A damaged file, an index that is another's, or a missing file is refused by the name of the file, and no restart is tried.
func TestADamagedCanonicalSavepointIsRefused(t *testing.T) {
	inLab(t, func(l *lab) {
		j := newCanonical(l)
		r := j.run(l.env(2))
		j.numbers.write(0, numbers(100)...)
		r.settle()
		files := l.files(j.stop(r))
		rows, index := "", ""
		for name := range files {
			if strings.HasSuffix(name, "-seen.avro") && (rows == "" || name < rows) {
				rows = name
			}
			if strings.HasSuffix(name, "-count.idx") && (index == "" || name < index) {
				index = name
			}
		}
		damage := map[string]func(map[string][]byte){
			rows + " flipped":  func(f map[string][]byte) { f[rows][len(f[rows])/2] ^= 1 },
			rows + " cut":      func(f map[string][]byte) { f[rows] = f[rows][:len(f[rows])-20] },
			rows + " gone":     func(f map[string][]byte) { delete(f, rows) },
			index + " another": func(f map[string][]byte) { f[index] = f[strings.Replace(index, "-count.", "-seen.", 1)] },
		}
		for what, do := range damage {
			copied := map[string][]byte{}
			for name, b := range files {
				copied[name] = slices.Clone(b)
			}
			do(copied)
			at := l.put("/"+strings.ReplaceAll(what, "/", " "), copied)
			name, _, _ := strings.Cut(what, " ")
			l.fails(j.graph(l.resumed(2, at)), name)
		}
	})
}

// lessRemembering has one state of remembering's.
type lessRemembering struct {
	L List[string] `state:"l"`
}

func (f *lessRemembering) Process(*KeyedContext[int64], int64, Out[string]) error { return nil }

// A function that declares other states than the savepoint has is refused, or may drop them; as with a native one.
func TestAChangedFunctionAndACanonicalSavepoint(t *testing.T) {
	inLab(t, func(l *lab) {
		source := newTape[int64](1)
		keyed := func(env *Env) KeyedStream[int64, int64] {
			return env.From(source).UID("tape").KeyBy(func(v int64) int64 { return v })
		}
		graph := func(env *Env) *Env {
			keyed(env).Process(newRemembering()).UID("f").To(Discard[string]())
			return env
		}
		r := l.start(graph(l.env(1)))
		source.write(0, 1, 2, 3)
		r.settle()
		at := r.savepoint(checkpoint.Suspend)
		l.fails(func(env *Env) *Env {
			keyed(env).Process(&aging{}).UID("f").To(Discard[string]())
			return env
		}(l.resumed(1, at)), `state "l" (list)`, "stored as string, declared as long")
		less := func(env *Env) *Env {
			keyed(env).Process(&lessRemembering{}).UID("f").To(Discard[string]())
			return env
		}
		l.fails(less(l.resumed(1, at)), `state "a"`, "not declared any more", "-n")
		stateless := func(env *Env) *Env {
			env.From(source).UID("tape").Map(func(v int64) int64 { return v }).UID("f").To(Discard[int64]())
			return env
		}
		l.fails(stateless(l.resumed(1, at)), `state "v" (value)`, "not declared any more", "-n")
		changed := func(env *Env) *Env {
			env.From(source).UID("tape").KeyBy(func(v int64) string { return fmt.Sprint(v) }).Scan("v", func(s int64, v int64) (int64, int64) { return s, v }).
				UID("f").To(Discard[int64]())
			return env
		}
		l.fails(changed(l.resumed(1, at)), "the keys: stored as long, declared as string")
		l.log.take()
		source.end()
		l.start(stateless(l.resumed(1, at).Set("execution.state-recovery.ignore-unclaimed-state", "true"))).finish()
	})
}

// ---- another language

const fastavro = "fastavro==1.13.1"

// python is an interpreter with fastavro, made once and kept in the user's cache; where there is none, the test is skipped.
func python(t *testing.T) string {
	t.Helper()
	skip := func(why string, err error) {
		t.Helper()
		t.Skipf("%s IS SKIPPED: %s: %v. It reads canonical savepoints with %s from PyPI, for which it needs python3 and the network once.", t.Name(), why, err, fastavro)
	}
	system, err := exec.LookPath("python3")
	if err != nil {
		skip("there is no python3", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		skip("there is no cache directory", err)
	}
	venv := filepath.Join(cache, "weir", "venv-"+strings.ReplaceAll(fastavro, "==", "-"))
	interpreter := filepath.Join(venv, "bin", "python")
	if err := exec.Command(interpreter, "-c", "import fastavro").Run(); err == nil {
		return interpreter
	}
	if err := os.MkdirAll(filepath.Dir(venv), 0o777); err != nil {
		skip("the cache cannot be written", err)
	}
	made, err := os.MkdirTemp(filepath.Dir(venv), "making-")
	if err != nil {
		skip("the cache cannot be written", err)
	}
	defer os.RemoveAll(made)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, args := range [][]string{{system, "-m", "venv", made},
		{filepath.Join(made, "bin", "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", fastavro}} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			skip(strings.Join(args, " "), fmt.Errorf("%w: %s", err, out))
		}
	}
	os.RemoveAll(venv)
	if err := os.Rename(made, venv); err != nil && exec.Command(interpreter, "-c", "import fastavro").Run() != nil {
		skip("the cache cannot be written", err)
	}
	return interpreter
}

// readRows prints each row of the files as a line of JSON, behind the state that the header names; bytes in hex.
const readRows = `
import fastavro, json, sys
def plain(v):
    if isinstance(v, bytes): return v.hex()
    if isinstance(v, dict): return {k: plain(x) for k, x in v.items()}
    if isinstance(v, list): return [plain(x) for x in v]
    return v
for name in sys.argv[1:]:
    with open(name, 'rb') as f:
        r = fastavro.reader(f)
        for row in r:
            print(json.dumps([r.metadata['weir.state'], plain(row)]))
`

// TestAnotherLanguageReadsACanonicalSavepoint: fastavro finds every row that the job knew.
func TestAnotherLanguageReadsACanonicalSavepoint(t *testing.T) {
	interpreter := python(t)
	dir := t.TempDir()
	args := []string{"-c", readRows}
	inLab(t, func(l *lab) {
		j := newCanonical(l)
		r := j.run(l.env(2))
		j.rules.write(0, "a", "bb")
		r.settle()
		j.numbers.write(0, numbers(200)...)
		r.settle()
		for name, b := range l.files(j.stop(r)) {
			if strings.HasSuffix(name, ".avro") {
				args = append(args, filepath.Join(dir, name))
				if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	out, err := exec.Command(interpreter, args...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("%v: %s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	got := map[string][]string{} // rows without their hashes, by state
	for line := range strings.Lines(string(out)) {
		var state string
		var row map[string]any
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&[]any{&state, &row}); err != nil {
			t.Fatal(err)
		}
		delete(row, "hash")
		b, _ := json.Marshal(row) // what came from JSON, its fields in the order of their names
		got[state] = append(got[state], string(b))
	}
	for state, want := range knownRows(numbers(200), 2) {
		slices.Sort(want)
		slices.Sort(got[state])
		expect(t, got[state], want...)
	}
}

// knownRows are the rows of what knowing and lists know after all of vs, on p subtasks.
func knownRows(vs []int64, p int) map[string][]string {
	all := map[string][]string{}
	place := func(p Place) string { return fmt.Sprintf(`{"Name":%q,"Zip":"%016x"}`, p.Name, p.Zip) }
	row := func(state, format string, args ...any) {
		all[state] = append(all[state], fmt.Sprintf(format, args...))
	}
	byKey := map[Place][]int64{}
	for _, v := range vs {
		key := placeOf(v)
		row("seen", `{"index":%d,"key":%s,"value":%d}`, len(byKey[key]), place(key), v)
		row("(timers)", `{"event":true,"key":%s,"time":%d}`, place(key), v)
		row("(timers)", `{"event":false,"key":%s,"time":%d}`, place(key), 1<<32*int64(time.Second)+v)
		row("split", `{"value":%d}`, v)
		row("union", `{"value":%d}`, v)
		byKey[key] = append(byKey[key], v)
	}
	for key, vs := range byKey {
		count := map[Place]int64{}
		for _, v := range vs {
			count[placeOf(v/10)]++
		}
		for at, n := range count {
			row("count", `{"key":%s,"mapKey":%s,"value":%d}`, place(key), place(at), n)
		}
		b, _ := json.Marshal(vs)
		row("last", `{"key":%s,"value":%s}`, place(key), place(placeOf(vs[len(vs)-1]+1)))
		row("most", `{"key":%s,"value":%d}`, place(key), vs[len(vs)-1])
		row("sum", `{"key":%s,"value":%s}`, place(key), b)
	}
	for range p {
		row("rules", `{"mapKey":"a","value":[{"key":"a","value":1}]}`)
		row("rules", `{"mapKey":"bb","value":[{"key":"bb","value":2}]}`)
	}
	return all
}
