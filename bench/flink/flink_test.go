package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		output string
		want   cost
	}{
		{"a remark\nRESULT query=q3 records=10 out=2 sum=-7 seconds=1.500 checkpoints=0\n", cost{sum: -7, wall: 1.5}},
		{`{"Sum":12,"Seconds":2.5,"Mallocs":0}` + "\n", cost{sum: 12, wall: 2.5}},
	} {
		if got, err := parse([]byte(c.output)); err != nil || got != c.want {
			t.Errorf("%q: %+v, %v", c.output, got, err)
		}
	}
	for _, output := range []string{"", "RESULT sum=1\n", "RESULT seconds=1\n", "{\n"} {
		if got, err := parse([]byte(output)); err == nil {
			t.Errorf("%q: %+v", output, got)
		}
	}
}

// TestTable: the start is subtracted, jobs share their starts, the generator has its own, and sides are medians.
func TestTable(t *testing.T) {
	job := contest{title: "job", workload: "q0", parallelism: 1, records: 1_000_000}
	flink := runs{start: []cost{{cpu: 5, rssMB: 200}}, whole: []cost{{cpu: 99, wall: 9, rssMB: 900}, {cpu: 7, wall: 2, rssMB: 500}, {cpu: 1, wall: 1, rssMB: 100}}}
	weir := runs{start: []cost{{rssMB: 10}}, whole: []cost{{cpu: 0.5, wall: 0.5, rssMB: 50}}}
	loop := contest{title: "loop", workload: generator, parallelism: 1, records: 1_000_000}
	got := table([]ledger{{job, flink, weir}, {loop, runs{start: []cost{{cpu: 1}}, whole: []cost{{cpu: 2, wall: 1, rssMB: 1}}}, weir}}, "calm")
	for _, want := range []string{
		", calm.\n",
		"| job | 1 | 1 M | 2.000 | 0.500 | **4.0** | 500 | 50 | **10.0** | 0.50 M | 2.00 M |\n",
		"| loop | 1 | 1 M | 1.000 | 0.500 | **2.0** |",
		"Flink 5.00 s of CPU and 200 MB, Weir 0.000 s and 10 MB.\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table lacks %q:\n%s", want, got)
		}
	}
}

func TestReplaceTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doc.md")
	if err := os.WriteFile(file, []byte("before\n"+costMarks.begin+"old\n"+costMarks.end+"after\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := replaceTable(file, costMarks, "new\n"); err != nil {
		t.Fatal(err)
	}
	want := "before\n" + costMarks.begin + "\nnew\n\n" + costMarks.end + "after\n"
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if err := os.WriteFile(file, []byte("no marks\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := replaceTable(file, costMarks, "new\n"); err == nil {
		t.Error("a file without marks is written to")
	}
}

// TestGoldenNames: the golden file knows every workload, but for the one without an engine.
func TestGoldenNames(t *testing.T) {
	text, err := os.ReadFile("golden-1M.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range contests {
		if c.workload != generator && !strings.Contains(string(text), "workload="+c.workload+" records=1000000 ") {
			t.Errorf("golden-1M.txt lacks %s", c.workload)
		}
	}
}

// TestCommands: both sides are told the same.
func TestCommands(t *testing.T) {
	c := contest{workload: "q0", parallelism: 2, interval: time.Second, shuffle: true}
	for _, e := range []engine{flink("root"), weir("bin")} {
		args := strings.Join(e.command(c, 12_345, "/dir").Args, " ")
		for _, want := range []string{"q0", "12345", " 2", "true"} {
			if !strings.Contains(args, want) {
				t.Errorf("%s: %q lacks %q", e.name, args, want)
			}
		}
	}
}
