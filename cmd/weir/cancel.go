package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/rest"
)

// cancelOptions are the options of cancel.
type cancelOptions struct {
	asker
	format    formatOption
	savepoint string
}

func newCancel() *cobra.Command {
	var o cancelOptions
	c := &cobra.Command{
		Use:                   "cancel [OPTIONS] <Job ID>",
		Short:                 "Cancels a running job.",
		DisableFlagsInUseLine: true,
		RunE:                  func(c *cobra.Command, args []string) error { return o.cancel(c, args) },
	}
	f := c.Flags()
	f.StringVarP(&o.savepoint, "withSavepoint", "s", "", "deprecated, use stop: the `directory` of a savepoint that is taken before (without one:\n"+
		"execution.checkpointing.savepoint-dir of the job)")
	o.format.flag(f)
	o.flags(f)
	return c
}

func (o *cancelOptions) cancel(c *cobra.Command, args []string) error {
	job, target, err := jobAndPath(c, o.savepoint, args, "Missing JobID. Specify a JobID to cancel a job.")
	if err != nil {
		return err
	}
	format, err := o.format.format(c)
	if err != nil {
		return err
	}
	s, err := o.open(c)
	if err != nil {
		return err
	}
	if c.Flags().Changed("withSavepoint") {
		return s.cancelWithSavepoint(c, job, rest.SavepointOrder{Target: target, Format: format, Cancel: true})
	}
	out := c.OutOrStdout()
	fmt.Fprintf(out, "Cancelling job %s.\n", job)
	ctx, cancel := triggering()
	defer cancel()
	if err := s.client.Cancel(ctx, job); err != nil {
		return failed(err, "Could not cancel job %s.", job)
	}
	fmt.Fprintf(out, "Cancelled job %s.\n", job)
	return nil
}

func (s *session) cancelWithSavepoint(c *cobra.Command, job string, order rest.SavepointOrder) error {
	out, where := c.OutOrStdout(), order.Target
	if where == "" {
		where = "default savepoint directory"
	}
	fmt.Fprintln(out, `DEPRECATION WARNING: Cancelling a job with savepoint is deprecated. Use "stop" instead.`)
	fmt.Fprintf(out, "Cancelling job %s with %v savepoint to %s.\n", job, order.Format, where)
	ctx, cancel := triggering()
	defer cancel()
	trigger, err := s.client.TriggerSavepoint(ctx, job, order)
	if err != nil {
		return failed(err, "Could not cancel job %s.", job)
	}
	ctx, cancel = s.waiting(job)
	defer cancel()
	location, err := s.client.AwaitSavepoint(ctx, job, trigger)
	if err != nil {
		return ended(err, "savepoint", trigger, "Could not cancel job %s.", job)
	}
	fmt.Fprintf(out, "Cancelled job %s. Savepoint stored in %s.\n", job, location)
	return nil
}
