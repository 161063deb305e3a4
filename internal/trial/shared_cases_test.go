package trial

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/worker"
)

// ---- churn: keys come, change and go; what a checkpoint has to write is a part of them.

// churn is a job whose state changes everywhere, a little at a time.
type churn struct {
	keys    int64
	recent  int64 // keys that change at a time
	records int64
}

// key is each key once at first; then it moves slowly through all keys, but for one record in twenty.
func (c churn) key(v int64) int64 {
	switch {
	case v < c.keys:
		return v
	case v%20 == 0:
		return v * 7919 % c.keys
	}
	return (v/64*8 + v%c.recent) % c.keys
}

// ends says that a record deletes its key.
func (c churn) ends(v int64) bool { return v%11 == 0 || v/4096%3 == 2 && v%2 == 0 }

func (c churn) build(env *weir.Env, s stage) {
	env.From(s.integers(c.records, 1, 1)).UID("integers").Parallelism(1).
		KeyBy(c.key).
		Process(&churning{troubled: troubled{s.faults}, Of: c}).UID("churn").
		To(s.sink).UID("out")
}

type churning struct {
	troubled
	Of   churn
	Last weir.Value[int64]  `state:"last"`
	Past weir.List[int64]   `state:"past"`
	Sum  weir.Value[[]byte] `state:"sum"`
}

func (c *churning) Process(ctx *weir.KeyedContext[int64], v int64, out weir.Out[string]) error {
	out.Emit(fmt.Sprint("key ", ctx.Key(), " ", v, " after ", c.Last.Get(), " and ", c.Past.Len(), " ", string(c.Sum.Get())))
	if c.Of.ends(v) {
		c.Last.Clear()
		c.Past.Clear()
		c.Sum.Clear()
		return c.Faults.meet("process")
	}
	c.Last.Set(v)
	if c.Past.Len() > 8 {
		c.Past.Update([]int64{v})
	}
	c.Past.Add(v)
	c.Sum.Set(fmt.Append(c.Sum.Get()[:min(1, len(c.Sum.Get()))], v%10)) // in place, where there is room
	return c.Faults.meet("process")
}

func (c churn) reference() bag {
	type entry struct {
		last int64
		past int
		sum  string
	}
	b, state := bag{}, map[int64]*entry{}
	for v := int64(1); v <= c.records; v++ {
		k := c.key(v)
		e := state[k]
		if e == nil {
			e = &entry{}
			state[k] = e
		}
		b.add(fmt.Sprint("key ", k, " ", v, " after ", e.last, " and ", e.past, " ", e.sum))
		if c.ends(v) {
			delete(state, k)
			continue
		}
		e.last = v
		if e.past > 8 {
			e.past = 1
		}
		e.past++
		e.sum = fmt.Sprint(e.sum[:min(1, len(e.sum))], v%10)
	}
	return b
}

// onFiles has every state in a file of its own, so that there is something to refer to.
func onFiles(env *weir.Env, settings ...any) *weir.Env {
	env.Set("execution.checkpointing.data-inline-threshold", 0)
	for i := 0; i < len(settings); i += 2 {
		env.Set(settings[i].(string), settings[i+1])
	}
	return env
}

// exact demands that what lies in shared/ is what checkpoints name, and that all of that is there.
func (s *stand) exact(what string) holdings {
	s.Helper()
	h, err := holdingsOf(s.disk, "/checkpoints")
	if err == nil {
		err = h.exact(everything)
	}
	if err != nil {
		s.Errorf("%s: %v", what, err)
	}
	return h
}

// referring demands that a checkpoint refers to files of older ones.
func (s *stand) referring(location string) {
	s.Helper()
	if size := s.read(location).Sizes(); size.New == size.State {
		s.Errorf("%s refers to nothing", location)
	}
}

// read is the metadata of a checkpoint all of whose files are there.
func (s *stand) read(location string) *snapshot.Metadata {
	s.Helper()
	m, _, err := storage.ReadMetadata(s.disk, location)
	if err != nil {
		s.Fatal(err)
	}
	return m
}

// writers are the ids of the checkpoints that have written the files that a checkpoint refers to.
func writers(m *snapshot.Metadata) (ids []base.CheckpointID) {
	_ = m.Handles(func(_ snapshot.Owner, h *snapshot.Handle) error { // which never fails
		var id base.CheckpointID
		if fmt.Sscanf(path.Base(h.File), "%d-", &id); id > 0 && path.IsAbs(h.File) {
			ids = append(ids, id)
		}
		return nil
	})
	slices.Sort(ids)
	return slices.Compact(ids)
}

var small = churn{keys: 2000, recent: 6, records: 20_000}

// smallRate has all its keys there in 200 ms.
const smallRate = 10_000

// B052: the files of an old checkpoint are being deleted, slowly, when the process dies. The next run counts from what is there; neither
// it nor what is left of the deletion takes anything that a checkpoint refers to.
func TestADeletionOutlivesARestart(t *testing.T) {
	onStand(t, func(s *stand) {
		slowly := func() storage.FS {
			return storage.Faulty(s.disk, &storage.Rule{Op: storage.OpRemove, Path: "*-keyed", Hook: func(storage.Op, string) { pass(2 * time.Second) }})
		}
		s.fs = slowly()
		env := onFiles(s.env(2, seldom))
		for range 3 {
			small.build(env, s.stage(small.records, smallRate))
			r := s.start(env)
			pass(400 * time.Millisecond)
			r.checkpoint()
			pass(20 * time.Millisecond)
			s.referring(r.checkpoint())
			pass(100 * time.Millisecond) // the first is being deleted
			r.crash()
			if _, err := holdingsOf(s.disk, "/checkpoints"); err != nil {
				s.Fatal(err)
			}
			s.fs = slowly()
			env = onFiles(s.resumed(2, seldom, "latest"))
		}
		small.build(env, s.stage(small.records, 0))
		s.start(env).finish()
		s.expect(small.reference())
		if h := s.exact("FINISHED"); len(h.shared) > 0 {
			s.Errorf("left: %v", h.shared)
		}
	})
}

// B053: a job is cancelled and keeps its checkpoint; another one starts from it without claiming it, takes ten and ends; a third one
// can start from it all the same. The first checkpoint of each is whole, and nothing of it is another job's.
func TestOthersFilesAreNotReferredTo(t *testing.T) {
	for _, mode := range []string{"NO_CLAIM", "CLAIM"} {
		onStand(t, func(s *stand) {
			id := func(digit string) string { return strings.Repeat(digit, 32) }
			env := onFiles(s.env(2, seldom), "weir.job-id", id("a"))
			small.build(env, s.stage(small.records, smallRate))
			r := s.start(env)
			pass(400 * time.Millisecond)
			r.checkpoint()
			pass(20 * time.Millisecond)
			kept := r.checkpoint()
			s.referring(kept)
			before := s.world
			r.cancel()
			<-r.done

			env = onFiles(s.resumed(2, seldom, kept), "weir.job-id", id("b"), "execution.state-recovery.claim-mode", mode)
			small.build(env, s.stage(small.records, smallRate))
			r = s.start(env)
			for n := range 10 {
				pass(50 * time.Millisecond)
				m, _, err := storage.ReadMetadata(s.disk, r.checkpoint())
				if err != nil {
					s.Fatal(err)
				}
				size := m.Sizes()
				if n == 0 && size.New != size.State {
					s.Errorf("the first checkpoint is not whole")
				}
				_ = m.Handles(func(_ snapshot.Owner, h *snapshot.Handle) error {
					if path.IsAbs(h.File) && !strings.HasPrefix(h.File, "/checkpoints/"+id("b")) {
						s.Errorf("%s is another job's", h.File)
					}
					return nil
				})
			}
			r.cancel()
			<-r.done
			s.exact(mode)
			_, _, err := storage.ReadMetadata(s.disk, kept)
			if claimed := mode == "CLAIM"; claimed != (err != nil) {
				s.Errorf("%s: %v", mode, err)
			} else if claimed {
				return // it went when it was subsumed
			}
			s.world.broker = before.broker
			env = onFiles(s.resumed(3, seldom, kept), "weir.job-id", id("c"))
			small.build(env, s.stage(small.records, 0))
			s.start(env).finish()
		})
	}
}

// B055: the second checkpoint is acknowledged by one task, fails with another, and its files go. The next ones build upon the first, whether
// the tasks hear of the failure before, after, or never; and of completions as well.
func TestAFailedCheckpointIsNoBase(t *testing.T) {
	for _, lost := range []string{"", "Abort", "Complete"} {
		for _, late := range []time.Duration{0, 30 * time.Millisecond} {
			onStand(t, func(s *stand) {
				broken := storage.Faulty(s.disk)
				s.fs = broken
				left := atomic.Int64{} // messages to lose, or to hold back
				s.carry = func(m worker.Message, deliver func(worker.Message)) {
					switch {
					case lost == "" || !strings.HasSuffix(fmt.Sprintf("%T", m.Body), lost) || left.Add(-1) < 0:
						deliver(m)
					case late > 0:
						time.AfterFunc(late, func() { deliver(m) })
					}
				}
				env := onFiles(s.env(2, seldom))
				small.build(env, s.stage(small.records, smallRate))
				r := s.start(env)
				pass(400 * time.Millisecond)
				left.Store(2)
				r.checkpoint()
				pass(10 * time.Millisecond)
				broken.SetRules(&storage.Rule{Path: "2-*-1-keyed", Op: storage.OpCreate, Err: syscall.EIO})
				left.Store(2)
				if _, err := r.handle.TriggerCheckpoint(s.Context(), false); err == nil {
					s.Error("the second checkpoint has completed")
				}
				for range 3 {
					pass(10 * time.Millisecond)
					m := s.read(r.someCheckpoint())
					if size := m.Sizes(); lost == "" && size.New == size.State {
						s.Errorf("checkpoint %d refers to nothing", m.ID)
					}
					if slices.Contains(writers(m), 2) {
						s.Errorf("checkpoint %d refers to files of the one that failed", m.ID)
					}
				}
				pass(time.Second)
				s.exact("running")
				s.world.disk = s.disk.CrashClone(nil)
				r.world = s.world
				r.crash()
				s.fs, s.carry = nil, nil
				env = onFiles(s.resumed(2, seldom, "latest"))
				small.build(env, s.stage(small.records, 0))
				s.start(env).finish()
				s.expect(small.reference())
			})
		}
	}
}

// someCheckpoint takes a checkpoint, also where a message that was lost has failed a task.
func (r *running) someCheckpoint() string {
	r.stand.Helper()
	var last error
	for range 10 {
		a, err := r.handle.TriggerCheckpoint(r.Context(), false)
		if err == nil {
			return a.Location
		}
		last = err
		pass(100 * time.Millisecond)
	}
	r.Fatal(last)
	return ""
}

// B056: two checkpoints are written at once, by the same tasks. Neither's files are taken for the other's.
func TestTwoUploadsAtOnce(t *testing.T) {
	onStand(t, func(s *stand) {
		s.fs = storage.Faulty(s.disk, &storage.Rule{Op: storage.OpSync, Path: "*-keyed", Hook: func(storage.Op, string) { pass(40 * time.Millisecond) }})
		env := onFiles(s.env(2, 20*time.Millisecond), "execution.checkpointing.max-concurrent-checkpoints", 3, "execution.checkpointing.num-retained", 4)
		small.build(env, s.stage(small.records, smallRate))
		r := s.start(env)
		overlapped := false
		for range 300 {
			pass(5 * time.Millisecond)
			overlapped = overlapped || r.handle.Status().Checkpoints.InProgress > 1
		}
		if !overlapped {
			s.Error("no two checkpoints were under way at once")
		}
		r.crash()
		h, err := holdingsOf(s.disk, "/checkpoints")
		if err != nil || len(h.completed) != 4 {
			s.Fatal(len(h.completed), err)
		}
		from := s.world
		for _, m := range h.completed {
			s.world, s.fs = world{from.disk.CrashClone(nil), from.broker.before(int64(m.ID))}, nil
			job := string(m.Job)
			env := onFiles(s.resumed(3, seldom, path.Join("/checkpoints", job, fmt.Sprint("chk-", m.ID))))
			small.build(env, s.stage(small.records, 0))
			s.start(env).finish()
			s.expect(small.reference())
		}
	})
}

// B064: two keyed operators, one behind the other, in as many subtasks, write their files into one directory. Each has its own again.
func TestTwoKeyedOperatorsShareADirectory(t *testing.T) {
	onStand(t, func(s *stand) {
		build := func(env *weir.Env, rate float64) {
			st := s.stage(2000, rate)
			first := env.From(st.integers(2000, 1, 1)).UID("integers").
				KeyBy(func(v int64) int64 { return v % 10 }).Process(&tallying{}).UID("first")
			first.KeyBy(func(c keyTally) int64 { return c.Key }).Process(&retallying{}).UID("second").To(st.sink).UID("out")
		}
		env := onFiles(s.env(2, seldom))
		for range 3 {
			build(env, 1000)
			r := s.start(env)
			for range 3 {
				pass(100 * time.Millisecond)
				r.checkpoint()
			}
			if h := s.exact("running"); len(h.shared) < 4 {
				s.Errorf("two operators of two subtasks have %d files", len(h.shared))
			}
			r.crash()
			env = onFiles(s.resumed(2, seldom, "latest"))
		}
		build(env, 0)
		s.start(env).finish()
		want := bag{}
		for key := range int64(10) {
			for n := int64(1); n <= 200; n++ {
				want.add(fmt.Sprint("key ", key, " ", n, " ", n))
			}
		}
		s.expect(want)
	})
}

// keyTally is a key and how often it came.
type keyTally struct{ Key, N int64 }

type tallying struct {
	Count weir.Value[int64] `state:"count"`
}

func (c *tallying) Process(ctx *weir.KeyedContext[int64], _ int64, out weir.Out[keyTally]) error {
	c.Count.Set(c.Count.Get() + 1)
	out.Emit(keyTally{ctx.Key(), c.Count.Get()})
	return nil
}

type retallying struct {
	Count weir.Value[int64] `state:"count"`
}

func (c *retallying) Process(ctx *weir.KeyedContext[int64], v keyTally, out weir.Out[string]) error {
	c.Count.Set(c.Count.Get() + 1)
	out.Emit(fmt.Sprint("key ", ctx.Key(), " ", v.N, " ", c.Count.Get()))
	return nil
}

// B065: while a snapshot is being written, for long, the state goes on to change: entries in place, entries that go, new ones. What is
// restored is the state at the barrier; also of the checkpoints that build upon it.
func TestASlowUploadIsOfItsMoment(t *testing.T) {
	for _, p := range append(slices.Clone(programs), program{"churn", small.build, func(int64) bag { return small.reference() }}) {
		onStand(t, func(s *stand) {
			slowly := func() storage.FS {
				return storage.Faulty(s.disk, &storage.Rule{Op: storage.OpWrite, Path: "[0-9]*", Hook: func(storage.Op, string) { pass(30 * time.Millisecond) }})
			}
			records, rate := small.records/4, 1000.0
			if p.name == "churn" {
				records, rate = small.records, smallRate
			}
			s.fs = slowly()
			env := onFiles(s.env(2, seldom), "pipeline.auto-watermark-interval", 5*time.Millisecond)
			for range 3 {
				p.build(env, s.stage(records, rate))
				r := s.start(env)
				for range 3 {
					pass(70 * time.Millisecond)
					r.checkpoint() // which takes its time, and records flow on
				}
				pass(40 * time.Millisecond)
				r.crash()
				s.fs = slowly()
				env = onFiles(s.resumed(2, seldom, "latest"), "pipeline.auto-watermark-interval", 5*time.Millisecond)
			}
			s.fs = nil
			p.build(env, s.stage(records, 0))
			s.start(env).finish()
			s.expect(p.reference(records))
		})
	}
}

// B068: up and down, with incremental checkpoints in each life: no key is twice in the state, and it does not grow with the files that it
// was cut out of.
func TestUpAndDownUponOlderFiles(t *testing.T) {
	onStand(t, func(s *stand) {
		c := churn{keys: 1000, recent: 5, records: 40_000}
		var lives []int64
		env := onFiles(s.env(2, seldom))
		for _, parallelism := range []int{3, 2, 4, 1, 5, 2, 7, 2} {
			c.build(env, s.stage(c.records, smallRate))
			r := s.start(env)
			for range 4 {
				pass(100 * time.Millisecond)
				r.checkpoint()
			}
			s.exact("running")
			lives = append(lives, r.keys())
			r.crash()
			env = onFiles(s.resumed(parallelism, seldom, "latest"))
		}
		c.build(env, s.stage(c.records, 0))
		s.start(env).finish()
		s.expect(c.reference())
		if slices.Max(lives) > c.keys {
			s.Errorf("of %d keys there are %v", c.keys, lives)
		}
	})
}

// keys counts the keys in the state, over all subtasks, by the rows of a canonical savepoint.
func (r *running) keys() (rows int64) {
	r.stand.Helper()
	m, location, err := storage.ReadMetadata(r.world.disk, r.savepoint(checkpoint.Savepoint, checkpoint.Canonical))
	if err != nil {
		r.Fatal(err)
	}
	for _, o := range m.Operators {
		for _, s := range o.Subtasks {
			for _, x := range s.Rows {
				if x.Name == "last" {
					rows += x.Count
				}
			}
		}
	}
	if _, err := storage.Dispose(r.world.disk, location); err != nil {
		r.Fatal(err)
	}
	return rows
}
