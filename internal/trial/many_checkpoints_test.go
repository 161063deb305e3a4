package trial

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// Ten thousand incremental checkpoints of a state in which keys come, change and go, in lives of a thousand, while the disk and the user's
// code fail now and then. At every look each file that a checkpoint refers to is there; at the end of each life there is no other.
// Neither files nor bytes grow, nor what a restore reads.
func TestTenThousandIncrementalCheckpoints(t *testing.T) {
	lives, each := 10, 1000
	if testing.Short() || raceEnabled {
		lives, each = 3, 100
	}
	onStand(t, func(s *stand) {
		m := &marathon{stand: s, rng: rand.New(rand.NewPCG(1, 9)), churn: churn{keys: 1500, recent: 10, records: int64(lives*each*10 + 20_000)}}
		for life := range lives {
			m.live(life, each)
		}
		m.bounded()
		s.fs = nil
		env := onFiles(s.resumed(2, seldom, "latest"))
		m.churn.build(env, s.stage(m.churn.records, 0))
		s.start(env).finish()
		s.expect(m.churn.reference())
		if h := s.exact("FINISHED"); len(h.shared) > 0 {
			s.Errorf("left: %v", h.shared)
		}
		if completed := m.taken; completed < lives*each/2 {
			s.Errorf("only %d checkpoints have completed", completed)
		}
		s.Logf("%d checkpoints completed, %d failed, %d failures of user code; at most %d files a state, %d bytes for %d of a whole one; a restore reads %d bytes at most",
			m.taken, m.failed, len(s.faults.struck), m.filesMost, m.bytesMost, m.wholeBytes, slices.Max(m.reads))
	})
}

// marathon is a job that takes very many checkpoints.
type marathon struct {
	*stand
	rng   *rand.Rand
	churn churn

	taken, failed int
	filesMost     int   // of one state
	bytesMost     int64 // in shared/ at a look
	wholeBytes    int64 // of the largest whole one
	reads         []int64

	mu   sync.Mutex
	read map[string]int64 // protected by mu; bytes of the files that were opened since the last look
}

// live takes so many checkpoints, and cancels.
func (m *marathon) live(life, checkpoints int) {
	m.Helper()
	disk := storage.Faulty(m.disk, m.reading())
	m.fs = disk
	env := m.env(2, 10*time.Millisecond)
	if life > 0 {
		env = m.resumed(2, 10*time.Millisecond, "latest")
	}
	onFiles(env, "execution.checkpointing.num-retained", 1+life%3, "restart-strategy.exponential-delay.initial-backoff", 10*time.Millisecond)
	m.churn.build(env, m.stage(m.churn.records, 1000))
	m.read = map[string]int64{}
	r := m.start(env)
	if life > 0 {
		m.noteRestore()
	}
	for range checkpoints / 20 {
		m.trouble(disk)
		pass(200 * time.Millisecond)
		m.look(r)
	}
	disk.SetRules()
	pass(time.Second)
	m.measure(r)
	c := r.handle.Status().Checkpoints
	m.taken, m.failed = m.taken+c.Completed, m.failed+c.Failed
	r.cancel()
	<-r.done
	m.exact(fmt.Sprint("life ", life))
}

// trouble plants a failure of the disk, or of the user's code, or none.
func (m *marathon) trouble(disk *storage.FaultyFS) {
	rules := []*storage.Rule{m.reading()}
	switch m.rng.IntN(6) {
	case 0, 1:
		op := storageOps[m.rng.IntN(len(storageOps))]
		rules = append([]*storage.Rule{{Op: op, Path: "[0-9]*", Skip: m.rng.IntN(20), Count: 1 + m.rng.IntN(3), Err: syscall.EIO}}, rules...)
	case 2:
		rules = append([]*storage.Rule{{Path: []string{"_metadata*", "chk-*", "shared"}[m.rng.IntN(3)], Skip: m.rng.IntN(20), Count: 1, Err: syscall.EIO}}, rules...)
	case 3:
		if m.rng.IntN(4) == 0 {
			m.faults.next("process", false)
		}
	}
	disk.SetRules(rules...)
}

// look demands that all is there that checkpoints name.
func (m *marathon) look(r *running) {
	m.Helper()
	synctest.Wait() // so that nothing is being deleted
	h, err := holdingsOf(r.world.disk, "/checkpoints")
	if err != nil {
		m.Fatal(err)
	}
	var newest base.CheckpointID
	for _, c := range h.completed {
		newest = max(newest, c.ID)
		m.filesMost = max(m.filesMost, mostReferred(c))
	}
	m.bytesMost = max(m.bytesMost, h.bytes())
}

// measure finds the size of a checkpoint that refers to nothing, which a savepoint is.
func (m *marathon) measure(r *running) {
	m.Helper()
	whole, location, err := storage.ReadMetadata(r.world.disk, r.savepoint(checkpoint.Savepoint, checkpoint.Native))
	if err == nil {
		_, err = storage.Dispose(r.world.disk, location)
	}
	if err != nil {
		m.Fatal(err)
	}
	m.wholeBytes = max(m.wholeBytes, whole.Sizes().State)
}

// mostReferred is the largest number of files that one keyed state refers to.
func mostReferred(c *snapshot.Metadata) (most int) {
	for _, o := range c.Operators {
		for _, s := range o.Subtasks {
			for _, k := range s.Keyed {
				most = max(most, 1+len(k.Refers))
			}
		}
	}
	return most
}

// reading notes which shared files are opened.
func (m *marathon) reading() *storage.Rule {
	return &storage.Rule{Op: storage.OpOpen, Hook: func(_ storage.Op, name string) {
		if !strings.Contains(name, "/shared/") {
			return
		}
		e, _ := m.disk.Stat(name)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.read[name] = e.Size
	}}
}

// noteRestore adds up the files that a restore has opened.
func (m *marathon) noteRestore() {
	m.mu.Lock()
	defer m.mu.Unlock()
	var bytes int64
	for _, size := range m.read {
		bytes += size
	}
	m.reads = append(m.reads, bytes)
}

// bounded demands what incremental checkpoints promise: a bounded number of files, at most twice the bytes.
func (m *marathon) bounded() {
	m.Helper()
	const filesMost = 24 + 1 // of package state, and the checkpoint's own
	if m.filesMost > filesMost || m.filesMost < 3 {
		m.Errorf("one state lies in %d files", m.filesMost)
	}
	if m.wholeBytes == 0 || m.bytesMost > 4*m.wholeBytes {
		m.Errorf("%d bytes are kept, and a whole checkpoint has %d", m.bytesMost, m.wholeBytes)
	}
	if most := slices.Max(m.reads); most > 3*m.wholeBytes {
		m.Errorf("a restore reads up to %d bytes (%v), and a whole checkpoint has %d", most, m.reads, m.wholeBytes)
	}
}
