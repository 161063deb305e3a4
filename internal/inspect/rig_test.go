package inspect

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
	"github.com/weirstream/weir/internal/storage"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type order struct {
	ID    int64
	Total uint64
	At    time.Time
	Lines map[string]int32
}

// subtask has a state of every kind.
type subtask struct {
	number int
	keyed  *state.Keyed[string]
	total  state.Value[order]
	visits state.Value[int64]
	texts  state.List[string]
	recent state.List[int64]
	parts  state.Map[int64, order]
	brief  state.Map[string, []byte]
	most   state.Reducing[int64]
	sum    state.Aggregating[int64, []int64, int64]

	ops    *state.Operator
	mine   state.OperatorList[int64]
	all    state.UnionList[string]
	names  state.BroadcastMap[string, int64]
	splits *state.Operator
	split  state.OperatorList[order]
}

// rig is a job of two subtasks: a source with splits, and an operator with all else.
type rig struct {
	fs    storage.FS
	now   int64
	tasks []*subtask
}

const rigTasks = 2

func newRig(t testing.TB, keys int) *rig {
	r := &rig{fs: storage.Memory(), now: int64(time.Hour)}
	for i := range rigTasks {
		r.tasks = append(r.tasks, r.newSubtask(t, i))
	}
	r.fill(0, keys)
	return r
}

func (r *rig) newSubtask(t testing.TB, number int) *subtask {
	t.Helper()
	key, err := codec.KeyFor[string]()
	must(t, err)
	s := &subtask{number: number, keyed: state.NewKeyed(key, base.RangeOf(number, rigTasks)), ops: state.NewOperator(), splits: state.NewOperator()}
	must(t, s.total.Bind(s.keyed, state.Spec{Name: "total"}))
	must(t, s.visits.Bind(s.keyed, state.Spec{Name: "visits", TTL: time.Hour}))
	must(t, s.texts.Bind(s.keyed, state.Spec{Name: "texts"}))
	must(t, s.recent.Bind(s.keyed, state.Spec{Name: "recent", TTL: time.Minute}))
	must(t, s.parts.Bind(s.keyed, state.Spec{Name: "parts"}))
	must(t, s.brief.Bind(s.keyed, state.Spec{Name: "brief", TTL: time.Second}))
	must(t, s.most.Bind(s.keyed, state.Spec{Name: "most"}))
	must(t, s.sum.Bind(s.keyed, state.Spec{Name: "sum"}))
	s.most.Use(func(a, b int64) int64 { return max(a, b) })
	s.sum.Use(state.Aggregate[int64, []int64, int64]{Add: func(a []int64, v int64) []int64 { return append(a, v) }})
	s.keyed.Open(func() int64 { return r.now })
	must(t, s.mine.Bind(s.ops, state.Spec{Name: "mine"}))
	must(t, s.all.Bind(s.ops, state.Spec{Name: "all"}))
	must(t, s.names.Bind(s.ops, state.Spec{Name: "names"}))
	must(t, s.split.Bind(s.splits, state.Spec{Name: "splits"}))
	return s
}

// fill changes the keys from first on.
func (r *rig) fill(first, n int) {
	for i := first; i < first+n; i++ {
		for _, s := range r.tasks {
			s.fill(fmt.Sprintf("key %d", i), int64(i))
		}
	}
	for j, s := range r.tasks {
		s.mine.Add(int64(first), int64(n))
		s.all.Add(fmt.Sprint("element of ", j))
		s.names.Put(fmt.Sprint("name ", first), int64(n))
		s.split.Add(order{ID: int64(j)})
	}
}

func (s *subtask) fill(key string, i int64) {
	h := s.keyed.Hash(key)
	if base.OwnerOf(h, rigTasks) != s.number {
		return
	}
	s.keyed.Seek(h, key)
	defer s.keyed.Settle()
	s.total.Set(order{ID: i, Total: uint64(i) << 60, At: time.Unix(i, 0), Lines: map[string]int32{"pen": int32(i)}})
	if i%2 == 0 {
		s.visits.Set(i)
		s.texts.Add("a", fmt.Sprint(i))
		s.parts.Put(i, order{ID: i})
		s.parts.Put(-i, order{})
	}
	if i%3 == 0 {
		s.recent.Add(i)
		s.brief.Put("x", []byte{byte(i)})
		s.most.Add(i)
		s.sum.Add(i)
	}
	s.keyed.Timers(true).Register(base.EventTime(i))
	s.keyed.Timers(false).Register(base.EventTime(i + 1))
}

// take writes a snapshot in a format, natively upon an earlier one, and opens it.
func (r *rig) take(t testing.TB, dir string, kind snapshot.Kind, format snapshot.Format, id, upon base.CheckpointID) *Snapshot {
	t.Helper()
	location, err := storage.MakeSnapshot(r.fs, dir)
	must(t, err)
	w := storage.NewWriter(r.fs, location, storage.WriterOptions{InlineMax: -1})
	if kind == snapshot.Savepoint {
		w = storage.NewWriter(r.fs, location, storage.WriterOptions{})
	}
	m := &snapshot.Metadata{ID: base.CheckpointID(len(dir)), Job: "0123456789abcdef0123456789abcdef", JobName: "rig", Kind: kind, Format: format, Run: 2,
		Wall: int64(time.Hour)}
	coordinator := put(t, w, "coordinator", []byte("what the enumerator knows"))
	source := snapshot.Operator{UID: "source", Name: "Source", Parallelism: rigTasks, Coordinator: &coordinator, Schemas: r.tasks[0].splits.Schemas()}
	all := snapshot.Operator{UID: "every", Name: "Process", Parallelism: rigTasks, Schemas: append(r.tasks[0].keyed.Schemas(), r.tasks[0].ops.Schemas()...)}
	for i, s := range r.tasks {
		source.Subtasks = append(source.Subtasks, snapshot.Subtask{Index: i, Watermark: base.NoTime, PendingWatermark: base.NoTime})
		all.Subtasks = append(all.Subtasks, snapshot.Subtask{Index: i, Watermark: base.EventTime(i), PendingWatermark: base.NoTime})
		s.writeLists(t, w, s.splits, "source", &source.Subtasks[i], format)
		s.writeLists(t, w, s.ops, "every", &all.Subtasks[i], format)
		s.writeKeyed(t, w, &all.Subtasks[i], format, location, id, upon)
	}
	m.Operators = []snapshot.Operator{source, all}
	m.Hooks = []snapshot.Hook{{ID: "hook", State: put(t, w, "hook", []byte("hooked"))}}
	must(t, storage.PublishSnapshot(r.fs, location, m))
	return r.look(t, location)
}

func (r *rig) look(t testing.TB, dir string) *Snapshot {
	t.Helper()
	s, err := Open(r.fs, dir)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func put(t testing.TB, w storage.Writer, name string, b []byte) snapshot.Handle {
	t.Helper()
	o, err := w.Create(name)
	must(t, err)
	_, err = o.Write(b)
	must(t, err)
	h, err := o.Commit()
	must(t, err)
	return h
}

func putTo(t testing.TB, w storage.Writer, name string, from io.WriterTo) snapshot.Handle {
	t.Helper()
	var b bytes.Buffer
	_, err := from.WriteTo(&b)
	must(t, err)
	return put(t, w, name, b.Bytes())
}

func putRows(t testing.TB, w storage.Writer, uid string, i int, all []*state.Rows, to *snapshot.Subtask) {
	t.Helper()
	for _, rows := range all {
		name := fmt.Sprintf("%d-%s-%s", i, uid, rows.Name())
		file := putTo(t, w, name+".avro", rows)
		h := rows.Handle()
		h.Handle, h.Index = file, put(t, w, name+".idx", rows.Index())
		if h.Keyed {
			h.Range = base.RangeOf(i, rigTasks)
		}
		to.Rows = append(to.Rows, h)
	}
}

func (s *subtask) writeLists(t testing.TB, w storage.Writer, ops *state.Operator, uid string, to *snapshot.Subtask, f snapshot.Format) {
	t.Helper()
	taken := ops.Snapshot()
	if f == snapshot.Canonical {
		putRows(t, w, uid, s.number, taken.Rows(), to)
		return
	}
	h := putTo(t, w, fmt.Sprintf("%d-%s-lists", s.number, uid), taken)
	for _, l := range taken.Lists() {
		l.Handle = h
		to.Lists = append(to.Lists, l)
	}
}

func (s *subtask) writeKeyed(t testing.TB, w storage.Writer, to *snapshot.Subtask, f snapshot.Format, location string, id, upon base.CheckpointID) {
	t.Helper()
	taken := s.keyed.Snapshot(id, upon)
	defer taken.Release()
	if f == snapshot.Canonical {
		putRows(t, w, "every", s.number, taken.Rows(), to)
		return
	}
	h := putTo(t, w, fmt.Sprintf("%d-every-keyed", s.number), taken)
	absolute := h
	absolute.File = location + "/" + h.File
	taken.Written(absolute)
	to.Keyed = append(to.Keyed, snapshot.KeyedHandle{Range: base.RangeOf(s.number, rigTasks), Handle: h, Refers: taken.Refers()})
}

// lines are the entries that a query asks for.
func lines(t testing.TB, s *Snapshot, q Query) []string {
	t.Helper()
	var b strings.Builder
	must(t, s.WriteEntries(&b, q))
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}
