package state

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/weirstream/weir/internal/base"
)

// rig does random operations on a Keyed and a model of it.
type rig[K comparable] struct {
	t     *testing.T
	rnd   *rand.Rand
	now   int64
	most  int
	key   func(uint64) K
	keyed *Keyed[K]
	state everyState
	model *model[K]
	grow  bool

	wg      sync.WaitGroup
	written chan written[K]
}

// written is a snapshot that another goroutine wrote out while the rig went on.
type written[K comparable] struct {
	snapshot *KeyedSnapshot
	file     []byte
	rows     []rowsFile
	want     *model[K]
	now      int64
	err      error
}

func newRig[K comparable](t *testing.T, seed uint64, r base.KeyGroupRange, hash func(K) uint64, key func(uint64) K, most int) *rig[K] {
	g := &rig[K]{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), key: key, most: most, now: 1000, grow: true}
	g.model = &model[K]{map[K]*entryModel{}, map[timer[K]]bool{}}
	g.written = make(chan written[K], 256)
	g.keyed = g.open(&g.state, r, hash, &g.now)
	return g
}

func (g *rig[K]) open(s *everyState, r base.KeyGroupRange, hash func(K) uint64, now *int64) *Keyed[K] {
	k := NewKeyed(mustKey[K](g.t), r)
	if hash != nil {
		k.slots.hash = hash
	}
	s.bindAll(g.t, k)
	k.Open(func() int64 { return *now })
	return k
}

// pick is a random key of the range, likely one that was picked lately.
func (g *rig[K]) pick() (K, uint64) {
	for {
		k := g.key(g.rnd.Uint64N(uint64(g.most) * 2))
		if h := g.keyed.Hash(k); h >= g.keyed.least && h <= g.keyed.most {
			return k, h
		}
	}
}

// slice is one slice of calls.
func (g *rig[K]) slice() {
	var ks [16]K
	var hs [16]uint64
	for j := range ks {
		ks[j], hs[j] = g.pick()
		if j > 0 && g.rnd.IntN(4) == 0 {
			i := g.rnd.IntN(j)
			ks[j], hs[j] = ks[i], hs[i]
		}
	}
	g.keyed.touch(hs[:])
	for j, k := range ks {
		g.call(k, hs[j])
	}
	g.keyed.Leave()
	g.now += int64(g.rnd.IntN(20))
	if n := g.keyed.Len(); n > g.most {
		g.grow = false
	} else if n < g.most/50 {
		g.grow = true
	}
}

func (g *rig[K]) call(k K, h uint64) {
	g.keyed.Seek(h, k)
	e := g.model.entries[k]
	if e == nil {
		e = &entryModel{m: map[string]int64{}, mm: map[int64][]int64{}, briefm: map[int64]stamped[string]{}}
		g.model.entries[k] = e
	}
	if g.rnd.IntN(8) == 0 {
		if got, want := g.state.show(), e.show(g.now); got != want {
			g.t.Fatalf("key %v:\n got %s\nwant %s", k, got, want)
		}
	}
	for range 1 + g.rnd.IntN(3) {
		if g.grow && g.rnd.IntN(4) > 0 {
			g.write(e)
		} else {
			g.clear(e)
		}
	}
	if g.rnd.IntN(3) == 0 {
		g.timer(k)
	}
	g.keyed.Settle()
	if e.show(g.now) == "" {
		delete(g.model.entries, k)
	}
}

func (g *rig[K]) timer(k K) {
	at := base.EventTime(g.rnd.IntN(50))
	if g.grow {
		g.keyed.Timers(true).Register(at)
		g.model.timers[timer[K]{k, at}] = true
	} else {
		g.keyed.Timers(true).Delete(at)
		delete(g.model.timers, timer[K]{k, at})
	}
}

func (g *rig[K]) write(e *entryModel) {
	s, v := &g.state, g.rnd.Int64N(1<<40)
	text := fmt.Sprint(v % 7)
	switch g.rnd.IntN(16) {
	case 0, 1:
		s.n.Set(v)
		e.n = &v
	case 2:
		s.text.Set(text)
		e.text = &text
	case 3:
		big := [40]int64{0: v, 39: -v}
		s.big.Set(big)
		e.big = &big
	case 4:
		s.slice.Set([]int64{v, v})
		e.slice = []int64{v, v}
	case 5: // in place: legal, and no snapshot may see it
		if got := s.slice.Get(); got != nil {
			got[1]++
			e.slice[1]++
		}
	case 6:
		s.frozen.Set([]int64{v})
		e.frozen = []int64{v}
	case 7:
		s.sum.Add(v)
		if e.sum != nil {
			v += *e.sum
		}
		e.sum = &v
	case 8:
		s.list.Add(text, text)
		e.list = append(e.list, text, text)
	case 9:
		s.nested.Add([]int64{v})
		e.nested = append(e.nested, []int64{v})
	case 10: // in place
		i := 0
		for got := range s.nested.All() {
			got[0]++
			e.nested[i][0]++
			i++
		}
	case 11:
		s.m.Put(text, v)
		e.m[text] = v
	case 12:
		s.mm.Put(v%5, []int64{v})
		e.mm[v%5] = []int64{v}
	case 13: // in place
		if got, ok := s.mm.Get(v % 5); ok {
			got[0]++
			e.mm[v%5][0]++
		}
	default:
		g.writeBrief(e, v)
	}
}

func (g *rig[K]) writeBrief(e *entryModel, v int64) {
	s := &g.state
	switch g.rnd.IntN(3) {
	case 0:
		s.brief.Set(v)
		e.brief = &stamped[int64]{v, g.now}
	case 1:
		s.briefs.Add(v)
		e.briefs = append(e.briefs, stamped[int64]{v, g.now})
	case 2:
		s.briefm.Put(v%3, fmt.Sprint(v))
		e.briefm[v%3] = stamped[string]{fmt.Sprint(v), g.now}
	}
}

func (g *rig[K]) clear(e *entryModel) {
	s := &g.state
	if g.rnd.IntN(4) == 0 { // one map entry, in a loop over the map
		for k := range s.m.All() {
			s.m.Delete(k)
			delete(e.m, k)
		}
		for k := range s.mm.All() {
			s.mm.Delete(k)
			delete(e.mm, k)
			break
		}
		return
	}
	for _, what := range []func(){
		func() { s.n.Clear(); e.n = nil },
		func() { s.text.Clear(); e.text = nil },
		func() { s.big.Clear(); e.big = nil },
		func() { s.slice.Clear(); e.slice = nil },
		func() { s.frozen.Clear(); e.frozen = nil },
		func() { s.sum.Clear(); e.sum = nil },
		func() { s.list.Clear(); e.list = nil },
		func() { s.nested.Update(nil); e.nested = nil },
		func() { s.m.Clear(); clear(e.m) },
		func() { s.mm.Clear(); clear(e.mm) },
		func() { s.brief.Clear(); e.brief = nil },
		func() { s.briefs.Clear(); e.briefs = nil },
		func() { s.briefm.Clear(); clear(e.briefm) },
	} {
		if g.rnd.IntN(3) > 0 {
			what()
		}
	}
}

// snapshot takes one, to be written out by another goroutine while the rig goes on.
func (g *rig[K]) snapshot() {
	w := written[K]{snapshot: g.keyed.Snapshot(0, 0), want: g.model.clone(), now: g.now}
	g.wg.Go(func() { // ends with the file
		var b bytes.Buffer
		for range 2 { // it takes long, and goes on being the same
			b.Reset()
			if _, w.err = w.snapshot.WriteTo(&b); w.err != nil {
				break
			}
		}
		if w.file = b.Bytes(); w.err == nil {
			w.rows, w.err = writeRows(w.snapshot.Rows())
		}
		g.written <- w
	})
}

// collect releases the snapshots that were written and compares what they hold with the model of their moment.
func (g *rig[K]) collect() {
	for {
		select {
		case w := <-g.written:
			must(g.t, w.err)
			w.snapshot.Release()
			g.compare(w)
		default:
			return
		}
	}
}

// compare restores a file, or files of rows, at some other parallelism.
func (g *rig[K]) compare(w written[K]) {
	parallelism := []int{1, 2, 3, 7}[g.rnd.IntN(4)]
	for i := range parallelism {
		own, ok := base.RangeOf(i, parallelism).Intersect(g.keyed.within)
		if !ok {
			continue
		}
		var s everyState
		k := g.open(&s, own, g.keyed.slots.hash, &w.now)
		if g.rnd.IntN(2) == 0 {
			restoreKeyedRows(g.t, k, w.rows, own)
		} else {
			must(g.t, k.Restore(inMemory(w.file), own))
		}
		g.check(k)
		if err := w.want.within(k.Hash, own).diff(k, &s, w.now); err != nil {
			g.t.Fatalf("restored at %d/%d: %v", i, parallelism, err)
		}
	}
}

// check checks what must hold of the pages of a table.
func (g *rig[K]) check(k *Keyed[K]) {
	g.t.Helper()
	must(g.t, checkIndex(&k.index))
	must(g.t, checkIndex(&k.Timers(true).set))
}

func (g *rig[K]) run(slices int) {
	for i := range slices {
		g.slice()
		if g.rnd.IntN(slices/12) == 0 {
			g.snapshot()
		}
		if i%(slices/20) == 0 {
			g.check(g.keyed)
			g.collect()
		}
	}
	g.snapshot()
	g.wg.Wait()
	g.collect()
	if err := g.model.diff(g.keyed, &g.state, g.now); err != nil {
		g.t.Fatal(err)
	}
	g.t.Logf("keys %d pages %d root %d %+v; timers %d %+v", g.keyed.Len(), g.keyed.pages, len(g.keyed.root), g.keyed.stats,
		g.keyed.Timers(true).Len(), g.keyed.Timers(true).set.stats)
}

// checkIndex checks order, tags, free slots, epochs and the count.
func checkIndex[K comparable](x *index[K]) error {
	for _, s := range x.root {
		if err := checkEpochs(s); err != nil {
			return err
		}
	}
	entries, pages := 0, 0
	v := x.present()
	last, begun := uint64(0), false
	for first, p := range v.pages() {
		if begun && first < last {
			return fmt.Errorf("the page at %x comes after one that ends at %x", first, last)
		}
		last, begun = first|lowBits(p.depth), true
		pages++
		if err := checkPage(x, first, p); err != nil {
			return err
		}
		entries += p.count()
	}
	if entries != x.entries {
		return fmt.Errorf("%d entries, the table counts %d", entries, x.entries)
	}
	if pages > x.pages {
		return fmt.Errorf("%d pages, the table counts %d", pages, x.pages)
	}
	return nil
}

func checkPage[K comparable](x *index[K], first uint64, p *page) error {
	var zero K
	if p.gate {
		return fmt.Errorf("a gate was walked")
	}
	for i := range uint(slotsPerPage) {
		if p.live>>i&1 == 0 {
			if *x.slots.at(p, i) != zero || p.tag(i) != 0 {
				return fmt.Errorf("a free slot keeps its key or tag")
			}
			continue
		}
		h := x.slots.hash(*x.slots.at(p, i))
		if p.tag(i) != tagOf(h) || (h^first)&^lowBits(p.depth) != 0 {
			return fmt.Errorf("a key lies where its hash does not lead")
		}
	}
	for _, w := range x.lay.words {
		if *word(p, w)&^p.live != 0 {
			return fmt.Errorf("a bit is set at a free slot")
		}
	}
	return nil
}

// checkEpochs: no segment may look older than what is in it.
func checkEpochs(s *segment) error {
	for _, p := range s.dir {
		if p.epoch > s.epoch {
			return fmt.Errorf("a page of epoch %d in a segment of epoch %d", p.epoch, s.epoch)
		}
	}
	for _, in := range s.inner {
		if in.epoch > s.epoch {
			return fmt.Errorf("a segment of epoch %d in one of epoch %d", in.epoch, s.epoch)
		}
		if err := checkEpochs(in); err != nil {
			return err
		}
	}
	return nil
}

func asInt(i uint64) int64   { return int64(i) }
func asText(i uint64) string { return fmt.Sprint("k", i) }

func TestRandomOperationsEqualTheModel(t *testing.T) {
	key := mustKey[int64](t)
	for _, c := range []struct {
		name string
		r    base.KeyGroupRange
		hash func(int64) uint64
		most int
	}{
		{"all", allGroups, nil, 1500},
		{"a third", base.RangeOf(1, 3), nil, 1000},
		{"few groups", base.KeyGroupRange{First: 16000, Last: 17000}, nil, 300},
		{"one hash", allGroups, func(int64) uint64 { return 42 }, 200},
		{"seven hashes", allGroups, func(k int64) uint64 { return key.Hash(k % 7) }, 500},
		{"three prefixes", allGroups, func(k int64) uint64 { return key.Hash(k%3)&^(1<<49-1) | key.Hash(k)>>15 }, 1000},
		{"no hash at all", allGroups, func(k int64) uint64 { return uint64(k) }, 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			newRig(t, 1, c.r, c.hash, asInt, c.most).run(600)
		})
	}
	t.Run("strings", func(t *testing.T) {
		newRig(t, 1, allGroups, nil, asText, 1000).run(600)
	})
}
