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
