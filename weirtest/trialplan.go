package weirtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
)

// trialPlan is all that a seed decides.
type trialPlan struct {
	Seed  uint64
	Lives []lifePlan // the last one goes to the job's end
	How   conditions
}

// lifePlan is one life.
type lifePlan struct {
	Parallelism int
	// Fault is the run of records at which a task fails; 0: none does.
	Fault int
	// Strike is where the process dies; nil: it does not.
	Strike *strike
	// Stop is when the job is stopped with a savepoint in Format; 0: it is not.
	Stop   time.Duration
	Format checkpoint.Format
}

// conditions are how a job runs, whatever the job. The zero value is the default of each.
type conditions struct {
	Unaligned      bool
	AlignedTimeout time.Duration
	Batch, Queue   int // 0: large ones
	Slice          int // records that a task takes at once
	Unchained      bool
	Files          bool // all state in files
	Whole          bool // no checkpoint refers to files of another
	Interval       time.Duration
	Work           time.Duration // the most that an operator takes for what it emits at once
}

// draw is the plan of a seed, by what a run without crashes does.
func (r *crashes) draw(seed uint64) trialPlan {
	rng := rand.New(rand.NewPCG(seed, 1))
	p := trialPlan{Seed: seed, How: drawConditions(rng)}
	for range 1 + rng.IntN(r.Lives) {
		p.Lives = append(p.Lives, r.drawLife(rng, len(p.Lives)))
	}
	p.Lives = append(p.Lives, lifePlan{Parallelism: r.width(rng), Fault: r.drawFault(rng)})
	return p
}

func drawConditions(rng *rand.Rand) conditions {
	one := func(of ...int) int { return of[rng.IntN(len(of))] }
	c := conditions{Batch: one(0, 1, 3), Queue: one(0, 1, 2), Slice: one(1, 3, 16, 128), Unchained: rng.IntN(4) == 0, Files: rng.IntN(2) == 0, Whole: rng.IntN(4) == 0,
		Interval: time.Duration(one(10, 10, 20, 50)) * time.Millisecond, Work: time.Duration(one(1, 2, 5)) * time.Millisecond}
	if rng.IntN(2) == 0 {
		c.Unaligned, c.AlignedTimeout = true, time.Duration(one(0, 5))*time.Millisecond
	}
	return c
}

func (r *crashes) width(rng *rand.Rand) int { return r.Parallelism[rng.IntN(len(r.Parallelism))] }

func (r *crashes) drawFault(rng *rand.Rand) int {
	if runs := r.counts[aRun]; runs > 0 && rng.IntN(3) == 0 {
		return 1 + rng.IntN(runs)
	}
	return 0
}

// drawLife draws a life that ends before the job does, the sooner the more lives were before it.
func (r *crashes) drawLife(rng *rand.Rand, before int) lifePlan {
	l := lifePlan{Parallelism: r.width(rng), Fault: r.drawFault(rng)}
	if rng.IntN(5) == 0 {
		l.Stop = time.Duration(1 + rng.Int64N(max(1, int64(r.took))/int64(before+1)))
		l.Format = []checkpoint.Format{checkpoint.Native, checkpoint.Canonical}[rng.IntN(2)]
		return l
	}
	kinds := slices.DeleteFunc(slices.Clone(strikes), func(w what) bool { return r.counts[w] == 0 })
	w := kinds[rng.IntN(len(kinds))]
	l.Strike = &strike{what: w, n: 1 + rng.IntN(1+r.counts[w]/(before+1))}
	return l
}

// lines is the plan for people.
func (p trialPlan) lines() (all []string) {
	for i, l := range p.Lives {
		all = append(all, fmt.Sprintf("life %d: %v", i+1, l))
	}
	return append(all, p.How.String())
}

func (l lifePlan) String() string {
	text := fmt.Sprintf("at parallelism %d", l.Parallelism)
	if l.Fault > 0 {
		text += fmt.Sprintf(", a task fails at %s %d", aRun, l.Fault)
	}
	switch {
	case l.Strike != nil:
		return text + fmt.Sprintf(", crash before %s %d", l.Strike.what, l.Strike.n)
	case l.Stop > 0:
		return text + fmt.Sprintf(", stop with a savepoint (%v) after %v", l.Format, l.Stop)
	}
	return text + ", to the end"
}

func (c conditions) String() string {
	return fmt.Sprintf("conditions: unaligned %v after %v, batches of %d, queues of %d, slices of %d, unchained %v, files %v, whole %v, every %v, work up to %v",
		c.Unaligned, c.AlignedTimeout, c.Batch, c.Queue, c.Slice, c.Unchained, c.Files, c.Whole, c.Interval, c.Work)
}
