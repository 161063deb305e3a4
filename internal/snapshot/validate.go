package snapshot

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/base"
)

// Validate reports everything that is wrong with m; such metadata is neither written nor read.
func (m *Metadata) Validate() error {
	v := &validator{}
	v.job(m)
	uids := map[string]bool{}
	for i := range m.Operators {
		o := &m.Operators[i]
		if o.UID == "" || uids[o.UID] {
			v.fault("the UID %q of operator %d is empty or not the only one", o.UID, i)
		}
		uids[o.UID] = true
		v.operator(o)
	}
	hooks := map[string]bool{}
	for i := range m.Hooks {
		h := &m.Hooks[i]
		if h.ID == "" || hooks[h.ID] {
			v.fault("the id %q of hook %d is empty or not the only one", h.ID, i)
		}
		hooks[h.ID] = true
	}
	v.edges(m)
	_ = m.Handles(func(owner Owner, h *Handle) error { v.handle(owner, h); return nil })
	return errors.Join(v.faults...)
}

// faultsMax bounds how many faults are told: the first ones say enough.
const faultsMax = 20

type validator struct {
	faults []error
	whole  bool // nothing may refer to files of older checkpoints
}

func (v *validator) fault(format string, args ...any) {
	if len(v.faults) < faultsMax {
		v.faults = append(v.faults, fmt.Errorf("snapshot: "+format, args...))
	}
}

func (v *validator) job(m *Metadata) {
	v.whole = m.Kind != Checkpoint
	if m.ID < 1 {
		v.fault("the checkpoint id %d is not positive", m.ID)
	}
	if !ValidJob(m.Job) {
		v.fault("the job id %q is not 32 hexadecimal digits", string(m.Job))
	}
	if !slices.Contains([]Kind{Checkpoint, FullCheckpoint, Savepoint, Suspend, Drain}, m.Kind) {
		v.fault("there is no kind %q of checkpoint", string(m.Kind))
	}
	if m.Format != Native && m.Format != Canonical {
		v.fault("there is no format %q", string(m.Format))
	}
	if m.Run < 0 {
		v.fault("the run %d is negative", m.Run)
	}
}

// ValidJob reports whether id has the 32 hexadecimal digits of a job id, in lower case.
func ValidJob(id base.JobID) bool {
	digit := func(r rune) bool { return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' }
	return len(id) == 32 && strings.IndexFunc(string(id), func(r rune) bool { return !digit(r) }) < 0
}

func (v *validator) operator(o *Operator) {
	if o.Parallelism < 1 || o.Parallelism > base.KeyGroups {
		v.fault("%v: a parallelism of %d is not between 1 and %d", o, o.Parallelism, base.KeyGroups)
		return
	}
	if o.Finished {
		if len(o.Subtasks) > 0 || o.Coordinator != nil {
			v.fault("%v had finished, but left state", o)
		}
		return
	}
	if len(o.Subtasks) != o.Parallelism {
		v.fault("%v has %d of %d subtasks", o, len(o.Subtasks), o.Parallelism)
		return
	}
	modes, ways := map[string]Mode{}, map[string]dealing{}
	for i := range o.Subtasks {
		v.subtask(o, i, modes, ways)
	}
}

// dealing is how rows are given out.
type dealing struct {
	keyed bool
	mode  Mode
}

func (v *validator) subtask(o *Operator, i int, modes map[string]Mode, ways map[string]dealing) {
	s := &o.Subtasks[i]
	if s.Index != i {
		v.fault("%v has subtask %d in place %d", o, s.Index, i)
		return
	}
	if s.Finished && (!s.Ended || s.hasState()) {
		v.fault("%s had finished, but left state or did not end", o.part(i))
	}
	own := base.RangeOf(i, o.Parallelism)
	for _, h := range s.Keyed {
		if both, ok := h.Range.Intersect(own); !ok || both != h.Range {
			v.fault("%s: keyed state of the key groups %d-%d is not within its own, %d-%d",
				o.part(i), h.Range.First, h.Range.Last, own.First, own.Last)
		}
		v.refers(o, i, h.Refers)
	}
	for j := range s.Lists {
		v.list(o, s, j, modes)
	}
	for j := range s.Rows {
		v.rows(o, s, j, own, ways)
	}
	for j := range s.InFlight {
		v.inFlight(o, s, &s.InFlight[j])
	}
}

// refers refuses what is named in a way that means another file in the next checkpoint's directory.
func (v *validator) refers(o *Operator, i int, files []Handle) {
	if len(files) > 0 && v.whole {
		v.fault("%s: keyed state refers to the file %q, but what is not incremental has all its bytes itself", o.part(i), files[0].File)
	}
	seen := map[string]bool{}
	for _, f := range files {
		if !path.IsAbs(f.File) || seen[f.File] {
			v.fault("%s: keyed state refers to the file %q, which is no absolute name, or is there twice", o.part(i), f.File)
		}
		seen[f.File] = true
	}
}

func (v *validator) rows(o *Operator, s *Subtask, j int, own base.KeyGroupRange, ways map[string]dealing) {
	r := &s.Rows[j]
	how, seen := ways[r.Name]
	switch both, ok := r.Range.Intersect(own); {
	case slices.ContainsFunc(s.Rows[:j], func(other RowsHandle) bool { return other.Name == r.Name }):
		v.fault("%s has two files of rows %q", o.part(s.Index), r.Name)
	case seen && how != dealing{r.Keyed, r.Mode}:
		v.fault("%s, rows %q are given out in another way than another subtask's", o.part(s.Index), r.Name)
	case r.Count < 0:
		v.fault("%s, rows %q: there cannot be %d", o.part(s.Index), r.Name, r.Count)
	case r.Keyed && (!ok || both != r.Range):
		v.fault("%s, rows %q of the key groups %d-%d are not within its own, %d-%d",
			o.part(s.Index), r.Name, r.Range.First, r.Range.Last, own.First, own.Last)
	case !r.Keyed && r.Mode > Broadcast:
		v.fault("%s, rows %q: there is no mode %d", o.part(s.Index), r.Name, r.Mode)
	}
	ways[r.Name] = dealing{r.Keyed, r.Mode}
}

func (v *validator) inFlight(o *Operator, s *Subtask, h *InFlightHandle) {
	end := h.To
	if h.Output {
		end = h.From
	}
	switch {
	case end != o.UID:
		v.fault("%s: records in flight on the edge %v are not its own", o.part(s.Index), h.Edge)
	case h.Records < 1 || h.Input < 0:
		v.fault("%s: %d records in flight on the edge %v", o.part(s.Index), h.Records, h.Edge)
	case s.Ended && !h.Output:
		v.fault("%s had ended, but records are in flight to it on the edge %v", o.part(s.Index), h.Edge)
	}
}

// edges refuses records in flight in a snapshot whose barriers overtake nothing, and those whose type is not told, or told in two ways.
func (v *validator) edges(m *Metadata) {
	records := m.recordsOf()
	for i := range m.Operators {
		for _, s := range m.Operators[i].InFlight {
			if s.Record == "" || records[s.Edge] != s.Record {
				v.fault("%v: the type of the records on the edge %v is not there, or there are two", &m.Operators[i], s.Edge)
			}
		}
	}
	for _, f := range m.inFlight() {
		if records[f.Edge] == "" {
			v.fault("the type of the records in flight on the edge %v is not there", f.Edge)
		}
		if m.Kind.IsSavepoint() {
			v.fault("records are in flight on the edge %v, but a savepoint has none", f.Edge)
		}
	}
}

func (v *validator) list(o *Operator, s *Subtask, j int, modes map[string]Mode) {
	l := &s.Lists[j]
	if l.Mode > Broadcast {
		v.fault("%s, list %q: there is no mode %d", o.part(s.Index), l.Name, l.Mode)
	}
	if mode, seen := modes[l.Name]; seen && mode != l.Mode {
		v.fault("%s, list %q is %v, but was %v in another subtask", o.part(s.Index), l.Name, l.Mode, mode)
	}
	modes[l.Name] = l.Mode
	if slices.ContainsFunc(s.Lists[:j], func(other ListHandle) bool { return other.Name == l.Name }) {
		v.fault("%s has two lists %q", o.part(s.Index), l.Name)
	}
	last := int64(0)
	for _, at := range l.Offsets {
		if at < last || at > l.Size {
			v.fault("%s, list %q: the offset %d after %d is not ascending within %d bytes", o.part(s.Index), l.Name, at, last, l.Size)
			return
		}
		last = at
	}
}

func (v *validator) handle(owner Owner, h *Handle) {
	switch {
	case h.File == "" && (h.Size != int64(len(h.Inline)) || h.CRC != Checksum(0, h.Inline)):
		v.fault("%v: size or checksum of the %d inline bytes is wrong", owner, len(h.Inline))
	case h.File != "" && len(h.Inline) > 0:
		v.fault("%v lies both in the file %s and inline", owner, quote(h.File))
	case h.Size < 0:
		v.fault("%v: a size of %d bytes cannot be", owner, h.Size)
	case h.File != "" && !validFile(h.File):
		v.fault("%v: the file name %q is not clean, or leads out of the checkpoint", owner, h.File)
	}
}

// validFile keeps names from leaving the checkpoint's directory: a savepoint may come from anyone.
func validFile(name string) bool {
	return path.Clean(name) == name && name != "." && name != ".." && !strings.HasPrefix(name, "../") &&
		strings.IndexByte(name, 0) < 0
}
