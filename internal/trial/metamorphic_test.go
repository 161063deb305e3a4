package trial

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// However a job takes its checkpoints, at whatever parallelism, in whatever batches, and whatever happens to it: its output is
// the same. TestTrials draws all of that, and faults beside, at random; here nothing else is drawn, and no combination left out: each program is
// run in all of them by as many seeds in a row as combinations says.

// aligning is how barriers go through a job.
var aligning = []struct {
	unaligned bool
	timeout   time.Duration
}{{false, 0}, {true, 0}, {true, 5 * time.Millisecond}, {true, 50 * time.Millisecond}}

// happenings are what happens to a job.
var happenings = []struct {
	name string
	plan func(*plan, *rand.Rand)
}{
	{"nothing", func(*plan, *rand.Rand) {}},
	{"errors", func(p *plan, r *rand.Rand) {
		for _, where := range []string{"process", "sink.write"} {
			p.User = append(p.User, fault{Where: where, Nth: 1 + r.IntN(int(p.Records)), Panic: r.IntN(2) == 0})
		}
	}},
	{"crash", func(p *plan, r *rand.Rand) {
		p.Lives = []ending{{After: moments(r), How: crash}, {After: moments(r), How: crash}}
	}},
	{"savepoint", func(p *plan, r *rand.Rand) {
		p.Spares = []spare{{After: moments(r), Format: drawFormat(r)}, {After: moments(r), Format: drawFormat(r)}}
	}},
	{"stop", func(p *plan, r *rand.Rand) {
		for range 2 {
			p.Lives = append(p.Lives, ending{After: moments(r), How: stop, Format: drawFormat(r), ByPath: r.IntN(2) == 0})
		}
	}},
}

// moments are early ones, while a job of these has still data.
func moments(r *rand.Rand) time.Duration { return time.Duration(r.IntN(200_000)) * time.Microsecond }

var batches = []int{1, 1024}

// combinations is how many there are.
var combinations = uint64(len(programs) * len(aligning) * len(widths) * len(happenings) * len(batches))

// drawCombination is the plan of a seed. What is not combined is drawn so that there are records in queues: little room, and work that takes its
// time.
func drawCombination(seed uint64) plan {
	n := int(seed % combinations)
	turn := func(of int) (i int) { n, i = n/of, n%of; return i }
	r := rand.New(rand.NewPCG(seed, 11))
	p := plan{
		Seed: seed, Program: programs[turn(len(programs))].name, Records: int64(200 + r.IntN(600)), Batch: batches[turn(len(batches))],
		Queue: []int{1, 2, 8}[r.IntN(3)], Chaining: r.IntN(3) > 0, Directory: true, Inline: r.IntN(2) == 0, Interval: 10 * time.Millisecond,
		Concurrent: 1, Tolerable: -1, Slow: time.Duration(r.IntN(2)) * time.Millisecond, Work: time.Duration(1+r.IntN(5)) * time.Millisecond,
		Rate: float64([]int{0, 3000}[r.IntN(2)]),
	}
	a := aligning[turn(len(aligning))]
	p.Unaligned, p.AlignedTimeout = a.unaligned, a.timeout
	happenings[turn(len(happenings))].plan(&p, r)
	p.Parallelism = []int{widths[turn(len(widths))]}
	for range p.Lives {
		p.Parallelism = append(p.Parallelism, widths[r.IntN(len(widths))])
	}
	return p
}

// TestCombinations runs a sample of the combinations, or as many as COMBINATIONS says from SEED on (make soak).
func TestCombinations(t *testing.T) {
	count := uint64(100)
	if raceEnabled {
		count = 20
	}
	first := setting(t, "SEED", uint64(time.Now().UnixNano()%1_000_000))
	step := uint64(1)
	if asked := setting(t, "COMBINATIONS", 0); asked > 0 {
		count = asked
	} else {
		step = combinations/count + 1 // so that a sample has some of each
	}
	var sum tally
	for i := range count {
		seed := first + i*step
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			p := drawCombination(seed)
			tr, err := inBubble(t, p)
			if err != nil {
				t.Errorf("%v\nof the plan: %v\nstruck: %+v\nthe last of the log:\n\t%s\nrepeat with: COMBINATIONS=1 SEED=%d go test ./internal/trial -run TestCombinations",
					err, p, tr.faults.struck, tr.log.last(40), seed)
			}
			sum.enter(tr)
		})
	}
	t.Logf("%d of %d combinations from seed %d on: %v", min(count, combinations), combinations, first, sum)
}

// TestEveryCombination: no combination is left out.
func TestEveryCombination(t *testing.T) {
	seen := map[string]bool{}
	for seed := range combinations {
		p := drawCombination(seed)
		happens := fmt.Sprint(len(p.User) > 0, len(p.Spares) > 0, len(p.Lives) > 0, len(p.Lives) > 0 && p.Lives[0].How == stop)
		seen[fmt.Sprint(p.Program, p.Batch, p.Unaligned, p.AlignedTimeout, p.Parallelism[0], happens)] = true
	}
	if uint64(len(seen)) != combinations {
		t.Errorf("%d of %d", len(seen), combinations)
	}
}
