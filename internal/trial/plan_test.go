package trial

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/storage"
)

// plan is what a trial varies.
type plan struct {
	Seed    uint64
	Program string
	Records int64
	Rate    float64

	Parallelism    []int // of each life
	Lives          []ending
	Spares         []spare
	Batch, Queue   int
	Chaining       bool
	Directory      bool
	Inline         bool // state lies in the metadata
	AtLeastOnce    bool
	Unaligned      bool
	AlignedTimeout time.Duration
	Interval       time.Duration
	Concurrent     int
	Tolerable      int

	User     []fault
	Storage  []storageFault
	Broker   int // per mille of its operations that fail
	Messages *messageFaults
	Slow     time.Duration // the most that an operation of the disk or the broker takes
	Work     time.Duration // the most that user code takes for a record
}

// draw is the plan of a seed.
func draw(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 1))
	one := func(of ...int) int { return of[r.IntN(len(of))] }
	p := plan{
		Seed: seed, Program: programs[r.IntN(len(programs))].name, Records: int64(100 + r.IntN(900)),
		Batch: one(1, 1, 3, 1024), Queue: one(1, 2, 8), Chaining: r.IntN(4) > 0, Directory: r.IntN(3) > 0, Inline: r.IntN(2) == 0,
		AtLeastOnce: r.IntN(5) == 0, Interval: time.Duration(one(10, 20, 50, 100)) * time.Millisecond, Concurrent: one(1, 1, 2),
		Tolerable: one(0, 2, -1), Slow: time.Duration(one(0, 1, 1, 5)) * time.Millisecond,
		Work: time.Duration(one(0, 1000, 5000, 20_000)) * time.Microsecond,
	}
	if !p.AtLeastOnce && r.IntN(2) == 0 {
		p.Unaligned, p.Concurrent, p.AlignedTimeout = true, 1, time.Duration(one(0, 5, 50))*time.Millisecond
	}
	if p.Rate = float64(one(0, 1000, 3000, 10000)); p.Rate+float64(p.Work) > 0 && r.IntN(4) > 0 {
		p.drawLives(r)
	}
	p.Parallelism = append(p.Parallelism, one(widths...))
	p.drawSpares(r)
	p.drawFaults(r)
	return p
}

func (p *plan) drawFaults(r *rand.Rand) {
	if r.IntN(3) > 0 {
		for range r.IntN(5) {
			at := places[r.IntN(len(places))]
			p.User = append(p.User, fault{Where: at.name, Nth: 1 + r.IntN(at.often), Panic: r.IntN(2) == 0})
		}
	}
	if p.Directory && r.IntN(3) == 0 {
		for range 1 + r.IntN(4) {
			s := storageFault{Op: storageOps[r.IntN(len(storageOps))], Skip: r.IntN(150), Count: 1 + r.IntN(4), Err: storageErrors[r.IntN(len(storageErrors))]}
			if r.IntN(3) == 0 {
				s.Path = []string{"_metadata", "chk-*", "*.tmp", "latest"}[r.IntN(4)]
				s.Skip /= 10
			}
			if (s.Op == storage.OpWrite || s.Op == storage.OpRead) && r.IntN(2) == 0 {
				s.Short = 1 + r.IntN(10)
			}
			p.Storage = append(p.Storage, s)
		}
	}
	if r.IntN(3) == 0 {
		p.Broker = 1 + r.IntN(30)
	}
	if r.IntN(3) == 0 {
		m := &messageFaults{PerMille: 1 + r.IntN(100), Most: 1 + r.IntN(12), rng: rand.New(rand.NewPCG(p.Seed, 2))}
		if r.IntN(2) == 0 {
			m.Types = []string{messageTypes[r.IntN(len(messageTypes))], messageTypes[r.IntN(len(messageTypes))]}
			m.PerMille *= 5
		}
		p.Messages = m
	}
}

// String is the plan for people.
func (p plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %d at %v/s, parallelism %v, lives %v, batches of %d, queues of %d, chaining %v, directory %v, inline %v, at least once %v, "+
		"unaligned %v after %v, every %v, %d at once, %d tolerated, slow %v, work %v", p.Program, p.Records, p.Rate, p.Parallelism, p.Lives, p.Batch, p.Queue, p.Chaining, p.Directory,
		p.Inline, p.AtLeastOnce, p.Unaligned, p.AlignedTimeout, p.Interval, p.Concurrent, p.Tolerable, p.Slow, p.Work)
	if len(p.Spares) > 0 {
		fmt.Fprintf(&b, "; savepoints %v", p.Spares)
	}
	if len(p.User) > 0 {
		fmt.Fprintf(&b, "; user code %+v", p.User)
	}
	if len(p.Storage) > 0 {
		fmt.Fprintf(&b, "; storage %+v", p.Storage)
	}
	if p.Broker > 0 {
		fmt.Fprintf(&b, "; broker %d per mille", p.Broker)
	}
	if m := p.Messages; m != nil {
		fmt.Fprintf(&b, "; messages %v %d per mille, %d at most", m.Types, m.PerMille, m.Most)
	}
	return b.String()
}

// quiet is whether nothing fails, so that at least once is exactly once.
func (p plan) quiet() bool {
	return len(p.Lives)+len(p.User)+len(p.Storage) == 0 && p.Broker == 0 && p.Messages == nil
}

// env is the environment of a life, but for the graph.
func (p plan) env(from string, parallelism int, dir string) *weir.Env {
	env := weir.NewTestEnv().Parallelism(parallelism).
		Set("weir.exchange.batch-records", p.Batch).Set("weir.exchange.queue-batches", p.Queue).
		Set("pipeline.operator-chaining.enabled", p.Chaining).
		Set("pipeline.auto-watermark-interval", 5*time.Millisecond).
		Set("restart-strategy.exponential-delay.max-backoff", 200*time.Millisecond).
		Set("restart-strategy.exponential-delay.initial-backoff", 10*time.Millisecond)
	mode := weir.ExactlyOnce
	if p.AtLeastOnce {
		mode = weir.AtLeastOnce
	}
	c := env.EnableCheckpointing(p.Interval, mode)
	c.MaxConcurrent, c.TolerableFailures, c.Timeout = p.Concurrent, p.Tolerable, 20*time.Second
	c.Unaligned, c.AlignedTimeout = p.Unaligned, p.AlignedTimeout
	if p.Directory {
		c.Storage = dir
		if !p.Inline {
			env.Set("execution.checkpointing.data-inline-threshold", 0)
		}
	}
	if from != "" {
		env.Set("execution.state-recovery.path", from)
	}
	return env
}

// repeats are the parallelisms to try when one is refused because some subtasks had ended at another.
func (p plan) repeats(life int) []int {
	wanted := p.Parallelism[min(life, len(p.Parallelism)-1)]
	return append([]int{wanted}, slices.DeleteFunc(slices.Clone(widths), func(n int) bool { return n == wanted })...)
}
