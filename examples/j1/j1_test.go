package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// programName is how this test binary knows, by os.Args[0], that it is to be the program: so the program is watched by the
// race detector where the tests are.
const programName = "j1-program"

func TestMain(m *testing.M) {
	if os.Args[0] == programName {
		main()
		return
	}
	os.Exit(m.Run())
}

// process is a run of the program. What it says is shown where the test fails.
type process struct {
	*exec.Cmd
	said bytes.Buffer
}

// patience is how long a program may run. One that hangs is told to print what its goroutines do.
const patience = 2 * time.Minute

// start starts the program, with a checkpoint every 50 ms.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	p := &process{Cmd: exec.CommandContext(ctx, self)}
	p.Cancel = func() error { return p.Process.Signal(syscall.SIGQUIT) }
	p.WaitDelay = 5 * time.Second // then it is killed
	p.Args = append([]string{programName, "-D", "execution.checkpointing.interval=50ms"}, args...)
	p.Stdout, p.Stderr = &p.said, &p.said
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// finish waits until the program ends by itself, and well.
func (p *process) finish(t *testing.T) {
	t.Helper()
	if err := p.Wait(); err != nil {
		t.Fatalf("%v: %v\n%s", p.Args, err, &p.said)
	}
}

// killAfter kills the program once the checkpoint with that id, or a later one, has completed.
func (p *process) killAfter(t *testing.T, dir string, checkpoint int) {
	t.Helper()
	if !p.killWhen(t, func() bool { return newest(dir) >= checkpoint }) {
		t.Fatalf("the job had ended before it was killed\n%s", &p.said)
	}
}

// killWhen kills the program when it is time to. It returns false if the program has ended before, by itself and well.
func (p *process) killWhen(t *testing.T, due func() bool) (killed bool) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }() // ends with the program
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for !due() {
		select {
		case <-look.C:
			continue
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v: %v\n%s", p.Args, err, &p.said)
			}
			return false
		}
	}
	p.Process.Kill()
	if err := <-ended; err != nil && p.ProcessState.Exited() {
		t.Fatalf("%v: %v\n%s", p.Args, err, &p.said)
	}
	return !p.ProcessState.Exited()
}

// newest is the id of the newest completed checkpoint; 0: there is none.
func newest(dir string) (id int) {
	found, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "*", "chk-*", "_metadata"))
	for _, path := range found {
		var n int
		fmt.Sscanf(filepath.Base(filepath.Dir(path)), "chk-%d", &n)
		id = max(id, n)
	}
	return id
}

var parallelisms = []string{"1", "2", "5", "7"}

// TestInOneProcess runs the job to its end in one process, which repairs what fails.
func TestInOneProcess(t *testing.T) {
	for _, fault := range []struct {
		name, flag, marker string
	}{
		{"no failure", "-fail-at=0", ""},
		{"error", "-fail-at=500", "failed"},
		{"panic", "-panic-at=500", "panicked"},
	} {
		for _, p := range parallelisms {
			t.Run(fault.name+"/"+p, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				start(t, "-dir", dir, "-p", p, "-rate", "2000", fault.flag, "-expect").finish(t)
				if _, err := os.Stat(filepath.Join(dir, fault.marker)); err != nil {
					t.Error("the job has not failed:", err)
				}
				if left, _ := filepath.Glob(filepath.Join(dir, "out", ".*")); len(left) > 0 {
					t.Error("left unpublished:", left)
				}
			})
		}
	}
}

// TestUnlimited has the whole input read before there is any checkpoint.
func TestUnlimited(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"-fail-at=0", "-fail-at=5000", "-panic-at=1"} {
		start(t, "-dir", t.TempDir(), "-p", "2", "-records", "5000", "-keys", "7", fault, "-expect").finish(t)
	}
}

// TestKill kills the process twice and goes on from the latest checkpoint, the second time at another parallelism.
func TestKill(t *testing.T) {
	for i, p := range parallelisms {
		other, unaligned := parallelisms[(i+1)%len(parallelisms)], fmt.Sprint("execution.checkpointing.unaligned=", i%2 == 0)
		t.Run(p+" then "+other+" "+unaligned, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := []string{"-dir", dir, "-rate", "700", "-expect", "-D", unaligned}
			start(t, append(args, "-p", p)...).killAfter(t, dir, 2)
			start(t, append(args, "-p", p, "-s", "latest")...).killAfter(t, dir, newest(dir)+3)
			start(t, append(args, "-p", other, "-s", "latest")...).finish(t)
		})
	}
}

// TestLedger enters an output with one mistake after the other.
func TestLedger(t *testing.T) {
	right := []string{"1 1 1 1", "1 3 2 4", "0 2 1 2", "0 4 2 6"}
	replace := func(i int, line string) []string {
		lines := append([]string(nil), right...)
		lines[i] = line
		return lines
	}
	for _, c := range []struct {
		lines []string
		want  string // "": nothing is wrong
	}{
		{right, ""},
		{[]string{"1 3 1 3", "1 1 2 4", "0 4 1 4", "0 2 2 6"}, ""},
		{right[:3], "integer 4 is there 0 times"},
		{append(right, "0 2 3 8"), "integer 2 is there 2 times"},
		{replace(0, "1 1 2 1"), "integer 1 has count 2 and sum 1; want 1 and 1"},
		{replace(1, "1 3 2 5"), "integer 3 has count 2 and sum 5; want 2 and 4"},
		{replace(2, "1 2 1 2"), "no integer 2 of key 1"},
		{replace(2, "1 5 1 2"), "no integer 5 of key 1"},
		{replace(2, "0 2 1"), "not a line of four numbers"},
	} {
		l := newLedger(4, 2)
		for _, line := range c.lines {
			l.enter("here", line)
		}
		err := l.balance()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %q", c.lines, err, c.want)
		}
	}
}

// TestLedgerListsNotAll: a thousand mistakes are not a thousand lines.
func TestLedgerListsNotAll(t *testing.T) {
	if n := strings.Count(newLedger(1000, 10).balance().Error(), "\n"); n != wrongMost {
		t.Errorf("%d lines", n+1)
	}
}

// TestExpectNotices compares an output that lacks a file.
func TestExpectNotices(t *testing.T) {
	dir := t.TempDir()
	start(t, "-dir", dir).finish(t)
	parts, err := filepath.Glob(filepath.Join(dir, "out", "part-*"))
	if err != nil || len(parts) == 0 {
		t.Fatal("no output", err)
	}
	if err := os.Remove(parts[0]); err != nil {
		t.Fatal(err)
	}
	if err := compare(options{records: 1000, keys: 10, dir: dir}); err == nil {
		t.Error("nobody misses ", parts[0])
	}
}
