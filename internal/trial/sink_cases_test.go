package trial

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// B106: the process dies when the checkpoint is stored and nobody has heard of it. B107 (a): the next one restores, commits and
// dies at once; the one after it restores the same checkpoint again.
func TestRestoredTwice(t *testing.T) {
	onStand(t, func(s *stand) {
		env := s.env(2, seldom)
		buildTotals(env, s.stage(1000, 1000))
		r := s.start(env)
		pass(300 * time.Millisecond)
		from := r.checkpoint()
		pass(100 * time.Millisecond)
		r.crash()
		for range 2 {
			env := s.resumed(2, seldom, from)
			buildTotals(env, s.stage(1000, 1000))
			s.start(env).crash()
		}
		env = s.resumed(3, seldom, from)
		buildTotals(env, s.stage(1000, 0))
		s.start(env).finish()
		s.expect(wantTotals(1000))
	})
}

// uncommitted runs J1 to a checkpoint that is stored but not committed, and then has happen to its transactions what
// happen says.
func (s *stand) uncommitted(happen func(*broker)) string {
	s.broker.fault = func(op string) (before, after error) {
		if op == "commit" {
			return errPlanted, nil // so it is asked for again and again
		}
		return nil, nil
	}
	env := s.env(2, seldom)
	buildTotals(env, s.stage(1000, 1000))
	r := s.start(env)
	pass(300 * time.Millisecond)
	from := r.checkpoint()
	r.crash()
	happen(s.broker)
	return from
}

// B107 (b), B109: a transaction that was aborted, or that the broker does not know any more, is data lost: the job FAILS and says
// so, once; it does not restart for ever, nor go on as if nothing were.
func TestATransactionIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		happen func(*broker)
		want   error
	}{
		"aborted": {func(b *broker) {
			for _, id := range b.left() {
				b.txns[id].State = aborted
			}
		}, errAborted},
		"forgotten": {func(b *broker) { clear(b.txns) }, errUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			onStand(t, func(s *stand) {
				from := s.uncommitted(c.happen)
				env := s.resumed(2, 10*time.Millisecond, from)
				buildTotals(env, s.stage(1000, 0))
				s.start(env).fails("FAILED", c.want.Error(), "stand/")
			})
		})
	}
}

// B110: open transactions of subtasks that are no more keep readers waiting. Four die before the first checkpoint; two, and then
// five, start anew.
func TestLingeringTransactions(t *testing.T) {
	onStand(t, func(s *stand) {
		other, _ := s.broker.register("stand10", 3, 4) // another job, whose name begins alike
		if err := s.broker.send("theirs", "stand10/3", other, []string{"x"}); err != nil {
			s.Fatal(err)
		}
		for _, p := range []int{4, 2, 5} {
			env := s.env(p, seldom)
			buildTotals(env, s.stage(2000, 1000))
			r := s.start(env)
			for _, id := range s.broker.left() {
				if id != "theirs" {
					s.Error("still there when the next has started: ", id)
				}
			}
			pass(900 * time.Millisecond)
			if n := len(s.broker.left()); n != p+1 {
				s.Errorf("%d transactions are open, want %d", n, p+1)
			}
			r.crash()
		}
		env := s.env(2, seldom)
		buildTotals(env, s.stage(500, 0))
		s.start(env).finish()
		s.expect(wantTotals(500))
		same(s.T, s.broker.left(), "theirs")
	})
}

// B112: no records come between two checkpoints, and none is committed of nothing.
func TestAnEmptyTransaction(t *testing.T) {
	onStand(t, func(s *stand) {
		env := s.env(2, seldom)
		buildTotals(env, s.stage(100, 0.001))
		r := s.start(env)
		r.checkpoint()
		from := r.checkpoint()
		r.crash()
		if n := len(s.broker.txns); n > 2 {
			s.Errorf("there are %d transactions", n)
		}
		env = s.resumed(2, seldom, from)
		buildTotals(env, s.stage(100, 0))
		s.start(env).finish()
		s.expect(wantTotals(100))
	})
}

// B113: the answer to a commit is lost, whether the broker has done it or not. B115: the commits beside it go on.
func TestAnAmbiguousCommit(t *testing.T) {
	for _, done := range []bool{false, true} {
		onStand(t, func(s *stand) {
			var n atomic.Int64
			s.broker.fault = func(op string) (before, after error) {
				if op != "commit" {
					return nil, nil
				}
				if n.Add(1)%3 == 0 {
					return nil, nil
				}
				if done {
					return nil, fmt.Errorf("time-out")
				}
				return fmt.Errorf("time-out"), nil
			}
			env := s.env(5, 20*time.Millisecond)
			buildTotals(env, s.stage(1000, 3000))
			s.start(env).finish()
			s.expect(wantTotals(1000))
			if n.Load() < 10 {
				s.Error("only", n.Load(), "commits")
			}
		})
	}
}

// B104: notifications come late, doubled, out of order and not at all; what is committed is committed once.
func TestNotificationsAstray(t *testing.T) {
	for seed := range uint64(10) {
		onStand(t, func(s *stand) {
			m := &messageFaults{Types: []string{"Complete"}, PerMille: 300, Most: 8, rng: randOf(seed)}
			s.carry = m.carry
			env := s.env(2, 20*time.Millisecond).Set("execution.checkpointing.max-concurrent-checkpoints", 2)
			buildTotals(env, s.stage(1000, 2000))
			s.start(env).finish()
			s.expect(wantTotals(1000))
		})
	}
}

// B146: the process dies between any two operations on its disk while the job ends. What then goes on from the latest finds a
// checkpoint, or hears that the job has FINISHED; never that there is nothing.
func TestACrashAtEveryStepOfTheEnd(t *testing.T) {
	onStand(t, func(s *stand) {
		var mu sync.Mutex
		var clones []world // protected by mu
		s.fs = everyStep(s.disk, func() {
			mu.Lock()
			defer mu.Unlock()
			clones = append(clones, world{s.disk.CrashClone(nil), s.broker.clone()})
		})
		env := s.env(1, seldom)
		buildTotals(env, s.stage(20, 0))
		s.start(env).finish()
		s.fs = nil
		committed := 0
		for i, w := range clones {
			if s.world = w; len(w.broker.read()) == 0 {
				continue // before the first and last checkpoint
			}
			committed++
			env := s.resumed(1, seldom, "latest")
			buildTotals(env, s.stage(20, 0))
			if err := s.try(env).wait(); err != nil && !strings.Contains(err.Error(), "has FINISHED") {
				s.Errorf("after operation %d: %v", i, err)
			}
			s.expect(wantTotals(20))
		}
		if committed < 3 {
			s.Error("only", committed, "steps")
		}
	})
}
