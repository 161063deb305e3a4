package state

import (
	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
)

// timer is a timer of a key. A key has at most one at a time.
type timer[K comparable] struct {
	key K
	at  base.EventTime
}

// Timers are the timers of one kind of a subtask: a set of (key, time), and a queue in the order of time.
//
// The set is an index like that of the keys, hashed by the key's group and a mixture of key and time, so that it rescales
// with its keys and the million timers of one key lie in as many places. It is what snapshots hold. The queue is derived
// from it: made once after a restore, never stored.
//
// A timer that is deleted leaves the set only. The queue's entry is dead then, and is thrown away when it comes to the
// top; or all dead are, by making the queue anew, when they are as many as the living. One invariant is kept after each
// call: what is at the top of the queue is in the set.
type Timers[K comparable] struct {
	set   index[timer[K]]
	queue queue[K]
	owner *Keyed[K]
	stale bool // the set was restored: the queue must be made
}

func (t *Timers[K]) init(owner *Keyed[K], r base.KeyGroupRange) {
	t.owner = owner
	t.set.init(func(x timer[K]) uint64 { return hashTimer(owner.slots.hash(x.key), x.at) }, r)
}

func (t *Timers[K]) open() { t.set.open() }

func hashTimer(keyHash uint64, at base.EventTime) uint64 {
	return codec.Namespaced(keyHash, uint64(at))
}

// Register sets a timer of the current key; one that is there already is the same.
func (t *Timers[K]) Register(at base.EventTime) {
	c := t.owner.current()
	x := timer[K]{t.owner.slots.key, at}
	t.set.seek(hashTimer(c.hash, at), x)
	if t.set.cur.slot >= 0 {
		return
	}
	t.set.ensure()
	t.refresh()
	t.queue.push(queued[K]{at: at, hash: c.hash, key: x.key})
	t.maybeCompact()
}

// Delete removes a timer of the current key, if there is one at that time.
func (t *Timers[K]) Delete(at base.EventTime) {
	c := t.owner.current()
	if !t.remove(c.hash, timer[K]{t.owner.slots.key, at}) {
		return
	}
	t.refresh()
	t.dropDead()
	t.maybeCompact()
}

// Next is the time of the earliest timer.
func (t *Timers[K]) Next() (base.EventTime, bool) {
	t.refresh()
	if len(t.queue) == 0 {
		return 0, false
	}
	return t.queue[0].at, true
}

// Pop removes the earliest timer, if it is not later than upTo. Timers of the same time come in the order of their keys'
// hashes. One that is registered between two calls takes its place in the order: who pops until nothing is due, and lets the
// timer's own code register again at or before upTo, goes on for as long as that does.
func (t *Timers[K]) Pop(upTo base.EventTime) (hash uint64, key K, at base.EventTime, ok bool) {
	t.refresh()
	if len(t.queue) == 0 || t.queue[0].at > upTo {
		return 0, key, 0, false
	}
	top := t.queue.pop()
	t.remove(top.hash, timer[K]{top.key, top.at})
	t.dropDead()
	return top.hash, top.key, top.at, true
}

// Len is the number of timers.
func (t *Timers[K]) Len() int { return t.set.entries }

// remove takes x out of the set.
func (t *Timers[K]) remove(keyHash uint64, x timer[K]) bool {
	h := hashTimer(keyHash, x.at)
	p, i := t.set.find(h, x)
	if i < 0 {
		return false
	}
	t.set.remove(h, p, uint(i))
	return true
}

// dropDead restores the invariant after something left the set.
func (t *Timers[K]) dropDead() {
	for len(t.queue) > 0 {
		top := &t.queue[0]
		if _, i := t.set.find(hashTimer(top.hash, top.at), timer[K]{top.key, top.at}); i >= 0 {
			return
		}
		t.queue.pop()
	}
}

// queueSlack is the number of dead entries that are always allowed.
const queueSlack = 64

// maybeCompact makes the queue anew when more than half of it is dead.
func (t *Timers[K]) maybeCompact() {
	if len(t.queue) > 2*t.set.entries+queueSlack {
		t.stale = true
		t.refresh()
	}
}

// refresh makes the queue from the set, if it must.
func (t *Timers[K]) refresh() {
	if !t.stale {
		return
	}
	t.stale = false
	t.queue = make(queue[K], 0, t.set.entries)
	v := t.set.present()
	for _, p := range v.pages() {
		for m := p.live; m != 0; m &= m - 1 {
			x := t.set.slots.at(p, lowest(m))
			t.queue = append(t.queue, queued[K]{at: x.at, hash: t.owner.slots.hash(x.key), key: x.key})
		}
	}
	t.queue.heapify()
}

// current is the cursor, where there is a current key.
func (k *Keyed[K]) current() *cursor {
	if k.cur.slot == noKey {
		panic(&UsageError{State: timersName, Problem: outsideCall})
	}
	return &k.cur
}
