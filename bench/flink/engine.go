package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// engine is a side.
type engine struct {
	name string
	// command is what runs a contest with so many records. Checkpoints go into dir.
	command func(c contest, records int64, dir string) *exec.Cmd
}

// flink is Flink, all of it in one JVM.
func flink(root string) engine {
	return engine{"Flink", func(c contest, records int64, dir string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(root, "bench/flink/run.sh"), "--workload", c.workload,
			"--records", strconv.FormatInt(records, 10), "--parallelism", strconv.Itoa(c.parallelism),
			"--interval-ms", strconv.FormatInt(c.interval.Milliseconds(), 10), "--shuffle", strconv.FormatBool(c.shuffle),
			"--conf.execution.checkpointing.dir", "file://"+dir)
		return cmd
	}}
}

// weir is Weir; bin has its programs, which are built first.
func weir(bin string) engine {
	return engine{"Weir", func(c contest, records int64, _ string) *exec.Cmd {
		n, p := strconv.FormatInt(records, 10), strconv.Itoa(c.parallelism)
		switch c.workload {
		case "wordcount":
			return exec.Command(filepath.Join(bin, "bench"), "-child", "count", "-records", n, "-keys", "1000000",
				"-parallelism", p, "-interval", c.interval.String())
		case generator:
			return exec.Command(filepath.Join(bin, "nexmark"), "-bare", "-records", n)
		}
		return exec.Command(filepath.Join(bin, "nexmark"), "-p", p, "-query", c.workload, "-records", n,
			"-interval", c.interval.String(), "-shuffle="+strconv.FormatBool(c.shuffle))
	}}
}

// run runs a contest with so many records.
func (e engine) run(c contest, records int64) (cost, error) {
	dir, err := os.MkdirTemp("", "bench-flink-")
	if err != nil {
		return cost{}, err
	}
	defer os.RemoveAll(dir)
	cmd := e.command(c, records, dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return cost{}, fmt.Errorf("%s: %s: %w\n%s", e.name, strings.Join(cmd.Args, " "), err, stderr.Bytes())
	}
	result, err := parse(output)
	if err != nil {
		return cost{}, fmt.Errorf("%s: %s: %w", e.name, strings.Join(cmd.Args, " "), err)
	}
	result.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	result.rssMB = float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024
	return result, nil
}

// parse reads what a program has printed: a line of RESULT and NAME=VALUE, or internal/bench's JSON.
func parse(output []byte) (c cost, err error) {
	for line := range strings.Lines(string(output)) {
		if strings.HasPrefix(line, "{") {
			var r struct {
				Sum     int64
				Seconds float64
			}
			err := json.Unmarshal([]byte(line), &r)
			return cost{sum: r.Sum, wall: r.Seconds}, err
		}
		if fields, ok := strings.CutPrefix(line, "RESULT "); ok {
			values := pairs(fields)
			if c.sum, err = strconv.ParseInt(values["sum"], 10, 64); err != nil {
				return c, fmt.Errorf("no sum in %q", line)
			}
			if c.wall, err = strconv.ParseFloat(values["seconds"], 64); err != nil {
				return c, fmt.Errorf("no seconds in %q", line)
			}
			return c, nil
		}
	}
	return c, fmt.Errorf("there is no result in %q", output)
}

// pairs are the words NAME=VALUE of a line.
func pairs(line string) map[string]string {
	values := map[string]string{}
	for _, word := range strings.Fields(line) {
		if name, value, ok := strings.Cut(word, "="); ok {
			values[name] = value
		}
	}
	return values
}
