package operator

// Inspected is an operator that a test may look into, between two of its calls.
type Inspected interface {
	// Function is the subtask's copy of the user's function; nil: there is none, or it is built in.
	Function() any
	// States are the names of the declared states.
	States() []string
	// Field is the bound field of a declared state, a *weir.Value and so on; nil: there is none of that name.
	Field(state string) any
}

// InspectedByKey is Inspected where there is state by key.
type InspectedByKey interface {
	Inspected
	// HashOf is the hash of a key; an error where it is of another type than the operator's keys, or not valid.
	HashOf(key any) (uint64, error)
	// WithKey calls look while a key is the current one.
	WithKey(key any, look func()) error
	// Keys yields all keys that have state, with their hashes; meanwhile nothing else may be called.
	Keys(yield func(key any, hash uint64) bool)
	// AppendState writes all states of the current key behind dst, equal ones as equal bytes.
	AppendState(dst []byte) ([]byte, error)
	// Timers is the number of timers, of event time or processing time.
	Timers(event bool) int
}
