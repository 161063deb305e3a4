package storage

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// CrashClone is what the file system holds after the machine crashed now and came up again. Names and bytes that were synced
// are there; of the others each may be, as rng decides: any subset of the operations on names (each one whole, renames too),
// any length of a file's unsynced end, and in it blocks of zeros, as delayed allocation leaves them. A nil rng keeps nothing
// unsynced. No lock is held. The file system itself goes on as if nothing had happened.
func (m *MemFS) CrashClone(rng *rand.Rand) *MemFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := crash{rng: rng, clones: map[*node]*node{}}
	after := Memory()
	after.root = c.clone(m.root)
	return after
}

// crash is one crash; clones remembers nodes with several names.
type crash struct {
	rng    *rand.Rand
	clones map[*node]*node
}

// coin reports whether one unsynced thing survives.
func (c *crash) coin() bool { return c.rng != nil && c.rng.IntN(2) == 0 }

func (c *crash) clone(n *node) *node {
	if done := c.clones[n]; done != nil {
		return done
	}
	after := &node{isDir: n.isDir}
	c.clones[n] = after
	if n.isDir {
		after.names = c.cloneNames(n)
		after.durable = maps.Clone(after.names)
	} else {
		after.data = c.cloneData(n)
		after.synced = len(after.data)
	}
	return after
}

func (c *crash) cloneNames(n *node) map[string]*node {
	survived := maps.Clone(n.durable)
	for _, change := range n.log {
		if c.coin() {
			change.apply(survived)
		}
	}
	after := map[string]*node{}
	for _, name := range slices.Sorted(maps.Keys(survived)) { // in order: the same seed, the same crash
		after[name] = c.clone(survived[name])
	}
	return after
}

// cloneData is the synced bytes and some of the rest.
func (c *crash) cloneData(n *node) []byte {
	if c.rng == nil {
		return slices.Clone(n.data[:n.synced])
	}
	const block = 64
	data := slices.Clone(n.data[:n.synced+c.rng.IntN(len(n.data)-n.synced+1)])
	for tail := data[n.synced:]; len(tail) > 0; tail = tail[min(block, len(tail)):] {
		if c.rng.IntN(4) == 0 {
			clear(tail[:min(block, len(tail))])
		}
	}
	return data
}
