package checkpoint

import "slices"

// origin is who made a request.
type origin uint8

const (
	user     origin = iota
	periodic        // the interval
	final           // the end of all data
)

// request is a checkpoint or savepoint that somebody wants.
type request struct {
	Requested
	origin origin
	at     Time
}

// format is how the state will be written: only savepoints are for other backends to read.
func (r *request) format() Format {
	if r.Kind.IsSavepoint() {
		return r.Format
	}
	return Native
}

// queueMax is how many requests wait at most. It is Flink's number: enough for every user, and an end to a loop of
// requests.
const queueMax = 1000

// queue is the requests that wait, the next one first: savepoints before checkpoints, forced ones before others, periodic
// ones last, then the older first.
type queue []request

func (q queue) has(o origin) bool {
	return slices.ContainsFunc(q, func(r request) bool { return r.origin == o })
}

// forced: r passes the limit of concurrent checkpoints. A savepoint does, unless the job's checkpoints are unaligned: then
// a second one disturbs the first.
func (c *Coordinator) forced(r *request) bool { return r.Kind.IsSavepoint() && !c.cfg.Unaligned }

// rank orders the queue; the least comes first.
func (c *Coordinator) rank(r *request) int {
	rank := 0
	if !r.Kind.IsSavepoint() {
		rank += 4
	}
	if !c.forced(r) {
		rank += 2
	}
	if r.origin == periodic {
		rank++
	}
	return rank
}

// requested takes a user's request. A stop gives up the checkpoints under way; savepoints of users are kept.
func (c *Coordinator) requested(e Requested) {
	r := request{Requested: e, origin: user, at: c.now}
	if r.StopScheduler {
		c.stops++
	}
	switch {
	case c.closing:
		c.refuse(r, Shutdown, nil)
		return
	case c.terminal != nil:
		c.refuse(r, Suspended, stoppedError(c.terminal))
		return
	case r.StopScheduler:
		c.refuseQueued(Suspended, nil, func(q *request) bool { return !q.Kind.IsSavepoint() })
		c.abortPending(Suspended, nil, func(p *pending) bool { return !p.done.Kind.IsSavepoint() })
	}
	c.enqueue(r)
}

// enqueue puts r in its place. In a full queue a periodic request gives way to any other.
func (c *Coordinator) enqueue(r request) {
	if n := len(c.queue); n >= queueMax && c.queue[n-1].origin != periodic {
		c.refuse(r, TooManyRequests, nil)
		return
	}
	rank := c.rank(&r)
	at, _ := slices.BinarySearchFunc(c.queue, rank, func(q request, rank int) int {
		if c.rank(&q) <= rank {
			return -1
		}
		return 1
	})
	c.queue = slices.Insert(c.queue, at, r)
	if n := len(c.queue); n > queueMax {
		last := c.queue[n-1]
		c.queue = c.queue[:n-1]
		c.refuse(last, TooManyRequests, nil)
	}
}

// startNext decides about the head of the queue: it is started, refused, or (false) waits. Behind a savepoint by which the
// job stops everything waits: a checkpoint that overtook it would find sources that have stopped, and if it completed first
// tasks would finish by it, while the user is told that the stop failed.
func (c *Coordinator) startNext() bool {
	switch {
	case len(c.queue) == 0, c.triggering != nil, c.restoring, c.cleaning > c.cfg.MaxConcurrent,
		slices.ContainsFunc(c.pending, (*pending).stops):
		return false
	}
	head := c.queue[0]
	if len(c.pending) >= c.cfg.MaxConcurrent && !c.forced(&head) {
		return false
	}
	c.queue = slices.Delete(c.queue, 0, 1)
	if head.origin == periodic && c.everDone {
		if earliest := c.lastDone.Add(c.cfg.MinPause); earliest > c.now {
			c.next = earliest
			c.refuse(head, MinimumPause, nil)
			return true
		}
	}
	c.start(head)
	return true
}

// refuse ends a request that never became a checkpoint.
func (c *Coordinator) refuse(r request, why Reason, err error) {
	if r.Request != 0 {
		c.do(Reply{Request: r.Request, Reason: why, Err: err})
	}
	c.ended(&r)
	c.failed(&r, Report{Kind: r.Kind, Format: r.format(), Reason: why, Err: err, Exec: NoExec})
}

// ended is called when a request failed: what it held goes on.
func (c *Coordinator) ended(r *request) {
	if r.StopScheduler {
		c.stops--
	}
	if r.origin == final {
		c.finalFailed()
	}
}
