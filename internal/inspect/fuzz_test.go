package inspect

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// FuzzInFlight: any bytes lead to an error or to records, each of them JSON.
func FuzzInFlight(f *testing.F) {
	batch := []byte{1, 2}
	batch = binary.LittleEndian.AppendUint64(batch, 8+8+2+3)
	batch = binary.LittleEndian.AppendUint64(batch, 1<<60)
	batch = binary.LittleEndian.AppendUint64(batch, 1<<63)
	f.Add(append(batch, "\x02a\x04bc"...), int64(2))
	f.Fuzz(func(t *testing.T, b []byte, records int64) {
		e := snapshot.Edge{From: "a", To: "b"}
		h := snapshot.InFlightHandle{Edge: e, Records: records, Handle: snapshot.InlineHandle(b)}
		s := &Snapshot{Metadata: &snapshot.Metadata{Operators: []snapshot.Operator{{UID: "b",
			InFlight: []snapshot.EdgeSchema{{Edge: e, Record: `"string"`}}, Subtasks: []snapshot.Subtask{{InFlight: []snapshot.InFlightHandle{h}}}}}},
			fs: storage.Memory(), open: map[string]storage.Reader{}}
		var out strings.Builder
		if err := s.WriteEntries(&out, Query{Operator: "b", State: "in-flight"}); err != nil {
			return
		}
		for line := range strings.Lines(out.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%q is no JSON", line)
			}
		}
	})
}

// FuzzFiles: a file of a snapshot has any bytes. Whatever is asked leads to an error or to an answer, and Verify has a fault: its checksum
// is another's.
func FuzzFiles(f *testing.F) {
	r := newRig(f, 8)
	s := r.take(f, "/job/chk-1", snapshot.Checkpoint, snapshot.Native, 1, 0)
	c := r.take(f, "/canonical", snapshot.Savepoint, snapshot.Canonical, 0, 0)
	keyed, lists := s.Operators[1].Subtasks[0].Keyed[0], s.Operators[1].Subtasks[0].Lists[0]
	rows := c.Operators[1].Subtasks[0].Rows[0]
	for i, h := range []snapshot.Handle{keyed.Handle, lists.Handle} {
		b, err := s.bytes(h)
		must(f, err)
		f.Add(uint8(i), b)
	}
	for i, h := range []snapshot.Handle{rows.Handle, rows.Index} {
		b, err := c.bytes(h)
		must(f, err)
		f.Add(uint8(2+i), b)
	}
	index, err := c.bytes(rows.Index)
	must(f, err)
	file, err := c.bytes(rows.Handle)
	must(f, err)
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		o := s.Operators[1]
		sub := snapshot.Subtask{Watermark: base.NoTime}
		any := snapshot.InlineHandle(bytes.Clone(b))
		switch which % 4 {
		case 0:
			sub.Keyed = []snapshot.KeyedHandle{{Range: keyed.Range, Handle: any}}
		case 1:
			list := lists
			list.Handle = any
			sub.Lists = []snapshot.ListHandle{list}
		default:
			h := rows
			h.Handle, h.Index = snapshot.InlineHandle(file), any
			if which%4 == 2 {
				h.Handle, h.Index = any, snapshot.InlineHandle(index)
			}
			sub.Rows = []snapshot.RowsHandle{h}
		}
		o.Subtasks = []snapshot.Subtask{sub}
		m := *s.Metadata
		m.Operators = []snapshot.Operator{o}
		damaged := &Snapshot{Metadata: &m, Location: s.Location, fs: r.fs, open: map[string]storage.Reader{}}
		_ = damaged.Summary().WriteText(io.Discard)
		for _, schema := range o.Schemas {
			_ = damaged.WriteEntries(io.Discard, Query{Operator: "every", State: schema.Name, Limit: 1000})
		}
		if _, err := damaged.Verify(); err != nil {
			t.Error(err)
		}
	})
}
