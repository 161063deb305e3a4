package weirtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirstream/weir"
)

// The kits find what is broken: each kind of mistake, by a check that names it.

// found runs checks that some are to fail of, and says which did, and what they said.
func found(t *testing.T, checks []check) map[string]string {
	t.Helper()
	said := map[string]string{}
	for _, c := range checks {
		if text := Failing(t, c.run); text != "" {
			said[c.name] = text
		}
	}
	return said
}

// badSource is a source of numbers with a mistake.
type badSource struct {
	*Source[int64]
	mistake string
}

func (s badSource) Reader(ctx weir.ReaderContext) (weir.Reader[int64, Position], error) {
	r, err := s.Source.Reader(ctx)
	return &badReader{Reader: r, mistake: s.mistake}, err
}

func (s badSource) Enumerator(ctx weir.EnumeratorContext[Position], state []byte) (weir.Enumerator[Position], error) {
	if s.mistake == "deals anew" {
		state = nil
	}
	return s.Source.Enumerator(ctx, state)
}

type badReader struct {
	weir.Reader[int64, Position]
	mistake string
	closed  bool
}

func (r *badReader) Snapshot(id int64) ([]Position, error) {
	splits, err := r.Reader.Snapshot(id)
	switch r.mistake {
	case "loses its offset":
		for i := range splits {
			splits[i].Next = 0
		}
	case "is one ahead":
		for i := range splits {
			splits[i].Next++
		}
	case "forgets a split":
		if len(splits) > 1 {
			splits = splits[1:]
		}
	}
	return splits, err
}

func (r *badReader) Poll(ctx context.Context, most int, out weir.Out[int64]) (weir.Status, error) {
	if r.mistake == "emits more than asked" {
		most += 5
	}
	return r.Reader.Poll(ctx, most, out)
}

func (r *badReader) Close() error {
	if r.mistake == "closes once" && r.closed {
		panic("closed again")
	}
	r.closed = true
	return r.Reader.Close()
}

// TestBrokenSources: each mistake is found.
func TestBrokenSources(t *testing.T) {
	for mistake, c := range map[string]struct{ by, says string }{
		"":                      {},
		"loses its offset":      {"restores anywhere", "what was read is not what is there:\n\tthere 2 times, not 1"},
		"is one ahead":          {"restores anywhere", "missing: "},
		"forgets a split":       {"restores anywhere", "missing: "},
		"deals anew":            {"restores anywhere", "there 2 times, not 1"},
		"emits more than asked": {"reads everything", "has emitted 6 records, but was asked for 1 at most"},
		"closes once":           {"closes", "call 2 of the reader's Close: panic: closed again"},
	} {
		t.Run(mistake, func(t *testing.T) {
			kit := SourceKit[int64, Position]{New: func(testing.TB) weir.Source[int64, Position] {
				s := NewSource[int64]()
				for i := range int64(40) {
					s.Split(fmt.Sprint(i % 3)).Emit(i)
				}
				return badSource{s, mistake}
			}}
			for i := range int64(40) {
				kit.Want = append(kit.Want, i)
			}
			mustFind(t, found(t, kit.checks()), c.by, c.says)
		})
	}
}

func mustFind(t *testing.T, found map[string]string, by, says string) {
	t.Helper()
	switch {
	case by == "" && len(found) > 0:
		t.Errorf("nothing is wrong, but was found: %v", found)
	case by != "" && !strings.Contains(found[by], says):
		t.Errorf("%q should say %q; found: %v", by, says, found)
	}
}

// badSink is a two-phase sink with a mistake.
type badSink struct {
	collector[string]
	mistake string
	memory  *sync.Map // of the process
}

func (k badSink) Writer(ctx weir.WriterContext) (weir.Writer[string], error) {
	if k.mistake == "does not fence" {
		subtask, _ := ctx.Subtask()
		ctx = renamed{fmt.Sprint(ctx.Job(), time.Now().UnixNano()), subtask}
	}
	return k.collector.Writer(ctx)
}

// renamed is a weir.WriterContext under another name.
type renamed struct {
	job     string
	subtask int
}

func (r renamed) Subtask() (index, of int) { return r.subtask, r.subtask + 1 }
func (r renamed) Job() string              { return r.job }

func (k badSink) Prepare(w weir.Writer[string], checkpoint int64) ([]sealed, []byte, error) {
	cs, state, err := k.collector.Prepare(w, checkpoint)
	for _, c := range cs {
		k.memory.Store(c.Transaction, true)
	}
	switch k.mistake {
	case "commits before complete":
		for _, c := range cs {
			err = k.ledger.commit(c.Transaction)
		}
	case "prepares nothing":
		return nil, state, err
	}
	return cs, state, err
}

func (k badSink) Restore(w weir.Writer[string], states [][]byte) error {
	if k.mistake == "does not abort" {
		w.(*collectWriter[string]).begun = true
		return nil
	}
	return k.collector.Restore(w, states)
}

func (k badSink) Commit(ctx context.Context, cs []*weir.Commit[sealed]) error {
	switch k.mistake {
	case "commits what it remembers":
		cs = slices.DeleteFunc(slices.Clone(cs), func(c *weir.Commit[sealed]) bool { _, known := k.memory.Load(c.Value.Transaction); return !known })
	case "commits twice":
		for _, c := range cs {
			k.ledger.mu.Lock()
			x := k.ledger.transactions[c.Value.Transaction]
			if x.fate == committed {
				x.values = append(x.values, x.values...)
			}
			k.ledger.mu.Unlock()
		}
	}
	return k.collector.Commit(ctx, cs)
}

// TestBrokenSinks: each mistake is found.
func TestBrokenSinks(t *testing.T) {
	for mistake, c := range map[string]struct{ by, says string }{
		"":                          {},
		"commits before complete":   {"visible when complete", "after: write 10, prepare:\nwhat is visible is not what it should be\n\tnot wanted: \"record 0\""},
		"prepares nothing":          {"visible when complete", "missing: \"record 0\""},
		"commits what it remembers": {"dies between prepare and commit", "missing: \"record 0\""},
		"commits twice":             {"commits again", "there 2 times, not 1: \"record 0\""},
		"does not abort":            {"what was not stored is gone", "there is left behind"},
		"does not fence":            {"what was not prepared is gone", "there is left behind"},
	} {
		t.Run(mistake, func(t *testing.T) {
			kit := SinkKit[string]{Record: func(i int) string { return fmt.Sprint("record ", i) }, Open: func(testing.TB) Outside[string] {
				l := newLedger[string]()
				out := &Sink[string]{l}
				return Outside[string]{Visible: out.Committed, Left: out.Pending, Sink: func() weir.Sink[string] {
					return weir.Committing[string, sealed](badSink{collector[string]{l}, mistake, &sync.Map{}})
				}}
			}}
			mustFind(t, found(t, kit.checks()), c.by, c.says)
		})
	}
}
