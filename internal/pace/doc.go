// Package pace holds a source back to a number of records a second.
//
// It hides how time becomes records: how much of the time that nothing was read in is made up for, how often a waiting reader
// is woken, and whose clock is read. The readers of several connectors share it, so that a rate means the same everywhere.
//
// The only noun is the [Pacer]; one belongs to one reader. Before it emits, a reader takes as many records as it may emit, and
// returns those that it then did not have:
//
//	n := p.Take(most)
//	for ; n > 0 && r.has(); n-- {
//		out.Emit(r.next())
//	}
//	p.Return(n)
//
// Invariants:
//
//  1. In any span of time d, at most rate * (d + burst) records are taken, and always at least one may be.
//  2. A Take that gave nothing is followed by a call of wake, unless the Pacer is closed first.
//
// There is no goroutine; wake is called by a timer of the runtime's.
package pace
