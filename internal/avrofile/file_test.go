package avrofile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/twmb/avro"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const longAndText = `{"type":"record","name":"weir.row","fields":[{"name":"n","type":"long"},{"name":"text","type":"string"}]}`

// write writes rows {n, text}, the order of row n being n/per.
func write(t testing.TB, rows, per int, text string) (file, index []byte) {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, longAndText, []Property{{"weir.state", "counts"}})
	must(t, err)
	for n := range rows {
		row := binary.AppendVarint(w.Buffer(), int64(n))
		must(t, w.Add(appendString(row, text), uint64(n/per)))
	}
	must(t, w.Close())
	if w.Rows() != int64(rows) || w.Size() != int64(b.Len()) {
		t.Fatalf("%d rows in %d bytes, the writer says %d in %d", rows, b.Len(), w.Rows(), w.Size())
	}
	return b.Bytes(), w.Index()
}

func open(t testing.TB, file, index []byte) *Reader {
	t.Helper()
	r, err := Open(bytes.NewReader(file), int64(len(file)), index)
	must(t, err)
	return r
}

// read is the numbers of the rows in all blocks from one of order from.
func read(r *Reader, from uint64) (ns []int64, err error) {
	for b, err := range r.Blocks(from) {
		if err != nil {
			return ns, err
		}
		p := parser{b: b.Rows}
		for range b.Count {
			ns = append(ns, p.long())
			p.string()
		}
		if p.short || len(p.b) > 0 {
			return ns, errors.New("rows do not fill their block")
		}
	}
	return ns, nil
}

// plainRows reads a file as the specification says, without an index, and has another library decode the rows.
func plainRows(t testing.TB, file []byte) (properties map[string]string, rows []map[string]any) {
	t.Helper()
	r := bufio.NewReader(bytes.NewReader(file))
	long := func() int64 { n, err := binary.ReadVarint(r); must(t, err); return n }
	take := func(n int64) []byte { b := make([]byte, n); _, err := io.ReadFull(r, b); must(t, err); return b }
	if string(take(4)) != "Obj\x01" {
		t.Fatal("no magic")
	}
	properties = map[string]string{}
	for n := long(); n != 0; n = long() {
		for range n {
			name := string(take(long()))
			properties[name] = string(take(long()))
		}
	}
	schema, err := avro.Parse(properties["avro.schema"])
	must(t, err)
	sync := take(16)
	for {
		if _, err := r.Peek(1); err == io.EOF {
			return properties, rows
		}
		count, b := long(), take(long())
		for range count {
			var row any
			b, err = schema.Decode(b, &row)
			must(t, err)
			rows = append(rows, row.(map[string]any))
		}
		if len(b) > 0 || !bytes.Equal(take(16), sync) {
			t.Fatalf("%d bytes are left in a block, or another marker ends it", len(b))
		}
	}
}

// Who only knows the specification finds schema, properties and rows.
func TestTheFileIsAvro(t *testing.T) {
	for _, rows := range []int{0, 1, 30_000} {
		file, _ := write(t, rows, 1, strings.Repeat("x", 20))
		properties, got := plainRows(t, file)
		if properties["weir.state"] != "counts" || properties["avro.codec"] != "null" {
			t.Errorf("the properties are %v", properties)
		}
		if len(got) != rows {
			t.Errorf("%d rows of %d", len(got), rows)
		}
		for n, row := range got {
			if row["n"] != int64(n) || len(row["text"].(string)) != 20 {
				t.Fatalf("row %d is %v", n, row)
			}
		}
	}
}

// Blocks begins where the first row of an order can be, also where several blocks have rows of it, or of none but one below.
func TestBlocksFrom(t *testing.T) {
	for _, per := range []int{1, 7, 5000, 1_000_000} {
		file, index := write(t, 40_000, per, strings.Repeat("x", 50))
		r := open(t, file, index)
		if len(r.index.blocks) < 5 || r.Rows() != 40_000 {
			t.Fatalf("%d blocks", len(r.index.blocks))
		}
		for _, b := range r.index.blocks {
			for _, from := range []uint64{0, b.first, b.first + 1, b.first - min(b.first, 1), 1 << 40} {
				begin, at := int64(0), int64(0) // the first row of the last block whose first row is of a lower order
				for _, b := range r.index.blocks {
					if b.first < from {
						begin = at
					}
					at += int64(b.count)
				}
				ns, err := read(r, from)
				must(t, err)
				if ns[0] != begin || ns[len(ns)-1] != 39_999 || ns[0] > int64(from)*int64(per) {
					t.Fatalf("%d a number, from %d: rows %d to %d, not from %d", per, from, ns[0], ns[len(ns)-1], begin)
				}
			}
		}
	}
	file, index := write(t, 0, 1, "")
	if ns, err := read(open(t, file, index), 0); len(ns) > 0 || err != nil {
		t.Errorf("of an empty file: %v, %v", ns, err)
	}
}

// A block ends with the row that reaches its size; a row of more is a block of its own.
func TestBlocksAreOfASize(t *testing.T) {
	file, index := write(t, 3, 1, strings.Repeat("x", BlockBytes))
	if r := open(t, file, index); len(r.index.blocks) != 3 {
		t.Errorf("%d blocks", len(r.index.blocks))
	}
	file, index = write(t, 100_000, 1, "text")
	for b, err := range open(t, file, index).Blocks(0) {
		must(t, err)
		if len(b.Rows) > BlockBytes+10 {
			t.Errorf("a block of %d bytes", len(b.Rows))
		}
	}
}

// Every changed or missing byte of either file is noticed, and so is the index of another file.
func TestDamageIsNoticed(t *testing.T) {
	file, index := write(t, 20_000, 1, strings.Repeat("x", 30))
	readAll := func(file, index []byte) error {
		r, err := Open(bytes.NewReader(file), int64(len(file)), index)
		if err != nil {
			return err
		}
		_, err = read(r, 0)
		return err
	}
	must(t, readAll(file, index))
	damaged := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for at := 0; at < len(file); at += 1 + at/3 {
		b := bytes.Clone(file)
		b[at] ^= 4
		damaged(fmt.Sprint("a changed byte at ", at), readAll(b, index))
		damaged(fmt.Sprint("cut at ", at), readAll(file[:at], index))
	}
	for at := range index {
		b := bytes.Clone(index)
		b[at] ^= 4
		if err := readAll(file, b); err == nil {
			t.Errorf("a changed byte at %d of the index was not noticed", at)
		}
		damaged("a cut index", readAll(file, index[:at]))
	}
	other, otherIndex := write(t, 20_000, 1, strings.Repeat("y", 30)) // of the same size
	damaged("the index of another file", readAll(file, otherIndex))
	damaged("the file of another index", readAll(other, index))
	damaged("a longer file", readAll(append(file, 0), index))
	if checksum(index) == checksum(otherIndex) {
		t.Error("the checksum of an index as a whole tells nothing of it")
	}
	newer := bytes.Clone(index)
	newer[6] = 9
	if err := readAll(file, newer); err == nil || !strings.Contains(err.Error(), "version 9") {
		t.Errorf("another version: %v", err)
	}
}

// failing is a file that cannot be written or read.
type failing struct{}

var errFailing = errors.New("no disk")

func (failing) Write([]byte) (int, error)         { return 0, errFailing }
func (failing) ReadAt([]byte, int64) (int, error) { return 0, errFailing }

func TestErrorsOfTheDiskAreNoDamage(t *testing.T) {
	if _, err := NewWriter(failing{}, longAndText, nil); !errors.Is(err, errFailing) {
		t.Errorf("writing: %v", err)
	}
	file, index := write(t, 1, 1, "")
	if _, err := Open(failing{}, int64(len(file)), index); !errors.Is(err, errFailing) || errors.Is(err, ErrCorrupt) {
		t.Errorf("reading: %v", err)
	}
}

// FuzzOpen: the bytes are an index and a file, with checksums as they are or made right, so that what lies behind them is reached.
func FuzzOpen(f *testing.F) {
	file, index := write(f, 5, 2, "text")
	f.Add(index, file, false)
	f.Add(index, file, true)
	file, index = write(f, 0, 1, "")
	f.Add(index, file, true)
	f.Fuzz(func(t *testing.T, index, file []byte, right bool) {
		if right && len(index) >= indexHeadBytes {
			index = rightIndex(bytes.Clone(index), file)
		}
		r, err := Open(bytes.NewReader(file), int64(len(file)), index)
		if err != nil {
			return
		}
		for b, err := range r.Blocks(uint64(len(file))) {
			if err == nil && (b.Count < 1 || len(b.Rows) > len(file)) {
				t.Fatalf("a block of %d rows in %d bytes", b.Count, len(b.Rows))
			}
		}
	})
}

// rightIndex puts the size and the checksums of file into an index, as far as it can be read.
func rightIndex(index, file []byte) []byte {
	binary.LittleEndian.PutUint64(index[12:], uint64(len(file)))
	end := uint64(len(file))
	blocks := index[indexHeadBytes:]
	for n := len(blocks)/indexBlockBytes - 1; n >= 0; n-- {
		b := blocks[n*indexBlockBytes:]
		if from := binary.LittleEndian.Uint64(b[8:]); from <= end {
			binary.LittleEndian.PutUint32(b[20:], checksum(file[from:end]))
			end = from
		}
	}
	binary.LittleEndian.PutUint32(index[20:], checksum(file[:end]))
	binary.LittleEndian.PutUint32(index[8:], checksum(index[12:]))
	return index
}
