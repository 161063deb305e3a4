package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/cluster"
	"github.com/weirstream/weir/internal/config"
)

const (
	// planMost is how long a program may take to say what its job is.
	planMost = time.Minute
	// killedMost is how long it may take to end after that, with whatever it has started.
	killedMost = 5 * time.Second
	// saidMost is how much is told of what a program printed that said nothing of its job.
	saidMost = 2000
)

// plan asks a job's program what its job is: it is run with the options and its own arguments, but in a role in which Execute runs nothing.
func (o *runOptions) plan(c *cobra.Command, args []string) (p *cluster.Plan, text []byte, err error) {
	if len(args) == 0 {
		return nil, nil, usageError(c, fmt.Errorf("The binary of the job is missing. Specify it after the options: %s", c.UseLine()))
	}
	own := o.arguments(c)
	if _, _, err := config.Take(own); err != nil {
		return nil, nil, usageError(c, err)
	}
	binary, err := jobBinary(args[0])
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "weir-plan-")
	if err != nil {
		return nil, nil, fmt.Errorf("There is no place for the plan: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "plan.json")
	said, ended := runPlanning(binary, append(append(own, "--"), args[1:]...), file)
	text, err = os.ReadFile(file)
	if err != nil {
		return nil, nil, noPlan(args[0], ended, said)
	}
	p, err = parsePlan(args[0], text)
	return p, text, err
}

// runPlanning runs a program that is to write a plan, and gives what it printed. It has nothing to read.
func runPlanning(binary string, args []string, file string) (said []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), planMost, fmt.Errorf("it was ended after %v", planMost))
	defer cancel()
	var out tail
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), config.RoleVariable+"="+string(config.RolePlan), config.PlanFileVariable+"="+file)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, killedMost
	if err = cmd.Run(); context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	return out.last, err
}

// tail keeps the end of what is written to it.
type tail struct{ last []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.last = append(t.last, b...)
	t.last = t.last[max(0, len(t.last)-saidMost):]
	return len(b), nil
}

var _ io.Writer = (*tail)(nil)

// noPlan says what a program did instead of writing a plan.
func noPlan(name string, ended error, said []byte) error {
	var exit *exec.ExitError
	how := "it ended"
	switch {
	case errors.As(ended, &exit):
		how = "it ended with " + exit.String()
	case ended != nil:
		how = ended.Error()
	}
	text := fmt.Sprintf("%s has not said what its job is: %s. It must be a program that was built with package weir, and come to Execute when it is given "+
		"these arguments.", name, how)
	if said := bytes.TrimSpace(said); len(said) > 0 {
		text += "\nIt printed, at last:\n  " + strings.ReplaceAll(string(said), "\n", "\n  ")
	}
	return errors.New(text)
}

// parsePlan reads a plan. Its error may be why the job cannot run.
func parsePlan(name string, text []byte) (*cluster.Plan, error) {
	var p cluster.Plan
	err := json.Unmarshal(text, &p)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s has written a plan that cannot be read: %w", name, err)
	case p.Version != cluster.PlanVersion:
		return nil, fmt.Errorf("%s has written a plan of version %d; this command reads version %d: use that of the version of Weir that the job was built with",
			name, p.Version, cluster.PlanVersion)
	case p.Error != "":
		return nil, errors.New(p.Error)
	}
	return &p, nil
}
