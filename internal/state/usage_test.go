package state

import (
	"errors"
	"strings"
	"testing"
)

// misuse is the panic of f.
func misuse(t *testing.T, f func()) (e *UsageError) {
	t.Helper()
	defer func() {
		r := recover()
		if err, ok := r.(error); !ok || !errors.As(err, &e) {
			t.Errorf("the panic is %v, want a *UsageError", r)
		}
	}()
	f()
	t.Error("no panic")
	return nil
}

func TestMisuseIsToldClearly(t *testing.T) {
	var now int64
	var s everyState
	k := NewKeyed(mustKey[int64](t), allGroups)
	s.bindAll(t, k)
	k.Open(func() int64 { return now })
	uses := map[string]func(s *everyState){
		"n":      func(s *everyState) { s.n.Get() },
		"text":   func(s *everyState) { s.text.Set("") },
		"big":    func(s *everyState) { s.big.Set([40]int64{}) },
		"slice":  func(s *everyState) { s.slice.Lookup() },
		"frozen": func(s *everyState) { s.frozen.Clear() },
		"sum":    func(s *everyState) { s.sum.Add(1) },
		"list":   func(s *everyState) { s.list.Add("") },
		"nested": func(s *everyState) { s.nested.Len() },
		"m":      func(s *everyState) { s.m.Get("") },
		"mm":     func(s *everyState) { s.mm.Put(1, nil) },
		"brief":  func(s *everyState) { s.brief.Get() },
		"briefs": func(s *everyState) { s.briefs.Clear() },
		"briefm": func(s *everyState) { s.briefm.Delete(1) },
	}
	for name, use := range uses {
		for what, prepare := range map[string]func(){
			"before any key": func() {},
			"after Leave":    func() { k.Seek(k.Hash(1), 1); k.Leave() },
			"after Snapshot": func() { k.Seek(k.Hash(1), 1); k.Snapshot(0, 0).Release() },
		} {
			prepare()
			if e := misuse(t, func() { use(&s) }); e != nil && (e.State != name || !strings.Contains(e.Error(), "outside a keyed call")) {
				t.Errorf("%s, %s: %v", name, what, e)
			}
		}
		var unbound everyState
		unbound.sum.Use(func(a, b int64) int64 { return a })
		if e := misuse(t, func() { use(&unbound) }); e != nil && !strings.Contains(e.Error(), "not part of an open operator") {
			t.Errorf("%s, unbound: %v", name, e)
		}
	}
	misuse(t, func() { k.Timers(true).Register(1) })
	misuse(t, func() { new(OperatorList[int]).Add(1) })
	misuse(t, func() { new(UnionList[int]).Len() })
	misuse(t, func() { new(BroadcastMap[int, int]).Put(1, 1) })
}

func TestBindRefuses(t *testing.T) {
	k := NewKeyed(mustKey[int64](t), allGroups)
	must(t, new(Value[int64]).Bind(k, Spec{Name: "s"}))
	for want, err := range map[string]error{
		`"s" is declared twice, as value of "long" and as map of "string" to "int"`: new(Map[string, int32]).Bind(k, Spec{Name: "s"}),
		`"s" is declared twice, as value of "long" and as value of "long"`:          new(Value[int64]).Bind(k, Spec{Name: "s"}),
		"has no name": new(Value[int64]).Bind(k, Spec{}),
		"negative":    new(Value[int64]).Bind(k, Spec{Name: "t", TTL: -1}),
		"chan":        new(Value[chan int]).Bind(k, Spec{Name: "c"}),
		"named":       new(Value[int]).Bind(k, Spec{Name: timersName}),
		"no keyed":    new(Value[int]).Bind(nil, Spec{Name: "n"}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %s", err, want)
		}
	}
	k.Open(func() int64 { return 0 })
	if err := new(Value[int64]).Bind(k, Spec{Name: "late"}); err == nil {
		t.Error("a state was declared after Open")
	}
}

func TestTheRecordPathAllocatesNothing(t *testing.T) {
	c := newCounter(t)
	c.run(0, 10_000, 5000, false)
	if n := testing.AllocsPerRun(20, func() { c.run(0, 1000, 5000, true) }); n != 0 {
		t.Errorf("%v allocations in 1,000 records of int64 keys", n)
	}
	var now int64
	var text Value[string]
	var big Value[[40]int64]
	var brief Value[int64]
	k := newKeyed[string](t, allGroups, &now, map[string]binder{"text": &text, "big": &big, "brief": &brief},
		Spec{Name: "text"}, Spec{Name: "big"}, Spec{Name: "brief", TTL: 100})
	step := func() {
		k.Seek(k.Hash("a key"), "a key")
		text.Set(text.Get())
		v := big.Get()
		v[3]++
		big.Set(v)
		brief.Set(brief.Get() + 1)
		k.Settle()
	}
	step()
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v allocations in a record of string keys", n)
	}
}

func TestEachMayWriteAndClear(t *testing.T) {
	c := newCounter(t)
	c.run(0, 5000, 1000, false)
	n := c.keyed.Len()
	seen := 0
	for k := range c.keyed.Each {
		c.keyed.Seek(c.keyed.Hash(k), k)
		c.count.Clear()
		c.keyed.Settle()
		c.keyed.Seek(c.keyed.Hash(k+1_000_000), k+1_000_000)
		c.count.Set(1)
		seen++
	}
	if seen != n || c.keyed.Len() != n || c.keyed.pinned != 0 {
		t.Errorf("saw %d of %d keys; %d are left, epoch %d is pinned", seen, n, c.keyed.Len(), c.keyed.pinned)
	}
	for range c.keyed.Each {
		break
	}
	if c.keyed.pinned != 0 {
		t.Error("a loop that was left pins its snapshot")
	}
}

func TestAggregating(t *testing.T) {
	type mean struct{ Sum, N int64 }
	var now int64
	var a Aggregating[int64, mean, float64]
	a.Use(Aggregate[int64, mean, float64]{
		Add:    func(m mean, v int64) mean { return mean{m.Sum + v, m.N + 1} },
		Result: func(m mean) float64 { return float64(m.Sum) / float64(m.N) },
	})
	k := newKeyed[string](t, allGroups, &now, map[string]binder{"mean": &a}, Spec{Name: "mean"})
	k.Seek(k.Hash("a"), "a")
	if _, ok := a.Lookup(); ok || a.Get() != 0 {
		t.Error("there is a result of nothing")
	}
	a.Add(1)
	a.Add(2)
	if a.Get() != 1.5 {
		t.Errorf("the mean is %v", a.Get())
	}
	a.Clear()
	k.Settle()
	if k.Len() != 0 {
		t.Error("the key is still there")
	}
}

func TestMapOrder(t *testing.T) {
	type place struct {
		Row  int8
		Name string
		ID   [2]byte
	}
	var now int64
	var m Map[place, int64]
	k := newKeyed[int64](t, allGroups, &now, map[string]binder{"m": &m}, Spec{Name: "m"})
	seek(k, 1)
	want := []place{{-1, "b", [2]byte{}}, {0, "", [2]byte{}}, {0, "a", [2]byte{0, 1}}, {0, "a", [2]byte{1, 0}}, {7, "", [2]byte{}}}
	for _, i := range []int{3, 1, 4, 0, 2} {
		m.Put(want[i], int64(i))
	}
	i := 0
	for p, v := range m.All() {
		if p != want[i] || v != int64(i) {
			t.Errorf("entry %d is %v: %d", i, p, v)
		}
		i++
	}
	if n := testing.AllocsPerRun(100, func() { m.Get(want[2]) }); n != 0 {
		t.Errorf("%v allocations to look a compound key up", n)
	}
}
