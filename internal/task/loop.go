package task

import (
	"fmt"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/operator"
)

const (
	// sliceMost is the most records that are processed between two looks at the mailbox.
	sliceMost = 128
	// A slice that took longer than sliceLong is halved, one shorter than sliceShort doubled: slow user code still lets the
	// task answer within a few milliseconds.
	sliceLong  = 2 * time.Millisecond
	sliceShort = 500 * time.Microsecond
)

// loopState is where the loop stands.
type loopState struct {
	slice   int
	batch   exchange.Payload // being processed; nil: none
	offset  int              // into batch
	channel int              // batch came from
	idle    bool             // the source waits to be woken
	paused  bool             // the source waits for a first trigger
	ended   int              // channels at their end of data
	drained bool             // all of them at their own
	over    bool             // the end of data has been handed on
	flush   int64            // when held batches are sent at the latest; 0: none is held
	timer   *time.Timer

	watermark base.EventTime // the combined one, as the chain knows it
	quiet     bool           // the chain knows that the input is idle
	records   int            // in the slice of this turn
	rest      rest           // why this turn waits
}

// run takes turns until the task has finished, failed or was canceled.
func (t *Task) run() error {
	t.loop.drained = true
	t.loop.paused = t.spec.Options.PauseSources && t.spec.Restore != nil
	t.loop.watermark = t.valve.combined
	defer t.stopTimer()
	t.look()
	t.turned = t.now // what came before was no turn
	for !t.finished {
		if t.canceled.Load() {
			return errCanceled
		}
		t.tell()
		worked, err := t.turn()
		if err != nil {
			return err
		}
		if !worked && !t.finished {
			t.loop.rest = forWork
			if !t.room() {
				t.loop.rest = forRoom
			}
			t.wait()
		}
	}
	return nil
}

// tell reads the clock, once a turn, counts the time of the last one, and makes the next slice longer or shorter by the time that the last one took.
func (t *Task) tell() {
	now := time.Now()
	before := t.turned
	t.now = checkpoint.Time(now.Sub(t.start))
	t.turned = t.now
	if t.spec.Options.Clock != nil {
		t.wall = t.spec.Options.Clock()
	} else {
		t.wall = now.UnixNano()
	}
	t.spent(t.now.Sub(before))
	if t.loop.records > 0 {
		t.adapt(t.now.Sub(before))
		t.loop.records = 0
	}
}

// adapt sets the length of the next slice after one that took so long.
func (t *Task) adapt(took time.Duration) {
	l := &t.loop
	switch {
	case took > sliceLong:
		l.slice = max(1, l.records/2)
	case took < sliceShort:
		l.slice = min(t.spec.Options.sliceMost(), l.slice*2)
	}
}

// turn does the mails, what is due, and one slice of work; worked is false where there was nothing to do.
func (t *Task) turn() (worked bool, err error) {
	for _, do := range t.box.take() {
		worked = true
		if err := do(); err != nil {
			return true, err
		}
	}
	if err := t.urgent(); err != nil {
		return true, err
	}
	if err := t.alarm(); err != nil {
		return true, err
	}
	if t.finished || t.canceled.Load() {
		return true, nil
	}
	if t.room() {
		ticked, err := t.ticks()
		if err != nil {
			return true, err
		}
		if did, err := t.work(); did || err != nil {
			return true, err
		}
		worked = worked || ticked
	}
	if worked {
		return true, nil
	}
	return false, t.flushRoom()
}

// room is true where every output can take what another slice makes.
func (t *Task) room() bool {
	for _, p := range t.spec.Outputs {
		if !p.Room() {
			return false
		}
	}
	return true
}

// work does one slice: of a watermark's timers, of the batch at hand, of the source, or takes the next element.
func (t *Task) work() (bool, error) {
	if t.lags() {
		t.doing = t.chain.nodes[0].Name
		return true, t.chain.lagging.Continue()
	}
	switch {
	case t.loop.batch != nil:
		return true, t.process()
	case t.chain.source != nil && !t.loop.over:
		if t.loop.paused {
			return false, nil
		}
		return t.poll()
	case t.spec.Gate != nil:
		return t.take()
	}
	return false, nil
}

func (t *Task) lags() bool { return t.chain.lagging != nil && t.chain.lagging.Behind() }

// poll takes one slice from the source.
func (t *Task) poll() (bool, error) {
	if t.loop.idle && !t.awake.Load() {
		return false, nil
	}
	t.awake.Store(false)
	t.loop.idle = false
	t.doing = t.chain.nodes[0].Name
	n, status, err := t.chain.source.Poll(t.loop.slice)
	if err != nil {
		return true, err
	}
	t.sliced(n)
	switch status {
	case operator.More:
		return true, nil
	case operator.Waiting:
		t.loop.idle = true
		return n > 0, nil
	case operator.Ended:
		return true, t.end(true)
	}
	return n > 0, nil
}

// process lends the next slice of the batch at hand to the chain.
func (t *Task) process() error {
	l := &t.loop
	to := min(l.offset+l.slice, l.batch.Len())
	t.doing = t.chain.nodes[0].Name
	if err := t.chain.readers[l.channel].Push(l.batch, l.offset, to); err != nil {
		return err
	}
	t.sliced(to - l.offset)
	if l.offset = to; to == l.batch.Len() {
		l.batch.Release()
		l.batch = nil
	}
	return nil
}

// sliced counts a slice of n records.
func (t *Task) sliced(n int) {
	t.loop.records = n
	t.records.Add(int64(n))
}

// take takes the next element of the gate.
func (t *Task) take() (bool, error) {
	i, e, ok := t.spec.Gate.Next()
	if !ok {
		return false, nil
	}
	switch e.Kind {
	case exchange.Data:
		if t.loop.over {
			defer e.Payload.Release()
			return true, fmt.Errorf("%d records came after the end of the data", e.Payload.Len())
		}
		t.gauge.records.Add(int64(e.Payload.Len()))
		t.gauge.bytes.Add(int64(e.Payload.Bytes()))
		t.loop.batch, t.loop.offset, t.loop.channel = e.Payload, 0, i
		return true, t.process()
	case exchange.Watermark:
		t.valve.watermark(i, e.Time)
		return true, t.advance()
	case exchange.Status:
		t.valve.status(i, e.Idle)
		return true, t.advance()
	case exchange.Barrier:
		return true, t.handle(checkpoint.BarrierArrived{Channel: i, Barrier: *e.Barrier})
	case exchange.CancelMarker:
		return true, t.handle(checkpoint.CancelArrived{Channel: i, ID: e.ID})
	case exchange.EndOfData:
		return true, t.endOfChannel(e.Drain)
	case exchange.EndOfPartition:
		return true, t.handle(checkpoint.ChannelEnded{Channel: i})
	}
	panic("task: unknown element")
}

// advance hands the combined watermark and status on, where they have changed.
func (t *Task) advance() error {
	l, v := &t.loop, t.valve
	if l.over {
		return nil
	}
	t.doing = t.chain.nodes[0].Name
	if l.quiet && !v.quiet {
		l.quiet = false
		if err := t.chain.head.Idle(false); err != nil {
			return err
		}
	}
	if v.combined > l.watermark {
		l.watermark = v.combined
		if err := t.chain.head.Watermark(v.combined); err != nil {
			return err
		}
	}
	if v.quiet && !l.quiet {
		l.quiet = true
		return t.chain.head.Idle(true)
	}
	return nil
}

// endOfChannel counts a channel's end of data; the last one ends the task's.
func (t *Task) endOfChannel(drained bool) error {
	t.loop.ended++
	t.loop.drained = t.loop.drained && drained
	if t.loop.ended < len(t.chain.readers) || t.loop.over {
		return nil
	}
	return t.end(t.loop.drained)
}

// end hands the end of data down the chain, and tells the handler and the master.
func (t *Task) end(drained bool) error {
	t.loop.over = true
	t.doing = t.chain.nodes[0].Name
	if drained && t.chain.source != nil {
		if err := t.chain.head.Watermark(base.EndOfTime); err != nil {
			return err
		}
	}
	if err := t.chain.head.EndOfData(drained); err != nil {
		return err
	}
	return t.ended(drained)
}

func (t *Task) ended(drained bool) error {
	if drained {
		t.spec.Up.Report(checkpoint.TaskEnded{Exec: t.spec.Exec})
	}
	return t.handle(checkpoint.DataEnded{Drained: drained})
}

// endAgain is the end of a task that had ended before the checkpoint it was restored from: its operators have done all
// theirs, so only the outputs hear of it.
func (t *Task) endAgain() error {
	t.loop.over = true
	for _, w := range t.chain.writers {
		w.Partition().Broadcast(exchange.Element{Kind: exchange.Watermark, Time: base.EndOfTime})
		w.Partition().Broadcast(exchange.Element{Kind: exchange.EndOfData, Drain: true})
	}
	return t.ended(true)
}

// ---- time

// alarm rings the handler's, where it is due.
func (t *Task) alarm() error {
	if d, ok := t.handler.Deadline(); ok && d <= t.now {
		return t.handle(checkpoint.AlarmRang{})
	}
	return nil
}

// ticks does what is due by the clock: the operators' timers and watermarks, the flush of half-filled batches. It is called
// only while there is room for what they emit; so a clock of theirs also does not run while the outputs are full.
//
// ticked is true where an operator's clock rang. What it emitted may have waited in Send, which a mail's ring wakes too: so
// the mailbox must be looked at again before the task waits.
func (t *Task) ticks() (ticked bool, err error) {
	if !t.loop.over {
		for _, c := range t.chain.clocked {
			if d, ok := c.Deadline(); ok && d <= t.wall {
				ticked = true
				if err := c.Tick(t.wall); err != nil {
					return true, err
				}
			}
		}
	}
	return ticked, t.flushDue(int64(t.spec.Options.FlushEvery))
}

// flushDue sends the half-filled batches that have waited long enough.
func (t *Task) flushDue(every int64) error {
	switch {
	case !t.held():
		t.loop.flush = 0
	case t.loop.flush == 0 && every > 0:
		t.loop.flush = int64(t.now) + every
	case t.loop.flush <= int64(t.now):
		t.loop.flush = 0
		return t.flushRoom()
	}
	return nil
}

func (t *Task) held() bool {
	for _, w := range t.chain.writers {
		if w.Held() {
			return true
		}
	}
	return false
}

// flushRoom sends the half-filled batches for which there is room: the task has nothing to add to them.
func (t *Task) flushRoom() error {
	for _, w := range t.chain.writers {
		if err := w.FlushRoom(); err != nil {
			return err
		}
	}
	return nil
}

// wait sleeps until the bell rings or something is due.
func (t *Task) wait() {
	if d, ok := t.due(); ok {
		if d <= 0 {
			return
		}
		if t.loop.timer == nil {
			t.loop.timer = time.NewTimer(d)
		} else {
			t.loop.timer.Reset(d)
		}
		select {
		case <-t.spec.Bell:
		case <-t.loop.timer.C:
		}
		return
	}
	<-t.spec.Bell
}

// due is how long until something is to be done; false: nothing is.
func (t *Task) due() (time.Duration, bool) {
	const never = time.Duration(1<<63 - 1)
	least := never
	if d, ok := t.handler.Deadline(); ok {
		least = d.Sub(t.now)
	}
	if !t.loop.over && t.room() {
		for _, c := range t.chain.clocked {
			if d, ok := c.Deadline(); ok {
				least = min(least, time.Duration(d-t.wall))
			}
		}
	}
	return least, least != never
}

func (t *Task) stopTimer() {
	if t.loop.timer != nil {
		t.loop.timer.Stop()
	}
}
