package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Prints the version.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			fmt.Fprintln(c.OutOrStdout(), version())
			return nil
		},
	}
}

// version is the line that Flink prints, with what the Go command has stamped into this binary.
func version() string {
	number, commit := "(unknown)", "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			number = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value
			}
		}
	}
	return fmt.Sprintf("Version: %s, Commit ID: %s", number, commit)
}
