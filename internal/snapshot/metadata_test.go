package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/base"
)

const testJob = base.JobID("0123456789abcdef0123456789abcdef")

// sample has every kind of thing in it. Its bytes are testdata/compat/metadata-v1: do not change it, add another.
func sample() *Metadata {
	coordinator := InlineHandle([]byte("splits 3, 4"))
	return &Metadata{
		ID: 42, Job: testJob, JobName: "word count", Kind: Checkpoint, Format: Native, Run: 3, Wall: 1_700_000_000_000_000_000,
		Operators: []Operator{
			{
				UID: "lines", Name: "Source: lines", Parallelism: 1, Coordinator: &coordinator,
				Schemas: []StateSchema{{Name: "splits", Kind: "splits", Value: `"bytes"`}},
				Subtasks: []Subtask{{
					Watermark: 1000, PendingWatermark: base.NoTime,
					Lists: []ListHandle{{Name: "splits", Mode: Split, Offsets: []int64{0, 0, 5}, Handle: InlineHandle([]byte("abcdefgh"))}},
				}},
			},
			{
				UID: "counts", Name: "Count", Parallelism: 2, EndOfInput: true,
				Schemas: []StateSchema{
					{Name: "count", Kind: "value", Key: `"string"`, Value: `"long"`},
					{Name: "seen", Kind: "map", Key: `"string"`, Value: `"boolean"`, MapKey: `"int"`},
				},
				Subtasks: []Subtask{
					{
						Index: 0, Watermark: 990, PendingWatermark: 1000,
						Keyed: []KeyedHandle{{Range: base.RangeOf(0, 2), Handle: Handle{File: "counts-0-keyed", Size: 1 << 33, CRC: 0xdeadbeef}}},
						Lists: []ListHandle{
							{Name: "all", Mode: Union, Offsets: []int64{0}, Handle: Handle{File: "/ckpt/shared/all", Size: 7, CRC: 1}},
							{Name: "rules", Mode: Broadcast, Handle: InlineHandle(nil)},
						},
					},
					{Index: 1, Ended: true, Finished: true, Watermark: base.EndOfTime, PendingWatermark: base.NoTime},
				},
			},
			{UID: "gone", Name: "gone", Parallelism: 5, Finished: true},
		},
		Hooks: []Hook{{ID: "log", State: InlineHandle([]byte("position 7"))}},
	}
}

func TestGoldenMetadata(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "compat", "metadata-v1"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Decode(golden)
	if err != nil {
		t.Fatal(err)
	}
	if want := sample(); !reflect.DeepEqual(m, want) {
		t.Errorf("decoded\n%+v\nwant\n%+v", m, want)
	}
}

// sample2 has what version 2 adds. Its bytes are testdata/compat/metadata-v2: do not change it, add another.
func sample2() *Metadata {
	m := sample()
	edge := Edge{From: "lines", To: "counts", Input: 1, Tag: "late", Twin: 2}
	file := func(name string) Handle { return Handle{File: name, Size: 99, CRC: 5} }
	m.Operators[1].InFlight = []EdgeSchema{{Edge: edge, Record: `"long"`}}
	s := &m.Operators[1].Subtasks[0]
	s.Rows = []RowsHandle{
		{Name: "count", Keyed: true, Range: base.RangeOf(0, 2), Count: 7, Index: file("count.idx"), Handle: file("count.avro")},
		{Name: "all", Mode: Union, Count: 0, Index: file("all.idx"), Handle: file("all.avro")},
	}
	s.InFlight = []InFlightHandle{{Edge: edge, Records: 3, Handle: InlineHandle([]byte("three"))}}
	m.Operators[0].Subtasks[0].InFlight = []InFlightHandle{{Edge: edge, Output: true, Records: 1, Handle: file("out")}}
	return m
}

func TestGoldenMetadata2(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "compat", "metadata-v2"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Decode(golden)
	if err != nil {
		t.Fatal(err)
	}
	if want := sample2(); !reflect.DeepEqual(m, want) {
		t.Errorf("decoded\n%+v\nwant\n%+v", m, want)
	}
}

// sample3 has what version 3 adds. Its bytes are testdata/compat/metadata-v3: do not change it, add another.
func sample3() *Metadata {
	m := sample2()
	m.Operators[1].Subtasks[0].Keyed[0].Refers = []Handle{
		{File: "/ckpt/shared/41-counts-0-keyed", Size: 1 << 30, CRC: 6},
		{File: "/ckpt/shared/7-counts-0-keyed", Size: 300, CRC: 7},
	}
	return m
}

func TestGoldenMetadata3(t *testing.T) {
	path := filepath.Join("testdata", "compat", "metadata-v3")
	golden, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		golden = sample3().Encode()
		err = os.WriteFile(path, golden, 0o644)
		t.Error("the golden file was not there, and is now: commit it")
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := Decode(golden)
	if err != nil {
		t.Fatal(err)
	}
	if want := sample3(); !reflect.DeepEqual(m, want) {
		t.Errorf("decoded\n%+v\nwant\n%+v", m, want)
	}
	if !bytes.Equal(m.Encode(), golden) {
		t.Error("encoding what was decoded gives other bytes")
	}
}

// Every flipped bit and every truncation is told, with the byte where it was noticed.
func TestDamageIsFound(t *testing.T) {
	whole := sample3().Encode()
	for at := range whole {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[at] ^= 1 << bit
			if _, err := Decode(b); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
				t.Fatalf("bit %d of byte %d flipped: %v", bit, at, err)
			}
		}
		if _, err := Decode(whole[:at]); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "at byte") {
			t.Fatalf("cut at byte %d: %v", at, err)
		}
	}
}

func TestWhatDecodeSays(t *testing.T) {
	whole := sample().Encode()
	twoOperators := whole[:len(whole)-frameBytes-4]
	firstOperator := frameBytes + int(binary.LittleEndian.Uint64(whole[headerBytes+1:])) + headerBytes
	newer := append([]byte(magic), Version+1, 0, 0, 0)
	newer = binary.LittleEndian.AppendUint32(newer, Checksum(0, newer))
	for _, c := range []struct {
		what string
		b    []byte
		want string
	}{
		{"nothing", nil, "it is empty"},
		{"a text file", []byte("hello, this is a text file"), "no metadata of Weir"},
		{"Flink's", []byte("\x49\x60\x67\x2d\x00\x00\x00\x06 and so on"), "Apache Flink"},
		{"a newer version", newer, fmt.Sprintf("version %d: this build of Weir reads versions up to %d", Version+1, Version)},
		{"no end", twoOperators, "before the end section"},
		{"no job", endOf(header()), "the job section is missing"},
		{"a section missing", cutOut(whole, firstOperator), "sections are missing"},
		{"more after the end", append(bytes.Clone(whole), 'x'), "1 bytes follow the end"},
		{"a job twice", framed(sectionJob, jobPayload(), frame(sectionJob, jobPayload())...), "may not be of kind job"},
		{"an unknown section", framed('?', nil), "unknown kind"},
		{"a huge count", framed(sectionOperator, []byte{1, 'u', 1, 'n', 1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}), `(operator "u"), schemas: it says there are`},
		{"a huge string", framed(sectionOperator, []byte{0xff, 0xff, 0xff, 0xff, 0x7f}), "UID: it says it has"},
		{"a long varint", framed(sectionOperator, []byte{0x81, 0x00, 'u'}), "shortest way"},
		{"a bad bool", framed(sectionOperator, []byte{1, 'u', 1, 'n', 1, 2}), "2 is neither 0 nor 1"},
		{"left over", framed(sectionHook, []byte{1, 'h', 0, 0, 0, 0, 0, 0, 9}), "1 bytes are left over"},
	} {
		_, err := Decode(c.b)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.what, err, c.want)
		}
	}
}

// cutOut removes the section that begins at byte at, and nothing else.
func cutOut(b []byte, at int) []byte {
	n := frameBytes + int(binary.LittleEndian.Uint64(b[at+1:]))
	return append(bytes.Clone(b[:at]), b[at+n:]...)
}

func header() []byte {
	e := encoder{}
	e.header()
	return e.b
}

func jobPayload() []byte {
	e := encoder{}
	e.job(sample())
	return e.b
}

func frame(k sectionKind, payload []byte) []byte {
	e := encoder{}
	e.section(k, func() { e.b = append(e.b, payload...) })
	return e.b
}

// framed is a file with a job section, then the given one, then what follows: all checksums are right.
func framed(k sectionKind, payload []byte, rest ...byte) []byte {
	e := encoder{}
	e.header()
	e.section(sectionJob, func() { e.job(sample()) })
	e.b = append(e.b, frame(k, payload)...)
	return endOf(append(e.b, rest...))
}

func endOf(b []byte) []byte {
	e := encoder{b: b}
	all := Checksum(0, e.b)
	e.section(sectionEnd, func() { e.fixed32(all) })
	return e.b
}

func TestValidateTellsAll(t *testing.T) {
	m := sample()
	m.ID = 0
	m.Job = "job"
	m.Kind = "dream"
	m.Operators[0].UID = "counts"
	m.Operators[0].Subtasks[0].Lists[0].Offsets = []int64{3, 1}
	m.Operators[1].Subtasks[0].Keyed[0].Range.Last++
	m.Operators[1].Subtasks[0].Lists[0].File = "../../etc/passwd"
	m.Operators[2].Coordinator = &Handle{}
	m.Hooks[0].State.CRC++
	err := m.Validate()
	if err == nil {
		t.Fatal("all is well")
	}
	for _, want := range []string{"checkpoint id 0", `job id "job"`, `kind "dream"`, `UID "counts"`, "offset 1 after 3",
		"key groups 0-16384 is not within", "leads out of the checkpoint", "had finished, but left state", `hook "log": size or checksum`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
	if _, err := Decode(m.Encode()); !errors.Is(err, ErrDamaged) {
		t.Errorf("Decode accepts what Validate refuses: %v", err)
	}
}

// A reference must mean the same file in every checkpoint that has it, and only a checkpoint that builds upon others has one.
func TestValidateReferences(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(m *Metadata, k *KeyedHandle)
		want   string // "": it is fine
	}{
		{"as they are", func(*Metadata, *KeyedHandle) {}, ""},
		{"inline", func(_ *Metadata, k *KeyedHandle) { k.Refers[0] = InlineHandle([]byte("bytes")) }, "no absolute name"},
		{"relative", func(_ *Metadata, k *KeyedHandle) { k.Refers[1].File = "counts-0-keyed" }, "no absolute name"},
		{"twice", func(_ *Metadata, k *KeyedHandle) { k.Refers[1] = k.Refers[0] }, "is there twice"},
		{"not clean", func(_ *Metadata, k *KeyedHandle) { k.Refers[0].File = "/ckpt/../etc/passwd" }, "not clean"},
		{"of a negative size", func(_ *Metadata, k *KeyedHandle) { k.Refers[0].Size = -1 }, "a size of -1"},
		{"in a full checkpoint", func(m *Metadata, _ *KeyedHandle) { m.Kind = FullCheckpoint }, "what is not incremental"},
	} {
		m := sample3()
		c.change(m, &m.Operators[1].Subtasks[0].Keyed[0])
		err := m.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

func TestSizes(t *testing.T) {
	m := &Metadata{Operators: []Operator{{UID: "o", Parallelism: 2, Subtasks: []Subtask{
		{
			Keyed: []KeyedHandle{{Handle: Handle{File: "/s/2-a", Size: 10}, Refers: []Handle{{File: "/s/1-a", Size: 100}}}},
			Lists: []ListHandle{{Name: "x", Handle: Handle{File: "lists", Size: 1000}}, {Name: "y", Handle: Handle{File: "lists", Size: 1000}}},
		},
		{Index: 1, Keyed: []KeyedHandle{{Handle: InlineHandle([]byte("1234")), Refers: []Handle{{File: "/s/1-b", Size: 200}}}}},
	}}}}
	if got, want := m.Sizes(), (Sizes{State: 1314, New: 1014}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	task := TaskState{Operators: []OperatorPart{{UID: "o", Subtask: m.Operators[0].Subtasks[0]}, {UID: "p"}}}
	if got, want := task.Sizes(), (Sizes{State: 1110, New: 1010}); got != want {
		t.Errorf("of a task: %+v, want %+v", got, want)
	}
}

func TestRoundTripOfRandomMetadata(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		m := sample()
		m.Operators = nil
		for i := range rng.IntN(4) {
			o := randomOperator(rng, 1+rng.IntN(6))
			o.UID += string(rune('a' + i))
			m.Operators = append(m.Operators, *o)
		}
		got, err := Decode(m.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, m) {
			t.Fatalf("decoded\n%+v\nwant\n%+v", got, m)
		}
	}
}

// A small file that claims to be large takes little memory.
func TestDecodeTakesLittleMemory(t *testing.T) {
	payload := append([]byte{1, 'u', 1, 'n', 1, 0, 0, 0, 0}, binary.AppendUvarint(nil, 9_000)...)
	b := framed(sectionOperator, append(payload, make([]byte, 64<<10)...))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Decode(b)
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Error("accepted")
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 64*uint64(len(b)) {
		t.Errorf("%d bytes of input took %d bytes of memory", len(b), taken)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(sample().Encode())
	f.Add(sample3().Encode())
	f.Add(header())
	f.Fuzz(func(t *testing.T, b []byte) { checkDecode(t, b) })
}

// FuzzOperator gets past the checksums, which would keep a fuzzer out.
func FuzzOperator(f *testing.F) {
	for _, o := range append(sample().Operators, sample3().Operators...) {
		e := encoder{}
		e.operator(&o)
		f.Add(e.b, []byte{1, 'h', 0, 0, 0, 0, 0, 0})
	}
	f.Fuzz(func(t *testing.T, operator, hook []byte) {
		checkDecode(t, framed(sectionOperator, operator, frame(sectionHook, hook)...))
	})
}

// checkDecode demands an error, or metadata that is written as the very same bytes and can be assigned.
func checkDecode(t *testing.T, b []byte) {
	m, err := Decode(b)
	if err != nil {
		return
	}
	if b[len(magic)] == Version && !bytes.Equal(m.Encode(), b) {
		t.Fatal("encoding what was decoded gives other bytes")
	}
	for i := range m.Operators {
		if _, err := Assign(&m.Operators[i], 3, 1); err != nil && !errors.As(err, new(*PartlyEndedError)) {
			t.Fatal(err)
		}
	}
	var p Program
	for i, f := range m.inFlight() {
		p.Edges = append(p.Edges, ProgramEdge{EdgeSchema{Edge: f.Edge}, routings[i%len(routings)]})
	}
	for _, e := range m.Match(p).Edges {
		e.Assign(3, 1)
	}
}
