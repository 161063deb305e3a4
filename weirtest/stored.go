package weirtest

import (
	"fmt"
	"maps"

	"github.com/zeebo/xxh3"

	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/operator"
)

// storedGuard notices state that is changed when nobody may: while the records of another key are processed, or between the calls of the
// harness. It keeps the hash of every key's state as it was when it looked last, and which keys had a step of their own since. It looks in
// each step where keys are few, else so seldom that a step comes to about as many.
type storedGuard struct {
	r      *rig
	hashes map[place]uint64
	own    map[place]bool
	any    bool // all keys may have changed
	steps  int
}

// place is a key of an operator, by its hash.
type place struct {
	node graph.NodeID
	key  uint64
}

// fewKeys are looked at in every step.
const fewKeys = 64

func newStoredGuard(r *rig) *storedGuard {
	return &storedGuard{r: r, hashes: map[place]uint64{}, own: map[place]bool{}}
}

// before is called before a step: nothing may have changed since the last.
func (g *storedGuard) before() {
	g.look("between two calls of the harness: by the test, or by a goroutine")
}

// after is called after a step that processed records of some keys.
func (g *storedGuard) after(own ...place) {
	for _, p := range own {
		g.own[p] = true
	}
	g.look("while records of other keys were processed")
}

// rebase is called after a step that may have changed anything.
func (g *storedGuard) rebase() {
	g.any = true
	g.look("")
}

// look compares the keys that nothing may have changed.
func (g *storedGuard) look(when string) {
	g.steps++
	if n := len(g.hashes); n > fewKeys && g.steps%(n/fewKeys) != 0 {
		return
	}
	seen := map[place]uint64{}
	for _, s := range g.r.subtasks {
		for _, n := range g.r.plan.nodes {
			op, ok := s.ops[n.ID].(operator.InspectedByKey)
			if !ok {
				continue
			}
			for key, hash := range maps.Collect(op.Keys) {
				at := place{n.ID, hash}
				now, before := g.hash(op, key), g.hashes[at]
				if before != 0 && now != before && !g.any && !g.own[at] {
					g.r.t.Errorf("weirtest: the state of key %v of operator %s was changed %s; a function must not keep what it has from a state, or has put "+
						"there, to change it later: let it keep, or store, a copy", key, n.Label(), when)
				}
				seen[at] = now
			}
		}
	}
	g.hashes, g.any = seen, false
	clear(g.own)
}

// hash is that of a key's state; never 0.
func (g *storedGuard) hash(op operator.InspectedByKey, key any) uint64 {
	var bytes []byte
	err := op.WithKey(key, func() {
		var err error
		if bytes, err = op.AppendState(nil); err != nil {
			bytes = fmt.Append(nil, err)
		}
	})
	if err != nil {
		bytes = fmt.Append(nil, err)
	}
	return xxh3.Hash(bytes) | 1
}
