package exchange

// Bell wakes one goroutine. Rings while it is awake are remembered as one: the owner looks at everything that could have
// rung before it waits.
type Bell chan struct{}

// NewBell makes a bell that has not rung.
func NewBell() Bell { return make(Bell, 1) }

// Ring wakes the owner, now or when it next waits. Any goroutine may ring.
func (b Bell) Ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}
