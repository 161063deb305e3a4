package weir

import (
	"fmt"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
)

// KeyedStream is a stream whose records of one key all go to one subtask, which has the key's state.
type KeyedStream[K comparable, T any] struct {
	s  Stream[T]
	by *keying[K, T]
}

// keying is how records are keyed.
type keying[K comparable, T any] struct {
	of   func(T) K
	keys *codec.Key[K]
}

// KeyBy keys the stream: f must return the same key for the same record whenever it is asked. All subtasks share f.
func (s Stream[T]) KeyBy[K comparable](f func(T) K) KeyedStream[K, T] {
	keys, err := codec.KeyFor[K]()
	if err != nil {
		s.env.problem("KeyBy (at %s): %v", userLine(), err)
	}
	by := &keying[K, T]{f, keys}
	return KeyedStream[K, T]{s.distributed(graph.Hash, &operator.Edge[T]{Hasher: by.hasher}), by}
}

// sliceMost is the most records that a keyed operator works on at once.
const sliceMost = 128

// hasher makes a function that hashes the keys of records.
func (by *keying[K, T]) hasher() func([]T, []uint64) error {
	var keys [sliceMost]K
	return func(values []T, hashes []uint64) error {
		for len(values) > 0 {
			n := min(len(values), sliceMost)
			for i := range values[:n] {
				keys[i] = by.of(values[i])
			}
			if !by.keys.AlwaysValid() {
				for _, k := range keys[:n] {
					if err := by.keys.Valid(k); err != nil {
						return err
					}
				}
			}
			by.keys.HashAll(hashes[:n], keys[:n])
			values, hashes = values[n:], hashes[n:]
		}
		clear(keys[:])
		return nil
	}
}

// keyedCore is what operators with keyed state share.
type keyedCore[K comparable, U any] struct {
	core[U]
	codec   *codec.Key[K]
	state   *state.Keyed[K]
	keyed   KeyedContext[K]
	timers  keyedTimers[K]
	onTimer timed[K, U] // nil: the function has no timers
	used    bool        // there is keyed state or there are timers
	pending base.EventTime
}

// init must be called on a new keyedCore, which then must not be copied.
func (o *keyedCore[K, U]) init(proto *prototype, keys *codec.Key[K]) {
	o.proto, o.codec, o.ctx = proto, keys, &o.keyed.Context
	o.keyed.timers = &o.timers
}

// prepare makes the state and the copy of the function.
func (o *keyedCore[K, U]) prepare(r base.KeyGroupRange) error {
	o.state = state.NewKeyed(o.codec, r)
	if err := o.instantiate(o.state); err != nil {
		return err
	}
	o.onTimer, o.timers.used = o.inst.function.(timed[K, U])
	o.used = o.inst.keyed || o.timers.used
	o.timers.event, o.timers.processing = o.state.Timers(true), o.state.Timers(false)
	return nil
}

// declare implements declared.
func (o *keyedCore[K, U]) declare() ([]snapshot.StateSchema, []sideOutput, error) {
	if o.codec == nil {
		return nil, nil, nil // KeyBy has reported it
	}
	if err := o.prepare(base.RangeOf(0, 1)); err != nil {
		return nil, nil, err
	}
	schemas := o.ops.Schemas()
	if o.used {
		schemas = append(o.state.Schemas(), schemas...)
	}
	return schemas, o.sides, nil
}

// Setup implements operator.Operator.
func (o *keyedCore[K, U]) Setup(rt *operator.Runtime) error {
	if err := o.prepare(rt.Range()); err != nil {
		return err
	}
	o.state.Open(rt.Now)
	o.pending = base.NoTime
	return o.core.Setup(rt)
}

// Watermark implements operator.Control: the timers up to t fire first, in slices.
func (o *keyedCore[K, U]) Watermark(t base.EventTime) error {
	o.pending = max(o.pending, t)
	return o.Continue()
}

// Behind implements operator.Lagging.
func (o *keyedCore[K, U]) Behind() bool { return o.pending > o.ctx.watermark }

// Continue implements operator.Lagging: a slice of timers fires; behind the last one goes the watermark.
func (o *keyedCore[K, U]) Continue() error {
	if o.onTimer != nil {
		if more, err := o.fire(true, o.pending); more || err != nil {
			return err
		}
	}
	return o.core.Watermark(o.pending)
}

// Deadline implements operator.Clocked.
func (o *keyedCore[K, U]) Deadline() (int64, bool) {
	if o.onTimer == nil {
		return 0, false
	}
	at, ok := o.timers.processing.Next()
	return int64(at), ok
}

// Tick implements operator.Clocked.
func (o *keyedCore[K, U]) Tick(now int64) error {
	_, err := o.fire(false, base.EventTime(now))
	return err
}

// fire calls OnTimer for a slice of the timers up to a time; more: there may be others.
func (o *keyedCore[K, U]) fire(event bool, upTo base.EventTime) (more bool, err error) {
	timers := o.state.Timers(event)
	before := o.Enter()
	for n := 0; ; n++ {
		if n == sliceMost {
			more = true
			break
		}
		hash, key, at, ok := timers.Pop(upTo)
		if !ok {
			break
		}
		if err := o.fireOne(hash, key, at, event); err != nil {
			return false, err
		}
	}
	o.timers.ending = false
	o.state.Leave()
	if err := o.flush(); err != nil {
		return false, err
	}
	o.Leave(before)
	return more, nil
}

func (o *keyedCore[K, U]) fireOne(hash uint64, key K, at base.EventTime, event bool) error {
	o.state.Seek(hash, key)
	o.keyed.key = key
	o.at(at)
	if !event {
		o.out.At(base.NoTime)
	}
	o.timers.ending, o.timers.firing = event && o.pending == base.EndOfTime, at
	if err := o.onTimer.OnTimer(&o.keyed, Timer{At: at.Time(), Event: event}, Out[U]{e: &o.out}); err != nil {
		return err
	}
	o.state.Settle()
	return nil
}

// EndOfData implements operator.Control: EndOfInput has no key.
func (o *keyedCore[K, U]) EndOfData(drained bool) error {
	o.state.Leave()
	return o.core.EndOfData(drained)
}

// Restore implements operator.Operator.
func (o *keyedCore[K, U]) Restore(r *operator.Restored) error {
	o.pending = max(r.Watermark, r.PendingWatermark)
	if !o.used {
		if err := refuse(r, keyedState); err != nil {
			return err
		}
		return o.core.restoreUnkeyed(r)
	}
	if err := restoreKeyedState(o.state, r); err != nil {
		return err
	}
	o.warnOfDropped(o.state.Dropped())
	return o.core.restoreUnkeyed(r)
}

// Snapshot implements operator.Operator.
func (o *keyedCore[K, U]) Snapshot(c operator.Cut) (operator.Part, error) {
	part, err := o.core.Snapshot(c)
	if o.Behind() {
		part.State.PendingWatermark = o.pending
	}
	if !o.used || err != nil {
		return part, err
	}
	addKeyedState(&part, o.Runtime, o.snapshotOf(c), c.Lasting)
	return part, nil
}

// snapshotOf freezes the keyed state. What no later checkpoint may refer to is not remembered.
func (o *keyedCore[K, U]) snapshotOf(c operator.Cut) *state.KeyedSnapshot {
	if !c.Lasting {
		return o.state.Snapshot(0, c.Base)
	}
	return o.state.Snapshot(c.ID, c.Base)
}

// Abort implements operator.Operator.
func (o *keyedCore[K, U]) Abort(id base.CheckpointID) error {
	o.state.Forget(id)
	return o.core.Abort(id)
}

// each calls f for each record of a batch, with its key's state at hand.
func each[K comparable, T, U any](o *keyedCore[K, U], by *keying[K, T], keys *[sliceMost]K, b *operator.Batch[T], f func(*KeyedContext[K], T, Out[U]) error) error {
	before := o.Enter()
	out := Out[U]{e: &o.out}
	for from := 0; from < len(b.Values); from += sliceMost {
		to := min(from+sliceMost, len(b.Values))
		values, times, hashes := b.Values[from:to], b.Times[from:to], b.Hashes[from:to]
		ks := keys[:len(values)]
		for i := range values {
			ks[i] = by.of(values[i])
		}
		touched := o.used && o.state.Touch(hashes)
		for i := range values {
			o.keyed.key = ks[i]
			o.at(times[i])
			switch {
			case touched:
				o.state.SeekTouched(i, hashes[i], ks[i])
			case o.used:
				o.state.Seek(hashes[i], ks[i])
			}
			if err := f(&o.keyed, values[i], out); err != nil {
				return fmt.Errorf("%w (key %v)", err, ks[i])
			}
			if o.used {
				o.state.Settle()
			}
		}
		o.state.Leave()
	}
	err := o.flush()
	if err == nil {
		o.Leave(before)
	}
	return err
}

// methodsOfKeyed are the optional methods of a function with keys.
func methodsOfKeyed[K comparable, U any]() []optional {
	return append(methodsOf[U](), optionalOf[timed[K, U]]("OnTimer"))
}

// Process applies a function with keyed state.
func (k KeyedStream[K, T]) Process[U any](f KeyedFunction[K, T, U]) Stream[U] {
	return k.process[U]("KeyedProcess", f)
}

func (k KeyedStream[K, T]) process[U any](name string, f KeyedFunction[K, T, U]) Stream[U] {
	proto := inspect(f, methodsOfKeyed[K, U]()).withoutBroadcast()
	n := addNode[U](k.s.env, name, proto, func() operator.Operator {
		o := &keyedProcess[K, T, U]{by: k.by}
		o.init(proto, k.by.keys)
		return o
	})
	k.s.into(n, 0)
	return from[U](k.s.env, n)
}

// keyedProcess is the operator of a KeyedFunction.
type keyedProcess[K comparable, T, U any] struct {
	keyedCore[K, U]
	by   *keying[K, T]
	keys [sliceMost]K
	f    KeyedFunction[K, T, U]
}

// Input implements operator.Operator.
func (o *keyedProcess[K, T, U]) Input(int) any { return operator.In[T](o) }

// Setup implements operator.Operator.
func (o *keyedProcess[K, T, U]) Setup(rt *operator.Runtime) error {
	if err := o.keyedCore.Setup(rt); err != nil {
		return err
	}
	o.f = o.inst.function.(KeyedFunction[K, T, U])
	return nil
}

// Push implements operator.In.
func (o *keyedProcess[K, T, U]) Push(b *operator.Batch[T]) error {
	return each(&o.keyedCore, o.by, &o.keys, b, o.f.Process)
}

// Reduce merges the records of each key into one, and emits the result after each record. f may change a in place.
func (k KeyedStream[K, T]) Reduce(f func(a, b T) T) Stream[T] {
	r := &reduce[K, T]{f: f}
	if c, err := codec.For[T](); err == nil && !c.Flat() { // of an error the declaration of Acc tells
		r.clone = c.Clone
	}
	return k.process[T]("Reduce", r)
}

// reduce keeps a copy of what it emits, so that what f changes is nobody else's.
type reduce[K comparable, T any] struct {
	f     func(a, b T) T
	clone func(T) T // nil: a T refers to nothing
	Acc   Value[T]  `state:"reduce"`
}

// Process implements KeyedFunction.
func (r *reduce[K, T]) Process(_ *KeyedContext[K], v T, out Out[T]) error {
	if old, ok := r.Acc.Lookup(); ok {
		v = r.f(old, v)
	}
	own := v
	if r.clone != nil {
		own = r.clone(v)
	}
	r.Acc.Set(own)
	out.Emit(v)
	return nil
}

// Scan keeps a state of type S for each key, the zero S at first, and makes of the state and each record the next state and
// a record to emit, which must not refer to what f changes in s later. state is the name of the state.
func (k KeyedStream[K, T]) Scan[S, U any](state string, f func(s S, v T) (S, U)) Stream[U] {
	return k.process[U]("Scan", &scan[K, T, S, U]{f: f, name: state})
}

type scan[K comparable, T, S, U any] struct {
	f    func(S, T) (S, U)
	name string
	Acc  Value[S] `state:"scan"`
}

func (s *scan[K, T, S, U]) stateName(string) string { return s.name }

// Process implements KeyedFunction.
func (s *scan[K, T, S, U]) Process(_ *KeyedContext[K], v T, out Out[U]) error {
	next, u := s.f(s.Acc.Get(), v)
	s.Acc.Set(next)
	out.Emit(u)
	return nil
}

// Connect joins this stream and another, keyed by keys of the same type, at one operator.
func (k KeyedStream[K, T]) Connect[B any](b KeyedStream[K, B]) KeyedConnected[K, T, B] {
	return KeyedConnected[K, T, B]{k, b}
}

// KeyedConnected is two streams keyed alike.
type KeyedConnected[K comparable, A, B any] struct {
	a KeyedStream[K, A]
	b KeyedStream[K, B]
}

// Process applies a function with keyed state to both streams.
func (c KeyedConnected[K, A, B]) Process[U any](f KeyedCoFunction[K, A, B, U]) Stream[U] {
	proto := inspect(f, methodsOfKeyed[K, U]()).withoutBroadcast()
	e := c.a.s.env
	n := addNode[U](e, "KeyedCoProcess", proto, func() operator.Operator {
		o := &keyedCoProcess[K, A, B, U]{a: c.a.by, b: c.b.by}
		o.init(proto, c.a.by.keys)
		return o
	})
	c.a.s.into(n, 0)
	c.b.s.into(n, 1)
	return from[U](e, n)
}

// keyedCoProcess is the operator of a KeyedCoFunction.
type keyedCoProcess[K comparable, A, B, U any] struct {
	keyedCore[K, U]
	a    *keying[K, A]
	b    *keying[K, B]
	keys [sliceMost]K
	f    KeyedCoFunction[K, A, B, U]
}

// Input implements operator.Operator.
func (o *keyedCoProcess[K, A, B, U]) Input(i int) any {
	if i == 0 {
		return operator.In[A](input[A]{o, func(b *operator.Batch[A]) error { return each(&o.keyedCore, o.a, &o.keys, b, o.f.Process1) }})
	}
	return operator.In[B](input[B]{o, func(b *operator.Batch[B]) error { return each(&o.keyedCore, o.b, &o.keys, b, o.f.Process2) }})
}

// Setup implements operator.Operator.
func (o *keyedCoProcess[K, A, B, U]) Setup(rt *operator.Runtime) error {
	if err := o.keyedCore.Setup(rt); err != nil {
		return err
	}
	o.f = o.inst.function.(KeyedCoFunction[K, A, B, U])
	return nil
}

// ConnectBroadcast joins this stream and a broadcast one at one operator.
func (k KeyedStream[K, T]) ConnectBroadcast[B any](b BroadcastStream[B]) KeyedBroadcast[K, T, B] {
	return KeyedBroadcast[K, T, B]{k, b}
}

// KeyedBroadcast is a keyed stream and a broadcast one.
type KeyedBroadcast[K comparable, A, B any] struct {
	a KeyedStream[K, A]
	b BroadcastStream[B]
}

// Process applies a function with keyed and broadcast state.
func (c KeyedBroadcast[K, A, B]) Process[U any](f BroadcastFunction[K, A, B, U]) Stream[U] {
	proto := inspect(f, methodsOfKeyed[K, U]())
	e := c.a.s.env
	n := addNode[U](e, "KeyedBroadcastProcess", proto, func() operator.Operator {
		o := &keyedBroadcast[K, A, B, U]{by: c.a.by}
		o.init(proto, c.a.by.keys)
		return o
	})
	c.a.s.into(n, 0)
	c.b.s.into(n, 1)
	return from[U](e, n)
}

// keyedBroadcast is the operator of a BroadcastFunction.
type keyedBroadcast[K comparable, A, B, U any] struct {
	keyedCore[K, U]
	by   *keying[K, A]
	keys [sliceMost]K
	f    BroadcastFunction[K, A, B, U]
}

// Input implements operator.Operator.
func (o *keyedBroadcast[K, A, B, U]) Input(i int) any {
	if i == 0 {
		return operator.In[A](input[A]{o, func(b *operator.Batch[A]) error { return each(&o.keyedCore, o.by, &o.keys, b, o.f.Process) }})
	}
	return operator.In[B](input[B]{o, func(b *operator.Batch[B]) error {
		o.inst.locked = false
		err := run(&o.core, b, o.f.ProcessBroadcast)
		o.inst.locked = true
		return err
	}})
}

// Setup implements operator.Operator.
func (o *keyedBroadcast[K, A, B, U]) Setup(rt *operator.Runtime) error {
	if err := o.keyedCore.Setup(rt); err != nil {
		return err
	}
	o.f = o.inst.function.(BroadcastFunction[K, A, B, U])
	return nil
}

// Open implements operator.Operator: Open may fill a BroadcastMap, because it does so on every subtask.
func (o *keyedBroadcast[K, A, B, U]) Open() error {
	err := o.keyedCore.Open()
	o.inst.locked = true
	return err
}
