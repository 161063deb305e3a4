package weirtest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/operator"
)

// SourceHarness drives a source by hand: its enumerator, and a reader for each subtask. It is polled when the test says so; what the two halves
// say to each other is brought at once.
//
//	h := weirtest.NewSourceHarness(t, files.Lines(dir))
//	h.Poll(10)
//	s := h.Snapshot()
//	before := h.Take()
//	h.RestoreAt(s, 3)
//	h.ReadAll()
type SourceHarness[T any, S weir.Split] struct {
	*rig
	outputs[T]
	master *master
	status []weir.Status // of each subtask, at its last poll
}

// NewSourceHarness makes a harness of a source.
func NewSourceHarness[T any, S weir.Split](t testing.TB, src weir.Source[T, S], options ...Option) *SourceHarness[T, S] {
	t.Helper()
	s := settingsOf(options)
	env := s.env()
	env.From(src).UID("source").To(NewSink[T]().Sink()).UID(outlet)
	h := &SourceHarness[T, S]{rig: newRig(t, planOf(t, env, 0), s)}
	h.wire = func(sub *subtask) error { return h.outputs.join(h.rig, sub) }
	h.master = &master{rig: h.rig, provider: h.plan.nodes[0].Coordinator.(jobmaster.CoordinatorProvider), wake: make(chan struct{}, 1), works: make(chan work, 16)}
	h.around = h.master
	h.begin = func(base.EventTime, bool) { h.status = nil }
	h.start(s.from, s.parallelism)
	return h
}

// Poll polls the reader of each subtask once, in turn, for most records each. Ended: all have ended; More: one of them has more.
func (h *SourceHarness[T, S]) Poll(most int) weir.Status {
	h.t.Helper()
	all := weir.Ended
	for i := range h.subtasks {
		switch status := h.PollSubtask(i, most); {
		case status == weir.More:
			all = weir.More
		case status == weir.Waiting && all == weir.Ended:
			all = weir.Waiting
		}
	}
	return all
}

// PollSubtask polls the reader of one subtask. One that has ended is not asked again.
func (h *SourceHarness[T, S]) PollSubtask(subtask, most int) weir.Status {
	h.t.Helper()
	for len(h.status) < len(h.subtasks) {
		h.status = append(h.status, weir.More)
	}
	if h.status[subtask] == weir.Ended {
		return weir.Ended
	}
	h.step("Poll", func() error {
		n := h.plan.nodes[0]
		op := h.subtasks[subtask].ops[n.ID].(operator.Source)
		return h.as(n, func() error {
			count, status, err := op.Poll(most)
			if count > most {
				h.t.Errorf("weirtest: the reader has emitted %d records, but was asked for %d at most", count, most)
			}
			h.status[subtask] = weir.Status(status)
			return err
		})
	})
	return h.status[subtask]
}

// readPatience is how long, in real time, a reader that waits is waited for.
const readPatience = 5 * time.Second

// ReadAll polls until all readers have ended. Where they wait, it waits until one is woken.
func (h *SourceHarness[T, S]) ReadAll() {
	h.t.Helper()
	h.read(func() bool { return false })
}

// Read polls until there are at least n records to Take, or all readers have ended.
func (h *SourceHarness[T, S]) Read(n int) {
	h.t.Helper()
	h.read(func() bool { return len(h.taken) >= n })
}

func (h *SourceHarness[T, S]) read(enough func() bool) {
	h.t.Helper()
	for !enough() {
		switch h.Poll(100) {
		case weir.Ended:
			return
		case weir.Waiting:
			h.await()
		}
	}
}

// await waits until something has happened to who waits.
func (h *SourceHarness[T, S]) await() {
	h.t.Helper()
	timer := time.NewTimer(readPatience)
	defer timer.Stop()
	select {
	case <-h.master.wake:
	case w := <-h.master.works:
		h.step("Run", func() error { return h.master.finish(w) })
	case <-timer.C:
		h.t.Fatalf("weirtest: no reader has anything, and in %v none was woken: a reader whose Poll returns Waiting must call Wake when it has something again", readPatience)
	}
}

// master is the half of a source's surroundings that is on the job's master: it implements jobmaster.CoordinatorContext.
type master struct {
	rig      *rig
	provider jobmaster.CoordinatorProvider
	en       jobmaster.Coordinator
	ctx      context.Context
	cancel   context.CancelFunc
	readers  []int
	asks     []message // from readers
	sends    []message // to readers
	wake     chan struct{}
	works    chan work
	running  int // works that have not come back
}

type message struct {
	subtask int
	payload any
}

// work is one that Run was given, with what has come of it.
type work struct {
	ctx  context.Context
	done func() error
}

// opened makes the enumerator, and tells it of the readers.
func (m *master) opened(from *Snapshot) (err error) {
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.readers, m.sends = nil, nil
	var state []byte
	if from != nil {
		state = from.enumerator
	}
	if m.en, err = m.provider.New(m, state); err != nil {
		return err
	}
	if err := m.en.Start(); err != nil {
		return err
	}
	for i := range m.rig.subtasks {
		m.readers = append(m.readers, i)
		if err := m.en.Added(i); err != nil {
			return err
		}
	}
	return nil
}

func (m *master) asked(subtask int, payload any) { m.asks = append(m.asks, message{subtask, payload}) }

func (m *master) woken() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// settle brings what was asked and what was sent, and waits a little for works.
func (m *master) settle() (did bool, err error) {
	for m.running > 0 && err == nil {
		timer := time.NewTimer(10 * time.Millisecond)
		select {
		case w := <-m.works:
			did, err = true, m.finish(w)
			timer.Stop()
			continue
		case <-timer.C:
		}
		break
	}
	asks, sends := m.asks, m.sends
	m.asks, m.sends = nil, nil
	for _, a := range asks {
		if err == nil {
			did, err = true, m.en.Handle(a.subtask, a.payload)
		}
	}
	n := m.rig.plan.nodes[0]
	for _, s := range sends {
		if err == nil {
			m.woken() // who is sent something is polled again
			did, err = true, m.rig.subtasks[s.subtask].ops[n.ID].(operator.Source).Event(s.payload)
		}
	}
	return did, err
}

// finish has the enumerator hear of a work; of one that another enumerator began nobody does.
func (m *master) finish(w work) error {
	m.running--
	if w.ctx != m.ctx {
		return nil
	}
	return w.done()
}

func (m *master) snapshot(s *Snapshot) (err error) {
	s.enumerator, err = m.en.Snapshot(base.CheckpointID(s.ID))
	return err
}

func (m *master) close() error {
	if m.cancel == nil {
		return nil
	}
	m.cancel()
	m.cancel = nil
	for m.running > 0 {
		<-m.works // they hear of the context's end
		m.running--
	}
	if m.en == nil {
		return nil
	}
	return m.en.Close()
}

// Context implements jobmaster.CoordinatorContext.
func (m *master) Context() context.Context { return m.ctx }

// Operator implements jobmaster.CoordinatorContext.
func (m *master) Operator() string { return m.rig.plan.nodes[0].Name }

// Parallelism implements jobmaster.CoordinatorContext.
func (m *master) Parallelism() int { return len(m.rig.subtasks) }

// Readers implements jobmaster.CoordinatorContext.
func (m *master) Readers() []int { return slices.Clone(m.readers) }

// Send implements jobmaster.CoordinatorContext.
func (m *master) Send(subtask int, payload any) {
	if !slices.Contains(m.readers, subtask) {
		panic(fmt.Sprintf("weirtest: the enumerator speaks to the reader of subtask %d, which has not registered: there are %v", subtask, m.readers))
	}
	m.sends = append(m.sends, message{subtask, payload})
}

// Backlog implements jobmaster.CoordinatorContext.
func (m *master) Backlog(bool) {}

// Run implements jobmaster.CoordinatorContext.
func (m *master) Run(do func(context.Context) (any, error), done func(any, error) error) {
	m.running++
	ctx := m.ctx
	go func() { // ends with the work, for which close waits
		result, err := do(ctx)
		m.works <- work{ctx, func() error { return done(result, err) }}
	}()
}
