package weir_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/weirstream/weir"
)

// purse is what an older version of a program keeps of a key; purse2 what a newer one keeps.
type purse struct {
	Owner string
	Coins int32
	Gone  []string
}

type purse2 struct {
	Coins  int64
	Holder string `weir:"was=Owner"`
	Since  time.Time
}

// saving is a function of the older version, saving2 of the newer.
type saving struct {
	Purse Value[purse]                     `state:"purse"`
	Lanes Map[int32, purse]                `state:"lanes"`
	All   OperatorList[purse]              `state:"all"`
	Tests Aggregating[purse, purse, purse] `state:"sum"`
}

type saving2 struct {
	Purse Value[purse2]                       `state:"purse"`
	Lanes Map[int64, purse2]                  `state:"lanes"`
	All   OperatorList[purse2]                `state:"all"`
	Tests Aggregating[purse2, purse2, purse2] `state:"sum"`
}

func newSaving() *saving {
	f := &saving{}
	f.Tests.Fold = func(acc, v purse) purse { return purse{v.Owner, acc.Coins + v.Coins, nil} }
	f.Tests.Result = func(acc purse) purse { return acc }
	return f
}

func newSaving2() *saving2 {
	f := &saving2{}
	f.Tests.Fold = func(acc, v purse2) purse2 { return purse2{Holder: v.Holder, Coins: acc.Coins + v.Coins} }
	f.Tests.Result = func(acc purse2) purse2 { return acc }
	return f
}

func (f *saving) Process(ctx *KeyedContext[int32], v int64, _ Out[string]) error {
	p := purse{fmt.Sprint("owner ", ctx.Key()), f.Purse.Get().Coins + 1, []string{"x"}}
	f.Purse.Set(p)
	f.Lanes.Put(int32(v), p)
	f.All.Add(p)
	f.Tests.Add(purse{p.Owner, 1, nil})
	ctx.EventTimer(EndOfTime().Add(-time.Hour))
	return nil
}

func (f *saving) OnTimer(*KeyedContext[int32], Timer, Out[string]) error { return nil }

func (f *saving2) Process(ctx *KeyedContext[int64], v int64, _ Out[string]) error {
	p := f.Purse.Get()
	p.Coins += 1 << 40
	f.Purse.Set(p)
	return nil
}

func (f *saving2) OnTimer(ctx *KeyedContext[int64], _ Timer, out Out[string]) error {
	p, s := f.Purse.Get(), f.Tests.Get()
	out.Emit(fmt.Sprint("key ", ctx.Key(), ": ", p.Holder, " ", p.Coins, " ", p.Since.IsZero(), " ", f.Lanes.Len(), " ", s.Holder, " ", s.Coins))
	return nil
}

// A program with other types goes on with the state of the older one, at another parallelism; one key is touched, all are saved again by
// the newer and restored once more: each key is right.
func TestAChangedProgramKeepsItsState(t *testing.T) {
	for _, leave := range leaves {
		t.Run(leave.name, func(t *testing.T) { inLab(t, func(l *lab) { changeProgram(l, leave) }) })
	}
}

func changeProgram(l *lab, leave leave) {
	const keys = 20
	source, out := newTape[int64](2), &notes{}
	older := func(env *Env) *Env {
		env.From(source).UID("tape").KeyBy(func(v int64) int32 { return int32(v % keys) }).Process(newSaving()).UID("f").To(note[string](out)).UID("out")
		return env
	}
	newer := func(env *Env) *Env {
		env.From(source).UID("tape").KeyBy(func(v int64) int64 { return v % keys }).Process(newSaving2()).UID("f").To(note[string](out)).UID("out")
		return env
	}
	r := l.start(older(l.env(2)))
	for v := range int64(2 * keys) {
		source.write(int(v%2), v)
	}
	r.settle()
	r = l.start(newer(l.resumed(3, leave.do(r))))
	source.write(0, 7)
	r.settle()
	r = l.start(newer(l.resumed(1, leave.do(r))))
	source.end()
	r.finish()
	var want []string
	for k := range keys {
		coins := 2
		if k == 7 {
			coins += 1 << 40
		}
		want = append(want, fmt.Sprintf("key %d: owner %d %d true 2 owner %d 2", k, k, coins, k))
	}
	slices.Sort(want)
	expect(l, out.takeSorted(), want...)
}

// corner is a key as an older version of a program has it, turned what a newer one made of it; parted has nothing in common with a purse.
type (
	corner struct{ X, Y int16 }
	turned struct{ Y, X int16 }
	parted struct{ Street string }
)

// hoard has state of every kind; hoard2 the same states, each of a type that what is stored cannot become.
type hoard struct {
	Value Value[int64]                       `state:"value"`
	Array Value[[3]int32]                    `state:"array"`
	Small Value[int16]                       `state:"small"`
	Whole Value[purse]                       `state:"whole"`
	List  List[*int64]                       `state:"list"`
	Keys  Map[corner, int64]                 `state:"keys"`
	Sizes Map[[2]int32, int64]               `state:"sizes"`
	Inner Map[int64, []purse]                `state:"inner"`
	Sum   Aggregating[int64, float64, int64] `state:"sum"`
	All   OperatorList[string]               `state:"all"`
	Union UnionList[time.Time]               `state:"union"`
}

type hoard2 struct {
	Value  Value[int32]                       `state:"value"`
	Array  Value[[2]int32]                    `state:"array"`
	Small  Value[int8]                        `state:"small"`
	Whole  Value[parted]                      `state:"whole"`
	List   List[int64]                        `state:"list"`
	Keys   Map[turned, int64]                 `state:"keys"`
	Sizes  Map[[3]int32, int64]               `state:"sizes"`
	Inner  Map[int64, []int64]                `state:"inner"`
	Sum    Aggregating[int64, float32, int64] `state:"sum"`
	All    OperatorList[int64]                `state:"all"`
	Union  UnionList[uint32]                  `state:"union"`
	Opened *notes                             `weir:"shared"`
}

func (f *hoard) Process(ctx *KeyedContext[int64], v int64, _ Out[string]) error {
	f.Value.Set(v)
	f.Array.Set([3]int32{1, 2, 3})
	f.Small.Set(1)
	f.Whole.Set(purse{Coins: 1})
	f.List.Add(&v)
	f.Keys.Put(corner{1, 2}, v)
	f.Sizes.Put([2]int32{1, 2}, v)
	f.Inner.Put(v, []purse{{Coins: 1}})
	f.Sum.Add(v)
	f.All.Add("a")
	f.Union.Add(time.Unix(v, 0))
	return nil
}

func (f *hoard2) Open(OpenContext) error { f.Opened.add("opened"); return nil }

func (f *hoard2) Process(*KeyedContext[int64], int64, Out[string]) error { return nil }

// What no state can follow is refused before anything starts, whatever it is kept in: all of it at once, by operator, state and both types.
func TestWhatCannotMigrateStartsNothing(t *testing.T) {
	for _, leave := range leaves {
		t.Run(leave.name, func(t *testing.T) { inLab(t, func(l *lab) { refuseProgram(l, leave) }) })
	}
}

func refuseProgram(l *lab, leave leave) {
	source, opened := newTape[int64](2), &notes{}
	old := &hoard{}
	old.Sum.Fold = func(acc float64, v int64) float64 { return acc + float64(v) }
	old.Sum.Result = func(acc float64) int64 { return int64(acc) }
	r := l.start(func(env *Env) *Env {
		env.From(source).UID("tape").KeyBy(func(v int64) int64 { return v }).Process(old).UID("hoard").To(Discard[string]())
		return env
	}(l.env(2)))
	source.write(0, 1, 2, 3)
	source.write(1, 4, 5, 6)
	r.settle()
	at := leave.do(r)
	newer := func(key func(env *Env, f *hoard2) *Env) *Env {
		f := &hoard2{Opened: opened}
		f.Sum.Fold = func(acc float32, v int64) float32 { return acc + float32(v) }
		f.Sum.Result = func(acc float32) int64 { return int64(acc) }
		return key(l.resumed(3, at), f)
	}
	l.fails(newer(func(env *Env, f *hoard2) *Env {
		env.From(source).UID("tape").KeyBy(func(v int64) int64 { return v }).Process(f).UID("hoard").To(Discard[string]())
		return env
	}), "hoard",
		`state "value" (value): stored as long, declared as int: values would be cut; declare it as before`,
		`state "array" (value): stored as array of 3 int, declared as array of 2 int: an array keeps its length; declare a slice`,
		`state "small" (value): stored as int16, declared as int8: values would be cut`,
		`state "whole" (value): stored as purse{Owner, Coins, Gone}, declared as parted{Street}: they have no field in common`,
		`state "list" (list): stored as optional long, declared as long: there may be none`,
		`state "keys" (map), its keys: stored as corner{X, Y}, declared as turned{Y, X}: a key must keep its canonical bytes`,
		`state "sizes" (map), its keys: stored as array of 2 int, declared as array of 3 int: a key must keep its canonical bytes`,
		`state "inner" (map): field []: stored as purse, declared as long: the one cannot become the other`,
		`state "sum" (aggregating): stored as double, declared as float: values would be cut`,
		`state "all" (oplist): stored as string, declared as long: the one cannot become the other`,
		`state "union" (union): stored as time, declared as uint32: values would be cut`)
	l.fails(func(env *Env) *Env {
		env.From(source).UID("tape").KeyBy(func(v int64) string { return fmt.Sprint(v) }).Process(&stringKeyed{Opened: opened}).UID("hoard").To(Discard[string]())
		return env
	}(l.resumed(1, at)), "hoard", "the keys: stored as long, declared as string: a key must keep its canonical bytes")
	expect(l, opened.take())
}

// stringKeyed has a state of hoard's, with keys of another type.
type stringKeyed struct {
	Value  Value[int64] `state:"value"`
	Opened *notes       `weir:"shared"`
}

func (f *stringKeyed) Open(OpenContext) error { f.Opened.add("opened"); return nil }

func (f *stringKeyed) Process(*KeyedContext[string], int64, Out[string]) error { return nil }
