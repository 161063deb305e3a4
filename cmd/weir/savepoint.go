package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

func newSavepoint() *cobra.Command {
	var o clientOptions
	var dispose, format string
	var detached bool
	c := &cobra.Command{
		Use:                   "savepoint [OPTIONS] <Job ID> [<target directory>]",
		Short:                 "Triggers a savepoint of a running job, or disposes of one.",
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("dispose") {
				return disposeOf(c, o.client(), dispose)
			}
			if len(args) == 0 {
				return usageError(c, errors.New("Missing JobID. Specify a Job ID to trigger a savepoint."))
			}
			id, err := parseJob(c, args[0])
			if err != nil {
				return err
			}
			target := ""
			if len(args) > 1 {
				target = args[1]
			}
			if len(args) > 2 {
				fmt.Fprintln(c.OutOrStdout(), "Provided more arguments than required. Ignoring not needed arguments.")
			}
			if format, err = formatType(c, format); err != nil {
				return err
			}
			return takeSavepoint(c, o.client(), id, target, format, detached)
		},
	}
	o.add(c)
	f := c.Flags()
	f.StringVarP(&dispose, "dispose", "d", "", "`path` of a savepoint to delete")
	f.StringVar(&format, "type", "canonical", "`format` of the savepoint: canonical, which every state backend reads, or native")
	f.BoolVar(&detached, "detached", false, "do not wait until the savepoint is complete")
	return c
}

func savepointBody(target, format string, cancel bool) map[string]any {
	return map[string]any{"target-directory": orNull(target), "cancel-job": cancel, "formatType": format}
}

func takeSavepoint(c *cobra.Command, to *client, id, target, format string, detached bool) error {
	w, path := c.OutOrStdout(), "/jobs/"+id+"/savepoints"
	if detached {
		fmt.Fprintf(w, "Triggering savepoint in detached mode for job %s.\n", id)
		var t triggered
		if err := to.call(c.Context(), http.MethodPost, path, savepointBody(target, format, false), &t); err != nil {
			return failed(err, "Triggering a detached savepoint for the job %s failed.", id)
		}
		fmt.Fprintf(w, "Successfully trigger manual savepoint, triggerId: %s\n", t.RequestID)
		return nil
	}
	fmt.Fprintf(w, "Triggering savepoint for job %s.\nWaiting for response...\n", id)
	done, err := to.run(c.Context(), path, path, savepointBody(target, format, false))
	if err != nil {
		return failed(err, "Failed to trigger a savepoint for the job %s.", id)
	}
	fmt.Fprintf(w, "Savepoint completed. Path: %s\nYou can resume your program from this savepoint with the run command.\n", done.Operation.Location)
	return nil
}

func disposeOf(c *cobra.Command, to *client, path string) error {
	w := c.OutOrStdout()
	fmt.Fprintf(w, "Disposing savepoint '%s'.\nWaiting for response...\n", path)
	const at = "/savepoint-disposal"
	if _, err := to.run(c.Context(), at, at, map[string]any{"savepoint-path": path}); err != nil {
		return failed(err, "Failed to dispose the savepoint '%s'.", path)
	}
	fmt.Fprintf(w, "Savepoint '%s' disposed.\n", path)
	return nil
}

func newCheckpoint() *cobra.Command {
	var o clientOptions
	var full bool
	c := &cobra.Command{
		Use:                   "checkpoint [OPTIONS] <Job ID>",
		Short:                 "Triggers a checkpoint of a running job.",
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError(c, errors.New("Missing JobID. Specify a Job ID to manipulate a checkpoint."))
			}
			id, err := parseJob(c, args[0])
			if err != nil {
				return err
			}
			what, sort := "Checkpoint", "CONFIGURED"
			if full {
				what, sort = "Checkpoint(FULL)", "FULL"
			}
			w, path := c.OutOrStdout(), "/jobs/"+id+"/checkpoints"
			fmt.Fprintf(w, "Triggering checkpoint for job %s.\nWaiting for response...\n", id)
			done, err := o.client().run(c.Context(), path, path, map[string]any{"checkpointType": sort})
			if err != nil {
				return failed(err, "Failed to trigger a checkpoint for the job %s.", id)
			}
			fmt.Fprintf(w, "%s %d for job %s completed.\nYou can resume your program from this checkpoint with the run command.\n", what, done.Operation.CheckpointID, id)
			return nil
		},
	}
	o.add(c)
	c.Flags().BoolVar(&full, "full", false, "a checkpoint that refers to no older one's files")
	return c
}
