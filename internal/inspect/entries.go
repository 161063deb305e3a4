package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
)

// Query says which entries are wanted.
type Query struct {
	// Operator is a UID, or a name that only one operator has; State the name of a state, "timers", "coordinator" or "in-flight".
	Operator, State string
	// Keys are keys as JSON; without, all entries are wanted.
	Keys []string
	// Limit is the most entries that are wanted; 0: all.
	Limit int
}

// WriteEntries writes the entries of a state, each as a line of JSON:
//
//	{"key": ..., "value": ...}                                 value, reducing, aggregating (the accumulator)
//	{"key": ..., "index": 0, "value": ...}                     list
//	{"key": ..., "map_key": ..., "value": ...}                 map
//	{"key": ..., "time": "...", "timer": "event"}              timers; or "processing"
//	{"subtask": 0, "index": 0, "value": ...}                   list of an operator
//	{"subtask": 0, "map_key": ..., "value": ...}               broadcast map
//	{"subtask": 0, "edge": "...", "sender": 0, "time": "...", "value": ...}     records in flight
//	{"bytes": "..."}                                           coordinator, base64
//
// and, where a state has a time to live, "written" and, if the files say how long that is, "expires". Entries by key are in the order of
// the keys' hashes. Those of a list of an operator are in that of subtasks.
func (s *Snapshot) WriteEntries(w io.Writer, q Query) error {
	o, err := s.operator(q.Operator)
	if err != nil {
		return err
	}
	name, err := stateName(o, q.State)
	if err != nil {
		return err
	}
	n := 0
	var line []byte
	for e, err := range s.all(o, name, q.Keys) {
		if err == nil && q.Limit > 0 && n == q.Limit {
			return nil
		}
		if err == nil {
			line, err = e.append(line[:0])
		}
		if err != nil {
			return fmt.Errorf("%v, state %q: %w", o, name, err)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
		n++
	}
	return nil
}

// all are the entries of a state, or of what else an operator has.
func (s *Snapshot) all(o *snapshot.Operator, name string, keys []string) iter.Seq2[*entry, error] {
	switch {
	case name != coordinatorName && name != inFlightName:
		return s.entries(o, name, keys)
	case len(keys) > 0:
		return failed(errNoKeys)
	case name == coordinatorName:
		return s.coordinator(o)
	}
	return s.inFlight(o)
}

var errNoKeys = errors.New("it has no keys; leave --key out")

func failed(err error) iter.Seq2[*entry, error] {
	return func(yield func(*entry, error) bool) { yield(nil, err) }
}

// entry is one entry, with the types to show it by. It is valid until the next.
type entry struct {
	state.Row
	stored             state.StoredState
	subtask            int
	key, mapKey, typed *codec.Type // nil: there is none
	flight             *flightRecord
	whole              []byte // of a coordinator
}

// entries are those of a state, of the keys that are named or all.
func (s *Snapshot) entries(o *snapshot.Operator, name string, keys []string) iter.Seq2[*entry, error] {
	return func(yield func(*entry, error) bool) {
		wanted, err := wantedKeys(schemaOf(o, name), keys)
		if err != nil {
			yield(nil, err)
			return
		}
		for i := range o.Subtasks {
			parts, err := s.partsOf(&o.Subtasks[i], name)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, p := range parts {
				if !p.entries(wanted, yield) {
					return
				}
			}
		}
	}
}

// partsOf are those parts of a subtask that are of one state.
func (s *Snapshot) partsOf(t *snapshot.Subtask, name string) ([]part, error) {
	only := *t
	only.Lists = slices.DeleteFunc(slices.Clone(t.Lists), func(l snapshot.ListHandle) bool { return l.Name != name })
	only.Rows = slices.DeleteFunc(slices.Clone(t.Rows), func(r snapshot.RowsHandle) bool { return r.Name != name })
	parts, err := s.parts(&only)
	return slices.DeleteFunc(parts, func(p part) bool { return p.Schema.Name != name }), err
}

// wantedKey is a key whose entries are wanted, and the hashes that they may have.
type wantedKey struct {
	bytes  []byte
	hashes state.Hashes
}

// wantedKeys reads keys as the state has them, in the order of their hashes. None: all are wanted.
func wantedKeys(s snapshot.StateSchema, keys []string) (wanted []wantedKey, err error) {
	if len(keys) == 0 {
		return []wantedKey{{nil, state.AllHashes}}, nil
	}
	if s.Key == "" {
		return nil, errNoKeys
	}
	t, err := codec.TypeOf(s.Key)
	if err != nil {
		return nil, err
	}
	for _, text := range keys {
		b, err := t.AppendKey(nil, text)
		if err != nil {
			return nil, err
		}
		h, _, err := t.Hash(b)
		if err != nil {
			return nil, err
		}
		k := wantedKey{b, state.Hashes{Least: h, Most: h}}
		if isTimers(s) { // they have the key's group, and a hash of their own
			group := base.KeyGroupOf(h)
			k.hashes.Least, k.hashes.Most = base.KeyGroupRange{First: group, Last: group}.Hashes()
		}
		wanted = append(wanted, k)
	}
	slices.SortFunc(wanted, wantedKey.compare)
	return slices.CompactFunc(wanted, func(a, b wantedKey) bool { return bytes.Equal(a.bytes, b.bytes) }), nil
}

func (a wantedKey) compare(b wantedKey) int {
	switch {
	case a.hashes.Least < b.hashes.Least:
		return -1
	case a.hashes.Least > b.hashes.Least:
		return 1
	}
	return bytes.Compare(a.bytes, b.bytes)
}

// entries calls yield with the entries of a part.
func (p *part) entries(wanted []wantedKey, yield func(*entry, error) bool) (more bool) {
	e, err := p.entry()
	if err != nil {
		return yield(nil, err)
	}
	for _, k := range wanted {
		for row, err := range p.rows(k.hashes) {
			if err != nil {
				yield(nil, err)
				return false
			}
			if k.bytes != nil && !bytes.Equal(k.bytes, row.Key) {
				continue
			}
			if e.Row = row; !yield(e, nil) {
				return false
			}
		}
	}
	return true
}

// entry has the types of a part's entries.
func (p *part) entry() (e *entry, err error) {
	e = &entry{stored: p.StoredState, subtask: p.subtask}
	for _, t := range []struct {
		schema string
		to     **codec.Type
	}{{p.Schema.Key, &e.key}, {p.Schema.MapKey, &e.mapKey}, {p.Schema.Value, &e.typed}} {
		if t.schema == "" {
			continue
		}
		if *t.to, err = codec.TypeOf(t.schema); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// value is the value alone.
func (e *entry) value() (json.RawMessage, error) {
	text, _, err := e.typed.AppendJSON(nil, e.Value)
	return text, err
}

// append appends the entry as JSON.
func (e *entry) append(dst []byte) (_ []byte, err error) {
	o := object{text: append(dst, '{')}
	switch {
	case e.whole != nil:
		o.field("bytes", e.whole)
		return append(o.text, '}'), o.err
	case e.flight != nil:
		o.field("subtask", e.subtask)
		o.field("edge", e.flight.edge)
		o.field("sender", e.flight.sender)
		if e.flight.at != base.NoTime {
			o.field("time", timeText(e.flight.at))
		}
	case e.key != nil:
		o.typed("key", e.key, e.Key)
	default:
		o.field("subtask", e.subtask)
	}
	switch kind := e.stored.Schema.Kind; {
	case kind == state.KindTimers:
		o.field("time", timeText(e.At))
		o.field("timer", map[bool]string{false: "processing", true: "event"}[e.Event])
	case kind == state.KindList, kind == state.KindOpList, kind == state.KindUnion:
		o.field("index", e.Index)
	}
	if e.mapKey != nil {
		o.typed("map_key", e.mapKey, e.MapKey)
	}
	if e.typed != nil {
		o.typed("value", e.typed, e.Value)
	}
	if e.stored.Stamped {
		o.field("written", instant(e.Written))
		if e.stored.TTL > 0 {
			o.field("expires", instant(e.Written+int64(e.stored.TTL)))
		}
	}
	return append(o.text, '}'), o.err
}

func instant(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }

// object is a JSON object being written.
type object struct {
	text []byte
	err  error
}

func (o *object) name(name string) {
	if len(o.text) > 0 && o.text[len(o.text)-1] != '{' {
		o.text = append(o.text, ',')
	}
	o.text = fmt.Appendf(o.text, "%q:", name)
}

// field adds a value of Go.
func (o *object) field(name string, v any) {
	o.name(name)
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	o.err = errors.Join(o.err, e.Encode(v))
	o.text = append(o.text, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
}

// typed adds a stored value.
func (o *object) typed(name string, t *codec.Type, b []byte) {
	o.name(name)
	text, _, err := t.AppendJSON(o.text, b)
	o.text, o.err = text, errors.Join(o.err, err)
}

// coordinator is the state of a source's enumerator.
func (s *Snapshot) coordinator(o *snapshot.Operator) iter.Seq2[*entry, error] {
	return func(yield func(*entry, error) bool) {
		b, err := s.bytes(*o.Coordinator)
		yield(&entry{whole: append([]byte{}, b...)}, err)
	}
}
