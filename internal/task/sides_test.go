package task

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/operator"
	"github.com/weirstream/weir/internal/snapshot"
)

// TestNoRecordChangesSides drives a task with random records, barriers, watermarks, aborts and notifications on several
// channels, with an output that is full at times. Whatever the order:
//
//   - what a channel's records had done when checkpoint n was taken is exactly what its sender had sent before barrier n;
//   - the records of a channel act in the order in which they were sent;
//   - in the output, barrier n stands behind exactly the records that had acted.
func TestNoRecordChangesSides(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() {
		seeds = 20
	}
	taken := 0
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { taken += sides(t, rand.New(rand.NewPCG(seed, 1))) })
	}
	if taken < int(seeds) {
		t.Errorf("only %d snapshots were taken with %d seeds", taken, seeds)
	}
}

// crossing is one random run: what was sent, and what has acted.
type crossing struct {
	rig     *rig
	random  *rand.Rand
	sent    []int64                       // by channel: records
	barrier []base.CheckpointID           // by channel: the newest
	before  map[base.CheckpointID][]int64 // by checkpoint and channel: records sent before the barrier; -1: it was not sent
	acted   []int64                       // by channel: the last record
	frozen  map[base.CheckpointID][]int64 // acted, at the snapshots
	out     []int64                       // by channel: the last record in the output
	outAt   map[base.CheckpointID][]int64 // out, at the barriers
	problem func(format string, args ...any)
}

// perChannel keeps the two numbers of a record in one int64.
const perChannel = 1 << 32

func sides(t *testing.T, random *rand.Rand) int {
	n := 1 + random.IntN(4)
	c := &crossing{random: random, sent: make([]int64, n), barrier: make([]base.CheckpointID, n), acted: make([]int64, n), out: make([]int64, n),
		before: map[base.CheckpointID][]int64{}, frozen: map[base.CheckpointID][]int64{}, outAt: map[base.CheckpointID][]int64{}, problem: t.Errorf}
	acting := one(n, func(a *op, p *plan) {
		a.quiet = true
		a.record = c.act
		a.frozen = func(id base.CheckpointID) (operator.Part, error) {
			c.frozen[id] = slices.Clone(c.acted)
			return operator.Part{State: snapshot.Subtask{}}, nil
		}
		p.limits = exchange.Limits{Batches: 1 + random.IntN(3), Overdraft: random.IntN(3)}
		p.options.BatchMost = 1 + random.IntN(20)
	})
	rigged(t, acting, func(r *rig) {
		c.rig = r
		for range 150 {
			c.step()
		}
		for i := range n {
			for c.barrier[i] < slices.Max(c.barrier) {
				c.sendBarrier(i)
			}
		}
		for r.settle(); c.takeOne(); r.settle() {
		}
		c.check()
	})
	return len(c.frozen)
}

// act is the operator's code.
func (c *crossing) act(v int64) error {
	i, seq := v/perChannel, v%perChannel
	if seq != c.acted[i]+1 {
		return fmt.Errorf("record %d of channel %d acted after %d", seq, i, c.acted[i])
	}
	c.acted[i] = seq
	return nil
}

// step is one random event.
func (c *crossing) step() {
	i := c.random.IntN(len(c.sent))
	switch k := c.random.IntN(20); {
	case k < 9:
		c.sendRecords(i, 1+c.random.IntN(40))
	case k < 12:
		c.sendBarrier(i)
	case k < 13:
		c.rig.feeds[i].watermark(base.EventTime(c.random.IntN(1000)))
	case k < 14:
		c.rig.task.Abort(1+slices.Max(c.barrier)-base.CheckpointID(c.random.IntN(2)), 0)
	case k < 16:
		c.takeOne()
	case k < 18:
		c.rig.settle()
	default:
		for c.takeOne() {
		}
	}
}

func (c *crossing) sendRecords(i, n int) {
	vs := make([]int64, n)
	for j := range vs {
		c.sent[i]++
		vs[j] = int64(i)*perChannel + c.sent[i]
	}
	c.rig.feeds[i].send(vs...)
}

// sendBarrier sends the next barrier of channel i, which is at most 3 ahead of the others.
func (c *crossing) sendBarrier(i int) {
	if c.barrier[i] >= slices.Min(c.barrier)+3 {
		return
	}
	c.barrier[i]++
	id := c.barrier[i]
	if c.before[id] == nil {
		c.before[id] = make([]int64, len(c.sent))
	}
	c.before[id][i] = c.sent[i]
	c.rig.feeds[i].barrier(id)
}

// takeOne takes an element of the output; false: there is none.
func (c *crossing) takeOne() bool {
	_, e, ok := c.rig.out.Next()
	switch {
	case !ok:
		return false
	case e.Kind == exchange.Data:
		for _, v := range e.Payload.(*operator.Batch[int64]).Values {
			if i, seq := v/perChannel, v%perChannel; seq != c.out[i]+1 {
				c.problem("record %d of channel %d came out after %d", seq, i, c.out[i])
			} else {
				c.out[i] = seq
			}
		}
		e.Payload.Release()
	case e.Kind == exchange.Barrier:
		c.outAt[e.Barrier.ID] = slices.Clone(c.out)
	}
	return true
}

func (c *crossing) check() {
	for id, acted := range c.frozen {
		if !slices.Equal(acted, c.before[id]) {
			c.problem("checkpoint %d: acted %v, sent before the barriers %v", id, acted, c.before[id])
		}
		if !slices.Equal(c.outAt[id], acted) {
			c.problem("checkpoint %d: acted %v, in the output before the barrier %v", id, acted, c.outAt[id])
		}
	}
	if !slices.Equal(c.acted, c.sent) || !slices.Equal(c.out, c.sent) {
		c.problem("sent %v, acted %v, came out %v", c.sent, c.acted, c.out)
	}
	c.rig.settle()
	if c.rig.up.err != nil {
		c.problem("%v", c.rig.up.err)
	}
}
