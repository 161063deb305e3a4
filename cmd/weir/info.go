package main

import (
	"github.com/spf13/cobra"
)

func newInfo() *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "info [OPTIONS] <binary> [<arguments>]",
		Short: "Prints the plan of a job as JSON, without running it.",
		Long: "Prints the plan of a job as JSON: its operators with their UIDs, states and types, the edges between them, and its options. Nothing is started,\n" +
			"and no input is opened. With -s the plan says, too, what would become of the snapshot. The options are those of run.",
		DisableFlagsInUseLine: true,

		RunE: func(c *cobra.Command, args []string) error {
			_, text, err := o.plan(c, args)
			if err != nil {
				return err
			}
			_, err = c.OutOrStdout().Write(text)
			return err
		},
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.SortFlags = false
	o.restoreFlags(f)
	o.jobFlags(f)
	return c
}
