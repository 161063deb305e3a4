package pace

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// drain takes records for d of the bubble's time, sleeping until it is woken, and counts them.
func drain(p *Pacer, woken <-chan struct{}, d time.Duration) (n int) {
	end := time.After(d)
	for {
		if took := p.Take(128); took > 0 {
			n += took
			continue
		}
		select {
		case <-woken:
		case <-end:
			return n
		}
	}
}

func TestRate(t *testing.T) {
	for _, rate := range []float64{0.5, 1, 3, 10, 999, 1e6} {
		synctest.Test(t, func(t *testing.T) {
			woken := make(chan struct{}, 1)
			p := New(rate, func() { woken <- struct{}{} })
			defer p.Close()
			n := drain(p, woken, 20*time.Second)
			if want := rate * 20; math.Abs(float64(n)-want) > 1+rate*nap.Seconds() {
				t.Errorf("rate %v: %d records in 20 s, want about %v", rate, n, want)
			}
		})
	}
}

// A reader that was held up for a minute makes up for a tenth of a second, not for the minute.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1000, func() {})
		defer p.Close()
		p.Take(1)
		time.Sleep(time.Minute)
		if n := p.Take(1 << 20); n != 100 {
			t.Errorf("took %d after a minute, want 100", n)
		}
	})
}

func TestReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1000, func() {})
		defer p.Close()
		p.Take(1)
		time.Sleep(time.Second)
		n := p.Take(50)
		p.Return(n)
		if again := p.Take(1000); again != 100 {
			t.Errorf("took %d, want the 100 that were there before", again)
		}
	})
}

func TestSetRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		woken := make(chan struct{}, 1)
		p := New(100, func() { woken <- struct{}{} })
		defer p.Close()
		drain(p, woken, 10*time.Second)
		p.SetRate(50)
		if n := drain(p, woken, 10*time.Second); n < 495 || n > 511 {
			t.Errorf("%d records in 10 s at 50 a second", n)
		}
		p.SetRate(0)
		if n := drain(p, woken, time.Hour); n > 10 {
			t.Errorf("%d records at rate 0", n)
		}
	})
}

func TestNil(t *testing.T) {
	p := New(0, nil)
	if n := p.Take(77); n != 77 {
		t.Errorf("took %d of 77", n)
	}
	p.Return(3)
	p.SetRate(5)
	p.Close()
	if New(math.NaN(), nil) != nil {
		t.Error("NaN is a rate")
	}
}
