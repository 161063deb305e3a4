package state

// Reducing is a state of one value per key, into which others are merged by a function.
type Reducing[V any] struct {
	value  Value[V]
	reduce func(a, b V) V
}

// Bind declares the state in t.
func (r *Reducing[V]) Bind(t Table, s Spec) error { return r.value.bind(t, s, KindReducing) }

// Use sets the function that merges b, the newer, into a. It is called before the first Add, at the latest in Open.
func (r *Reducing[V]) Use(reduce func(a, b V) V) { r.reduce = reduce }

// Add merges v into the value of the current key; the first becomes the value.
func (r *Reducing[V]) Add(v V) {
	if r.reduce == nil {
		panic(noFunction(r.value.col.name(), "Add of a Reducing state before Use has set its function"))
	}
	if old, ok := r.value.Lookup(); ok {
		v = r.reduce(old, v)
	}
	r.value.Set(v)
}

// Get is the value of the current key; where it has none, the zero value.
func (r *Reducing[V]) Get() V { return r.value.Get() }

// Lookup is the value of the current key, and whether it has one.
func (r *Reducing[V]) Lookup() (V, bool) { return r.value.Lookup() }

// Clear removes the value of the current key.
func (r *Reducing[V]) Clear() { r.value.Clear() }

// Aggregate tells an Aggregating state how to gather elements in an accumulator (Flink's AggregateFunction).
type Aggregate[IN, ACC, OUT any] struct {
	New    func() ACC        // an empty accumulator; nil: the zero value
	Add    func(ACC, IN) ACC // the accumulator with one more element
	Result func(acc ACC) OUT // what the accumulator amounts to
}

// Aggregating is a state of one accumulator per key.
type Aggregating[IN, ACC, OUT any] struct {
	acc Value[ACC]
	how Aggregate[IN, ACC, OUT]
}

// Bind declares the state in t.
func (a *Aggregating[IN, ACC, OUT]) Bind(t Table, s Spec) error {
	return a.acc.bind(t, s, KindAggregating)
}

// Use sets the functions. It is called before the first Add, at the latest in Open.
func (a *Aggregating[IN, ACC, OUT]) Use(how Aggregate[IN, ACC, OUT]) { a.how = how }

// Add gathers v for the current key.
func (a *Aggregating[IN, ACC, OUT]) Add(v IN) {
	if a.how.Add == nil {
		panic(noFunction(a.acc.col.name(), "Add of an Aggregating state before Use has set its functions"))
	}
	acc, ok := a.acc.Lookup()
	if !ok && a.how.New != nil {
		acc = a.how.New()
	}
	a.acc.Set(a.how.Add(acc, v))
}

// Get is the result for the current key; where nothing was added, the zero value.
func (a *Aggregating[IN, ACC, OUT]) Get() OUT {
	out, _ := a.Lookup()
	return out
}

// Lookup is the result for the current key, and whether anything was added.
func (a *Aggregating[IN, ACC, OUT]) Lookup() (out OUT, ok bool) {
	acc, ok := a.acc.Lookup()
	if !ok {
		return out, false
	}
	if a.how.Result == nil {
		panic(noFunction(a.acc.col.name(), "Get of an Aggregating state before Use has set its functions"))
	}
	return a.how.Result(acc), true
}

// Clear removes the accumulator of the current key.
func (a *Aggregating[IN, ACC, OUT]) Clear() { a.acc.Clear() }

func noFunction(state, problem string) *UsageError {
	return &UsageError{State: state, Problem: problem + "; call it in Open"}
}

// name is the state's name; empty where the field was never bound.
func (c *valueColumn[V]) name() string {
	if c == nil {
		return ""
	}
	return c.spec.Name
}
