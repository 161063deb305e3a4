package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weirstream/weir/internal/cluster"
	"github.com/weirstream/weir/internal/config"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"weir": main, "job": fakeJob, "counting": countingJob, "shop": shopJob})
}

// fakeJob is what a job's program does with its arguments, without the engine. It prints Weir's and its own; then it does what
// its first own argument says: "exit N", "cat", or "wait" for an interrupt.
func fakeJob() {
	flags, rest, err := config.Take(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if flags.File != "" {
		fmt.Println("file", flags.File)
	}
	for _, s := range flags.Settings {
		fmt.Println("set", s.Key, s.Value)
	}
	fmt.Printf("own %q\n", rest)
	switch action := strings.Join(rest, " "); {
	case strings.HasPrefix(action, "exit "):
		code, _ := strconv.Atoi(rest[1])
		os.Exit(code)
	case action == "cat":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case action == "wait":
		interrupts := make(chan os.Signal, 1)
		signal.Notify(interrupts, os.Interrupt)
		fmt.Println("waiting")
		<-interrupts
		os.Exit(42)
	}
}

func TestScripts(t *testing.T) {
	job, err := exec.LookPath("job")
	if err != nil {
		t.Fatal(err)
	}
	counting, err := exec.LookPath("counting")
	if err != nil {
		t.Fatal(err)
	}
	shop, err := exec.LookPath("shop")
	if err != nil {
		t.Fatal(err)
	}
	compat, err := filepath.Abs("../../testdata/compat")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("JOB", job)
			e.Setenv("COUNTING", counting)
			e.Setenv("SHOP", shop)
			e.Setenv("COMPAT", compat)
			e.Setenv("ID", string(cluster.IDOf("counting")))
			return writePort(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status, "running": running, "path": path, "overtake": overtake},
	})
}

// status runs a command and expects this exit status: status 3 weir ...
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE COMMAND...")
	}
	got := "0"
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = strconv.Itoa(exit.ExitCode())
	}
	if got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}

func TestSignalsAreTheJobs(t *testing.T) {
	job, err := exec.LookPath("job")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("weir", "run", job, "wait")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "waiting" {
			if err := c.Process.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
		}
	}
	if _ = c.Wait(); c.ProcessState.ExitCode() != 42 {
		t.Errorf("ended with %v", c.ProcessState)
	}
}
