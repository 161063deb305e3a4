package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

func newStop() *cobra.Command {
	var o clientOptions
	var target, format string
	var drain, detached bool
	c := &cobra.Command{
		Use:                   "stop [OPTIONS] <Job ID>",
		Short:                 "Stops a running job with a savepoint.",
		Long:                  "Stops a running job with a savepoint: its sources stop, everything they have read is in the savepoint, and is committed before the job is FINISHED.",
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			id, dir, err := jobAndDir(c, args, "savepointPath", target, "Missing JobID. Specify a JobID to stop a job.")
			if err != nil {
				return err
			}
			if format, err = formatType(c, format); err != nil {
				return err
			}
			return stop(c, o.client(), id, dir, format, drain, detached)
		},
	}
	o.add(c)
	f := c.Flags()
	f.StringVarP(&target, "savepointPath", "p", "", "`directory` of the savepoint; without: the configured one (execution.checkpointing.savepoint-dir)")
	f.BoolVarP(&drain, "drain", "d", false, "bring the job to its end: all timers and windows fire. It cannot go on from such a savepoint")
	f.StringVar(&format, "type", "canonical", "`format` of the savepoint: canonical, which every state backend reads, or native")
	f.BoolVar(&detached, "detached", false, "do not wait until the job has stopped")
	return c
}

// jobAndDir reads the job and the directory of an option whose value may be left out, as Flink's command line does it: where no
// argument is left, what stands behind the option is the job.
func jobAndDir(c *cobra.Command, args []string, option, value, missing string) (id, dir string, err error) {
	switch {
	case len(args) > 0:
		id, err = parseJob(c, args[0])
		return id, value, err
	case c.Flags().Changed(option):
		id, err = parseJob(c, value)
		return id, "", err
	}
	return "", "", usageError(c, errors.New(missing))
}

func stop(c *cobra.Command, to *client, id, dir, format string, drain, detached bool) error {
	w, how := c.OutOrStdout(), "Suspending"
	if drain {
		how = "Draining"
	}
	fmt.Fprintf(w, "%s job %q with a %s savepoint.\n", how, id, format)
	body := map[string]any{"targetDirectory": orNull(dir), "drain": drain, "formatType": format}
	path := "/jobs/" + id + "/stop"
	if detached {
		fmt.Fprintf(w, "Triggering stop-with-savepoint in detached mode for job %s.\n", id)
		var t triggered
		if err := to.call(c.Context(), http.MethodPost, path, body, &t); err != nil {
			return failed(err, "Could not stop with a detached savepoint job %q.", id)
		}
		fmt.Fprintf(w, "Successfully trigger stop-with-savepoint in detached mode, triggerId: %s\n", t.RequestID)
		return nil
	}
	fmt.Fprintf(w, "Triggering stop-with-savepoint for job %s.\nWaiting for response...\n", id)
	done, err := to.run(c.Context(), path, "/jobs/"+id+"/savepoints", body)
	if err != nil {
		return failed(err, "Could not stop with a savepoint job %q.", id)
	}
	fmt.Fprintf(w, "Savepoint completed. Path: %s\n", done.Operation.Location)
	return nil
}

func newCancel() *cobra.Command {
	var o clientOptions
	var target, format string
	c := &cobra.Command{
		Use:                   "cancel [OPTIONS] <Job ID>",
		Short:                 "Cancels a running job.",
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			id, dir, err := jobAndDir(c, args, "withSavepoint", target, "Missing JobID. Specify a JobID to cancel a job.")
			if err != nil {
				return err
			}
			if format, err = formatType(c, format); err != nil {
				return err
			}
			if c.Flags().Changed("withSavepoint") {
				return cancelWithSavepoint(c, o.client(), id, dir, format)
			}
			w := c.OutOrStdout()
			fmt.Fprintf(w, "Cancelling job %s.\n", id)
			if err := o.client().call(c.Context(), http.MethodPatch, "/jobs/"+id+"?mode=cancel", nil, nil); err != nil {
				return failed(err, "Could not cancel job %s.", id)
			}
			fmt.Fprintf(w, "Cancelled job %s.\n", id)
			return nil
		},
	}
	o.add(c)
	f := c.Flags()
	f.StringVarP(&target, "withSavepoint", "s", "", "take a savepoint into `directory` first (deprecated: use stop)")
	f.StringVar(&format, "type", "canonical", "`format` of the savepoint: canonical or native")
	return c
}

func cancelWithSavepoint(c *cobra.Command, to *client, id, dir, format string) error {
	w, where := c.OutOrStdout(), "default savepoint directory"
	if dir != "" {
		where = dir
	}
	fmt.Fprintln(w, `DEPRECATION WARNING: Cancelling a job with savepoint is deprecated. Use "stop" instead.`)
	fmt.Fprintf(w, "Cancelling job %s with %s savepoint to %s.\n", id, format, where)
	path := "/jobs/" + id + "/savepoints"
	done, err := to.run(c.Context(), path, path, savepointBody(dir, format, true))
	if err != nil {
		return failed(err, "Could not cancel job %s.", id)
	}
	fmt.Fprintf(w, "Cancelled job %s. Savepoint stored in %s.\n", id, done.Operation.Location)
	return nil
}
