package fit_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/cluster"
	"github.com/weirstream/weir/internal/fit"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/storage"
)

// The agreement of `weir check` with a start. A job leaves a snapshot, a program that is the same but for some random changes is checked
// against it, and then started from it: it must run where it fits, and nothing must run where it does not.

// holder has a value and a map by key, and a list of the subtask.
type holder[V any, MK comparable] struct {
	Value Value[V]         `state:"value"`
	Map   Map[MK, V]       `state:"map"`
	List  OperatorList[V]  `state:"list"`
	Of    func(i int64) V  `weir:"shared"`
	Key   func(i int64) MK `weir:"shared"`
}

func (f *holder[V, MK]) Process(_ *KeyedContext[int64], i int64, out Out[int64]) error {
	f.Value.Set(f.Of(i))
	f.Map.Put(f.Key(i), f.Of(i))
	f.List.Add(f.Of(i))
	out.Emit(i)
	return nil
}

// renamedHolder has the value under another name, and calls it by the old one.
type renamedHolder struct {
	Value Value[int32]        `state:"amount,was=value"`
	Map   Map[int32, int32]   `state:"map"`
	List  OperatorList[int32] `state:"list"`
}

func (f *renamedHolder) Process(*KeyedContext[int64], int64, Out[int64]) error { return nil }

// lesserHolder has no map, and a value that is another kind of state.
type lesserHolder struct {
	Value List[int32]         `state:"value"`
	List  OperatorList[int32] `state:"list"`
}

func (f *lesserHolder) Process(*KeyedContext[int64], int64, Out[int64]) error { return nil }

// nothingHeld has no state.
type nothingHeld struct{}

func (nothingHeld) Process(*KeyedContext[int64], int64, Out[int64]) error { return nil }

// money is a record, and moneyToo what it came to be.
type money struct {
	Coins int32
	Owner string
}

type moneyToo struct {
	Coins int64
	Since string
}

func held[V any, MK comparable](of func(i int64) V, key func(i int64) MK) KeyedFunction[int64, int64, int64] {
	return &holder[V, MK]{Of: of, Key: key}
}

func toInt32(i int64) int32    { return int32(i) }
func toInt64(i int64) int64    { return i }
func toString(i int64) string  { return fmt.Sprint(i) }
func toMoney(i int64) money    { return money{int32(i), "x"} }
func toMore(i int64) moneyToo  { return moneyToo{Coins: i} }
func toOwner(i int64) struct{} { return struct{}{} }

// holders are what the operator "f" may be; the first is what a snapshot is taken of, unless it is of another.
var holders = []func() KeyedFunction[int64, int64, int64]{
	func() KeyedFunction[int64, int64, int64] { return held(toInt32, toInt32) },
	func() KeyedFunction[int64, int64, int64] { return held(toInt64, toInt32) },
	func() KeyedFunction[int64, int64, int64] { return held(toInt64, toInt64) },
	func() KeyedFunction[int64, int64, int64] { return held(toString, toInt32) },
	func() KeyedFunction[int64, int64, int64] { return held(toMoney, toString) },
	func() KeyedFunction[int64, int64, int64] { return held(toMore, toString) },
	func() KeyedFunction[int64, int64, int64] { return held(toOwner, toString) },
	func() KeyedFunction[int64, int64, int64] { return &renamedHolder{} },
	func() KeyedFunction[int64, int64, int64] { return &lesserHolder{} },
	func() KeyedFunction[int64, int64, int64] { return nothingHeld{} },
}

// variant is a program: what is in turn, of the choices that there are.
type variant struct {
	holder, uids, key, edge, sink, hook, parallelism int
	allow                                            bool
}

// vary makes a few changes.
func (v variant) vary(r *rand.Rand) variant {
	for range r.IntN(3) {
		switch r.IntN(7) {
		case 0, 1:
			v.holder = r.IntN(len(holders))
		case 2:
			v.uids = r.IntN(5)
		case 3:
			v.key = r.IntN(2)
		case 4:
			v.edge = r.IntN(4)
		case 5:
			v.sink = r.IntN(3)
		case 6:
			v.hook = r.IntN(3)
		}
	}
	v.parallelism, v.allow = 1+r.IntN(3), r.IntN(4) == 0
	return v
}

// build makes the program.
func (v variant) build(env *Env) {
	id := func(uid, alias string) []string {
		return [][]string{{uid}, {uid}, {alias, uid}, {alias}, {alias, "nobody"}}[v.uids : v.uids+1][0]
	}
	edges := []func(s Stream[int64]) Stream[int64]{
		func(s Stream[int64]) Stream[int64] { return s },
		func(s Stream[int64]) Stream[int64] { return s.Rebalance() },
		func(s Stream[int64]) Stream[int64] { return s.Map(func(v int64) int64 { return v }) },
		func(s Stream[int64]) Stream[int64] {
			return s.Map(func(v int64) int64 { return v }).UID("between").NewChain()
		},
	}
	s := edges[v.edge](env.From(Generate(Endless, toInt64).Rate(20_000)).UID("numbers")).Map(slowly).UID("slow").NewChain()
	f := id("f", "g")
	var held Stream[int64]
	if v.key == 0 {
		held = s.KeyBy(func(v int64) int64 { return v % 5 }).Process(holders[v.holder]())
	} else {
		held = s.KeyBy(func(v int64) string { return fmt.Sprint(v % 5) }).Process(&rekeyed{})
	}
	held = held.UID(f[0], f[1:]...)
	switch v.sink {
	case 0:
		held.To(Discard[int64]()).UID("out")
	case 1:
		held.To(Collect(new([]int64))).UID("out")
	case 2:
		held.To(Collect(new([]int64))).UID("sink", "out")
	}
	if v.hook > 0 {
		env.Hook(agreeing(fmt.Sprint("hook ", v.hook)))
	}
}

// rekeyed has the value of holder by other keys.
type rekeyed struct {
	Value Value[int32] `state:"value"`
}

func (f *rekeyed) Process(_ *KeyedContext[string], i int64, out Out[int64]) error {
	f.Value.Set(int32(i))
	return nil
}

// agreeing is a hook of that name.
type agreeing string

func (h agreeing) ID() string                                                { return string(h) }
func (h agreeing) Trigger(context.Context, int64, time.Time) ([]byte, error) { return []byte{1}, nil }
func (h agreeing) Restore(context.Context, int64, []byte) error              { return nil }

func slowly(v int64) int64 { time.Sleep(time.Millisecond); return v }

// world is where the jobs of one seed run, one after the other.
type world struct {
	*testing.T
	disk storage.FS
}

// env is an environment with checkpoints on the world's disk, which overtake, and are taken when the test asks for them.
func (w *world) env(v variant) *Env {
	env := NewTestEnv().Parallelism(v.parallelism).Set("restart-strategy.type", "none")
	c := env.EnableCheckpointing(24*time.Hour, ExactlyOnce)
	c.Storage, c.Savepoints, c.Unaligned = "/checkpoints", "/savepoints", true
	v.build(env)
	return env
}

func (w *world) resumed(v variant, from string) *Env {
	return w.env(v).Set("execution.state-recovery.path", from).Set("execution.state-recovery.ignore-unclaimed-state", v.allow)
}

// run runs a job until nothing moves, for what happens meanwhile, and cancels it. The handle is nil where it was never started.
func (w *world) run(env *Env, meanwhile func(h *cluster.Handle)) error {
	var handle *cluster.Handle
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ctx = cluster.WithTuning(ctx, func(j *cluster.Job) {
		j.FS, j.Log = w.disk, slog.New(slog.DiscardHandler)
		j.Started = func(h *cluster.Handle) { handle = h }
	})
	ended := make(chan error, 1)
	go func() { ended <- env.Execute(ctx, "world") }()
	time.Sleep(20 * time.Millisecond)
	synctest.Wait()
	meanwhile(handle)
	cancel()
	return <-ended
}

// leave takes a snapshot of one kind or another.
func (w *world) leave(v variant, r *rand.Rand) (at string) {
	err := w.run(w.env(v), func(h *cluster.Handle) {
		var err error
		var taken jobmaster.Answer
		if r.IntN(2) == 0 {
			taken, err = h.TriggerCheckpoint(w.Context(), false)
		} else {
			taken, err = h.TriggerSavepoint(w.Context(), jobmaster.Savepoint{Kind: checkpoint.Savepoint, Format: []checkpoint.Format{checkpoint.Native, checkpoint.Canonical}[r.IntN(2)]})
		}
		if err != nil {
			w.Fatal(err)
		}
		at = taken.Location
	})
	if at == "" {
		w.Fatal(err)
	}
	return at
}

// TestTheCheckAgreesWithTheStart, over some hundred pairs of a snapshot and a program.
func TestTheCheckAgreesWithTheStart(t *testing.T) {
	fits, overtaken := map[bool]int{}, 0
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			w, r := &world{t, storage.Memory()}, rand.New(rand.NewPCG(seed, 0))
			before := variant{}.vary(r)
			at := w.leave(before, r)
			for range 4 {
				after := before.vary(r)
				report := w.agree(fmt.Sprintf("seed %d: %+v, then %+v", seed, before, after), after, at)
				fits[report.Fits]++
				overtaken += len(report.Edges)
			}
		})
	}
	t.Logf("%d fit, %d do not", fits[true], fits[false])
	if fits[true] < 40 || fits[false] < 40 || overtaken < 40 {
		t.Errorf("%d fit, %d do not, %d edges had records in flight: that proves little", fits[true], fits[false], overtaken)
	}
}

// agree checks a program, and starts it.
func (w *world) agree(what string, v variant, at string) (report *fit.Report) {
	ctx := cluster.WithTuning(context.Background(), func(j *cluster.Job) {
		j.FS = w.disk
		j.Instead = func(j cluster.Job) (err error) {
			report, err = cluster.Check(j)
			return err
		}
	})
	if err := w.resumed(v, at).Execute(ctx, "world"); err != nil {
		w.Fatalf("%s: %v", what, err)
	}
	started, runs := false, false
	err := w.run(w.resumed(v, at), func(h *cluster.Handle) {
		started = h != nil
		runs = started && h.Status().Status == job.Running
	})
	var table strings.Builder
	_ = report.WriteText(&table) // a Builder takes everything
	switch {
	case runs != report.Fits:
		w.Errorf("%s: it runs: %v, %v\n%s", what, runs, err, &table)
	case !runs && started:
		w.Errorf("%s: it was started: %v", what, err)
	case !runs && !strings.Contains(err.Error(), report.Err().Error()):
		w.Errorf("%s: the start says\n%v\nthe check\n%v", what, err, report.Err())
	}
	return report
}
