package trial

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/storage"
)

// unaligned has barriers overtake, after a while.
func unaligned(env *weir.Env, after time.Duration) *weir.Env {
	c := env.Checkpoints()
	c.Unaligned, c.AlignedTimeout = true, after
	return env
}

// inFlightTo is how many records a checkpoint has that were on their way to an operator.
func (s *stand) inFlightTo(location, uid string) (records int64) {
	s.Helper()
	m, _, err := storage.ReadMetadata(s.disk, location)
	if err != nil {
		s.Fatal(err)
	}
	for _, o := range m.Operators {
		for _, t := range o.Subtasks {
			for _, h := range t.InFlight {
				if h.To == uid {
					records += h.Records
				}
			}
		}
	}
	return records
}

// B041: each record takes a second, and the queues in front hold a minute of work. The barrier turns unaligned though it lies in a queue that is
// full and has not come near the slow task. The queued records are in the checkpoint, and come once, in their order.
func TestABarrierStuckInAFullQueue(t *testing.T) {
	const n = 200
	build := func(s *stand, env *weir.Env) *weir.Env {
		env = unaligned(env, time.Second).Set("weir.exchange.batch-records", 1).Set("weir.exchange.queue-batches", 32)
		same := func(v int64) int64 { return v }
		env.From(weir.Generate(n, func(i int64) int64 { return i }).Rate(50)).UID("numbers").Map(same).NewChain().UID("quick").
			Map(func(v int64) string { return fmt.Sprint(v) }).NewChain().UID("slow").To(topic{s.broker, s.faults}.sink()).UID("out")
		return env
	}
	onStand(t, func(s *stand) {
		s.faults.work = func(where string) {
			if where == "sink.write" {
				pass(time.Second)
			}
		}
		r := s.start(build(s, s.env(1, seldom)))
		pass(5 * time.Second)
		began := time.Now()
		location := r.checkpoint()
		if took := time.Since(began); took > 5*time.Second {
			s.Errorf("the checkpoint took %v", took)
		}
		if quick, slow := s.inFlightTo(location, "quick"), s.inFlightTo(location, "slow"); quick < 20 || slow < 20 {
			s.Errorf("in flight are %d and %d records", quick, slow)
		}
		pass(2 * time.Second)
		r.crash()
		s.faults.work = nil
		s.start(build(s, s.resumed(1, seldom, "latest"))).finish()
		var want []string
		for i := range n {
			want = append(want, fmt.Sprint(i))
		}
		if got := s.broker.read(); !slices.Equal(got, want) {
			s.Errorf("got %v", got)
		}
	})
}

// branch is a job whose second task has a keyed successor and another one, of which those are slow that are named.
func (s *stand) branch(env *weir.Env, n int64, apart func(weir.Stream[int64]) weir.Stream[int64], slow string) *weir.Env {
	env = unaligned(env, 0).Set("weir.exchange.batch-records", 1).Set("weir.exchange.queue-batches", 4)
	drag := func(who string, v int64) int64 {
		if strings.Contains(slow, who) {
			pass(100 * time.Millisecond)
		}
		return v
	}
	split := env.From(weir.Generate(n, func(i int64) int64 { return i + 1 }).Rate(200)).UID("integers").Map(func(v int64) int64 { return v }).NewChain().UID("split")
	keyed := split.KeyBy(func(v int64) int64 { return v % totalsKeys }).
		Process(weir.Keyed(func(ctx *weir.KeyedContext[int64], v int64, out weir.Out[string]) error {
			out.Emit(fmt.Sprint("keyed ", ctx.Key(), " ", drag("keyed", v)))
			return nil
		})).UID("keyed")
	other := apart(split).Map(func(v int64) string { return fmt.Sprint("apart ", drag("apart", v)) }).NewChain().UID("apart")
	keyed.Union(other).To(topic{s.broker, s.faults}.sink()).UID("out")
	return env
}

// B044: what can be restored at another parallelism is a question of each edge, not of its task; and on those that cannot be elsewhere, those of
// neighbours and those of the user's choice, records in flight are restored too.
func TestEachEdgeIsItsOwn(t *testing.T) {
	const n = 400
	for name, apart := range map[string]func(weir.Stream[int64]) weir.Stream[int64]{
		"forward": func(s weir.Stream[int64]) weir.Stream[int64] { return s },
		"custom": func(s weir.Stream[int64]) weir.Stream[int64] {
			return s.Partition(func(v int64, n int) int { return int(v*v) % n })
		},
	} {
		for _, slow := range []string{"keyed", "keyed and apart"} {
			t.Run(name+", slow are "+slow, func(t *testing.T) {
				for _, p := range []int{3, 5} {
					onStand(t, func(s *stand) {
						r := s.start(s.branch(s.env(4, seldom), n, apart, slow))
						pass(time.Second)
						location := r.checkpoint()
						keyed, other := s.inFlightTo(location, "keyed"), s.inFlightTo(location, "apart")
						if both := strings.Contains(slow, "apart"); keyed == 0 && !both || (other > 4) != both {
							s.Errorf("in flight are %d and %d records", keyed, other)
						}
						r.crash()
						s.start(s.branch(s.resumed(p, seldom, "latest"), n, apart, "")).finish()
						want := bag{}
						for v := int64(1); v <= n; v++ {
							want.add(fmt.Sprint("keyed ", v%totalsKeys, " ", v))
							want.add(fmt.Sprint("apart ", v))
						}
						s.expect(want)
					})
				}
			})
		}
	}
}

// ordered looks whether what one sender sends comes without a gap, in order.
type ordered struct {
	Next   weir.Value[int64] `state:"next"`
	Faults *faults           `weir:"shared"`
}

func (o *ordered) Process(ctx *weir.KeyedContext[int64], v numbered, out weir.Out[string]) error {
	if next := o.Next.Get(); v.Number != next {
		out.Emit(fmt.Sprint("of sender ", v.Sender, " comes number ", v.Number, ", and not ", next))
	}
	o.Next.Set(v.Number + 1)
	out.Emit(fmt.Sprint(v.Sender, " ", v.Number))
	return o.Faults.meet("process")
}

// numbered is what a sender counts.
type numbered struct{ Sender, Number int64 }

const (
	numberedSenders = 7
	numberedEach    = 150
)

// numberedJob has the records of a sender go over two edges by key, in little batches and with checkpoints that overtake.
func (s *stand) numberedJob(env *weir.Env, rng *rand.Rand) *weir.Env {
	env = unaligned(env, time.Duration(rng.IntN(2))*5*time.Millisecond).
		Set("weir.exchange.batch-records", 1+rng.IntN(3)).Set("weir.exchange.queue-batches", 4)
	sender := func(v numbered) int64 { return v.Sender }
	numbers := weir.Generate(numberedSenders*numberedEach, func(i int64) numbered { return numbered{i % numberedSenders, i / numberedSenders} })
	env.From(numbers.Rate(3000)).UID("senders").KeyBy(sender).
		Process(weir.Keyed(func(_ *weir.KeyedContext[int64], v numbered, out weir.Out[numbered]) error {
			out.Emit(v)
			return s.faults.meet("process")
		})).UID("first").KeyBy(sender).
		Process(&ordered{Faults: s.faults}).UID("ordered").To(topic{s.broker, s.faults}.sink()).UID("out")
	return env
}

// B046: unaligned checkpoints one after the other, kills at random moments. What a sender has sent to one receiver comes whole and in order, in
// every life.
func TestSendersStayInOrder(t *testing.T) {
	var overtook int64
	seeds := uint64(10)
	if raceEnabled {
		seeds = 2
	}
	for seed := range seeds {
		onStand(t, func(s *stand) {
			rng := rand.New(rand.NewPCG(seed, 12))
			s.faults.work = toil(5*time.Millisecond, randOf(seed))
			r := s.start(s.numberedJob(s.env(numberedSenders, 10*time.Millisecond), rng))
			for range 4 {
				pass(time.Duration(20+rng.IntN(100)) * time.Millisecond)
				r.crash()
				overtook += overtaken(s.disk)
				r = s.start(s.numberedJob(s.resumed(numberedSenders, 10*time.Millisecond, latest), rng))
			}
			r.finish()
			want := bag{}
			for i := range int64(numberedSenders * numberedEach) {
				want.add(fmt.Sprint(i%numberedSenders, " ", i/numberedSenders))
			}
			s.expect(want)
		})
	}
	if overtook == 0 {
		t.Error("no records were in flight")
	}
}

// B043, B046: unaligned checkpoints beside a broadcast, at parallelism 7, then 2, then 7.
func TestSevenTwoSeven(t *testing.T) {
	for seed := range uint64(10) {
		p := drawCombination(seed)
		p.Program, p.Unaligned, p.AlignedTimeout, p.Concurrent, p.User, p.Spares = "rules", true, time.Duration(seed%2)*5*time.Millisecond, 1, nil, nil
		p.Parallelism = []int{7, 2, 7}
		p.Lives = []ending{{After: time.Duration(20+10*seed) * time.Millisecond, How: crash}, {After: 50 * time.Millisecond, How: crash}}
		if tr, err := inBubble(t, p); err != nil {
			t.Errorf("seed %d: %v\n%s", seed, err, tr.log.last(20))
		}
	}
}

// B047: records of all sizes, which other engines split into buffers. They are in flight, whole, and come back byte by byte.
func TestLargeRecordsInFlight(t *testing.T) {
	sizes := []int{1, 32<<10 - 1, 32 << 10, 32<<10 + 1, 5 << 20}
	if !raceEnabled && !testing.Short() {
		sizes = append(sizes, 70<<20)
	}
	large := func(i int64) []byte {
		rng := rand.NewChaCha8([32]byte{byte(i)})
		b := make([]byte, sizes[i%int64(len(sizes))])
		rng.Read(b)
		return b
	}
	var slow time.Duration
	tell := func(i int64, b []byte) string { return fmt.Sprintf("%d %d %x", i, len(b), sha256.Sum256(b)) }
	build := func(s *stand, env *weir.Env) *weir.Env {
		env.From(weir.Generate(int64(2*len(sizes)), func(i int64) sized { return sized{i, large(i)} })).UID("records").
			Rebalance().Map(func(v sized) string {
			pass(slow)
			return tell(v.Number, v.Bytes)
		}).UID("slow").To(topic{s.broker, s.faults}.sink()).UID("out")
		return unaligned(env, 0)
	}
	onStand(t, func(s *stand) {
		slow = time.Minute
		r := s.start(build(s, s.env(1, seldom).Set("weir.exchange.batch-records", 1).Set("weir.exchange.queue-batches", 64)))
		pass(time.Second)
		if n := s.inFlightTo(r.checkpoint(), "slow"); n < int64(len(sizes)) {
			s.Errorf("%d records in flight", n)
		}
		r.crash()
		slow = 0
		s.start(build(s, s.resumed(3, seldom, "latest"))).finish()
		want := bag{}
		for i := range int64(2 * len(sizes)) {
			want.add(tell(i, large(i)))
		}
		s.expect(want)
	})
}

// sized is a record of any size.
type sized struct {
	Number int64
	Bytes  []byte
}
