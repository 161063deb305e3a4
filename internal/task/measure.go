package task

import (
	"sync/atomic"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// What a task measures of itself. Nothing is measured for a record: batches are counted where they are taken and given away, and
// the clock is read at a few points of a checkpoint and of a start.

// Note is something that a task tells of itself, for who watches; nothing depends on it. It is one of the three types below.
type Note interface{ note() }

type (
	// Aligning says that the first barrier of a checkpoint has come, and not yet the last one.
	Aligning struct{ ID base.CheckpointID }

	// Writing says that the synchronous part of a checkpoint is over, and the barrier sent on. Metrics has what came before.
	Writing struct {
		ID      base.CheckpointID
		Metrics checkpoint.AckMetrics
	}

	// Restored says what a start took that was a restore.
	Restored struct {
		// Read is the time spent in reading Bytes of the checkpoint, Restore what else was spent in restoring operators, InFlight in
		// records in flight without reading them, and Open in the operators' own Open.
		Read, Restore, InFlight, Open time.Duration
		Bytes                         int64
	}
)

func (Aligning) note() {}
func (Writing) note()  {}
func (Restored) note() {}

// Counters count what an execution has done since it began. They never go down.
type Counters struct {
	// ReadRecords and ReadBytes are of the batches taken from other tasks; WriteRecords and WriteBytes of those given to others, a batch as
	// often as it was given away. Bytes are those that records take in memory, without what they point to.
	ReadRecords, ReadBytes, WriteRecords, WriteBytes int64
	// Idle is the time without anything to do, Backpressured that in which an output had no room, and Busy all other: since records
	// are taken, together until the last turn of the task's loop.
	Busy, Idle, Backpressured time.Duration
}

// gauge is where a task counts. Any goroutine may read it; only the task's own writes.
type gauge struct {
	records, bytes            atomic.Int64 // taken
	busy, idle, backpressured atomic.Int64 // nanoseconds

	waited time.Duration // of backpressured, in Send

	busyBefore, backpressuredBefore int64 // at the last snapshot
}

// since is how long the task was busy, and back-pressured, since the last call.
func (g *gauge) since() (busy, backpressured time.Duration) {
	b, p := g.busy.Load(), g.backpressured.Load()
	busy, backpressured = time.Duration(b-g.busyBefore), time.Duration(p-g.backpressuredBefore)
	g.busyBefore, g.backpressuredBefore = b, p
	return busy, backpressured
}

// Counters are the task's, now. Any goroutine may call it.
func (t *Task) Counters() Counters {
	g := &t.gauge
	c := Counters{ReadRecords: g.records.Load(), ReadBytes: g.bytes.Load(), Busy: time.Duration(g.busy.Load()), Idle: time.Duration(g.idle.Load()),
		Backpressured: time.Duration(g.backpressured.Load())}
	for _, p := range t.spec.Outputs {
		records, bytes := p.Sent()
		c.WriteRecords += records
		c.WriteBytes += bytes
	}
	return c
}

// rest is why a task waits.
type rest uint8

const (
	noRest  rest = iota // it does not
	forWork             // there is nothing to do
	forRoom             // an output has none
)

// spent counts the time of the last turn.
func (t *Task) spent(d time.Duration) {
	g := &t.gauge
	switch t.loop.rest {
	case forWork:
		g.idle.Add(int64(d))
	case forRoom:
		g.backpressured.Add(int64(d))
	case noRest:
		var waited time.Duration
		for _, p := range t.spec.Outputs {
			waited += p.Waited()
		}
		full := waited - g.waited
		g.waited = waited
		g.backpressured.Add(int64(full))
		g.busy.Add(int64(max(0, d-full)))
	}
	t.loop.rest = noRest
}

// ---- checkpoints

// look reads the monotonic clock: the time of a barrier is not that of the turn's begin.
func (t *Task) look() { t.now = checkpoint.Time(time.Since(t.start)) }

// begun is the checkpoint that the task has begun last.
type begun struct {
	id    base.CheckpointID
	bytes int64 // taken until then
}

// maybeBegun looks whether the handler has begun a checkpoint.
func (t *Task) maybeBegun() {
	id := t.handler.Newest()
	if id == t.begun.id {
		return
	}
	if at, ok := t.handler.Timing(id); ok && at.First != checkpoint.Never {
		t.begun = begun{id: id, bytes: t.gauge.bytes.Load()}
		t.unsaid = true
	}
}

// maybeSayAligning tells of a checkpoint that has begun, and whose snapshot waits for barriers.
func (t *Task) maybeSayAligning() {
	if !t.unsaid {
		return
	}
	t.unsaid = false
	id := t.begun.id
	if at, _ := t.handler.Timing(id); at.Waits && t.writing[id] == nil {
		t.spec.Up.Note(t.spec.Exec, Aligning{id})
	}
}

// waited is what came before a snapshot.
func (t *Task) waited(b checkpoint.Barrier, now time.Time) checkpoint.AckMetrics {
	m := checkpoint.AckMetrics{Unaligned: b.Alignment == checkpoint.Unaligned}
	m.Busy, m.Pressed = t.gauge.since()
	at, ok := t.handler.Timing(b.ID)
	if !ok {
		return m
	}
	passed := checkpoint.Time(now.Sub(t.start)).Sub(at.First)
	if b.Wall != 0 {
		m.StartDelay = max(0, time.Duration(now.UnixNano()-b.Wall)-passed)
	}
	t.aligned(&m, at)
	m.Held = m.Alignment
	if at.Waits {
		m.Held = passed
	}
	return m
}

// aligned is how long the alignment has taken so far.
func (t *Task) aligned(m *checkpoint.AckMetrics, at checkpoint.Timing) {
	m.Alignment, m.First, m.Last = at.Last.Sub(at.First), at.FirstOn+1, at.LastOn+1
	if t.begun.id == at.ID {
		m.Processed = t.gauge.bytes.Load() - t.begun.bytes
	}
}

// persisted is the bytes of records in flight in what a task acknowledges.
func persisted(s *snapshot.TaskState) (bytes int64) {
	for i := range s.Operators {
		for _, h := range s.Operators[i].Subtask.InFlight {
			bytes += h.Size
		}
	}
	return bytes
}

// ---- restores

// restoring measures a restore.
type restoring struct {
	note Restored

	spent, bytes atomic.Int64 // in reading: nanoseconds, bytes
}

// phase adds to spent what do takes, without reading.
func (r *restoring) phase(spent *time.Duration, do func() error) error {
	began, read := time.Now(), r.spent.Load()
	err := do()
	*spent += max(0, time.Since(began)-time.Duration(r.spent.Load()-read))
	return err
}

// sayRestored tells what the restore took, if it was one.
func (t *Task) sayRestored() {
	if r := &t.restoring; t.spec.Restore != nil {
		r.note.Read, r.note.Bytes = time.Duration(r.spent.Load()), r.bytes.Load()
		t.spec.Up.Note(t.spec.Exec, r.note)
	}
}

// opening is open, with everything read through it counted.
func (r *restoring) opening(open func(h snapshot.Handle) (storage.Reader, error)) func(h snapshot.Handle) (storage.Reader, error) {
	return func(h snapshot.Handle) (storage.Reader, error) {
		began := time.Now()
		f, err := open(h)
		r.spent.Add(int64(time.Since(began)))
		if err != nil {
			return nil, err
		}
		return &timedReader{Reader: f, r: r}, nil
	}
}

// timedReader counts what is read.
type timedReader struct {
	storage.Reader
	r *restoring
}

// ReadAt implements io.ReaderAt.
func (t *timedReader) ReadAt(p []byte, off int64) (int, error) {
	began := time.Now()
	n, err := t.Reader.ReadAt(p, off)
	t.r.spent.Add(int64(time.Since(began)))
	t.r.bytes.Add(int64(n))
	return n, err
}
