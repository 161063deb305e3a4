package exchange

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parcel is a payload that counts its holders.
type parcel struct {
	value int
	refs  atomic.Int64
	over  atomic.Int64 // releases by nobody
}

func newParcel(value int) *parcel {
	p := &parcel{value: value}
	p.refs.Store(1)
	return p
}

func (p *parcel) Len() int     { return 1 }
func (p *parcel) Bytes() int   { return 8 }
func (p *parcel) Retain(n int) { p.refs.Add(int64(n)) }
func (p *parcel) Release() {
	if p.refs.Add(-1) < 0 {
		p.over.Add(1)
	}
}

// pair is a partition of n channels, all of one gate.
func pair(n int, l Limits) (*Partition, *Gate) {
	g := NewGate(n, NewBell())
	var cs []*Channel
	for i := range n {
		cs = append(cs, g.Channel(i))
	}
	return NewPartition(cs, l, NewBell()), g
}

var wide = Limits{Batches: 1 << 20}

// drain is what Next gives until there is nothing, as "channel:element".
func drain(g *Gate) string {
	var all []string
	for {
		i, e, ok := g.Next()
		if !ok {
			return strings.Join(all, " ")
		}
		all = append(all, fmt.Sprint(i, ":", name(e)))
	}
}

func name(e Element) string {
	switch e.Kind {
	case Data:
		defer e.Payload.Release()
		return fmt.Sprint(e.Payload.(*parcel).value)
	case Watermark:
		return fmt.Sprint("w", int64(e.Time))
	case Barrier:
		return fmt.Sprint("b", e.Barrier.ID)
	case Status:
		return fmt.Sprint("idle", e.Idle)
	case CancelMarker:
		return fmt.Sprint("c", e.ID)
	case EndOfData:
		return "end"
	}
	return "gone"
}

func barrier(id base.CheckpointID) Element {
	return Element{Kind: Barrier, Barrier: &checkpoint.Barrier{ID: id}}
}

func send(t *testing.T, p *Partition, i int, values ...int) {
	t.Helper()
	for _, v := range values {
		if err := p.Send(t.Context(), i, newParcel(v)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFirstInFirstOut(t *testing.T) {
	p, g := pair(1, wide)
	var want []string
	for i := range 100 { // the ring grows and wraps around
		send(t, p, 0, i)
		p.Broadcast(barrier(base.CheckpointID(i)))
		want = append(want, fmt.Sprint("0:", i), fmt.Sprint("0:b", i))
		if i%3 == 0 {
			_, e, _ := g.Next()
			if got := "0:" + name(e); got != want[0] {
				t.Fatalf("got %s, want %s", got, want[0])
			}
			want = want[1:]
		}
	}
	if got := drain(g); got != strings.Join(want, " ") {
		t.Errorf("got %s\nwant %v", got, want)
	}
}

// TestWatermarksBehindEachOther: only the last of a row is kept, the largest.
func TestWatermarksBehindEachOther(t *testing.T) {
	p, g := pair(1, wide)
	for _, w := range []base.EventTime{1, 5, 3} {
		p.Broadcast(Element{Kind: Watermark, Time: w})
	}
	send(t, p, 0, 1)
	p.Broadcast(Element{Kind: Watermark, Time: 6})
	p.Broadcast(Element{Kind: Status, Idle: true})
	p.Broadcast(Element{Kind: Watermark, Time: 7})
	p.Broadcast(barrier(1))
	p.Broadcast(Element{Kind: Watermark, Time: 8})
	if got, want := drain(g), "0:w5 0:1 0:w6 0:idletrue 0:w7 0:b1 0:w8"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestChannelsTakeTurns: a busy channel does not starve a slow one.
func TestChannelsTakeTurns(t *testing.T) {
	p, g := pair(3, wide)
	send(t, p, 0, 1, 2, 3, 4, 5)
	send(t, p, 1, 11)
	send(t, p, 2, 21, 22)
	if got, want := drain(g), "0:1 1:11 2:21 0:2 2:22 0:3 0:4 0:5"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestBlockedChannels(t *testing.T) {
	p, g := pair(2, wide)
	send(t, p, 0, 1, 2)
	send(t, p, 1, 11)
	g.Block(0)
	send(t, p, 0, 3)
	if got, want := drain(g), "1:11"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	send(t, p, 0, 4)
	if got := drain(g); got != "" {
		t.Errorf("a blocked channel gave %s", got)
	}
	g.Unblock(0)
	g.Unblock(0)
	g.Unblock(1)
	if got, want := drain(g), "0:1 0:2 0:3 0:4"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	g.Block(0)
	g.Unblock(0)
	send(t, p, 0, 5)
	if got, want := drain(g), "0:5"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestTheBellRings when something comes to a gate that had nothing, of any channel.
func TestTheBellRings(t *testing.T) {
	rang := func(b Bell) bool {
		select {
		case <-b:
			return true
		default:
			return false
		}
	}
	p, g := pair(2, wide)
	send(t, p, 0, 1)
	send(t, p, 1, 2)
	if !rang(g.bell) || rang(g.bell) {
		t.Error("two elements: want one ring")
	}
	drain(g)
	send(t, p, 1, 3)
	if !rang(g.bell) {
		t.Error("no ring after the gate was empty")
	}
	g.Block(0)
	drain(g)
	send(t, p, 0, 4)
	if rang(g.bell) {
		t.Error("a blocked channel rang")
	}
	send(t, p, 1, 5)
	if !rang(g.bell) {
		t.Error("no ring beside a blocked channel")
	}
}

// TestRoom follows the sender's view while its channels fill up and are emptied.
func TestRoom(t *testing.T) {
	p, g := pair(2, Limits{Batches: 2, Overdraft: 1})
	look := func(room, full0, full1 bool) {
		t.Helper()
		if p.Room() != room || p.Full(0) != full0 || p.Full(1) != full1 {
			t.Errorf("room %v, full %v %v; want %v, %v %v", p.Room(), p.Full(0), p.Full(1), room, full0, full1)
		}
	}
	next := func() { _, e, _ := g.Next(); name(e) }
	look(true, false, false)
	send(t, p, 0, 1)
	p.Broadcast(barrier(1)) // control takes no room
	p.Broadcast(Element{Kind: Watermark})
	look(true, false, false)
	send(t, p, 0, 2)
	look(false, true, false)
	send(t, p, 1, 3, 4)
	look(false, true, true)
	send(t, p, 0, 5) // overdrawn
	g.Block(1)
	for range 3 {
		next() // 1, the barrier, the watermark
	}
	look(false, true, true)
	next() // 2
	look(false, false, true)
	g.Unblock(1)
	drain(g)
	look(true, false, false)
}

// TestSendWaits beyond the overdraft, until the receiver has taken something, or the context is done.
func TestSendWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, g := pair(1, Limits{Batches: 1, Overdraft: 1})
		send(t, p, 0, 1, 2)
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error)
		third, fourth := newParcel(3), newParcel(4)
		go func() { results <- p.Send(ctx, 0, third); results <- p.Send(ctx, 0, fourth) }()
		synctest.Wait()
		p.bell.Ring() // anybody's
		synctest.Wait()
		if got := p.channels[0].waiting.Load(); got != 2 {
			t.Fatalf("%d batches in the channel", got)
		}
		g.Next()
		if err := <-results; err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if third.refs.Load() != 1 || fourth.refs.Load() != 0 {
			t.Errorf("%d and %d holders, want 1 and 0", third.refs.Load(), fourth.refs.Load())
		}
	})
}

func TestCloseReleases(t *testing.T) {
	p, g := pair(2, Limits{Batches: 1})
	parcels := []*parcel{newParcel(1), newParcel(2), newParcel(3), newParcel(4)}
	for i, c := range []int{0, 1} {
		if err := p.Send(t.Context(), c, parcels[i]); err != nil {
			t.Fatal(err)
		}
	}
	p.Broadcast(barrier(1))
	g.Block(1)
	g.Close()
	if !p.Room() {
		t.Error("a channel without a receiver is full")
	}
	for i := range 2 { // what is sent to nobody never fills up
		if err := p.Send(t.Context(), 0, parcels[2+i]); err != nil {
			t.Fatal(err)
		}
	}
	p.Broadcast(barrier(2))
	for _, x := range parcels {
		if x.refs.Load() != 0 || x.over.Load() != 0 {
			t.Errorf("payload %d has %d holders, %d releases too many", x.value, x.refs.Load(), x.over.Load())
		}
	}
	if got := drain(g); got != "" {
		t.Errorf("a closed gate gave %s", got)
	}
}

// TestUnderRace lets senders that wait for room and a receiver that blocks, unblocks and at last goes away run at once: no
// wake-up is lost, and every payload is released exactly once.
func TestUnderRace(t *testing.T) {
	for seed := range uint64(8) {
		const senders, each = 3, 3000
		receivers := 2
		var gates []*Gate
		for range receivers {
			gates = append(gates, NewGate(senders, NewBell()))
		}
		var sending, receiving sync.WaitGroup
		parcels := make([][]*parcel, senders)
		closing := seed%2 == 1 // else everything is taken
		for s := range senders {
			var cs []*Channel
			for _, g := range gates {
				cs = append(cs, g.Channel(s))
			}
			p := NewPartition(cs, Limits{Batches: 1 + int(seed%3), Overdraft: int(seed / 3)}, NewBell())
			for i := range each {
				x := newParcel(i)
				if i%7 == 0 {
					x.Retain(receivers - 1)
				}
				parcels[s] = append(parcels[s], x)
			}
			sending.Add(1)
			go func() {
				defer sending.Done()
				for i, x := range parcels[s] {
					for !p.Room() && i%5 > 0 { // every fifth does not look, and waits in Send
						<-p.bell
					}
					for r := range receivers {
						if i%7 == 0 || i%receivers == r {
							p.Send(t.Context(), r, x)
						}
					}
				}
				p.Broadcast(Element{Kind: EndOfPartition})
			}()
		}
		for _, g := range gates {
			receiving.Add(1)
			go func() {
				defer receiving.Done()
				receive(g, rand.New(rand.NewPCG(seed, 2)), closing)
			}()
		}
		sending.Wait()
		receiving.Wait()
		for s := range senders {
			for _, x := range parcels[s] {
				if x.refs.Load() != 0 || x.over.Load() != 0 {
					t.Fatalf("seed %d: payload %d of sender %d has %d holders, %d releases too many", seed, x.value, s, x.refs.Load(), x.over.Load())
				}
			}
		}
	}
}

// receive takes everything, blocking a channel now and then; closing, it goes away in the middle.
func receive(g *Gate, random *rand.Rand, closing bool) {
	last := make([]int, g.Len())
	ended, taken, blocked := 0, 0, -1
	for ended < g.Len() {
		i, e, ok := g.Next()
		switch {
		case !ok && blocked >= 0:
			g.Unblock(blocked)
			blocked = -1
			continue
		case !ok:
			<-g.bell
			continue
		case i == blocked:
			panic("a blocked channel was served")
		case e.Kind == EndOfPartition:
			ended++
			continue
		}
		if v := e.Payload.(*parcel).value; v < last[i] {
			panic("out of order")
		} else {
			last[i] = v
		}
		e.Payload.Release()
		if taken++; closing && taken == 1000 {
			break
		}
		if blocked < 0 && random.IntN(20) == 0 {
			blocked = i
			g.Block(i)
		}
	}
	g.Close()
}

func TestNoAllocations(t *testing.T) {
	p, g := pair(4, Limits{Batches: 8, Overdraft: 8})
	x := newParcel(1)
	x.Retain(1 << 40)
	e := Element{Kind: Watermark, Time: 1}
	got := testing.AllocsPerRun(1000, func() {
		for i := range 4 {
			for range 8 {
				p.Send(context.Background(), i, x)
			}
		}
		p.Broadcast(e)
		for {
			_, e, ok := g.Next()
			if !ok {
				break
			}
			if e.Kind == Data {
				e.Payload.Release()
			}
		}
	})
	if got != 0 {
		t.Errorf("%v allocations for 32 batches", got)
	}
	if !slices.Equal([]int{p.Len(), g.Len()}, []int{4, 4}) {
		t.Error("wrong lengths")
	}
}
