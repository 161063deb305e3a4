package snapshot

import (
	"maps"
	"slices"
	"sort"
)

// rowLists are the lists of a canonical savepoint.
func (s *Subtask) rowLists() (lists []RowsPart) {
	for _, r := range s.Rows {
		if !r.Keyed {
			lists = append(lists, RowsPart{RowsHandle: r, To: r.Count})
		}
	}
	return lists
}

// dealt is a list of one old subtask, in either format.
type dealt[L any] interface {
	list() (name string, mode Mode, count int64)
	// cut is the elements from one on, before another.
	cut(from, to int64) L
}

func (l ListHandle) list() (string, Mode, int64) { return l.Name, l.Mode, int64(len(l.Offsets)) }

func (l ListHandle) cut(from, to int64) ListHandle {
	l.Offsets = l.Offsets[from:to]
	return l
}

func (p RowsPart) list() (string, Mode, int64) { return p.Name, p.Mode, p.Count }

func (p RowsPart) cut(from, to int64) RowsPart {
	p.From, p.To = from, to
	return p
}

// pile is one list of all old subtasks that have it, in their order.
type pile[L dealt[L]] struct {
	mode Mode
	all  []L
	// own is each old subtask's, where each keeps it: nil where it has none. Nil: it is dealt anew.
	own [][]L
	// ends counts the elements up to the end of each of all.
	ends []int64
	// start is the subtask that gets the first run.
	start int
}

// gather makes a pile of each list, in the order of the names, to be dealt out at a parallelism.
func gather[L dealt[L]](o *Operator, parallelism int, listsOf func(*Subtask) []L) []pile[L] {
	byName, rescaled := map[string]*pile[L]{}, parallelism != o.Parallelism
	for i := range o.Subtasks {
		for _, l := range listsOf(&o.Subtasks[i]) {
			name, mode, n := l.list()
			p := byName[name]
			if p == nil {
				p = &pile[L]{mode: mode}
				byName[name] = p
				if !rescaled && mode != Union {
					p.own = make([][]L, o.Parallelism)
				}
			}
			p.add(l, n)
			if p.own != nil {
				p.own[i] = p.all[len(p.all)-1:]
			}
		}
	}
	piles, start := make([]pile[L], 0, len(byName)), 0
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		p := byName[name]
		if p.start = start; p.mode == Split && rescaled {
			start = (start + int(p.total()%int64(parallelism))) % parallelism
		}
		piles = append(piles, *p)
	}
	return piles
}

func (p *pile[L]) add(l L, n int64) {
	p.all, p.ends = append(p.all, l), append(p.ends, p.total()+n)
}

// total is the number of all elements.
func (p *pile[L]) total() int64 {
	if len(p.ends) == 0 {
		return 0
	}
	return p.ends[len(p.ends)-1]
}

// share is what a subtask gets.
func (p *pile[L]) share(parallelism, subtask int) []L {
	switch {
	case p.mode == Union:
		return p.all
	case p.own != nil && (p.mode == Split || len(p.own[subtask]) > 0):
		return p.own[subtask]
	case p.mode == Broadcast:
		i := subtask % len(p.all)
		return p.all[i : i+1]
	}
	return p.run(parallelism, subtask)
}

// run is the subtask's run of a split list's elements. Subtask start gets the first run, and so on around.
func (p *pile[L]) run(parallelism, subtask int) (run []L) {
	each, odd := p.total()/int64(parallelism), int(p.total()%int64(parallelism))
	turn := (subtask - p.start + parallelism) % parallelism
	first := int64(turn)*each + int64(min(turn, odd))
	end := first + each
	if turn < odd {
		end++
	}
	for i := sort.Search(len(p.ends), func(i int) bool { return p.ends[i] > first }); i < len(p.all) && first < end; i++ {
		_, _, n := p.all[i].list()
		begin := p.ends[i] - n
		if to := min(end, p.ends[i]); to > first {
			run = append(run, p.all[i].cut(first-begin, to-begin))
			first = to
		}
	}
	return run
}
