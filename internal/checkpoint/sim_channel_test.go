package checkpoint

import (
	"slices"

	"github.com/weirstream/weir/internal/base"
)

// simChannel is a channel with two queues: what its sender has sent, and what has arrived at its receiver. One queue would
// hide what matters to barriers that overtake: that of the overtaken records, some have arrived and some have not.
type simChannel struct {
	from, to        *simTask
	slotOut, slotIn int
	feed            feed
	out, in         []item
	gate            gate
	before          int // of a sealed one: items that may still be taken
	sent, received  int // records
	barrier         base.CheckpointID
	recording       base.CheckpointID
}

// gate says what may be taken from a channel.
type gate uint8

const (
	open    gate = iota
	blocked      // nothing
	sealed       // what had arrived before
)

const queueCapacity = 8

// ready: there is an item that may be taken.
func (ch *simChannel) ready() bool {
	return len(ch.in) > 0 && (ch.gate == open || ch.gate == sealed && ch.before > 0)
}

func (ch *simChannel) takeHead() item {
	it := ch.in[0]
	ch.in = ch.in[1:]
	ch.before--
	return it
}

// full: some output has no room.
func (t *simTask) full() bool {
	for _, ch := range t.outs {
		if len(ch.out) >= queueCapacity {
			return true
		}
	}
	return false
}

// emit sends a record over each edge that goes out from t.
func (w *world) emit(t *simTask, r record) {
	for _, receivers := range t.edges {
		f := receivers[0].feed
		copied := r
		if !r.rule {
			copied.path = r.path*31 + f.number + 1
		}
		switch f.edge {
		case hash:
			receivers[r.key%len(receivers)].push(copied)
		case rebalance, pointwise:
			receivers[w.rng.IntN(len(receivers))].push(copied)
		case global:
			receivers[0].push(copied)
		case broadcast:
			for _, ch := range receivers {
				ch.push(copied)
			}
		}
	}
}

func (ch *simChannel) push(r record) {
	ch.sent++
	ch.out = append(ch.out, item{kind: aRecord, record: r, number: ch.sent})
}

// isTimed: it is a barrier that may turn unaligned.
func (it *item) isTimed() bool {
	return it.kind == aBarrier && it.barrier.Alignment == Aligned && it.barrier.Timeout > 0 && !it.barrier.Forced
}

// sendBarrier sends a barrier and returns the records that it overtook.
func (ch *simChannel) sendBarrier(b Barrier) []item {
	if ch.feed.edge == broadcast && (b.Alignment == Unaligned || b.Timeout > 0) {
		b.Alignment, b.Forced = Aligned, true
	}
	if b.Alignment != Unaligned {
		ch.out = append(ch.out, item{kind: aBarrier, barrier: b})
		return nil
	}
	overtaken := recordsOf(ch.out)
	ch.out = slices.Insert(ch.out, 0, item{kind: aBarrier, barrier: b})
	return overtaken
}

func recordsOf(items []item) []item {
	var records []item
	for _, it := range items {
		if it.kind == aRecord {
			records = append(records, it)
		}
	}
	return records
}

// convert has the aligned barrier in the sender's queue overtake, and returns the records that it overtook.
func (ch *simChannel) convert(id base.CheckpointID) []item {
	i := slices.IndexFunc(ch.out, func(it item) bool { return it.isBarrier(id) && it.isTimed() })
	if i < 0 {
		return nil
	}
	it := ch.out[i]
	overtaken := recordsOf(ch.out[:i])
	it.barrier.Alignment, it.barrier.Timeout = Unaligned, 0
	ch.out = slices.Insert(slices.Delete(ch.out, i, i+1), 0, it)
	return overtaken
}

// carry moves an item from the sender's queue to the receiver's.
func (w *world) carry(ch *simChannel) bool {
	if len(ch.out) == 0 || !ch.to.lives() || ch.from.dead {
		return false
	}
	it := ch.out[0]
	priority := it.kind == aBarrier && it.barrier.Alignment == Unaligned
	if !priority && len(ch.in) >= queueCapacity {
		return false
	}
	ch.out = ch.out[1:]
	if priority {
		ch.barrierSeen(it.barrier.ID)
		w.tellTask(ch.to, BarrierArrived{ch.slotIn, it.barrier, true})
		return true
	}
	ch.in = append(ch.in, it)
	switch {
	case it.isTimed():
		if ch.recording == it.barrier.ID {
			ch.recording = 0
		}
		w.tellTask(ch.to, BarrierAnnounced{ch.slotIn, it.barrier})
	case it.kind == aRecord && ch.recording != 0:
		if s := ch.to.uploading(ch.recording); s != nil {
			w.marks.hit("record recorded on arrival")
			s.in[ch.slotIn].flight = append(s.in[ch.slotIn].flight, it)
		}
	}
	return true
}

// barrierSeen: what arrives from now on is behind the barrier.
func (ch *simChannel) barrierSeen(id base.CheckpointID) {
	ch.barrier = max(ch.barrier, id)
	if ch.recording <= id {
		ch.recording = 0
	}
}

// startRecording returns the queued records that are before the barrier, and has later ones recorded until it comes.
func (ch *simChannel) startRecording(id base.CheckpointID) []item {
	queued := ch.in
	if ch.gate == sealed {
		queued = queued[:max(0, min(ch.before, len(queued)))]
	}
	come := ch.barrier >= id
	if i := slices.IndexFunc(queued, func(it item) bool { return it.isBarrier(id) }); i >= 0 {
		queued, come = queued[:i], true
	}
	if !come {
		ch.recording = id
	}
	return recordsOf(queued)
}
