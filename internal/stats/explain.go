package stats

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/graph"
)

// Explain is one sentence about where the time of a checkpoint went: which task, in which phase, on which edge, for how long.
//
// Of one that completed it follows the path that decided its duration, from the end to the begin: the task that acknowledged
// last; what it did after its last barrier; the edge on which that barrier came late; then the sender of that edge, which is
// where the barrier was before; and so on to a source. Each piece of time belongs to exactly one step of this path. A task that
// waited long is thus blamed for nothing: the sentence names the one that it waited for.
//
//	began     Wall   Triggered        source            "count"                                     end
//	  |---------|--------|--------------|------------------|----------|-------|--------|------------|
//	   directory  coordinators  trigger    barrier on edge     sync     writing  ack     metadata
//
// Of one that failed, or is under way, it names the tasks that have not acknowledged and are not waiting for another one: who
// writes, who has a barrier but not all, who has not come to barriers that were sent.
func Explain(g *graph.Job, c *Checkpoint, now time.Time) string {
	x := explainer{graph: g, c: c, tense: present, at: now}
	switch c.What {
	case checkpoint.Succeeded:
		return x.completed()
	case checkpoint.Failed:
		x.tense, x.at = past, c.Ended
	case checkpoint.Begun:
	}
	return x.unfinished()
}

type explainer struct {
	tense
	graph *graph.Job
	c     *Checkpoint
	steps []step
	at    time.Time // of what is told of one that has not completed
}

// tense is the difference between what is and what was.
type tense struct{ has, have, are string }

var (
	present = tense{"has", "have", "are"}
	past    = tense{"had", "had", "were"}
)

// step is a piece of the path.
type step struct {
	took time.Duration
	who  string // the task; "": the master
	what string
}

const (
	// leastShare is the share of the whole duration that a step must have to be told beside the longest one, and leastStep its least
	// duration: what is shorter says more of the machine than of the job.
	leastShare = 0.05
	leastStep  = time.Millisecond
)

// stepsTold is how many steps are told at most.
const stepsTold = 3

func (x *explainer) completed() string {
	total := x.c.Duration
	x.path()
	told := slices.Clone(x.steps)
	slices.SortStableFunc(told, func(a, b step) int { return cmp.Compare(b.took, a.took) })
	var b strings.Builder
	who := ""
	for i, s := range told {
		if i == stepsTold || i > 0 && (s.took < leastStep || float64(s.took) < leastShare*float64(total)) {
			break
		}
		switch {
		case i == 0 && s.took >= total*9/10:
			fmt.Fprintf(&b, "%s: ", FormatDuration(total))
		case i == 0:
			fmt.Fprintf(&b, "%s of %s: ", FormatDuration(s.took), FormatDuration(total))
		default:
			fmt.Fprintf(&b, "; %s ", FormatDuration(s.took))
		}
		if s.who != who && s.who != "" {
			b.WriteString(s.who + " ")
		}
		b.WriteString(s.what)
		who = s.who
	}
	if b.Len() == 0 {
		return fmt.Sprintf("%s: no task had anything to do.", FormatDuration(total))
	}
	return b.String() + "."
}

// ---- the path of one that completed

// path takes the steps, the last one first.
func (x *explainer) path() {
	c := x.c
	end := c.Ended.Sub(c.Wall)
	last := base.Task(-1)
	for i := range c.Parts {
		if c.Parts[i].Acked() && (last < 0 || c.Parts[i].Since.After(c.Parts[last].Since)) {
			last = base.Task(i)
		}
	}
	at := end - c.Finalize
	x.step(end-at, "", "publishing the metadata")
	if last >= 0 {
		at = x.part(last, at)
		at = x.barrier(last, at)
	}
	x.step(min(at, c.Triggered), "", "asking operator coordinators and hooks")
	x.step(c.Duration-end, "", "making the directory")
}

func (x *explainer) step(took time.Duration, who, what string) {
	if took > 0 {
		x.steps = append(x.steps, step{took, who, what})
	}
}

// part goes from the acknowledgement of a task, at, back to where it did nothing but wait for a barrier.
func (x *explainer) part(t base.Task, at time.Duration) time.Duration {
	p, who := &x.c.Parts[t], x.task(t)
	cut := min(at, p.StartDelay+p.Held)
	synced := min(at, cut+p.Sync)
	written := min(at, synced+p.Async)
	x.step(at-written, who, "was busy before it could acknowledge (its code had not returned)")
	if aligned := min(written, p.StartDelay+p.Alignment); p.Unaligned && aligned > synced+p.States {
		x.step(written-aligned, who, writing(p))
		return aligned
	}
	x.step(written-synced, who, writing(p))
	x.step(synced-cut, who, "taking the snapshot (synchronous part)")
	return cut
}

func writing(p *Part) string {
	what := "writing " + FormatBytes(p.New)
	if p.Persisted > 0 {
		what += ", " + FormatBytes(p.Persisted) + " of it records in flight"
	}
	return what
}

// barrier goes from a task that had its barriers at a time back along the edge on which the one came that counted, and on.
// It ends: a sender stands before its receivers.
func (x *explainer) barrier(t base.Task, at time.Duration) time.Duration {
	for {
		p, who := &x.c.Parts[t], x.task(t)
		on := p.Last
		if p.Unaligned && at <= p.StartDelay+p.Held {
			at = x.held(t, at)
			on = p.First
		}
		l, sender := x.channel(t, on)
		if l == nil {
			x.step(at-x.c.Triggered, who, "was busy before it took its trigger (its code had not returned)")
			return min(at, x.c.Triggered)
		}
		from := l.From.First + base.Task(sender)
		s := &x.c.Parts[from]
		sent := min(at, s.StartDelay+s.Held)
		if s.Stage == Exempt {
			sent = x.c.Triggered // nobody measured when it ended
		}
		x.step(at-sent, who, fmt.Sprintf("waited for %s on %s (%s)", barriers(l, t), edge(l), cause(p)))
		if s.Stage == Exempt {
			return sent
		}
		t, at = from, sent
	}
}

// held takes the time off in which an aligned barrier waited for the others, before it overtook.
func (x *explainer) held(t base.Task, at time.Duration) time.Duration {
	p := &x.c.Parts[t]
	first := min(at, p.StartDelay)
	x.step(at-first, x.task(t), "waited for aligned barriers, until the time-out that lets them overtake")
	return first
}

// cause is why a barrier is late where it comes.
func cause(p *Part) string {
	switch {
	case p.Unaligned:
		return "its code had not returned"
	case p.Pressed > p.Busy:
		return "back-pressure: its own output was full"
	}
	return "back-pressure"
}

// barriers is one barrier or several, of an edge to a task.
func barriers(l *graph.Link, t base.Task) string {
	if len(l.Senders(int(t-l.To.First))) == 1 {
		return "the barrier"
	}
	return "barriers"
}

// ---- those that have not completed

// unfinished tells of one that failed or is under way.
func (x *explainer) unfinished() string {
	c := x.c
	took := FormatDuration(max(0, x.at.Sub(c.Wall)))
	switch {
	case c.Triggered == 0 && len(c.Asked) > 0:
		who, has := strings.Join(c.Asked, " and "), x.has
		if len(c.Asked) > 1 {
			has = x.have
		}
		return fmt.Sprintf("After %s %s %s not answered.", took, who, has)
	case c.Triggered == 0:
		return fmt.Sprintf("After %s the sources %s not been triggered.", took, x.have)
	case c.Acked >= c.Tasks:
		return fmt.Sprintf("After %s all tasks %s acknowledged; the metadata %s not been published.", took, x.have, x.has)
	}
	all := []string{fmt.Sprintf("After %s %d of %d tasks %s acknowledged", took, c.Acked, c.Tasks, x.have)}
	causes, waiting := x.causes()
	if by := x.declined(); by != "" {
		causes, waiting = []string{by}, 0
	}
	if more := len(causes) - stepsTold; more > 0 {
		causes = append(causes[:stepsTold:stepsTold], fmt.Sprintf("and so %s %d more", plural(more, x.has, x.have), more))
	}
	all = append(all, causes...)
	if waiting > 0 {
		all = append(all, fmt.Sprintf("%d %s for barriers of these", waiting, plural(waiting, "waits", "wait")))
	}
	return strings.Join(all, "; ") + "."
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// declined tells of the task that declined; "": none did.
func (x *explainer) declined() string {
	c := x.c
	if c.By.Task < 0 || int(c.By.Task) >= len(c.Parts) {
		return ""
	}
	p, who := &c.Parts[c.By.Task], x.task(c.By.Task)
	why := c.Reason.Message()
	if c.Err != nil {
		why = c.Err.Error()
	}
	why = strings.TrimSuffix(why, ".")
	spent := FormatDuration(x.at.Sub(p.Since))
	switch p.Stage {
	case Writing:
		return fmt.Sprintf("%s failed after writing for %s: %s", who, spent, why)
	case Aligning:
		return fmt.Sprintf("%s gave up after aligning for %s: %s", who, spent, why)
	case Nothing, Acked, Exempt:
	}
	return fmt.Sprintf("%s gave up: %s", who, why)
}

// causes are what tasks are at that wait for no other one, the sources' first; waiting is how many do.
func (x *explainer) causes() (causes []string, waiting int) {
	for _, v := range x.graph.Vertices {
		for i := range v.Parallelism {
			t := v.First + base.Task(i)
			if p := &x.c.Parts[t]; p.Stage == Acked || p.Stage == Exempt {
				continue
			}
			if cause := x.causeOf(v, i); cause != "" {
				causes = append(causes, x.task(t)+" "+cause)
			} else {
				waiting++
			}
		}
	}
	return causes, waiting
}

// causeOf is what a subtask is at that has not acknowledged; "": it waits for a sender.
func (x *explainer) causeOf(v *graph.Vertex, subtask int) string {
	p := &x.c.Parts[v.First+base.Task(subtask)]
	sent, all := x.sent(v, subtask)
	since := FormatDuration(x.at.Sub(p.Since))
	switch {
	case p.Stage == Writing && (all || !p.Unaligned):
		return fmt.Sprintf("%s been writing for %s", x.has, since)
	case !all:
		return ""
	case v.IsSource():
		return fmt.Sprintf("%s not come to its trigger: its code %s not returned", x.has, x.has)
	case p.Stage == Aligning:
		return fmt.Sprintf("%s been aligning for %s: some barriers on %s %s still behind records (back-pressure)", x.has, since, edges(v), x.are)
	}
	return fmt.Sprintf("%s no barrier yet, though all on %s were sent %s before: they %s behind records (back-pressure)", x.has, edges(v),
		FormatDuration(x.at.Sub(sent)), x.are)
}

// sent is when the last of the senders to a subtask has sent its barrier, and whether all have.
func (x *explainer) sent(v *graph.Vertex, subtask int) (last time.Time, all bool) {
	for _, l := range v.Inputs {
		for _, s := range l.Senders(subtask) {
			p := &x.c.Parts[l.From.First+base.Task(s)]
			if !p.sent() {
				return last, false
			}
			if at := x.c.Wall.Add(p.StartDelay + p.Held); at.After(last) {
				last = at
			}
		}
	}
	return last, true
}

// ---- names

// task names a task.
func (x *explainer) task(t base.Task) string {
	v, subtask := x.graph.Locate(t)
	if v.Parallelism == 1 {
		return fmt.Sprintf("%q", v.Name)
	}
	return fmt.Sprintf("subtask %d of %q", subtask+1, v.Name)
}

// channel is the link and the sender of a task's channel, counted from 1; nil: it is none.
func (x *explainer) channel(t base.Task, number int) (*graph.Link, int) {
	v, subtask := x.graph.Locate(t)
	number--
	for _, l := range v.Inputs {
		senders := l.Senders(subtask)
		if number >= 0 && number < len(senders) {
			return l, senders[number]
		}
		number -= len(senders)
	}
	return nil, 0
}

// edges names the edges into a vertex.
func edges(v *graph.Vertex) string {
	var all []string
	for _, l := range v.Inputs {
		all = append(all, edge(l))
	}
	return strings.Join(all, " and ")
}

// edge names an edge by the operators that it joins.
func edge(l *graph.Link) string {
	return l.From.Node(l.Edge.From).Name + " -> " + l.To.Node(l.Edge.To).Name
}
