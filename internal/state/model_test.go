package state

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/base"
)

// everyState has a column of every kind: plain, boxed, cloned, expiring.
type everyState struct {
	n      Value[int64]
	text   Value[string]
	big    Value[[40]int64]
	slice  Value[[]int64]
	frozen Value[[]int64] // immutable
	sum    Reducing[int64]
	list   List[string]
	nested List[[]int64]
	m      Map[string, int64]
	mm     Map[int64, []int64]
	brief  Value[int64] // these expire
	briefs List[int64]
	briefm Map[int64, string]
}

const brief = 100 * time.Nanosecond

// bindAll binds all fields.
func (s *everyState) bindAll(t testing.TB, k Table) {
	t.Helper()
	s.sum.Use(func(a, b int64) int64 { return a + b })
	for name, f := range s.fields() {
		spec := Spec{Name: name, Immutable: name == "frozen"}
		if strings.HasPrefix(name, "brief") {
			spec.TTL = brief
		}
		must(t, f.Bind(k, spec))
	}
}

func (s *everyState) fields() func(func(string, binder) bool) {
	return func(yield func(string, binder) bool) {
		_ = yield("n", &s.n) && yield("text", &s.text) && yield("big", &s.big) && yield("slice", &s.slice) &&
			yield("frozen", &s.frozen) && yield("sum", &s.sum) && yield("list", &s.list) && yield("nested", &s.nested) &&
			yield("m", &s.m) && yield("mm", &s.mm) && yield("brief", &s.brief) && yield("briefs", &s.briefs) &&
			yield("briefm", &s.briefm)
	}
}

// show tells the states of the current key.
func (s *everyState) show() string {
	var b strings.Builder
	if v, ok := s.n.Lookup(); ok {
		fmt.Fprint(&b, "n", v)
	}
	if v, ok := s.text.Lookup(); ok {
		fmt.Fprint(&b, " text", v)
	}
	if v, ok := s.big.Lookup(); ok {
		fmt.Fprint(&b, " big", v[0], v[39])
	}
	if v, ok := s.slice.Lookup(); ok {
		fmt.Fprint(&b, " slice", v)
	}
	if v, ok := s.frozen.Lookup(); ok {
		fmt.Fprint(&b, " frozen", v)
	}
	if v, ok := s.sum.Lookup(); ok {
		fmt.Fprint(&b, " sum", v)
	}
	showAll(&b, "list", slices.Collect(s.list.All()), s.list.Len())
	showAll(&b, "nested", slices.Collect(s.nested.All()), s.nested.Len())
	showAll(&b, "m", maps.Collect(s.m.All()), s.m.Len())
	showAll(&b, "mm", maps.Collect(s.mm.All()), s.mm.Len())
	if v, ok := s.brief.Lookup(); ok {
		fmt.Fprint(&b, " brief", v)
	}
	showAll(&b, "briefs", slices.Collect(s.briefs.All()), s.briefs.Len())
	showAll(&b, "briefm", maps.Collect(s.briefm.All()), s.briefm.Len())
	return b.String()
}

func showAll(b *strings.Builder, name string, vs any, n int) {
	if n > 0 {
		fmt.Fprint(b, " ", name, n, vs)
	}
}

// stamped is a value of the model that expires.
type stamped[V any] struct {
	v  V
	at int64
}

func (s stamped[V]) lives(now int64) bool { return s.at+int64(brief) > now }

// entryModel is what the states of a key must be.
type entryModel struct {
	n, sum        *int64
	text          *string
	big           *[40]int64
	slice, frozen []int64
	list          []string
	nested        [][]int64
	m             map[string]int64
	mm            map[int64][]int64
	brief         *stamped[int64]
	briefs        []stamped[int64]
	briefm        map[int64]stamped[string]
}

func (e *entryModel) clone() *entryModel {
	c := *e
	c.slice = slices.Clone(e.slice)
	c.nested = nil
	for _, v := range e.nested {
		c.nested = append(c.nested, slices.Clone(v))
	}
	c.list, c.briefs = slices.Clone(e.list), slices.Clone(e.briefs)
	c.m, c.briefm = maps.Clone(e.m), maps.Clone(e.briefm)
	c.mm = map[int64][]int64{}
	for k, v := range e.mm {
		c.mm[k] = slices.Clone(v)
	}
	return &c
}

// show is what everyState.show must be.
func (e *entryModel) show(now int64) string {
	var b strings.Builder
	showOne(&b, "n", e.n)
	showOne(&b, " text", e.text)
	if e.big != nil {
		fmt.Fprint(&b, " big", e.big[0], e.big[39])
	}
	if e.slice != nil {
		fmt.Fprint(&b, " slice", e.slice)
	}
	if e.frozen != nil {
		fmt.Fprint(&b, " frozen", e.frozen)
	}
	showOne(&b, " sum", e.sum)
	showAll(&b, "list", e.list, len(e.list))
	showAll(&b, "nested", e.nested, len(e.nested))
	showAll(&b, "m", e.m, len(e.m))
	showAll(&b, "mm", e.mm, len(e.mm))
	if e.brief != nil && e.brief.lives(now) {
		showOne(&b, " brief", &e.brief.v)
	}
	var briefs []int64
	for _, s := range e.briefs {
		if s.lives(now) {
			briefs = append(briefs, s.v)
		}
	}
	showAll(&b, "briefs", briefs, len(briefs))
	briefm := map[int64]string{}
	for k, s := range e.briefm {
		if s.lives(now) {
			briefm[k] = s.v
		}
	}
	showAll(&b, "briefm", briefm, len(briefm))
	return b.String()
}

func showOne[T any](b *strings.Builder, name string, v *T) {
	if v != nil {
		fmt.Fprint(b, name, *v)
	}
}

// model is a whole Keyed: entries and event timers.
type model[K comparable] struct {
	entries map[K]*entryModel
	timers  map[timer[K]]bool
}

func (m *model[K]) clone() *model[K] {
	c := &model[K]{map[K]*entryModel{}, maps.Clone(m.timers)}
	for k, e := range m.entries {
		c.entries[k] = e.clone()
	}
	return c
}

// within is the part of the model whose hashes are in r.
func (m *model[K]) within(hash func(K) uint64, r base.KeyGroupRange) *model[K] {
	least, most := r.Hashes()
	out := func(k K) bool { return hash(k) < least || hash(k) > most }
	c := &model[K]{maps.Clone(m.entries), maps.Clone(m.timers)}
	maps.DeleteFunc(c.entries, func(k K, _ *entryModel) bool { return out(k) })
	maps.DeleteFunc(c.timers, func(x timer[K], _ bool) bool { return out(x.key) })
	return c
}

// diff says how k, with fields s, differs from the model at now.
func (m *model[K]) diff(k *Keyed[K], s *everyState, now int64) error {
	seen := 0
	for key := range k.Each {
		k.Seek(k.Hash(key), key)
		got, want := s.show(), ""
		if e := m.entries[key]; e != nil {
			want = e.show(now)
		}
		if got != want {
			return fmt.Errorf("key %v:\n got %s\nwant %s", key, got, want)
		}
		if got != "" {
			seen++
		}
	}
	k.Leave()
	for _, e := range m.entries {
		if e.show(now) != "" {
			seen--
		}
	}
	if seen != 0 {
		return fmt.Errorf("%d keys too many", seen)
	}
	return m.diffTimers(k.Timers(true))
}

func (m *model[K]) diffTimers(t *Timers[K]) error {
	if t.Len() != len(m.timers) {
		return fmt.Errorf("%d timers, want %d", t.Len(), len(m.timers))
	}
	for _, p := range t.set.view().pages() {
		for i := range uint(slotsPerPage) {
			if x := *t.set.slots.at(p, i); p.live>>i&1 == 1 && !m.timers[x] {
				return fmt.Errorf("timer %v is not in the model", x)
			}
		}
	}
	return nil
}
