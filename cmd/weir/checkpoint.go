package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func newCheckpoint() *cobra.Command {
	var a asker
	var full bool
	c := &cobra.Command{
		Use:                   "checkpoint [OPTIONS] <Job ID>",
		Short:                 "Takes a checkpoint of a running job, now.",
		DisableFlagsInUseLine: true,
		RunE:                  func(c *cobra.Command, args []string) error { return a.checkpoint(c, args, full) },
	}
	c.Flags().BoolVar(&full, "full", false, "refer to no file of an earlier checkpoint")
	a.flags(c.Flags())
	return c
}

func (a *asker) checkpoint(c *cobra.Command, args []string, full bool) error {
	if len(args) == 0 {
		return usageError(c, errors.New("Missing JobID. Specify a Job ID to manipulate a checkpoint."))
	}
	job, err := parseJob(c, args[0])
	if err != nil {
		return err
	}
	s, err := a.open(c)
	if err != nil {
		return err
	}
	out, what := c.OutOrStdout(), "Checkpoint"
	if full {
		what = "Checkpoint(FULL)"
	}
	fmt.Fprintf(out, "Triggering checkpoint for job %s.\nWaiting for response...\n", job)
	ctx, cancel := triggering()
	defer cancel()
	trigger, err := s.client.TriggerCheckpoint(ctx, job, full)
	if err != nil {
		return failed(err, "Failed to trigger a checkpoint for the job %s.", job)
	}
	ctx, cancel = s.waiting(job)
	defer cancel()
	id, err := s.client.AwaitCheckpoint(ctx, job, trigger)
	if err != nil {
		return ended(err, "checkpoint", trigger, "Failed to trigger a checkpoint for the job %s.", job)
	}
	fmt.Fprintf(out, "%s %d for job %s completed.\nYou can resume your program from this checkpoint with the run command.\n", what, id, job)
	return nil
}
