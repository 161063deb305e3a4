package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Checkpoints under back-pressure: a source, a count by key and a sink that takes 0.1 ms for each record, four subtasks each, so
// that everything before the sink waits. How long do checkpoints take, aligned and unaligned?
const (
	pressureRecords     = 300_000
	pressureParallelism = 4
	pressureIntervalMS  = 500
)

// pressureTable measures and makes the table.
func (m *meeting) pressureTable() (string, error) {
	root, bin, err := build()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(bin)
	before := load()
	durations := map[string][]float64{}
	for range m.rounds {
		for _, unaligned := range []bool{false, true} {
			for name, run := range map[string]func(bool) ([]float64, error){
				"Flink": func(u bool) ([]float64, error) { return flinkPressure(root, u) },
				"Weir":  func(u bool) ([]float64, error) { return weirPressure(bin, u) },
			} {
				all, err := run(unaligned)
				if err != nil {
					return "", err
				}
				key := fmt.Sprint(name, unaligned)
				durations[key] = append(durations[key], all...)
				fmt.Fprintf(os.Stderr, "# %s, unaligned %v: checkpoints of %v ms\n", name, unaligned, all)
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Flink 2.3.0 and Weir built by %s with %d CPUs, load average %s before, %s after.\n\n", runtime.Version(), runtime.NumCPU(), before, load())
	b.WriteString("| checkpoints under back-pressure | Flink, ms: median | 90 % | Weir, ms: median | 90 % |\n|---|---|---|---|---|\n")
	for _, row := range []struct {
		title     string
		unaligned bool
	}{{"aligned", false}, {"unaligned", true}} {
		f, w := durations[fmt.Sprint("Flink", row.unaligned)], durations[fmt.Sprint("Weir", row.unaligned)]
		fmt.Fprintf(&b, "| %s | %.0f | %.0f | **%.1f** | %.1f |\n", row.title, quantile(f, 0.5), quantile(f, 0.9), quantile(w, 0.5), quantile(w, 0.9))
	}
	return b.String(), nil
}

// quantile of figures, of which there must be one.
func quantile(all []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// completed is Flink's log line of a completed checkpoint.
var completed = regexp.MustCompile(`checkpointDuration=(\d+) ms`)

func flinkPressure(root string, unaligned bool) ([]float64, error) {
	dir, err := os.MkdirTemp("", "bench-flink-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command(filepath.Join(root, "bench/flink/run.sh"), "--workload", "pressure", "--records", strconv.Itoa(pressureRecords),
		"--parallelism", strconv.Itoa(pressureParallelism), "--interval-ms", strconv.Itoa(pressureIntervalMS),
		"--conf.execution.checkpointing.dir", "file://"+dir, "--conf.execution.checkpointing.unaligned.enabled", strconv.FormatBool(unaligned))
	output, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, output)
	}
	var all []float64
	for _, found := range completed.FindAllSubmatch(output, -1) {
		ms, _ := strconv.ParseFloat(string(found[1]), 64) // the expression is of digits
		all = append(all, ms)
	}
	return enough(all, "Flink", output)
}

func weirPressure(bin string, unaligned bool) ([]float64, error) {
	cmd := exec.Command(filepath.Join(bin, "bench"), "-child", "pressure", "-records", strconv.Itoa(pressureRecords), "-keys", "1000000",
		"-parallelism", strconv.Itoa(pressureParallelism), "-interval", fmt.Sprint(pressureIntervalMS, "ms"), fmt.Sprint("-unaligned=", unaligned))
	output, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, output)
	}
	var r struct{ CheckpointMillis []float64 }
	for line := range bytes.Lines(output) {
		if line[0] == '{' {
			err = json.Unmarshal(line, &r)
		}
	}
	if err != nil {
		return nil, err
	}
	return enough(r.CheckpointMillis, "Weir", output)
}

func enough(all []float64, who string, output []byte) ([]float64, error) {
	if len(all) == 0 {
		return nil, fmt.Errorf("%s completed no checkpoint:\n%s", who, output)
	}
	return all, nil
}
