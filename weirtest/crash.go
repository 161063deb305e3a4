package weirtest

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir"
)

// Crash runs a job again and again through crashes, and compares what it has committed:
//
//	func TestCrash(t *testing.T) {
//		weirtest.Crash{Job: func(env *weir.Env, w *weirtest.World) {
//			env.From(weir.FromSlice(orders)).UID("orders").
//				KeyBy(customer).Process(&total{}).UID("total").
//				To(w.Sink[Total]("totals")).UID("totals")
//		}}.Run(t)
//	}
//
// Each seed is a plan of a few lives. A life begins from the latest checkpoint of the one before, or from the savepoint by which that one was
// stopped, at a parallelism of its own, and ends before some operation of the file system, some message between the job's parts, some
// barrier, some operation of a sink; with it goes, as seed and luck have it, what was not synced. Tasks fail in between, and are
// restarted by their job. The last life goes to the job's end.
//
// The job runs in a bubble of testing/synctest, where time costs nothing, so a seed takes some ten milliseconds. Job is called for each
// life. What is to outlive the process is the World's: checkpoints, and sinks. A file that the job writes by itself, or a variable of
// the test that it changes, is not taken back by a crash; nor is anything allowed in the job that a bubble cannot wait for, such
// as a network.
//
// A seed repeats its plan, and with it the operation at which a life ends; the order in which goroutines run, which makes the n-th operation
// what it is, does not repeat. So a rare failure may take several attempts: -count=100.
type Crash struct {
	// Job builds the job. It must read all of its input in every history: weir.FromSlice, weir.Generate, a Source.
	Job func(env *weir.Env, w *World)
	// Check says what is wrong with what the job has committed at its end, in any history. Where it is nil, the job must commit
	// to sinks of the World what it commits without crashes, in any order.
	Check func(w *World) error
	// Seeds is how many plans are tried; 0: 10. On the command line -weirtest.seeds=1000 has more of them tried, and -weirtest.seed=7 begins
	// with that one, or, where nothing else is said, tries it alone.
	Seeds int
	// Parallelism is what lives are run at; nil: 1, 2 and 5.
	Parallelism []int
	// Lives is how many lives at most end before the job does; 0: 3.
	Lives int
}

var (
	firstSeed = flag.Uint64("weirtest.seed", 0, "the first seed of weirtest.Crash, or the only one")
	moreSeeds = flag.Int("weirtest.seeds", 0, "how many seeds weirtest.Crash tries")
)

// Run tries all seeds, each as a subtest.
func (c Crash) Run(t *testing.T) {
	t.Helper()
	r := c.defaults()
	if err := r.refer(t); err != nil {
		t.Fatalf("weirtest: without any crash: %v", err)
	}
	first, n := c.seeds()
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			if report := r.try(t, seed); report != "" {
				t.Error(report)
			}
		})
	}
	t.Log("weirtest: ", r.tally)
}

// defaults is c with what is not said in it.
func (c Crash) defaults() *crashes {
	if len(c.Parallelism) == 0 {
		c.Parallelism = []int{1, 2, 5}
	}
	if c.Lives == 0 {
		c.Lives = 3
	}
	return &crashes{Crash: c}
}

// seeds are the first one and their number.
func (c Crash) seeds() (first, n uint64) {
	n = uint64(c.Seeds)
	if n == 0 {
		n = 10
	}
	if *firstSeed > 0 {
		n = 1
	}
	if *moreSeeds > 0 {
		n = uint64(*moreSeeds)
	}
	return max(1, *firstSeed), n
}

// crashes are those of one Run.
type crashes struct {
	Crash
	reference *World
	counts    map[what]int // what a run without crashes does
	took      time.Duration
	tally     tally
}

// tally is what the trials have met.
type tally struct {
	trials, crashes, stops, faults int
	at                             map[what]int
}

func (s tally) String() string {
	text := fmt.Sprintf("%d trials, %d tasks that failed, %d stops with savepoints, %d crashes", s.trials, s.faults, s.stops, s.crashes)
	for _, w := range slices.Sorted(maps.Keys(s.at)) {
		text += fmt.Sprintf(", %d of them before a %s", s.at[w], w)
	}
	return text
}

// calm is how a job runs without crashes.
var calm = conditions{Interval: 10 * time.Millisecond, Work: time.Millisecond, Slice: 16}

// refer makes the reference: it runs the job without crashes at all parallelisms, which must not matter.
func (r *crashes) refer(t *testing.T) error {
	t.Helper()
	if r.Job == nil {
		return errors.New("there is no Job")
	}
	var reference *World
	for i, parallelism := range r.Parallelism {
		tr := r.bubble(t, trialPlan{Lives: []lifePlan{{Parallelism: parallelism}}, How: calm})
		if tr.err != nil {
			return fmt.Errorf("at parallelism %d: %w\n%s", parallelism, tr.err, list(tr.log.last(listMost)))
		}
		if i == 0 {
			reference, r.counts, r.took = tr.world, tr.counts, tr.took
			continue
		}
		if wrong, _ := tr.world.differs(reference); r.Check == nil && len(wrong) > 0 {
			return fmt.Errorf("the job commits one thing at parallelism %d and another at %d, so there is nothing to compare with: "+
				"say in Check what is right of any history, or run it at one Parallelism\n%s", r.Parallelism[0], parallelism, strings.Join(wrong, "\n"))
		}
	}
	if r.Check == nil && reference.records() == 0 {
		return errors.New("the job commits nothing to the sinks of its World, so there is nothing to compare: write to a World.Sink, or say in Check what is right")
	}
	r.reference = reference
	return nil
}

// try tries one seed; what it returns tells what is wrong.
func (r *crashes) try(t *testing.T, seed uint64) string {
	t.Helper()
	p := r.draw(seed)
	tr := r.bubble(t, p)
	r.tally.enter(tr)
	if tr.err == nil {
		return ""
	}
	least, tries := r.shrink(t, tr)
	note := "Nothing smaller fails, in"
	if least != tr {
		note = "It is the smallest plan that was found to fail, of the seed's own:\n" + list(p.lines()) + "\nin"
	}
	return fmt.Sprintf("%v\nThe plan:\n%s\n%s %d tries.\nThe last of the log:\n%s\nRepeat it with: go test -run '%s' -weirtest.seed=%d", least.err, list(least.told()),
		note, tries, list(least.log.last(listMost)), pattern(t.Name()), seed)
}

// pattern is what -run takes to run the test above a subtest.
func pattern(subtest string) string {
	parts := strings.Split(subtest, "/")
	for i, p := range parts[:len(parts)-1] {
		parts[i] = "^" + p + "$"
	}
	return strings.Join(parts[:len(parts)-1], "/")
}

// bubble runs a plan in simulated time.
func (r *crashes) bubble(t *testing.T, p trialPlan) (tr *trial) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tr = &trial{crashes: r, plan: p, log: &journal{}, rng: rand.New(rand.NewPCG(p.Seed, 2))}
		tr.run()
	})
	return tr
}

func (s *tally) enter(tr *trial) {
	if s.at == nil {
		s.at = map[what]int{}
	}
	s.trials++
	for _, l := range tr.lived {
		if l.faulted {
			s.faults++
		}
		switch l.end {
		case crashed:
			s.crashes++
			s.at[l.Strike.what]++
		case stopped:
			s.stops++
		}
	}
}
