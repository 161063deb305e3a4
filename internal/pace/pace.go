package pace

import "time"

const (
	// burst is how much time without records is made up for: a reader that was held up for longer does not flood.
	burst = 100 * time.Millisecond
	// nap is the least time between two wakes: at high rates records come in small runs, not one by one.
	nap = 5 * time.Millisecond
)

// Pacer gives out records at a steady rate. A nil Pacer gives out as many as asked for. It belongs to one goroutine.
type Pacer struct {
	rate   float64 // records a second
	wake   func()
	credit float64   // records that may be taken, as of last
	last   time.Time // zero: nothing was taken yet
	timer  *time.Timer
}

// New is a Pacer of so many records a second; nil, which does not limit, where that is not above zero. wake, called from any
// goroutine, says that there is something to take again.
func New(perSecond float64, wake func()) *Pacer {
	if !(perSecond > 0) {
		return nil
	}
	return &Pacer{rate: perSecond, wake: wake}
}

// SetRate changes the rate from now on. At zero nothing can be taken, and nobody is woken.
func (p *Pacer) SetRate(perSecond float64) {
	if p == nil || p.rate == perSecond {
		return
	}
	p.earn()
	p.rate = perSecond
}

// Take takes up to most records. Where it gives 0, wake is called when there are some.
func (p *Pacer) Take(most int) int {
	if p == nil {
		return most
	}
	p.earn()
	n := most
	if p.credit < float64(most) {
		n = int(p.credit)
	}
	p.credit -= float64(n)
	if n == 0 && most > 0 && p.rate > 0 {
		p.sleep()
	}
	return n
}

// Return gives back what was taken and not used.
func (p *Pacer) Return(n int) {
	if p != nil {
		p.credit += float64(n)
	}
}

// Close ends the waking.
func (p *Pacer) Close() {
	if p != nil && p.timer != nil {
		p.timer.Stop()
	}
}

// earn turns the time since the last call into credit.
func (p *Pacer) earn() {
	now := time.Now()
	if p.last.IsZero() {
		p.last, p.credit = now, 1
		return
	}
	most := max(1, p.rate*burst.Seconds())
	p.credit = min(p.credit+p.rate*now.Sub(p.last).Seconds(), max(most, p.credit))
	p.last = now
}

// sleep arms the timer for when there is credit for one record, and not before a nap is over.
func (p *Pacer) sleep() {
	wait := max(nap, time.Duration((1-p.credit)/p.rate*float64(time.Second))+1)
	if p.timer == nil {
		p.timer = time.AfterFunc(wait, p.wake)
		return
	}
	p.timer.Reset(wait)
}
