package exchange

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
)

func unaligned(id base.CheckpointID) *checkpoint.Barrier {
	return &checkpoint.Barrier{ID: id, Alignment: checkpoint.Unaligned}
}

func timed(id base.CheckpointID) Element {
	return Element{Kind: Barrier, Barrier: &checkpoint.Barrier{ID: id, Alignment: checkpoint.Aligned, Timeout: time.Second}}
}

// urgent is what Urgent gives, as "channel:barrier", with a "?" where it is announced.
func urgent(g *Gate) string {
	var all []string
	for _, u := range g.Urgent() {
		switch {
		case u.Ended:
			all = append(all, fmt.Sprint(u.Channel, ":end"))
		case u.Announced:
			all = append(all, fmt.Sprint(u.Channel, ":b", u.Barrier.ID, "?"))
		default:
			all = append(all, fmt.Sprint(u.Channel, ":b", u.Barrier.ID))
		}
	}
	return strings.Join(all, " ")
}

// recorded is what was recorded, released.
func recorded(g *Gate, i int) string {
	var all []string
	for _, p := range g.Recorded(i) {
		all = append(all, fmt.Sprint(p.(*parcel).value))
		p.Release()
	}
	return strings.Join(all, " ")
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestABarrierOvertakes what is queued; nothing is taken before the receiver has heard of it.
func TestABarrierOvertakes(t *testing.T) {
	p, g := pair(2, wide)
	send(t, p, 0, 1, 2)
	p.Overtake(unaligned(7))
	send(t, p, 0, 3)
	want(t, drain(g), "")
	want(t, urgent(g), "0:b7 1:b7")
	want(t, urgent(g), "")
	g.Record(0, 7)
	g.Record(1, 7)
	want(t, drain(g), "0:1 0:2 0:3")
	send(t, p, 1, 11)
	want(t, recorded(g, 0), "1 2")
	want(t, recorded(g, 1), "")
}

// TestRecordingGoesOn until the barrier comes, overtaking or in the queue.
func TestRecordingGoesOn(t *testing.T) {
	for _, overtakes := range []bool{true, false} {
		p, g := pair(1, wide)
		send(t, p, 0, 1)
		g.Record(0, 7)
		send(t, p, 0, 2)
		want(t, drain(g), "0:1 0:2")
		send(t, p, 0, 3)
		if overtakes {
			p.Overtake(unaligned(7))
		} else {
			p.Broadcast(barrier(7))
		}
		send(t, p, 0, 4)
		want(t, recorded(g, 0), "1 2 3")
		send(t, p, 0, 5)
		want(t, recorded(g, 0), "")
	}
}

// TestAnAnnouncedBarrier stands in the queue until it is taken in its place, or told to overtake.
func TestAnAnnouncedBarrier(t *testing.T) {
	p, g := pair(1, wide)
	send(t, p, 0, 1)
	p.Broadcast(timed(7))
	send(t, p, 0, 2)
	want(t, urgent(g), "0:b7?")
	want(t, drain(g), "0:1 0:b7 0:2")
	if b := g.Prioritize(0, 7); b != nil {
		t.Error("a barrier that was taken overtook")
	}

	send(t, p, 0, 1)
	p.Broadcast(timed(8))
	send(t, p, 0, 2)
	want(t, urgent(g), "0:b8?")
	g.Record(0, 8)
	if b := g.Prioritize(0, 8); b == nil || b.ID != 8 {
		t.Fatalf("got %v", b)
	}
	send(t, p, 0, 3)
	want(t, recorded(g, 0), "1")
	want(t, drain(g), "0:1 0:2 0:3")

	forced := timed(9)
	forced.Barrier.Forced = true
	p.Broadcast(forced)
	want(t, urgent(g), "")
}

// TestANewerMarkStays: the receiver was just turning an older barrier when the next one overtook. What came behind the next one
// is the sender's to send again, and not in flight.
func TestANewerMarkStays(t *testing.T) {
	newer := func() (*Partition, *Gate) {
		p, g := pair(1, wide)
		send(t, p, 0, 1)
		p.Broadcast(timed(7))
		urgent(g)
		send(t, p, 0, 2)
		p.Overtake(unaligned(8))
		send(t, p, 0, 3)
		return p, g
	}
	t.Run("prioritized", func(t *testing.T) {
		_, g := newer()
		g.Record(0, 7)
		if b := g.Prioritize(0, 7); b == nil || b.ID != 7 {
			t.Fatalf("got %v", b)
		}
		want(t, recorded(g, 0), "1")
		want(t, urgent(g), "0:b8")
		g.Record(0, 8)
		want(t, recorded(g, 0), "1 2")
		g.Seal(0)
		want(t, drain(g), "0:1 0:2")
	})
	for _, ends := range []string{"before", "after"} {
		t.Run("the end comes "+ends+" the recording", func(t *testing.T) {
			p, g := newer()
			if ends == "before" {
				p.Broadcast(Element{Kind: EndOfPartition})
			}
			if g.Record(0, 6) {
				t.Error("an end stood for a barrier that another has taken the place of")
			}
			if ends == "after" {
				p.Broadcast(Element{Kind: EndOfPartition})
			}
			recorded(g, 0)
			want(t, urgent(g), "0:b8")
			g.Record(0, 8)
			want(t, recorded(g, 0), "1 2")
		})
	}
}

// TestASealedChannel gives what the barrier has overtaken, and the rest after Unblock.
func TestASealedChannel(t *testing.T) {
	p, g := pair(1, wide)
	send(t, p, 0, 1, 2)
	p.Overtake(unaligned(7))
	send(t, p, 0, 3)
	urgent(g)
	g.Seal(0)
	_, e, _ := g.Next()
	want(t, name(e), "1")
	send(t, p, 0, 4)
	g.Record(0, 7)
	want(t, drain(g), "0:2")
	want(t, recorded(g, 0), "2")
	send(t, p, 0, 5)
	want(t, drain(g), "")
	g.Unblock(0)
	want(t, drain(g), "0:3 0:4 0:5")
}

// TestSealedChannelsComeLast: who waits for a barrier in its place comes to it as soon as can be.
func TestSealedChannelsComeLast(t *testing.T) {
	p, g := pair(3, wide)
	send(t, p, 0, 1, 2)
	send(t, p, 1, 11, 12)
	send(t, p, 2, 21, 22)
	p.channels[0].overtake(unaligned(7))
	p.channels[2].overtake(unaligned(7))
	urgent(g)
	g.Seal(0)
	g.Seal(2)
	for _, next := range []string{"11", "12", "1"} {
		_, e, _ := g.Next()
		want(t, name(e), next)
	}
	send(t, p, 1, 13)
	_, e, _ := g.Next()
	want(t, name(e), "13")
	g.Unblock(2)
	send(t, p, 1, 14)
	want(t, drain(g), "2:21 1:14 2:22 0:2")
}

// TestWatermarksKeepTheirSide: one behind a barrier does not take the place of one that it overtook.
func TestWatermarksKeepTheirSide(t *testing.T) {
	p, g := pair(1, wide)
	mark := func(at base.EventTime) { p.Broadcast(Element{Kind: Watermark, Time: at}) }
	mark(1)
	p.Overtake(unaligned(7))
	mark(2)
	mark(3)
	urgent(g)
	want(t, drain(g), "0:w1 0:w3")
	mark(4)
	p.Broadcast(timed(8))
	mark(5)
	urgent(g)
	g.Prioritize(0, 8)
	mark(6)
	want(t, drain(g), "0:w4 0:w6")
}

// TestUrgentRings whoever waits for room only, and so takes nothing.
func TestUrgentRings(t *testing.T) {
	p, g := pair(1, wide)
	send(t, p, 0, 1)
	<-g.bell
	p.Broadcast(timed(7))
	select {
	case <-g.bell:
	default:
		t.Error("an announcement did not ring")
	}
	urgent(g)
	p.Overtake(unaligned(8))
	select {
	case <-g.bell:
	default:
		t.Error("a barrier that overtook did not ring")
	}
}

// TestAnEndOvertakes as a barrier does: none will come any more.
func TestAnEndOvertakes(t *testing.T) {
	p, g := pair(1, wide)
	gone := Element{Kind: EndOfPartition}
	send(t, p, 0, 1)
	if g.Record(0, 7) {
		t.Error("the sender has not ended")
	}
	send(t, p, 0, 2)
	p.Broadcast(gone)
	want(t, urgent(g), "0:end")
	want(t, recorded(g, 0), "1 2")
	if !g.Record(0, 8) {
		t.Error("the sender has ended")
	}
	want(t, drain(g), "0:1 0:2 0:gone")
	want(t, recorded(g, 0), "1 2")
}

// TestPreload: what was in flight comes before everything, and counts as room taken.
func TestPreload(t *testing.T) {
	p, g := pair(2, Limits{Batches: 2})
	send(t, p, 0, 10)
	g.Preload(0, []Payload{newParcel(1), newParcel(2)})
	g.Preload(1, []Payload{newParcel(3)})
	if p.Room() || !p.Full(0) || p.Full(1) {
		t.Error("what is restored takes no room")
	}
	send(t, p, 1, 11)
	want(t, drain(g), "0:1 1:3 0:2 1:11 0:10")
	if !p.Room() {
		t.Error("no room in the end")
	}
}

// TestCloseReleasesRecords that nobody asked for any more.
func TestCloseReleasesRecords(t *testing.T) {
	p, g := pair(1, wide)
	x, y := newParcel(1), newParcel(2)
	p.Put(0, x)
	g.Record(0, 7)
	p.Put(0, y)
	_, e, _ := g.Next()
	e.Payload.Release()
	g.Close()
	p.Overtake(unaligned(7))
	if x.refs.Load() != 0 || y.refs.Load() != 0 {
		t.Errorf("%d and %d holders", x.refs.Load(), y.refs.Load())
	}
}

// modelled is a channel as a list: records, barriers in their places, and the mark of the last barrier that overtook.
type modelled struct {
	items            []string
	last             base.CheckpointID // the last barrier sent
	waits            bool              // it is one that may be told to overtake
	inOrder          bool              // it was taken in its place
	blocked, sealed  bool
	gone, recording  bool
	recordingOf      base.CheckpointID
	recorded, parted []string
}

func isRecord(item string) bool { return item[0] >= '0' && item[0] <= '9' }

func (m *modelled) before(what string) (records []string, found bool) {
	at := slices.Index(m.items, what)
	for _, item := range m.items[:max(at, 0)] {
		if isRecord(item) {
			records = append(records, item)
		}
	}
	return records, at >= 0
}

func (m *modelled) mark(at int) {
	if old := slices.Index(m.items, "|"); old >= 0 {
		m.items = slices.Delete(m.items, old, old+1)
		if old < at {
			at--
		}
	}
	m.items = slices.Insert(m.items, at, "|")
}

// over: the end has been taken.
func (m *modelled) over() bool { return m.gone && !slices.Contains(m.items, "gone") }

// next is what may be taken; "": nothing.
func (m *modelled) next() string {
	for i, item := range m.items {
		if item != "|" {
			if m.blocked || m.sealed && !slices.Contains(m.items[i:], "|") {
				return ""
			}
			return item
		}
	}
	return ""
}

func (m *modelled) send(item string) {
	m.items = append(m.items, item)
	if m.recording && isRecord(item) {
		m.recorded = append(m.recorded, item)
	}
}

// end is the mark of an end that counts as the barrier id.
func (m *modelled) end(id base.CheckpointID) {
	m.last = id
	m.mark(slices.Index(m.items, "gone"))
}

func (m *modelled) record(id base.CheckpointID) (over bool) {
	m.recorded = nil
	if records, found := m.before(fmt.Sprint("b", id)); found {
		m.recorded = records
	} else if records, found := m.before("|"); found && m.last == id {
		m.recorded = records
	} else {
		m.items = append(m.items, "$")
		m.recorded, _ = m.before("$")
		m.items = m.items[:len(m.items)-1]
		m.recording, m.recordingOf, over = !m.gone, id, slices.Contains(m.items, "gone")
		if over {
			m.end(id)
		}
	}
	return over
}

// TestAgainstLists compares channels with lists, step by step.
func TestAgainstLists(t *testing.T) {
	for seed := range uint64(300) {
		againstLists(t, seed)
	}
}

func againstLists(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 5))
	const n = 2
	g := NewGate(n, NewBell())
	var ps []*Partition
	for i := range n {
		ps = append(ps, NewPartition([]*Channel{g.Channel(i)}, wide, NewBell()))
	}
	models := make([]modelled, n)
	var parcels []*parcel
	pending := false
	for step := range 400 {
		i := random.IntN(n)
		m, p := &models[i], ps[i]
		did := random.IntN(14)
		switch {
		case did < 4 && !m.gone:
			x := newParcel(len(parcels))
			parcels = append(parcels, x)
			p.Put(0, x)
			m.send(fmt.Sprint(x.value))
		case did == 4 && !m.gone:
			m.last += base.CheckpointID(1 + random.IntN(2))
			m.inOrder, m.waits = false, random.IntN(3) > 0
			if m.recording && m.recordingOf <= m.last {
				m.recording = false
			}
			if e := timed(m.last); m.waits {
				p.Broadcast(e)
				pending = true
			} else {
				p.Broadcast(barrier(m.last))
			}
			m.send(fmt.Sprint("b", m.last))
		case did == 5 && !m.gone && !m.sealed: // the receiver unseals before it takes note of a newer barrier
			m.last++
			m.inOrder, m.waits = false, false
			if m.recording && m.recordingOf <= m.last {
				m.recording = false
			}
			p.Overtake(unaligned(m.last))
			pending = true
			m.mark(len(m.items))
		case did == 6 && m.waits && !m.sealed:
			at := slices.Index(m.items, fmt.Sprint("b", m.last))
			if b := g.Prioritize(i, m.last); (b != nil) != (at >= 0) {
				t.Fatalf("seed %d, step %d: Prioritize gave %v of %v", seed, step, b, m.items)
			}
			if at >= 0 {
				m.items = slices.Delete(m.items, at, at+1)
				m.mark(at)
			}
			m.waits = false
		case did == 7 && !m.inOrder && m.last > 0:
			g.Seal(i)
			m.sealed = true
		case did == 8:
			g.Block(i)
			m.blocked = true
		case did == 9:
			g.Unblock(i)
			m.blocked, m.sealed = false, false
		case did == 10 && !m.inOrder && !m.recording && !m.over():
			for _, p := range g.Recorded(i) {
				p.Release()
			}
			id := m.last
			if !m.sealed {
				id = max(1, id+base.CheckpointID(random.IntN(2)))
			}
			if got := g.Record(i, id); got != m.record(id) {
				t.Fatalf("seed %d, step %d: Record says %v, of %v", seed, step, got, m.items)
			}
		case did == 11:
			if got, want := recorded(g, i), strings.Join(m.recorded, " "); got != want {
				t.Fatalf("seed %d, step %d: recorded %q, want %q", seed, step, got, want)
			}
			m.recorded, m.recording = nil, false
		case did == 12 && random.IntN(20) == 0 && !m.gone && !m.sealed:
			p.Broadcast(Element{Kind: EndOfPartition})
			m.items = append(m.items, "gone")
			if m.recording {
				m.end(m.recordingOf)
			}
			pending = pending || m.recording
			m.gone, m.recording = true, false
		default:
			if pending {
				if c, e, ok := g.Next(); ok {
					t.Fatalf("seed %d, step %d: %d:%v came before what is urgent", seed, step, c, e)
				}
				g.Urgent()
				pending = false
			}
			compareNext(t, g, models, seed, step)
		}
	}
	g.Close()
	for _, x := range parcels {
		if x.refs.Load() != 0 || x.over.Load() != 0 {
			t.Fatalf("seed %d: payload %d has %d holders", seed, x.value, x.refs.Load())
		}
	}
}

func compareNext(t *testing.T, g *Gate, models []modelled, seed uint64, step int) {
	t.Helper()
	i, e, ok := g.Next()
	if !ok {
		for j := range models {
			if next := models[j].next(); next != "" {
				t.Fatalf("seed %d, step %d: channel %d gave nothing, want %s", seed, step, j, next)
			}
		}
		return
	}
	m := &models[i]
	got := name(e)
	if want := m.next(); got != want {
		t.Fatalf("seed %d, step %d: channel %d gave %s, want %q", seed, step, i, got, want)
	}
	at := slices.Index(m.items, got)
	m.items = slices.Delete(m.items, at, at+1)
	if e.Kind == Barrier && e.Barrier.ID == m.last {
		m.inOrder, m.waits = true, false
	}
}

// TestOvertakingUnderRace: senders overtake while the receiver takes, records and seals: what was recorded and what was taken before
// the snapshot are together what was sent before the barrier, in order.
func TestOvertakingUnderRace(t *testing.T) {
	for seed := range uint64(20) {
		const senders, before, after = 3, 200, 100
		g := NewGate(senders, NewBell())
		var sending sync.WaitGroup
		for s := range senders {
			p := NewPartition([]*Channel{g.Channel(s)}, Limits{Batches: 4, Overdraft: 4}, NewBell())
			sending.Go(func() {
				for i := range before + after {
					switch {
					case i < before:
					case i > before:
					case seed%2 == 0:
						p.Overtake(unaligned(1))
					default:
						p.Broadcast(timed(1))
					}
					if p.Send(t.Context(), 0, newParcel(i)) != nil {
						return
					}
				}
				p.Broadcast(Element{Kind: EndOfPartition})
			})
		}
		took := raced(g, seed)
		for s := range senders {
			for _, p := range g.Recorded(s) {
				took[s] = append(took[s], p.(*parcel).value)
				p.Release()
			}
			if len(took[s]) != before || !slices.IsSorted(took[s]) {
				t.Fatalf("seed %d: of sender %d %v", seed, s, took[s])
			}
		}
		sending.Wait()
	}
}

// raced is a receiver that takes its snapshot at the first barrier, or at some moment before; it gives what it took till then.
func raced(g *Gate, seed uint64) [][]int {
	took := make([][]int, g.Len())
	taken, in, ended := false, 0, 0
	snapshot := func() {
		for i := range g.Len() {
			g.Record(i, 1)
		}
		taken = true
	}
	for n := 0; ended < g.Len(); n++ {
		for _, u := range g.Urgent() {
			if !taken {
				snapshot()
			}
			if u.Announced && g.Prioritize(u.Channel, 1) == nil {
				panic("the announced barrier is gone")
			}
			in++
		}
		i, e, ok := g.Next()
		switch {
		case !ok:
			<-g.bell
		case e.Kind == EndOfPartition:
			ended++
		case e.Kind == Data:
			if !taken {
				took[i] = append(took[i], e.Payload.(*parcel).value)
			}
			e.Payload.Release()
		}
		if !taken && uint64(n) == seed*20 {
			snapshot()
		}
	}
	if in != g.Len() {
		panic("barriers were lost")
	}
	return took
}
