package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/rest"
)

// asker is what all actions have that ask a running job.
type asker struct {
	manager    string
	properties []string
	config     string
}

// flags are the options by which the job is found.
func (a *asker) flags(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVarP(&a.manager, "jobmanager", "m", "", "where the job is asked, as `host:port` (default rest.address and rest.port of the configuration)")
	f.StringArrayVarP(&a.properties, "property", "D", nil, "any option of docs/config.md, as `key=value`; may be repeated")
	f.StringVar(&a.config, "config", "", "the configuration `file` (default $WEIR_CONF_DIR/config.yaml, else ./config.yaml)")
	f.BoolP("verbose", "v", false, "has no effect; Flink's command line has it")
	_ = f.MarkHidden("verbose")
}

// session is the configuration, and a client of the job.
type session struct {
	config *config.Config
	client *rest.Client
}

func (a *asker) open(c *cobra.Command) (*session, error) {
	var args []string
	for _, p := range a.properties {
		args = append(args, "-D", p)
	}
	if a.config != "" {
		args = append(args, "--config="+a.config)
	}
	flags, _, err := config.Take(args)
	if err != nil {
		return nil, usageError(c, err)
	}
	cfg, err := config.Load(flags, nil)
	if err != nil {
		return nil, err
	}
	address := a.manager
	if address == "" {
		address = net.JoinHostPort(cfg.Get(config.RestAddress), strconv.Itoa(cfg.Get(config.RestPort)))
	}
	client, err := rest.NewClient(address)
	if err != nil {
		return nil, usageError(c, err)
	}
	return &session{config: cfg, client: client}, nil
}

const (
	// triggerMost is how long a job may take to say that it has begun with what it was asked for.
	triggerMost = 30 * time.Second
	// slack is what is waited for longer than the job itself waits.
	slack = 10 * time.Second
	// exitPending is the exit status where what was asked for is still under way.
	exitPending = 2
)

// triggering is the context of a request that is answered at once.
func triggering() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), triggerMost)
}

var errPending = errors.New("time-out")

// waiting is the context of what takes its time: client.timeout, or else as long as the job itself waits.
func (s *session) waiting(job string) (context.Context, context.CancelFunc) {
	most, set := s.config.Lookup(config.ClientTimeout)
	if !set {
		ctx, cancel := triggering()
		defer cancel()
		timeout, err := s.client.CheckpointTimeout(ctx, job)
		if err != nil { // whoever waits will hear of it
			timeout = config.CheckpointTimeout.Default
		}
		most = timeout + slack
	}
	return context.WithTimeoutCause(context.Background(), most, errPending)
}

// exitError is an error with an exit status of its own.
type exitError struct {
	status int
	text   string
}

func (e *exitError) Error() string { return e.text }

// failed is the error of an action that the job was asked for, in the form in which Flink's command line writes it.
func failed(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	return fmt.Errorf("\n------------------------------------------------------------\n The program finished with the following exception:\n\n%s\nCaused by: %w", what, err)
}

// ended is failed, but where the time is merely up: then the operation goes on.
func ended(err error, what, trigger, format string, args ...any) error {
	if errors.Is(err, errPending) {
		return &exitError{exitPending, fmt.Sprintf("The %s is still under way, and goes on: triggerId %s. To wait for longer: -D %s=30min.", what, trigger,
			config.ClientTimeout.Key)}
	}
	return failed(err, format, args...)
}

var jobID = regexp.MustCompile(`^[0-9a-fA-F]{32}$`)

// parseJob is the id of a job on the command line.
func parseJob(c *cobra.Command, text string) (string, error) {
	if !jobID.MatchString(text) {
		return "", usageError(c, fmt.Errorf("Cannot parse JobID from %q. The expected format is [0-9a-fA-F]{32}, e.g. fd72014d4c864993a2e5a9287b4a9c5d.", text))
	}
	return strings.ToLower(text), nil
}

// formatOption is --type.
type formatOption struct{ text string }

func (o *formatOption) flag(f *pflag.FlagSet) {
	f.StringVar(&o.text, "type", "canonical", "the `format` of the savepoint: canonical, which all state backends read, or native, which may be faster")
}

func (o *formatOption) format(c *cobra.Command) (checkpoint.Format, error) {
	for _, f := range []checkpoint.Format{checkpoint.Canonical, checkpoint.Native} {
		if strings.EqualFold(o.text, f.String()) {
			return f, nil
		}
	}
	return 0, usageError(c, fmt.Errorf("There is no savepoint format %q. There are canonical and native.", o.text))
}

// absolute is a path as it is from everywhere: the job's working directory is another.
func absolute(path string) string {
	if path == "" || strings.Contains(path, ":") {
		return path
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
