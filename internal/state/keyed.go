package state

import (
	"fmt"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/fit"
	"github.com/weirstream/weir/internal/snapshot"
)

// Keyed is the keyed state of one subtask of an operator: an index of the keys with a column for each declared state, and
// the timers.
//
// A call of the user's function is
//
//	k.Touch(hashes of the slice)   once per slice of records
//	k.Seek(hash, key)              makes key current: now the state fields work
//	...                            Get, Set, Register
//	k.Settle()                     tidies up
//
// and k.Leave() when something else than keyed calls follows. All methods are for the owner's goroutine.
type Keyed[K comparable] struct {
	index[K]
	codec  *codec.Key[K]
	stored reader[K] // of keys
	within base.KeyGroupRange
	timers [2]Timers[K] // processing, event

	baselines baselines

	allowDropped bool
	dropped      []string // states that restores passed over
}

// NewKeyed makes the state of the keys in r. States are bound to it, then it is opened.
func NewKeyed[K comparable](key *codec.Key[K], r base.KeyGroupRange) *Keyed[K] {
	k := &Keyed[K]{codec: key, within: r}
	k.index.init(key.Hash, r)
	for i := range k.timers {
		k.timers[i].init(k, r)
	}
	return k
}

// Open lays out the pages; no state can be bound afterwards. The clock is processing time in nanoseconds, from which time
// to live is reckoned.
func (k *Keyed[K]) Open(clock func() int64) {
	k.clock = clock
	k.open()
	for _, c := range k.columns {
		c.opened()
	}
	for i := range k.timers {
		k.timers[i].open()
	}
}

// Hash is the key's hash, the one that Seek wants.
func (k *Keyed[K]) Hash(key K) uint64 { return k.slots.hash(key) }

// Touch reads ahead what Seek and the states will want for these hashes, at most TouchMost. It does nothing, and says so, while
// all of the table lies in the processor's cache.
func (k *Keyed[K]) Touch(hs []uint64) bool {
	if k.bytes() <= touchBytes {
		return false
	}
	k.touch(hs)
	return true
}

// SeekTouched is Seek of the hash numbered j of the last Touch, which was done.
func (k *Keyed[K]) SeekTouched(j int, h uint64, key K) { k.seekTouched(j, h, key) }

// Seek makes key current; h is its hash, and in the range.
func (k *Keyed[K]) Seek(h uint64, key K) { k.seek(h, key) }

// Key is the current key, the last that was sought.
func (k *Keyed[K]) Key() K { return k.slots.key }

// Leave says that no key is current: a state that is used now panics with a *UsageError.
func (k *Keyed[K]) Leave() { k.cur.leave(k.void, noKey) }

// Settle ends a call: a key whose last state was cleared goes. State may be used again only after another Seek.
func (k *Keyed[K]) Settle() {
	if k.cur.unsettled {
		k.settle()
	}
}

// Len is the number of keys that have state.
func (k *Keyed[K]) Len() int { return k.entries }

// Each yields all keys that have state when it begins, in the order of their hashes' pages. It may seek, write and clear.
func (k *Keyed[K]) Each(yield func(K) bool) {
	v := k.view()
	defer k.release(v)
	for _, p := range v.pages() {
		for m := p.live; m != 0; m &= m - 1 {
			if !yield(*k.slots.at(p, lowest(m))) {
				return
			}
		}
	}
}

// Timers are the event timers, or the processing timers.
func (k *Keyed[K]) Timers(event bool) *Timers[K] {
	if event {
		return &k.timers[1]
	}
	return &k.timers[0]
}

// Schemas are the declared states, in the order of their binding, and the timers.
func (k *Keyed[K]) Schemas() []snapshot.StateSchema {
	key := k.codec.Codec().Schema()
	var all []snapshot.StateSchema
	for _, c := range k.columns {
		s := c.schema()
		s.Key, s.Was = key, c.common().spec.Was
		all = append(all, s)
	}
	return append(all, snapshot.StateSchema{Name: timersName, Kind: KindTimers, Key: key})
}

// timersName is the name of the timers among the schemas. No state of the user's can have it.
const timersName = fit.Timers

func (k *Keyed[K]) bind(c column) error {
	if c.common().spec.Name == timersName {
		return fmt.Errorf("no state can be named %q", timersName)
	}
	return k.addColumn(c)
}

func (k *Keyed[K]) tableOf() *table { return &k.table }
