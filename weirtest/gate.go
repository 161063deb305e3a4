package weirtest

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/worker"
)

// gate is what everything goes through that a job does to the world, or its parts say to one another: so it can count, and say that now the
// process dies.
//
// The world is copied under the gate's lock. What passed the gate before may still be under way then, and is not in the copy; but whatever
// would follow from it has to pass the gate first, and waits, or finds that the process is dead and acts on a world that nobody looks at any
// more. So the copy is a consistent one: no commit is in it whose checkpoint is not.
type gate struct {
	strike  *strike                // where the process dies; nil: nowhere
	faultAt int                    // the run of records at which a task fails; 0: none does
	slow    func(from *graph.Node) // takes the time that user code takes
	onCrash func()                 // copies the world
	crashed chan struct{}          // closed when the process has died

	mu      sync.Mutex
	counts  map[what]int // protected by mu, as is all below
	dead    bool
	at      string // what the strike has hit
	faulted bool
}

// what is a kind of thing that goes through a gate.
type what string

const (
	aFile    what = "file operation"
	aMessage what = "message"
	aBarrier what = "barrier" // a trigger, an acknowledgement
	aSink    what = "operation of a sink"
	aRun     what = "run of records"
)

// strikes are the kinds of things at which a process may die.
var strikes = []what{aFile, aMessage, aBarrier, aSink}

// strike is the moment before the nth thing of a kind.
type strike struct {
	what what
	n    int
}

func newGate() *gate { return &gate{crashed: make(chan struct{}), counts: map[what]int{}} }

// pass lets something through, unless it is where the process dies. A nil gate lets everything through.
func (g *gate) pass(w what, details func() string) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dead {
		return
	}
	g.counts[w]++
	if s := g.strike; s != nil && s.what == w && s.n == g.counts[w] {
		g.dead, g.at = true, details()
		g.onCrash()
		close(g.crashed)
	}
}

// stop has nothing count any more, and tells what was counted.
func (g *gate) stop() map[what]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dead = true
	return g.counts
}

// hit is what the strike has hit, and whether a task was failed.
func (g *gate) hit() (at string, faulted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.at, g.faulted
}

func (g *gate) sink(op string) { g.pass(aSink, func() string { return op }) }

// files is a file system behind the gate.
func (g *gate) files(under storage.FS) storage.FS {
	return storage.Faulty(under, &storage.Rule{Hook: func(op storage.Op, path string) {
		g.pass(aFile, func() string { return fmt.Sprint(op, " ", path) })
	}})
}

// carry is a worker.Carrier behind the gate.
func (g *gate) carry(m worker.Message, deliver func(worker.Message)) {
	name := strings.TrimPrefix(fmt.Sprintf("%T", m.Body), "worker.")
	kind := aMessage
	switch m.Body.(type) {
	case worker.Trigger, worker.Reported:
		kind = aBarrier
	}
	g.pass(kind, func() string { return fmt.Sprintf("%s of %v", name, m.Exec) })
	deliver(m)
}

var errPlanted = errors.New("weirtest: a planted fault")

// hear is called with each run of records that an operator emits. Time passes, as user code and networks take it.
func (g *gate) hear(from *graph.Node, _ int) error {
	g.mu.Lock()
	g.counts[aRun]++
	fails := !g.dead && g.counts[aRun] == g.faultAt
	g.faulted = g.faulted || fails
	g.mu.Unlock()
	if fails {
		return errPlanted
	}
	g.slow(from)
	return nil
}
