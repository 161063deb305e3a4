package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/rest"
)

// stopOptions are the options of stop.
type stopOptions struct {
	asker
	format   formatOption
	path     string
	drain    bool
	detached bool
}

func newStop() *cobra.Command {
	var o stopOptions
	c := &cobra.Command{
		Use:   "stop [OPTIONS] <Job ID>",
		Short: "Stops a running job with a savepoint.",
		Long: "Takes a savepoint of a running job, and stops the job when everything is committed that came before it. To go on from there: weir run -s\n" +
			"with the path that is printed, or -s latest.",
		Example:               "  weir stop --savepointPath /savepoints fd72014d4c864993a2e5a9287b4a9c5d",
		DisableFlagsInUseLine: true,
		RunE:                  func(c *cobra.Command, args []string) error { return o.stop(c, args) },
	}
	f := c.Flags()
	f.StringVarP(&o.path, "savepointPath", "p", "", "the `directory` of the savepoint (default execution.checkpointing.savepoint-dir of the job)")
	f.BoolVarP(&o.drain, "drain", "d", false, "end all data first, as if the sources had ended: the job can then not go on from the savepoint")
	o.format.flag(f)
	f.BoolVar(&o.detached, "detached", false, "do not wait for the savepoint; print its trigger id")
	o.flags(f)
	return c
}

// jobAndPath are the job and the directory. As in Flink an option's only value is the job, where no other word is there.
func jobAndPath(c *cobra.Command, path string, args []string, missing string) (job, target string, err error) {
	if len(args) == 0 && path != "" {
		args, path = []string{path}, ""
	}
	if len(args) == 0 {
		return "", "", usageError(c, errors.New(missing))
	}
	job, err = parseJob(c, args[0])
	return job, absolute(path), err
}

func (o *stopOptions) stop(c *cobra.Command, args []string) error {
	var order rest.SavepointOrder
	job, target, err := jobAndPath(c, o.path, args, "Missing JobID. Specify a JobID to stop a job.")
	if err != nil {
		return err
	}
	order.Target, order.Drain = target, o.drain
	if order.Format, err = o.format.format(c); err != nil {
		return err
	}
	s, err := o.open(c)
	if err != nil {
		return err
	}
	out, how := c.OutOrStdout(), "Suspending"
	if o.drain {
		how = "Draining"
	}
	fmt.Fprintf(out, "%s job %q with a %v savepoint.\n", how, job, order.Format)
	if o.detached {
		fmt.Fprintf(out, "Triggering stop-with-savepoint in detached mode for job %s.\n", job)
	} else {
		fmt.Fprintf(out, "Triggering stop-with-savepoint for job %s.\nWaiting for response...\n", job)
	}
	ctx, cancel := triggering()
	defer cancel()
	trigger, err := s.client.TriggerStop(ctx, job, order)
	switch {
	case err != nil && o.detached:
		return failed(err, "Could not stop with a detached savepoint job %q.", job)
	case err != nil:
		return failed(err, "Could not stop with a savepoint job %q.", job)
	case o.detached:
		fmt.Fprintf(out, "Successfully trigger stop-with-savepoint in detached mode, triggerId: %s\n", trigger)
		return nil
	}
	ctx, cancel = s.waiting(job)
	defer cancel()
	location, err := s.client.AwaitSavepoint(ctx, job, trigger)
	if err != nil {
		return ended(err, "stop", trigger, "Could not stop with a savepoint job %q.", job)
	}
	fmt.Fprintf(out, "Savepoint completed. Path: %s\n", location)
	return nil
}
