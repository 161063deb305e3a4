package weirtest

import (
	"slices"
	"testing"
	"time"
)

// How many plans are tried to find a smaller one that fails, and how long.
const (
	shrinkMost = 60
	shrinkTime = 10 * time.Second
)

// shrink looks for the smallest plan that still fails: with fewer lives, fewer faults, one parallelism, ordinary conditions. A plan that does not
// fail may still be one that can, as goroutines run in another order each time, so each is tried twice.
func (r *crashes) shrink(t *testing.T, failed *trial) (least *trial, tries int) {
	t.Helper()
	least = failed
	began := time.Now()
	for smaller := true; smaller; {
		smaller = false
		for _, p := range simpler(least.plan) {
			for range 2 {
				if tries == shrinkMost || time.Since(began) > shrinkTime {
					return least, tries
				}
				tries++
				if tr := r.bubble(t, p); tr.err != nil {
					least, smaller = tr, true
					break
				}
			}
			if smaller {
				break
			}
		}
	}
	return least, tries
}

// simpler are the plans that are one step simpler, those that leave most away first.
func simpler(p trialPlan) (all []trialPlan) {
	add := func(change func(q *trialPlan)) {
		q := p
		q.Lives = slices.Clone(p.Lives)
		change(&q)
		all = append(all, q)
	}
	for i := range len(p.Lives) - 1 {
		add(func(q *trialPlan) { q.Lives = slices.Delete(q.Lives, i, i+1) })
	}
	for i, l := range p.Lives {
		if l.Fault > 0 {
			add(func(q *trialPlan) { q.Lives[i].Fault = 0 })
		}
		if i > 0 && l.Parallelism != p.Lives[0].Parallelism {
			add(func(q *trialPlan) { q.Lives[i].Parallelism = p.Lives[0].Parallelism })
		}
	}
	for i, l := range p.Lives {
		if l.Parallelism > 1 {
			add(func(q *trialPlan) {
				for j := i; j < len(q.Lives); j++ {
					q.Lives[j].Parallelism = 1
				}
			})
		}
	}
	if usual := (conditions{Interval: p.How.Interval, Work: p.How.Work, Slice: p.How.Slice}); p.How != usual {
		add(func(q *trialPlan) { q.How = usual })
	}
	return all
}
