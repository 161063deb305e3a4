package weir_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/storage"
)

// A job with every kind of state is stopped and goes on at another parallelism, again and again, in every way that there is. Each key, timer,
// list element and split must be there once: what one subtask too many has is seen in the sums, as well as what none has.

const (
	wideLanes = 5
	wideKeys  = 17
)

// wide is state of each kind by key, and timers of both.
type wide struct {
	Count  Value[int64]                `state:"count"`
	Seen   List[int64]                 `state:"seen"`
	ByLane Map[int64, int64]           `state:"by lane"`
	Names  BroadcastMap[string, int64] `state:"names"`
	Rings  int64                       `weir:"-"` // when the clock's timers ring, in Unix seconds
}

func (f *wide) Process(ctx *KeyedContext[int64], v int64, _ Out[string]) error {
	if f.Count.Get() == 0 {
		ctx.EventTimer(EndOfTime().Add(-time.Hour))
		ctx.ProcessingTimer(time.Unix(f.Rings, 0))
	}
	f.Count.Set(f.Count.Get() + 1)
	f.Seen.Add(v)
	lane, _ := f.ByLane.Get(v % wideLanes)
	f.ByLane.Put(v%wideLanes, lane+v)
	return nil
}

func (f *wide) ProcessBroadcast(_ *Context, name string, _ Out[string]) error {
	f.Names.Put(name, int64(len(name)))
	return nil
}

func (f *wide) OnTimer(ctx *KeyedContext[int64], t Timer, out Out[string]) error {
	if !t.Event {
		out.Emit(fmt.Sprint("key ", ctx.Key(), " rings"))
		return nil
	}
	sum, lanes, names := int64(0), int64(0), int64(0)
	for v := range f.Seen.All() {
		sum += v
	}
	for _, v := range f.ByLane.All() {
		lanes += v
	}
	for range f.Names.All() {
		names++
	}
	out.Emit(fmt.Sprint("key ", ctx.Key(), ": ", f.Count.Get(), " records, ", sum, ", ", lanes, ", ", names, " names"))
	return nil
}

// wideJob is the job, and what it reads.
type wideJob struct {
	*lab
	source *tape[int64]
	names  *tape[string]
	out    *notes
	lists  *notes
	next   int64 // the next record
	rings  int64
}

func (j *wideJob) start(env *Env) *running {
	names := env.From(j.names).UID("names").Parallelism(1).Broadcast()
	env.From(j.source).UID("tape").Rebalance().Process(&oldLists{N: j.lists}).UID("passed").
		KeyBy(func(v int64) int64 { return v % wideKeys }).ConnectBroadcast(names).
		Process(&wide{Rings: j.rings}).UID("wide").To(note[string](j.out)).UID("out").Parallelism(1)
	return j.lab.start(env)
}

// feed writes records on all lanes, and a name.
func (j *wideJob) feed(r *running) {
	for range 50 {
		j.source.write(int(j.next%wideLanes), j.next)
		j.next++
	}
	j.names.write(0, fmt.Sprint("name ", j.next))
	r.settle()
}

// leave is a way to end a job so that another can go on from where it returns.
type leave struct {
	name string
	do   func(r *running) string
}

var leaves = []leave{
	{"a savepoint that stops it, canonical", func(r *running) string { return r.saved(checkpoint.Suspend, checkpoint.Canonical) }},
	{"a savepoint that stops it, native", func(r *running) string { return r.saved(checkpoint.Suspend, checkpoint.Native) }},
	{"a savepoint, canonical", func(r *running) string { defer r.kill(); return r.saved(checkpoint.Savepoint, checkpoint.Canonical) }},
	{"a checkpoint", func(r *running) string {
		defer r.kill()
		return r.checkpointed()
	}},
}

// checkpointed is where a checkpoint is that it takes.
func (r *running) checkpointed() string {
	r.Helper()
	a, err := r.handle.TriggerCheckpoint(r.Context(), false)
	if err != nil {
		r.Fatal(err)
	}
	return a.Location
}

func (r *running) saved(kind checkpoint.Kind, format checkpoint.Format) string {
	r.Helper()
	a, err := r.handle.TriggerSavepoint(r.Context(), jobmaster.Savepoint{Kind: kind, Format: format})
	if err != nil {
		r.Fatal(err)
	}
	if kind.IsSynchronous() {
		r.finish()
	}
	return a.Location
}

// TestRescaleAgainAndAgain keeps each key, timer, list element, split and broadcast entry once.
func TestRescaleAgainAndAgain(t *testing.T) {
	for _, leave := range leaves {
		for _, unaligned := range []bool{false, true} {
			t.Run(fmt.Sprint(leave.name, ", unaligned ", unaligned), func(t *testing.T) {
				inLab(t, func(l *lab) { rescaleAgainAndAgain(l, leave, unaligned) })
			})
		}
	}
}

func rescaleAgainAndAgain(l *lab, leave leave, unaligned bool) {
	j := &wideJob{lab: l, source: newTape[int64](wideLanes), names: newTape[string](1), out: &notes{}, lists: &notes{}, rings: l.born.Add(time.Hour).Unix()}
	set := func(env *Env) *Env { env.Checkpoints().Unaligned = unaligned; return env }
	parallelisms := []int{2, 3, 2, 4, 1}
	r := j.start(set(l.env(parallelisms[0])))
	for i, p := range parallelisms[1:] {
		j.feed(r)
		if i == 2 {
			l.expectRings(r, j)
		}
		from := leave.do(r)
		l.expectQuiet(j)
		if r = j.start(set(l.resumed(p, from))); r.handle == nil {
			l.Fatal(r.err)
		}
	}
	j.feed(r)
	j.source.end()
	j.names.end()
	r.finish()
	expect(l, j.out.takeSorted(), j.totals(len(parallelisms))...)
	var lists []string
	for v := range j.next {
		lists = append(lists, fmt.Sprint("mine ", v), fmt.Sprint("all ", v))
	}
	slices.Sort(lists)
	expect(l, j.lists.takeSorted(), lists...)
}

// expectRings lets an hour pass: the timers of the clock, of which no subtask too many has one, ring.
func (l *lab) expectRings(r *running, j *wideJob) {
	l.Helper()
	r.pass(time.Hour)
	var rings []string
	for k := range wideKeys {
		rings = append(rings, fmt.Sprint("key ", k, " rings"))
	}
	slices.Sort(rings)
	expect(l, j.out.takeSorted(), rings...)
}

// expectQuiet: nothing came out, also no list as if the input had ended.
func (l *lab) expectQuiet(j *wideJob) {
	l.Helper()
	expect(l, j.out.take())
	expect(l, j.lists.take())
}

// totals are what each key tells at the end, when it has read all records.
func (j *wideJob) totals(names int) (all []string) {
	counts, sums := map[int64]int64{}, map[int64]int64{}
	for v := range j.next {
		counts[v%wideKeys]++
		sums[v%wideKeys] += v
	}
	for k := range int64(wideKeys) {
		all = append(all, fmt.Sprint("key ", k, ": ", counts[k], " records, ", sums[k], ", ", sums[k], ", ", names, " names"))
	}
	slices.Sort(all)
	return all
}

// reshaped are jobs of the same operators, put together in another way: the records in flight of one are read by the other.
var reshaped = []struct {
	name          string
	before, after func(s Stream[int64]) Stream[int64] // before the operator "slow"
	here, there   int
}{
	{"an edge becomes a chain", func(s Stream[int64]) Stream[int64] { return s.Rebalance() }, func(s Stream[int64]) Stream[int64] { return s }, 3, 3},
	{"an edge becomes a chain of fewer", func(s Stream[int64]) Stream[int64] { return s.Rebalance() }, func(s Stream[int64]) Stream[int64] { return s }, 5, 2},
	{"an edge becomes a chain of more", func(s Stream[int64]) Stream[int64] { return s.Global() }, func(s Stream[int64]) Stream[int64] { return s }, 2, 5},
	{"a chain becomes an edge", func(s Stream[int64]) Stream[int64] { return s }, func(s Stream[int64]) Stream[int64] { return s.Rebalance() }, 3, 2},
	{"in turn becomes to neighbours", func(s Stream[int64]) Stream[int64] { return s.Rebalance() }, func(s Stream[int64]) Stream[int64] { return s.Rescale() }, 2, 3},
	{"to neighbours becomes by choice", func(s Stream[int64]) Stream[int64] { return s.Rescale() },
		func(s Stream[int64]) Stream[int64] {
			return s.Partition(func(v int64, n int) int { return int(v) % n })
		}, 3, 5},
	{"by choice becomes to the first", func(s Stream[int64]) Stream[int64] {
		return s.Partition(func(v int64, n int) int { return int(v) % n })
	}, func(s Stream[int64]) Stream[int64] { return s.Global() }, 3, 3},
	{"the same stream twice, in two ways", func(s Stream[int64]) Stream[int64] { return s.Rebalance().Union(s.Global()) },
		func(s Stream[int64]) Stream[int64] { return s.Rebalance().Union(s.Global()) }, 2, 3},
}

// TestRecordsInFlightOfAnotherShape: what was in flight on an edge is counted once though the edge is another one now.
func TestRecordsInFlightOfAnotherShape(t *testing.T) {
	const n = 5000
	for _, c := range reshaped {
		t.Run(c.name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				into, times := &notes{}, 1
				start := func(env *Env, shape func(Stream[int64]) Stream[int64]) *running {
					env.Checkpoints().Unaligned = true
					s := shape(env.From(FromSlice(numbers(n)).Rate(20000)).UID("source").Map(func(v int64) int64 { return v }).UID("map"))
					counted(s.Map(slowly).UID("slow"), &keyCount{}).UID("count").To(totals{into}).UID("totals")
					return l.start(env)
				}
				if c.name == "the same stream twice, in two ways" {
					times = 2
				}
				r := start(l.env(c.here), c.before)
				r.pass(100 * time.Millisecond)
				path := r.checkpointed()
				if m, _, err := storage.ReadMetadata(l.disk, path); err != nil || inFlight(m) < 50 {
					l.Fatalf("%d records were in flight, %v", inFlight(m), err)
				}
				r.kill()
				into.take()
				start(l.resumed(c.there, path), c.after).finish()
				expect(l, into.takeSorted(), countedTimes(n, times)...)
			})
		})
	}
}

// TestAnotherKeyForRecordsInFlight: at another parallelism their subtasks cannot be told any more. The job fails at once, and says what to do.
func TestAnotherKeyForRecordsInFlight(t *testing.T) {
	inLab(t, func(l *lab) {
		build := func(env *Env, keys int64) *Env {
			env.Checkpoints().Unaligned = true
			env.From(FromSlice(numbers(5000)).Rate(20000)).UID("source").KeyBy(func(v int64) int64 { return v % keys }).
				Process(&keyCount{Each: time.Millisecond}).UID("count").To(Discard[slowTotal]())
			return env
		}
		r := l.start(build(l.env(3), 100))
		r.pass(100 * time.Millisecond)
		path := r.checkpointed()
		r.kill()
		l.fails(build(l.resumed(2, path), 77), "records in flight on the edge source -> count", "the key of the edge has changed", "restore from a savepoint")
	})
}

// countedTimes are the counts of the numbers to n, each so many times.
func countedTimes(n, times int) (all []string) {
	counts := make([]int, slowKeys)
	for _, v := range numbers(n) {
		counts[v%slowKeys] += times
	}
	for k, count := range counts {
		all = append(all, fmt.Sprintf("%d: %d", k, count))
	}
	slices.Sort(all)
	return all
}
