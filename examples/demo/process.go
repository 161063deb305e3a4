package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
)

// process is a run of the job.
type process struct {
	cmd  *exec.Cmd
	log  *os.File
	read atomic.Int64  // how many words it has read, as it says
	done chan struct{} // closed when it has ended
	err  error         // how; may be read when done is closed
}

// startProcess starts the job. What it logs is appended to a file. It is killed where ctx is done. One goroutine, which owns
// the read half of its standard output, listens until the process has ended.
func startProcess(ctx context.Context, o jobOptions, weirArguments ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(logFile(o.dir), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self, append(o.arguments(), weirArguments...)...), log: log, done: make(chan struct{})}
	p.cmd.Stderr = log
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	go func() {
		defer close(p.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if n, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
				p.read.Store(n)
			}
		}
		p.err = errors.Join(p.cmd.Wait(), log.Close())
	}()
	return p, nil
}

// kill is kill -9, and waits until the process is gone. It is an error if the process had ended before by itself.
func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	<-p.done
	if err != nil || p.cmd.ProcessState.Exited() {
		return fmt.Errorf("the job had ended before it could be killed (%v): name a larger input with -source", p.cmd.ProcessState)
	}
	return nil
}

func logFile(dir string) string { return filepath.Join(dir, "job.log") }

// logTail is the end of what the job has logged.
func logTail(dir string) string {
	const most = 15
	text, err := os.ReadFile(logFile(dir))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
