package weirtest

import (
	"fmt"

	"github.com/weirstream/weir/internal/graph"
	"github.com/weirstream/weir/internal/operator"
)

// guard has report hear of records of a job that are changed after they were emitted, and hear, where it is not nil, of each run of records
// that an operator emits.
func guard(g *graph.Job, report func(error), hear func(from *graph.Node, records int) error) {
	for _, v := range g.Vertices {
		for _, e := range v.Inner {
			e.Wire = guardedWire{Wire: e.Wire.(operator.Wire), from: v.Node(e.From), report: report, hear: hear}
		}
		for _, l := range v.Outputs {
			l.Edge.Wire = guardedWire{Wire: l.Edge.Wire.(operator.Wire), from: v.Node(l.Edge.From), report: report, hear: hear}
		}
	}
}

// guardedWire watches over the records that go along an edge.
type guardedWire struct {
	operator.Wire
	from   *graph.Node
	report func(error)
	hear   func(from *graph.Node, records int) error
}

// Chain implements operator.Wire.
func (w guardedWire) Chain(from, to operator.Operator, tag string, input int) error {
	w.watch(from, tag)
	return w.Wire.Chain(from, to, tag, input)
}

// Writer implements operator.Wire.
func (w guardedWire) Writer(from operator.Operator, tag string, s operator.Sending) (operator.Writer, error) {
	w.watch(from, tag)
	return w.Wire.Writer(from, tag, s)
}

func (w guardedWire) watch(from operator.Operator, tag string) {
	out, ok := from.Output(tag).(operator.Guarded)
	if !ok {
		return
	}
	out.Guard(func(err error) { w.report(fmt.Errorf("operator %s: %w", w.from.Label(), err)) })
	if w.hear != nil {
		out.Hear(func(records int) error { return w.hear(w.from, records) })
	}
}
