package trial

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/jobmaster"
)

// copyJob copies the records of partitions to the broker.
func (s *stand) copyJob(env *weir.Env, from partitionSource) *weir.Env {
	from.faults = s.faults
	env.From(from).UID("partitions").Rebalance().Map(func(v string) string { return v }).To(topic{s.broker, s.faults}.sink()).UID("copy")
	return env
}

// all is every record of every partition from its oldest on.
func (ps *partitions) all() bag {
	b := bag{}
	for _, l := range ps.logs {
		for _, r := range l.records[l.oldest:] {
			b.add(r)
		}
	}
	return b
}

// B118: every list of the partitions is in another order, and yet each has one reader, in every life, also where there are more
// subtasks than partitions. A subtask that is restored without partitions does not take them all.
func TestShuffledMetadata(t *testing.T) {
	onStand(t, func(s *stand) {
		ps := newPartitions("a-0", "a-1", "a-2", "a-3", "b-0", "b-1", "b-2")
		source := partitionSource{partitions: ps, discover: 50 * time.Millisecond}
		var env *weir.Env
		for life := range 20 {
			p := []int{3, 10, 3, 1, 3}[life%5]
			if env = s.env(p, seldom); life > 0 {
				env = s.resumed(p, seldom, "latest")
			}
			r := s.start(s.copyJob(env, source))
			pass(120 * time.Millisecond) // discoveries
			for name := range ps.logs {
				ps.write(name, 3)
			}
			synctest.Wait()
			r.checkpoint()
			for name, readers := range ps.readers {
				if len(readers) != 1 {
					s.Errorf("life %d at parallelism %d: partition %s is read by %v", life, p, name, readers)
				}
			}
			clear(ps.readers)
			for name := range ps.logs {
				ps.write(name, 2) // these are read again
			}
			synctest.Wait()
			r.crash()
		}
		r := s.start(s.copyJob(s.resumed(2, seldom, "latest"), source))
		r.checkpoint()
		s.expect(ps.all())
	})
}

// B119: a partition that comes later is read from its beginning though the job started with "latest"; also one that came while the job
// was down. B124: the start option is not asked again after a restore.
func TestStartOptionsAreForTheFirstStart(t *testing.T) {
	onStand(t, func(s *stand) {
		ps := newPartitions()
		ps.write("old", 50)
		source := partitionSource{partitions: ps, discover: time.Second, latest: true}
		r := s.start(s.copyJob(s.env(2, seldom), source))
		ps.write("old", 1)
		ps.write("new", 10)
		pass(2 * time.Second)
		r.checkpoint()
		r.crash()
		ps.write("down", 10)
		ps.write("old", 20)
		r = s.start(s.copyJob(s.resumed(3, seldom, "latest"), source))
		pass(2 * time.Second)
		r.checkpoint()
		want := ps.all()
		for i := range 50 {
			delete(want, fmt.Sprint("old ", i))
		}
		s.expect(want)
	})
}

// B121: the broker refuses the commits of offsets for a minute. Nothing depends on them: the job runs, a later one makes up for
// them, and none is ahead of the last completed checkpoint.
func TestOffsetsAreForMonitoring(t *testing.T) {
	onStand(t, func(s *stand) {
		ps := newPartitions("p")
		source := partitionSource{partitions: ps, discover: time.Second}
		r := s.start(s.copyJob(s.env(1, seldom), source))
		ps.write("p", 5)
		pass(time.Second)
		ps.setRefuse(true)
		r.checkpoint()
		if n := ps.setRefuse(false); n != 1 || ps.committed["p"] != 0 {
			s.Errorf("%d were refused, and %v are committed", n, ps.committed)
		}
		ps.write("p", 5)
		synctest.Wait()
		if r.checkpoint(); ps.committed["p"] != 10 {
			s.Errorf("committed: %v", ps.committed)
		}
		ps.write("p", 5)
		synctest.Wait()
		if ps.committed["p"] != 10 || r.handle.Status().Restarts != 0 {
			s.Errorf("committed: %v, %d restarts", ps.committed, r.handle.Status().Restarts)
		}
	})
}

// B122: retention has passed the checkpoint. The job says so and FAILS; it neither spins nor goes on at the latest record.
func TestRetentionPassedTheCheckpoint(t *testing.T) {
	onStand(t, func(s *stand) {
		ps := newPartitions()
		ps.write("topic-3", 100)
		source := partitionSource{partitions: ps, discover: time.Second}
		r := s.start(s.copyJob(s.env(1, seldom), source))
		r.checkpoint()
		r.crash()
		ps.write("topic-3", 900)
		ps.retain("topic-3", 500)
		s.start(s.copyJob(s.resumed(1, seldom, "latest"), source)).fails("FAILED", "topic-3", "100", "500")
	})
}

// B034: a partition that ended before the checkpoint is not read again. B032: nor at another parallelism, though some subtasks had
// ended altogether.
func TestAnEndedPartitionIsNotReadAgain(t *testing.T) {
	for _, p := range []int{2, 3, 1} {
		onStand(t, func(s *stand) {
			ps := newPartitions()
			ps.write("short", 3)
			ps.write("long", 5000)
			source := partitionSource{partitions: ps}
			s.faults.work = func(where string) {
				if where == "source.poll" {
					pass(time.Millisecond)
				}
			}
			r := s.start(s.copyJob(s.env(2, seldom), source))
			pass(10 * time.Millisecond)
			r.checkpoint()
			r.crash()
			s.start(s.copyJob(s.resumed(p, 20*time.Millisecond, "latest"), source)).finish()
			s.expect(ps.all())
		})
	}
}

// B125: what an enumerator knows is all in its checkpoints. It is killed while it finds and gives out, twice within a second.
func TestTheEnumeratorsProgress(t *testing.T) {
	onStand(t, func(s *stand) {
		ps := newPartitions()
		source := partitionSource{partitions: ps, discover: time.Millisecond}
		r := s.start(s.copyJob(s.env(3, 10*time.Millisecond), source))
		made := 0
		more := func(n int) {
			for range n {
				ps.write(fmt.Sprint("split-", made), 1)
				made++
				pass(100 * time.Microsecond)
			}
		}
		for range 2 {
			more(300)
			r.crash()
			r = s.start(s.copyJob(s.resumed(3, 10*time.Millisecond, "latest"), source))
		}
		more(400)
		pass(time.Second)
		r.checkpoint()
		if s.expect(ps.all()); made != 1000 {
			s.Error(made)
		}
	})
}

// B013: a failure before the first checkpoint. The enumerator is made anew, empty: everything is given out again.
func TestAFailureBeforeTheFirstCheckpoint(t *testing.T) {
	onStand(t, func(s *stand) {
		ps := newPartitions()
		for i := range 10 {
			ps.write(fmt.Sprint("p-", i), 100)
		}
		s.faults.left = []fault{{Where: "sink.write", Nth: 500}, {Where: "sink.write", Nth: 1200, Panic: true}}
		r := s.start(s.copyJob(s.env(2, seldom), partitionSource{partitions: ps}))
		r.finish()
		if s.expect(ps.all()); len(s.faults.struck) != 2 {
			s.Error("struck:", s.faults.struck)
		}
	})
}

// B011: the message that gives out a split is lost, and a checkpoint follows at once. Nobody may then believe that the split was
// given out.
func TestAnAssignmentIsLost(t *testing.T) {
	for seed := range uint64(8) {
		onStand(t, func(s *stand) {
			m := &messageFaults{Types: []string{"Deliver", "Asked"}, PerMille: 400, Most: 3, rng: randOf(seed)}
			s.carry = m.carry
			ps := newPartitions("p-0", "p-1", "p-2")
			for name := range ps.logs {
				ps.write(name, 10)
			}
			r := s.start(s.copyJob(s.env(3, 50*time.Millisecond), partitionSource{partitions: ps, discover: 20 * time.Millisecond}))
			for i := range 10 {
				ps.write(fmt.Sprint("p-", i), 10)
				pass(30 * time.Millisecond)
			}
			pass(25 * time.Second) // beats find what is lost
			r.checkpoint()
			s.expect(ps.all())
		})
	}
}

// B022: a source whose Close spoils its positions, stopped by a savepoint. The savepoint has them as they were.
func TestCloseComesAfterTheLastSnapshot(t *testing.T) {
	for _, p := range []int{1, 2} {
		onStand(t, func(s *stand) {
			ps := newPartitions()
			ps.write("p", 700)
			source := partitionSource{partitions: ps, discover: time.Second}
			r := s.start(s.copyJob(s.env(1, seldom), source))
			a, err := r.handle.TriggerSavepoint(s.Context(), jobmaster.Savepoint{Kind: checkpoint.Suspend})
			if err != nil {
				s.Fatal(err)
			}
			r.finish()
			s.expect(ps.all())
			ps.write("p", 300)
			r = s.start(s.copyJob(s.resumed(p, seldom, a.Location), source))
			r.checkpoint()
			if s.expect(ps.all()); !slices.Equal(s.broker.left(), nil) {
				s.Error("left:", s.broker.left())
			}
		})
	}
}
