package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/rest"
)

// savepointOptions are the options of savepoint.
type savepointOptions struct {
	asker
	format   formatOption
	dispose  string
	detached bool
}

func newSavepoint() *cobra.Command {
	var o savepointOptions
	c := &cobra.Command{
		Use:                   "savepoint [OPTIONS] <Job ID> [<target directory>]",
		Short:                 "Takes a savepoint of a running job, deletes one, or looks into one.",
		Args:                  cobra.ArbitraryArgs,
		Example:               "  weir savepoint fd72014d4c864993a2e5a9287b4a9c5d /savepoints\n  weir savepoint -d /savepoints/savepoint-fd7201-d7a4a7a8e4d6",
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("dispose") {
				return o.remove(c)
			}
			return o.take(c, args)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.dispose, "dispose", "d", "", "the `path` of a savepoint to delete")
	o.format.flag(f)
	f.BoolVar(&o.detached, "detached", false, "do not wait for the savepoint; print its trigger id")
	o.flags(f)
	c.AddCommand(newInspect(), newDiff(), newCat(), newVerify(), newToAvro())
	return c
}

// take takes a savepoint.
func (o *savepointOptions) take(c *cobra.Command, args []string) error {
	out := c.OutOrStdout()
	if len(args) == 0 {
		return usageError(c, errors.New("Missing JobID. Specify a Job ID to trigger a savepoint."))
	}
	job, err := parseJob(c, args[0])
	if err != nil {
		return err
	}
	var order rest.SavepointOrder
	if order.Format, err = o.format.format(c); err != nil {
		return err
	}
	if len(args) > 1 {
		order.Target = absolute(args[1])
	}
	if len(args) > 2 {
		fmt.Fprintln(out, "Provided more arguments than required. Ignoring not needed arguments.")
	}
	s, err := o.open(c)
	if err != nil {
		return err
	}
	if o.detached {
		fmt.Fprintf(out, "Triggering savepoint in detached mode for job %s.\n", job)
	} else {
		fmt.Fprintf(out, "Triggering savepoint for job %s.\nWaiting for response...\n", job)
	}
	ctx, cancel := triggering()
	defer cancel()
	trigger, err := s.client.TriggerSavepoint(ctx, job, order)
	switch {
	case err != nil && o.detached:
		return failed(err, "Triggering a detached savepoint for the job %s failed.", job)
	case err != nil:
		return failed(err, "Failed to trigger a savepoint for the job %s.", job)
	case o.detached:
		fmt.Fprintf(out, "Successfully trigger manual savepoint, triggerId: %s\n", trigger)
		return nil
	}
	ctx, cancel = s.waiting(job)
	defer cancel()
	location, err := s.client.AwaitSavepoint(ctx, job, trigger)
	if err != nil {
		return ended(err, "savepoint", trigger, "Failed to trigger a savepoint for the job %s.", job)
	}
	fmt.Fprintf(out, "Savepoint completed. Path: %s\nYou can resume your program from this savepoint with the run command.\n", location)
	return nil
}

// remove deletes a savepoint.
func (o *savepointOptions) remove(c *cobra.Command) error {
	s, err := o.open(c)
	if err != nil {
		return err
	}
	out, path := c.OutOrStdout(), absolute(o.dispose)
	fmt.Fprintf(out, "Disposing savepoint '%s'.\nWaiting for response...\n", o.dispose)
	ctx, cancel := triggering()
	defer cancel()
	trigger, err := s.client.TriggerDisposal(ctx, path)
	if err == nil {
		err = s.client.AwaitDisposal(ctx, trigger)
	}
	if err != nil {
		return failed(err, "Failed to dispose the savepoint '%s'.", o.dispose)
	}
	fmt.Fprintf(out, "Savepoint '%s' disposed.\n", o.dispose)
	return nil
}
