package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	var m meeting
	flag.IntVar(&m.rounds, "rounds", 3, "rounds; the median counts")
	flag.Float64Var(&m.scale, "scale", 1, "take this `part` of the records: less for a look, more for a calm figure")
	flag.StringVar(&m.only, "only", "", "only the workload of this `name`, such as q0")
	write := flag.String("write", "", "also put the table into this Markdown `file`, between its marks")
	pressed := flag.Bool("pressure", false, "measure checkpoints under back-pressure instead")
	flag.Parse()
	measure, marks := m.run, costMarks
	if *pressed {
		measure, marks = m.pressureTable, pressureMarks
	}
	table, err := measure()
	if err == nil {
		fmt.Print(table)
		if *write != "" {
			err = replaceTable(*write, marks, table)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-flink:", err)
		os.Exit(1)
	}
}

// meeting is all that is measured in one run.
type meeting struct {
	rounds int
	scale  float64
	only   string

	flink, weir engine
}

// run measures, and makes the table.
func (m *meeting) run() (string, error) {
	root, bin, err := build()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(bin)
	m.flink, m.weir = flink(root), weir(bin)
	before := load()
	if err := m.checkGolden(filepath.Join(root, "bench/flink/golden-1M.txt")); err != nil {
		return "", err
	}
	ledgers := m.entries()
	for round := range m.rounds {
		for i := range ledgers {
			if err := m.measure(&ledgers[i], round); err != nil {
				return "", err
			}
		}
	}
	return table(ledgers, fmt.Sprintf("load average %s before, %s after", before, load())), nil
}

// build builds Weir's programs. Bin is the directory they are in, for the caller to remove; root is the module's.
func build() (root, bin string, err error) {
	if root, err = moduleRoot(); err != nil {
		return "", "", err
	}
	if bin, err = os.MkdirTemp("", "bench-flink-"); err != nil {
		return "", "", err
	}
	c := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "./internal/bench", "./examples/nexmark")
	c.Dir, c.Stderr = root, os.Stderr
	if err := c.Run(); err != nil {
		_ = os.RemoveAll(bin) // the first error counts
		return "", "", fmt.Errorf("building Weir's side: %w", err)
	}
	return root, bin, nil
}

// moduleRoot is the directory that has go.mod.
func moduleRoot() (string, error) {
	gomod, err := exec.Command("go", "env", "GOMOD").Output()
	return filepath.Dir(strings.TrimSpace(string(gomod))), err
}

// load is the load average of the last minute; "unknown": this system does not say.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(text))[0]
}

// entries are the contests to run, nothing measured yet.
func (m *meeting) entries() (all []ledger) {
	for _, c := range contests {
		if m.only == "" || m.only == c.workload {
			c.records = max(startRecords, int64(float64(c.records)*m.scale)/2*2)
			all = append(all, ledger{contest: c})
		}
	}
	return all
}

// checkGolden runs a million records through each workload on both sides and compares with the file.
func (m *meeting) checkGolden(file string) error {
	const million = 1_000_000
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		golden := pairs(line)
		i := slices.IndexFunc(contests, func(c contest) bool { return c.workload == golden["workload"] })
		if i < 0 || m.only != "" && m.only != golden["workload"] {
			continue
		}
		for _, e := range []engine{m.flink, m.weir} {
			got, err := e.run(contests[i], million)
			if err != nil {
				return err
			}
			if strconv.FormatInt(got.sum, 10) != golden["sum"] {
				return fmt.Errorf("%s: %s: the sum of %d records is %d; golden is %s", e.name, contests[i].workload, million, got.sum, golden["sum"])
			}
		}
		fmt.Fprintf(os.Stderr, "# %s: both sides agree with the golden sum\n", contests[i].workload)
	}
	return nil
}

// measure runs a contest once on both sides: in even rounds Flink is first. The first round also measures the starts.
func (m *meeting) measure(l *ledger, round int) error {
	sides := []struct {
		engine
		runs *runs
	}{{m.flink, &l.flink}, {m.weir, &l.weir}}
	if round%2 == 1 {
		slices.Reverse(sides)
	}
	for _, s := range sides {
		if round == 0 {
			start, err := s.run(l.contest, startRecords)
			if err != nil {
				return err
			}
			s.runs.start = append(s.runs.start, start)
		}
		whole, err := s.run(l.contest, l.records)
		if err != nil {
			return err
		}
		s.runs.whole = append(s.runs.whole, whole)
		fmt.Fprintf(os.Stderr, "# round %d: %s, parallelism %d: %s: CPU %.2f s (start: %.2f), %.0f MB, job %.2f s\n",
			round+1, l.title, l.parallelism, s.name, whole.cpu, s.runs.start[0].cpu, whole.rssMB, whole.wall)
	}
	if f, w := l.flink.whole[round].sum, l.weir.whole[round].sum; f != w {
		return fmt.Errorf("%s: the sums of %d records differ: Flink %d, Weir %d", l.title, l.records, f, w)
	}
	return nil
}
